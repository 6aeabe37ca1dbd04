//! The eleven operations with their requests and answers (specification 3.1, 9.4).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::check::{self, Rules};
use crate::error::{Error, ErrorKind, FieldViolation};
use crate::id::{ConfigId, ContextId, TaskId};
use crate::json::Object;
use crate::message::Message;
use crate::push::TaskPushNotificationConfig;
use crate::read;
use crate::task::{Task, TaskState, TaskView};
use crate::time::Timestamp;

/// The name of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Sends a message; one answer.
    SendMessage,
    /// Sends a message; a stream of what happens.
    SendStreamingMessage,
    /// Reads one task.
    GetTask,
    /// Reads many tasks, page by page.
    ListTasks,
    /// Ends a task.
    CancelTask,
    /// Follows a task that runs.
    SubscribeToTask,
    /// Adds a webhook to a task.
    CreateTaskPushNotificationConfig,
    /// Reads one webhook of a task.
    GetTaskPushNotificationConfig,
    /// Reads all webhooks of a task.
    ListTaskPushNotificationConfigs,
    /// Takes a webhook away.
    DeleteTaskPushNotificationConfig,
    /// Reads the card that authenticated callers see.
    GetExtendedAgentCard,
}

impl Method {
    /// Every operation, with its name on the JSON-RPC and gRPC wires.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::SendMessage, "SendMessage"),
        (Self::SendStreamingMessage, "SendStreamingMessage"),
        (Self::GetTask, "GetTask"),
        (Self::ListTasks, "ListTasks"),
        (Self::CancelTask, "CancelTask"),
        (Self::SubscribeToTask, "SubscribeToTask"),
        (Self::CreateTaskPushNotificationConfig, "CreateTaskPushNotificationConfig"),
        (Self::GetTaskPushNotificationConfig, "GetTaskPushNotificationConfig"),
        (Self::ListTaskPushNotificationConfigs, "ListTaskPushNotificationConfigs"),
        (Self::DeleteTaskPushNotificationConfig, "DeleteTaskPushNotificationConfig"),
        (Self::GetExtendedAgentCard, "GetExtendedAgentCard"),
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The operation of a name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method)
    }

    /// Whether the answer is a stream.
    pub fn streams(self) -> bool {
        matches!(self, Self::SendStreamingMessage | Self::SubscribeToTask)
    }
}

/// One operation with its request, decoded.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// See [`Method::SendMessage`].
    SendMessage(SendMessageRequest),
    /// See [`Method::SendStreamingMessage`].
    SendStreamingMessage(SendMessageRequest),
    /// See [`Method::GetTask`].
    GetTask(GetTaskRequest),
    /// See [`Method::ListTasks`].
    ListTasks(ListTasksRequest),
    /// See [`Method::CancelTask`].
    CancelTask(CancelTaskRequest),
    /// See [`Method::SubscribeToTask`].
    SubscribeToTask(SubscribeToTaskRequest),
    /// See [`Method::CreateTaskPushNotificationConfig`].
    CreateTaskPushNotificationConfig(TaskPushNotificationConfig),
    /// See [`Method::GetTaskPushNotificationConfig`].
    GetTaskPushNotificationConfig(TaskPushNotificationConfigRequest),
    /// See [`Method::ListTaskPushNotificationConfigs`].
    ListTaskPushNotificationConfigs(ListTaskPushNotificationConfigsRequest),
    /// See [`Method::DeleteTaskPushNotificationConfig`].
    DeleteTaskPushNotificationConfig(TaskPushNotificationConfigRequest),
    /// See [`Method::GetExtendedAgentCard`].
    GetExtendedAgentCard(GetExtendedAgentCardRequest),
}

impl Call {
    /// Decodes the request of an operation. Absent params are an empty object. The error names every field that is
    /// wrong (DECISIONS W7).
    pub fn read(method: Method, params: Option<&RawValue>) -> Result<Self, Error> {
        Self::read_by(method, params, &check::no_rules)
    }

    /// Decodes the request of an operation for a server with rules of its own. The error names what they find too.
    pub fn read_by(method: Method, params: Option<&RawValue>, rules: &Rules<'_>) -> Result<Self, Error> {
        let text = params.map_or("{}", RawValue::get);
        let call = Self::of_json(method, text).map_err(|_| check::explain(method, text, Vec::new(), rules))?;
        let violations = call.violations(rules);
        if violations.is_empty() { Ok(call) } else { Err(check::explain(method, text, violations, rules)) }
    }

