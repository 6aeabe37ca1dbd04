//! What is read from the database.

use std::sync::Arc;

use protocol::{
    Change, ConfigId, Message, StreamResponse, Task, TaskId, TaskPushNotificationConfig, TaskState, Timestamp,
};
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::text::Argument;
use super::{Sql, failed, signed, sql};
use crate::hub::Event;
use crate::store::{Delivery, GivenUp, Keep, Page, Place, Principal, Query, Record, Shown, StoreError};
use crate::told::{Told, Written};

/// How often a task is read again when its events were folded into its row in between.
const READS: usize = 8;

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(StoreError::failed)
}

fn number(row: &AnyRow, column: &str) -> Result<u64, StoreError> {
    let number: i64 = row.try_get(column).map_err(failed)?;
    Ok(u64::try_from(number).unwrap_or_default())
}

fn text(row: &AnyRow, column: &str) -> Result<String, StoreError> {
    row.try_get::<String, _>(column).map(|text| super::text::read(text.into())).map_err(failed)
}

/// A task whose row holds all that happened to it, as it stands there.
fn whole(row: &AnyRow) -> Result<Option<Told>, StoreError> {
    if number(row, "folded")? < number(row, "number")? {
        return Ok(None);
    }
    Ok(Some(Written::from_text(&text(row, "json")?).into()))
}

pub(super) fn id<T>(row: &AnyRow, column: &str) -> Result<T, StoreError>
where
    T: for<'a> TryFrom<&'a str, Error = protocol::EmptyId>,
{
    T::try_from(&text(row, column)?).map_err(StoreError::failed)
}

impl Sql {
    pub(super) async fn read_task(&self, task: &TaskId) -> Result<Option<Record>, StoreError> {
        let mut connection = self.read().acquire().await.map_err(failed)?;
        for _ in 0..READS {
            let found = sql!("SELECT id, owner, base_url, number, folded, json FROM task WHERE id = $1", task.as_str());
            let Some(row) = found.fetch_optional(&mut *connection).await.map_err(failed)? else { return Ok(None) };
            if let Some(record) = self.fold(&mut connection, &row).await? {
                return Ok(Some(record));
            }
        }
        Err(StoreError::failed("a task's events are missing"))
    }

    pub(super) async fn read_shown(&self, task: &TaskId) -> Result<Option<Shown>, StoreError> {
        let found = {
            let mut connection = self.read().acquire().await.map_err(failed)?;
            let found = sql!("SELECT owner, number, folded, json FROM task WHERE id = $1", task.as_str());
            found.fetch_optional(&mut *connection).await.map_err(failed)?
        };
        let Some(row) = found else { return Ok(None) };
        if let Some(task) = whole(&row)? {
            return Ok(Some(Shown { owner: text(&row, "owner")?.into(), task }));
        }
        let record = self.read_task(task).await?;
        Ok(record.map(|record| Shown { owner: record.owner, task: record.task.into() }))
    }

    /// A row with the events that are not in it yet. None when they are gone, because the row was written meanwhile.
    async fn fold(&self, connection: &mut AnyConnection, row: &AnyRow) -> Result<Option<Record>, StoreError> {
        let (newest, folded) = (number(row, "number")?, number(row, "folded")?);
        let mut task: Task = parse(&text(row, "json")?)?;
        let mut at = folded;
        if folded < newest {
            for event in self.find_events(connection, &task.id, folded).await? {
                if event.number != at + 1 {
                    break;
                }
                at = event.number;
                task.apply(&event.change).map_err(StoreError::failed)?;
            }
        }
        if at < newest {
            return Ok(None);
        }
        let (owner, base_url) = (text(row, "owner")?.into(), text(row, "base_url")?.into());
        Ok(Some(Record { task: Arc::new(task), number: at, owner, base_url }))
    }

    /// The events of a task after a number, in order.
    pub(super) async fn find_events(
        &self,
        connection: &mut AnyConnection,
        task: &TaskId,
        after: u64,
    ) -> Result<Vec<Event>, StoreError> {
        let statement = sql!(
            "SELECT number, turn, json FROM event WHERE task = $1 AND number > $2 ORDER BY number",
            task.as_str(),
            signed(after),
        );
        let rows = statement.fetch_all(connection).await.map_err(failed)?;
        let events = rows.iter().map(|row| {
            let response: StreamResponse = parse(&text(row, "json")?)?;
            let change = Change::try_from(response).map_err(|_| StoreError::failed("a kept event is a task"))?;
            let turn = u32::try_from(number(row, "turn")?).unwrap_or(u32::MAX);
            Ok(Event::new(number(row, "number")?, turn, change))
        });
        events.collect()
    }

