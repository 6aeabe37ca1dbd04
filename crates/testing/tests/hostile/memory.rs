//! A process that is sent all of it, again and again.

use serde_json::Value;
use testing::{Program, hammer, skip};

use crate::wire::{Wire, head, request};

/// How many files and connections a process has open.
fn open(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// One of everything. Each is refused, or not even begun.
async fn round(json: &str, grpc: &str) {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"params":{}{}}}"#, "[".repeat(3000), "]".repeat(3000));
    let (rpc, rest) = ("/a2a/jsonrpc", "/a2a/rest/message:send");
    let mut wire = Wire::at(json).await;
    for path in [rpc, rest] {
        for body in [deep.as_bytes(), b"{\"\xff\"}", b"{", br#"{"message":{"parts":[{"raw":"@"},{}]}}"#] {
            let refused = wire.send(&request(path, body)).await.answer().await.unwrap();
            assert!(refused.code() != 0, "{}", refused.body);
        }
    }
    for path in [rpc, rest] {
        let chunked = head(path, &[("Transfer-Encoding", "chunked")]);
        let large = [chunked.as_bytes(), b"20000\r\n", &[b' '; 0x2_0000], b"\r\n"].concat();
        assert_eq!(Wire::at(json).await.send(&large).await.answer().await.unwrap().status, 413);
        let cut = [chunked.as_bytes(), b"20000\r\n", &[b' '; 0x1_0000]].concat();
        Wire::at(json).await.send(&cut).await.end().await.closed().await;
    }
    let one = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(1 << 19));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(2000));
    for bomb in [one, many] {
        assert_eq!(Wire::at(json).await.send(bomb.as_bytes()).await.answer().await.unwrap().status, 431);
    }
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    Wire::at(grpc).await.send(&preface[..20]).await.end().await.closed().await;
    let garbage = [preface.as_slice(), b"\0\0\0\x04\0\0\0\0\0", &[0xff; 1 << 16]].concat();
    Wire::at(grpc).await.send(&garbage).await.closed().await;
}

#[tokio::test]
async fn memory_stays_flat_and_no_connection_is_left_over_two_hundred_rounds_of_all_of_it() {
    let agent =
        Program::start_with("test-runner", &["--store", "memory", "--max-body", "100000", "--grpc", "127.0.0.1:0"]);
    let process = agent.child.id();
    let Some(_) = hammer::resident(process) else { return skip("there is no /proc") };
    let json = agent.url.replace("http://localhost", "127.0.0.1");
    let mut wire = Wire::at(&json).await;
    wire.send(b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
    let card: Value = wire.answer().await.unwrap().body;
    let grpc = card["supportedInterfaces"][2]["url"].as_str().unwrap();
    drop(wire);
    for _ in 0..100 {
        round(&json, grpc).await;
    }
    let (memory, files) = (hammer::resident(process).unwrap(), open(process));
    for _ in 0..200 {
        round(&json, grpc).await;
    }
    let grown = hammer::resident(process).unwrap().saturating_sub(memory);
    assert!(grown < 2 << 20, "{grown} bytes more than {memory}");
    let since = std::time::Instant::now();
    while open(process) > files {
        assert!(since.elapsed().as_secs() < 10, "{} files, not {files}", open(process));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
