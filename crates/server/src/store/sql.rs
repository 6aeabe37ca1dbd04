//! The store in a database: SQLite for one process, PostgreSQL for several. The statements are the same.
//!
//! A task's row is written whole when a turn settles; until then each event is appended, so that the cost of an event
//! does not grow with the task. Reading folds the events that are not in the row yet.

#[cfg(feature = "postgres")]
pub(super) mod postgres;
mod read;
#[cfg(feature = "sqlite")]
pub(super) mod sqlite;
mod text;

use std::future::Future;
use std::sync::{PoisonError, RwLock};

use protocol::{ConfigId, Message, Task, TaskId, TaskPushNotificationConfig, Timestamp};
use sqlx::AnyPool;
use sqlx::any::AnyArguments;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::query::Query as Statement;
use sqlx::{Any, AnyConnection, AssertSqlSafe, SqlSafeStr};

use crate::told::Written;

use super::{
    Created, Delivery, GivenUp, Keep, Kept, Page, Principal, Query, Record, Shared, Shown, Step, Store, StoreError,
};

/// Keeps tasks in a database.
#[derive(Debug)]
pub struct Sql {
    pools: RwLock<Pools>,
    #[cfg(feature = "postgres")]
    shared: Option<postgres::Among>,
    /// What SQLite writes to.
    #[cfg(feature = "sqlite")]
    file: Option<sqlite::OneFile>,
}

/// The connections. New ones take their place when a database was cut off.
#[derive(Debug, Clone)]
struct Pools {
    /// All writing goes here; in SQLite through one connection.
    write: AnyPool,
    read: AnyPool,
}

/// The name of a process that has its store for itself.
#[cfg_attr(not(feature = "postgres"), allow(dead_code))]
const NOBODY: &str = "";

fn failed(cause: sqlx::Error) -> StoreError {
    StoreError::failed(cause)
}

/// A statement with its arguments, in order.
macro_rules! sql {
    ($text:expr $(, $argument:expr)* $(,)?) => {
        sqlx::query::<sqlx::Any>($text)$(.bind(crate::store::sql::text::Argument::bound($argument)))*
    };
}
use sql;

/// The tables, for a database whose texts are declared in this way.
async fn migrate(connection: &mut AnyConnection, text: &str) -> Result<(), sqlx::migrate::MigrateError> {
    let all = [
        ("tasks", include_str!("../../migrations/1-tasks.sql")),
        ("runners", include_str!("../../migrations/2-runners.sql")),
    ];
    let all = (1..).zip(all).map(|(number, (name, statements))| {
        let statements = AssertSqlSafe(statements.replace(" TEXT", &format!(" {text}"))).into_sql_str();
        Migration::new(number, name.into(), MigrationType::Simple, statements, false)
    });
    Migrator::with_migrations(all.collect()).run_direct(None, connection, false).await
}

fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::failed)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The columns of a task that say where it stands.
fn stands(task: &Task) -> (i64, i64) {
    let time = task.status.timestamp.map_or(0, Timestamp::millis);
    (task.status.state as i64, time)
}

async fn run(connection: &mut AnyConnection, statement: Statement<'_, Any, AnyArguments>) -> Result<u64, StoreError> {
    Ok(statement.execute(connection).await.map_err(failed)?.rows_affected())
}

impl Sql {
    /// The name of this process among those that share the store.
    fn me(&self) -> &str {
        #[cfg(feature = "postgres")]
        if let Some(among) = &self.shared {
            return &among.me;
        }
        NOBODY
    }

    fn is_shared(&self) -> bool {
        self.me() != NOBODY
    }

    fn pools(&self) -> Pools {
        self.pools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn read(&self) -> AnyPool {
        self.pools().read
    }

    /// What is to be waited for. Where the database may be cut off, that is noticed.
    fn later<'a, T: Send + 'a>(&'a self, work: impl Future<Output = Result<T, StoreError>> + Send + 'a) -> Kept<'a, T> {
        #[cfg(feature = "postgres")]
        if let Some(among) = &self.shared {
            return among.while_reached(work);
        }
        Kept::Later(Box::pin(work))
    }

    /// Does several things in one transaction. An error takes all of them back.
    async fn together<T>(
        &self,
        work: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        #[cfg(feature = "sqlite")]
        if let Some(file) = &self.file {
            file.is_in_its_place()?;
        }
        let mut transaction = self.pools().write.begin().await.map_err(failed)?;
        let done = work(&mut transaction).await;
        match done {
            Ok(done) => {
                transaction.commit().await.map_err(failed)?;
                Ok(done)
            }
            Err(cause) => {
                // A rollback that fails leaves a connection that the pool will not use again.
                let _ = transaction.rollback().await;
                Err(cause)
            }
        }
    }

