//! Who approves what the planner cannot: the channel to a person.

use std::io::{BufRead, Write};
use std::sync::Arc;

use client::{ClientError, Http};
use protocol::Task;

use crate::agents::Agent;

/// How an approval comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Approves by itself, as the kit's operator does: at the origin of the agent and for the task at hand, whatever
    /// the agent's text says (DECISIONS O19).
    Auto,
    /// Asks the person at the terminal.
    Ask,
    /// Somebody else will.
    Wait,
}

impl Operator {
    /// What a recording says before the operator acts.
    pub(crate) fn note(self) -> Option<&'static str> {
        (self == Self::Auto).then_some("The operator approves the deploy, outside A2A.")
    }

    /// Lets the operator decide. A refusal ends the task.
    pub(crate) async fn decide(self, http: &Http, agent: &Agent, task: &Arc<Task>) -> Result<(), ClientError> {
        let approved = match self {
            Self::Wait => return Ok(()),
            Self::Auto => true,
            Self::Ask => ask(task).await,
        };
        if approved {
            http.approve("operator approves", agent.connection.url(), &task.id).await?;
        } else {
            agent.connection.cancel("the operator refuses", &task.id).await?;
        }
        Ok(())
    }
}

/// Asks at the terminal; anything but yes is no.
async fn ask(task: &Arc<Task>) -> bool {
    let text = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
    let answer = tokio::task::spawn_blocking(move || {
        eprint!("{text}\nApprove? [y/N] ");
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        let _ = std::io::stdin().lock().read_line(&mut line);
        matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    });
    answer.await.unwrap_or(false)
}
