//! The one owner of a live task. Everything that happens to the task happens under its lock: drawn, kept, then told.

mod asker;
mod cancel;
mod saying;
mod turn;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use protocol::task::{Applied, Refused};
use protocol::{
    Change, ConfigId, Error, ErrorKind, Message, Task, TaskId, TaskPushNotificationConfig, TaskState,
    TaskStatusUpdateEvent, Timestamps,
};
use tokio::sync::{Mutex, MutexGuard};

use crate::agent::{Start, Words};
use crate::attempt::{Attempt, Outcome};
use crate::engine::{Engine, Sent};
use crate::hub::{Event, Log};
use crate::say::Over;
use crate::store::{Principal, Record, Step, StoreError};
use crate::told::{Told, Written};

pub(crate) use asker::{Asker, Incoming, Mode};
pub(crate) use saying::{Saying, Status};
pub(crate) use turn::{Begun, Decided, Returned, Running, Wait};

/// The owner of one task.
#[derive(Debug)]
pub(crate) struct Slot {
    pub id: TaskId,
    pub owner: Principal,
    pub base_url: Arc<str>,
    pub log: Arc<Log>,
    state: Mutex<State>,
}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    pub task: Arc<Task>,
    /// The task as JSON, once it has ended here.
    pub written: Option<Written>,
    /// The number of the newest event.
    pub number: u64,
    /// The number of the newest turn, running or waiting.
    pub turns: u32,
    pub running: Option<Arc<Running>>,
    /// The running turn has asked, or needs an approval: its next words are refused, and it is about to return.
    pub over: bool,
    /// An approval, refusal or expiry that came before the turn that asked for it had returned.
    pub next: Option<Start>,
    /// Callers who wait for a turn to settle.
    pub askers: Vec<(u32, Asker)>,
    /// Messages beside the task, each with the number of its turn to be.
    pub waiting: VecDeque<(u32, Incoming)>,
    /// The webhooks.
    pub configs: Vec<ConfigId>,
    /// What is made in the running turn says when it was made. A turn that no message started does as the one before.
    pub timestamps: Option<Timestamps>,
    /// The attempts that came to this task; they are over when it ends.
    pub attempts: Vec<Arc<Attempt>>,
    /// Another process has the turn.
    pub elsewhere: bool,
    /// The task did not end yet, as a message waits beside it that this process has not seen.
    pub more_waits: bool,
}

impl Slot {
    /// The owner of a task that was just made, or read back from the store.
    pub fn new(record: Record, configs: Vec<ConfigId>) -> Self {
        let state = State {
            task: record.task.clone(),
            written: None,
            number: record.number,
            turns: 0,
            running: None,
            over: false,
            next: None,
            askers: Vec::new(),
            waiting: VecDeque::new(),
            configs,
            timestamps: Timestamps::of_task(&record.task),
            attempts: Vec::new(),
            elsewhere: false,
            more_waits: false,
        };
        Self {
            id: record.task.id.clone(),
            owner: record.owner,
            base_url: record.base_url,
            log: Arc::new(Log::after(record.number)),
            state: Mutex::new(state),
        }
    }