    /// Tells the other processes, once the transaction has ended, that something happened to a task.
    async fn tell(&self, connection: &mut AnyConnection, task: &TaskId) -> Result<(), StoreError> {
        #[cfg(feature = "postgres")]
        if let Some(among) = &self.shared {
            among.tell(connection, task).await?;
        }
        let _ = (connection, task);
        Ok(())
    }

    /// Drops the events of a task that are in its row and that nobody waits for. Where several processes share the
    /// store, the others may still want to read them; they go a while later.
    async fn tidy(&self, connection: &mut AnyConnection, task: &TaskId) -> Result<(), StoreError> {
        if self.is_shared() {
            return Ok(());
        }
        let statement = sql!(
            "DELETE FROM event WHERE task = $1 AND number <= (SELECT folded FROM task WHERE id = $1) AND NOT EXISTS
             (SELECT 1 FROM delivery WHERE delivery.task = event.task AND delivery.number = event.number)",
            task.as_str(),
        );
        run(connection, statement).await.map(drop)
    }

    async fn keep_new(&self, record: &Record, sent: Option<&Message>) -> Result<Created, StoreError> {
        let Record { task, owner, base_url, .. } = record;
        let text = json(&**task)?;
        let (state, time) = stands(task);
        self.together(async |connection| {
            if let Some(message) = sent {
                let first = self.remember(connection, owner, message, &task.id).await?;
                if let Some(first) = first {
                    return Ok(Created::Already(first));
                }
            }
            let statement = sql!(
                "INSERT INTO task (id, owner, base_url, context_id, state, time, number, folded, json, size, runner, cancel)
                 SELECT $1, $2, $3, $4, $5, $6, 0, 0, $7, $8, $9, 0
                 WHERE $9 IS NULL OR EXISTS (SELECT 1 FROM process WHERE id = $9)",
                task.id.as_str(),
                owner.as_ref(),
                base_url.as_ref(),
                task.context_id.as_ref().map(|id| id.as_str()),
                state,
                time,
                text.as_str(),
                signed(text.len() as u64),
                Some(self.me()).filter(|me| !me.is_empty()),
            );
            if run(connection, statement).await? == 0 {
                // They would take the task over at once.
                return Err(StoreError::failed("the other processes do not know of this one"));
            }
            Ok(Created::Here)
        })
        .await
    }

    /// Remembers a message, unless one with its name is remembered already. Gives the task of the same message.
    async fn remember(
        &self,
        connection: &mut AnyConnection,
        owner: &Principal,
        message: &Message,
        task: &TaskId,
    ) -> Result<Option<TaskId>, StoreError> {
        let text = json(message)?;
        let statement = sql!(
            "INSERT INTO sent (owner, message_id, json, task) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            owner.as_ref(),
            message.message_id.as_str(),
            text.as_str(),
            task.as_str(),
        );
        if run(connection, statement).await? > 0 {
            return Ok(None);
        }
        self.find_sent(connection, owner, message).await
    }

