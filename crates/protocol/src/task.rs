//! `Task`, its states and its artifacts (specification 4.1), and the fold that rebuilds a task from what happened to it.

use std::sync::Arc;

use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::event::{TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use crate::id::{ArtifactId, ContextId, TaskId};
use crate::json::Object;
use crate::message::Message;
use crate::part::Part;
use crate::read;
use crate::time::Timestamp;

/// A unit of work that outlives the call that made it.
///
/// Cloning is cheap: messages, artifacts and the parts of artifacts are shared between the versions of a task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct Task {
    /// Made by the server.
    pub id: TaskId,
    /// The context that the task belongs to. This workspace's servers always write it.
    #[serde(default, deserialize_with = "read::id", alias = "context_id")]
    pub context_id: Option<ContextId>,
    /// Where the task stands.
    pub status: TaskStatus,
    /// The messages so far, oldest first. The status message of now is not among them: it enters when the next status
    /// arrives or the client answers (DECISIONS O4).
    #[serde(default, deserialize_with = "read::or_default")]
    pub history: Vec<Arc<Message>>,
    /// What the agent made, in the order it was begun.
    #[serde(default, deserialize_with = "read::or_default")]
    pub artifacts: Vec<Arc<Artifact>>,
    /// A key and value object about the task.
    #[serde(default)]
    pub metadata: Option<Object>,
}
read::object!(read Task);

impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view(None, true).serialize(serializer)
    }
}

/// A task as one answer shows it: its history trimmed (specification 3.2.4), its artifacts perhaps left out.
#[derive(Debug, Clone, Copy)]
pub struct TaskView<'a> {
    task: &'a Task,
    history: &'a [Arc<Message>],
    artifacts: bool,
}

impl<'a> TaskView<'a> {
    /// The whole task.
    pub fn task(&self) -> &'a Task {
        self.task
    }

    /// The messages that the answer shows.
    pub fn history(&self) -> &'a [Arc<Message>] {
        self.history
    }

    /// The artifacts that the answer shows.
    pub fn artifacts(&self) -> &'a [Arc<Artifact>] {
        if self.artifacts { &self.task.artifacts } else { &[] }
    }
}

impl Serialize for TaskView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut task = serializer.serialize_struct("Task", 6)?;
        task.serialize_field("id", &self.task.id)?;
        if let Some(context_id) = &self.task.context_id {
            task.serialize_field("contextId", context_id)?;
        }
        task.serialize_field("status", &self.task.status)?;
        if !self.history.is_empty() {
            task.serialize_field("history", self.history)?;
        }
        if !self.artifacts().is_empty() {
            task.serialize_field("artifacts", self.artifacts())?;
        }
        if let Some(metadata) = &self.task.metadata {
            task.serialize_field("metadata", metadata)?;
        }
        task.end()
    }
}

/// Where a task stands, since when, and what the agent said about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct TaskStatus {
    /// The state. Read as [`TaskState::Unspecified`] when it is absent.
    #[serde(default)]
    pub state: TaskState,
    /// What the agent says about this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<Message>>,
    /// When the task came to stand here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}
read::object!(TaskStatus);

/// The states of a task (specification 4.1.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Not said.
    #[default]
    Unspecified,
    /// Taken on, not begun.
    Submitted,
    /// Being worked on.
    Working,
    /// Ended well.
    Completed,
    /// Ended with an error.
    Failed,
    /// Ended because the client asked for it.
    Canceled,
    /// Waits for an answer from the client.
    InputRequired,
    /// Ended because the agent will not do it.
    Rejected,
    /// Waits for an authorization, which may be given outside A2A.
    AuthRequired,
}

/// What a state means for those who wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The agent has the turn, or will have it.
    Running,
    /// The agent waits for somebody else.
    Interrupted,
    /// Nothing will ever change again.
    Terminal,
}

impl TaskState {
    const WORDS: [(&'static str, Self); 9] = [
        ("TASK_STATE_UNSPECIFIED", Self::Unspecified),
        ("TASK_STATE_SUBMITTED", Self::Submitted),
        ("TASK_STATE_WORKING", Self::Working),
        ("TASK_STATE_COMPLETED", Self::Completed),
        ("TASK_STATE_FAILED", Self::Failed),
        ("TASK_STATE_CANCELED", Self::Canceled),
        ("TASK_STATE_INPUT_REQUIRED", Self::InputRequired),
        ("TASK_STATE_REJECTED", Self::Rejected),
        ("TASK_STATE_AUTH_REQUIRED", Self::AuthRequired),
    ];

    /// Every state, in the order of the proto's numbers.
    pub const ALL: [Self; 9] = [
        Self::Unspecified,
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].0
    }

    /// The state of a word, if it is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, state)| *state)
    }

    /// What the state means for those who wait.
    pub fn phase(self) -> Phase {
        match self {
            Self::Unspecified | Self::Submitted | Self::Working => Phase::Running,
            Self::InputRequired | Self::AuthRequired => Phase::Interrupted,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => Phase::Terminal,
        }
    }

    /// Whether the task has ended.
    pub fn is_terminal(self) -> bool {
        self.phase() == Phase::Terminal
    }
}

impl std::fmt::Display for TaskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for TaskState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for TaskState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read::word(deserializer, &Self::WORDS)
    }
}

impl Phase {
    /// Whether a blocking call may return (specification 3.2.2).
    pub fn settles(self) -> bool {
        self != Self::Running
    }

    /// Whether a message may still come (specification 3.1.1).
    pub fn takes_messages(self) -> bool {
        self != Self::Terminal
    }
}

