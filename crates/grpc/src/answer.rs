//! Answers: what an operation came to, as a message and back.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use protocol::call::{ListTaskPushNotificationConfigsResponse, ListTasksPage, ListTasksResponse, SendMessageResponse};
use protocol::task::TaskView;
use protocol::{AgentCard, Message, Method, StreamResponse, Task, TaskPushNotificationConfig};
use serde::{Serialize, Serializer};

use crate::depth::{self, TooDeep};
use crate::read::{At, Reading, optional, written};
use crate::task::By;
use crate::wire::{self, send_message_response, stream_response};

fn bytes(message: &impl prost::Message) -> Bytes {
    message.encode_to_vec().into()
}

/// The answer to a message that is a task.
pub fn sent_task(task: &TaskView<'_>) -> Result<Bytes, TooDeep> {
    let payload = Some(send_message_response::Payload::Task(task.into()));
    depth::task(At::Whole.field("task"), task)?;
    Ok(bytes(&wire::SendMessageResponse { payload }))
}

/// The answer to a message that is a message.
pub fn sent_message(message: &Message) -> Result<Bytes, TooDeep> {
    let payload = Some(send_message_response::Payload::Message(message.into()));
    depth::message(At::Whole.field("message"), message)?;
    Ok(bytes(&wire::SendMessageResponse { payload }))
}

/// The first frame of a stream: the task.
pub fn first(task: &TaskView<'_>) -> Result<Bytes, TooDeep> {
    depth::task(At::Whole.field("task"), task)?;
    Ok(bytes(&wire::StreamResponse { payload: Some(stream_response::Payload::Task(task.into())) }))
}

/// A frame of a stream.
pub fn event(event: &StreamResponse) -> Result<Bytes, TooDeep> {
    depth::event(event)?;
    Ok(bytes(&wire::StreamResponse::from(event)))
}

/// One task.
pub fn task(task: &TaskView<'_>) -> Result<Bytes, TooDeep> {
    depth::task(At::Whole, task)?;
    Ok(bytes(&wire::Task::from(task)))
}

/// One page of tasks.
pub fn tasks(page: &ListTasksPage<'_>) -> Result<Bytes, TooDeep> {
    for (place, task) in page.tasks.iter().enumerate() {
        depth::task(At::Whole.entry("tasks", place), task)?;
    }
    Ok(bytes(&wire::ListTasksResponse {
        tasks: page.tasks.iter().map(Into::into).collect(),
        next_page_token: page.next_page_token.to_owned(),
        page_size: i32::try_from(page.page_size).unwrap_or(i32::MAX),
        total_size: i32::try_from(page.total_size).unwrap_or(i32::MAX),
    }))
}

/// One webhook.
pub fn config(config: &TaskPushNotificationConfig) -> Bytes {
    bytes(&wire::TaskPushNotificationConfig::from(config))
}

/// All webhooks of a task.
pub fn configs(configs: &ListTaskPushNotificationConfigsResponse) -> Bytes {
    bytes(&wire::ListTaskPushNotificationConfigsResponse {
        configs: configs.configs.iter().map(Into::into).collect(),
        next_page_token: written(configs.next_page_token.as_ref()),
    })
}

/// A webhook is gone.
pub fn deleted() -> Bytes {
    Bytes::new()
}

/// The card that authenticated callers see.
pub fn card(card: &AgentCard) -> Bytes {
    bytes(&wire::AgentCard::from(card))
}

/// An answer as a client reads it. It serializes as HTTP+JSON would write it.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To a message.
    Sent(SendMessageResponse),
    /// One frame of a stream.
    Event(StreamResponse),
    /// One task.
    Task(Arc<Task>),
    /// One page of tasks.
    Tasks(ListTasksResponse),
    /// One webhook.
    Config(TaskPushNotificationConfig),
    /// All webhooks of a task.
    Configs(ListTaskPushNotificationConfigsResponse),
    /// A webhook is gone.
    Deleted,
    /// The card that authenticated callers see.
    Card(Box<AgentCard>),
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Sent(sent) => sent.serialize(serializer),
            Self::Event(event) => event.serialize(serializer),
            Self::Task(task) => task.serialize(serializer),
            Self::Tasks(page) => ListTasksPage {
                tasks: page.tasks.iter().map(|task| task.view(None, true)).collect(),
                next_page_token: &page.next_page_token,
                page_size: page.page_size.and_then(|size| size.try_into().ok()).unwrap_or_default(),
                total_size: page.total_size.and_then(|size| size.try_into().ok()).unwrap_or_default(),
            }
            .serialize(serializer),
            Self::Config(config) => Serialize::serialize(config, serializer),
            Self::Configs(configs) => Serialize::serialize(configs, serializer),
            Self::Deleted => serializer.serialize_map(Some(0)).and_then(serde::ser::SerializeMap::end),
            Self::Card(card) => Serialize::serialize(&**card, serializer),
        }
    }
}