    async fn keep_step(&self, step: &Step<'_>) -> Result<(), StoreError> {
        let Step { record, event, .. } = step;
        let Record { task, number, owner, .. } = record;
        let (id, number) = (task.id.as_str(), signed(*number));
        let (state, time) = stands(task);
        let settled = event.state().is_some_and(|state| state.phase().settles());
        let ended = task.status.state.is_terminal();
        let whole = match step.written {
            Some(written) => Some(written.clone()),
            None if settled => Some(Written::of(task).map_err(StoreError::failed)?),
            None => None,
        };
        let text = std::str::from_utf8(event.json()).map_err(StoreError::failed)?;
        let webhooks = (step.webhooks || self.is_shared()) && event.is_shown();
        let runner = Some(self.me()).filter(|me| !me.is_empty() && !ended);
        self.together(async |connection| {
            let statement = match &whole {
                Some(whole) => sql!(
                    "UPDATE task SET state = $1, time = $2, number = $3, folded = $3, json = $4, size = $5, runner = $6
                     WHERE id = $7 AND number = $3 - 1 AND (runner IS NULL OR runner = $8)",
                    state,
                    time,
                    number,
                    whole.text(),
                    signed(whole.text().len() as u64),
                    runner,
                    id,
                    self.me(),
                ),
                None => sql!(
                    "UPDATE task SET state = $1, time = $2, number = $3, runner = $4
                     WHERE id = $5 AND number = $3 - 1 AND (runner IS NULL OR runner = $6)",
                    state,
                    time,
                    number,
                    runner,
                    id,
                    self.me(),
                ),
            };
            if run(connection, statement).await? == 0 {
                return Err(StoreError::Moved);
            }
            // An event that is in the row already is only kept for those who still want it.
            if !settled || webhooks || self.is_shared() {
                let statement = sql!(
                    "INSERT INTO event (task, number, turn, json) VALUES ($1, $2, $3, $4)",
                    id,
                    number,
                    i64::from(event.turn),
                    text,
                );
                run(connection, statement).await?;
            }
            if webhooks {
                // Whoever gives a webhook up at this moment comes before this transaction or after it.
                let held = if self.is_shared() { " FOR SHARE" } else { "" };
                let queued = AssertSqlSafe(format!(
                    "INSERT INTO delivery (task, id, number)
                     SELECT task, id, $2 FROM webhook WHERE task = $1 AND given_up IS NULL{held}"
                ));
                run(connection, sql!(queued, id, number)).await?;
            }
            if settled {
                self.tidy(connection, &task.id).await?;
            }
            if let protocol::Change::Message(message) = &event.change
                && step.waited
            {
                let name = message.message_id.as_str();
                let statement = sql!("DELETE FROM waiting WHERE task = $1 AND message_id = $2", id, name);
                run(connection, statement).await?;
            }
            if let Some(message) = step.sent {
                self.remember(connection, owner, message, &task.id).await?;
            }
            if ended && self.is_shared() && !self.find_waiting(connection, &task.id).await?.is_empty() {
                return Err(StoreError::Waiting);
            }
            self.tell(connection, &task.id).await
        })
        .await
    }

    async fn keep_waiting(&self, task: &TaskId, message: &Message) -> Result<(), StoreError> {
        let text = json(message)?;
        self.together(async |connection| {
            // Holds the task's row, so that the task does not end in between.
            let statement = sql!(
                "UPDATE task SET cancel = cancel WHERE id = $1 AND state NOT IN (3, 4, 5, 7) AND (runner IS NOT NULL OR $2 = '')",
                task.as_str(),
                self.me(),
            );
            if run(connection, statement).await? == 0 {
                return Err(StoreError::Moved);
            }
            let statement = sql!(
                "INSERT INTO waiting (task, message_id, place, json)
                 SELECT $1, $2, COALESCE(MAX(place), 0) + 1, $3 FROM waiting WHERE task = $1
                 ON CONFLICT (task, message_id) DO NOTHING",
                task.as_str(),
                message.message_id.as_str(),
                text.as_str(),
            );
            run(connection, statement).await?;
            self.tell(connection, task).await
        })
        .await
    }

    async fn keep_config(&self, task: &TaskId, config: &TaskPushNotificationConfig) -> Result<(), StoreError> {
        let text = json(config)?;
        let id = config.id.as_ref().map_or("", |id| id.as_str());
        self.together(async |connection| {
            let statement = sql!(
                "INSERT INTO webhook (task, id, place, json)
                 SELECT $1, $2, COALESCE(MAX(place), 0) + 1, $3 FROM webhook WHERE task = $1
                 ON CONFLICT (task, id) DO UPDATE SET json = $3, given_up = NULL, since = NULL",
                task.as_str(),
                id,
                text.as_str(),
            );
            run(connection, statement).await?;
            self.drop_deliveries(connection, task, id).await?;
            self.tell(connection, task).await
        })
        .await
    }

    async fn drop_deliveries(&self, connection: &mut AnyConnection, task: &TaskId, id: &str) -> Result<(), StoreError> {
        let statement = sql!("DELETE FROM delivery WHERE task = $1 AND id = $2", task.as_str(), id);
        run(connection, statement).await?;
        self.tidy(connection, task).await
    }

