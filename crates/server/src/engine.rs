//! Decides what each call does. Bindings decode a call and write its answer; everything between happens here.
//!
//! A call that may change something runs to its end even if its client goes away: it is polled in the connection at
//! first, and the first time it has to wait it moves to a task of its own.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use foldhash::HashMap;
use futures_util::FutureExt;
use protocol::call::{ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest};
use protocol::{
    Clock, ConfigId, ContextId, Error, ErrorKind, Ids, Message, Task, TaskId, TaskPushNotificationConfig, TaskState,
    Timestamp, Timestamps,
};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Job, Start};
use crate::attempt::{Attempt, Attempts, Outcome, Ticket};
use crate::gate::Gate;
use crate::hub::{Ends, Reader};
use crate::push::Pusher;
use crate::say::{Over, Say, Voice};
use crate::setup::{Limits, Setup};
use crate::slot::{Asker, Begun, Incoming, Mode, Returned, Running, Slot};
use crate::store::{
    Call, Created, GivenUp, Keep, Page, Place, Principal, Query, Record, Shown, Store, StoreError, Taken,
};
use crate::told::Told;

/// Who calls, and how the agent was reached.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// Whose tasks the call sees.
    pub principal: Principal,
    /// Where this caller reaches the agent.
    pub base_url: Arc<str>,
    /// What the agent makes for this call says when it was made.
    pub timestamps: Option<Timestamps>,
}

/// The answer to a message.
#[derive(Debug)]
pub(crate) enum Sent {
    Message(Arc<Message>),
    Task(Told),
    Stream(Reader),
}

/// An answer together with the ticket of its attempt.
pub(crate) struct Answered {
    pub sent: Sent,
    pub ticket: Ticket,
}

/// What is needed to make a task out of a message.
pub(crate) struct Birth {
    /// As it was sent.
    pub message: Arc<Message>,
    pub context_id: ContextId,
    pub caller: Caller,
    pub config: Option<TaskPushNotificationConfig>,
    pub asker: Asker,
}

/// What the agent's card promises, as far as calls are concerned.
#[derive(Debug, Clone)]
pub(crate) struct Promises {
    pub streaming: bool,
    pub push: bool,
    pub extended_card: bool,
    pub input_modes: Vec<String>,
}

pub(crate) struct Engine {
    agent: Arc<dyn Agent>,
    pub promises: Promises,
    pub store: Arc<dyn Store>,
    pub ids: Arc<dyn Ids>,
    pub clock: Arc<dyn Clock>,
    pub gate: Option<Arc<Gate>>,
    pub pusher: Arc<Pusher>,
    pub attempts: Attempts,
    pub limits: Limits,
    live: RwLock<HashMap<TaskId, Arc<Slot>>>,
    /// Tasks to be given back, or gone on with, when the shared store can be reached.
    releasing: Mutex<Vec<TaskId>>,
    /// Tasks of this process on which nobody works, and since when that is known.
    idle: Mutex<HashMap<TaskId, Instant>>,
    /// Held while what others have left is taken over.
    taking: tokio::sync::Mutex<()>,
    /// Fires when the server shuts down: nothing new is taken.
    closing: CancellationToken,
    /// Fires when the grace is over; the stop of every turn is its child.
    stop: CancellationToken,
}

/// The agent's own code in one turn.
type Work = Pin<Box<dyn Future<Output = Returned> + Send>>;

/// Runs a piece of work to its end, whoever waits for it: here if it does not have to wait, else in a task of its own.
/// `None` when it was lost to a panic.
pub(crate) async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    let mut work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(done) => Some(done),
        Poll::Pending => tokio::spawn(work).await.ok(),
    }
}

impl Engine {
    pub fn new(setup: &Setup, promises: Promises) -> Arc<Self> {
        Arc::new(Self {
            agent: setup.agent.clone(),
            promises,
            store: setup.store.clone(),
            ids: setup.ids.clone(),
            clock: setup.clock.clone(),
            gate: setup.gate.clone(),
            pusher: Arc::new(Pusher::new(
                setup.dial.clone(),
                setup.allow_local_webhooks,
                setup.store.clone(),
                setup.clock.clone(),
            )),
            attempts: Attempts::new(setup.dedupe),
            limits: setup.limits.clone(),
            live: RwLock::default(),
            releasing: Mutex::default(),
            idle: Mutex::default(),
            taking: tokio::sync::Mutex::default(),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
        })
    }

