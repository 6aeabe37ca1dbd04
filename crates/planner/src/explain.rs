//! The decision table of the loop, made by asking the functions that decide.

use std::sync::Arc;
use std::time::Duration;

use client::{ClientError, Reply};
use protocol::error::RemoteError;
use protocol::{Message, MessageId, Part, Role, Task, TaskId, TaskState, TaskStatus};

use crate::delegate::{Decision, decide};
use crate::deliver::{Fate, LOOKS, REPEATS, fate};

/// The states of a task, in the order of the specification (4.1.3).
const STATES: [TaskState; 9] = [
    TaskState::Unspecified,
    TaskState::Submitted,
    TaskState::Working,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::InputRequired,
    TaskState::Rejected,
    TaskState::AuthRequired,
];

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What comes back.
    pub comes: String,
    /// What the planner does.
    pub does: String,
}

impl Decision {
    /// What the loop does, in words.
    fn words(&self) -> &'static str {
        match self {
            Self::Refused(_) => "logs the error; nothing comes of the work",
            Self::Answered(_) => "takes the message for the whole answer; there is no task to follow",
            Self::Ended(_) => "takes the task for the answer; the rules of the job look at its state and its artifacts",
            Self::Asks(_) => "answers out of what it knows, in the same task",
            Self::Waits(_) => {
                "asks the operator, and follows the task by a stream if the card has streaming, else by polling"
            }
            Self::Runs(_) => "follows the task by a stream if the card has streaming, else by polling",
        }
    }
}

impl Fate {
    /// What is done about a message, in words.
    fn words(self, repeatable: bool) -> String {
        match (self, repeatable) {
            (Self::Untaken, _) => format!("sends the same message again, {REPEATS} times at most"),
            (Self::Unknown, true) => {
                format!(
                    "looks for the task of the message; when there is none, sends the same again, {REPEATS} times at most"
                )
            }
            (Self::Odd, true) => "looks for the task of the message; when there is none, gives up".to_owned(),
            (Self::Unknown | Self::Odd, false) => {
                format!(
                    "looks for the task of the message, {LOOKS} times; when there is none, stops: it cannot be known"
                )
            }
            (Self::Settled, _) => "gives up".to_owned(),
        }
    }
}

fn task(state: TaskState) -> Option<Reply> {
    let status = TaskStatus { state, message: None, timestamp: None };
    let id = TaskId::new("task").ok()?;
    let task = Task { id, context_id: None, status, artifacts: Vec::new(), history: Vec::new(), metadata: None };
    Some(Reply::Task(Arc::new(task)))
}

/// What is done about each kind of reply.
pub fn replies() -> Vec<Row> {
    let error = Reply::Error(RemoteError { code: -32603, message: String::new(), data: None });
    let message = MessageId::new("message").ok().map(|id| Message::new(id, Role::Agent, vec![Part::text("")]));
    let shapes = [("an error", Some(error)), ("a message", message.map(|message| Reply::Message(Arc::new(message))))];
    let shapes = shapes.map(|(comes, reply)| (comes.to_owned(), reply));
    let tasks = STATES.map(|state| (format!("a task in {state}"), task(state)));
    let rows = shapes.into_iter().chain(tasks);
    rows.filter_map(|(comes, reply)| Some(Row { comes, does: decide(reply?).words().to_owned() })).collect()
}

/// What is done when no reply comes: about a message whose work may be done twice, or one whose work must not.
pub fn losses(repeatable: bool) -> Vec<Row> {
    let origin = || "the agent".to_owned();
    let odd = |status, content_type: &str| {
        let (content_type, why) = (content_type.to_owned(), String::new());
        ClientError::NotA2a { origin: origin(), status, content_type, why }
    };
    let slow = |what| ClientError::TooSlow { origin: origin(), what, limit: Duration::ZERO };
    let kinds = [
        ("nobody answers there", ClientError::Unreachable { origin: origin(), why: String::new() }),
        ("connecting takes too long", slow("connecting")),
        ("the answer takes too long", slow("the answer")),
        ("the connection breaks", ClientError::Broken { origin: origin(), why: String::new() }),
        ("408, 429, 502, 503 or 504 of a proxy", odd(502, "text/html")),
        ("any other answer that is no A2A", odd(200, "text/html")),
        ("the request cannot be written", ClientError::Request(String::new())),
    ];
    kinds.map(|(comes, cause)| Row { comes: comes.to_owned(), does: fate(&cause).words(repeatable) }).into()
}

/// The whole table, as text.
pub fn table() -> String {
    let mut text = String::new();
    let mut part = |title: &str, rows: &[Row]| {
        let width = rows.iter().map(|row| row.comes.len()).max().unwrap_or_default();
        text.push_str(title);
        text.push('\n');
        for Row { comes, does } in rows {
            text.push_str(&format!("  {comes:width$}  {does}\n"));
        }
    };
    part("A reply to a message, and a task that was followed:", &replies());
    part("No reply, to a message whose work may be done twice:", &losses(true));
    part("No reply, to a message whose work must not be done twice:", &losses(false));
    text
}
