//! What streams and webhooks carry (specification 4.2, 3.2.3).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{ContextId, TaskId};
use crate::json::Object;
use crate::message::Message;
use crate::read;
use crate::task::{Artifact, Change, Task, TaskStatus};

/// The status of a task changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct TaskStatusUpdateEvent {
    /// The task.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// The task's context.
    #[serde(alias = "context_id")]
    pub context_id: ContextId,
    /// The new status.
    pub status: TaskStatus,
    /// A key and value object about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}
read::object!(TaskStatusUpdateEvent);

/// An artifact of a task grew or was replaced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct TaskArtifactUpdateEvent {
    /// The task.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// The task's context.
    #[serde(alias = "context_id")]
    pub context_id: ContextId,
    /// The artifact, or the piece of it that is new.
    pub artifact: Arc<Artifact>,
    /// The parts follow those that are already there; otherwise they replace them.
    #[serde(default, deserialize_with = "read::or_default", skip_serializing_if = "read::is_false")]
    pub append: bool,
    /// Nothing more will come for this artifact.
    #[serde(
        default,
        deserialize_with = "read::or_default",
        skip_serializing_if = "read::is_false",
        alias = "last_chunk"
    )]
    pub last_chunk: bool,
    /// A key and value object about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}
read::object!(TaskArtifactUpdateEvent);

/// One frame of a stream, or the body of one webhook: exactly one of the four.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamResponse {
    /// A whole task: the first frame.
    Task(Arc<Task>),
    /// A direct message: the only frame.
    Message(Arc<Message>),
    /// The status changed.
    StatusUpdate(TaskStatusUpdateEvent),
    /// An artifact grew or was replaced.
    ArtifactUpdate(TaskArtifactUpdateEvent),
}
read::oneof!(StreamResponse {
    Task: "task",
    Message: "message",
    StatusUpdate: "statusUpdate" | "status_update",
    ArtifactUpdate: "artifactUpdate" | "artifact_update",
});

/// A change as streams and webhooks show it. They do not show the client's own messages; stores keep them in this form.
impl From<&Change> for StreamResponse {
    fn from(change: &Change) -> Self {
        match change {
            Change::Message(message) => Self::Message(message.clone()),
            Change::Status(update) => Self::StatusUpdate(update.clone()),
            Change::Artifact(update) => Self::ArtifactUpdate(update.clone()),
        }
    }
}

/// What changes a task, or the whole task, which changes nothing.
impl TryFrom<StreamResponse> for Change {
    type Error = Arc<Task>;

    fn try_from(response: StreamResponse) -> Result<Self, Arc<Task>> {
        match response {
            StreamResponse::Task(task) => Err(task),
            StreamResponse::Message(message) => Ok(Self::Message(message)),
            StreamResponse::StatusUpdate(update) => Ok(Self::Status(update)),
            StreamResponse::ArtifactUpdate(update) => Ok(Self::Artifact(update)),
        }
    }
}