    pub(super) async fn read_page(&self, query: &Query) -> Result<Page, StoreError> {
        let mut filter = "owner = $1 AND time >= $2".to_owned();
        if query.context_id.is_some() {
            filter.push_str(" AND context_id = $3");
        }
        if let Some(state) = query.status {
            filter.push_str(&format!(" AND state = {}", state as i64));
        }
        let since = query.since.map_or(i64::MIN, Timestamp::millis);
        let context = query.context_id.as_ref().map(|context| context.as_str());
        let count = AssertSqlSafe(format!("SELECT COUNT(*) AS total FROM task WHERE {filter}"));
        let mut count = sql!(count, query.owner.as_ref(), since);
        if let Some(context) = context {
            count = count.bind(context.bound());
        }
        let mut connection = self.read().acquire().await.map_err(failed)?;
        let total = number(&count.fetch_one(&mut *connection).await.map_err(failed)?, "total")?;

        let wanted = query.limit.saturating_add(1);
        let next = if context.is_some() { 4 } else { 3 };
        let place = match query.after {
            Some(_) => format!(" AND (time < ${next} OR time = ${next} AND id < ${})", next + 1),
            None => String::new(),
        };
        let statement = AssertSqlSafe(format!(
            "SELECT id, owner, base_url, number, folded, json, time FROM task WHERE {filter}{place}
             ORDER BY time DESC, id DESC LIMIT {wanted}"
        ));
        let mut statement = sql!(statement, query.owner.as_ref(), since);
        if let Some(context) = context {
            statement = statement.bind(context.bound());
        }
        if let Some(after) = &query.after {
            statement = statement.bind(after.time.millis()).bind(after.id.as_str().bound());
        }
        let rows = statement.fetch_all(&mut *connection).await.map_err(failed)?;
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        let mut page = Page { total, ..Page::default() };
        if rows.len() > query.limit
            && let Some(last) = query.limit.checked_sub(1).and_then(|at| rows.get(at))
        {
            let time = last.try_get("time").map_err(failed)?;
            page.next = Some(Place { time: Timestamp::from_millis(time), id: id(last, "id")? });
        }
        for row in rows.iter().take(query.limit) {
            if let Some(task) = whole(row)? {
                page.tasks.push(task);
                continue;
            }
            match self.fold(&mut connection, row).await? {
                Some(record) => page.tasks.push(record.task.into()),
                None => {
                    // It has gone on since; the page shows it as it is now, or not at all when it is gone.
                    let id: TaskId = id(row, "id")?;
                    page.tasks.extend(self.read_task(&id).await?.map(|record| record.task.into()));
                }
            }
        }
        Ok(page)
    }

    async fn read_ids(&self, statement: &'static str) -> Result<Vec<TaskId>, StoreError> {
        let mut connection = self.read().acquire().await.map_err(failed)?;
        let rows = sql!(statement).fetch_all(&mut *connection).await.map_err(failed)?;
        rows.iter().map(|row| id(row, "id")).collect()
    }

    pub(super) async fn read_unfinished(&self) -> Result<Vec<TaskId>, StoreError> {
        if self.is_shared() {
            // The others may be working on them; those of the dead are taken over with the first beat.
            return Ok(Vec::new());
        }
        let statement =
            "SELECT id FROM task WHERE state IN (0, 1, 2) OR id IN (SELECT task FROM waiting) ORDER BY time, id";
        self.read_ids(statement).await
    }

    pub(super) async fn read_awaiting(&self) -> Result<Vec<Record>, StoreError> {
        let waiting = self.read_ids("SELECT id FROM task WHERE state = 8 ORDER BY time, id").await?;
        let mut records = Vec::new();
        for id in waiting {
            let record = self.read_task(&id).await?;
            records.extend(record.filter(|record| record.task.status.state == TaskState::AuthRequired));
        }
        Ok(records)
    }

    pub(super) async fn find_sent(
        &self,
        connection: &mut AnyConnection,
        owner: &Principal,
        message: &Message,
    ) -> Result<Option<TaskId>, StoreError> {
        let statement = sql!(
            "SELECT json, task AS id FROM sent WHERE owner = $1 AND message_id = $2",
            owner.as_ref(),
            message.message_id.as_str(),
        );
        let Some(row) = statement.fetch_optional(connection).await.map_err(failed)? else { return Ok(None) };
        let first: Message = parse(&text(&row, "json")?)?;
        if first == *message { id(&row, "id").map(Some) } else { Ok(None) }
    }

    pub(super) async fn find_waiting(
        &self,
        connection: &mut AnyConnection,
        task: &TaskId,
    ) -> Result<Vec<Message>, StoreError> {
        let statement = sql!("SELECT json FROM waiting WHERE task = $1 ORDER BY place", task.as_str());
        let rows = statement.fetch_all(connection).await.map_err(failed)?;
        rows.iter().map(|row| parse(&text(row, "json")?)).collect()
    }

