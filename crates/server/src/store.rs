//! Where tasks are kept.
//!
//! The engine writes, everybody reads. What [`Store::keep`] has taken survives as the store promises; only then does
//! anybody hear of it. A store knows nothing of turns and streams.

mod memory;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use protocol::{ConfigId, ContextId, Message, Task, TaskId, TaskPushNotificationConfig, TaskState, Timestamp};

use crate::hub::Event;
use crate::told::{Told, Written};

pub use memory::Memory;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::Sql;
#[cfg(feature = "postgres")]
pub use sql::postgres::CannotConnect;
#[cfg(feature = "sqlite")]
pub use sql::sqlite::CannotOpen;

/// Whose tasks these are: the name that a credential stands for.
pub type Principal = Arc<str>;

/// A task with what the server knows about it beside the protocol.
#[derive(Debug, Clone)]
pub struct Record {
    /// The task as it stands.
    pub task: Arc<Task>,
    /// The number of its newest event; 0 when nothing has happened to it since it was made.
    pub number: u64,
    /// Who may see it.
    pub owner: Principal,
    /// Where its client reaches the agent; links in texts are made from it.
    pub base_url: Arc<str>,
}

/// Something that happens to a task, with all that is kept in the same moment.
#[derive(Debug)]
pub struct Step<'a> {
    /// The task after it.
    pub record: &'a Record,
    /// What happens.
    pub event: &'a Event,
    /// The task after it as JSON, if it has ended.
    pub written: Option<&'a Written>,
    /// The task has webhooks; each is to get the event, if it is shown.
    pub webhooks: bool,
    /// It is a message that waited beside the task and does not any more.
    pub waited: bool,
    /// It is a message to be remembered, as it was sent, so that a resend finds the task.
    pub sent: Option<&'a Message>,
}

/// What became of a new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It is kept.
    Here,
    /// It is not: the same message has made this task already.
    Already(TaskId),
}

/// A webhook's next event.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Where to.
    pub config: TaskPushNotificationConfig,
    /// The event's number.
    pub number: u64,
    /// The body.
    pub json: Bytes,
}

/// A webhook that got nothing more after an event it did not take.
#[derive(Debug, Clone)]
pub struct GivenUp {
    /// The task.
    pub task: TaskId,
    /// Where to.
    pub config: TaskPushNotificationConfig,
    /// Why.
    pub why: String,
    /// Since when.
    pub since: Timestamp,
}

/// How much is kept. Tasks that somebody works on always are; those that have ended go first, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Nothing whose status is older.
    pub since: Option<Timestamp>,
    /// At most so many tasks.
    pub tasks: Option<u64>,
    /// At most so many bytes of tasks, as JSON.
    pub bytes: Option<u64>,
}

/// Which tasks, and which page of them. The order is status time, then id, both descending.
#[derive(Debug, Clone)]
pub struct Query {
    /// Only this caller's.
    pub owner: Principal,
    /// Only of this context.
    pub context_id: Option<ContextId>,
    /// Only in this state.
    pub status: Option<TaskState>,
    /// Only with a status of this moment or later.
    pub since: Option<Timestamp>,
    /// Only what comes after this place in the order.
    pub after: Option<Place>,
    /// At most so many.
    pub limit: usize,
}

/// A place in the order of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The time of the status.
    pub time: Timestamp,
    /// The task.
    pub id: TaskId,
}

/// One page.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The tasks, in order.
    pub tasks: Vec<Told>,
    /// The place of the last one, if more come after it.
    pub next: Option<Place>,
    /// How many match on all pages.
    pub total: usize,
}

/// Why something is not kept. The texts are for the log; no client sees them.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store failed.
    #[error("the store failed: {0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The task stands elsewhere than this process believes, or is another's now.
    #[error("the task has moved on elsewhere")]
    Moved,
    /// The task cannot end yet: messages wait beside it that this process has not seen.
    #[error("a message waits beside the task")]
    Waiting,
}

impl StoreError {
    /// A failure, from its cause.
    pub fn failed(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed(cause.into())
    }
}

/// The answer of a store: there already, or to be waited for. A store in memory answers at once and costs no
/// allocation.
pub enum Kept<'a, T> {
    /// There already.
    Now(Option<Result<T, StoreError>>),
    /// To be waited for.
    Later(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>),
}

impl<T> Kept<'_, T> {
    /// An answer that is there already.
    pub fn now(value: T) -> Self {
        Self::Now(Some(Ok(value)))
    }
}

impl<T: Unpin> Future for Kept<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Now(answer) => match answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => Poll::Pending,
            },
            Self::Later(answer) => answer.as_mut().poll(context),
        }
    }
}

/// A task as it is shown to its owner.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Who may see it.
    pub owner: Principal,
    /// The task.
    pub task: Told,
}

