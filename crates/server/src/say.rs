//! How an agent speaks.

use std::sync::{Arc, OnceLock};

use protocol::{Artifact, ErrorKind, Message, MessageId, Role, TaskId, TaskState};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::agent::Words;
use crate::attempt::Outcome;
use crate::engine::{Birth, Engine, Sent, to_the_end};
use crate::gate::AtGate;
use crate::slot::{Running, Saying, Slot, Status};

/// The agent's voice in one turn. Each word is kept, then told, before the call returns.
#[derive(Clone)]
pub struct Say {
    pub(crate) voice: Arc<Voice>,
}

impl std::fmt::Debug for Say {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Say").field("task", &self.voice.slot().map(|slot| &slot.id)).finish_non_exhaustive()
    }
}

/// A piece of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// The artifact, with the parts of this piece.
    pub artifact: Artifact,
    /// The parts follow those that are there; otherwise they replace them.
    pub append: bool,
    /// Nothing more will come.
    pub last_chunk: bool,
}

/// Nothing more can be said in this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Over {
    /// The work is to stop: canceled, out of time, or the server shuts down.
    #[error("the work was stopped")]
    Stopped,
    /// The turn has ended: a question, a need for approval, an end or a direct reply was said.
    #[error("the turn has ended")]
    Ended,
    /// A direct reply is only possible before anything else.
    #[error("a direct reply must come first and alone")]
    NotFirst,
    /// What was said could not be kept.
    #[error("the store failed")]
    NotKept,
    /// The task is another process's: this one was cut off from the store for too long.
    #[error("the task is another process's")]
    Moved,
}

/// What stands behind a [`Say`]: the task, or what is needed to make it.
pub(crate) struct Voice {
    engine: Arc<Engine>,
    pub(crate) gate: Option<AtGate>,
    pub(crate) stop: CancellationToken,
    slot: OnceLock<(Arc<Slot>, Arc<Running>)>,
    /// What makes the task; taken by the first word of a first turn.
    birth: Arc<Mutex<Option<Box<Birth>>>>,
}

impl Voice {
    pub(crate) fn new(engine: Arc<Engine>, stop: CancellationToken, birth: Option<Box<Birth>>) -> Self {
        let gate = engine.gate.as_ref().map(|gate| gate.begin());
        Self { engine, gate, stop, slot: OnceLock::new(), birth: Arc::new(Mutex::new(birth)) }
    }

    pub(crate) fn of_task(engine: Arc<Engine>, slot: Arc<Slot>, running: Arc<Running>) -> Self {
        let voice = Self::new(engine, running.stop.clone(), None);
        let _ = voice.slot.set((slot, running));
        voice
    }

    pub(crate) fn slot(&self) -> Option<&Arc<Slot>> {
        self.slot.get().map(|(slot, _)| slot)
    }

    pub(crate) fn running(&self) -> Option<&Arc<Running>> {
        self.slot.get().map(|(_, running)| running)
    }

    /// The task, made now if it is not there yet. Once begun, its making goes on to the end, whoever waits for it.
    pub(crate) async fn task(self: &Arc<Self>) -> Result<&(Arc<Slot>, Arc<Running>), Over> {
        if let Some(there) = self.slot.get() {
            return Ok(there);
        }
        let mut birth = self.birth.clone().lock_owned().await;
        if let Some(there) = self.slot.get() {
            return Ok(there);
        }
        let made = birth.take().ok_or(Over::Ended)?;
        let voice = self.clone();
        let making = async move {
            let made = voice.engine.make_task(made, voice.stop.clone()).await?;
            let _ = voice.slot.set(made);
            drop(birth);
            Ok(())
        };
        if self.engine.store.waits() {
            to_the_end(making).await.unwrap_or(Err(Over::NotKept))?;
        } else {
            making.await?;
        }
        self.slot.get().ok_or(Over::NotKept)
    }
}

impl Say {
    /// The task's id. Makes the task when it is not there yet.
    pub async fn task_id(&self) -> Result<TaskId, Over> {
        Ok(self.voice.task().await?.0.id.clone())
    }

