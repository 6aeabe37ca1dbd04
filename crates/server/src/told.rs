//! Tasks on their way to a client: as the engine holds them, or as the JSON that a store keeps of them.
//!
//! A task that has ended never changes again. It is written once; what is kept and what answers show is that text,
//! whole or cut, and nobody has to read it for that.

use std::sync::Arc;

use protocol::Task;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// A task as JSON.
#[derive(Debug, Clone)]
pub struct Written(Arc<str>);

/// Longer than most tasks.
const ROOM: usize = 1000;

impl Written {
    /// Writes a task.
    pub fn of(task: &Task) -> Result<Self, serde_json::Error> {
        let mut json = Vec::with_capacity(ROOM);
        serde_json::to_writer(&mut json, task)?;
        let text = std::str::from_utf8(&json).map_err(serde::ser::Error::custom)?;
        Ok(Self(text.into()))
    }

    /// Takes what [`Written::text`] gave.
    pub fn from_text(json: &str) -> Self {
        Self(json.into())
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Reads the task.
    pub fn read(&self) -> Result<Task, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

/// A task that somebody is told.
#[derive(Debug, Clone)]
pub struct Told(Form);

#[derive(Debug, Clone)]
enum Form {
    Task(Arc<Task>),
    Written(Written),
    Both(Arc<Task>, Written),
}

impl From<Arc<Task>> for Told {
    fn from(task: Arc<Task>) -> Self {
        Self(Form::Task(task))
    }
}

impl From<Written> for Told {
    fn from(written: Written) -> Self {
        Self(Form::Written(written))
    }
}

impl Told {
    /// A task that is written already.
    pub(crate) fn both(task: Arc<Task>, written: Option<Written>) -> Self {
        Self(match written {
            Some(written) => Form::Both(task, written),
            None => Form::Task(task),
        })
    }

    /// The task itself. The error is that of JSON that is no task.
    pub fn task(&self) -> Result<Arc<Task>, serde_json::Error> {
        match &self.0 {
            Form::Task(task) | Form::Both(task, _) => Ok(task.clone()),
            Form::Written(written) => written.read().map(Arc::new),
        }
    }

    /// The task as one answer over HTTP shows it: the last `history` messages (all when absent), with or without
    /// artifacts.
    pub(crate) fn view(&self, history: Option<u32>, artifacts: bool) -> View<'_> {
        View { told: self, history, artifacts }
    }
}

/// A task as one answer shows it.
pub(crate) struct View<'a> {
    told: &'a Told,
    history: Option<u32>,
    artifacts: bool,
}

impl View<'_> {
    /// Its JSON, if that is there already.
    pub fn text(&self) -> Option<&str> {
        match &self.told.0 {
            Form::Written(written) | Form::Both(_, written) if self.history.is_none() && self.artifacts => {
                Some(written.text())
            }
            _ => None,
        }
    }
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.told.0 {
            Form::Task(task) | Form::Both(task, _) => task.view(self.history, self.artifacts).serialize(serializer),
            Form::Written(written) => {
                let mut pieces: Pieces<'_> = serde_json::from_str(written.text()).map_err(serde::ser::Error::custom)?;
                let wanted = self.history.map_or(usize::MAX, |length| length as usize);
                pieces.history.drain(..pieces.history.len().saturating_sub(wanted));
                pieces.artifacts = pieces.artifacts.filter(|_| self.artifacts);
                pieces.serialize(serializer)
            }
        }
    }
}

/// The members of a written task, each as it stands there. Their order is that of `protocol`'s `TaskView`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pieces<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a RawValue>,
    #[serde(borrow)]
    status: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    history: Vec<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    artifacts: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::{
        Artifact, ArtifactId, Change, ContextId, Message, MessageId, Part, Role, TaskArtifactUpdateEvent, TaskId,
        TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp,
    };

    use super::*;

    fn message(id: &str, role: Role) -> Message {
        Message::new(MessageId::new(id).unwrap(), role, vec![Part::text("\"quoted\" \u{1F600} ]}")])
    }

    fn task(artifacts: bool, metadata: bool) -> Task {
        let (id, context_id) = (TaskId::new("t").unwrap(), ContextId::new("c").unwrap());
        let now = Timestamp::from_millis(1);
        let first = Arc::new(message("m", Role::User));
        let mut task = Task::submitted(id.clone(), context_id.clone(), first, now);
        task.apply(&Change::Message(Arc::new(message("m2", Role::User)))).unwrap();
        if artifacts {
            let artifact = Artifact::new(ArtifactId::new("a").unwrap(), vec![Part::text("made")]);
            let (task_id, context_id, artifact) = (id.clone(), context_id.clone(), Arc::new(artifact));
            let change = TaskArtifactUpdateEvent {
                task_id,
                context_id,
                artifact,
                append: false,
                last_chunk: true,
                metadata: None,
            };
            task.apply(&Change::Artifact(change)).unwrap();
        }
        let said = Some(Arc::new(message("m3", Role::Agent)));
        let status = TaskStatus { state: TaskState::Completed, message: said, timestamp: Some(now) };
        task.apply(&Change::Status(TaskStatusUpdateEvent { task_id: id, context_id, status, metadata: None })).unwrap();
        if metadata {
            task.metadata = Some(serde_json::from_str(r#"{"key":"value"}"#).unwrap());
        }
        task
    }

    #[test]
    fn a_written_task_is_shown_byte_for_byte_as_the_task_itself() {
        for (artifacts, metadata) in [(false, false), (true, false), (false, true), (true, true)] {
            let task = Arc::new(task(artifacts, metadata));
            let told = Told::from(Written::of(&task).unwrap());
            assert_eq!(*told.task().unwrap(), *task);
            for history in [None, Some(0), Some(1), Some(2), Some(9)] {
                for artifacts in [true, false] {
                    let plain = serde_json::to_string(&task.view(history, artifacts)).unwrap();
                    assert_eq!(serde_json::to_string(&told.view(history, artifacts)).unwrap(), plain);
                    let both = Told::both(task.clone(), Some(Written::of(&task).unwrap()));
                    assert_eq!(serde_json::to_string(&both.view(history, artifacts)).unwrap(), plain);
                }
            }
        }
    }
}
