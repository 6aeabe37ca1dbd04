//! Calls and streams as the hammer makes them: typed, over both bindings, each bounded in time.

use std::time::Duration;

use protocol::error::RemoteError;
use protocol::{StreamResponse, rpc, sse};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Wrong;
use crate::talk::{Binding, client, rest};

/// How long anything may take. Whoever waits longer waits for ever.
pub const LIMIT: Duration = Duration::from_secs(20);

/// An agent as the hammer reaches it.
#[derive(Clone)]
pub struct Target {
    url: String,
    http: reqwest::Client,
}

/// An answer: what was asked for, or the agent's refusal.
pub type Answer<T> = Result<T, RemoteError>;

/// A stream that is open.
pub struct Open {
    response: reqwest::Response,
    reader: sse::Reader,
    binding: Binding,
}

/// One frame.
#[derive(Debug)]
pub struct Frame {
    /// Its number within the task.
    pub id: Option<u64>,
    /// What it says.
    pub response: StreamResponse,
}

/// What comes next on a stream.
pub enum Next {
    Frame(Frame),
    End,
    /// An error frame.
    Refused(RemoteError),
}

impl Target {
    /// The agent at a base URL.
    pub fn new(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), http: client() }
    }

    fn request(&self, binding: Binding, method: &str, params: &Value) -> reqwest::RequestBuilder {
        let request = match binding {
            Binding::Rpc => {
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
                let request = self.http.post(format!("{}/a2a/jsonrpc", self.url)).body(body);
                request.header("content-type", "application/json")
            }
            Binding::Rest => {
                let (verb, path, body) = rest(method, params);
                let request = self.http.request(verb, format!("{}/a2a/rest{path}", self.url));
                match body {
                    Some(body) => request.header("content-type", "application/a2a+json").body(body.to_string()),
                    None => request,
                }
            }
            Binding::Grpc => panic!("the hammer speaks JSON"),
        };
        request.header("a2a-version", "1.0")
    }

    /// Makes a call.
    pub async fn call<T: DeserializeOwned>(
        &self,
        binding: Binding,
        method: &str,
        params: &Value,
    ) -> Result<Answer<T>, Wrong> {
        let request = self.request(binding, method, params);
        let whole = async {
            let response = request.send().await?;
            let is_success = response.status().is_success();
            Ok::<_, reqwest::Error>((is_success, response.bytes().await?))
        };
        let answered = tokio::time::timeout(LIMIT, whole).await;
        let answered = answered.map_err(|_| format!("{method}: no answer within {LIMIT:?}"))?;
        let (is_success, body) = answered.map_err(|cause| format!("{method}: {cause:?}"))?;
        read(binding, is_success, &body).map_err(|cause| format!("{method}: {cause}").into())
    }

    /// Makes a call whose answer nobody waits for any longer than this.
    pub async fn drop_after(&self, binding: Binding, method: &str, params: &Value, patience: Duration) {
        let _ = tokio::time::timeout(patience, self.request(binding, method, params).send()).await;
    }

    /// Makes a call whose answer is a stream, unless it is refused.
    pub async fn open(
        &self,
        binding: Binding,
        method: &str,
        params: &Value,
        last_id: Option<u64>,
    ) -> Result<Answer<Open>, Wrong> {
        let mut request = self.request(binding, method, params);
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        let opened = tokio::time::timeout(LIMIT, request.send()).await;
        let opened = opened.map_err(|_| format!("{method}: no answer within {LIMIT:?}"))?;
        let response = opened.map_err(|cause| format!("{method}: {cause:?}"))?;
        if response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            return Ok(Ok(Open { response, reader: sse::Reader::default(), binding }));
        }
        let is_success = response.status().is_success();
        let body = response.bytes().await.map_err(|cause| format!("{method}: {cause:?}"))?;
        match read::<Value>(binding, is_success, &body).map_err(|cause| format!("{method}: {cause}"))? {
            Ok(plain) => Err(format!("{method}: no stream, but {plain}").into()),
            Err(refused) => Ok(Err(refused)),
        }
    }

    /// Approves a task. Whether that counted.
    pub async fn approve(&self, id: &str) -> Result<bool, Wrong> {
        let request = self.http.post(format!("{}/approve/{id}", self.url)).body("{}");
        let answered = request.timeout(LIMIT).send().await.map_err(|cause| format!("approve: {cause:?}"))?;
        match answered.status().as_u16() {
            200 => Ok(true),
            404 => Ok(false),
            status => Err(format!("approve: HTTP {status}").into()),
        }
    }
}

fn read<T: DeserializeOwned>(binding: Binding, is_success: bool, body: &[u8]) -> Result<Answer<T>, String> {
    let strange = |cause: &dyn std::fmt::Display| {
        let body: String = String::from_utf8_lossy(body).chars().take(300).collect();
        format!("{cause}: {body}")
    };
    match binding {
        Binding::Rpc => match rpc::answer(body).map_err(|cause| strange(&cause))? {
            rpc::Answer::Result(result) => Ok(Ok(result)),
            rpc::Answer::Error(error) => Ok(Err(error)),
        },
        Binding::Rest if is_success => serde_json::from_slice(body).map(Ok).map_err(|cause| strange(&cause)),
        Binding::Rest | Binding::Grpc => {
            serde_json::from_slice(body).map(|Failed { error }| Err(error)).map_err(|cause| strange(&cause))
        }
    }
}

#[derive(serde::Deserialize)]
struct Failed {
    error: RemoteError,
}

impl Open {
    /// What comes next. Comments do not count.
    pub async fn next(&mut self) -> Result<Next, Wrong> {
        let next = tokio::time::timeout(LIMIT, self.read()).await;
        next.unwrap_or_else(|_| Err(format!("a stream said nothing for {LIMIT:?}").into()))
    }

    async fn read(&mut self) -> Result<Next, Wrong> {
        loop {
            if let Some(event) = self.reader.next() {
                let response = match self.binding {
                    Binding::Rpc => match rpc::answer(event.data.as_bytes()) {
                        Ok(rpc::Answer::Result(response)) => response,
                        Ok(rpc::Answer::Error(error)) => return Ok(Next::Refused(error)),
                        Err(cause) => return Err(format!("{cause} in a frame: {}", event.data).into()),
                    },
                    Binding::Rest | Binding::Grpc => match serde_json::from_str(&event.data) {
                        Ok(response) => response,
                        Err(cause) => match serde_json::from_str(&event.data) {
                            Ok(Failed { error }) => return Ok(Next::Refused(error)),
                            Err(_) => return Err(format!("{cause} in a frame: {}", event.data).into()),
                        },
                    },
                };
                let id = event.id.as_deref().and_then(|id| id.parse().ok());
                return Ok(Next::Frame(Frame { id, response }));
            }
            match self.response.chunk().await.map_err(|cause| format!("a stream broke: {cause:?}"))? {
                Some(piece) => self.reader.push(&piece).map_err(|cause| cause.to_string())?,
                None if self.reader.is_cut() => return Err("a stream ended inside a frame".to_owned().into()),
                None => return Ok(Next::End),
            }
        }
    }
}