/// Something that the agent made (specification 4.1.7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct Artifact {
    /// Unique within the task.
    #[serde(alias = "artifact_id")]
    pub artifact_id: ArtifactId,
    /// A name to show, such as `review.json`.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// A description to show.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    /// The content, in order. Read as none when it is absent.
    #[serde(default, deserialize_with = "read::or_default")]
    pub parts: Parts,
    /// A key and value object about the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The URIs of the extensions that shaped this artifact.
    #[serde(default, deserialize_with = "read::or_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}
read::object!(Artifact);

impl Artifact {
    /// An artifact with an id and its content.
    pub fn new(artifact_id: ArtifactId, parts: impl Into<Parts>) -> Self {
        Self { artifact_id, name: None, description: None, parts: parts.into(), metadata: None, extensions: Vec::new() }
    }
}

/// The parts of an artifact, in order. A log of many thousand chunks grows here, so versions share their parts: they
/// stand in runs whose lengths are falling powers of two, a clone copies the few handles, and a push joins equal runs.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    runs: Vec<Arc<[Part]>>,
}

/// Runs of this length are not joined any more.
const LONGEST_RUN: usize = 1024;

impl Parts {
    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The parts in order.
    pub fn iter(&self) -> impl Iterator<Item = &Part> {
        self.runs.iter().flat_map(|run| run.iter())
    }

    /// Adds a part at the end.
    pub fn push(&mut self, part: Part) {
        self.append(Arc::new([part]));
    }

    /// Adds parts at the end.
    pub fn extend(&mut self, more: &Parts) {
        for run in &more.runs {
            self.append(run.clone());
        }
    }

    fn append(&mut self, run: Arc<[Part]>) {
        self.runs.push(run);
        while let [.., first, second] = self.runs.as_slice()
            && first.len() <= second.len()
            && first.len() + second.len() <= LONGEST_RUN
        {
            let joined = first.iter().chain(second.iter()).cloned().collect();
            self.runs.truncate(self.runs.len() - 2);
            self.runs.push(joined);
        }
    }
}

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Self {
        if parts.is_empty() { Self::default() } else { Self { runs: vec![parts.into()] } }
    }
}

impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut parts = serializer.serialize_seq(Some(self.len()))?;
        self.iter().try_for_each(|part| parts.serialize_element(part))?;
        parts.end()
    }
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Part>::deserialize(deserializer)?.into())
    }
}

/// Something that happened to a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The client sent a message to the task. Streams and webhooks do not show it.
    Message(Arc<Message>),
    /// The status changed.
    Status(TaskStatusUpdateEvent),
    /// An artifact grew or was replaced.
    Artifact(TaskArtifactUpdateEvent),
}

/// What a change did to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// As it asked.
    AsAsked,
    /// It asked to append to an artifact that was not there; a new one was begun (DECISIONS O16).
    BegunInstead,
}

/// Why a change cannot happen to this task. The task is then as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nothing leaves a terminal state.
    #[error("the task has ended in {0}")]
    Ended(TaskState),
    /// Nothing goes back to SUBMITTED.
    #[error("a task does not go back to TASK_STATE_SUBMITTED")]
    BackToSubmitted,
    /// The change names another task.
    #[error("the change is for another task")]
    OtherTask,
}

impl Task {
    /// A task that was just taken on.
    pub fn submitted(id: TaskId, context_id: ContextId, message: Arc<Message>, now: Timestamp) -> Self {
        Self {
            id,
            context_id: Some(context_id),
            status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: Some(now) },
            history: vec![message],
            artifacts: Vec::new(),
            metadata: None,
        }
    }

    /// The task as one answer shows it: the last `history_length` messages (all when absent), with or without artifacts.
    pub fn view(&self, history_length: Option<u32>, artifacts: bool) -> TaskView<'_> {
        let wanted = history_length.map_or(usize::MAX, |length| length as usize);
        let history = &self.history[self.history.len().saturating_sub(wanted)..];
        TaskView { task: self, history, artifacts }
    }

    /// Lets something happen to the task. This is the only thing that changes one, in the server, in a replay, in a
    /// figure and in the web page alike.
    pub fn apply(&mut self, change: &Change) -> Result<Applied, Refused> {
        let state = self.status.state;
        let task_id = match change {
            Change::Message(message) => message.task_id.as_ref(),
            Change::Status(update) => Some(&update.task_id),
            Change::Artifact(update) => Some(&update.task_id),
        };
        if task_id.is_some_and(|id| *id != self.id) {
            return Err(Refused::OtherTask);
        }
        if state.is_terminal() {
            return Err(Refused::Ended(state));
        }
        match change {
            Change::Message(message) => {
                self.history.extend(self.status.message.take());
                self.history.push(message.clone());
            }
            Change::Status(update) => {
                if update.status.state == TaskState::Submitted && state != TaskState::Submitted {
                    return Err(Refused::BackToSubmitted);
                }
                self.history.extend(self.status.message.take());
                self.status = update.status.clone();
            }
            Change::Artifact(update) => return Ok(self.take_artifact(update)),
        }
        Ok(Applied::AsAsked)
    }

    fn take_artifact(&mut self, update: &TaskArtifactUpdateEvent) -> Applied {
        let known = self.artifacts.iter_mut().find(|known| known.artifact_id == update.artifact.artifact_id);
        match known {
            Some(known) if update.append => {
                Arc::make_mut(known).parts.extend(&update.artifact.parts);
                Applied::AsAsked
            }
            Some(known) => {
                *known = update.artifact.clone();
                Applied::AsAsked
            }
            None => {
                self.artifacts.push(update.artifact.clone());
                if update.append { Applied::BegunInstead } else { Applied::AsAsked }
            }
        }
    }
}

#[cfg(test)]
mod tests;
