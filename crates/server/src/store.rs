//! Where tasks are kept.
//!
//! The engine writes, everybody reads. What [`Store::keep`] has taken survives as the store promises; only then does
//! anybody hear of it. A store knows nothing of turns, streams or webhooks.

mod memory;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use protocol::{Change, ContextId, Task, TaskId, TaskPushNotificationConfig, TaskState, Timestamp};

pub use memory::Memory;

/// Whose tasks these are: the name that a credential stands for.
pub type Principal = Arc<str>;

/// A task with what the server knows about it beside the protocol.
#[derive(Debug, Clone)]
pub struct Record {
    /// The task as it stands.
    pub task: Arc<Task>,
    /// Who may see it.
    pub owner: Principal,
    /// Where its client reaches the agent; links in texts are made from it.
    pub base_url: Arc<str>,
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
    pub tasks: Vec<Arc<Task>>,
    /// Whether more come after them.
    pub more: bool,
    /// How many match on all pages.
    pub total: usize,
}

/// A store failed. The text is for the log; no client sees it.
#[derive(Debug, thiserror::Error)]
#[error("the store failed: {0}")]
pub struct StoreError(pub Box<dyn std::error::Error + Send + Sync>);

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

/// Keeps tasks and their webhooks. All methods may be called from many places at once; for one task the engine calls
/// them one after the other.
pub trait Store: Send + Sync + 'static {
    /// Whether its answers may have to be waited for. What is being kept is then kept and told to the end, even if
    /// the work that said it is dropped meanwhile.
    fn waits(&self) -> bool {
        true
    }

    /// Keeps a new task.
    fn create<'a>(&'a self, record: &'a Record) -> Kept<'a, ()>;

    /// Keeps a change together with the task as it is after it.
    fn keep<'a>(&'a self, record: &'a Record, change: &'a Change) -> Kept<'a, ()>;

    /// Reads one task.
    fn load<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Record>>;

    /// Reads one page of tasks.
    fn list<'a>(&'a self, query: &'a Query) -> Kept<'a, Page>;

    /// Keeps a webhook; one with the same id is replaced.
    fn put_config<'a>(&'a self, task: &'a TaskId, config: &'a TaskPushNotificationConfig) -> Kept<'a, ()>;

    /// Reads the webhooks of a task, oldest first.
    fn configs<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<TaskPushNotificationConfig>>;

    /// Takes a webhook away. One that is not there counts as taken away.
    fn delete_config<'a>(&'a self, task: &'a TaskId, id: &'a protocol::ConfigId) -> Kept<'a, ()>;
}
