//! Calls that only read: a task, a page of tasks, a subscription, and what an operator asks for.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use protocol::call::{ListTasksRequest, SubscribeToTaskRequest};
use protocol::{Error, TaskId, TaskState, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Caller, Engine};
use crate::hub::{Ends, Reader};
use crate::store::{GivenUp, Page, Place, Query, Record, Shown};
use crate::told::Told;

impl Engine {
    pub async fn get(&self, caller: &Caller, id: &TaskId) -> Result<Told, Error> {
        let shown = self.store.show(id).await.map_err(|cause| self.internal(&cause))?;
        match shown {
            Some(Shown { owner, task }) if owner == caller.principal => Ok(task),
            _ => Err(Error::task_not_found(id)),
        }
    }

    pub async fn list(&self, caller: &Caller, request: &ListTasksRequest) -> Result<Page, Error> {
        let after = request.page_token.as_deref().map(Cursor::read).transpose()?;
        let query = Query {
            owner: caller.principal.clone(),
            context_id: request.context_id.clone(),
            status: request.status.filter(|state| *state != TaskState::Unspecified),
            since: request.status_timestamp_after,
            after,
            limit: request.page_size.and_then(|size| usize::try_from(size).ok()).unwrap_or(50),
        };
        self.store.list(&query).await.map_err(|cause| self.internal(&cause))
    }

    /// Follows a task. With the number of an event that the reader has seen, only what came after it, if it is held.
    pub async fn subscribe(
        &self,
        caller: &Caller,
        request: &SubscribeToTaskRequest,
        seen: Option<u64>,
    ) -> Result<Reader, Error> {
        let slot = self.slot(caller, &request.id).await?;
        let mut state = slot.lock().await;
        slot.hear(self, &mut state).await?;
        if state.task.status.state.is_terminal() {
            return Err(Error::unsupported_in(&slot.id, state.task.status.state));
        }
        let mut reader = Reader::attach(&slot.log, state.task.clone(), Ends::WithTask);
        drop(state);
        if let Some(seen) = seen {
            reader.resume_after(seen);
        }
        Ok(reader)
    }

    /// The tasks that wait for an approval, longest first.
    pub async fn awaiting_approval(&self) -> Result<Vec<Record>, Error> {
        self.store.awaiting_approval().await.map_err(|cause| self.internal(&cause))
    }

    /// The webhooks that get nothing more.
    pub async fn given_up(&self) -> Result<Vec<GivenUp>, Error> {
        self.store.given_up().await.map_err(|cause| self.internal(&cause))
    }
}

/// Where a page of tasks begins, as clients carry it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    ts: Timestamp,
    id: TaskId,
}

pub(super) const NOT_ONE_OF_OURS: &str = "pageToken is not one of this agent's";

impl Cursor {
    pub fn read(token: &str) -> Result<Place, Error> {
        let json = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
        let cursor = json.and_then(|json| serde_json::from_slice::<Self>(&json).ok());
        let cursor = cursor.ok_or_else(|| Error::invalid("pageToken", NOT_ONE_OF_OURS))?;
        Ok(Place { time: cursor.ts, id: cursor.id })
    }

    /// The token that follows the last task of a page; empty when nothing follows.
    pub fn after(page: &Page) -> String {
        let cursor = page.next.as_ref().map(|place| Self { ts: place.time, id: place.id.clone() });
        let json = cursor.and_then(|cursor| serde_json::to_vec(&cursor).ok());
        json.map(|json| BASE64_URL_SAFE_NO_PAD.encode(json)).unwrap_or_default()
    }
}
