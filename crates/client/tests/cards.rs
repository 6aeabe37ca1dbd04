//! Cards: kept as long as their servers say, and their signatures looked at.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{Cards, Http, Limits, Source};
use protocol::{AgentCard, Dial};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use signature::{Doubt, Form, Key, jwks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that gives one answer for each request, the last one again and again, chosen by path when a path is named.
struct Server {
    at: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

type Answers = Vec<(&'static str, String)>;

async fn serve(make: impl FnOnce(&str) -> Answers) -> Server {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (at, asked) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::<String>::new())));
    let (mut answers, written) = (make(&format!("http://{at}")), asked.clone());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut text, mut piece) = (String::new(), [0; 4096]);
            while !text.ends_with("\r\n\r\n") {
                let read = stream.read(&mut piece).await.unwrap();
                text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
            }
            let path = text.split(' ').nth(1).unwrap().to_owned();
            let fits = |(for_path, _): &(&str, String)| *for_path == path;
            let first = answers.iter().position(fits).unwrap();
            let last = answers.iter().filter(|answer| fits(answer)).count() == 1;
            let (_, answer) = if last { answers[first].clone() } else { answers.remove(first) };
            written.lock().unwrap().push(text.to_lowercase());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    Server { at, asked }
}

const PATH: &str = "/.well-known/agent-card.json";

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn card() -> AgentCard {
    serde_json::from_value(json!({
        "name": "a", "description": "A.", "version": "1", "supportedInterfaces": [], "capabilities": {},
        "defaultInputModes": [], "defaultOutputModes": [],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}]
    }))
    .unwrap()
}

fn card_text(version: &str) -> String {
    let mut card = card();
    card.version = version.into();
    serde_json::to_string(&card).unwrap()
}

fn http() -> Http {
    Http::new(Dial::default(), Limits::default(), None)
}

