//! Who approves what the planner cannot: the channel to a person.

use std::io::{BufRead, Write};

use protocol::Task;

/// How an approval comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Approves by itself, as the kit's operator does: at the origin of the agent and for the task at hand, whatever
    /// the agent's text says (DECISIONS O19).
    Auto,
    /// Asks the person at the terminal. A no cancels the task.
    Ask,
    /// Somebody else will.
    Wait,
}

impl Operator {
    /// What a recording says before the operator acts.
    pub(crate) fn note(self) -> Option<&'static str> {
        (self == Self::Auto).then_some("The operator approves the deploy, outside A2A.")
    }

    /// What the operator decides: yes or no; `None` when somebody else will.
    pub(crate) async fn decide(self, task: &Task) -> Option<bool> {
        match self {
            Self::Wait => None,
            Self::Auto => Some(true),
            Self::Ask => Some(ask(task).await),
        }
    }
}

/// Asks at the terminal; anything but yes is no.
async fn ask(task: &Task) -> bool {
    let text = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
    let (answered, answer) = tokio::sync::oneshot::channel();
    // A thread of its own, so that a question that nobody answers does not keep the program from ending.
    std::thread::spawn(move || {
        let _ = write!(std::io::stderr(), "{}\nApprove? [y/N] ", crate::shown::lines(&text));
        let mut line = String::new();
        let _ = std::io::stdin().lock().read_line(&mut line);
        let _ = answered.send(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"));
    });
    answer.await.unwrap_or(false)
}
