//! Approvals that nobody gives in time (DECISIONS O19: an approval never counts as given by time, only as not given).
//!
//! One loop looks at what waits, decides what is due, and sleeps until the next is. It reads the store, so a task whose
//! process died expires in the next one, or in another that shares the store; which of several decides, the claim of the
//! turn settles, as with any decision.

use std::sync::Arc;
use std::time::Duration;

use protocol::{Task, Timestamp};

use super::{Decision, Engine};
use crate::agent::Start;
use crate::store::StoreError;

/// How often processes that share a store look at what the others' tasks wait for.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The pause after a failure of the store.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Times are whole milliseconds.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// No sleep is longer: a clock that is set forward is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

impl Engine {
    /// Lets approvals expire, for as long as the server runs.
    pub async fn expire(self: Arc<Self>) {
        loop {
            let pause = match self.expire_what_is_due().await {
                Ok(Some(next)) => next.clamp(SHORTEST_SLEEP, LONGEST_SLEEP),
                Ok(None) if self.store.shared().is_some() => LOOK_EVERY,
                // Nothing waits that may expire: the next approval that is asked for wakes this.
                Ok(None) => Duration::MAX,
                Err(cause) => {
                    tracing::warn!(%cause, "approvals that are due were not looked for");
                    LOOK_AGAIN
                }
            };
            let pause = if self.store.shared().is_some() { pause.min(LOOK_EVERY) } else { pause };
            let _ = tokio::time::timeout(pause, self.approval_asked.notified()).await;
        }
    }

    /// A task has begun to wait for an approval.
    pub fn approval_is_asked(&self, task: &Task) {
        if self.agent.approval_limit(task).is_some() {
            self.approval_asked.notify_one();
        }
    }

    /// Starts the turn of each expiry that is due. Gives how long it is until the next one.
    async fn expire_what_is_due(self: &Arc<Self>) -> Result<Option<Duration>, StoreError> {
        // The clock is asked only when a task has a limit: a seeded one moves with each question.
        let mut now = None;
        let mut next: Option<Duration> = None;
        for record in self.store.awaiting_approval().await? {
            let task = &record.task;
            let (Some(limit), Some(since)) = (self.agent.approval_limit(task), task.status.timestamp) else { continue };
            let now: Timestamp = *now.get_or_insert_with(|| self.clock.now());
            let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
            let left = since.millis().saturating_add(limit).saturating_sub(now.millis());
            if left > 0 {
                let left = Duration::from_millis(left.unsigned_abs());
                next = Some(next.map_or(left, |next| next.min(left)));
                continue;
            }
            let (engine, id) = (self.clone(), task.id.clone());
            tokio::spawn(async move {
                let expiry = Decision { start: Start::Expiry, by: None, since: Some(since) };
                if engine.decide(&id, expiry).await.is_err() {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    engine.approval_asked.notify_one();
                }
            });
        }
        Ok(next)
    }
}