    /// Answers with a direct message. No task is made. Only the first word of a first turn may be this one.
    pub async fn reply(&self, words: impl Into<Words>) -> Result<(), Over> {
        let mut birth = self.voice.birth.lock().await;
        let Birth { asker, context_id, .. } = *birth.take().ok_or(Over::NotFirst)?;
        let parts = words.into().0.unwrap_or_default();
        let Ok(id) = MessageId::new(self.voice.engine.ids.next()) else {
            let _ = asker.answer.send(Err(ErrorKind::Internal.into()));
            return Err(Over::NotKept);
        };
        let mut message = Message::new(id, Role::Agent, parts);
        message.context_id = Some(context_id);
        if let Some(timestamps) = asker.timestamps {
            timestamps.stamp_message(&mut message, self.voice.engine.clock.now());
        }
        let message = Arc::new(message);
        asker.attempt.becomes(Outcome::Message(message.clone()));
        let _ = asker.answer.send(Ok(Sent::Message(message)));
        self.voice.engine.attempts.over(&asker.attempt);
        Ok(())
    }

    /// The task waits for its turn; says where it stands in the queue.
    pub async fn queued(&self, words: impl Into<Words>) -> Result<(), Over> {
        self.status(TaskState::Submitted, words.into()).await
    }

    /// The agent works.
    pub async fn working(&self, words: impl Into<Words>) -> Result<(), Over> {
        self.status(TaskState::Working, words.into()).await
    }

    /// A piece of what the agent made.
    pub async fn artifact(&self, chunk: Chunk) -> Result<(), Over> {
        self.event(chunk).await
    }

    /// The agent needs an answer from the client. Ends the turn; the answer starts the next one.
    pub async fn ask(&self, words: impl Into<Words>) -> Result<(), Over> {
        self.status(TaskState::InputRequired, words.into()).await
    }

    /// The agent needs an approval from outside A2A. Ends the turn; the approval starts the next one.
    pub async fn need_approval(&self, words: impl Into<Words>) -> Result<(), Over> {
        self.status(TaskState::AuthRequired, words.into()).await
    }

    /// The task ended well.
    pub async fn done(&self, words: impl Into<Words>) -> Result<(), Over> {
        self.status(TaskState::Completed, words.into()).await
    }

    /// The task ended with an error.
    pub async fn failed(&self, words: impl Into<Words>) -> Result<(), Over> {
        self.status(TaskState::Failed, words.into()).await
    }

    /// The agent will not do it.
    pub async fn rejected(&self, words: impl Into<Words>) -> Result<(), Over> {
        self.status(TaskState::Rejected, words.into()).await
    }

    /// The work was stopped as asked.
    pub async fn canceled(&self, words: impl Into<Words>) -> Result<(), Over> {
        self.status(TaskState::Canceled, words.into()).await
    }

    async fn status(&self, state: TaskState, words: Words) -> Result<(), Over> {
        self.event(Status { state, words }).await
    }

    /// The task is made, the gate passed, and only then an id drawn and the time asked.
    async fn event(&self, saying: impl Saying + 'static) -> Result<(), Over> {
        let voice = &self.voice;
        let (slot, running) = voice.task().await?;
        if !voice.engine.limits.pace.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(voice.engine.limits.pace) => {}
                () = voice.stop.cancelled() => {}
            }
        }
        if let Some(gate) = &voice.gate {
            gate.pass(&voice.stop).await;
        }
        if voice.engine.store.waits() {
            let (engine, slot, turn) = (voice.engine.clone(), slot.clone(), running.turn);
            let said = to_the_end(async move { slot.say(&engine, turn, saying).await });
            said.await.unwrap_or(Err(Over::NotKept))?;
        } else {
            slot.say(&voice.engine, running.turn, saying).await?;
        }
        if let Some(gate) = &voice.gate {
            gate.applied();
        }
        Ok(())
    }
}
