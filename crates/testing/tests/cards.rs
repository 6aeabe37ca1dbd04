//! Cards: signed, with the keys to verify them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::Value;
use server::Setup;
use signature::{Form, JWKS_PATH, Key, check, jwks};
use testing::{Scripted, Served, scripted, serve};

const CARD: &str = "/.well-known/agent-card.json";

fn silent() -> Scripted {
    scripted(|_, say| async move {
        say.done(()).await?;
        Ok(())
    })
}

fn es256() -> Key {
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    Key::es256_pkcs8("", der.as_ref()).unwrap().named_by_thumbprint()
}

async fn signed(keys: Vec<Key>) -> Served {
    serve(silent(), |setup: &mut Setup| setup.signing_keys = keys).await
}

async fn read(served: &Served, path: &str) -> Value {
    let answer = served.http("GET", path, &[], "").await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.body
}

#[tokio::test]
async fn w14_each_key_signs_the_card_and_the_public_ones_are_where_the_signature_says() {
    let secret = Key::hs256("demo", b"secret");
    let (old, new) = (es256(), es256());
    let served = signed(vec![secret.clone(), old.clone(), new.clone()]).await;
    let card = read(&served, CARD).await;
    let keys = jwks::read(read(&served, JWKS_PATH).await.to_string().as_bytes()).unwrap();
    assert_eq!(keys.iter().map(Key::id).collect::<Vec<_>>(), [old.id(), new.id()]);
    let checked = check(&card, &keys);
    let found: Vec<_> = checked.iter().map(|checked| (checked.algorithm.as_deref(), checked.result.ok())).collect();
    let es256 = (Some("ES256"), Some(Form::Specification));
    assert_eq!(found, [(Some("HS256"), None), es256, es256]);
    assert!(check(&card, &[secret])[0].result.is_ok());
    let jku = format!("{}{JWKS_PATH}", served.url);
    assert_eq!(checked[0].jku, None);
    assert_eq!(checked[1].jku.as_deref(), Some(&*jku));

    // Signed for each address under which it is asked for.
    let asked = served.http("GET", CARD, &[("host", "localhost:9")], "").await.body;
    let checked = check(&asked, &keys);
    assert_eq!(checked[1].result, Ok(Form::Specification));
    assert_eq!(checked[1].jku.as_deref(), Some("http://localhost:9/.well-known/jwks.json"));
}

#[tokio::test]
async fn w14_keys_are_cached_like_the_card_and_there_are_none_without_a_public_one() {
    let served = signed(vec![es256()]).await;
    let first = served.http("GET", JWKS_PATH, &[], "").await;
    assert_eq!(first.content_type(), "application/jwk-set+json");
    assert!(first.headers["cache-control"].to_str().unwrap().contains("max-age"));
    let etag = first.headers["etag"].to_str().unwrap();
    assert_eq!(served.http("GET", JWKS_PATH, &[("if-none-match", etag)], "").await.status, 304);
    assert!(first.headers.contains_key("last-modified"));
    for keys in [vec![], vec![Key::hs256("demo", b"secret")]] {
        let missing = signed(keys).await.http("GET", JWKS_PATH, &[], "").await;
        assert_eq!((missing.status, &missing.body["error"]["status"]), (404, &"NOT_FOUND".into()));
    }
}
