//! Turns: how one begins, for a message or without one, waits until it may, and how it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::{Change, Error, ErrorKind, Message, MessageId, Role, Task, TaskId, TaskState, Timestamp, Timestamps};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::cancel::CANCELED;
use super::{Asker, CLAIMS, FIRST_PAUSE, Incoming, Mode, Slot, State, With};
use crate::agent::{Start, Words};
use crate::attempt::Outcome;
use crate::engine::{Engine, Sent};
use crate::hub::{Ends, Reader};
use crate::say::Over;
use crate::store::StoreError;

/// A turn that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub turn: u32,
    pub stop: CancellationToken,
    /// The client asked for the end of the task.
    pub canceled: AtomicBool,
    /// The work did not heed `stop` and is dropped.
    pub kill: Notify,
    ended: AtomicBool,
    /// The store has failed in the middle of it; it ends when the store is back.
    broken: AtomicBool,
    end: Notify,
}

impl Running {
    pub fn new(turn: u32, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            turn,
            stop,
            canceled: AtomicBool::new(false),
            kill: Notify::new(),
            ended: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            end: Notify::new(),
        })
    }

    /// Waits until the turn has ended.
    pub async fn ended(&self) {
        self.waits(|| self.ended.load(Ordering::Acquire)).await;
    }

    /// Waits until the turn has ended, or cannot because the store has failed.
    pub async fn ended_or_broken(&self) {
        self.waits(|| self.ended.load(Ordering::Acquire) || self.broken.load(Ordering::Acquire)).await;
    }

    pub async fn waits(&self, over: impl Fn() -> bool) {
        loop {
            let woken = self.end.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if over() {
                return;
            }
            woken.await;
        }
    }

    /// Tells the work to stop, and drops it if it does not within the limit.
    pub fn stop_within(self: Arc<Self>, limit: Duration) {
        self.stop.cancel();
        tokio::spawn(async move {
            if tokio::time::timeout(limit, self.ended()).await.is_err() {
                self.kill.notify_one();
            }
        });
    }

    /// The store has failed in the middle of it.
    pub fn breaks(&self) {
        self.broken.store(true, Ordering::Release);
        self.end.notify_waiters();
    }

    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.end.notify_waiters();
    }
}

/// A turn that is about to run.
#[derive(Debug)]
pub(crate) struct Begun {
    pub running: Arc<Running>,
    pub start: Start,
    pub message: Arc<Message>,
    pub task: Arc<Task>,
    pub accepted_output_modes: Arc<[String]>,
}

/// What a decision that counts has begun.
#[derive(Debug)]
pub(crate) struct Decided {
    /// Its turn; none while the turn that asked for it is about to return, which then begins it.
    pub begun: Option<Begun>,
    /// Hears the first thing that happens after it.
    pub told: Reader,
}

impl Slot {
    /// Begins the first turn of a new task: answers a caller who does not wait, and remembers one who does.
    pub async fn first_turn(&self, stop: CancellationToken, asker: Asker) -> Arc<Running> {
        let mut state = self.lock().await;
        state.turns = 1;
        let running = Running::new(1, stop);
        state.running = Some(running.clone());
        state.timestamps = asker.timestamps;
        state.attempts.push(asker.attempt.clone());
        state.place(&self.log, 1, asker);
        running
    }

