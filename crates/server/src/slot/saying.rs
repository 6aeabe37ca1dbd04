//! What may be said of a task, before its id and time are drawn.

use std::sync::Arc;

use protocol::{
    Change, Message, MessageId, Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};

use crate::agent::Words;
use crate::engine::Engine;
use crate::say::Chunk;

/// Something to be said, before its id and time are drawn.
pub(crate) trait Saying: Send {
    /// Draws what it needs: the message id first, then the time.
    fn draw(self, engine: &Engine, task: &Task) -> Option<Change>;

    /// Whether it may still be said when the work is told to stop.
    fn is_allowed_when_stopping(&self) -> bool;
}

/// A new status.
pub(crate) struct Status {
    pub state: TaskState,
    pub words: Words,
}

impl Saying for Status {
    fn draw(self, engine: &Engine, task: &Task) -> Option<Change> {
        let message = match self.words.0 {
            None => None,
            Some(parts) => {
                let mut message = Message::new(MessageId::new(engine.ids.next()).ok()?, Role::Agent, parts);
                message.context_id.clone_from(&task.context_id);
                message.task_id = Some(task.id.clone());
                Some(Arc::new(message))
            }
        };
        let status = TaskStatus { state: self.state, message, timestamp: Some(engine.clock.now()) };
        let context_id = task.context_id.clone()?;
        Some(Change::Status(TaskStatusUpdateEvent { task_id: task.id.clone(), context_id, status, metadata: None }))
    }

    fn is_allowed_when_stopping(&self) -> bool {
        self.state == TaskState::Canceled
    }
}

/// A piece of an artifact.
impl Saying for Chunk {
    fn draw(self, _: &Engine, task: &Task) -> Option<Change> {
        Some(Change::Artifact(TaskArtifactUpdateEvent {
            task_id: task.id.clone(),
            context_id: task.context_id.clone()?,
            artifact: Arc::new(self.artifact),
            append: self.append,
            last_chunk: self.last_chunk,
            metadata: None,
        }))
    }

    fn is_allowed_when_stopping(&self) -> bool {
        false
    }
}
