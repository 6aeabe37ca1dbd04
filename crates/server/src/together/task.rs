//! One task between several processes: where it stands in the store, who has its turn, and what the others did to it.

use std::sync::Arc;
use std::time::Duration;

use protocol::{Error, ErrorKind, Task, TaskState};
use tokio::sync::MutexGuard;

use crate::engine::Engine;
use crate::hub::Event;
use crate::slot::{Begun, CLAIMS, ELSEWHERE, FIRST_PAUSE, Incoming, Slot, State};
use crate::store::{Record, StoreError};

impl Slot {
    /// Hears what other processes did to the task, unless this one has the turn.
    pub async fn hear(&self, engine: &Engine, state: &mut State) -> Result<(), Error> {
        if engine.store.shared().is_none() || state.running.is_some() || state.task.status.state.is_terminal() {
            return Ok(());
        }
        self.catch_up(engine, state).await.map(drop)
    }

    /// Comes to where the task stands in the store. Whether the turn is this process's.
    pub async fn catch_up(&self, engine: &Engine, state: &mut State) -> Result<bool, Error> {
        let Some(shared) = engine.store.shared() else {
            let record = engine.store.load(&self.id).await.map_err(|cause| engine.internal(&cause))?;
            let record = record.filter(|record| record.number > state.number);
            let record = record.ok_or_else(|| Error::task_not_found(&self.id))?;
            self.skip_to(engine, state, record);
            return Ok(true);
        };
        let news = shared.since(&self.id, state.number).await.map_err(|cause| engine.internal(&cause))?;
        let Some(news) = news else {
            engine.forget(&self.id);
            return Err(Error::task_not_found(&self.id));
        };
        state.elsewhere = news.elsewhere;
        if let Some(record) = news.record {
            self.skip_to(engine, state, record);
        }
        for event in news.events {
            let mut task = (*state.task).clone();
            if let Err(refused) = task.apply(&event.change) {
                tracing::error!(task = %self.id, %refused, "another process kept something impossible");
                return Err(ErrorKind::Internal.into());
            }
            state.task = Arc::new(task);
            // Each process numbers the turns that it knows of.
            self.happened(engine, state, Arc::new(Event::new(event.number, ELSEWHERE, event.change.clone())));
        }
        Ok(news.here)
    }

    /// The task stands further on than was heard.
    pub fn skip_to(&self, engine: &Engine, state: &mut State, record: Record) {
        state.task = record.task;
        state.number = record.number;
        self.log.skip_to(record.number);
        if state.task.status.state.phase().settles() {
            self.settle(engine, state, ELSEWHERE);
        }
    }

    /// Takes up the messages that wait beside the task and that this process does not know of.
    pub async fn find_waiting(&self, engine: &Engine, state: &mut State) -> Result<(), StoreError> {
        for message in engine.store.waiting(&self.id).await? {
            if !state.waiting.iter().any(|(_, waits)| waits.message.message_id == message.message_id) {
                state.turns += 1;
                let turn = state.turns;
                state.waiting.push_back((turn, Incoming::answered(&self.owner, message)));
            }
        }
        Ok(())
    }

    /// Another process did something to the task: this one hears it, and takes the turn if something waits here and
    /// nobody has it.
    pub async fn stirred(&self, engine: &Engine) -> Option<Begun> {
        let mut state = self.lock().await;
        if state.running.is_some() {
            // A webhook may have been added elsewhere.
            if let Ok(configs) = engine.store.configs(&self.id).await {
                state.configs = configs.into_iter().filter_map(|config| config.id).collect();
            }
            return None;
        }
        self.hear(engine, &mut state).await.ok()?;
        if state.waiting.is_empty() || !self.claim(engine, &mut state).await.ok()? {
            return None;
        }
        let next = self.next(engine, &mut state).await;
        if next.is_none() {
            self.release(engine).await;
        }
        next
    }

    /// Takes the turn where several processes share the store. False when another one has it.
    pub async fn claim(&self, engine: &Engine, state: &mut State) -> Result<bool, Error> {
        let Some(shared) = engine.store.shared() else { return Ok(true) };
        for _ in 0..CLAIMS {
            if state.elsewhere || state.task.status.state.is_terminal() {
                return Ok(false);
            }
            match shared.claim(&self.id, state.number).await {
                Ok(true) => return Ok(true),
                Ok(false) => self.hear(engine, state).await?,
                Err(cause) => {
                    // It may have been taken all the same.
                    engine.release_later(&self.id);
                    return Err(engine.internal(&cause));
                }
            }
        }
        Ok(false)
    }

    /// Gives the turn back where several processes share the store. What fails here is mended when this process ends.
    pub async fn release(&self, engine: &Engine) {
        if let Some(shared) = engine.store.shared()
            && let Err(cause) = shared.release(&self.id).await
        {
            tracing::warn!(task = %self.id, %cause, "a task is not given back yet");
            engine.release_later(&self.id);
        }
    }

    /// Asks the process that has the turn to cancel it, and waits until it has.
    pub async fn cancel_elsewhere(
        &self,
        engine: &Engine,
        mut state: MutexGuard<'_, State>,
    ) -> Result<Arc<Task>, Error> {
        let Some(shared) = engine.store.shared() else { return Err(ErrorKind::Internal.into()) };
        if !state.task.status.state.is_terminal() {
            shared.ask_to_cancel(&self.id).await.map_err(|cause| engine.internal(&cause))?;
        }
        let until = tokio::time::Instant::now() + engine.limits.cancel * 2 + TAKEN_OVER_AFTER;
        loop {
            self.hear(engine, &mut state).await?;
            match state.task.status.state {
                TaskState::Canceled => return Ok(state.task.clone()),
                ended if ended.is_terminal() => return Err(Error::not_cancelable(&self.id, ended)),
                _ if tokio::time::Instant::now() > until => return Err(ErrorKind::Internal.into()),
                _ if state.running.is_some() || !state.elsewhere => {
                    // The turn has come here, or has ended without an end of the task.
                    drop(state);
                    return Box::pin(self.cancel(engine)).await;
                }
                _ => {}
            }
            drop(state);
            tokio::time::sleep(FIRST_PAUSE).await;
            state = self.lock().await;
        }
    }
}

/// How long it takes at most until the tasks of a process that is gone are another's.
const TAKEN_OVER_AFTER: Duration = Duration::from_secs(10);