    /// The lock. Never held across an agent's code.
    pub async fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().await
    }

    /// The task as it is now.
    pub async fn snapshot(&self) -> Arc<Task> {
        self.lock().await.task.clone()
    }

    /// Lets an agent say something in its turn.
    pub async fn say(&self, engine: &Engine, turn: u32, change: impl Saying) -> Result<(), Over> {
        let mut state = self.lock().await;
        let running = state.running.as_ref().filter(|running| running.turn == turn && !state.over);
        let running = running.ok_or(Over::Ended)?;
        if running.stop.is_cancelled() && !change.is_allowed_when_stopping() {
            return Err(Over::Stopped);
        }
        let running = running.clone();
        let mut change = change.draw(engine, &state.task).ok_or(Over::Ended)?;
        state.stamp(engine, &mut change);
        let kept = self.put(engine, &mut state, turn, change).await;
        if matches!(kept, Err(Over::NotKept | Over::Moved)) {
            // Work whose results cannot be kept is not worth going on with.
            self.break_off(&mut state, turn);
            drop(state);
            running.stop_within(engine.limits.cancel);
        }
        kept
    }

    /// The store has failed in the middle of a turn: those who wait for it are told at once.
    pub fn break_off(&self, state: &mut State, turn: u32) {
        for (_, asker) in state.askers.extract_if(.., |(own, _)| *own == turn) {
            let _ = asker.answer.send(Err(ErrorKind::Internal.into()));
        }
        if let Some(running) = &state.running {
            running.breaks();
        }
        self.log.cut();
    }

    /// Sets a status in the server's own name.
    pub async fn set(&self, engine: &Engine, state: &mut State, to: TaskState, words: Words) -> Result<(), Over> {
        let turn = state.running.as_ref().map_or(state.turns, |running| running.turn);
        let mut change = Status { state: to, words }.draw(engine, &state.task).ok_or(Over::Ended)?;
        state.stamp(engine, &mut change);
        self.put(engine, state, turn, change).await
    }

    /// The one way in which a task changes: applied, kept, told, and those who wait for it answered.
    async fn put(&self, engine: &Engine, state: &mut State, turn: u32, change: Change) -> Result<(), Over> {
        let ends = matches!(&change, Change::Status(update) if update.status.state.is_terminal());
        if !ends {
            return self.put_with(engine, state, turn, change, With::default()).await;
        }
        loop {
            if engine.store.shared().is_some() {
                Box::pin(self.find_waiting(engine, state)).await.map_err(|_| Over::NotKept)?;
            }
            if !state.waiting.is_empty() {
                Box::pin(self.take_in_waiting(engine, state)).await?;
            }
            match self.put_with(engine, state, turn, change.clone(), With::default()).await {
                // Another one has come meanwhile.
                Err(Over::NotKept) if std::mem::take(&mut state.more_waits) => {}
                done => return done,
            }
        }
    }

    async fn put_with(
        &self,
        engine: &Engine,
        state: &mut State,
        turn: u32,
        change: Change,
        with: With<'_>,
    ) -> Result<(), Over> {
        let mut task = (*state.task).clone();
        match task.apply(&change) {
            Ok(Applied::AsAsked) => {}
            Ok(Applied::BegunInstead) => {
                tracing::warn!(task = %self.id, "the agent appends to an artifact that is not there; begun anew");
            }
            Err(Refused::Ended(_)) => return Err(Over::Ended),
            Err(refused @ (Refused::BackToSubmitted | Refused::OtherTask)) => {
                tracing::error!(task = %self.id, %refused, "the agent said something impossible");
                return Err(Over::Ended);
            }
        }
        let written = if task.status.state.is_terminal() { Some(Written::of(&task)) } else { None };
        let written = written.transpose().map_err(|cause| {
            tracing::error!(task = %self.id, %cause, "the task could not be written");
            Over::NotKept
        })?;
        let number = state.number + 1;
        let event = Arc::new(Event::new(number, turn, change));
        let (owner, base_url) = (self.owner.clone(), self.base_url.clone());
        let record = Record { task: Arc::new(task), number, owner, base_url };
        let step = Step {
            record: &record,
            event: &event,
            written: written.as_ref(),
            webhooks: !state.configs.is_empty(),
            waited: with.waited,
            sent: with.sent,
        };
        match engine.store.keep(&step).await {
            Ok(()) => {}
            Err(StoreError::Moved) => {
                tracing::warn!(task = %self.id, "the task is another process's now");
                return Err(Over::Moved);
            }
            Err(StoreError::Waiting) => {
                state.more_waits = true;
                return Err(Over::NotKept);
            }
            Err(cause) => {
                tracing::error!(task = %self.id, %cause, "a change was not kept");
                return Err(Over::NotKept);
            }
        }
        state.task = record.task;
        state.written = written;
        let shown = event.is_shown();
        self.happened(engine, state, event);
        if shown {
            state.configs.iter().for_each(|config| engine.pusher.wake(&self.id, config));
        }
        Ok(())
    }

    /// Something that is kept has happened to the task: it is told, and those who wait for it are answered.
    pub fn happened(&self, engine: &Engine, state: &mut State, event: Arc<Event>) {
        state.number = event.number;
        let (turn, new) = (event.turn, event.state());
        self.log.tell(event);
        if new == Some(TaskState::AuthRequired) {
            engine.approval_is_asked(&state.task);
        }
        if new.is_some_and(|new| new.phase().settles()) {
            self.settle(engine, state, turn);
        }
    }

    /// The task is about to end: messages that wait beside it, and whose callers were already answered, enter the
    /// history before the last status (DECISIONS O9).
    async fn take_in_waiting(&self, engine: &Engine, state: &mut State) -> Result<(), Over> {
        let turn = state.running.as_ref().map_or(state.turns, |running| running.turn);
        while let Some(at) = state.waiting.iter().position(|(_, waits)| waits.asker.mode == Mode::Immediate) {
            let change = Change::Message(state.waiting[at].1.message.clone());
            self.put_with(engine, state, turn, change, With { waited: true, sent: None }).await?;
            state.waiting.remove(at);
        }
        Ok(())
    }

    /// A turn settled: its caller is answered. If the task ended, so is everybody else.
    pub fn settle(&self, engine: &Engine, state: &mut State, turn: u32) {
        state.over = true;
        let ended = state.task.status.state.is_terminal();
        let (settled, rest) = std::mem::take(&mut state.askers).into_iter().partition(|(own, _)| ended || *own == turn);
        state.askers = rest;
        for (_, asker) in settled {
            let asker: Asker = asker;
            let _ = asker.answer.send(Ok(Sent::Task(state.told())));
        }
        if ended {
            for (_, incoming) in state.waiting.drain(..) {
                if incoming.asker.mode == Mode::Blocking {
                    let refused = Error::unsupported_in(&self.id, state.task.status.state);
                    incoming.asker.attempt.becomes(Outcome::Error(refused.clone()));
                    let _ = incoming.asker.answer.send(Err(refused));
                }
            }
            state.attempts.drain(..).for_each(|attempt| engine.attempts.over(&attempt));
            engine.forget(&self.id);
        }
    }

    /// Keeps a webhook and opens its queue.
    pub async fn add_config(
        &self,
        engine: &Engine,
        state: &mut State,
        mut config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, Error> {
        config.task_id = Some(self.id.clone());
        if config.id.is_none() {
            config.id = protocol::ConfigId::new(engine.ids.next()).ok();
        }
        let Some(id) = config.id.clone() else { return Err(ErrorKind::Internal.into()) };
        engine.store.put_config(&self.id, &config).await.map_err(|cause| engine.internal(&cause))?;
        engine.pusher.discard(&self.id, &id);
        state.configs.retain(|known| *known != id);
        if !state.task.status.state.is_terminal() {
            state.configs.push(id);
        }
        Ok(config)
    }

    /// Takes a webhook away with what it had not got yet.
    pub async fn drop_config(&self, engine: &Engine, id: &ConfigId) -> Result<(), StoreError> {
        let mut state = self.lock().await;
        engine.store.delete_config(&self.id, id).await?;
        engine.pusher.discard(&self.id, id);
        state.configs.retain(|known| known != id);
        Ok(())
    }
}