    pub(super) async fn read_configs(&self, task: &TaskId) -> Result<Vec<TaskPushNotificationConfig>, StoreError> {
        let mut connection = self.read().acquire().await.map_err(failed)?;
        let statement = sql!("SELECT json FROM webhook WHERE task = $1 ORDER BY place", task.as_str());
        let rows = statement.fetch_all(&mut *connection).await.map_err(failed)?;
        rows.iter().map(|row| parse(&text(row, "json")?)).collect()
    }

    pub(super) async fn read_delivery(&self, task: &TaskId, hook: &ConfigId) -> Result<Option<Delivery>, StoreError> {
        let mut connection = self.read().acquire().await.map_err(failed)?;
        let statement = sql!(
            "SELECT delivery.number AS number, event.json AS json, webhook.json AS config FROM delivery
             JOIN event ON event.task = delivery.task AND event.number = delivery.number
             JOIN webhook ON webhook.task = delivery.task AND webhook.id = delivery.id
             WHERE delivery.task = $1 AND delivery.id = $2 ORDER BY delivery.number LIMIT 1",
            task.as_str(),
            hook.as_str(),
        );
        let Some(row) = statement.fetch_optional(&mut *connection).await.map_err(failed)? else { return Ok(None) };
        let (config, json) = (parse(&text(&row, "config")?)?, text(&row, "json")?.into());
        Ok(Some(Delivery { config, number: number(&row, "number")?, json }))
    }

    pub(super) async fn read_given_up(&self) -> Result<Vec<GivenUp>, StoreError> {
        let mut connection = self.read().acquire().await.map_err(failed)?;
        let statement = sql!(
            "SELECT task AS id, json, given_up, since FROM webhook WHERE given_up IS NOT NULL
             ORDER BY since DESC, id LIMIT 1000",
        );
        let rows = statement.fetch_all(&mut *connection).await.map_err(failed)?;
        let given_up = rows.iter().map(|row| {
            let since = Timestamp::from_millis(row.try_get("since").map_err(failed)?);
            let (task, config) = (id(row, "id")?, parse(&text(row, "json")?)?);
            Ok(GivenUp { task, config, why: text(row, "given_up")?, since })
        });
        given_up.collect()
    }

    pub(super) async fn read_undelivered(&self) -> Result<Vec<(TaskId, ConfigId)>, StoreError> {
        let mut connection = self.read().acquire().await.map_err(failed)?;
        let statement = sql!(
            "SELECT DISTINCT delivery.task AS id, delivery.id AS hook FROM delivery
             JOIN webhook ON webhook.task = delivery.task AND webhook.id = delivery.id WHERE webhook.sender IS NULL",
        );
        let rows = statement.fetch_all(&mut *connection).await.map_err(failed)?;
        rows.iter().map(|row| Ok((id(row, "id")?, id(row, "hook")?))).collect()
    }

    /// The next tasks that need not be kept any longer: the ended ones first, oldest first.
    pub(super) async fn find_leaving(&self, keep: &Keep, most: i64) -> Result<Vec<TaskId>, StoreError> {
        let mut connection = self.read().acquire().await.map_err(failed)?;
        let row = sql!("SELECT COUNT(*) AS tasks, CAST(COALESCE(SUM(size), 0) AS BIGINT) AS bytes FROM task");
        let row = row.fetch_one(&mut *connection).await.map_err(failed)?;
        let too_many = keep.tasks.map_or(Ok(0), |limit| number(&row, "tasks").map(|all| all.saturating_sub(limit)))?;
        let too_large = keep.bytes.map_or(Ok(0), |limit| number(&row, "bytes").map(|all| all.saturating_sub(limit)))?;
        let since = keep.since.map_or(i64::MIN, Timestamp::millis);
        let mut leaving = Vec::new();
        let (mut dropped, mut freed) = (0, 0);
        for states in ["3, 4, 5, 7", "6, 8"] {
            let statement = AssertSqlSafe(format!(
                "SELECT id, time, size FROM task WHERE state IN ({states}) AND runner IS NULL
                 ORDER BY time, id LIMIT {most}"
            ));
            for row in &sql!(statement).fetch_all(&mut *connection).await.map_err(failed)? {
                let time: i64 = row.try_get("time").map_err(failed)?;
                if time >= since && dropped >= too_many && freed >= too_large {
                    break;
                }
                (dropped, freed) = (dropped + 1, freed + number(row, "size")?);
                leaving.push(id(row, "id")?);
            }
        }
        Ok(leaving)
    }
}
