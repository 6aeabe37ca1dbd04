//! A store that opens the window between keeping and telling, or fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::{Change, ConfigId, TaskId, TaskPushNotificationConfig};
use server::store::{Kept, Memory, Page, Query, Record, Store, StoreError};

/// A store in memory that answers late, as one on disk would, and that can be made to fail.
#[derive(Debug, Default)]
pub struct Slow {
    inner: Memory,
    /// How long it takes between keeping and saying so.
    pub pause: Duration,
    /// Whether it fails.
    pub fails: Arc<AtomicBool>,
}

impl Slow {
    /// A store that takes 200 microseconds.
    pub fn new() -> Self {
        Self { pause: Duration::from_micros(200), ..Self::default() }
    }

    fn late<'a, T: Send + Unpin + 'a>(&'a self, kept: Kept<'a, T>) -> Kept<'a, T> {
        if self.fails.load(Ordering::SeqCst) {
            return Kept::Later(Box::pin(async { Err(StoreError("made to fail".into())) }));
        }
        Kept::Later(Box::pin(async move {
            let kept = kept.await;
            tokio::time::sleep(self.pause).await;
            kept
        }))
    }
}

impl Store for Slow {
    fn create<'a>(&'a self, record: &'a Record) -> Kept<'a, ()> {
        if self.fails.load(Ordering::SeqCst) {
            return self.late(Kept::now(()));
        }
        self.late(self.inner.create(record))
    }

    fn keep<'a>(&'a self, record: &'a Record, change: &'a Change) -> Kept<'a, ()> {
        if self.fails.load(Ordering::SeqCst) {
            return self.late(Kept::now(()));
        }
        self.late(self.inner.keep(record, change))
    }

    fn load<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Record>> {
        self.late(self.inner.load(id))
    }

    fn list<'a>(&'a self, query: &'a Query) -> Kept<'a, Page> {
        self.late(self.inner.list(query))
    }

    fn put_config<'a>(&'a self, task: &'a TaskId, config: &'a TaskPushNotificationConfig) -> Kept<'a, ()> {
        self.late(self.inner.put_config(task, config))
    }

    fn configs<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<TaskPushNotificationConfig>> {
        self.late(self.inner.configs(task))
    }

    fn delete_config<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, ()> {
        self.late(self.inner.delete_config(task, id))
    }
}
