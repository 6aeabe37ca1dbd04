//! What the engine does besides calls: at the start, all the time, and at the end.

use std::sync::Arc;
use std::time::Duration;

use protocol::{TaskId, Timestamp};

use super::{Caller, Engine};
use crate::setup::Limits;
use crate::store::{Keep, StoreError};

impl Engine {
    /// Takes up what the process before has left, before the first call comes: turns that were broken off, messages that
    /// wait, and webhooks that have not got everything.
    pub async fn take_up(self: &Arc<Self>) -> Result<(), StoreError> {
        let left = self.store.unfinished().await?;
        if !left.is_empty() {
            tracing::info!("{} tasks were left by the process before", left.len());
        }
        for id in left {
            self.resume(&id).await?;
        }
        if let Some(shared) = self.store.shared() {
            // The others know of this process before it has a task.
            for id in shared.beat().await?.tasks {
                self.resume(&id).await?;
            }
        }
        for (task, config) in self.store.undelivered().await? {
            self.pusher.wake(&task, &config);
        }
        Ok(())
    }

    /// Goes on with a task that a process has left.
    pub async fn resume(self: &Arc<Self>, id: &TaskId) -> Result<(), StoreError> {
        let Some(record) = self.store.load(id).await? else { return Ok(()) };
        let (principal, base_url) = (record.owner.clone(), record.base_url.clone());
        let caller = Caller { principal, base_url, timestamps: None };
        let Ok(slot) = self.slot(&caller, id).await else {
            return Err(StoreError::failed("a task that was left could not be read"));
        };
        if let Some(begun) = slot.resume(self).await? {
            let engine = self.clone();
            tokio::spawn(async move { engine.run(slot, begun).await });
        }
        Ok(())
    }

    /// Drops what need not be kept any longer, for as long as the server runs.
    pub async fn retain(self: Arc<Self>) {
        let Limits { keep, keep_tasks, keep_bytes, .. } = self.limits;
        if keep.is_none() && keep_tasks.is_none() && keep_bytes.is_none() {
            return;
        }
        loop {
            let age = keep.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
            let since = age.map(|age| Timestamp::from_millis(self.clock.now().millis().saturating_sub(age)));
            match self.store.retain(&Keep { since, tasks: keep_tasks, bytes: keep_bytes }).await {
                Ok(gone) => gone.iter().for_each(|id| self.forget(id)),
                Err(cause) => tracing::warn!(%cause, "old tasks are still there"),
            }
            tokio::time::sleep(RETAIN_EVERY).await;
        }
    }

    /// Takes nothing new, lets work go on for the grace, then tells what is left to stop, and ends all streams.
    pub async fn shut_down(&self, grace: Duration) {
        self.closing.cancel();
        let ended = async || {
            for slot in self.slots() {
                let running = slot.lock().await.running.clone();
                if let Some(running) = running {
                    running.ended().await;
                }
            }
        };
        if tokio::time::timeout(grace, ended()).await.is_err() {
            self.stop.cancel();
            if tokio::time::timeout(STOP_LIMIT, ended()).await.is_err() {
                for slot in self.slots() {
                    slot.lock().await.running.iter().for_each(|running| running.kill.notify_one());
                }
                let _ = tokio::time::timeout(STOP_LIMIT, ended()).await;
            }
        }
        self.slots().iter().for_each(|slot| slot.log.cut());
    }

    /// Says to the others that this process is gone. Nothing of it may run any more.
    pub async fn leave(&self) {
        if let Some(shared) = self.store.shared()
            && let Err(cause) = shared.leave().await
        {
            tracing::warn!(%cause, "the other processes were not told that this one goes");
        }
    }
}

/// How often old tasks are looked for.
const RETAIN_EVERY: Duration = Duration::from_secs(1);
/// How long work that is told to stop when the server ends may take for it; then it is dropped.
const STOP_LIMIT: Duration = Duration::from_millis(500);
