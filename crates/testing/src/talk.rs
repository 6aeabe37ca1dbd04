//! Talks to a served agent over any binding, as raw as a foreign client would.

use std::time::Duration;

use protocol::sse;
use serde_json::{Value, json};

use crate::agent::Served;
use crate::foreign;

/// A way of calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// JSON-RPC.
    Rpc,
    /// HTTP+JSON.
    Rest,
    /// gRPC. Its messages are made of JSON and shown as JSON, so that one test fits all.
    Grpc,
}

impl Binding {
    /// Both that speak JSON.
    pub const BOTH: [Self; 2] = [Self::Rpc, Self::Rest];
    /// All three.
    pub const ALL: [Self; 3] = [Self::Rpc, Self::Rest, Self::Grpc];
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status; on gRPC always 200.
    pub status: u16,
    /// The headers; on gRPC the metadata.
    pub headers: reqwest::header::HeaderMap,
    /// The body, read as JSON; null when it is none. An error of gRPC looks as on HTTP+JSON, with its own code.
    pub body: Value,
}

impl Answer {
    /// The result, whichever binding it came over. Panics on an error.
    pub fn result(&self) -> &Value {
        assert!(self.error().is_none(), "{}", self.body);
        self.body.get("result").unwrap_or(&self.body)
    }

    /// The error, whichever binding it came over.
    pub fn error(&self) -> Option<&Value> {
        self.body.get("error")
    }

    /// Whether the caller has to show who it is.
    pub fn is_unauthenticated(&self) -> bool {
        let unauthenticated = 16;
        self.status == 401 || self.error().is_some_and(|error| error["code"] == unauthenticated)
    }

    /// The `reason` of the error's ErrorInfo.
    pub fn reason(&self) -> &str {
        let error = self.error().unwrap();
        let details = error.get("data").or_else(|| error.get("details")).unwrap();
        details[0]["reason"].as_str().unwrap()
    }

    /// The fields that the error names.
    pub fn fields(&self) -> Vec<String> {
        let error = self.error().unwrap();
        let details = error.get("data").or_else(|| error.get("details")).unwrap();
        let violations = details[0]["fieldViolations"].as_array().unwrap();
        violations.iter().map(|violation| violation["field"].as_str().unwrap().to_owned()).collect()
    }

    /// The content type.
    pub fn content_type(&self) -> &str {
        self.headers["content-type"].to_str().unwrap()
    }
}

/// A stream that is open.
pub struct Stream {
    frames: Frames,
    /// The `id:` of the last frame. gRPC has none.
    pub last_id: Option<u64>,
}

enum Frames {
    Events { response: reqwest::Response, reader: sse::Reader },
    Messages(foreign::Messages),
}

impl Stream {
    /// The next frame's result (or `{"error": …}`), or nothing at the end. Panics after ten quiet seconds.
    pub async fn next(&mut self) -> Option<Value> {
        const QUIET: Duration = Duration::from_secs(10);
        match &mut self.frames {
            Frames::Messages(messages) => {
                tokio::time::timeout(QUIET, messages.next()).await.expect("the stream says something")
            }
            Frames::Events { response, reader } => loop {
                if let Some(event) = reader.next() {
                    self.last_id = event.id.and_then(|id| id.parse().ok());
                    let frame: Value = serde_json::from_str(&event.data).unwrap();
                    return Some(frame.get("result").cloned().unwrap_or(frame));
                }
                let piece = tokio::time::timeout(QUIET, response.chunk()).await;
                match piece.expect("the stream says something").unwrap() {
                    Some(piece) => reader.push(&piece).unwrap(),
                    None => return None,
                }
            },
        }
    }

