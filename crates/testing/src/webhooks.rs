//! A receiver of webhooks that answers as a test wants.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// One webhook as it came.
#[derive(Debug, Clone)]
pub struct Hook {
    /// The path.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl Hook {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The state that it tells, or `artifact`.
    pub fn tells(&self) -> String {
        match self.body.pointer("/statusUpdate/status/state") {
            Some(state) => state.as_str().unwrap().trim_start_matches("TASK_STATE_").to_owned(),
            None => self.body.as_object().unwrap().keys().next().unwrap().replace("Update", ""),
        }
    }
}

/// A receiver.
pub struct Webhooks {
    /// Where it listens.
    pub url: String,
    got: Arc<Mutex<Vec<Hook>>>,
    count: watch::Receiver<usize>,
}

impl Webhooks {
    /// A receiver that answers the nth webhook, counted from 0, with a status.
    pub async fn answering(status: impl Fn(usize) -> u16 + Send + Sync + 'static) -> Self {
        Self::answering_later(move |number| std::future::ready(status(number))).await
    }

    /// A receiver that answers the nth webhook, counted from 0, with a status that it may take its time for.
    pub async fn answering_later<F, Later>(status: F) -> Self
    where
        F: Fn(usize) -> Later + Send + Sync + 'static,
        Later: Future<Output = u16> + Send,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (tell, count) = watch::channel(0);
        let got = Arc::<Mutex<Vec<Hook>>>::default();
        let (kept, status, tell) = (got.clone(), Arc::new(status), Arc::new(tell));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (kept, status, tell) = (kept.clone(), status.clone(), tell.clone());
                tokio::spawn(async move {
                    while let Some(hook) = read(&mut stream).await {
                        let number = {
                            let mut kept = kept.lock().unwrap();
                            kept.push(hook);
                            kept.len()
                        };
                        tell.send_modify(|count| *count += 1);
                        let status = status(number - 1).await;
                        let location = if (300..400).contains(&status) { "location: /elsewhere\r\n" } else { "" };
                        let answer = format!("HTTP/1.1 {status} X\r\n{location}content-length: 0\r\n\r\n");
                        let _ = stream.write_all(answer.as_bytes()).await;
                    }
                });
            }
        });
        Self { url, got, count }
    }

    /// A receiver that takes everything.
    pub async fn new() -> Self {
        Self::answering(|_| 200).await
    }

    /// Waits until so many have come; panics after ten seconds.
    pub async fn wait(&self, count: usize) -> Vec<Hook> {
        let mut counter = self.count.clone();
        let waited = tokio::time::timeout(Duration::from_secs(10), counter.wait_for(|got| *got >= count)).await;
        assert!(waited.is_ok(), "only {} webhooks came", self.got().len());
        self.got()
    }

    /// What has come.
    pub fn got(&self) -> Vec<Hook> {
        self.got.lock().unwrap().clone()
    }
}

/// One HTTP request as it came.
pub(crate) struct Request {
    /// The path.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Reads one request; nothing at the end of the connection.
pub(crate) async fn read_request(stream: &mut tokio::net::TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = head {
            let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let headers: Vec<(String, String)> = text
                .lines()
                .skip(1)
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect();
            let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse::<usize>().ok()?;
            if bytes.len() >= end + 4 + length {
                let path = text.split(' ').nth(1)?.to_owned();
                return Some(Request { path, headers, body: bytes[end + 4..end + 4 + length].to_vec() });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

async fn read(stream: &mut tokio::net::TcpStream) -> Option<Hook> {
    let Request { path, headers, body } = read_request(stream).await?;
    Some(Hook { path, headers, body: serde_json::from_slice(&body).ok()? })
}
