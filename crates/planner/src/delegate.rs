//! What a reply means: the planner's loop.

use std::sync::Arc;

use client::Reply;
use protocol::error::RemoteError;
use protocol::{Message, MessageId, Part, Role, Task, TaskId, TaskState, Timestamps};

use crate::agents::Agent;
use crate::deliver::Work;
use crate::follow::asks_the_same;
use crate::{Failure, Planner};

/// An agent that asks, and asks again, is answered this often and no more.
const MOST_REPLIES: usize = 32;

/// What came of a delegation.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The agent refused, or its card says that it cannot take the work; the log says why.
    Nothing,
    /// A direct message: the whole answer.
    Message(Arc<Message>),
    /// A task that has ended.
    Task(Arc<Task>),
}

/// What a reply means, and with that what the loop does next.
#[derive(Debug)]
pub(crate) enum Decision {
    /// The agent refused: the log says why, and nothing comes of it.
    Refused(RemoteError),
    /// A direct message: the whole answer.
    Answered(Arc<Message>),
    /// The task has ended: it is the answer.
    Ended(Arc<Task>),
    /// The agent asks: the planner answers out of what it knows.
    Asks(Arc<Task>),
    /// Somebody has to approve: the operator is asked, and the task followed.
    Waits(Arc<Task>),
    /// The task runs, or its state says nothing: it is followed until it says more.
    Runs(Arc<Task>),
}

/// Decides what a reply means. There is a branch for every shape and every state; `planner explain` shows them.
pub(crate) fn decide(reply: Reply) -> Decision {
    match reply {
        Reply::Error(error) => Decision::Refused(error),
        Reply::Message(message) => Decision::Answered(message),
        Reply::Task(task) => match task.status.state {
            TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected => {
                Decision::Ended(task)
            }
            TaskState::InputRequired => Decision::Asks(task),
            TaskState::AuthRequired => Decision::Waits(task),
            TaskState::Submitted | TaskState::Working | TaskState::Unspecified => Decision::Runs(task),
        },
    }
}

impl Planner {
    /// Gives work to the agent with a skill, and sees it through to a message, an error or the end of a task.
    pub async fn delegate(&self, skill: &str, parts: Vec<Part>) -> Result<Outcome, Failure> {
        self.delegate_work(Work::of(skill), parts).await
    }

    pub(crate) async fn delegate_work(&self, work: Work<'_>, parts: Vec<Part>) -> Result<Outcome, Failure> {
        let Some(agent) = self.begin(work, &parts).await? else { return Ok(Outcome::Nothing) };
        let mut reply = self.send(agent, work, &format!("SendMessage to {}", agent.name), parts, None).await?;
        for _ in 0..MOST_REPLIES {
            if let Reply::Task(task) = &reply {
                self.remember(agent, task);
                self.say(format!("  task {} is {}{}", first8(&task.id), task.status.state, said_at(task)));
            }
            reply = match decide(reply) {
                Decision::Refused(error) => {
                    self.say(format!("  error {}: {}", error.code, error.message));
                    return Ok(Outcome::Nothing);
                }
                Decision::Answered(message) => {
                    self.say("  direct reply, no task to follow");
                    return Ok(Outcome::Message(message));
                }
                Decision::Ended(task) => return Ok(Outcome::Task(task)),
                Decision::Asks(task) => {
                    let title = format!("SendMessage: answer {}", agent.name);
                    let (question, answer, part) = self.answer(work, &task);
                    self.say(format!("  it asks: {question} The planner answers from its own context: {answer}"));
                    self.send(agent, work, &title, vec![part], Some(&task)).await?
                }
                Decision::Waits(task) => {
                    let (follows, stream) = agent.is_followed_by();
                    let plan = format!("The planner cannot approve, so it asks the operator and {follows}.");
                    self.say(format!("  it needs approval: {} {plan}", words(&task)));
                    let task = self.see_approved(agent, work, &task).await?;
                    self.remember(agent, &task);
                    self.say(format!("  the {stream} ends at {}", task.status.state));
                    if task.status.state.is_terminal() {
                        return Ok(Outcome::Task(task));
                    }
                    Reply::Task(task)
                }
                // Beyond the kit: a reply that came early is followed, not looked at again.
                Decision::Runs(task) => Reply::Task(self.follow(agent, work, &task).await?),
            };
        }
        Err(self.no_end(agent).await)
    }

    async fn send(
        &self,
        agent: &Agent,
        work: Work<'_>,
        title: &str,
        parts: Vec<Part>,
        task: Option<&Task>,
    ) -> Result<Reply, Failure> {
        let mut message = Message::new(self.message_id(), Role::User, parts);
        message.context_id = task.and_then(|task| task.context_id.clone());
        message.task_id = task.map(|task| task.id.clone());
        let reply = self.deliver(agent, work, title, message).await?;
        match (task, &reply) {
            // It had not looked at the answer to its question yet.
            (Some(before), Reply::Task(now)) if self.returns_early(work) && asks_the_same(before, now) => {
                Ok(Reply::Task(self.follow(agent, work, now).await?))
            }
            _ => Ok(reply),
        }
    }

    fn message_id(&self) -> MessageId {
        loop {
            // A source of ids never gives an empty one.
            if let Ok(id) = MessageId::new(self.ids.next()) {
                return id;
            }
        }
    }
}

/// What the agent said with its status.
fn words(task: &Task) -> String {
    task.status.message.as_ref().map(|message| message.text()).unwrap_or_default()
}

/// When the agent said what its status says, if it tells.
fn said_at(task: &Task) -> String {
    let metadata = task.status.message.as_ref().and_then(|message| message.metadata.as_ref());
    Timestamps::made(metadata).map(|made| format!(", said at {made}")).unwrap_or_default()
}

fn first8(id: &TaskId) -> String {
    id.as_str().chars().take(8).collect()
}