impl Server {
    fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// The requests so far.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Moves the clock of the cache. The sockets do not notice.
async fn later(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn w12_a_card_that_is_fresh_is_not_asked_for_and_an_old_one_only_if_it_changed() {
    let headers =
        "cache-control: public, max-age=60\r\netag: \"one\"\r\nlast-modified: Tue, 01 Dec 2026 12:00:00 GMT\r\n";
    let server = serve(|_| {
        vec![
            (PATH, answer("200 OK", headers, &card_text("1"))),
            (PATH, answer("304 Not Modified", "cache-control: max-age=60, public\r\n", "")),
            (PATH, answer("200 OK", "cache-control: MAX-AGE=60\r\nage: 50\r\netag: \"two\"\r\n", &card_text("2"))),
            (PATH, answer("503 Service Unavailable", "", "")),
        ]
    })
    .await;
    let cards = Cards::new(http());
    let version = async || cards.card("", &server.url()).await.map(|fetched| fetched.card.version.clone());
    assert_eq!(version().await.unwrap(), "1");
    assert_eq!(version().await.unwrap(), "1");
    assert_eq!(server.asked().len(), 1);
    later(61).await;
    assert_eq!(version().await.unwrap(), "1");
    assert_eq!(version().await.unwrap(), "1");
    let asked = server.asked();
    assert!(asked.len() == 2 && asked[1].contains("if-none-match: \"one\""), "{asked:?}");
    later(61).await;
    assert_eq!(version().await.unwrap(), "2");
    assert_eq!(version().await.unwrap(), "2");
    assert_eq!(server.asked().len(), 3);
    later(11).await;
    let error = version().await.unwrap_err().to_string();
    assert!(error.contains("503"), "a card that may have changed is not taken for the card: {error}");
    assert!(server.asked()[3].contains("if-none-match: \"two\""));
}

#[tokio::test]
async fn w12_what_must_not_be_kept_is_not_and_without_a_word_on_caching_each_time_is_asked() {
    for (headers, conditional) in [
        ("cache-control: no-store\r\netag: \"x\"\r\n", None),
        ("cache-control: no-cache, max-age=60\r\netag: \"x\"\r\n", Some("if-none-match: \"x\"")),
        ("last-modified: Tue, 01 Dec 2026 12:00:00 GMT\r\n", Some("if-modified-since: tue, 01 dec 2026 12:00:00 gmt")),
        ("", None),
        ("cache-control: max-age=99999999999999999999\r\n", None),
    ] {
        let server = serve(|_| vec![(PATH, answer("200 OK", headers, &card_text("1")))]).await;
        let cards = Cards::new(http());
        for _ in 0..2 {
            cards.card("", &server.url()).await.unwrap();
        }
        let asked = server.asked();
        assert_eq!(asked.len(), 2, "{headers}");
        assert_eq!(asked[1].contains("if-"), conditional.is_some(), "{}", asked[1]);
        assert!(asked[1].contains(conditional.unwrap_or_default()), "{}", asked[1]);
    }
}

fn es256(id: &str) -> Key {
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    Key::es256_pkcs8(id, der.as_ref()).unwrap()
}

fn with_signatures(signed: &[(&Key, Option<String>)]) -> Value {
    let mut card = serde_json::to_value(card()).unwrap();
    let signatures = signed.iter().map(|(key, jku)| key.signatures(&self::card(), jku.as_deref()).unwrap()[0].clone());
    card["signatures"] = serde_json::to_value(signatures.collect::<Vec<_>>()).unwrap();
    card["future"] = json!({"kept": true});
    card
}

#[tokio::test]
async fn w14_keys_are_only_read_at_the_cards_own_origin() {
    let (here, there) = (es256("here"), es256("there"));
    let other =
        serve(|_| vec![("/keys", answer("200 OK", "", &jwks::publish(std::slice::from_ref(&there)).to_string()))])
            .await;
    let elsewhere = format!("{}/keys", other.url());
    let server = serve(|origin| {
        let at = |path: &str| Some(format!("{origin}{path}"));
        let secret = Key::hs256("secret", b"known to all");
        let signed = [
            (&here, at("/keys")),
            (&here, at("/keys")),
            (&there, Some(elsewhere.clone())),
            (&there, at("/missing")),
            (&secret, at("/keys")),
            (&secret, None),
            (&here, Some("/keys".to_owned())),
        ];
        let mut card = with_signatures(&signed);
        card.as_object_mut().unwrap().remove("future");
        let mut published = jwks::publish(std::slice::from_ref(&here));
        published["keys"].as_array_mut().unwrap().push(json!({"kty": "oct", "kid": "secret", "k": "a25vd24gdG8gYWxs"}));
        vec![
            (PATH, answer("200 OK", "", &card.to_string())),
            ("/keys", answer("200 OK", "", &published.to_string())),
            ("/missing", answer("404 Not Found", "", "")),
        ]
    })
    .await;
    let fetched = http().fetch_card("", &server.url()).await.unwrap();
    let seals = http().verify(&fetched, None).await.unwrap();
    let found: Vec<_> = seals.iter().map(|seal| (seal.checked.result, seal.source.clone())).collect();
    let keys = format!("{}/keys", server.url());
    let missing =
        Source::Unreadable { url: format!("{}/missing", server.url()), why: format!("{} answered 404", server.at) };
    let unknown = Err(Doubt::UnknownKey);
    assert_eq!(
        found,
        [
            (Ok(Form::Specification), Source::Read(keys.clone())),
            (Ok(Form::Specification), Source::Read(keys.clone())),
            (unknown, Source::OtherOrigin(elsewhere.clone())),
            (unknown, missing),
            (unknown, Source::Read(keys)),
            (unknown, Source::Nowhere),
            (unknown, Source::OtherOrigin("/keys".to_owned())),
        ]
    );
    assert_eq!(server.asked().len(), 3, "the card, the keys once, and those that are missing");
    assert!(other.asked().is_empty());

    let trusted = http().public_keys(&elsewhere).await.unwrap();
    let seals = http().verify(&fetched, Some(&trusted)).await.unwrap();
    let held: Vec<_> = seals.iter().map(|seal| seal.checked.result.is_ok()).collect();
    assert_eq!(held, [false, false, true, true, false, false, false], "only the trusted key counts");
    assert_eq!(server.asked().len(), 3, "and no other is looked for");
}

#[tokio::test]
async fn w14_what_was_changed_on_the_way_does_not_hold_even_where_the_client_does_not_know_the_member() {
    let key = es256("k");
    let changed = |change: fn(&mut Value)| {
        let key = key.clone();
        async move {
            let server = serve(|origin| {
                let mut card = with_signatures(&[(&key, Some(format!("{origin}/keys")))]);
                change(&mut card);
                let published = jwks::publish(std::slice::from_ref(&key)).to_string();
                vec![(PATH, answer("200 OK", "", &card.to_string())), ("/keys", answer("200 OK", "", &published))]
            })
            .await;
            let fetched = http().fetch_card("", &server.url()).await.unwrap();
            http().verify(&fetched, None).await.unwrap()[0].checked.result
        }
    };
    let remove = |card: &mut Value| {
        card.as_object_mut().unwrap().remove("future");
    };
    assert_eq!(changed(remove).await, Ok(Form::Specification));
    assert_eq!(changed(|_| ()).await, Err(Doubt::Different), "a member that was not signed");
    let rename = |card: &mut Value| {
        card.as_object_mut().unwrap().remove("future");
        card["skills"][0]["name"] = "another".into();
    };
    assert_eq!(changed(rename).await, Err(Doubt::Different));
}
