//! Several processes that share one store.
//!
//! Each says every second that it lives, hears what the others do, and takes over what the dead have left. One that does
//! not reach the store drops its work before the others take it over. Here stands what a process does; [`task`] is what
//! that means for one task.

mod task;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::HashMap;
use protocol::TaskId;
use tokio::time::{Instant, timeout_at};

use crate::engine::Engine;
use crate::slot::Slot;
use crate::store::{Call, StoreError, Taken};

/// What a process remembers of its life with the others.
#[derive(Default)]
pub(crate) struct Together {
    /// Tasks to be given back, or gone on with, when the shared store can be reached.
    releasing: Mutex<Vec<TaskId>>,
    /// Tasks of this process on which nobody works, and since when that is known.
    idle: Mutex<HashMap<TaskId, Instant>>,
    /// Held while what others have left is taken over.
    taking: tokio::sync::Mutex<()>,
}

impl Engine {
    /// Lives together with the other processes that share the store, for as long as the server runs: says that this one
    /// lives, takes over what the dead have left, and hears what the others do.
    pub async fn live_together(self: Arc<Self>) {
        if self.store.shared().is_none() {
            return;
        }
        tokio::join!(self.clone().beat(), self.clone().listen());
    }

    async fn beat(self: Arc<Self>) {
        let Some(shared) = self.store.shared() else { return };
        // The others count from when a sign of life began, or later.
        let mut last = Instant::now();
        let (mut is_reached, mut works) = (true, true);
        loop {
            let began = Instant::now();
            let alone = last + ALONE_LIMIT;
            let beat = async {
                let beat = shared.beat();
                if works {
                    timeout_at(alone, beat).await.unwrap_or_else(|_| Err(StoreError::failed("no answer")))
                } else {
                    beat.await
                }
            };
            let pause = match beat.await {
                Ok(taken) => {
                    if taken.was_dead && works && began > alone {
                        self.drop_work("the other processes have taken over").await;
                    }
                    (last, is_reached, works) = (began, true, true);
                    let engine = self.clone();
                    tokio::spawn(async move { engine.take_over(taken).await });
                    BEAT_EVERY
                }
                Err(cause) => {
                    if std::mem::take(&mut is_reached) {
                        tracing::error!("the store that is shared is not reached: {cause}");
                    }
                    if works && Instant::now() >= alone {
                        // The others take over soon, if they are not cut off as well. Nothing may run twice.
                        self.drop_work("the store is not reached").await;
                        works = false;
                    }
                    BEAT_AGAIN
                }
            };
            let next = Instant::now() + pause;
            tokio::time::sleep_until(if works { next.min(last + ALONE_LIMIT) } else { next }).await;
        }
    }

    /// Goes on with what dead processes have left, and with what this one could not finish while the store was lost.
    async fn take_over(self: Arc<Self>, taken: Taken) {
        let _one_at_a_time = self.together.taking.lock().await;
        for id in &taken.tasks {
            tracing::info!(task = %id, "taken over from a process that is gone");
        }
        for id in &taken.cancel {
            self.cancel_here(id);
        }
        let mut left = taken.tasks;
        left.extend(std::mem::take(&mut *self.together.releasing.lock().unwrap_or_else(PoisonError::into_inner)));
        left.extend(self.without_work(taken.own).await);
        for id in left {
            if let Err(cause) = self.resume(&id).await {
                // It is this process's; the next beat tries again.
                tracing::warn!(task = %id, %cause, "not resumed yet");
                self.release_later(&id);
            }
        }
        match self.store.undelivered().await {
            Ok(left) => left.iter().for_each(|(task, config)| self.pusher.wake(task, config)),
            Err(cause) => tracing::warn!(%cause, "webhooks wait for the store"),
        }
    }

    /// The tasks that the store believes to be worked on here, but are not: it was lost when they were begun or given
    /// back. Only those of which that has been true for a while.
    async fn without_work(&self, own: Vec<TaskId>) -> Vec<TaskId> {
        let mut idle = HashMap::default();
        for id in own {
            let works = match self.live(&id) {
                Some(slot) => slot.lock().await.running.is_some(),
                None => false,
            };
            if !works {
                idle.insert(id, Instant::now());
            }
        }
        let mut known = self.together.idle.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|id, _| idle.contains_key(id));
        for (id, since) in idle {
            known.entry(id).or_insert(since);
        }
        let old = known.extract_if(|_, since| since.elapsed() > IDLE_LIMIT);
        old.map(|(id, _)| id).collect()
    }

    async fn listen(self: Arc<Self>) {
        let Some(shared) = self.store.shared() else { return };
        loop {
            match shared.hear().await {
                Ok(calls) => {
                    for call in calls {
                        match call {
                            Call::Task(id) => {
                                if let Some(slot) = self.live(&id) {
                                    self.stir(slot);
                                }
                            }
                            Call::Everything => self.slots().into_iter().for_each(|slot| self.stir(slot)),
                        }
                    }
                }
                Err(cause) => {
                    tracing::warn!(%cause, "what the other processes do is not heard");
                    tokio::time::sleep(BEAT_EVERY).await;
                }
            }
        }
    }

    /// Another process did something to a task.
    fn stir(self: &Arc<Self>, slot: Arc<Slot>) {
        let engine = self.clone();
        tokio::spawn(async move {
            if let Some(shared) = engine.store.shared()
                && let Some(running) = slot.lock().await.running.clone()
                && let Ok(Some(news)) = shared.since(&slot.id, u64::MAX).await
            {
                if news.elsewhere {
                    running.stop_within(Duration::ZERO);
                } else if news.cancel {
                    engine.cancel_here(&slot.id);
                }
            }
            if let Some(begun) = slot.stirred(&engine).await {
                engine.run(slot, begun).await;
            }
        });
    }

    /// Cancels a task whose turn this process has, at the wish of another.
    fn cancel_here(self: &Arc<Self>, id: &TaskId) {
        let Some(slot) = self.live(id) else { return };
        let engine = self.clone();
        tokio::spawn(async move {
            if slot.lock().await.running.is_some() {
                let _ = slot.cancel(&engine).await;
            }
        });
    }

    /// A task of this process's that should be given back, or gone on with, when the store can be reached.
    pub fn release_later(&self, id: &TaskId) {
        self.together.releasing.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
    }

    /// Drops all work: its results cannot be kept, and others may be about to take over. Whoever follows a task must come
    /// back, perhaps to another process.
    async fn drop_work(&self, why: &str) {
        for slot in self.slots() {
            slot.log.cut();
            if let Some(running) = &slot.lock().await.running {
                tracing::error!(task = %slot.id, "the work is dropped: {why}");
                running.clone().stop_within(Duration::ZERO);
            }
        }
    }
}

/// How often a process says that it lives.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// The pause before it tries again.
const BEAT_AGAIN: Duration = Duration::from_millis(250);
/// How long a task may be this process's without any work on it.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// How long a process that does not reach the shared store goes on with its work: shorter than it takes the others to
/// believe it dead.
const ALONE_LIMIT: Duration = Duration::from_secs(4);