    async fn drop_old(&self, keep: &Keep) -> Result<Vec<TaskId>, StoreError> {
        /// How many go in one transaction, so that others get their turn.
        const AT_ONCE: i64 = 500;
        let mut gone = Vec::new();
        loop {
            let leaving = self.find_leaving(keep, AT_ONCE).await?;
            if leaving.is_empty() {
                return Ok(gone);
            }
            let dropped = self
                .together(async |connection| {
                    let mut dropped = Vec::new();
                    for id in leaving {
                        // It may have gone on meanwhile.
                        let statement = sql!(
                            "DELETE FROM task WHERE id = $1 AND state NOT IN (0, 1, 2) AND runner IS NULL",
                            id.as_str(),
                        );
                        if run(connection, statement).await? > 0 {
                            for rest in [
                                "DELETE FROM event WHERE task = $1",
                                "DELETE FROM webhook WHERE task = $1",
                                "DELETE FROM delivery WHERE task = $1",
                                "DELETE FROM waiting WHERE task = $1",
                                "DELETE FROM sent WHERE task = $1",
                            ] {
                                run(connection, sql!(rest, id.as_str())).await?;
                            }
                            dropped.push(id);
                        }
                    }
                    Ok(dropped)
                })
                .await?;
            if dropped.is_empty() {
                return Ok(gone);
            }
            gone.extend(dropped);
        }
    }
}

impl Store for Sql {
    fn shared(&self) -> Option<&dyn Shared> {
        #[cfg(feature = "postgres")]
        if self.shared.is_some() {
            return Some(self);
        }
        None
    }

    fn create<'a>(&'a self, record: &'a Record, sent: Option<&'a Message>) -> Kept<'a, Created> {
        self.later(self.keep_new(record, sent))
    }

    fn keep<'a>(&'a self, step: &'a Step<'a>) -> Kept<'a, ()> {
        self.later(self.keep_step(step))
    }

    fn load<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Record>> {
        self.later(self.read_task(id))
    }

    fn show<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Shown>> {
        self.later(self.read_shown(id))
    }

    fn list<'a>(&'a self, query: &'a Query) -> Kept<'a, Page> {
        self.later(self.read_page(query))
    }

    fn unfinished(&self) -> Kept<'_, Vec<TaskId>> {
        self.later(self.read_unfinished())
    }

    fn awaiting_approval(&self) -> Kept<'_, Vec<Record>> {
        self.later(self.read_awaiting())
    }

    fn came_to<'a>(&'a self, owner: &'a Principal, message: &'a Message) -> Kept<'a, Option<TaskId>> {
        self.later(async move {
            let mut connection = self.read().acquire().await.map_err(failed)?;
            self.find_sent(&mut connection, owner, message).await
        })
    }

    fn wait<'a>(&'a self, task: &'a TaskId, message: &'a Message) -> Kept<'a, ()> {
        self.later(self.keep_waiting(task, message))
    }

    fn waiting<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<Message>> {
        self.later(async move {
            let mut connection = self.read().acquire().await.map_err(failed)?;
            self.find_waiting(&mut connection, task).await
        })
    }

    fn put_config<'a>(&'a self, task: &'a TaskId, config: &'a TaskPushNotificationConfig) -> Kept<'a, ()> {
        self.later(self.keep_config(task, config))
    }

    fn configs<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<TaskPushNotificationConfig>> {
        self.later(self.read_configs(task))
    }

    fn delete_config<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, ()> {
        self.later(self.together(async move |connection| {
            let statement = sql!("DELETE FROM webhook WHERE task = $1 AND id = $2", task.as_str(), id.as_str());
            run(connection, statement).await?;
            self.drop_deliveries(connection, task, id.as_str()).await
        }))
    }

    fn next_delivery<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, Option<Delivery>> {
        self.later(self.read_delivery(task, id))
    }

    fn delivered<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId, number: u64) -> Kept<'a, ()> {
        self.later(self.together(async move |connection| {
            let statement = sql!(
                "DELETE FROM delivery WHERE task = $1 AND id = $2 AND number = $3",
                task.as_str(),
                id.as_str(),
                signed(number),
            );
            run(connection, statement).await?;
            self.tidy(connection, task).await
        }))
    }

    fn give_up<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId, why: &'a str, now: Timestamp) -> Kept<'a, ()> {
        self.later(self.together(async move |connection| {
            // The row first: what is being queued at this moment is there when the queue is dropped.
            let statement = sql!(
                "UPDATE webhook SET given_up = $3, since = $4 WHERE task = $1 AND id = $2",
                task.as_str(),
                id.as_str(),
                why,
                now.millis(),
            );
            run(connection, statement).await?;
            self.drop_deliveries(connection, task, id.as_str()).await
        }))
    }

    fn given_up(&self) -> Kept<'_, Vec<GivenUp>> {
        self.later(self.read_given_up())
    }

    fn undelivered(&self) -> Kept<'_, Vec<(TaskId, ConfigId)>> {
        self.later(self.read_undelivered())
    }

    fn retain<'a>(&'a self, keep: &'a Keep) -> Kept<'a, Vec<TaskId>> {
        self.later(self.drop_old(keep))
    }
}