    pub fn stop_token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Whether the agent can go on with a task whose turn was broken off.
    pub fn resumes(&self, task: &Task) -> bool {
        self.agent.resumes(task)
    }

    /// Takes up what the process before has left, before the first call comes: turns that were broken off, messages that
    /// wait, and webhooks that have not got everything.
    pub async fn take_up(self: &Arc<Self>) -> Result<(), StoreError> {
        let left = self.store.unfinished().await?;
        if !left.is_empty() {
            tracing::info!("{} tasks were left by the process before", left.len());
        }
        for id in left {
            self.resume(&id).await?;
        }
        if let Some(shared) = self.store.shared() {
            // The others know of this process before it has a task.
            for id in shared.beat().await?.tasks {
                self.resume(&id).await?;
            }
        }
        for (task, config) in self.store.undelivered().await? {
            self.pusher.wake(&task, &config);
        }
        Ok(())
    }

    /// Goes on with a task that a process has left.
    async fn resume(self: &Arc<Self>, id: &TaskId) -> Result<(), StoreError> {
        let Some(record) = self.store.load(id).await? else { return Ok(()) };
        let (principal, base_url) = (record.owner.clone(), record.base_url.clone());
        let caller = Caller { principal, base_url, timestamps: None };
        let Ok(slot) = self.slot(&caller, id).await else {
            return Err(StoreError::failed("a task that was left could not be read"));
        };
        if let Some(begun) = slot.resume(self).await? {
            let engine = self.clone();
            tokio::spawn(async move { engine.run(slot, begun).await });
        }
        Ok(())
    }

    /// Lives together with the other processes that share the store, for as long as the server runs: says that this one
    /// lives, takes over what the dead have left, and hears what the others do.
    pub async fn live_together(self: Arc<Self>) {
        if self.store.shared().is_none() {
            return;
        }
        tokio::join!(self.clone().beat(), self.clone().listen());
    }

    async fn beat(self: Arc<Self>) {
        let Some(shared) = self.store.shared() else { return };
        // The others count from when a sign of life began, or later.
        let mut last = Instant::now();
        let (mut is_reached, mut works) = (true, true);
        loop {
            let began = Instant::now();
            let alone = last + ALONE_LIMIT;
            let beat = async {
                let beat = shared.beat();
                if works {
                    timeout_at(alone, beat).await.unwrap_or_else(|_| Err(StoreError::failed("no answer")))
                } else {
                    beat.await
                }
            };
            let pause = match beat.await {
                Ok(taken) => {
                    if taken.was_dead && works && began > alone {
                        self.drop_work("the other processes have taken over").await;
                    }
                    (last, is_reached, works) = (began, true, true);
                    let engine = self.clone();
                    tokio::spawn(async move { engine.take_over(taken).await });
                    BEAT_EVERY
                }
                Err(cause) => {
                    if std::mem::take(&mut is_reached) {
                        tracing::error!("the store that is shared is not reached: {cause}");
                    }
                    if works && Instant::now() >= alone {
                        // The others take over soon, if they are not cut off as well. Nothing may run twice.
                        self.drop_work("the store is not reached").await;
                        works = false;
                    }
                    BEAT_AGAIN
                }
            };
            let next = Instant::now() + pause;
            tokio::time::sleep_until(if works { next.min(last + ALONE_LIMIT) } else { next }).await;
        }
    }

    /// Goes on with what dead processes have left, and with what this one could not finish while the store was lost.
    async fn take_over(self: Arc<Self>, taken: Taken) {
        let _one_at_a_time = self.taking.lock().await;
        for id in &taken.tasks {
            tracing::info!(task = %id, "taken over from a process that is gone");
        }
        for id in &taken.cancel {
            self.cancel_here(id);
        }
        let mut left = taken.tasks;
        left.extend(std::mem::take(&mut *self.releasing.lock().unwrap_or_else(PoisonError::into_inner)));
        left.extend(self.without_work(taken.own).await);
        for id in left {
            if let Err(cause) = self.resume(&id).await {
                // It is this process's; the next beat tries again.
                tracing::warn!(task = %id, %cause, "not resumed yet");
                self.release_later(&id);
            }
        }
        match self.store.undelivered().await {
            Ok(left) => left.iter().for_each(|(task, config)| self.pusher.wake(task, config)),
            Err(cause) => tracing::warn!(%cause, "webhooks wait for the store"),
        }
    }

