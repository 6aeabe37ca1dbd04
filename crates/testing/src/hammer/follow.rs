//! What the frames of a stream, or the webhooks of a task, add up to.

use std::collections::HashSet;

use protocol::{Change, Message, MessageId, Part, Role, StreamResponse, Task, TaskState, Timestamp};

use super::wire::Frame;

/// A task rebuilt from what was told of it.
#[derive(Debug, Default)]
pub struct Follower {
    /// The task so far.
    pub task: Option<Task>,
    /// The one message of a stream that is no task's.
    pub message: Option<Message>,
    /// The number of the last frame.
    pub last_id: Option<u64>,
    /// The next frame may be a snapshot.
    fresh: bool,
    /// The next frame may be an update, as the stream goes on after one.
    resumed: bool,
}

impl Follower {
    /// Follows a stream from its first frame.
    pub fn new() -> Self {
        Self { fresh: true, ..Self::default() }
    }

    /// A stream was opened again, perhaps to go on after the last frame.
    pub fn comes_back(&mut self, resumes: bool) {
        (self.fresh, self.resumed) = (true, resumes);
    }

    /// Takes a frame. The error says what is wrong with it.
    pub fn take(&mut self, frame: Frame) -> Result<(), String> {
        let (fresh, resumed) = (std::mem::take(&mut self.fresh), std::mem::take(&mut self.resumed));
        if self.message.is_some() {
            return Err("a frame follows a direct message".to_owned());
        }
        let is_snapshot = matches!(frame.response, StreamResponse::Task(_));
        if let (Some(last), Some(id)) = (self.last_id, frame.id)
            && (id < last || id == last && !is_snapshot)
        {
            return Err(format!("frame {id} follows frame {last}"));
        }
        self.last_id = frame.id.or(self.last_id);
        match frame.response {
            StreamResponse::Task(_) | StreamResponse::Message(_) if !fresh => {
                Err("a task or message that is not the first frame".to_owned())
            }
            StreamResponse::Message(_) if self.task.is_some() => Err("a direct message from a task".to_owned()),
            StreamResponse::Message(message) => {
                self.message = Some((*message).clone());
                Ok(())
            }
            StreamResponse::Task(task) => {
                each_message_once(&task)?;
                if let Some(before) = &self.task {
                    is_later(before, &task)?;
                }
                self.task = Some((*task).clone());
                Ok(())
            }
            StreamResponse::StatusUpdate(_) | StreamResponse::ArtifactUpdate(_) if fresh && !resumed => {
                Err("a stream that begins with an update".to_owned())
            }
            StreamResponse::StatusUpdate(update) => self.apply(Change::Status(update)),
            StreamResponse::ArtifactUpdate(update) => self.apply(Change::Artifact(update)),
        }
    }

    /// Takes the body of a webhook, which never holds a task.
    pub fn take_hook(&mut self, response: StreamResponse) -> Result<(), String> {
        let (id, context, change) = match response {
            StreamResponse::StatusUpdate(update) => {
                (update.task_id.clone(), update.context_id.clone(), Change::Status(update))
            }
            StreamResponse::ArtifactUpdate(update) => {
                (update.task_id.clone(), update.context_id.clone(), Change::Artifact(update))
            }
            _ => return Err("a webhook that is no update".to_owned()),
        };
        if self.task.is_none() {
            let first = MessageId::new("first").map_err(|cause| cause.to_string())?;
            let first = Message::new(first, Role::User, vec![Part::text("")]);
            self.task = Some(Task::submitted(id, context, first.into(), Timestamp::from_millis(0)));
        }
        self.apply(change)
    }

    fn apply(&mut self, change: Change) -> Result<(), String> {
        let task = self.task.as_mut().ok_or("an update before the task")?;
        let context = match &change {
            Change::Status(update) => Some(&update.context_id),
            Change::Artifact(update) => Some(&update.context_id),
            Change::Message(_) => None,
        };
        if context.is_some() && context != task.context_id.as_ref() {
            return Err(format!("an update of another context: {change:?}"));
        }
        task.apply(&change).map_err(|refused| format!("{refused}: {change:?}"))?;
        Ok(())
    }

