//! Following a task that has not ended.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use client::{ClientError, Decision, Events, Frame, NotTaken};
use protocol::{Change, ContextId, MessageId, Phase, StreamResponse, Task, TaskState};
use tokio::time::{Instant, timeout, timeout_at};

use crate::agents::Agent;
use crate::deliver::{REPEATS, Work, may_pass, patiently, pause};
use crate::journal::Entry;
use crate::{Failure, Planner};

/// The pause before the second poll; it grows with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between two polls.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many polls in a row may fail in a way that may pass.
const FAILED_POLLS: u32 = 5;
/// How long a stream may stay open after its task has ended.
const FAREWELL: Duration = Duration::from_millis(250);

impl Planner {
    /// Subscribes to a task that waits for an approval, asks the operator when the first frame is there, and follows
    /// to the end. Without a stream it asks the operator all the same, and polls.
    pub(crate) async fn see_approved(
        &self,
        agent: &Agent,
        work: Work<'_>,
        task: &Arc<Task>,
    ) -> Result<Arc<Task>, Failure> {
        let mut now = task.clone();
        let decided = self.past(work.step, |entry| matches!(entry, Entry::Decided { .. }));
        if let Some(seen) = self.past_task(work.step) {
            return Ok(seen);
        }
        if decided.is_some() {
            // What was decided may have been carried out before the planner was killed.
            let read = self.in_time(self.deadline(), agent, task, self.read(agent, task)).await?;
            now = read.map_err(|cause| self.failure(&agent.name, cause))?;
        }
        let mut events = self.subscribe(agent, &now).await?;
        if let Some(open) = &mut events {
            match self.in_time(self.deadline(), agent, task, open.next()).await? {
                Ok(Some(frame)) => fold(&mut now, frame),
                Ok(None) | Err(_) => events = None,
            }
        }
        if now.status.state == TaskState::AuthRequired {
            if let (Some(note), Some(open)) = (self.operator.note(), &mut events) {
                open.note(note);
            }
            self.let_operator_decide(agent, work, &now, decided).await?;
        }
        let settled = self.to_the_end(agent, task, &mut now, events).await?;
        let seen = if settled { now } else { self.poll(agent, task, now).await? };
        self.keep(&Entry::Task { step: work.step.to_owned(), task: seen.clone() })?;
        Ok(seen)
    }

    /// Follows a task that runs: by a stream where the agent has one, else by polling.
    pub(crate) async fn follow(&self, agent: &Agent, work: Work<'_>, task: &Arc<Task>) -> Result<Arc<Task>, Failure> {
        if let Some(seen) = self.past_task(work.step) {
            return Ok(seen);
        }
        let mut now = task.clone();
        let events = self.subscribe(agent, task).await?;
        let settled = self.to_the_end(agent, task, &mut now, events).await?;
        let seen = if settled { now } else { self.poll(agent, task, now).await? };
        self.keep(&Entry::Task { step: work.step.to_owned(), task: seen.clone() })?;
        Ok(seen)
    }

    /// Reads a task, a few times if need be.
    async fn read(&self, agent: &Agent, task: &Task) -> Result<Arc<Task>, ClientError> {
        let title = format!("GetTask on {}", agent.name);
        patiently(|| agent.connection.get(&title, &task.id, None)).await
    }

    /// An agent whose card has no streaming is not asked for a stream. One that cannot be had is no failure: the task may
    /// have gone on meanwhile, and if the agent is in trouble the poll will say so.
    async fn subscribe(&self, agent: &Agent, task: &Task) -> Result<Option<Events>, Failure> {
        if !agent.streams() {
            return Ok(None);
        }
        let title = format!("SubscribeToTask on {}", agent.name);
        let subscribed = agent.connection.subscribe(&title, &task.id);
        Ok(self.in_time(self.deadline(), agent, task, subscribed).await?.ok())
    }

    /// Asks the operator, who may take any time, and carries out what was decided, which may not. What was decided before
    /// the planner was killed is not asked again.
    async fn let_operator_decide(
        &self,
        agent: &Agent,
        work: Work<'_>,
        task: &Task,
        decided: Option<Entry>,
    ) -> Result<(), Failure> {
        let question = asked(task);
        let (approves, again) = match decided {
            Some(Entry::Decided { approves, question: was, .. }) if was == question => (approves, true),
            _ => {
                let Some(decided) = self.operator.decide(&self.http, &agent.name, task).await else { return Ok(()) };
                let (step, task, approves) = (work.step.to_owned(), task.id.clone(), decided.approves);
                self.keep(&Entry::Decided { step, task, question, approves, by: decided.by })?;
                (approves, false)
            }
        };
        let carried_out = async {
            if approves {
                return self.approve(agent, task, again).await;
            }
            match agent.connection.cancel("the operator refuses", &task.id).await {
                // The agent answered: what became of the task is asked next.
                Ok(_) | Err(ClientError::Remote(_)) => Ok(Ok(())),
                Err(cause) => Err(cause),
            }
        };
        let taken = self.in_time(self.deadline(), agent, task, carried_out).await?;
        match taken.map_err(|cause| self.failure(&agent.name, cause))? {
            Ok(()) => {}
            Err(NotTaken { status: 404, .. }) => self.say(format!("  {} took no approval for this task", agent.name)),
            Err(why) => self.say(format!("  {} took no approval for this task: {why}", agent.name)),
        }
        Ok(())
    }