    /// The frames until the end.
    pub async fn rest(mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

/// A message with a text. Its id is fresh.
pub fn message(text: &str) -> Value {
    use protocol::Ids;
    json!({"messageId": server::live::LiveIds.next(), "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// The params of a send.
pub fn send(text: &str) -> Value {
    json!({"message": message(text)})
}

/// An HTTP client that goes through no proxy.
pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().unwrap()
}

/// Verb and path of a method over HTTP+JSON, and what is left for the body.
pub(crate) fn rest(method: &str, params: &Value) -> (reqwest::Method, String, Option<Value>) {
    use reqwest::Method;
    let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
    // What does not stand in the path.
    let left = |in_path: &[&str]| {
        let members = params.as_object().into_iter().flatten().filter(|(name, _)| !in_path.contains(&name.as_str()));
        members.map(|(name, value)| (name.clone(), value.clone())).collect::<serde_json::Map<_, _>>()
    };
    let query = |in_path: &[&str]| {
        let pairs: Vec<String> = left(&[in_path, &["tenant"]].concat())
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_str().map_or(value.to_string(), str::to_owned)))
            .collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    };
    let task = format!("/tasks/{}", text("id"));
    let configs = format!("/tasks/{}/pushNotificationConfigs", text("taskId"));
    let config = format!("{configs}/{}", text("id"));
    let (verb, path, body) = match method {
        "SendMessage" => (Method::POST, "/message:send".into(), Some(params.clone())),
        "SendStreamingMessage" => (Method::POST, "/message:stream".into(), Some(params.clone())),
        "GetTask" => (Method::GET, task + &query(&["id"]), None),
        "ListTasks" => (Method::GET, format!("/tasks{}", query(&[])), None),
        "CancelTask" => (Method::POST, format!("{task}:cancel"), Some(left(&["id"]).into())),
        "SubscribeToTask" => (Method::POST, format!("{task}:subscribe"), None),
        "CreateTaskPushNotificationConfig" => (Method::POST, configs, Some(params.clone())),
        "ListTaskPushNotificationConfigs" => (Method::GET, configs + &query(&["taskId"]), None),
        "GetTaskPushNotificationConfig" => (Method::GET, config + &query(&["taskId", "id"]), None),
        "DeleteTaskPushNotificationConfig" => (Method::DELETE, config + &query(&["taskId", "id"]), None),
        "GetExtendedAgentCard" => (Method::GET, "/extendedAgentCard".to_owned() + &query(&[]), None),
        other => panic!("no such method: {other}"),
    };
    let tenant = params["tenant"].as_str().map(|tenant| format!("/{tenant}")).unwrap_or_default();
    (verb, tenant + &path, body)
}

impl Served {
    /// A request that is not sent yet: a call over a binding with headers beside the usual ones. An empty value leaves
    /// a usual header out.
    pub fn request(
        &self,
        binding: Binding,
        method: &str,
        params: &Value,
        headers: &[(&str, &str)],
    ) -> reqwest::RequestBuilder {
        let usual = |name: &str, value: &'static str| {
            let own = headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
            own.unwrap_or(value).to_owned()
        };
        let (mut request, body) = match binding {
            Binding::Rpc => {
                let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
                let request = self.http.post(format!("{}/a2a/jsonrpc", self.url));
                (request.header("content-type", usual("content-type", "application/json")), Some(body))
            }
            Binding::Rest => {
                let (verb, path, body) = rest(method, params);
                let mut request = self.http.request(verb, format!("{}/a2a/rest{path}", self.url));
                if body.is_some() {
                    request = request.header("content-type", usual("content-type", "application/a2a+json"));
                }
                (request, body)
            }
            Binding::Grpc => panic!("gRPC has no such request"),
        };
        let version = usual("a2a-version", "1.0");
        if !version.is_empty() {
            request = request.header("a2a-version", version);
        }
        let own = headers.iter().filter(|(name, _)| !["a2a-version", "content-type"].contains(name));
        for (name, value) in own {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        request
    }

    /// Makes a call and reads the whole answer.
    pub async fn call_with(&self, binding: Binding, method: &str, params: Value, headers: &[(&str, &str)]) -> Answer {
        match binding {
            Binding::Grpc => foreign::call(self, method, &params, headers).await,
            _ => answer(self.request(binding, method, &params, headers)).await,
        }
    }

    /// Makes a call and reads the whole answer.
    pub async fn call(&self, binding: Binding, method: &str, params: Value) -> Answer {
        self.call_with(binding, method, params, &[]).await
    }

    /// Posts a body to the JSON-RPC URL as it is.
    pub async fn raw(&self, body: &str) -> Answer {
        let request = self.http.post(format!("{}/a2a/jsonrpc", self.url));
        let request = request.header("content-type", "application/json").header("a2a-version", "1.0");
        answer(request.body(body.to_owned())).await
    }

    /// Sends any bytes as the message of any method of gRPC. Panics unless that is an error.
    pub async fn raw_message(&self, path: &str, message: &[u8]) -> Answer {
        let refused = foreign::raw(self, path, message.to_vec().into()).await;
        refused.unwrap_or_else(|| panic!("{path} took it"))
    }

    /// Makes any request.
    pub async fn http(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let verb = reqwest::Method::from_bytes(verb.as_bytes()).unwrap();
        let mut request = self.http.request(verb, format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request.body(body.to_owned())).await
    }

    /// Makes a call whose answer is a stream. The other answer is given back as an error.
    pub async fn try_stream(
        &self,
        binding: Binding,
        method: &str,
        params: Value,
        headers: &[(&str, &str)],
    ) -> Result<Stream, Answer> {
        if binding == Binding::Grpc {
            let messages = foreign::stream(self, method, &params, headers).await?;
            return Ok(Stream { frames: Frames::Messages(messages), last_id: None });
        }
        let response = self.request(binding, method, &params, headers).send().await.unwrap();
        let is_stream = response.headers()["content-type"] == "text/event-stream";
        if is_stream {
            let frames = Frames::Events { response, reader: sse::Reader::default() };
            return Ok(Stream { frames, last_id: None });
        }
        Err(read(response).await)
    }

    /// Makes a call whose answer is a stream.
    pub async fn stream(&self, binding: Binding, method: &str, params: Value) -> Stream {
        match self.try_stream(binding, method, params, &[]).await {
            Ok(stream) => stream,
            Err(answer) => panic!("no stream: {}", answer.body),
        }
    }

    /// Reads a task.
    pub async fn task(&self, id: &str) -> Value {
        self.call(Binding::Rpc, "GetTask", json!({"id": id})).await.result().clone()
    }

    /// Waits until a task is in a state, looking every few milliseconds; panics after ten seconds.
    pub async fn until(&self, id: &str, state: &str) -> Value {
        for _ in 0..2000 {
            let task = self.task(id).await;
            if task["status"]["state"] == state {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("task {id} never came to {state}: {}", self.task(id).await);
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Answer {
    read(request.send().await.unwrap()).await
}

async fn read(response: reqwest::Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await.unwrap();
    Answer { status, headers, body: serde_json::from_slice(&body).unwrap_or_default() }
}