    fn of_json(method: Method, text: &str) -> Result<Self, serde_json::Error> {
        Ok(match method {
            Method::SendMessage => Self::SendMessage(serde_json::from_str(text)?),
            Method::SendStreamingMessage => Self::SendStreamingMessage(serde_json::from_str(text)?),
            Method::GetTask => Self::GetTask(serde_json::from_str(text)?),
            Method::ListTasks => Self::ListTasks(serde_json::from_str(text)?),
            Method::CancelTask => Self::CancelTask(serde_json::from_str(text)?),
            Method::SubscribeToTask => Self::SubscribeToTask(serde_json::from_str(text)?),
            Method::CreateTaskPushNotificationConfig => {
                Self::CreateTaskPushNotificationConfig(serde_json::from_str(text)?)
            }
            Method::GetTaskPushNotificationConfig => Self::GetTaskPushNotificationConfig(serde_json::from_str(text)?),
            Method::ListTaskPushNotificationConfigs => {
                Self::ListTaskPushNotificationConfigs(serde_json::from_str(text)?)
            }
            Method::DeleteTaskPushNotificationConfig => {
                Self::DeleteTaskPushNotificationConfig(serde_json::from_str(text)?)
            }
            Method::GetExtendedAgentCard => Self::GetExtendedAgentCard(serde_json::from_str(text)?),
        })
    }

    /// The tenant that the request names.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Self::SendMessage(request) | Self::SendStreamingMessage(request) => request.tenant.as_deref(),
            Self::GetTask(request) => request.tenant.as_deref(),
            Self::ListTasks(request) => request.tenant.as_deref(),
            Self::CancelTask(request) => request.tenant.as_deref(),
            Self::SubscribeToTask(request) => request.tenant.as_deref(),
            Self::CreateTaskPushNotificationConfig(request) => request.tenant.as_deref(),
            Self::GetTaskPushNotificationConfig(request) | Self::DeleteTaskPushNotificationConfig(request) => {
                request.tenant.as_deref()
            }
            Self::ListTaskPushNotificationConfigs(request) => request.tenant.as_deref(),
            Self::GetExtendedAgentCard(request) => request.tenant.as_deref(),
        }
    }

    /// The same call for a tenant. One that names a tenant already keeps it.
    pub fn of_tenant(mut self, tenant: &str) -> Self {
        let named = match &mut self {
            Self::SendMessage(request) | Self::SendStreamingMessage(request) => &mut request.tenant,
            Self::GetTask(request) => &mut request.tenant,
            Self::ListTasks(request) => &mut request.tenant,
            Self::CancelTask(request) => &mut request.tenant,
            Self::SubscribeToTask(request) => &mut request.tenant,
            Self::CreateTaskPushNotificationConfig(request) => &mut request.tenant,
            Self::GetTaskPushNotificationConfig(request) | Self::DeleteTaskPushNotificationConfig(request) => {
                &mut request.tenant
            }
            Self::ListTaskPushNotificationConfigs(request) => &mut request.tenant,
            Self::GetExtendedAgentCard(request) => &mut request.tenant,
        };
        named.get_or_insert_with(|| tenant.to_owned());
        self
    }

    /// The fields whose type is right and whose value is not, by the protocol and by a server's own rules.
    pub fn violations(&self, rules: &Rules<'_>) -> Vec<FieldViolation> {
        let mut found = check::Violations::default();
        found.ask(rules, "tenant", self.tenant().unwrap_or_default());
        match self {
            Self::SendMessage(request) | Self::SendStreamingMessage(request) => {
                found.message("message", &request.message);
                if let Some(configuration) = &request.configuration {
                    found.not_negative("configuration.historyLength", configuration.history_length);
                    if let Some(config) = &configuration.task_push_notification_config {
                        found.ask(rules, "configuration.taskPushNotificationConfig.url", &config.url);
                    }
                }
            }
            Self::GetTask(request) => {
                found.ask(rules, "id", request.id.as_str());
                found.not_negative("historyLength", request.history_length);
            }
            Self::ListTasks(request) => {
                found.within("pageSize", request.page_size, 1, 100);
                found.ask(rules, "pageToken", request.page_token.as_deref().unwrap_or_default());
                found.not_negative("historyLength", request.history_length);
            }
            Self::CancelTask(request) => found.ask(rules, "id", request.id.as_str()),
            Self::SubscribeToTask(request) => found.ask(rules, "id", request.id.as_str()),
            Self::CreateTaskPushNotificationConfig(config) => {
                found.there("taskId", config.task_id.is_some());
                found.ask(rules, "taskId", config.task_id.as_ref().map(TaskId::as_str).unwrap_or_default());
                found.ask(rules, "url", &config.url);
            }
            Self::GetTaskPushNotificationConfig(request) | Self::DeleteTaskPushNotificationConfig(request) => {
                found.ask(rules, "taskId", request.task_id.as_str());
                found.ask(rules, "id", request.id.as_str());
            }
            Self::ListTaskPushNotificationConfigs(request) => {
                found.ask(rules, "taskId", request.task_id.as_str());
                found.not_negative("pageSize", request.page_size);
                found.ask(rules, "pageToken", request.page_token.as_deref().unwrap_or_default());
            }
            Self::GetExtendedAgentCard(_) => {}
        }
        found.into()
    }

    /// The operation.
    pub fn method(&self) -> Method {
        match self {
            Self::SendMessage(_) => Method::SendMessage,
            Self::SendStreamingMessage(_) => Method::SendStreamingMessage,
            Self::GetTask(_) => Method::GetTask,
            Self::ListTasks(_) => Method::ListTasks,
            Self::CancelTask(_) => Method::CancelTask,
            Self::SubscribeToTask(_) => Method::SubscribeToTask,
            Self::CreateTaskPushNotificationConfig(_) => Method::CreateTaskPushNotificationConfig,
            Self::GetTaskPushNotificationConfig(_) => Method::GetTaskPushNotificationConfig,
            Self::ListTaskPushNotificationConfigs(_) => Method::ListTaskPushNotificationConfigs,
            Self::DeleteTaskPushNotificationConfig(_) => Method::DeleteTaskPushNotificationConfig,
            Self::GetExtendedAgentCard(_) => Method::GetExtendedAgentCard,
        }
    }
}

