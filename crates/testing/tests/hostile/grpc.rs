//! Over HTTP/2, where gRPC is.

use std::time::Duration;

use serde_json::json;
use testing::{Binding, Served, send, serve};

use crate::wire::Wire;
use crate::{alive, echo, impatient, until_alive};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap()
}

/// A message behind the length that it is said to have.
fn framed(flag: u8, length: u32, message: &[u8]) -> Vec<u8> {
    [&[flag], length.to_be_bytes().as_slice(), message].concat()
}

/// What the body of a call gets: the HTTP status, the status of gRPC and its message, with nothing before it.
async fn status(client: &reqwest::Client, served: &Served, body: impl Into<reqwest::Body>) -> (u16, String, String) {
    let url = format!("http://{}/lf.a2a.v1.A2AService/SendMessage", served.grpc_address);
    let call = client.post(url).header("content-type", "application/grpc").header("te", "trailers");
    let answer = call.header("a2a-version", "1.0").body(body).send().await.unwrap();
    let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    (
        answer.status().as_u16(),
        header("grpc-status").unwrap_or_default(),
        header("grpc-message").unwrap_or_default().replace("%20", " "),
    )
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_the_connection_goes_on() {
    let served = serve(echo(), |_| {}).await;
    let before = alive(&served).await;
    let client = client();
    // A group in a group in a group, which a reader has to skip: field 15 is none of the message's.
    let groups = [vec![0x7b; 50_000], vec![0x7c; 50_000]].concat();
    // Message in message in message, of the same field.
    let deep = (0..3000).fold(Vec::new(), |inner: Vec<u8>, _| {
        let mut length = Vec::new();
        let mut left = inner.len();
        while left >= 0x80 {
            length.push(left as u8 | 0x80);
            left >>= 7;
        }
        length.push(left as u8);
        [&[0x12], length.as_slice(), inner.as_slice()].concat()
    });
    let huge = u32::MAX - 1;
    for (what, body, status_and_words) in [
        ("garbage", framed(0, 3, b"\xff\xff\xff"), ("3", "Invalid JSON payload")),
        ("a length that is longer than the message", framed(0, 3, b"\x12\x7f\x00"), ("3", "Invalid JSON payload")),
        ("text that is not UTF-8", framed(0, 4, b"\x0a\x02\xc0\xaf"), ("3", "Invalid JSON payload")),
        ("groups without an end", framed(0, 100_000, &groups), ("3", "Invalid JSON payload")),
        ("messages in messages", framed(0, deep.len() as u32, &deep), ("3", "Invalid JSON payload")),
        ("a frame that breaks off", framed(0, 100, b"\x0a"), ("3", "Invalid JSON payload")),
        ("half a frame's head", b"\0\0".to_vec(), ("3", "Invalid JSON payload")),
        ("a flag that is none", framed(7, 0, b""), ("3", "Invalid JSON payload")),
        ("compressed, as nobody said", framed(1, 0, b""), ("3", "Invalid JSON payload")),
        ("a frame of four gigabytes", framed(0, huge, b"\x0a"), ("8", "The message is larger than 10485760 bytes")),
        ("a frame over the limit", framed(0, 10_485_761, b""), ("8", "The message is larger than 10485760 bytes")),
        ("an empty message", framed(0, 0, b""), ("3", "Invalid parameters")),
        ("no message", Vec::new(), ("3", "Invalid parameters")),
    ] {
        let (http, status, words) = status(&client, &served, body).await;
        assert_eq!((http, (&*status, &*words)), (200, status_and_words), "{what}");
    }
    let fine = served.call(Binding::Grpc, "SendMessage", send("x")).await;
    assert_eq!(fine.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let tasks = served.call(Binding::Grpc, "ListTasks", json!({})).await;
    assert_eq!(tasks.result()["totalSize"], 1, "nothing of what was refused");
    drop(client);
    // What the test's own clients keep beside it.
    until_alive(before + 8).await;
}

#[tokio::test]
async fn a_call_whose_message_never_comes_is_ended() {
    let served = serve(echo(), impatient).await;
    let client = client();
    for begun in [&b""[..], b"\0", &framed(0, 100, b"\x0a")] {
        let never = futures_util::stream::StreamExt::chain(
            futures_util::stream::iter([Ok::<_, std::io::Error>(begun.to_vec())]),
            futures_util::stream::pending(),
        );
        let (http, status, words) = status(&client, &served, reqwest::Body::wrap_stream(never)).await;
        assert_eq!((http, &*status, &*words), (200, "4", "The message did not arrive in time"));
    }
    assert_eq!(status(&client, &served, framed(0, 0, b"")).await.1, "3", "the connection goes on");
}

#[tokio::test]
async fn who_does_not_say_what_it_speaks_or_falls_silent_is_not_waited_for() {
    let served = serve(echo(), impatient).await;
    let before = alive(&served).await;
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    // The head of a call, without an end: HEADERS that promise CONTINUATION, and no more.
    let half_a_head = b"\0\0\x01\x01\0\0\0\0\x01\x83";
    for begun in [
        b"".to_vec(),
        PREFACE[..1].to_vec(),
        PREFACE[..23].to_vec(),
        PREFACE.to_vec(),
        [PREFACE, &settings[..5]].concat(),
        [PREFACE, settings].concat(),
        [PREFACE, settings, half_a_head].concat(),
    ] {
        Wire::at(&served.grpc_address).await.send(&begun).await.closed().await;
    }
    until_alive(before).await;
    // Whoever is something else is closed at once, not in time.
    let patient = serve(echo(), |setup| setup.limits.arrival = Duration::from_secs(3600)).await;
    for begun in ["GET", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "PRI * HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}"] {
        Wire::at(&patient.grpc_address).await.send(begun.as_bytes()).await.closed().await;
    }
    // Half of it and then the end.
    Wire::at(&patient.grpc_address).await.send(&PREFACE[..10]).await.end().await.closed().await;
    // A preface in pieces is one.
    let mut slow = Wire::at(&served.grpc_address).await;
    for piece in [&PREFACE[..7], &PREFACE[7..20], &PREFACE[20..], settings] {
        slow.send(piece).await;
        tokio::task::yield_now().await;
    }
    assert!(slow.read(9).await.starts_with(&[0, 0]), "its settings");
    let fine = served.call(Binding::Grpc, "SendMessage", send("x")).await;
    assert_eq!(fine.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused_and_nobody_else_notices() {
    let served = serve(echo(), impatient).await;
    let before = alive(&served).await;
    let client = client();
    let url = format!("http://{}/lf.a2a.v1.A2AService/GetTask", served.grpc_address);
    for (count, size) in [(1, 20_000), (400, 100), (1, 1 << 20)] {
        let mut call = client.post(&url).header("content-type", "application/grpc");
        for number in 0..count {
            call = call.header(format!("x-{number}"), "a".repeat(size));
        }
        let refused = call.send().await;
        assert!(refused.is_err() || refused.is_ok_and(|answer| answer.status() == 431), "{count} of {size} bytes");
    }
    // Pieces of one head without an end, as fast as they are taken.
    let mut flood = Wire::at(&served.grpc_address).await;
    flood.send(PREFACE).await.send(b"\0\0\0\x04\0\0\0\0\0").await.send(b"\0\0\x01\x01\0\0\0\0\x01\x83").await;
    let continuation = [b"\0\x40\0\x09\0\0\0\0\x01".as_slice(), &[0x82; 1 << 14]].concat();
    for _ in 0..100 {
        flood.send(&continuation).await;
    }
    flood.closed().await;
    // Calls that are taken back at once, which cost a server more than their client.
    let mut resets = Wire::at(&served.grpc_address).await;
    resets.send(PREFACE).await.send(b"\0\0\0\x04\0\0\0\0\0").await;
    let many: Vec<u8> = (0..5000_u32)
        .flat_map(|number| {
            let stream = (2 * number + 1).to_be_bytes();
            let head = [&[0, 0, 3, 1, 4], stream.as_slice(), &[0x83, 0x86, 0x84]].concat();
            [head, [&[0, 0, 4, 3, 0], stream.as_slice(), &[0, 0, 0, 8]].concat()].concat()
        })
        .collect();
    resets.send(&many).await.closed().await;
    let fine = served.call(Binding::Grpc, "SendMessage", send("x")).await;
    assert_eq!(fine.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    drop(client);
    until_alive(before + 8).await;
}
