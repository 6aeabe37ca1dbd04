//! The client's half: a call of another agent, and what it said.

use client::{Binding, Connection, Events, Reply, choose, live::LiveIds};
use protocol::call::{SendMessageConfiguration, SendMessageRequest};
use protocol::{
    Ids, Message, MessageId, Phase, Role, StreamResponse, Task, TaskId, TaskPushNotificationConfig, TaskState,
};
use server::Fault;

use super::{Behavior, CallAgent, FINISHED, Interop};

/// Shown to the kit's webhook.
const TOKEN: &str = "interop";

impl Interop {
    /// Calls an agent over the binding that is wanted, and gives what it said.
    pub(super) async fn call(&self, call: &CallAgent) -> Result<Vec<String>, Fault> {
        let binding = match call.transport.to_ascii_lowercase().as_str() {
            "jsonrpc" => Binding::JsonRpc,
            "http_json" | "http+json" | "rest" => Binding::HttpJson,
            "grpc" => Binding::Grpc,
            other => return Err(format!("{other} is no binding").into()),
        };
        let instruction = call.instruction.as_ref().ok_or("there is nothing to tell the agent")?;
        let message = Message::new(MessageId::new(LiveIds.next())?, Role::User, vec![instruction.part()]);
        let mut request = SendMessageRequest::new(message);
        let card = self.http.card("card", &call.agent_card_uri).await?;
        let (interface, binding) = choose(&card, &[binding])?;
        let connection = Connection::new(self.http.clone(), &*interface.url, binding, None);
        let connection = connection.of_tenant(interface.tenant.clone());
        match &call.behavior {
            Some(Behavior::Resubscribe(())) => return resubscribed(&connection, request).await,
            Some(Behavior::PushNotification(webhook)) => {
                let scheme = if webhook.url.contains("://") { "" } else { "http://" };
                request.configuration = Some(SendMessageConfiguration {
                    task_push_notification_config: Some(TaskPushNotificationConfig {
                        tenant: None,
                        id: None,
                        task_id: None,
                        url: format!("{scheme}{}/notifications", webhook.url),
                        token: Some(TOKEN.to_owned()),
                        authentication: None,
                    }),
                    ..SendMessageConfiguration::default()
                });
            }
            Some(Behavior::SendMessage(())) | None => {}
        }
        if call.streaming {
            return told(connection.stream("stream", request).await?).await;
        }
        match connection.send("send", request).await? {
            Reply::Message(message) => Ok(texts(Some(&message))),
            Reply::Task(task) => {
                fine(task.status.state)?;
                Ok(texts(task.status.message.as_deref()))
            }
            Reply::Error(error) => Err(error.into()),
        }
    }
}

/// A task that ended in another way than well has nothing to tell on.
fn fine(state: TaskState) -> Result<(), Fault> {
    match state.phase() {
        Phase::Terminal if state != TaskState::Completed => Err(format!("the agent's task is {state:?}").into()),
        _ => Ok(()),
    }
}

/// What a stream says until it ends.
async fn told(mut events: Events) -> Result<Vec<String>, Fault> {
    let mut said = Vec::new();
    while let Some(frame) = events.next().await? {
        said.extend(match &frame.response {
            StreamResponse::Task(task) => texts(task.status.message.as_deref()),
            StreamResponse::Message(message) => texts(Some(message)),
            StreamResponse::StatusUpdate(update) => {
                fine(update.status.state)?;
                texts(update.status.message.as_deref())
            }
            StreamResponse::ArtifactUpdate(_) => Vec::new(),
        });
    }
    Ok(said)
}

/// Leaves the stream as soon as it names its task, subscribes to it until it has said everything, and cancels it.
async fn resubscribed(connection: &Connection, request: SendMessageRequest) -> Result<Vec<String>, Fault> {
    let mut events = connection.stream("stream", request).await?;
    let first = events.next().await?.ok_or("the stream named no task")?;
    drop(events);
    let id = task_id(&first.response).ok_or("the stream named no task")?;
    let mut events = connection.subscribe("subscribe", id).await?;
    let said = loop {
        let frame = events.next().await?.ok_or("the task ended before it had said everything")?;
        if let Some(said) = finished(&frame.response) {
            break said;
        }
    };
    drop(events);
    connection.cancel("cancel", id).await?;
    Ok(vec![said])
}

fn task_id(response: &StreamResponse) -> Option<&TaskId> {
    match response {
        StreamResponse::Task(task) => Some(&task.id),
        StreamResponse::StatusUpdate(update) => Some(&update.task_id),
        StreamResponse::ArtifactUpdate(update) => Some(&update.task_id),
        StreamResponse::Message(_) => None,
    }
}

/// The text of a task that has said everything, without the word that says so. The status that held it may have become
/// history.
fn finished(response: &StreamResponse) -> Option<String> {
    let in_task = |task: &Task| {
        let earlier = task.history.iter().filter(|message| message.role == Role::Agent).map(|message| &**message);
        let messages = earlier.chain(task.status.message.as_deref());
        messages.flat_map(|message| texts(Some(message))).collect()
    };
    let texts: Vec<String> = match response {
        StreamResponse::Task(task) => in_task(task),
        StreamResponse::Message(message) => texts(Some(message)),
        StreamResponse::StatusUpdate(update) => texts(update.status.message.as_deref()),
        StreamResponse::ArtifactUpdate(_) => Vec::new(),
    };
    let text = texts.into_iter().find(|text| text.contains(FINISHED))?;
    Some(text.replace(FINISHED, "").trim().to_owned())
}

/// The texts of a message, in its order.
fn texts(message: Option<&Message>) -> Vec<String> {
    let parts = message.into_iter().flat_map(|message| message.parts.iter());
    parts.filter_map(|part| part.as_text()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}