/// What is kept together with a message.
#[derive(Debug, Default)]
struct With<'a> {
    /// It waited beside the task and does not any more.
    waited: bool,
    /// As it was sent, if it is to be remembered.
    sent: Option<&'a Message>,
}

/// The number of every turn that another process has. No turn here has it.
pub(crate) const ELSEWHERE: u32 = 0;
/// How often a turn is tried for when another process has just had it.
pub(crate) const CLAIMS: usize = 20;
/// The pause before the end of a turn is kept again, when the store failed. It doubles with each further failure.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(50);

impl State {
    /// The task as it is now, for a caller.
    pub fn told(&self) -> Told {
        Told::both(self.task.clone(), self.written.clone())
    }

    /// Says in what the agent made when that was, if the client wants to know.
    fn stamp(&self, engine: &Engine, change: &mut Change) {
        let Some(timestamps) = self.timestamps else { return };
        match change {
            Change::Message(_) => {}
            Change::Status(TaskStatusUpdateEvent { status, .. }) => {
                if let (Some(message), Some(now)) = (&mut status.message, status.timestamp) {
                    timestamps.stamp_message(Arc::make_mut(message), now);
                }
            }
            Change::Artifact(update) => {
                timestamps.stamp_artifact(Arc::make_mut(&mut update.artifact), engine.clock.now());
            }
        }
    }
}