    /// Takes a message to a task that is already there. Its turn begins at once when the agent has not got the turn;
    /// the caller then runs what comes back. Otherwise it waits beside the task.
    pub async fn take(self: &Arc<Self>, engine: &Engine, mut incoming: Incoming) -> Option<Begun> {
        let mut state = self.lock().await;
        let refuse = |incoming: Incoming, error: Error| {
            incoming.asker.attempt.becomes(Outcome::Error(error.clone()));
            let _ = incoming.asker.answer.send(Err(error));
            None
        };
        if let Err(error) = self.hear(engine, &mut state).await {
            return refuse(incoming, error);
        }
        let context_id = state.task.context_id.clone();
        if incoming.message.context_id.is_some() && incoming.message.context_id != context_id {
            return refuse(incoming, Error::invalid("message.contextId", "contextId is not that of the task"));
        }
        if !state.task.status.state.phase().takes_messages() {
            let error = Error::unsupported_in(&self.id, state.task.status.state);
            return refuse(incoming, error);
        }
        let message = Arc::make_mut(&mut incoming.message);
        message.context_id = context_id;
        message.task_id = Some(self.id.clone());
        let mut free = false;
        for _ in 0..CLAIMS {
            free = match state.running {
                Some(_) => false,
                None => match Box::pin(self.claim(engine, &mut state)).await {
                    Ok(free) => free,
                    Err(error) => return refuse(incoming, error),
                },
            };
            if free || incoming.asker.mode != Mode::Immediate || !state.task.status.state.phase().takes_messages() {
                break;
            }
            // Its caller goes away believing that the agent has it.
            match engine.store.wait(&self.id, &incoming.message).await {
                Ok(()) => break,
                // The process that had the turn has just given it back.
                Err(StoreError::Moved) => {
                    if let Err(error) = Box::pin(self.hear(engine, &mut state)).await {
                        return refuse(incoming, error);
                    }
                }
                Err(cause) => return refuse(incoming, engine.internal(&cause)),
            }
        }
        if !state.task.status.state.phase().takes_messages() {
            let error = Error::unsupported_in(&self.id, state.task.status.state);
            return refuse(incoming, error);
        }
        state.turns += 1;
        let turn = state.turns;
        incoming.asker.attempt.becomes(Outcome::Turn(self.clone(), turn));
        state.attempts.push(incoming.asker.attempt.clone());
        if free {
            return self.begin(engine, &mut state, turn, incoming, false).await;
        }
        // One turn at a time.
        if let Some(config) = incoming.config.take()
            && let Err(error) = self.add_config(engine, &mut state, config).await
        {
            return refuse(incoming, error);
        }
        let (unused, _) = oneshot::channel();
        match incoming.asker.mode {
            Mode::Blocking => {}
            Mode::Immediate => {
                let answer = std::mem::replace(&mut incoming.asker.answer, unused);
                let _ = answer.send(Ok(Sent::Task(state.told())));
                if state.elsewhere {
                    // The process that has the turn finds it.
                    return None;
                }
            }
            Mode::Streaming => {
                let answer = std::mem::replace(&mut incoming.asker.answer, unused);
                let reader = Reader::attach(&self.log, state.task.clone(), Ends::WithTurn(turn));
                let _ = answer.send(Ok(Sent::Stream(reader)));
            }
        }
        state.waiting.push_back((turn, incoming));
        None
    }

    /// Begins the turn of a message, which may have waited beside the task.
    pub async fn begin(
        &self,
        engine: &Engine,
        state: &mut State,
        turn: u32,
        incoming: Incoming,
        waited: bool,
    ) -> Option<Begun> {
        let Incoming { message, accepted_output_modes, config, asker } = incoming;
        let waited = waited && asker.mode == Mode::Immediate;
        let attempt = asker.attempt.clone();
        let waits = matches!(state.task.status.state, TaskState::InputRequired | TaskState::AuthRequired);
        let start = if waits { Start::Answer } else { Start::Message };
        state.over = false;
        let running = Running::new(turn, engine.stop_token());
        state.running = Some(running.clone());
        state.timestamps = asker.timestamps;
        let with = With { waited, sent: engine.attempts.remembers().then_some(&*attempt.message) };
        let mut kept = self.put_with(engine, state, turn, Change::Message(message.clone()), with).await;
        let (mode, mut late) = (asker.mode, None);
        if kept.is_ok() {
            if mode == Mode::Immediate {
                late = Some(asker)
            } else {
                state.place(&self.log, turn, asker)
            }
            if let Some(config) = config
                && let Err(error) = self.add_config(engine, state, config).await
            {
                tracing::warn!(task = %self.id, %error, "a webhook that came with a message was not taken");
            }
            kept = self.set(engine, state, TaskState::Working, Words(None)).await;
        } else {
            let _ = asker.answer.send(Err(ErrorKind::Internal.into()));
        }
        if let Some(asker) = late {
            let _ = asker.answer.send(Ok(Sent::Task(state.told())));
        }
        if kept.is_err() {
            for (_, asker) in state.askers.extract_if(.., |(own, _)| *own == turn) {
                let _ = asker.answer.send(Err(ErrorKind::Internal.into()));
            }
            state.running = None;
            running.end();
            self.release(engine).await;
            return None;
        }
        Some(Begun { running, start, message, task: state.task.clone(), accepted_output_modes })
    }

    /// The task as it is now, wherever it changed last.
    pub async fn heard(&self, engine: &Engine) -> Result<Arc<Task>, Error> {
        let mut state = self.lock().await;
        self.hear(engine, &mut state).await?;
        Ok(state.task.clone())
    }