/// Why bytes are no answer, in words for a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAnAnswer(String);

impl From<prost::DecodeError> for NotAnAnswer {
    fn from(cause: prost::DecodeError) -> Self {
        Self(cause.to_string())
    }
}

/// Reads an answer, or one frame of it where the operation streams. What is read is taken as generously as the other
/// bindings' answers are: only what nothing can be made of is an error.
pub fn read(method: Method, message: Bytes) -> Result<Answer, NotAnAnswer> {
    let mut reading = Reading::default();
    let answer = reading.answer(method, message)?;
    answer.ok_or_else(|| {
        let found: Vec<_> = reading.found.into();
        let found: Vec<_> = found.into_iter().map(|it| format!("{}: {}", it.field, it.description)).collect();
        NotAnAnswer(found.join("; "))
    })
}

impl Reading<'_> {
    fn answer(&mut self, method: Method, message: Bytes) -> Result<Option<Answer>, prost::DecodeError> {
        let at = At::Whole;
        Ok(match method {
            Method::SendMessage => self.sent(&wire::SendMessageResponse::decode(message)?).map(Answer::Sent),
            Method::SendStreamingMessage | Method::SubscribeToTask => {
                self.event(at, &wire::StreamResponse::decode(message)?).map(Answer::Event)
            }
            Method::GetTask | Method::CancelTask => {
                self.task(at, &wire::Task::decode(message)?).map(|task| Answer::Task(task.into()))
            }
            Method::ListTasks => {
                let page = wire::ListTasksResponse::decode(message)?;
                let tasks = page.tasks.iter().enumerate();
                let tasks = tasks.map(|(place, task)| self.task(at.entry("tasks", place), task).map(Arc::new));
                tasks.collect::<Option<_>>().map(|tasks| {
                    Answer::Tasks(ListTasksResponse {
                        tasks,
                        next_page_token: page.next_page_token,
                        page_size: Some(page.page_size),
                        total_size: Some(page.total_size),
                    })
                })
            }
            Method::CreateTaskPushNotificationConfig | Method::GetTaskPushNotificationConfig => {
                let config = wire::TaskPushNotificationConfig::decode(message)?;
                self.config(at, &config, false).map(Answer::Config)
            }
            Method::ListTaskPushNotificationConfigs => {
                let all = wire::ListTaskPushNotificationConfigsResponse::decode(message)?;
                let configs = all.configs.iter().enumerate();
                let configs = configs.map(|(place, config)| self.config(at.entry("configs", place), config, false));
                configs.collect::<Option<_>>().map(|configs| {
                    let next_page_token = optional(&all.next_page_token);
                    Answer::Configs(ListTaskPushNotificationConfigsResponse { configs, next_page_token })
                })
            }
            Method::DeleteTaskPushNotificationConfig => Some(Answer::Deleted),
            Method::GetExtendedAgentCard => {
                self.card(at, &wire::AgentCard::decode(message)?).map(|card| Answer::Card(card.into()))
            }
        })
    }

    fn sent(&mut self, sent: &wire::SendMessageResponse) -> Option<SendMessageResponse> {
        use send_message_response::Payload;
        let at = At::Whole;
        Some(match self.there(at.field("payload"), sent.payload.as_ref())? {
            Payload::Task(task) => SendMessageResponse::Task(self.task(at.field("task"), task)?.into()),
            Payload::Message(message) => {
                let message = self.message(at.field("message"), message, By::Anybody);
                SendMessageResponse::Message(message?.into())
            }
        })
    }
}
