//! The one owner of a live task. Everything that happens to the task happens under its lock: drawn, kept, then told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::task::{Applied, Refused};
use protocol::{
    Change, ConfigId, Error, ErrorKind, Message, MessageId, Role, Task, TaskId, TaskPushNotificationConfig, TaskState,
    TaskStatus, TaskStatusUpdateEvent, Timestamps,
};
use tokio::sync::{Mutex, MutexGuard, Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::agent::{Start, Words};
use crate::attempt::Attempt;
use crate::engine::{Engine, Sent};
use crate::hub::{Ends, Event, Log, Reader};
use crate::say::Over;
use crate::store::{Principal, Record, Step, StoreError};
use crate::told::{Told, Written};

/// How a caller wants to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// When the turn has settled.
    Blocking,
    /// As soon as there is a task.
    Immediate,
    /// With a stream.
    Streaming,
}

/// A caller who waits for an answer.
#[derive(Debug)]
pub(crate) struct Asker {
    pub mode: Mode,
    pub answer: oneshot::Sender<Result<Sent, Error>>,
    pub attempt: Arc<Attempt>,
    /// What the agent makes in this caller's turn says when it was made.
    pub timestamps: Option<Timestamps>,
}

/// A message with what belongs to it, before its turn starts.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub message: Arc<Message>,
    pub accepted_output_modes: Arc<[String]>,
    pub config: Option<TaskPushNotificationConfig>,
    pub asker: Asker,
}