/// The JSON-RPC params of the call.
impl Serialize for Call {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::SendMessage(request) | Self::SendStreamingMessage(request) => {
                Serialize::serialize(request, serializer)
            }
            Self::GetTask(request) => Serialize::serialize(request, serializer),
            Self::ListTasks(request) => Serialize::serialize(request, serializer),
            Self::CancelTask(request) => Serialize::serialize(request, serializer),
            Self::SubscribeToTask(request) => Serialize::serialize(request, serializer),
            Self::CreateTaskPushNotificationConfig(request) => Serialize::serialize(request, serializer),
            Self::GetTaskPushNotificationConfig(request) | Self::DeleteTaskPushNotificationConfig(request) => {
                Serialize::serialize(request, serializer)
            }
            Self::ListTaskPushNotificationConfigs(request) => Serialize::serialize(request, serializer),
            Self::GetExtendedAgentCard(request) => Serialize::serialize(request, serializer),
        }
    }
}

/// A message with how it is to be answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct SendMessageRequest {
    /// The tenant, where the agent has any.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The message.
    pub message: Message,
    /// How to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<SendMessageConfiguration>,
    /// A key and value object about the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

impl SendMessageRequest {
    /// A request with nothing but a message.
    pub fn new(message: Message) -> Self {
        Self { tenant: None, message, configuration: None, metadata: None }
    }
}

/// How a message is to be answered (specification 3.2.2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct SendMessageConfiguration {
    /// The media types that the client takes.
    #[serde(
        deserialize_with = "read::or_default",
        skip_serializing_if = "Vec::is_empty",
        alias = "accepted_output_modes"
    )]
    pub accepted_output_modes: Vec<String>,
    /// How many messages of history the answer may hold. Absent: all. 0: none.
    #[serde(deserialize_with = "read::integer", skip_serializing_if = "Option::is_none", alias = "history_length")]
    pub history_length: Option<i32>,
    /// Answer as soon as the task is there, instead of when it has settled.
    #[serde(
        deserialize_with = "read::or_default",
        skip_serializing_if = "read::is_false",
        alias = "return_immediately"
    )]
    pub return_immediately: bool,
    /// A webhook for the task that the message makes or continues.
    #[serde(skip_serializing_if = "Option::is_none", alias = "task_push_notification_config")]
    pub task_push_notification_config: Option<TaskPushNotificationConfig>,
}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $member:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(remote = "Self", rename_all = "camelCase")]
        pub struct $name {
            /// The tenant, where the agent has any.
            #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
            pub tenant: Option<String>,
            $($(#[$field])* pub $member: $type,)*
        }
        read::object!($name);
    )*};
}

