//! One interface of one agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::call::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, SendMessageRequest, SubscribeToTaskRequest,
};
use protocol::error::RemoteError;
use protocol::rpc::{self, Id};
use protocol::{AgentCard, Call, Message, Method, Task, TaskId, media};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::choose::Binding;
use crate::error::ClientError;
use crate::events::{Events, http_error};
use crate::http::{Answer, Http, Opened};

/// What came back on a message: the three shapes, in the order in which they are to be looked for.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The agent refused.
    Error(RemoteError),
    /// The whole answer.
    Message(Arc<Message>),
    /// A task, in `task` or bare.
    Task(Arc<Task>),
}

/// What a request carries beside the method and its params.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The `A2A-Version` header.
    pub version: bool,
    /// The `Authorization` header, if the connection has a token.
    pub token: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { version: true, token: true }
    }
}

/// Calls one interface. JSON-RPC ids count from 1.
#[derive(Debug)]
pub struct Connection {
    http: Http,
    url: String,
    binding: Binding,
    token: Option<String>,
    calls: Arc<AtomicU64>,
}

impl Connection {
    /// A connection to an interface's URL.
    pub fn new(http: Http, url: impl Into<String>, binding: Binding, token: Option<String>) -> Self {
        Self::sharing(http, url, binding, token, Arc::default())
    }

    /// A connection that counts its JSON-RPC ids together with others.
    pub fn sharing(
        http: Http,
        url: impl Into<String>,
        binding: Binding,
        token: Option<String>,
        calls: Arc<AtomicU64>,
    ) -> Self {
        let url = url.into().trim_end_matches('/').to_owned();
        Self { http, url, binding, token, calls }
    }

    /// The interface's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it makes its exchanges with.
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// Makes a call and waits for the head of its answer.
    pub async fn open(&self, title: &str, call: &Call) -> Result<Opened, ClientError> {
        match self.binding {
            Binding::JsonRpc => {
                let method = call.method();
                self.open_rpc(title, method.name(), call, method.streams(), Wanted::default()).await
            }
            Binding::HttpJson => self.open_http(title, call).await,
        }
    }

    /// Makes a JSON-RPC call of any name with any params.
    pub async fn open_rpc(
        &self,
        title: &str,
        method: &str,
        params: &impl serde::Serialize,
        streams: bool,
        wanted: Wanted,
    ) -> Result<Opened, ClientError> {
        let id = Id::from(self.calls.fetch_add(1, Ordering::Relaxed) + 1);
        let body = rpc::request(&id, method, params).map_err(|cause| ClientError::Url(cause.to_string()))?;
        let mut headers = vec![("Content-Type", media::JSON.to_owned())];
        if wanted.version {
            headers.push(("A2A-Version", media::VERSION.to_owned()));
        }
        if let Some(token) = self.token.as_ref().filter(|_| wanted.token) {
            headers.push(("Authorization", format!("Bearer {token}")));
        }
        if streams {
            headers.push(("Accept", media::EVENT_STREAM.to_owned()));
        }
        self.http.open(title, "POST", &self.url, &headers, Some(body)).await
    }

    async fn open_http(&self, title: &str, call: &Call) -> Result<Opened, ClientError> {
        let (verb, path, body) = http_request(call);
        let opened = self.open_path(title, verb, &path, body.as_ref(), Wanted::default(), call.method().streams());
        let opened = opened.await?;
        // The specification's own sources disagree on this verb (conflict D1).
        if opened.status == 405 && call.method() == Method::SubscribeToTask {
            return self.open_path(title, "GET", &path, None::<&Value>, Wanted::default(), true).await;
        }
        Ok(opened)
    }

    /// Makes an HTTP+JSON request to a path below the interface's URL.
    pub async fn open_path(
        &self,
        title: &str,
        verb: &str,
        path: &str,
        body: Option<&impl serde::Serialize>,
        wanted: Wanted,
        streams: bool,
    ) -> Result<Opened, ClientError> {
        let mut headers = Vec::new();
        if wanted.version {
            headers.push(("A2A-Version", media::VERSION.to_owned()));
        }
        if let Some(token) = self.token.as_ref().filter(|_| wanted.token) {
            headers.push(("Authorization", format!("Bearer {token}")));
        }
        if body.is_some() {
            headers.push(("Content-Type", media::A2A_JSON.to_owned()));
        }
        if streams {
            headers.push(("Accept", media::EVENT_STREAM.to_owned()));
        }
        let url = format!("{}{path}", self.url);
        let body = body.map(serde_json::to_vec).transpose().map_err(|cause| ClientError::Url(cause.to_string()))?;
        self.http.open(title, verb, &url, &headers, body).await
    }

    /// Sends a message.
    pub async fn send(&self, title: &str, request: SendMessageRequest) -> Result<Reply, ClientError> {
        let answer = self.open(title, &Call::SendMessage(request)).await?.whole().await?;
        match self.decode::<Box<RawValue>>(&answer) {
            Ok(result) => reply(&result).ok_or_else(|| answer.not_a2a("a message or a task")),
            Err(ClientError::Remote(error)) => Ok(Reply::Error(error)),
            Err(error) => Err(error),
        }
    }

    /// Sends a message and follows what happens.
    pub async fn stream(&self, title: &str, request: SendMessageRequest) -> Result<Events, ClientError> {
        self.events(title, &Call::SendStreamingMessage(request)).await
    }

    /// Follows a task.
    pub async fn subscribe(&self, title: &str, id: &TaskId) -> Result<Events, ClientError> {
        self.events(title, &Call::SubscribeToTask(SubscribeToTaskRequest { tenant: None, id: id.clone() })).await
    }

