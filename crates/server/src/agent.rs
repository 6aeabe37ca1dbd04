//! What an agent is to the server: a card, and a function that works on one turn.
//!
//! An agent sees a [`Job`] and a [`Say`], never HTTP and never a store. What it says is kept before anybody hears of
//! it. A turn begins with a message, an answer, an approval, a refusal or the expiry of an approval, and ends when the
//! agent asks, needs an approval, ends the task, or returns.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use protocol::{AgentCard, ContextId, Message, Part, Task};
use tokio_util::sync::CancellationToken;

pub use crate::say::{Chunk, Over, Say};

/// An agent: one value that answers every message.
pub trait Agent: Send + Sync + 'static {
    /// The card, without interfaces and signatures; the server knows where it listens and fills them in.
    fn card(&self) -> AgentCard;

    /// The card that authenticated callers see, when it differs. It is not signed.
    fn extended_card(&self) -> Option<AgentCard> {
        None
    }

    /// Whether this message, which belongs to no task, will be answered by a direct [`Say::reply`] even if that takes
    /// a while. Without it, a turn that has to wait before it says anything becomes a task, so that its client can
    /// follow and cancel it.
    fn answers_directly(&self, message: &Message) -> bool {
        let _ = message;
        false
    }

    /// Whether it can go on with a task whose turn was broken off when its process died. The turn then starts again with
    /// [`Start::Restart`] and the task as it was kept; otherwise the task fails.
    fn resumes(&self, task: &Task) -> bool {
        let _ = task;
        false
    }

    /// Whether it ever needs an approval: then the server shows the operators' page, also where operators have no names.
    fn asks_approval(&self) -> bool {
        false
    }

    /// Whether this operator may approve or refuse what the task asks for. Asked only where operators have names, and
    /// only about a task that waits. One whose approval must not count twice is told apart by the history, in which the
    /// agent names who approved.
    fn may_decide(&self, task: &Task, operator: &str) -> bool {
        let _ = (task, operator);
        true
    }

    /// Keeps account of an operator who tried to decide what [`Agent::may_decide`] does not let this one decide. Whoever
    /// shows no operator's token is not told of: strangers would fill the account.
    fn turned_away<'a>(&'a self, task: &'a Task, operator: &'a str) -> Noted<'a> {
        let _ = (task, operator);
        Box::pin(std::future::ready(()))
    }

    /// How long a task may wait for an approval, counted from when it was asked for. Then a turn starts with
    /// [`Start::Expiry`]. None: for ever.
    fn approval_limit(&self, task: &Task) -> Option<Duration> {
        let _ = task;
        None
    }

    /// What an operator should know about a task that waits, beside the words with which it waits: names and values,
    /// such as the build and the environment, in the order in which they are shown.
    fn about(&self, task: &Task) -> Vec<(String, String)> {
        let _ = task;
        Vec::new()
    }

    /// Works on one turn. An error or a panic fails the task; the client sees a plain message, the log the cause.
    /// A turn that returns without an end, a question or a need for approval fails the task too.
    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn;
}

/// The work of one turn.
pub type Turn = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

/// The work of [`Agent::turned_away`].
pub type Noted<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Why a turn broke off. Its text goes to the log, never to the client.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// What started a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A message that belongs to no task yet, or one that came while the agent was not asking for anything.
    Message,
    /// A message to a task that waits for input.
    Answer,
    /// An approval from outside A2A, by an operator whose name may be known.
    Approval {
        /// Who approved.
        by: Option<String>,
    },
    /// An operator refused.
    Refusal {
        /// Who refused.
        by: Option<String>,
        /// Why.
        reason: Option<String>,
    },
    /// Nobody approved in time.
    Expiry,
    /// The process that worked on the task died, and the agent said that it can go on.
    Restart,
}

/// What there is to do.
#[derive(Debug, Clone)]
pub struct Job {
    /// What started this turn.
    pub start: Start,
    /// The message that started it; otherwise the last message of the client.
    pub message: Arc<Message>,
    /// The task so far, with its history. None for a message that belongs to no task yet.
    pub task: Option<Arc<Task>>,
    /// The context of the task or of the reply to be.
    pub context_id: ContextId,
    /// Whose task it is, by the name that its credential stands for. None where callers show no credential, or one that all of
    /// them share.
    pub asker: Option<Arc<str>>,
    /// Where this agent is reached by whoever made the task, such as `http://localhost:41243`. No slash at the end.
    pub base_url: Arc<str>,
    /// The media types that the client takes; empty when it did not say.
    pub accepted_output_modes: Arc<[String]>,
    /// Fires when the work is to stop: the client canceled, the turn took too long, or the server shuts down.
    pub stop: CancellationToken,
}

impl Job {
    /// The first message of the task, which is this one when there is no task yet.
    pub fn first_message(&self) -> &Arc<Message> {
        self.task.as_ref().and_then(|task| task.history.first()).unwrap_or(&self.message)
    }

    /// Whether a client that said what it takes takes this media type. One that did not say takes all.
    pub fn accepts(&self, media_type: &str) -> bool {
        self.accepted_output_modes.is_empty()
            || self.accepted_output_modes.iter().any(|mode| mode == "*/*" || protocol::media::is(mode, media_type))
    }
}

/// What an agent says in words: parts of a message, or nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Words(pub Option<Vec<Part>>);

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        Self(Some(vec![Part::text(text)]))
    }
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        Self(Some(vec![Part::text(text)]))
    }
}

impl From<Vec<Part>> for Words {
    fn from(parts: Vec<Part>) -> Self {
        Self(Some(parts))
    }
}

impl From<()> for Words {
    fn from((): ()) -> Self {
        Self(None)
    }
}