requests! {
    /// Which task to read.
    GetTaskRequest {
        /// The task.
        id: TaskId,
        /// How many messages of history the answer may hold. Absent: all. 0: none.
        #[serde(default, deserialize_with = "read::integer", skip_serializing_if = "Option::is_none", alias = "history_length")]
        history_length: Option<i32>,
    }
    /// Which tasks to read, and which page of them.
    ListTasksRequest {
        /// Only tasks of this context.
        #[serde(default, deserialize_with = "read::id", skip_serializing_if = "Option::is_none", alias = "context_id")]
        context_id: Option<ContextId>,
        /// Only tasks in this state.
        #[serde(default, deserialize_with = "read::said", skip_serializing_if = "Option::is_none")]
        status: Option<TaskState>,
        /// How many tasks a page holds: 1 to 100, 50 when absent.
        #[serde(default, deserialize_with = "read::integer", skip_serializing_if = "Option::is_none", alias = "page_size")]
        page_size: Option<i32>,
        /// Where the page begins: the `nextPageToken` of the page before.
        #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none", alias = "page_token")]
        page_token: Option<String>,
        /// How many messages of history each task may hold. Absent: all. 0: none.
        #[serde(default, deserialize_with = "read::integer", skip_serializing_if = "Option::is_none", alias = "history_length")]
        history_length: Option<i32>,
        /// Only tasks whose status is of this moment or later.
        #[serde(default, skip_serializing_if = "Option::is_none", alias = "status_timestamp_after")]
        status_timestamp_after: Option<Timestamp>,
        /// Whether the tasks come with their artifacts. No when absent.
        #[serde(default, skip_serializing_if = "Option::is_none", alias = "include_artifacts")]
        include_artifacts: Option<bool>,
    }
    /// Which task to end.
    CancelTaskRequest {
        /// The task.
        id: TaskId,
        /// A key and value object about the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Object>,
    }
    /// Which task to follow.
    SubscribeToTaskRequest {
        /// The task.
        id: TaskId,
    }
    /// Which webhook of which task.
    TaskPushNotificationConfigRequest {
        /// The task.
        #[serde(alias = "task_id")]
        task_id: TaskId,
        /// The webhook.
        id: ConfigId,
    }
    /// Which task's webhooks to read.
    ListTaskPushNotificationConfigsRequest {
        /// The task.
        #[serde(alias = "task_id")]
        task_id: TaskId,
        /// How many a page holds.
        #[serde(default, deserialize_with = "read::integer", skip_serializing_if = "Option::is_none", alias = "page_size")]
        page_size: Option<i32>,
        /// Where the page begins.
        #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none", alias = "page_token")]
        page_token: Option<String>,
    }
    /// Asks for the card that authenticated callers see.
    GetExtendedAgentCardRequest {}
}

/// The answer to a message: a direct message, or a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SendMessageResponse {
    /// The task that the message made or continued.
    Task(Arc<Task>),
    /// The whole answer; there is nothing to follow.
    Message(Arc<Message>),
}
read::oneof!(SendMessageResponse { Task: "task", Message: "message" });

/// One page of tasks, as a client reads it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ListTasksResponse {
    /// The tasks, newest status first.
    #[serde(default, deserialize_with = "read::or_default")]
    pub tasks: Vec<Arc<Task>>,
    /// Where the next page begins; empty on the last one.
    #[serde(default, deserialize_with = "read::or_default", alias = "next_page_token")]
    pub next_page_token: String,
    /// How many tasks a page holds.
    #[serde(default, deserialize_with = "read::integer", alias = "page_size")]
    pub page_size: Option<i32>,
    /// How many tasks match, on all pages.
    #[serde(default, deserialize_with = "read::integer", alias = "total_size")]
    pub total_size: Option<i32>,
}
read::object!(read ListTasksResponse);

/// One page of tasks, as a server writes it. A task is a `T`: a view of it, or anything that is written as one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksPage<'a, T = TaskView<'a>> {
    /// The tasks, newest status first.
    pub tasks: Vec<T>,
    /// Where the next page begins; empty on the last one.
    pub next_page_token: &'a str,
    /// How many tasks a page holds.
    pub page_size: u32,
    /// How many tasks match, on all pages.
    pub total_size: usize,
}

/// All webhooks of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ListTaskPushNotificationConfigsResponse {
    /// The webhooks.
    #[serde(default, deserialize_with = "read::or_default")]
    pub configs: Vec<TaskPushNotificationConfig>,
    /// Where the next page begins.
    #[serde(
        default,
        deserialize_with = "read::text",
        skip_serializing_if = "Option::is_none",
        alias = "next_page_token"
    )]
    pub next_page_token: Option<String>,
}

read::object!(SendMessageRequest, SendMessageConfiguration, ListTaskPushNotificationConfigsResponse);

/// An error for an operation that does not exist.
pub fn unknown_method() -> Error {
    ErrorKind::MethodNotFound.into()
}