    /// The tasks that the store believes to be worked on here, but are not: it was lost when they were begun or given
    /// back. Only those of which that has been true for a while.
    async fn without_work(&self, own: Vec<TaskId>) -> Vec<TaskId> {
        let mut idle = HashMap::default();
        for id in own {
            let works = match self.live(&id) {
                Some(slot) => slot.lock().await.running.is_some(),
                None => false,
            };
            if !works {
                idle.insert(id, Instant::now());
            }
        }
        let mut known = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|id, _| idle.contains_key(id));
        for (id, since) in idle {
            known.entry(id).or_insert(since);
        }
        let old = known.extract_if(|_, since| since.elapsed() > IDLE_LIMIT);
        old.map(|(id, _)| id).collect()
    }

    async fn listen(self: Arc<Self>) {
        let Some(shared) = self.store.shared() else { return };
        loop {
            match shared.hear().await {
                Ok(calls) => {
                    for call in calls {
                        match call {
                            Call::Task(id) => {
                                if let Some(slot) = self.live(&id) {
                                    self.stir(slot);
                                }
                            }
                            Call::Everything => self.slots().into_iter().for_each(|slot| self.stir(slot)),
                        }
                    }
                }
                Err(cause) => {
                    tracing::warn!(%cause, "what the other processes do is not heard");
                    tokio::time::sleep(BEAT_EVERY).await;
                }
            }
        }
    }

    /// Another process did something to a task.
    fn stir(self: &Arc<Self>, slot: Arc<Slot>) {
        let engine = self.clone();
        tokio::spawn(async move {
            if let Some(shared) = engine.store.shared()
                && let Some(running) = slot.lock().await.running.clone()
                && let Ok(Some(news)) = shared.since(&slot.id, u64::MAX).await
            {
                if news.elsewhere {
                    running.stop_within(Duration::ZERO);
                } else if news.cancel {
                    engine.cancel_here(&slot.id);
                }
            }
            if let Some(begun) = slot.stirred(&engine).await {
                engine.run(slot, begun).await;
            }
        });
    }

    /// Cancels a task whose turn this process has, at the wish of another.
    fn cancel_here(self: &Arc<Self>, id: &TaskId) {
        let Some(slot) = self.live(id) else { return };
        let engine = self.clone();
        tokio::spawn(async move {
            if slot.lock().await.running.is_some() {
                let _ = slot.cancel(&engine).await;
            }
        });
    }

    /// A task of this process's that should be given back, or gone on with, when the store can be reached.
    pub fn release_later(&self, id: &TaskId) {
        self.releasing.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
    }

    /// Drops all work: its results cannot be kept, and others may be about to take over. Whoever follows a task must come
    /// back, perhaps to another process.
    async fn drop_work(&self, why: &str) {
        for slot in self.slots() {
            slot.log.cut();
            if let Some(running) = &slot.lock().await.running {
                tracing::error!(task = %slot.id, "the work is dropped: {why}");
                running.clone().stop_within(Duration::ZERO);
            }
        }
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Drops what need not be kept any longer, for as long as the server runs.
    pub async fn retain(self: Arc<Self>) {
        let Limits { keep, keep_tasks, keep_bytes, .. } = self.limits;
        if keep.is_none() && keep_tasks.is_none() && keep_bytes.is_none() {
            return;
        }
        loop {
            let age = keep.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
            let since = age.map(|age| Timestamp::from_millis(self.clock.now().millis().saturating_sub(age)));
            match self.store.retain(&Keep { since, tasks: keep_tasks, bytes: keep_bytes }).await {
                Ok(gone) => gone.iter().for_each(|id| self.forget(id)),
                Err(cause) => tracing::warn!(%cause, "old tasks are still there"),
            }
            tokio::time::sleep(RETAIN_EVERY).await;
        }
    }

    /// An error of the store's, for the client and for the log.
    pub fn internal(&self, cause: &dyn std::error::Error) -> Error {
        tracing::error!(%cause, "internal error");
        ErrorKind::Internal.into()
    }

    /// The task has ended; its owner is not needed any more.
    pub fn forget(&self, id: &TaskId) {
        self.live.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    fn live(&self, id: &TaskId) -> Option<Arc<Slot>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// The owner of a task that this caller may see.
    async fn slot(&self, caller: &Caller, id: &TaskId) -> Result<Arc<Slot>, Error> {
        let not_found = || Error::task_not_found(id);
        if let Some(slot) = self.live(id) {
            return if slot.owner == caller.principal { Ok(slot) } else { Err(not_found()) };
        }
        let record = self.store.load(id).await.map_err(|cause| self.internal(&cause))?;
        let record = record.filter(|record| record.owner == caller.principal).ok_or_else(not_found)?;
        if record.task.status.state.is_terminal() {
            return Ok(Arc::new(Slot::new(record, Vec::new())));
        }
        // A task that waits for somebody, read back after a restart.
        let configs = self.store.configs(id).await.map_err(|cause| self.internal(&cause))?;
        let configs = configs.into_iter().filter_map(|config| config.id).collect();
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        Ok(live.entry(id.clone()).or_insert_with(|| Arc::new(Slot::new(record, configs))).clone())
    }

    /// Sends a message. The ticket is to be told when the answer was written.
    pub async fn send(
        self: &Arc<Self>,
        caller: Caller,
        request: SendMessageRequest,
        streaming: bool,
    ) -> Result<Answered, Error> {
        if self.closing.is_cancelled() {
            tracing::debug!("a message came while the server shuts down");
            return Err(ErrorKind::Internal.into());
        }
        let configuration = request.configuration.unwrap_or_default();
        let mode = match (streaming, configuration.return_immediately) {
            (true, _) => Mode::Streaming,
            (false, true) => Mode::Immediate,
            (false, false) => Mode::Blocking,
        };
        for part in &request.message.parts {
            let media_type = part.media_type();
            if !self.promises.input_modes.iter().any(|mode| protocol::media::is(media_type, mode)) {
                return Err(Error::content_type(media_type));
            }
        }
        let config = configuration.task_push_notification_config;
        if let Some(config) = &config {
            self.check_config(config, "configuration.taskPushNotificationConfig.")?;
        }
        let message = Arc::new(request.message);
        let attempt = Attempt::new(&caller.principal, &message);
        let (answer, answered) = oneshot::channel();
        if let Some(first) = self.attempts.join(&attempt) {
            let asker = Asker { mode, answer, attempt: first.clone(), timestamps: caller.timestamps };
            let (engine, joined) = (self.clone(), first.clone());
            tokio::spawn(async move { engine.follow(joined, asker).await });
            let mut ticket = Ticket::new(self.clone(), attempt);
            // The first attempt is the one that counts.
            ticket.answered();
            return self.wait(answered, &first, &caller).await.map(|sent| Answered { sent, ticket });
        }
        let mut ticket = Ticket::new(self.clone(), attempt.clone());
        let asker = Asker { mode, answer, attempt: attempt.clone(), timestamps: caller.timestamps };
        if self.attempts.remembers() {
            let came_to = self.store.came_to(&caller.principal, &message).await;
            if let Some(task) = came_to.map_err(|cause| self.internal(&cause))? {
                Box::pin(self.rejoin(&caller, &task, asker)).await;
                return self.wait(answered, &attempt, &caller).await.map(|sent| Answered { sent, ticket });
            }
        }
        let accepted_output_modes = configuration.accepted_output_modes.into();
        let incoming = Box::new(Incoming { message, accepted_output_modes, config, asker });
        let work = self.clone().work(caller.clone(), incoming);
        let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
        if poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await.is_pending() {
            tokio::spawn(work);
        }
        let sent = self.wait(answered, &attempt, &caller).await;
        if let Err(error) = &sent {
            attempt.becomes(Outcome::Error(error.clone()));
            ticket.answered();
        }
        if let Ok(Sent::Task(task)) = &sent
            && !self.limits.push_first.is_zero()
            && let Ok(task) = task.task()
        {
            let _ = tokio::time::timeout(self.limits.push_first, self.pusher.idle(&task.id)).await;
        }
        sent.map(|sent| Answered { sent, ticket })
    }

    /// Waits for the answer; with `--blocking-limit`, only so long, and then gives the task as it is.
    async fn wait(
        &self,
        answered: oneshot::Receiver<Result<Sent, Error>>,
        attempt: &Attempt,
        caller: &Caller,
    ) -> Result<Sent, Error> {
        let lost = |_| Err(ErrorKind::Internal.into());
        let Some(limit) = self.limits.blocking else { return answered.await.unwrap_or_else(lost) };
        match tokio::time::timeout(limit, answered).await {
            Ok(answer) => answer.unwrap_or_else(lost),
            Err(_) => match attempt.outcome() {
                Some(Outcome::Turn(slot, _)) if slot.owner == caller.principal => {
                    Ok(Sent::Task(slot.snapshot().await.into()))
                }
                _ => Err(ErrorKind::Internal.into()),
            },
        }
    }

    /// Joins the first attempt to send the same message.
    async fn follow(&self, first: Arc<Attempt>, asker: Asker) {
        match first.known().await {
            Outcome::Message(message) => {
                let _ = asker.answer.send(Ok(Sent::Message(message)));
            }
            Outcome::Turn(slot, turn) => slot.settled(turn, asker).await,
            Outcome::Error(error) => {
                let _ = asker.answer.send(Err(error));
            }
        }
    }

    /// Joins the task that the same message, sent long ago or to another process, has come to.
    async fn rejoin(&self, caller: &Caller, task: &TaskId, asker: Asker) {
        let attempt = asker.attempt.clone();
        match self.slot(caller, task).await {
            Ok(slot) => slot.joined(self, asker).await,
            Err(error) => {
                attempt.becomes(Outcome::Error(error.clone()));
                let _ = asker.answer.send(Err(error));
            }
        }
        // The store remembers the first attempt; this one need not be found.
        self.attempts.over(&attempt);
    }

    /// All the work that one message starts: its turn, and the turns of what came meanwhile.
    ///
    /// It is allocated for each message, as are the futures of the agent's own turn, so what is seldom needed stands in
    /// boxes of its own.
    async fn work(self: Arc<Self>, caller: Caller, incoming: Box<Incoming>) {
        if let Some(id) = incoming.message.task_id.clone() {
            return Box::pin(self.follow_up(caller, id, *incoming)).await;
        }
        let Incoming { message, accepted_output_modes, config, asker } = *incoming;
        let context_id = message.context_id.clone();
        let Some(context_id) = context_id.or_else(|| ContextId::new(self.ids.next()).ok()) else { return };
        let stop = self.stop_token();
        let job = Job {
            start: Start::Message,
            message: message.clone(),
            task: None,
            context_id: context_id.clone(),
            base_url: caller.base_url.clone(),
            accepted_output_modes,
            stop: stop.clone(),
        };
        let birth = Box::new(Birth { message, context_id, caller, config, asker });
        let voice = Arc::new(Voice::new(self.clone(), stop, Some(birth)));
        let how = self.turn(job, &voice).await;
        // A turn that said nothing and did not reply leaves a failed task, which is there to be seen.
        let Ok((slot, running)) = voice.task().await.cloned() else { return };
        drop(voice);
        if let Some(begun) = slot.returned(&self, &running, how).await {
            Box::pin(self.run(slot, begun)).await;
        }
    }

    async fn follow_up(self: Arc<Self>, caller: Caller, id: TaskId, incoming: Incoming) {
        match self.slot(&caller, &id).await {
            Ok(slot) => {
                if let Some(begun) = slot.take(&self, incoming).await {
                    self.run(slot, begun).await;
                }
            }
            Err(error) => {
                let _ = incoming.asker.answer.send(Err(error));
            }
        }
    }

    /// Runs turns of a task until none is left.
    async fn run(self: &Arc<Self>, slot: Arc<Slot>, begun: Begun) {
        let mut next = Some(begun);
        while let Some(Begun { running, start, message, task, accepted_output_modes }) = next {
            let Some(context_id) = task.context_id.clone() else { return };
            let job = Job {
                start,
                message,
                task: Some(task),
                context_id,
                base_url: slot.base_url.clone(),
                accepted_output_modes,
                stop: running.stop.clone(),
            };
            let voice = Arc::new(Voice::of_task(self.clone(), slot.clone(), running.clone()));
            let how = self.turn(job, &voice).await;
            drop(voice);
            next = slot.returned(self, &running, how).await;
        }
    }

    /// Runs the agent's own code for one turn.
    async fn turn(&self, job: Job, voice: &Arc<Voice>) -> Returned {
        let direct = job.task.is_none() && self.agent.answers_directly(&job.message);
        let (agent, say) = (self.agent.clone(), Say { voice: voice.clone() });
        let mut work: Work = Box::pin(async move {
            match AssertUnwindSafe(async move { agent.turn(job, say).await }).catch_unwind().await {
                Ok(Ok(())) => Returned::Plainly,
                Ok(Err(fault)) => Returned::Fault(fault),
                Err(_) => Returned::Panic,
            }
        });
        match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
            Poll::Ready(how) => how,
            Poll::Pending => Box::pin(self.turn_that_waits(work, direct, voice)).await,
        }
    }

    /// Goes on with a turn that was not done at once.
    async fn turn_that_waits(&self, mut work: Work, direct: bool, voice: &Arc<Voice>) -> Returned {
        if !direct {
            // It has to wait: its client gets a task to follow. The work goes on meanwhile, as it may be the one that
            // makes the task.
            let mut born = std::pin::pin!(voice.task());
            let both = poll_fn(|context| match work.as_mut().poll(context) {
                Poll::Ready(how) => Poll::Ready(Some(how)),
                Poll::Pending => born.as_mut().poll(context).map(|_| None),
            });
            if let Some(how) = both.await {
                return how;
            }
        }
        let too_long = tokio::time::sleep(self.limits.turn);
        let killed = async {
            match voice.running() {
                Some(running) => running.kill.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            how = &mut work => return how,
            () = killed => return Returned::Killed,
            () = too_long => {}
        }
        voice.stop.cancel();
        let _ = tokio::time::timeout(self.limits.cancel, &mut work).await;
        Returned::TooLong
    }

    /// Makes the task of a first turn: drawn, kept, then told to whoever asked.
    pub async fn make_task(
        &self,
        birth: Box<Birth>,
        stop: CancellationToken,
    ) -> Result<(Arc<Slot>, Arc<Running>), Over> {
        let Birth { message, context_id, caller, config, asker } = *birth;
        let Ok(id) = TaskId::new(self.ids.next()) else { return Err(Over::NotKept) };
        let mut message = (*message).clone();
        message.context_id = Some(context_id.clone());
        message.task_id = Some(id.clone());
        let task = Task::submitted(id.clone(), context_id, Arc::new(message), self.clock.now());
        let record = Record { task: Arc::new(task), number: 0, owner: caller.principal, base_url: caller.base_url };
        let sent = self.attempts.remembers().then_some(&*asker.attempt.message);
        match self.store.create(&record, sent).await {
            Ok(Created::Here) => {}
            Ok(Created::Already(first)) => {
                let (principal, base_url) = (record.owner, record.base_url);
                let caller = Caller { principal, base_url, timestamps: caller.timestamps };
                Box::pin(self.rejoin(&caller, &first, asker)).await;
                return Err(Over::Ended);
            }
            Err(cause) => {
                let _ = asker.answer.send(Err(self.internal(&cause)));
                return Err(Over::NotKept);
            }
        }
        let slot = Arc::new(Slot::new(record, Vec::new()));
        self.live.write().unwrap_or_else(PoisonError::into_inner).insert(id, slot.clone());
        asker.attempt.becomes(Outcome::Turn(slot.clone(), 1));
        if let Some(config) = config {
            let mut state = slot.lock().await;
            if let Err(error) = Box::pin(slot.add_config(self, &mut state, config)).await {
                tracing::warn!(task = %slot.id, %error, "a webhook that came with a message was not taken");
            }
        }
        let running = slot.first_turn(stop, asker).await;
        Ok((slot, running))
    }

    pub async fn get(&self, caller: &Caller, id: &TaskId) -> Result<Told, Error> {
        let shown = self.store.show(id).await.map_err(|cause| self.internal(&cause))?;
        match shown {
            Some(Shown { owner, task }) if owner == caller.principal => Ok(task),
            _ => Err(Error::task_not_found(id)),
        }
    }

    pub async fn list(&self, caller: &Caller, request: &ListTasksRequest) -> Result<Page, Error> {
        let after = request.page_token.as_deref().map(Cursor::read).transpose()?;
        let query = Query {
            owner: caller.principal.clone(),
            context_id: request.context_id.clone(),
            status: request.status.filter(|state| *state != TaskState::Unspecified),
            since: request.status_timestamp_after,
            after,
            limit: request.page_size.and_then(|size| usize::try_from(size).ok()).unwrap_or(50),
        };
        self.store.list(&query).await.map_err(|cause| self.internal(&cause))
    }

    pub async fn cancel(self: &Arc<Self>, caller: &Caller, id: &TaskId) -> Result<Arc<Task>, Error> {
        let slot = self.slot(caller, id).await?;
        let engine = self.clone();
        let canceled = to_the_end(async move { slot.cancel(&engine).await }).await;
        canceled.unwrap_or_else(|| Err(ErrorKind::Internal.into()))
    }

    /// Follows a task. With the number of an event that the reader has seen, only what came after it, if it is held.
    pub async fn subscribe(
        &self,
        caller: &Caller,
        request: &SubscribeToTaskRequest,
        seen: Option<u64>,
    ) -> Result<Reader, Error> {
        let slot = self.slot(caller, &request.id).await?;
        let mut state = slot.lock().await;
        slot.hear(self, &mut state).await?;
        if state.task.status.state.is_terminal() {
            return Err(Error::unsupported_in(&slot.id, state.task.status.state));
        }
        let mut reader = Reader::attach(&slot.log, state.task.clone(), Ends::WithTask);
        drop(state);
        if let Some(seen) = seen {
            reader.resume_after(seen);
        }
        Ok(reader)
    }

    /// What is wrong with a text of a request that only this agent can tell.
    pub fn wrong(&self, field: &str, text: &str) -> Option<String> {
        match field {
            "pageToken" if !text.is_empty() => Cursor::read(text).err().map(|_| NOT_ONE_OF_OURS.to_owned()),
            "url" | "configuration.taskPushNotificationConfig.url" if self.promises.push => {
                self.pusher.wrong(text).map(str::to_owned)
            }
            _ => None,
        }
    }

    fn check_config(&self, config: &TaskPushNotificationConfig, field: &str) -> Result<(), Error> {
        if !self.promises.push {
            return Err(ErrorKind::PushNotificationNotSupported.into());
        }
        self.pusher.check(config, field)
    }

    fn push_is_supported(&self) -> Result<(), Error> {
        if self.promises.push { Ok(()) } else { Err(ErrorKind::PushNotificationNotSupported.into()) }
    }

    pub async fn create_config(
        self: &Arc<Self>,
        caller: &Caller,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, Error> {
        self.push_is_supported()?;
        let Some(id) = config.task_id.clone() else { return Err(Error::invalid("taskId", "taskId is required")) };
        let slot = self.slot(caller, &id).await?;
        self.check_config(&config, "")?;
        let engine = self.clone();
        let kept = to_the_end(async move {
            let mut state = slot.lock().await;
            slot.add_config(&engine, &mut state, config).await
        });
        kept.await.unwrap_or_else(|| Err(ErrorKind::Internal.into()))
    }

    pub async fn get_config(
        &self,
        caller: &Caller,
        task: &TaskId,
        id: &ConfigId,
    ) -> Result<TaskPushNotificationConfig, Error> {
        let configs = self.list_configs(caller, task).await?;
        let found = configs.into_iter().find(|config| config.id.as_ref() == Some(id));
        found.ok_or_else(|| Error::task_not_found(task))
    }

    pub async fn list_configs(&self, caller: &Caller, task: &TaskId) -> Result<Vec<TaskPushNotificationConfig>, Error> {
        self.push_is_supported()?;
        self.get(caller, task).await?;
        self.store.configs(task).await.map_err(|cause| self.internal(&cause))
    }

    pub async fn delete_config(&self, caller: &Caller, task: &TaskId, id: &ConfigId) -> Result<(), Error> {
        self.push_is_supported()?;
        let slot = self.slot(caller, task).await?;
        slot.drop_config(self, id).await.map_err(|cause| self.internal(&cause))
    }

    /// Starts the turn of an approval, a refusal or an expiry. False when the task waits for none.
    pub async fn approve(self: &Arc<Self>, id: &TaskId, start: Start) -> Result<bool, Error> {
        let slot = match self.live(id) {
            Some(slot) => slot,
            None => {
                let record = self.store.load(id).await.map_err(|cause| self.internal(&cause))?;
                let Some(record) = record else { return Ok(false) };
                let (principal, base_url) = (record.owner.clone(), record.base_url.clone());
                let caller = Caller { principal, base_url, timestamps: None };
                self.slot(&caller, id).await?
            }
        };
        let Some(begun) = slot.approve(self, start).await? else { return Ok(false) };
        if let Some(begun) = begun {
            let engine = self.clone();
            tokio::spawn(async move { engine.run(slot, begun).await });
        }
        Ok(true)
    }

    /// The tasks that wait for an approval, longest first.
    pub async fn awaiting_approval(&self) -> Result<Vec<Arc<Task>>, Error> {
        self.store.awaiting_approval().await.map_err(|cause| self.internal(&cause))
    }

    /// The webhooks that get nothing more.
    pub async fn given_up(&self) -> Result<Vec<GivenUp>, Error> {
        self.store.given_up().await.map_err(|cause| self.internal(&cause))
    }

    /// Takes nothing new, lets work go on for the grace, then tells what is left to stop, and ends all streams.
    pub async fn shut_down(&self, grace: Duration) {
        self.closing.cancel();
        let ended = async || {
            for slot in self.slots() {
                let running = slot.lock().await.running.clone();
                if let Some(running) = running {
                    running.ended().await;
                }
            }
        };
        if tokio::time::timeout(grace, ended()).await.is_err() {
            self.stop.cancel();
            if tokio::time::timeout(STOP_LIMIT, ended()).await.is_err() {
                for slot in self.slots() {
                    slot.lock().await.running.iter().for_each(|running| running.kill.notify_one());
                }
                let _ = tokio::time::timeout(STOP_LIMIT, ended()).await;
            }
        }
        self.slots().iter().for_each(|slot| slot.log.cut());
    }

    /// Says to the others that this process is gone. Nothing of it may run any more.
    pub async fn leave(&self) {
        if let Some(shared) = self.store.shared()
            && let Err(cause) = shared.leave().await
        {
            tracing::warn!(%cause, "the other processes were not told that this one goes");
        }
    }
}

/// How often a process says that it lives.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// The pause before it tries again.
const BEAT_AGAIN: Duration = Duration::from_millis(250);
/// How long a task may be this process's without any work on it.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// How long a process that does not reach the shared store goes on with its work: shorter than it takes the others to
/// believe it dead.
const ALONE_LIMIT: Duration = Duration::from_secs(4);
/// How often old tasks are looked for.
const RETAIN_EVERY: Duration = Duration::from_secs(1);
/// How long work that is told to stop when the server ends may take for it; then it is dropped.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// Where a page of tasks begins, as clients carry it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    ts: Timestamp,
    id: TaskId,
}

const NOT_ONE_OF_OURS: &str = "pageToken is not one of this agent's";

impl Cursor {
    fn read(token: &str) -> Result<Place, Error> {
        let json = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
        let cursor = json.and_then(|json| serde_json::from_slice::<Self>(&json).ok());
        let cursor = cursor.ok_or_else(|| Error::invalid("pageToken", NOT_ONE_OF_OURS))?;
        Ok(Place { time: cursor.ts, id: cursor.id })
    }

    /// The token that follows the last task of a page; empty when nothing follows.
    pub fn after(page: &Page) -> String {
        let cursor = page.next.as_ref().map(|place| Self { ts: place.time, id: place.id.clone() });
        let json = cursor.and_then(|cursor| serde_json::to_vec(&cursor).ok());
        json.map(|json| BASE64_URL_SAFE_NO_PAD.encode(json)).unwrap_or_default()
    }
}
