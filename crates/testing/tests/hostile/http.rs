//! Over HTTP/1.1, where JSON-RPC and HTTP+JSON are.

use serde_json::json;
use testing::{Binding, message, send, serve};

use crate::wire::{Wire, head, request};
use crate::{alive, echo, impatient, until_alive};

const RPC: &str = "/a2a/jsonrpc";
const REST: &str = "/a2a/rest/message:send";

/// The request of a send whose message has these members more.
fn params(more: &str) -> String {
    let own = message("x");
    format!(r#"{{"message":{{"messageId":{},"role":"ROLE_USER",{more}}}}}"#, own["messageId"])
}

/// The same on both bindings.
fn bodies(params: &[u8]) -> [(&'static str, Vec<u8>); 2] {
    let rpc = [br#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":"#, params, b"}"].concat();
    [(RPC, rpc), (REST, params.to_vec())]
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_the_connection_goes_on() {
    let served = serve(echo(), |_| {}).await;
    let (deep, open) = (format!("{}{}", "[".repeat(3000), "]".repeat(3000)), "{\"a\":".repeat(3000));
    let with = |parts: &str| params(&format!(r#""parts":{parts}"#));
    let cut = with(r#"[{"text":"x"}]"#);
    let text = |bytes: &[u8]| {
        let before: &[u8] = br#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":""#;
        [before, bytes, b"\"}]}}"].concat()
    };
    let none: &[&str] = &[];
    // What is sent, the codes of JSON-RPC and HTTP+JSON, and the fields that are named.
    let table: Vec<(Vec<u8>, [i64; 2], &[&str])> = vec![
        (with(&format!(r#"[{{"data":{deep}}}]"#)).into(), [-32600, 400], none),
        (params(&format!(r#""parts":[{{"text":"x"}}],"metadata":{{"a":{deep}}}"#)).into(), [-32600, 400], none),
        (params(&format!(r#""parts":[{{"text":"x"}}],"unknown":{deep}"#)).into(), [-32600, 400], none),
        (with(&format!(r#"[{{"data":{open}"#)).into(), [-32700, 400], none),
        (cut.as_bytes()[..cut.len() - 9].into(), [-32700, 400], none),
        (text(b"\xff\xfe"), [-32700, 400], none),
        (text(b"\xed\xa0\x80"), [-32700, 400], none),
        (text(b"\xc0\xaf"), [-32700, 400], none),
        (text(b"\0"), [-32700, 400], none),
        (text(br"\ud800"), [-32602, 400], &["message.parts[0].text"]),
        (text(br"\x"), [-32700, 400], none),
        (with(r#"[{"data":1e}]"#).into(), [-32700, 400], none),
        (with(r#"[{"data":NaN}]"#).into(), [-32700, 400], none),
        (with(r#"[{"raw":"====@"}]"#).into(), [-32602, 400], &["message.parts[0].raw"]),
        (with("[{},{},{}]").into(), [-32602, 400], &["message.parts[0]", "message.parts[1]", "message.parts[2]"]),
        (with(r#"{"0":{"text":"x"}}"#).into(), [-32602, 400], &["message.parts"]),
        (params(r#""parts":[{"text":"x"}],"role":5"#).into(), [-32602, 400], &["message.role"]),
        (with(r#"[{"text":"x","mediaType":["text/plain"]}]"#).into(), [-32602, 400], &["message.parts[0].mediaType"]),
    ];
    let before = alive(&served).await;
    let mut wire = Wire::to(&served).await;
    for (params, codes, fields) in table {
        for ((path, body), code) in bodies(&params).into_iter().zip(codes) {
            let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            let refused = wire.send(&request(path, &body)).await.answer().await.unwrap_or_else(|| panic!("{shown}"));
            let status = if path == RPC { 200 } else { 400 };
            assert_eq!((refused.status, refused.code()), (status, code), "{path} {shown}: {}", refused.body);
            assert_eq!(refused.fields(), fields, "{path} {shown}");
        }
    }
    for (path, body) in bodies(with(r#"[{"text":"x"}]"#).as_bytes()) {
        let fine = wire.send(&request(path, &body)).await.answer().await.unwrap();
        assert_eq!((fine.status, fine.code()), (200, 0), "the same connection: {}", fine.body);
    }
    drop(wire);
    until_alive(before).await;
    let tasks = served.call(Binding::Rpc, "ListTasks", json!({})).await;
    assert_eq!(tasks.result()["totalSize"], 2, "nothing of what was refused");
}

#[tokio::test]
async fn a_body_over_ten_mebibytes_is_refused_before_it_has_come_and_one_of_just_that_is_taken() {
    let served = serve(echo(), |_| {}).await;
    let limit = 10 << 20;
    let of_size = |path: &str, size: usize| {
        let index = usize::from(path == REST);
        let own = bodies(send("").to_string().as_bytes())[index].1.len();
        bodies(send(&"x".repeat(size - own)).to_string().as_bytes())[index].1.clone()
    };
    for path in [RPC, REST] {
        let fine = Wire::to(&served).await.send(&request(path, &of_size(path, limit))).await.answer().await.unwrap();
        assert_eq!((fine.status, fine.code()), (200, 0));

        let announced = head(path, &[("Content-Type", "application/json"), ("Content-Length", "10485761")]);
        let refused = Wire::to(&served).await.send(announced.as_bytes()).await.answer().await.unwrap();
        assert_eq!(refused.status, 413, "nothing of it was sent");
        assert_eq!(refused.body["error"]["message"], "The body is larger than 10485760 bytes");

        let asking = head(path, &[("Content-Length", "10485761"), ("Expect", "100-continue")]);
        let refused = Wire::to(&served).await.send(asking.as_bytes()).await.answer().await.unwrap();
        assert_eq!(refused.status, 413, "it is not asked for");

        // Of a body that does not say how large it is the limit is taken.
        let mut wire = Wire::to(&served).await;
        wire.send(head(path, &[("Transfer-Encoding", "chunked")]).as_bytes()).await;
        let chunk = [b"100000\r\n", vec![b' '; 1 << 20].as_slice(), b"\r\n"].concat();
        for _ in 0..10 {
            wire.send(&chunk).await;
        }
        assert_eq!(wire.send(b"1\r\n \r\n").await.answer().await.unwrap().status, 413);

        // And whoever sends all of it at once, as most clients do, reads why.
        let whole = request(path, &of_size(path, limit + 1));
        assert_eq!(Wire::to(&served).await.send(&whole).await.answer().await.unwrap().status, 413);
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_or_stops_is_refused_and_leaves_nothing() {
    let served = serve(echo(), impatient).await;
    let before = alive(&served).await;
    for path in [RPC, REST] {
        let chunked = head(path, &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]);
        let counted = head(path, &[("Content-Type", "application/json"), ("Content-Length", "100")]);
        for head in [&chunked, &counted] {
            let mut wire = Wire::to(&served).await;
            wire.send(head.as_bytes()).await.send(b"5\r\n{\"jso").await.end().await;
            if let Some(refused) = wire.answer().await {
                assert_eq!(refused.status, 400, "{}", refused.body);
                assert_eq!(refused.body["error"]["message"], "The body did not arrive whole");
            }
            wire.closed().await;

            let mut wire = Wire::to(&served).await;
            wire.send(head.as_bytes()).await.send(b"5\r\n{\"jso").await;
            let late = wire.answer().await.unwrap();
            assert_eq!((late.status, &late.body["error"]["message"]), (408, &json!("The body did not arrive in time")));
            wire.closed().await;

            // It goes away without a word.
            Wire::to(&served).await.send(head.as_bytes()).await.send(b"5\r\n{\"").await;
        }
        let mut wire = Wire::to(&served).await;
        let refused = wire.send(chunked.as_bytes()).await.send(b"zz\r\n{}\r\n").await.answer().await.unwrap();
        assert_eq!(refused.status, 400, "no chunk is that long");
        wire.closed().await;
    }
    until_alive(before).await;
}

#[tokio::test]
async fn a_head_that_is_none_or_too_large_or_never_ends_is_refused_and_leaves_nothing() {
    let served = serve(echo(), impatient).await;
    let before = alive(&served).await;
    let bomb = |count: usize, size: usize| {
        let headers: String = (0..count).map(|number| format!("x-{number}: {}\r\n", "a".repeat(size))).collect();
        format!("POST {RPC} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
    };
    let long_path = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(100_000));
    let two_lengths =
        format!("POST {RPC} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
    let negative = format!("POST {RPC} HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n");
    let encoded = format!("POST {RPC} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: identity, x\r\n\r\n");
    for (head, status) in [
        (bomb(5_000, 10), 431),
        (bomb(1, 2 << 20), 431),
        (bomb(90, 100_000), 431),
        (long_path, 414),
        (two_lengths, 400),
        (negative, 400),
        (encoded, 400),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 400),
        ("\u{1}\u{2}\u{3}\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nx: \u{0}\r\n\r\n".to_owned(), 400),
    ] {
        let mut wire = Wire::to(&served).await;
        let refused = wire.send(head.as_bytes()).await.answer().await;
        let shown = head[..head.len().min(80)].escape_debug().to_string();
        assert_eq!(refused.map(|refused| refused.status), Some(status), "{shown}");
        wire.closed().await;
    }
    for begun in ["", "P", "POST / HTTP/1.1\r\nHost: local"] {
        Wire::to(&served).await.send(begun.as_bytes()).await.closed().await;
    }
    until_alive(before).await;
    assert_eq!(served.call(Binding::Rest, "SendMessage", send("x")).await.status, 200);
}