/// Keeps tasks and what belongs to them. All methods may be called from many places at once; for one task the engine
/// changes it in one place after the other.
pub trait Store: Send + Sync + 'static {
    /// Whether its answers may have to be waited for. What is being kept is then kept and told to the end, even if
    /// the work that said it is dropped meanwhile.
    fn waits(&self) -> bool {
        true
    }

    /// What several processes need to share one store; none when this process has it for itself.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }

    /// Keeps a new task. With a message to be remembered, only if the same message has made none.
    fn create<'a>(&'a self, record: &'a Record, sent: Option<&'a Message>) -> Kept<'a, Created>;

    /// Keeps what happens to a task.
    fn keep<'a>(&'a self, step: &'a Step<'a>) -> Kept<'a, ()>;

    /// Reads one task.
    fn load<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Record>>;

    /// Reads one task to be shown.
    fn show<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Shown>>;

    /// Reads one page of tasks.
    fn list<'a>(&'a self, query: &'a Query) -> Kept<'a, Page>;

    /// The tasks whose work a process that is gone has left: those that somebody worked on, and those beside which a
    /// message waits. Asked once, at the start.
    fn unfinished(&self) -> Kept<'_, Vec<TaskId>>;

    /// The tasks that wait for an approval, longest first.
    fn awaiting_approval(&self) -> Kept<'_, Vec<Record>>;

    /// The task that this message, sent by this caller, came to, if it was to be remembered.
    fn came_to<'a>(&'a self, owner: &'a Principal, message: &'a Message) -> Kept<'a, Option<TaskId>>;

    /// Keeps a message beside a task.
    fn wait<'a>(&'a self, task: &'a TaskId, message: &'a Message) -> Kept<'a, ()>;

    /// Reads the messages beside a task, oldest first.
    fn waiting<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<Message>>;

    /// Keeps a webhook; one with the same id is replaced, and what it had not got yet is dropped.
    fn put_config<'a>(&'a self, task: &'a TaskId, config: &'a TaskPushNotificationConfig) -> Kept<'a, ()>;

    /// Reads the webhooks of a task, oldest first.
    fn configs<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<TaskPushNotificationConfig>>;

    /// Takes a webhook away with what it had not got yet. One that is not there counts as taken away.
    fn delete_config<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, ()>;

    /// The oldest event that a webhook has not got.
    fn next_delivery<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, Option<Delivery>>;

    /// A webhook has got an event.
    fn delivered<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId, number: u64) -> Kept<'a, ()>;

    /// A webhook gets nothing more.
    fn give_up<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId, why: &'a str, now: Timestamp) -> Kept<'a, ()>;

    /// The webhooks that get nothing more, newest first.
    fn given_up(&self) -> Kept<'_, Vec<GivenUp>>;

    /// The webhooks that have not got everything, because the process that would have sent it is gone.
    fn undelivered(&self) -> Kept<'_, Vec<(TaskId, ConfigId)>>;

    /// Drops what need not be kept any longer. Gives the tasks that are gone.
    fn retain<'a>(&'a self, keep: &'a Keep) -> Kept<'a, Vec<TaskId>>;
}

/// What processes that share one store tell each other through it.
pub trait Shared: Send + Sync {
    /// The events of a task after a number, and whether another process has the turn.
    fn since<'a>(&'a self, id: &'a TaskId, number: u64) -> Kept<'a, Option<News>>;

    /// Takes a task whose events end at this number, for a turn. False when it has moved on or another process has it.
    fn claim<'a>(&'a self, id: &'a TaskId, number: u64) -> Kept<'a, bool>;

    /// Gives a task back after a turn.
    fn release<'a>(&'a self, id: &'a TaskId) -> Kept<'a, ()>;

    /// Asks the process that has the turn to cancel it.
    fn ask_to_cancel<'a>(&'a self, id: &'a TaskId) -> Kept<'a, ()>;

    /// Says that this process lives, and takes over the tasks and webhooks of those that do not. When it fails, the store
    /// is not reached, and all that waits for an answer has failed too.
    fn beat(&self) -> Kept<'_, Taken>;

    /// Says that this process goes: the others need not wait until they miss it.
    fn leave(&self) -> Kept<'_, ()>;

    /// Takes a webhook's queue for this process. False when another process sends it.
    fn claim_queue<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, bool>;

    /// Gives a webhook's queue back. False when something is left in it.
    fn release_queue<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, bool>;

    /// Waits for what other processes have to say. Ends only with the store's failure.
    fn hear(&self) -> Kept<'_, Vec<Call>>;
}

/// What happened to a task meanwhile.
#[derive(Debug)]
pub struct News {
    /// The events, in order, without a gap.
    pub events: Vec<Arc<Event>>,
    /// The whole task, when events are no longer there to be read.
    pub record: Option<Record>,
    /// Whether another process has the turn.
    pub elsewhere: bool,
    /// Whether this process has the turn.
    pub here: bool,
    /// Whether this process has the turn and somebody asked it to cancel.
    pub cancel: bool,
}

/// What came of a sign of life.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    /// The tasks of dead processes, which are this one's now.
    pub tasks: Vec<TaskId>,
    /// Tasks of this process that somebody asked to cancel.
    pub cancel: Vec<TaskId>,
    /// All tasks that this process has the turn of, as far as the store knows.
    pub own: Vec<TaskId>,
    /// This process was dead to the others: its tasks are theirs.
    pub was_dead: bool,
}

/// What one process says to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// Something happened to this task.
    Task(TaskId),
    /// Something may have happened to any task: messages were missed.
    Everything,
}
