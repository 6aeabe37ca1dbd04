//! Decides what each call does. Bindings decode a call and write its answer; everything between happens here.
//!
//! A call that may change something runs to its end even if its client goes away: it is polled in the connection at
//! first, and the first time it has to wait it moves to a task of its own.

mod config;
mod expiry;
mod life;
mod read;

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;

use foldhash::HashMap;
use futures_util::FutureExt;
use protocol::call::SendMessageRequest;
use protocol::{
    Clock, ContextId, Error, ErrorKind, Ids, Message, Task, TaskId, TaskPushNotificationConfig, Timestamp, Timestamps,
};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Job, Start};
use crate::attempt::{Attempt, Attempts, Outcome, Ticket};
use crate::gate::Gate;
use crate::hub::{Heard, Reader};
use crate::push::Pusher;
use crate::say::{Over, Say, Voice};
use crate::setup::{ANONYMOUS, Limits, Setup};
use crate::slot::{Asker, Begun, Decided, Incoming, Mode, Returned, Running, Slot, Wait};
use crate::store::{Created, Principal, Record, Store};
use crate::together::Together;
use crate::told::Told;

pub(crate) use read::Cursor;
use read::NOT_ONE_OF_OURS;

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

/// What somebody, or time, decides about a task that waits for an approval.
#[derive(Debug)]
pub(crate) struct Decision {
    /// What starts the turn.
    pub start: Start,
    /// The operator, where operators have names.
    pub by: Option<Arc<str>>,
    /// The moment since which the task must have waited; any, when there is none.
    pub since: Option<Timestamp>,
}

impl Decision {
    /// One that nobody with a name made.
    pub fn of(start: Start) -> Self {
        Self { start, by: None, since: None }
    }
}

/// What a decision came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It starts a turn.
    Counts,
    /// The task waits for none, or not for this one any more.
    NotWaiting,
    /// The operator may not decide this.
    MayNot,
    /// There is no such task.
    Unknown,
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
    /// The tenants of the card's interfaces.
    tenants: Vec<String>,
    live: RwLock<HashMap<TaskId, Arc<Slot>>>,
    pub together: Together,
    /// A task has begun to wait for an approval that may expire.
    approval_asked: Notify,
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
            tenants: setup.tenants.clone(),
            live: RwLock::default(),
            together: Together::default(),
            approval_asked: Notify::new(),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
        })
    }

    pub fn stop_token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// The name that an agent reads of the principal whose task it is: the same in every tenant, as a person is.
    pub fn asker(&self, owner: &Principal) -> Option<Arc<str>> {
        let within = owner.rsplit_once('@').filter(|(_, tenant)| self.tenants.iter().any(|known| known == tenant));
        let name = within.map_or(&**owner, |(name, _)| name);
        (name != ANONYMOUS).then(|| name.into())
    }

    /// Whether the agent can go on with a task whose turn was broken off.
    pub fn resumes(&self, task: &Task) -> bool {
        self.agent.resumes(task)
    }

    pub fn slots(&self) -> Vec<Arc<Slot>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
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

    pub fn live(&self, id: &TaskId) -> Option<Arc<Slot>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// The owner of a task that this caller may see.
    pub async fn slot(&self, caller: &Caller, id: &TaskId) -> Result<Arc<Slot>, Error> {
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
            asker: self.asker(&caller.principal),
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
    pub async fn run(self: &Arc<Self>, slot: Arc<Slot>, begun: Begun) {
        let mut next = Some(begun);
        while let Some(Begun { running, start, message, task, accepted_output_modes }) = next {
            let Some(context_id) = task.context_id.clone() else { return };
            let job = Job {
                start,
                message,
                task: Some(task),
                context_id,
                asker: self.asker(&slot.owner),
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

    pub async fn cancel(self: &Arc<Self>, caller: &Caller, id: &TaskId) -> Result<Arc<Task>, Error> {
        let slot = self.slot(caller, id).await?;
        let engine = self.clone();
        let canceled = to_the_end(async move { slot.cancel(&engine).await }).await;
        canceled.unwrap_or_else(|| Err(ErrorKind::Internal.into()))
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

    /// Whether an operator may decide what a task asks for.
    pub fn may_decide(&self, task: &Task, operator: &str) -> bool {
        self.agent.may_decide(task, operator)
    }

    /// What an operator should know about a task.
    pub fn about(&self, task: &Task) -> Vec<(String, String)> {
        self.agent.about(task)
    }

    /// Starts the turn of an approval, a refusal or an expiry, if the task waits for one and the operator may decide it.
    /// It counts when the agent's first words about it are kept: a decision that was acknowledged survives, and after a
    /// crash before that the task still waits for it. A recording acknowledges at once, as it holds the agent back.
    pub async fn decide(self: &Arc<Self>, id: &TaskId, decision: Decision) -> Result<Verdict, Error> {
        let slot = match self.live(id) {
            Some(slot) => slot,
            None => {
                let record = self.store.load(id).await.map_err(|cause| self.internal(&cause))?;
                let Some(record) = record else { return Ok(Verdict::Unknown) };
                let (principal, base_url) = (record.owner.clone(), record.base_url.clone());
                let caller = Caller { principal, base_url, timestamps: None };
                self.slot(&caller, id).await?
            }
        };
        let Decision { start, by, since } = decision;
        let task = slot.heard(self).await?;
        let Some(wait) = Wait::of(&task).filter(|wait| since.is_none() || wait.since == since) else {
            return Ok(Verdict::NotWaiting);
        };
        // Asked without the lock; what the task waits for is compared under it.
        if let Some(operator) = by.filter(|operator| !self.may_decide(&task, operator)) {
            self.agent.turned_away(&task, &operator).await;
            return Ok(Verdict::MayNot);
        }
        let engine = self.clone();
        let decided = to_the_end(async move {
            let Some(Decided { begun, mut told }) = slot.decide(&engine, start, wait).await? else {
                return Ok(Verdict::NotWaiting);
            };
            let is_held_back = engine.gate.is_some();
            if let Some(begun) = begun {
                tokio::spawn(async move { engine.run(slot, begun).await });
            }
            if is_held_back {
                return Ok(Verdict::Counts);
            }
            match poll_fn(|context| told.poll_next(context)).await {
                Some(Heard::Event(_) | Heard::Task(_)) => Ok(Verdict::Counts),
                Some(Heard::BrokenOff) | None => Err(ErrorKind::Internal.into()),
            }
        });
        decided.await.unwrap_or_else(|| Err(ErrorKind::Internal.into()))
    }
}
