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
use serde_json::value::{RawValue, to_raw_value};

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
    tenant: Option<String>,
    /// The value of the `A2A-Extensions` header.
    extensions: Option<String>,
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
        let url = url.into();
        Self { http, url, binding, token, tenant: None, extensions: None, calls }
    }

    /// The same connection for the tenant that the interface names: every call then names it (specification 8.3.2).
    pub fn of_tenant(self, tenant: Option<String>) -> Self {
        Self { tenant, ..self }
    }

    /// The same connection, which activates extensions in every call (specification 4.6): those with these URIs. The
    /// agent uses those that it knows.
    pub fn activating<'a>(self, uris: impl IntoIterator<Item = &'a str>) -> Self {
        let uris = uris.into_iter().collect::<Vec<_>>().join(", ");
        Self { extensions: Some(uris).filter(|uris| !uris.is_empty()), ..self }
    }

    /// The interface's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the paths of HTTP+JSON and gRPC are put behind. JSON-RPC has no paths: it goes to the URL as the card has it,
    /// and some servers answer only there.
    fn base(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// What it makes its exchanges with.
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// Makes a call and waits for the head of its answer.
    pub async fn open(&self, title: &str, call: &Call) -> Result<Opened, ClientError> {
        self.open_with(title, call, Wanted::default()).await
    }

    /// Makes a call that leaves out what is not wanted.
    pub async fn open_with(&self, title: &str, call: &Call, wanted: Wanted) -> Result<Opened, ClientError> {
        let named;
        let call = match &self.tenant {
            Some(tenant) => {
                named = call.clone().of_tenant(tenant);
                &named
            }
            None => call,
        };
        match self.binding {
            Binding::JsonRpc => {
                let method = call.method();
                self.open_rpc(title, method.name(), call, method.streams(), wanted).await
            }
            Binding::HttpJson => self.open_http(title, call, wanted).await,
            #[cfg(feature = "grpc")]
            Binding::Grpc => {
                let token = self.token.as_deref().filter(|_| wanted.token);
                let extensions = self.extensions.as_deref();
                crate::grpc::open(&self.http, self.base(), call, wanted.version, token, extensions).await
            }
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
        let body = rpc::request(&id, method, params).map_err(unwritable)?;
        let mut headers = vec![("Content-Type", media::JSON.to_owned())];
        if wanted.version {
            headers.push(("A2A-Version", media::VERSION.to_owned()));
        }
        if let Some(extensions) = &self.extensions {
            headers.push(("A2A-Extensions", extensions.clone()));
        }
        if let Some(token) = self.token.as_ref().filter(|_| wanted.token) {
            headers.push(("Authorization", format!("Bearer {token}")));
        }
        if streams {
            headers.push(("Accept", media::EVENT_STREAM.to_owned()));
        }
        let limits = &self.http.limits;
        let limit = Method::from_name(method).map_or(limits.answer, |method| limits.of(method));
        self.http.open_within(limit, title, "POST", &self.url, &headers, Some(body)).await
    }

    async fn open_http(&self, title: &str, call: &Call, wanted: Wanted) -> Result<Opened, ClientError> {
        let (verb, path, body) = http_request(call).map_err(unwritable)?;
        let opened = self.open_path(title, call.method(), verb, &path, body.as_deref(), wanted).await?;
        // The specification's own sources disagree on this verb (conflict D1).
        if opened.status == 405 && call.method() == Method::SubscribeToTask {
            opened.whole().await?;
            return self.open_path(title, call.method(), "GET", &path, None, wanted).await;
        }
        Ok(opened)
    }

    /// Makes an HTTP+JSON request to a path below the interface's URL.
    async fn open_path(
        &self,
        title: &str,
        method: Method,
        verb: &str,
        path: &str,
        body: Option<&RawValue>,
        wanted: Wanted,
    ) -> Result<Opened, ClientError> {
        let mut headers = Vec::new();
        if wanted.version {
            headers.push(("A2A-Version", media::VERSION.to_owned()));
        }
        if let Some(extensions) = &self.extensions {
            headers.push(("A2A-Extensions", extensions.clone()));
        }
        if let Some(token) = self.token.as_ref().filter(|_| wanted.token) {
            headers.push(("Authorization", format!("Bearer {token}")));
        }
        if body.is_some() {
            headers.push(("Content-Type", media::A2A_JSON.to_owned()));
        }
        if method.streams() {
            headers.push(("Accept", media::EVENT_STREAM.to_owned()));
        }
        let url = format!("{}{path}", self.base());
        let body = body.map(|body| body.get().as_bytes().to_vec());
        self.http.open_within(self.http.limits.of(method), title, verb, &url, &headers, body).await
    }

    /// Sends a message.
    pub async fn send(&self, title: &str, request: SendMessageRequest) -> Result<Reply, ClientError> {
        let sent = async {
            let answer = self.open(title, &Call::SendMessage(request)).await?.whole().await?;
            let result = self.decode::<Box<RawValue>>(&answer)?;
            reply(&result).map_err(|cause| answer.not_a2a(&format!("a message or a task ({cause})")))
        };
        match sent.await {
            Err(ClientError::Remote(error)) => Ok(Reply::Error(error)),
            sent => sent,
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
                    Ok(rpc::Answer::Result(result)) => serde_json::from_str(result.get())
                        .map_err(|cause| answer.not_a2a(&format!("another result ({cause})"))),
                    Err(_) => Err(http_error(&answer.body)
                        .map_or_else(|| answer.not_a2a("a JSON-RPC answer"), ClientError::Remote)),
                }
            }
            #[cfg(feature = "grpc")]
            Binding::Grpc => serde_json::from_slice(&answer.body)
                .map_err(|cause| answer.not_a2a(&format!("another answer ({cause})"))),
            Binding::HttpJson => {
                if (200..300).contains(&answer.status) {
                    let body = if answer.body.is_empty() { b"{}".as_slice() } else { &answer.body };
                    serde_json::from_slice(body)
                        .map_err(|cause| answer.not_a2a(&format!("an HTTP+JSON answer ({cause})")))
                } else {
                    let expected = || answer.not_a2a("an HTTP+JSON answer");
                    Err(http_error(&answer.body).map_or_else(expected, ClientError::Remote))
                }
            }
        }
    }
}

