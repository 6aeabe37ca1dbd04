//! Following a task that has not ended.

use std::sync::Arc;
use std::time::Duration;

use client::{ClientError, Events};
use protocol::{Change, StreamResponse, Task};
use tokio::time::Instant;

use crate::agents::Agent;
use crate::{Failure, Planner};

/// The pause before the first poll; it grows with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between two polls.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Planner {
    /// Subscribes to a task that waits for an approval, asks the operator when the first frame is there, and follows
    /// to the end.
    pub(crate) async fn see_approved(&self, agent: &Agent, task: &Arc<Task>) -> Result<Arc<Task>, Failure> {
        let broken = |cause| self.failure(&agent.name, cause);
        let title = format!("SubscribeToTask on {}", agent.name);
        let mut events = match agent.connection.subscribe(&title, &task.id).await {
            Ok(events) => events,
            // An agent without streams, or a task that went on meanwhile.
            Err(ClientError::Remote(_)) => {
                let approved = self.operator.decide(&self.http, agent, task).await;
                approved.map_err(broken)?;
                return self.poll(agent, task).await;
            }
            Err(cause) => return Err(broken(cause)),
        };
        let first = events.next().await.map_err(broken)?;
        if let Some(note) = self.operator.note() {
            events.note(note);
        }
        let mut now = fold(task.clone(), first.map(|frame| frame.response));
        if !now.status.state.is_terminal() {
            self.operator.decide(&self.http, agent, task).await.map_err(broken)?;
        }
        self.to_the_end(agent, &mut now, events, true).await?;
        if now.status.state.phase().settles() && now.status.state != protocol::TaskState::AuthRequired {
            return Ok(now);
        }
        self.poll(agent, &now).await
    }

    /// Follows a task that runs: by a stream where the agent has one, else by polling.
    pub(crate) async fn follow(&self, agent: &Agent, task: &Arc<Task>) -> Result<Arc<Task>, Failure> {
        if agent.card.capabilities.streaming == Some(true) {
            let title = format!("SubscribeToTask on {}", agent.name);
            match agent.connection.subscribe(&title, &task.id).await {
                Ok(events) => {
                    let mut now = task.clone();
                    self.to_the_end(agent, &mut now, events, false).await?;
                    if now.status.state.phase().settles() {
                        return Ok(now);
                    }
                }
                // It may have ended meanwhile; the poll will tell.
                Err(ClientError::Remote(_)) => {}
                Err(cause) => return Err(self.failure(&agent.name, cause)),
            }
        }
        self.poll(agent, task).await
    }

    /// Takes frames until the stream ends, or until the task waits for somebody. A stream that breaks is no failure:
    /// the task is polled then.
    async fn to_the_end(
        &self,
        agent: &Agent,
        now: &mut Arc<Task>,
        mut events: Events,
        past_approval: bool,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + self.patience;
        loop {
            match tokio::time::timeout_at(deadline, events.next()).await {
                Err(_) => return Err(self.give_up(agent, now).await),
                Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(frame))) => *now = fold(now.clone(), Some(frame.response)),
                Ok(Err(_)) => return Ok(()),
            }
            let waits = now.status.state.phase() == protocol::Phase::Interrupted;
            if waits && !past_approval {
                return Ok(());
            }
        }
    }

    async fn poll(&self, agent: &Agent, task: &Arc<Task>) -> Result<Arc<Task>, Failure> {
        let deadline = Instant::now() + self.patience;
        let waited_for_approval = task.status.state == protocol::TaskState::AuthRequired;
        let (mut pause, mut now) = (FIRST_PAUSE, task.clone());
        let title = format!("GetTask on {}", agent.name);
        loop {
            now =
                agent.connection.get(&title, &now.id, None).await.map_err(|cause| self.failure(&agent.name, cause))?;
            let still_waits = waited_for_approval && now.status.state == protocol::TaskState::AuthRequired;
            if now.status.state.phase().settles() && !still_waits {
                return Ok(now);
            }
            if Instant::now() + pause > deadline {
                return Err(self.give_up(agent, &now).await);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn give_up(&self, agent: &Agent, task: &Task) -> Failure {
        let title = format!("CancelTask on {}", agent.name);
        let canceled = agent.connection.cancel(&title, &task.id);
        // Whether it heeds that or not, the planner has given up.
        let _ = tokio::time::timeout(Duration::from_secs(5), canceled).await;
        let (task, state) = (task.id.clone(), task.status.state);
        Failure::TooLong { agent: agent.name.clone(), task, state, patience: self.patience }
    }
}

/// The task after one more frame. A frame that makes no sense for it changes nothing.
fn fold(mut task: Arc<Task>, frame: Option<StreamResponse>) -> Arc<Task> {
    let change = match frame {
        Some(StreamResponse::Task(whole)) if whole.id == task.id => return whole,
        Some(StreamResponse::StatusUpdate(update)) => Change::Status(update),
        Some(StreamResponse::ArtifactUpdate(update)) => Change::Artifact(update),
        _ => return task,
    };
    let _ = Arc::make_mut(&mut task).apply(&change);
    task
}
