//! A connection of which every byte is the test's own.

use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;
use testing::Served;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Wire(TcpStream);

/// An answer of HTTP.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    /// The code of the error on either binding.
    pub fn code(&self) -> i64 {
        self.body["error"]["code"].as_i64().unwrap_or_default()
    }

    /// The fields that are named.
    pub fn fields(&self) -> Vec<&str> {
        let error = &self.body["error"];
        let details = error.get("data").or_else(|| error.get("details"));
        let violations = details.and_then(|details| details[0]["fieldViolations"].as_array());
        violations.into_iter().flatten().map(|violation| violation["field"].as_str().unwrap()).collect()
    }
}

/// The head of a request for either binding.
pub fn head(path: &str, more: &[(&str, &str)]) -> String {
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\n");
    more.iter().for_each(|(name, value)| write!(head, "{name}: {value}\r\n").unwrap());
    head + "\r\n"
}

/// A whole request.
pub fn request(path: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let head = head(path, &[("Content-Type", "application/json"), ("Content-Length", &length)]);
    [head.as_bytes(), body].concat()
}

impl Wire {
    /// To where JSON is spoken.
    pub async fn to(served: &Served) -> Self {
        Self::at(served.url.strip_prefix("http://").unwrap()).await
    }

    pub async fn at(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Sends as much of it as the other side takes.
    pub async fn send(&mut self, bytes: &[u8]) -> &mut Self {
        let _ = self.0.write_all(bytes).await;
        self
    }

    /// Says that nothing more comes.
    pub async fn end(&mut self) -> &mut Self {
        let _ = self.0.shutdown().await;
        self
    }

    /// The next answer; `None` when the connection was closed before one.
    pub async fn answer(&mut self) -> Option<Answer> {
        let read = async {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(self.0.read_u8().await.ok()?);
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).map_or("0", |rest| rest.split('\r').next().unwrap());
            let mut body = vec![0; length.parse().unwrap()];
            self.0.read_exact(&mut body).await.ok()?;
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            Some(Answer { status, body: serde_json::from_slice(&body).unwrap_or_default() })
        };
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("an answer comes, or the end")
    }

    /// So many bytes.
    pub async fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = self.0.read_exact(&mut bytes);
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("something comes").unwrap();
        bytes
    }

    /// Waits until the other side has closed.
    pub async fn closed(&mut self) {
        let mut rest = Vec::new();
        let read = self.0.read_to_end(&mut rest);
        let _ = tokio::time::timeout(Duration::from_secs(20), read).await.expect("the connection is closed");
    }
}
