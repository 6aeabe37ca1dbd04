//! Web pages of other origins: let in where the flag says so, and nowhere else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use serde_json::json;
use server::{Credential, Setup};
use testing::{Answer, Binding, Scripted, Served, scripted, send, serve};

const CARD: &str = "/.well-known/agent-card.json";
const PAGE: &str = "http://localhost:5173";

fn echo() -> Scripted {
    scripted(|job, say| async move {
        say.done(job.message.parts.clone()).await?;
        Ok(())
    })
}

async fn served(origins: &[&str]) -> Served {
    let change = |setup: &mut Setup| {
        setup.cors = origins.iter().map(|&origin| origin.to_owned()).collect();
        setup.credentials = vec![Credential { token: "t".into(), principal: "ada".into() }];
        setup.signing_keys = vec![signature::Key::hs256("demo", b"secret")];
    };
    serve(echo(), change).await
}

fn allowed(answer: &Answer) -> Option<&str> {
    answer.headers.get("access-control-allow-origin").map(|origin| origin.to_str().unwrap())
}

fn list(answer: &Answer, name: &str) -> Vec<String> {
    let values = answer.headers.get_all(name).iter();
    let words = values.flat_map(|value| value.to_str().unwrap().split(',')).map(|word| word.trim().to_lowercase());
    words.collect()
}

#[tokio::test]
async fn b80_a_preflight_names_the_methods_and_headers_that_a2a_needs() {
    let served = served(&["https://other.example", PAGE]).await;
    let asks = [
        ("origin", PAGE),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type,a2a-version,a2a-extensions,authorization"),
    ];
    for path in ["/a2a/jsonrpc", "/a2a/rest/message:send", "/a2a/rest/tasks/x/pushNotificationConfigs/y", CARD] {
        let preflight = served.http("OPTIONS", path, &asks, "").await;
        assert_eq!((preflight.status, allowed(&preflight)), (200, Some(PAGE)), "{path}");
        let (methods, headers) =
            (list(&preflight, "access-control-allow-methods"), list(&preflight, "access-control-allow-headers"));
        for method in ["get", "post", "delete"] {
            assert!(methods.iter().any(|known| known == method), "{methods:?}");
        }
        for header in ["content-type", "a2a-version", "a2a-extensions", "authorization", "last-event-id"] {
            assert!(headers.iter().any(|known| known == header), "{headers:?}");
        }
        assert_eq!(preflight.headers["access-control-max-age"], "600");
    }
    let stranger = [("origin", "http://localhost:9"), ("access-control-request-method", "POST")];
    assert_eq!(allowed(&served.http("OPTIONS", "/a2a/jsonrpc", &stranger, "").await), None);
}

#[tokio::test]
async fn b80_answers_errors_streams_and_the_card_may_be_read_by_the_page() {
    let served = served(&[PAGE]).await;
    let page = [("origin", PAGE), ("authorization", "Bearer t")];
    let card = served.http("GET", CARD, &page, "").await;
    assert_eq!(allowed(&card), Some(PAGE));
    let vary = list(&card, "vary");
    assert!(vary.contains(&"origin".to_owned()) && vary.contains(&"host".to_owned()), "{vary:?}");
    let exposed = list(&card, "access-control-expose-headers");
    for header in ["a2a-extensions", "etag", "www-authenticate"] {
        assert!(exposed.iter().any(|known| known == header), "{exposed:?}");
    }
    let etag = card.headers["etag"].to_str().unwrap();
    let unchanged = served.http("GET", CARD, &[page.as_slice(), &[("if-none-match", etag)]].concat(), "").await;
    assert_eq!((unchanged.status, allowed(&unchanged)), (304, Some(PAGE)));
    for binding in Binding::BOTH {
        let sent = served.call_with(binding, "SendMessage", send("x"), &page).await;
        assert_eq!((sent.status, allowed(&sent)), (200, Some(PAGE)));
        let missing = served.call_with(binding, "GetTask", json!({"id": "x"}), &page).await;
        assert_eq!((missing.reason(), allowed(&missing)), ("TASK_NOT_FOUND", Some(PAGE)));
        let refused = served.call_with(binding, "GetTask", json!({"id": "x"}), &page[..1]).await;
        assert_eq!((refused.status, allowed(&refused)), (401, Some(PAGE)));
        let mut stream = served.request(binding, "SendStreamingMessage", &send("x"), &page).send().await.unwrap();
        assert_eq!(stream.headers()["access-control-allow-origin"], PAGE);
        assert!(stream.chunk().await.unwrap().is_some());
    }
    for (verb, path, status) in [("GET", "/nowhere", 404), ("PUT", "/a2a/jsonrpc", 405), ("GET", "/a2a/rest/x", 404)] {
        let answer = served.http(verb, path, &page, "").await;
        assert_eq!((answer.status, allowed(&answer)), (status, Some(PAGE)), "{path}");
    }
    let stranger = [("origin", "https://evil.example"), ("authorization", "Bearer t")];
    assert_eq!(allowed(&served.http("GET", CARD, &stranger, "").await), None);
}

#[tokio::test]
async fn b80_a_star_lets_all_pages_in_and_no_page_approves() {
    let served = served(&["*"]).await;
    let page = [("origin", "https://any.example"), ("access-control-request-method", "POST")];
    assert_eq!(allowed(&served.http("GET", CARD, &page, "").await), Some("*"));
    assert_eq!(allowed(&served.http("OPTIONS", "/a2a/jsonrpc", &page, "").await), Some("*"));
    for (verb, path) in [("OPTIONS", "/approve/x"), ("POST", "/approve/x"), ("GET", "/approvals")] {
        assert_eq!(allowed(&served.http(verb, path, &page, "").await), None, "{verb} {path}");
    }
}

#[tokio::test]
async fn w13_without_the_flag_no_answer_speaks_of_origins() {
    let served = served(&[]).await;
    let page = [("origin", PAGE), ("access-control-request-method", "POST"), ("authorization", "Bearer t")];
    for (verb, path, status) in [("OPTIONS", "/a2a/jsonrpc", 405), ("GET", CARD, 200), ("GET", "/a2a/rest/tasks", 400)]
    {
        let answer = served.http(verb, path, &page, "").await;
        assert_eq!(answer.status, status, "{verb} {path}");
        let spoken = answer.headers.keys().filter(|name| name.as_str().starts_with("access-control"));
        assert_eq!(spoken.count(), 0);
    }
}