    /// Begins the turn of what was decided about a task that waits for an approval. `None` when it waits for none, or not
    /// in the status that was decided about.
    pub async fn decide(&self, engine: &Engine, start: Start, about: Wait) -> Result<Option<Decided>, Error> {
        let mut state = self.lock().await;
        for _ in 0..CLAIMS {
            self.hear(engine, &mut state).await?;
            if !state.elsewhere {
                break;
            }
            // The turn that asked for it is about to return.
            drop(state);
            tokio::time::sleep(FIRST_PAUSE).await;
            state = self.lock().await;
        }
        let waits = Wait::of(&state.task).is_some_and(|now| now == about);
        let waits = waits && state.next.is_none() && state.waiting.is_empty();
        // A turn that runs and is not over was begun by the first of two approvals.
        if !waits || (state.running.is_some() && !state.over) {
            return Ok(None);
        }
        let mut told = Reader::attach(&self.log, state.task.clone(), Ends::WithTask);
        if state.running.is_some() {
            state.next = Some(start);
            told.resume_after(state.number);
            return Ok(Some(Decided { begun: None, told }));
        }
        if !self.claim(engine, &mut state).await? {
            return Ok(None);
        }
        // It may have been approved elsewhere since it was heard of.
        if Wait::of(&state.task) != Some(about) {
            self.release(engine).await;
            return Ok(None);
        }
        told.resume_after(state.number);
        Ok(Some(Decided { begun: Some(self.begin_without_message(engine, &mut state, start)), told }))
    }

    pub fn begin_without_message(&self, engine: &Engine, state: &mut State, start: Start) -> Begun {
        state.over = false;
        state.turns += 1;
        let running = Running::new(state.turns, engine.stop_token());
        state.running = Some(running.clone());
        state.timestamps = Timestamps::of_task(&state.task);
        let last = state.task.history.iter().rev().find(|message| message.role == Role::User);
        let message = last.cloned().unwrap_or_else(|| Arc::new(nobody(&self.id)));
        Begun { running, start, message, task: state.task.clone(), accepted_output_modes: Arc::default() }
    }

    /// Goes on with a task that a process has left: the turn of a message that waited, or the turn that was broken off
    /// if the agent can go on with it; else the task fails.
    pub async fn resume(&self, engine: &Engine) -> Result<Option<Begun>, StoreError> {
        let mut state = self.lock().await;
        if state.running.is_some() || state.task.status.state.is_terminal() {
            return Ok(None);
        }
        if let Some(shared) = engine.store.shared()
            && let Some(news) = shared.since(&self.id, state.number).await?
            && (news.record.is_some() || !news.events.is_empty())
        {
            // It is this process's now, but there is more to hear.
            self.hear(engine, &mut state).await.map_err(|_| StoreError::failed("a task that was left"))?;
        }
        state.elsewhere = false;
        self.find_waiting(engine, &mut state).await?;
        if state.task.status.state.phase().settles() {
            let next = self.next(engine, &mut state).await;
            if next.is_none() {
                self.release(engine).await;
            }
            return Ok(next);
        }
        if engine.resumes(&state.task) {
            return Ok(Some(self.begin_without_message(engine, &mut state, Start::Restart)));
        }
        state.turns += 1;
        match self.set(engine, &mut state, TaskState::Failed, RESTARTED.into()).await {
            Err(Over::NotKept) => Err(StoreError::failed("the end of a task that was broken off")),
            Ok(()) | Err(_) => Ok(None),
        }
    }

