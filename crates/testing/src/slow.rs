//! A store that opens the window between keeping and telling, or fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::{ConfigId, Message, TaskId, TaskPushNotificationConfig, Timestamp};
use server::store::{
    Created, Delivery, GivenUp, Keep, Kept, Memory, Page, Principal, Query, Record, Shown, Step, Store, StoreError,
};

/// A store in memory that answers late, as one on disk would, and that can be made to fail.
#[derive(Debug, Default)]
pub struct Slow {
    inner: Memory,
    /// How long it takes between keeping and saying so.
    pub pause: Duration,
    /// Whether it fails.
    pub fails: Arc<AtomicBool>,
    /// The task whose reading panics.
    pub panics_for: Option<&'static str>,
}

impl Slow {
    /// A store that takes 200 microseconds.
    pub fn new() -> Self {
        Self { pause: Duration::from_micros(200), ..Self::default() }
    }

    fn read<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Record>> {
        assert_ne!(Some(id.as_str()), self.panics_for, "as it was told");
        self.inner.load(id)
    }

    fn late<'a, T: Send + Unpin + 'a>(&'a self, kept: Kept<'a, T>) -> Kept<'a, T> {
        Kept::Later(Box::pin(async move {
            let kept = kept.await;
            tokio::time::sleep(self.pause).await;
            kept
        }))
    }
}

/// One method of the store: refused when it is made to fail, else late.
macro_rules! late {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name<'a>(&'a self, $($argument: $type),*) -> Kept<'a, $answer> {
            if self.fails.load(Ordering::SeqCst) {
                return Kept::Later(Box::pin(async { Err(StoreError::failed("made to fail")) }));
            }
            self.late(self.inner.$name($($argument),*))
        }
    )*};
}

impl Store for Slow {
    fn load<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Record>> {
        if self.fails.load(Ordering::SeqCst) {
            return Kept::Later(Box::pin(async { Err(StoreError::failed("made to fail")) }));
        }
        self.late(self.read(id))
    }

    late! {
        create(record: &'a Record, sent: Option<&'a Message>) -> Created;
        keep(step: &'a Step<'a>) -> ();
        show(id: &'a TaskId) -> Option<Shown>;
        list(query: &'a Query) -> Page;
        unfinished() -> Vec<TaskId>;
        awaiting_approval() -> Vec<Record>;
        came_to(owner: &'a Principal, message: &'a Message) -> Option<TaskId>;
        wait(task: &'a TaskId, message: &'a Message) -> ();
        waiting(task: &'a TaskId) -> Vec<Message>;
        put_config(task: &'a TaskId, config: &'a TaskPushNotificationConfig) -> ();
        configs(task: &'a TaskId) -> Vec<TaskPushNotificationConfig>;
        delete_config(task: &'a TaskId, id: &'a ConfigId) -> ();
        next_delivery(task: &'a TaskId, id: &'a ConfigId) -> Option<Delivery>;
        delivered(task: &'a TaskId, id: &'a ConfigId, number: u64) -> ();
        give_up(task: &'a TaskId, id: &'a ConfigId, why: &'a str, now: Timestamp) -> ();
        given_up() -> Vec<GivenUp>;
        undelivered() -> Vec<(TaskId, ConfigId)>;
        retain(keep: &'a Keep) -> Vec<TaskId>;
    }
}
