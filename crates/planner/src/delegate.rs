//! What a reply means: the planner's loop.

use std::sync::Arc;

use client::Reply;
use protocol::{Message, MessageId, Part, Role, Task, TaskId, TaskState, Timestamps};

use crate::agents::Agent;
use crate::{Failure, Planner};

/// An agent that asks, and asks again, is answered this often and no more.
const MOST_REPLIES: usize = 32;

/// What came of a delegation.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The agent refused; the log says why.
    Nothing,
    /// A direct message: the whole answer.
    Message(Arc<Message>),
    /// A task that has ended.
    Task(Arc<Task>),
}

impl Planner {
    /// Gives work to the agent with a skill, and sees it through to a message, an error or the end of a task.
    pub async fn delegate(&self, skill: &str, parts: Vec<Part>) -> Result<Outcome, Failure> {
        let agent = self.with_skill(skill)?;
        self.say(format!("delegate {skill} to {}", agent.name));
        let mut reply = self.send(agent, skill, &format!("SendMessage to {}", agent.name), parts, None).await?;
        for _ in 0..MOST_REPLIES {
            let task = match reply {
                Reply::Error(error) => {
                    self.say(format!("  error {}: {}", error.code, error.message));
                    return Ok(Outcome::Nothing);
                }
                Reply::Message(message) => {
                    self.say("  direct reply, no task to follow");
                    return Ok(Outcome::Message(message));
                }
                Reply::Task(task) => task,
            };
            self.remember(agent, &task);
            self.say(format!("  task {} is {}{}", first8(&task.id), task.status.state, said_at(&task)));
            let words = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
            reply = match task.status.state {
                state if state.is_terminal() => return Ok(Outcome::Task(task)),
                TaskState::InputRequired => {
                    let answer = self.answer(&words);
                    self.say(format!("  it asks: {words} The planner answers from its own context: {answer}"));
                    let title = format!("SendMessage: answer {}", agent.name);
                    self.send(agent, skill, &title, vec![Part::text(answer)], Some(&task)).await?
                }
                TaskState::AuthRequired => {
                    let plan = "The planner cannot approve, so it asks the operator and subscribes.";
                    self.say(format!("  it needs approval: {words} {plan}"));
                    let task = self.see_approved(agent, &task).await?;
                    self.remember(agent, &task);
                    self.say(format!("  the stream ends at {}", task.status.state));
                    if task.status.state.is_terminal() {
                        return Ok(Outcome::Task(task));
                    }
                    Reply::Task(task)
                }
                // Beyond the kit: a reply that came early is followed, not looked at again.
                _ => Reply::Task(self.follow(agent, &task).await?),
            };
        }
        Err(self.no_end(agent).await)
    }

    async fn send(
        &self,
        agent: &Agent,
        skill: &str,
        title: &str,
        parts: Vec<Part>,
        task: Option<&Task>,
    ) -> Result<Reply, Failure> {
        let mut message = Message::new(self.message_id(), Role::User, parts);
        message.context_id = task.and_then(|task| task.context_id.clone());
        message.task_id = task.map(|task| task.id.clone());
        self.deliver(agent, skill, title, message).await
    }

    fn message_id(&self) -> MessageId {
        loop {
            // A source of ids never gives an empty one.
            if let Ok(id) = MessageId::new(self.ids.next()) {
                return id;
            }
        }
    }

    /// What the planner knows of its own work, and nothing else.
    fn answer(&self, question: &str) -> String {
        let asks_for_base = question.to_lowercase().contains("base branch");
        if asks_for_base { self.base.clone() } else { "I cannot answer that.".to_owned() }
    }
}

/// When the agent said what its status says, if it tells.
fn said_at(task: &Task) -> String {
    let metadata = task.status.message.as_ref().and_then(|message| message.metadata.as_ref());
    Timestamps::made(metadata).map(|made| format!(", said at {made}")).unwrap_or_default()
}

fn first8(id: &TaskId) -> String {
    id.as_str().chars().take(8).collect()
}