    /// Approves what the task asks for. An approval that got lost is given again while the task still asks for the same:
    /// it is never one for what is asked next.
    async fn approve(&self, agent: &Agent, task: &Task, again: bool) -> Result<Result<(), NotTaken>, ClientError> {
        let token = self.operator_tokens.iter().find(|(name, _)| *name == agent.name).map(|(_, token)| &**token);
        let mut repeat = 0;
        loop {
            let (url, approves) = (agent.connection.url(), Decision::default());
            let cause = match self.http.decide("operator approves", url, &task.id, &approves, token).await {
                // One that comes too late after another may have been late.
                Ok(Err(NotTaken { status: 404 | 409, .. })) if again || repeat > 0 => return Ok(Ok(())),
                Ok(taken) => return Ok(taken),
                Err(cause) => cause,
            };
            if repeat == REPEATS || !may_pass(&cause) {
                return Err(cause);
            }
            tokio::time::sleep(pause(repeat)).await;
            repeat += 1;
            match agent.connection.get(&format!("GetTask on {}", agent.name), &task.id, Some(0)).await {
                Ok(now) if now.status.state == task.status.state && asked(&now) == asked(task) => {}
                Ok(_) => return Ok(Ok(())),
                Err(_) => return Err(cause),
            }
        }
    }

    /// Takes frames until the task has ended or waits for something new. False when there is no stream, or when it ended
    /// before that or broke: what becomes of the task is then to be asked. What it asked `before` is dealt with.
    async fn to_the_end(
        &self,
        agent: &Agent,
        before: &Task,
        now: &mut Arc<Task>,
        events: Option<Events>,
    ) -> Result<bool, Failure> {
        let Some(mut events) = events else { return Ok(false) };
        let deadline = self.deadline();
        // What was dealt with just now may take its time; what is asked next is a new matter.
        let mut waits = true;
        loop {
            waits &= asks_the_same(before, now);
            match now.status.state.phase() {
                Phase::Terminal => {
                    // Read to its end, the connection can be used again. Some agents never end it.
                    let rest = async { while let Ok(Some(_)) = events.next().await {} };
                    let _ = timeout(FAREWELL, rest).await;
                    return Ok(true);
                }
                Phase::Interrupted if !waits => return Ok(true),
                Phase::Interrupted | Phase::Running => {}
            }
            match self.in_time(deadline, agent, now, events.next()).await? {
                Ok(Some(frame)) => fold(now, frame),
                Ok(None) | Err(_) => return Ok(false),
            }
        }
    }

    /// Reads the task again and again, with growing pauses. What it asked `before` is dealt with.
    async fn poll(&self, agent: &Agent, before: &Task, mut now: Arc<Task>) -> Result<Arc<Task>, Failure> {
        let deadline = self.deadline();
        let mut waits = asks_the_same(before, &now);
        let mut pause = FIRST_PAUSE;
        let title = format!("GetTask on {}", agent.name);
        let mut failed = 0;
        loop {
            let read = agent.connection.get(&title, &now.id, None);
            let read = self.in_time(deadline, agent, &now, read).await?;
            match read {
                Ok(read) => {
                    self.is_the_one(agent, Some(&now.id), now.context_id.as_ref(), &read)?;
                    (now, failed) = (read, 0);
                    waits &= asks_the_same(before, &now);
                    if now.status.state.phase().settles() && !waits {
                        return Ok(now);
                    }
                }
                Err(cause) if may_pass(&cause) && failed < FAILED_POLLS => failed += 1,
                Err(cause) => return Err(self.failure(&agent.name, cause)),
            }
            self.in_time(deadline, agent, &now, tokio::time::sleep(pause)).await?;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn deadline(&self) -> Instant {
        let now = Instant::now();
        // A patience beyond what a clock can hold is a patience of thirty years.
        now.checked_add(self.patience).unwrap_or(now + Duration::from_secs(1_000_000_000))
    }

    /// Waits for something about a task, until the planner's patience is at its end.
    async fn in_time<T>(
        &self,
        deadline: Instant,
        agent: &Agent,
        task: &Task,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        match timeout_at(deadline, work).await {
            Ok(done) => Ok(done),
            Err(_) => {
                self.cancel(agent, &task.id, Duration::from_secs(5)).await;
                let (agent, task, state) = (agent.name.clone(), task.id.clone(), task.status.state);
                Err(Failure::TooLong { agent, task, state, patience: self.patience })
            }
        }
    }
}

/// Whether a task waits for what it waited for before. An agent that asks again does so with another message.
pub(crate) fn asks_the_same(before: &Task, now: &Task) -> bool {
    let state = now.status.state;
    state.phase() == Phase::Interrupted
        && state == before.status.state
        && (state == TaskState::AuthRequired || asked(now).is_some_and(|now| Some(now) == asked(before)))
}

/// The message with which a task asks for what it asks for now.
fn asked(task: &Task) -> Option<MessageId> {
    task.status.message.as_ref().map(|message| message.message_id.clone())
}

/// Lets a frame happen to the task. A frame that makes no sense for it, or is of another context, changes nothing.
fn fold(task: &mut Arc<Task>, frame: Frame) {
    let ours = |context: &ContextId| task.context_id.as_ref().is_none_or(|known| known == context);
    let change = match frame.response {
        StreamResponse::Task(whole) if whole.id == task.id && whole.context_id.as_ref().is_none_or(ours) => {
            return *task = whole;
        }
        StreamResponse::StatusUpdate(update) if ours(&update.context_id) => Change::Status(update),
        StreamResponse::ArtifactUpdate(update) if ours(&update.context_id) => Change::Artifact(update),
        _ => return,
    };
    let _ = Arc::make_mut(task).apply(&change);
}