    /// The state of the last frame.
    pub fn state(&self) -> Option<TaskState> {
        self.task.as_ref().map(|task| task.status.state)
    }

    /// Holds what was followed to its end against the task as it is read.
    pub fn agrees(&self, task: &Task) -> Result<(), String> {
        let Some(own) = &self.task else { return Err("not one frame came".to_owned()) };
        if own.status != task.status {
            return Err(format!("the last frame says {:?}, GetTask {:?}", own.status, task.status));
        }
        if own.artifacts != task.artifacts {
            let sizes = super::plan::sizes;
            return Err(format!("the frames make {}, GetTask gives {}", sizes(own), sizes(task)));
        }
        Ok(())
    }

    /// As [`Follower::agrees`]; and what the agent said came in the same words and order. The client's own messages are
    /// in no frame.
    pub fn agrees_in_words(&self, task: &Task) -> Result<(), String> {
        self.agrees(task)?;
        let said = |task: &Task| -> Vec<_> {
            task.history.iter().filter(|message| message.role == Role::Agent).cloned().collect()
        };
        let own = self.task.as_ref().map(said).unwrap_or_default();
        if own != said(task) {
            return Err(format!("the frames give {} messages of the agent's, GetTask {}", own.len(), said(task).len()));
        }
        Ok(())
    }
}

/// Each message stands in a task once: in its history, or as its status message.
pub fn each_message_once(task: &Task) -> Result<(), String> {
    let mut seen = HashSet::new();
    let messages = task.history.iter().chain(&task.status.message);
    match messages.map(|message| &message.message_id).find(|id| !seen.insert(*id)) {
        Some(twice) => Err(format!("message {twice} stands in task {} twice", task.id)),
        None => Ok(()),
    }
}

/// A snapshot must not be older than one that was seen before it.
fn is_later(before: &Task, now: &Task) -> Result<(), String> {
    if before.id != now.id || before.context_id != now.context_id {
        return Err(format!("task {} became {}", before.id, now.id));
    }
    if before.status.state.is_terminal() && before.status != now.status {
        return Err(format!("{:?} came after {:?}", now.status, before.status));
    }
    if before.status.timestamp > now.status.timestamp {
        return Err(format!("the status went back: {:?} came after {:?}", now.status, before.status));
    }
    for artifact in &before.artifacts {
        if !now.artifacts.iter().any(|there| there.artifact_id == artifact.artifact_id) {
            return Err(format!("artifact {} is gone", artifact.artifact_id));
        }
    }
    Ok(())
}

/// A task holds all that was told of it before: each artifact's parts, in their order, and no older status.
pub fn agrees_so_far(before: &Task, now: &Task) -> Result<(), String> {
    is_later(before, now)?;
    each_message_once(now)?;
    for artifact in &before.artifacts {
        let there = now.artifacts.iter().find(|there| there.artifact_id == artifact.artifact_id);
        let goes_on = |there: &protocol::Artifact| {
            artifact.parts.iter().zip(there.parts.iter()).filter(|(before, now)| before == now).count()
                == artifact.parts.iter().count()
        };
        if !there.is_some_and(|there| goes_on(there)) {
            return Err(format!("of artifact {} something is gone that was told", artifact.artifact_id));
        }
    }
    let said = before.history.iter().chain(&before.status.message).filter(|message| message.role == Role::Agent);
    let known = |message: &Message| {
        now.history.iter().chain(&now.status.message).any(|there| there.message_id == message.message_id)
    };
    match said.map(|message| &**message).find(|message| !known(message)) {
        Some(gone) => Err(format!("message {} is gone, which was told", gone.message_id)),
        None => Ok(()),
    }
}