    /// Makes a call whose answer is a stream. An answer that is none is the error it holds (specification 9.4.6).
    pub async fn events(&self, title: &str, call: &Call) -> Result<Events, ClientError> {
        let opened = self.open(title, call).await?;
        self.follow(opened).await
    }

    /// Takes an answer as a stream.
    pub async fn follow(&self, opened: Opened) -> Result<Events, ClientError> {
        if opened.is_event_stream() {
            return Ok(Events::new(opened, self.binding));
        }
        let answer = opened.whole().await?;
        self.decode::<IgnoredAny>(&answer)?;
        Err(answer.not_a2a("a stream of events"))
    }

    /// Reads a task.
    pub async fn get(&self, title: &str, id: &TaskId, history_length: Option<i32>) -> Result<Arc<Task>, ClientError> {
        self.call(title, &Call::GetTask(GetTaskRequest { tenant: None, id: id.clone(), history_length })).await
    }

    /// Reads one page of tasks.
    pub async fn list(&self, title: &str, request: ListTasksRequest) -> Result<ListTasksResponse, ClientError> {
        self.call(title, &Call::ListTasks(request)).await
    }

    /// Ends a task.
    pub async fn cancel(&self, title: &str, id: &TaskId) -> Result<Arc<Task>, ClientError> {
        let request = CancelTaskRequest { tenant: None, id: id.clone(), metadata: None };
        self.call(title, &Call::CancelTask(request)).await
    }

    /// Reads the card that authenticated callers see.
    pub async fn extended_card(&self, title: &str) -> Result<AgentCard, ClientError> {
        let request = protocol::call::GetExtendedAgentCardRequest { tenant: None };
        self.call(title, &Call::GetExtendedAgentCard(request)).await
    }

    /// Makes a call whose answer is one result.
    pub async fn call<T: DeserializeOwned>(&self, title: &str, call: &Call) -> Result<T, ClientError> {
        let answer = self.open(title, call).await?.whole().await?;
        self.decode(&answer)
    }

    /// Reads the result of an answer. An error of the protocol is [`ClientError::Remote`].
    pub fn decode<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, ClientError> {
        match self.binding {
            Binding::JsonRpc => {
                match rpc::answer::<&RawValue>(&answer.body) {
                    Ok(rpc::Answer::Error(error)) => Err(error.into()),
                    Ok(rpc::Answer::Result(result)) => {
                        serde_json::from_str(result.get()).map_err(|cause| answer.not_a2a(&cause.to_string()))
                    }
                    Err(_) => Err(http_error(&answer.body)
                        .map_or_else(|| answer.not_a2a("a JSON-RPC answer"), ClientError::Remote)),
                }
            }
            Binding::HttpJson => {
                let expected = || answer.not_a2a("an HTTP+JSON answer");
                if (200..300).contains(&answer.status) {
                    let body = if answer.body.is_empty() { b"{}".as_slice() } else { &answer.body };
                    serde_json::from_slice(body).map_err(|_| expected())
                } else {
                    Err(http_error(&answer.body).map_or_else(expected, ClientError::Remote))
                }
            }
        }
    }
}

/// The shape of a result: `message` before `task` before the bare task.
fn reply(result: &RawValue) -> Option<Reply> {
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(borrow, default)]
        message: Option<&'a RawValue>,
        #[serde(borrow, default)]
        task: Option<&'a RawValue>,
    }
    fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<Arc<T>> {
        serde_json::from_str(raw.get()).ok().map(Arc::new)
    }
    let shape: Shape<'_> = serde_json::from_str(result.get()).ok()?;
    match (shape.message, shape.task) {
        (Some(message), _) => read(message).map(Reply::Message),
        (None, Some(task)) => read(task).map(Reply::Task),
        (None, None) => read(result).map(Reply::Task),
    }
}

/// Verb, path and body of a call over HTTP+JSON (specification 11.3).
fn http_request(call: &Call) -> (&'static str, String, Option<Value>) {
    let body = serde_json::to_value(call).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(escaped).unwrap_or_default();
    let task = || format!("/tasks/{}", text("id"));
    let configs = || format!("/tasks/{}/pushNotificationConfigs", text("taskId"));
    let query = |without: &[&str]| {
        let members = body.as_object().into_iter().flatten();
        let pairs: Vec<String> = members
            .filter(|(name, _)| !without.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}={}", escaped(value.as_str().unwrap_or(&value.to_string()))))
            .collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    };
    match call.method() {
        Method::SendMessage => ("POST", "/message:send".to_owned(), Some(body)),
        Method::SendStreamingMessage => ("POST", "/message:stream".to_owned(), Some(body)),
        Method::GetTask => ("GET", format!("{}{}", task(), query(&["id"])), None),
        Method::ListTasks => ("GET", format!("/tasks{}", query(&[])), None),
        Method::CancelTask => ("POST", format!("{}:cancel", task()), Some(Value::Object(serde_json::Map::new()))),
        Method::SubscribeToTask => ("POST", format!("{}:subscribe", task()), None),
        Method::CreateTaskPushNotificationConfig => ("POST", configs(), Some(body)),
        Method::ListTaskPushNotificationConfigs => ("GET", configs(), None),
        Method::GetTaskPushNotificationConfig => ("GET", format!("{}/{}", configs(), text("id")), None),
        Method::DeleteTaskPushNotificationConfig => ("DELETE", format!("{}/{}", configs(), text("id")), None),
        Method::GetExtendedAgentCard => ("GET", "/extendedAgentCard".to_owned(), None),
    }
}

/// A text as one segment of a path or one value of a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