impl Incoming {
    /// A message whose caller was answered by a process that is gone.
    fn answered(owner: &Principal, message: Message) -> Self {
        let (answer, _) = oneshot::channel();
        let message = Arc::new(message);
        let attempt = Attempt::new(owner, &message);
        let asker = Asker { mode: Mode::Immediate, answer, attempt, timestamps: None };
        Self { message, accepted_output_modes: Arc::default(), config: None, asker }
    }
}

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
    fn new(turn: u32, stop: CancellationToken) -> Arc<Self> {
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
    async fn ended_or_broken(&self) {
        self.waits(|| self.ended.load(Ordering::Acquire) || self.broken.load(Ordering::Acquire)).await;
    }

    async fn waits(&self, over: impl Fn() -> bool) {
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

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.end.notify_waiters();
    }
}

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
    written: Option<Written>,
    /// The number of the newest event.
    number: u64,
    /// The number of the newest turn, running or waiting.
    turns: u32,
    pub running: Option<Arc<Running>>,
    /// The running turn has asked, or needs an approval: its next words are refused, and it is about to return.
    over: bool,
    /// An approval, refusal or expiry that came before the turn that asked for it had returned.
    next: Option<Start>,
    /// Callers who wait for a turn to settle.
    askers: Vec<(u32, Asker)>,
    /// Messages beside the task, each with the number of its turn to be.
    waiting: VecDeque<(u32, Incoming)>,
    /// The webhooks.
    configs: Vec<ConfigId>,
    /// What is made in the running turn says when it was made. A turn that no message started does as the one before.
    timestamps: Option<Timestamps>,
    /// The attempts that came to this task; they are over when it ends.
    attempts: Vec<Arc<Attempt>>,
    /// Another process has the turn.
    elsewhere: bool,
    /// The task did not end yet, as a message waits beside it that this process has not seen.
    more_waits: bool,
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
    fn break_off(&self, state: &mut State, turn: u32) {
        for (_, asker) in state.askers.extract_if(.., |(own, _)| *own == turn) {
            let _ = asker.answer.send(Err(ErrorKind::Internal.into()));
        }
        if let Some(running) = &state.running {
            running.broken.store(true, Ordering::Release);
            running.end.notify_waiters();
        }
        self.log.cut();
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

    /// Takes up the messages that wait beside the task and that this process does not know of.
    async fn find_waiting(&self, engine: &Engine, state: &mut State) -> Result<(), StoreError> {
        for message in engine.store.waiting(&self.id).await? {
            if !state.waiting.iter().any(|(_, waits)| waits.message.message_id == message.message_id) {
                state.turns += 1;
                let turn = state.turns;
                state.waiting.push_back((turn, Incoming::answered(&self.owner, message)));
            }
        }
        Ok(())
    }

    /// Hears what other processes did to the task, unless this one has the turn.
    pub async fn hear(&self, engine: &Engine, state: &mut State) -> Result<(), Error> {
        if engine.store.shared().is_none() || state.running.is_some() || state.task.status.state.is_terminal() {
            return Ok(());
        }
        self.catch_up(engine, state).await.map(drop)
    }

    /// Comes to where the task stands in the store. Whether the turn is this process's.
    async fn catch_up(&self, engine: &Engine, state: &mut State) -> Result<bool, Error> {
        let Some(shared) = engine.store.shared() else {
            let record = engine.store.load(&self.id).await.map_err(|cause| engine.internal(&cause))?;
            let record = record.filter(|record| record.number > state.number);
            let record = record.ok_or_else(|| Error::task_not_found(&self.id))?;
            self.skip_to(engine, state, record);
            return Ok(true);
        };
        let news = shared.since(&self.id, state.number).await.map_err(|cause| engine.internal(&cause))?;
        let Some(news) = news else {
            engine.forget(&self.id);
            return Err(Error::task_not_found(&self.id));
        };
        state.elsewhere = news.elsewhere;
        if let Some(record) = news.record {
            self.skip_to(engine, state, record);
        }
        for event in news.events {
            let mut task = (*state.task).clone();
            if let Err(refused) = task.apply(&event.change) {
                tracing::error!(task = %self.id, %refused, "another process kept something impossible");
                return Err(ErrorKind::Internal.into());
            }
            state.task = Arc::new(task);
            // Each process numbers the turns that it knows of.
            self.happened(engine, state, Arc::new(Event::new(event.number, ELSEWHERE, event.change.clone())));
        }
        Ok(news.here)
    }

    /// The task stands further on than was heard.
    fn skip_to(&self, engine: &Engine, state: &mut State, record: Record) {
        state.task = record.task;
        state.number = record.number;
        self.log.skip_to(record.number);
        if state.task.status.state.phase().settles() {
            self.settle(engine, state, ELSEWHERE);
        }
    }

    /// Another process did something to the task: this one hears it, and takes the turn if something waits here and
    /// nobody has it.
    pub async fn stirred(&self, engine: &Engine) -> Option<Begun> {
        let mut state = self.lock().await;
        if state.running.is_some() {
            // A webhook may have been added elsewhere.
            if let Ok(configs) = engine.store.configs(&self.id).await {
                state.configs = configs.into_iter().filter_map(|config| config.id).collect();
            }
            return None;
        }
        self.hear(engine, &mut state).await.ok()?;
        if state.waiting.is_empty() || !self.claim(engine, &mut state).await.ok()? {
            return None;
        }
        let next = self.next(engine, &mut state).await;
        if next.is_none() {
            self.release(engine).await;
        }
        next
    }

    /// Takes the turn where several processes share the store. False when another one has it.
    async fn claim(&self, engine: &Engine, state: &mut State) -> Result<bool, Error> {
        let Some(shared) = engine.store.shared() else { return Ok(true) };
        for _ in 0..CLAIMS {
            if state.elsewhere || state.task.status.state.is_terminal() {
                return Ok(false);
            }
            match shared.claim(&self.id, state.number).await {
                Ok(true) => return Ok(true),
                Ok(false) => self.hear(engine, state).await?,
                Err(cause) => {
                    // It may have been taken all the same.
                    engine.release_later(&self.id);
                    return Err(engine.internal(&cause));
                }
            }
        }
        Ok(false)
    }

    /// Gives the turn back where several processes share the store. What fails here is mended when this process ends.
    async fn release(&self, engine: &Engine) {
        if let Some(shared) = engine.store.shared()
            && let Err(cause) = shared.release(&self.id).await
        {
            tracing::warn!(task = %self.id, %cause, "a task is not given back yet");
            engine.release_later(&self.id);
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
    fn happened(&self, engine: &Engine, state: &mut State, event: Arc<Event>) {
        state.number = event.number;
        let (turn, new) = (event.turn, event.state());
        self.log.tell(event);
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
    fn settle(&self, engine: &Engine, state: &mut State, turn: u32) {
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
                    incoming.asker.attempt.becomes(crate::attempt::Outcome::Error(refused.clone()));
                    let _ = incoming.asker.answer.send(Err(refused));
                }
            }
            state.attempts.drain(..).for_each(|attempt| engine.attempts.over(&attempt));
            engine.forget(&self.id);
        }
    }

    /// Takes a message to a task that is already there. Its turn begins at once when the agent has not got the turn;
    /// the caller then runs what comes back. Otherwise it waits beside the task.
    pub async fn take(self: &Arc<Self>, engine: &Engine, mut incoming: Incoming) -> Option<Begun> {
        let mut state = self.lock().await;
        let refuse = |incoming: Incoming, error: Error| {
            incoming.asker.attempt.becomes(crate::attempt::Outcome::Error(error.clone()));
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
        incoming.asker.attempt.becomes(crate::attempt::Outcome::Turn(self.clone(), turn));
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
    async fn begin(
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

    /// Begins a turn that no message started. `None` when the task waits for no approval.
    pub async fn approve(&self, engine: &Engine, start: Start) -> Result<Option<Option<Begun>>, Error> {
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
        let waits =
            state.task.status.state == TaskState::AuthRequired && state.next.is_none() && state.waiting.is_empty();
        // A turn that runs and is not over was begun by the first of two approvals.
        if !waits || (state.running.is_some() && !state.over) {
            return Ok(None);
        }
        if state.running.is_some() {
            state.next = Some(start);
            return Ok(Some(None));
        }
        if !self.claim(engine, &mut state).await? {
            return Ok(None);
        }
        // It may have been approved elsewhere since it was heard of.
        if state.task.status.state != TaskState::AuthRequired {
            self.release(engine).await;
            return Ok(None);
        }
        Ok(Some(Some(self.begin_without_message(engine, &mut state, start))))
    }

    fn begin_without_message(&self, engine: &Engine, state: &mut State, start: Start) -> Begun {
        state.over = false;
        state.turns += 1;
        let running = Running::new(state.turns, engine.stop_token());
        state.running = Some(running.clone());
        state.timestamps = Timestamps::of_task(&state.task);
        let last = state.task.history.iter().rev().find(|message| message.role == Role::User);
        let message = last.cloned().unwrap_or_else(|| Arc::new(nobody(&self.id)));
        Begun { running, start, message, task: state.task.clone(), accepted_output_modes: Arc::default() }
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
    async fn next(&self, engine: &Engine, state: &mut State) -> Option<Begun> {
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
    async fn conclude(
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

    /// Ends the task at the client's request.
    pub async fn cancel(&self, engine: &Engine) -> Result<Arc<Task>, Error> {
        let mut state = self.lock().await;
        self.hear(engine, &mut state).await?;
        let refuse = |task: &Task| Err(Error::not_cancelable(&self.id, task.status.state));
        if state.task.status.state.is_terminal() {
            return refuse(&state.task);
        }
        if state.running.is_none() && !self.claim(engine, &mut state).await? {
            return self.cancel_elsewhere(engine, state).await;
        }
        let Some(running) = state.running.clone() else {
            let kept = self.set(engine, &mut state, TaskState::Canceled, CANCELED.into()).await;
            return kept.map(|()| state.task.clone()).map_err(|_| ErrorKind::Internal.into());
        };
        running.canceled.store(true, Ordering::Release);
        running.stop.cancel();
        drop(state);
        if tokio::time::timeout(engine.limits.cancel, running.ended_or_broken()).await.is_err() {
            running.kill.notify_one();
            // The task is ended later only when the store fails.
            let _ = tokio::time::timeout(engine.limits.cancel, running.ended_or_broken()).await;
        }
        let task = self.snapshot().await;
        match task.status.state {
            TaskState::Canceled => Ok(task),
            state if state.is_terminal() => refuse(&task),
            _ => Err(ErrorKind::Internal.into()),
        }
    }

    /// Asks the process that has the turn to cancel it, and waits until it has.
    async fn cancel_elsewhere(&self, engine: &Engine, mut state: MutexGuard<'_, State>) -> Result<Arc<Task>, Error> {
        let Some(shared) = engine.store.shared() else { return Err(ErrorKind::Internal.into()) };
        if !state.task.status.state.is_terminal() {
            shared.ask_to_cancel(&self.id).await.map_err(|cause| engine.internal(&cause))?;
        }
        let until = tokio::time::Instant::now() + engine.limits.cancel * 2 + TAKEN_OVER_AFTER;
        loop {
            self.hear(engine, &mut state).await?;
            match state.task.status.state {
                TaskState::Canceled => return Ok(state.task.clone()),
                ended if ended.is_terminal() => return Err(Error::not_cancelable(&self.id, ended)),
                _ if tokio::time::Instant::now() > until => return Err(ErrorKind::Internal.into()),
                _ if state.running.is_some() || !state.elsewhere => {
                    // The turn has come here, or has ended without an end of the task.
                    drop(state);
                    return Box::pin(self.cancel(engine)).await;
                }
                _ => {}
            }
            drop(state);
            tokio::time::sleep(FIRST_PAUSE).await;
            state = self.lock().await;
        }
    }

    /// Waits for the turn that runs, if one does, here or elsewhere.
    pub async fn joined(self: &Arc<Self>, engine: &Engine, asker: Asker) {
        let turn = {
            let mut state = self.lock().await;
            if let Err(error) = self.hear(engine, &mut state).await {
                drop(state);
                asker.attempt.becomes(crate::attempt::Outcome::Error(error.clone()));
                let _ = asker.answer.send(Err(error));
                return;
            }
            match &state.running {
                Some(running) => running.turn,
                None if state.elsewhere => ELSEWHERE,
                None => state.turns,
            }
        };
        asker.attempt.becomes(crate::attempt::Outcome::Turn(self.clone(), turn));
        self.settled(turn, asker).await;
    }

    /// Waits for a turn to settle, whoever started it.
    pub async fn settled(&self, turn: u32, asker: Asker) {
        let mut state = self.lock().await;
        let elsewhere = turn == ELSEWHERE && state.elsewhere && !state.task.status.state.phase().settles();
        let open = elsewhere
            || state.running.as_ref().is_some_and(|running| running.turn == turn) && !state.over
            || state.waiting.iter().any(|(own, _)| *own == turn);
        let waits = match asker.mode {
            Mode::Blocking => open,
            Mode::Streaming => open || !state.task.status.state.is_terminal(),
            Mode::Immediate => false,
        };
        if waits {
            state.place(&self.log, turn, asker);
        } else {
            let _ = asker.answer.send(Ok(Sent::Task(state.told())));
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
const ELSEWHERE: u32 = 0;
/// How long it takes at most until the tasks of a process that is gone are another's.
const TAKEN_OVER_AFTER: Duration = Duration::from_secs(10);
/// How often a turn is tried for when another process has just had it.
const CLAIMS: usize = 20;
/// The pause before the end of a turn is kept again, when the store failed. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What the server says of a task whose process died.
const RESTARTED: &str = "The agent restarted.";
/// What the server says when a client ends a task.
const CANCELED: &str = "Canceled at the client's request.";

/// A message in nobody's name, for a task without a history.
fn nobody(task: &TaskId) -> Message {
    let id = MessageId::new(task.as_str());
    let id = id.unwrap_or_else(|_| unreachable!("a task id is never empty"));
    Message::new(id, Role::User, Vec::new())
}

impl State {
    /// The task as it is now, for a caller.
    fn told(&self) -> Told {
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

    /// Gives a caller its place: an answer, a stream, or a place among those who wait.
    fn place(&mut self, log: &Arc<Log>, turn: u32, asker: Asker) {
        match asker.mode {
            Mode::Blocking => self.askers.push((turn, asker)),
            Mode::Immediate => {
                let _ = asker.answer.send(Ok(Sent::Task(self.told())));
            }
            Mode::Streaming => {
                let reader = Reader::attach(log, self.task.clone(), Ends::WithTurn(turn));
                let _ = asker.answer.send(Ok(Sent::Stream(reader)));
            }
        }
    }
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
impl Saying for crate::say::Chunk {
    fn draw(self, _: &Engine, task: &Task) -> Option<Change> {
        Some(Change::Artifact(protocol::TaskArtifactUpdateEvent {
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