fn unwritable(cause: serde_json::Error) -> ClientError {
    ClientError::Request(cause.to_string())
}

/// The shape of a result: `message` before `task` before the bare task.
fn reply(result: &RawValue) -> Result<Reply, serde_json::Error> {
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(borrow, default)]
        message: Option<&'a RawValue>,
        #[serde(borrow, default)]
        task: Option<&'a RawValue>,
    }
    fn read<T: DeserializeOwned>(raw: &RawValue) -> Result<Arc<T>, serde_json::Error> {
        serde_json::from_str(raw.get()).map(Arc::new)
    }
    let shape: Shape<'_> = serde_json::from_str(result.get())?;
    match (shape.message, shape.task) {
        (Some(message), _) => read(message).map(Reply::Message),
        (None, Some(task)) => read(task).map(Reply::Task),
        (None, None) => read(result).map(Reply::Task),
    }
}

/// Verb, path and body of a call over HTTP+JSON (specification 11.3). Bodies are written straight from the call, so that
/// the caller's data keeps its digits.
fn http_request(call: &Call) -> Result<(&'static str, String, Option<Box<RawValue>>), serde_json::Error> {
    #[derive(serde::Serialize)]
    struct Cancel<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: &'a Option<protocol::Object>,
    }
    let task = |id: &TaskId| format!("/tasks/{}", escaped(id.as_str()));
    let configs = |id: &TaskId| format!("{}/pushNotificationConfigs", task(id));
    let (verb, path, body) = match call {
        Call::SendMessage(_) => ("POST", "/message:send".to_owned(), Some(to_raw_value(call)?)),
        Call::SendStreamingMessage(_) => ("POST", "/message:stream".to_owned(), Some(to_raw_value(call)?)),
        Call::GetTask(request) => ("GET", format!("{}{}", task(&request.id), query(call, &["id"])?), None),
        Call::ListTasks(_) => ("GET", format!("/tasks{}", query(call, &[])?), None),
        Call::CancelTask(CancelTaskRequest { id, metadata, .. }) => {
            ("POST", format!("{}:cancel", task(id)), Some(to_raw_value(&Cancel { metadata })?))
        }
        Call::SubscribeToTask(request) => ("POST", format!("{}:subscribe", task(&request.id)), None),
        Call::CreateTaskPushNotificationConfig(config) => {
            let id = config.task_id.as_ref().map(configs).unwrap_or_default();
            ("POST", id, Some(to_raw_value(call)?))
        }
        Call::ListTaskPushNotificationConfigs(request) => {
            ("GET", format!("{}{}", configs(&request.task_id), query(call, &["taskId"])?), None)
        }
        Call::GetTaskPushNotificationConfig(request) => {
            ("GET", format!("{}/{}", configs(&request.task_id), escaped(request.id.as_str())), None)
        }
        Call::DeleteTaskPushNotificationConfig(request) => {
            ("DELETE", format!("{}/{}", configs(&request.task_id), escaped(request.id.as_str())), None)
        }
        Call::GetExtendedAgentCard(_) => ("GET", "/extendedAgentCard".to_owned(), None),
    };
    let tenant = call.tenant().map(|tenant| format!("/{}", escaped(tenant))).unwrap_or_default();
    Ok((verb, format!("{tenant}{path}"), body))
}

/// The members of a request as a query, without those that stand in the path.
fn query(call: &Call, in_path: &[&str]) -> Result<String, serde_json::Error> {
    let members = serde_json::to_value(call)?;
    let members = members.as_object().into_iter().flatten();
    let pairs = members.filter(|(name, _)| *name != "tenant" && !in_path.contains(&name.as_str()));
    let pairs = pairs.map(|(name, value)| match value {
        Value::String(text) => format!("{name}={}", escaped(text)),
        other => format!("{name}={}", escaped(&other.to_string())),
    });
    let query = pairs.collect::<Vec<_>>().join("&");
    Ok(if query.is_empty() { query } else { format!("?{query}") })
}

/// A text as one segment of a path or one value of a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
