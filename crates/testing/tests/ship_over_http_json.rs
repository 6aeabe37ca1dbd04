//! The planner's job with agents whose cards offer HTTP+JSON and nothing else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::{Arc, Mutex};

use client::live::LiveIds;
use client::{Http, Limits};
use planner::{Operator, Order, Planner};
use protocol::Dial;
use serde_json::Value;
use testing::Program;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Serves the agent's card without its other interfaces, and says where.
async fn card_of(agent: &Program) -> String {
    let read = reqwest::get(format!("{}/.well-known/agent-card.json", agent.url)).await.unwrap().text().await.unwrap();
    let mut card: Value = serde_json::from_str(&read).unwrap();
    let interfaces = card["supportedInterfaces"].as_array_mut().unwrap();
    interfaces.retain(|interface| interface["protocolBinding"] == "HTTP+JSON");
    assert_eq!(interfaces.len(), 1);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(stream.read_u8().await.unwrap());
        }
        let card = card.to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", card.len());
        stream.write_all(format!("{head}Connection: close\r\n\r\n{card}").as_bytes()).await.unwrap();
    });
    url
}

#[tokio::test]
async fn a_build_is_shipped_with_agents_that_serve_http_json_only() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let written = log.clone();
    let say = Arc::new(move |line: &str| written.lock().unwrap().push(line.to_owned()));
    let http = Http::new(Dial::default(), Limits::default(), None);
    let mut planner = Planner::new(http, Arc::new(LiveIds), say, Operator::Auto);
    let mut agents = Vec::new();
    for name in ["test-runner", "code-reviewer", "deployer"] {
        let agent = Program::start_with(name, &["--store", "memory"]);
        let token = |asking: &str| (asking == "deployer").then(|| "dpl_test_7c1e4b".to_owned());
        planner.meet(&card_of(&agent).await, token).await.unwrap();
        agents.push(agent);
    }
    let ended = planner.ship(&Order::default()).await;
    let log = log.lock().unwrap().join("\n");
    assert!(ended.unwrap().is_live(), "{log}");
    assert_eq!(log.matches("; HTTP+JSON at http://localhost:").count(), 3, "{log}");
    assert!(log.ends_with("\n  the stream ends at TASK_STATE_COMPLETED\ndeploy: TASK_STATE_COMPLETED"), "{log}");
}