    /// A turn's work has returned. If it left the task open, the task fails or is canceled. Gives the next turn.
    pub async fn returned(&self, engine: &Engine, running: &Arc<Running>, how: Returned) -> Option<Begun> {
        let mut pause = FIRST_PAUSE;
        let mut state = loop {
            let mut state = self.lock().await;
            if state.task.status.state.is_terminal() {
                break state;
            }
            match Box::pin(self.conclude(engine, &mut state, running, &how)).await {
                // The store failed. The task must not stand there as if somebody worked on it, so this goes on until
                // the store is back, and meanwhile the turn counts as running.
                Err(Over::NotKept) => {
                    self.break_off(&mut state, running.turn);
                    drop(state);
                }
                Err(Over::Moved) => {
                    self.break_off(&mut state, running.turn);
                    match Box::pin(self.catch_up(engine, &mut state)).await {
                        // It had been kept after all when the store failed in the middle of saying so.
                        Ok(true) if !state.task.status.state.phase().settles() => drop(state),
                        Ok(true) => break state,
                        // Whoever has the task now ends it; this process only looks on.
                        Ok(false) => {
                            state.running = None;
                            running.end();
                            return None;
                        }
                        Err(error) if error.kind() != ErrorKind::Internal => {
                            state.running = None;
                            running.end();
                            return None;
                        }
                        Err(_) => drop(state),
                    }
                }
                Ok(()) | Err(_) => break state,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        running.end();
        state.running = None;
        if state.task.status.state.is_terminal() {
            return None;
        }
        if engine.store.shared().is_none() {
            return Box::pin(self.next(engine, &mut state)).await;
        }
        if let Err(cause) = self.find_waiting(engine, &mut state).await {
            tracing::warn!(task = %self.id, %cause, "messages beside the task wait longer");
        }
        let next = Box::pin(self.next(engine, &mut state)).await;
        if next.is_none() {
            self.release(engine).await;
        }
        next
    }

    /// The next turn, if something waits for it.
    pub async fn next(&self, engine: &Engine, state: &mut State) -> Option<Begun> {
        if state.task.status.state.is_terminal() {
            return None;
        }
        if let Some(start) = state.next.take() {
            return Some(self.begin_without_message(engine, state, start));
        }
        while let Some((turn, incoming)) = state.waiting.pop_front() {
            if let Some(begun) = self.begin(engine, state, turn, incoming, true).await {
                return Some(begun);
            }
        }
        None
    }

    /// Ends a task whose turn has returned without a question, a need for approval or an end.
    pub async fn conclude(
        &self,
        engine: &Engine,
        state: &mut State,
        running: &Running,
        how: &Returned,
    ) -> Result<(), Over> {
        if state.task.status.state.is_terminal() {
            return Ok(());
        }
        if running.canceled.load(Ordering::Acquire) {
            return self.set(engine, state, TaskState::Canceled, CANCELED.into()).await;
        }
        if state.over {
            return Ok(());
        }
        tracing::warn!(task = %self.id, "{}", how.log());
        let stopped = running.stop.is_cancelled() && !matches!(how, Returned::TooLong);
        let words = if stopped { Returned::Killed.words() } else { how.words() };
        self.set(engine, state, TaskState::Failed, words.into()).await
    }
}

/// What a task waits for while it needs an approval: tells one need from the next one of the same task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    /// When it was asked for.
    pub since: Option<Timestamp>,
    /// The message that asks.
    message: Option<MessageId>,
}

impl Wait {
    /// None when the task waits for no approval.
    pub fn of(task: &Task) -> Option<Self> {
        let status = &task.status;
        let message = status.message.as_ref().map(|message| message.message_id.clone());
        (status.state == TaskState::AuthRequired).then_some(Self { since: status.timestamp, message })
    }
}

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What the server says of a task whose process died.
const RESTARTED: &str = "The agent restarted.";

/// A message in nobody's name, for a task without a history.
fn nobody(task: &TaskId) -> Message {
    let id = MessageId::new(task.as_str());
    let id = id.unwrap_or_else(|_| unreachable!("a task id is never empty"));
    Message::new(id, Role::User, Vec::new())
}

/// How a turn's work came back.
#[derive(Debug)]
pub(crate) enum Returned {
    /// By itself.
    Plainly,
    /// With an error.
    Fault(crate::agent::Fault),
    /// With a panic.
    Panic,
    /// It was dropped: it did not stop when told to.
    Killed,
    /// It took longer than a turn may take.
    TooLong,
}

impl Returned {
    /// What the client reads. Causes stay in the log.
    fn words(&self) -> &'static str {
        match self {
            Self::Plainly => "The agent stopped without a result.",
            Self::Fault(_) | Self::Panic => "The agent failed.",
            Self::Killed => "The agent was stopped.",
            Self::TooLong => "The agent took too long and was stopped.",
        }
    }

    fn log(&self) -> String {
        match self {
            Self::Plainly => "the agent's turn returned without an end, a question or a need for approval".to_owned(),
            Self::Fault(cause) => format!("the agent's turn failed: {cause}"),
            Self::Panic => "the agent's turn panicked".to_owned(),
            Self::Killed => "the agent's turn was dropped".to_owned(),
            Self::TooLong => "the agent's turn took longer than --turn-limit".to_owned(),
        }
    }
}
