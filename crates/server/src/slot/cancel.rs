//! The end of a task at its client's request.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol::{Error, ErrorKind, Task, TaskState};

use super::Slot;
use crate::engine::Engine;

impl Slot {
    /// Ends the task at the client's request.
    pub async fn cancel(&self, engine: &Engine) -> Result<Arc<Task>, Error> {
        let mut state = self.lock().await;
        self.hear(engine, &mut state).await?;
        let refuse = |task: &Task| Err(Error::not_cancelable(&self.id, task.status.state));
        if state.task.status.state.is_terminal() {
            return refuse(&state.task);
        }
        if state.running.is_none() && !self.claim(engine, &mut state).await? {
            return self.cancel_elsewhere(engine, state).await;
        }
        let Some(running) = state.running.clone() else {
            let kept = self.set(engine, &mut state, TaskState::Canceled, CANCELED.into()).await;
            return kept.map(|()| state.task.clone()).map_err(|_| ErrorKind::Internal.into());
        };
        running.canceled.store(true, Ordering::Release);
        running.stop.cancel();
        drop(state);
        if tokio::time::timeout(engine.limits.cancel, running.ended_or_broken()).await.is_err() {
            running.kill.notify_one();
            // The task is ended later only when the store fails.
            let _ = tokio::time::timeout(engine.limits.cancel, running.ended_or_broken()).await;
        }
        let task = self.snapshot().await;
        match task.status.state {
            TaskState::Canceled => Ok(task),
            state if state.is_terminal() => refuse(&task),
            _ => Err(ErrorKind::Internal.into()),
        }
    }
}

/// What the server says when a client ends a task.
pub(super) const CANCELED: &str = "Canceled at the client's request.";
