//! PostgreSQL: several processes of one agent share a store.
//!
//! A turn runs in the process whose name stands in the task's row. Each process says once a second that it lives; one
//! that has not done so for [`DEAD_AFTER`] is dead to the others, and its tasks are taken over. Every write names the
//! number of the event before it and the process that has the turn, so that a process that was cut off and comes back
//! changes nothing any more. `LISTEN` and `NOTIFY` of the same database carry the news: one part less to run than a
//! broker, and a notice leaves only with the commit that it speaks of.

use std::sync::Arc;
use std::time::Duration;

use protocol::{ConfigId, TaskId};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgListener;
use sqlx::{AnyConnection, AssertSqlSafe};
use tokio::sync::Mutex;

use super::read::id;
use super::{Sql, failed, later, migrate, run, signed, sql};
use crate::store::{Call, Kept, News, Shared, StoreError, Taken};

/// How long a process may be silent before it is dead to the others.
pub(crate) const DEAD_AFTER: Duration = Duration::from_secs(6);
/// How long the events of a settled turn are there for the others to read, in milliseconds.
const EVENTS_STAY: i64 = 15_000;
/// How many connections one process holds, beside the one that listens.
const CONNECTIONS: u32 = 10;
/// How long a call waits for a connection before it fails.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(3);

/// This process among those that share a store.
#[derive(Debug)]
pub(super) struct Among {
    /// Its name.
    pub me: String,
    url: String,
    channel: String,
    listener: Mutex<Option<PgListener>>,
}

impl Among {
    /// Lets the others know, when the transaction is committed, that something happened to a task.
    pub async fn tell(&self, connection: &mut AnyConnection, task: &TaskId) -> Result<(), StoreError> {
        // The function's own type is none that rows of any database have.
        let statement = sql!(
            "SELECT CASE WHEN pg_notify($1, $2) IS NULL THEN 0 ELSE 1 END",
            self.channel.as_str(),
            format!("{} {task}", self.me),
        );
        run(connection, statement).await.map(drop)
    }
}

/// The milliseconds of the database's clock, the only one that all processes share.
const NOW: &str = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";

/// Why a database cannot be the store. The text names the remedy; it holds no password.
#[derive(Debug, thiserror::Error)]
pub enum CannotConnect {
    /// It was not reached, or refuses.
    #[error("the database cannot be used: {0}; --store postgres://USER:PASSWORD@HOST/DATABASE names another")]
    Refused(String),
    /// A newer version of this program made its tables.
    #[error("a newer version of this agent made the tables of schema {0}; use that one, or another database")]
    Newer(String),
}

impl Sql {
    /// Opens the tables of an agent in a database, or makes them. Each agent has a schema of its own, named after it.
    pub async fn postgres(url: &str, agent: &str) -> Result<Self, CannotConnect> {
        sqlx::any::install_default_drivers();
        let refused = |cause: sqlx::Error| {
            CannotConnect::Refused(match cause {
                sqlx::Error::Database(cause) => cause.message().to_owned(),
                sqlx::Error::PoolTimedOut => "it does not answer".to_owned(),
                sqlx::Error::Io(cause) => cause.to_string(),
                // Anything else might show the URL.
                _ => "the URL is none of PostgreSQL's, or the connection broke".to_owned(),
            })
        };
        let schema: String = agent
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' })
            .collect();
        let own = schema.clone();
        let options = AnyPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(ACQUIRE_LIMIT).after_connect(
            move |connection, _| {
                let schema = own.clone();
                Box::pin(async move {
                    for setting in [
                        format!("SET search_path TO \"{schema}\""),
                        // What waits for a lock or an answer longer than this is in trouble, and the caller should know.
                        "SET statement_timeout TO 5000".to_owned(),
                        "SET idle_in_transaction_session_timeout TO 5000".to_owned(),
                        "SET client_min_messages TO warning".to_owned(),
                    ] {
                        sql!(AssertSqlSafe(setting)).execute(&mut *connection).await?;
                    }
                    Ok(())
                })
            },
        );
        let parsed: AnyConnectOptions = url.parse().map_err(refused)?;
        let pool = options.connect_with(parsed).await.map_err(refused)?;
        let mut connection = pool.acquire().await.map_err(refused)?;
        let made = sql!(AssertSqlSafe(format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"")));
        if let Err(cause) = made.execute(&mut *connection).await {
            // Two that start at once may both find it missing.
            tracing::debug!(%cause, "the schema was not made");
        }
        match migrate(&mut connection, "TEXT COLLATE \"C\"").await {
            Ok(()) => {}
            Err(MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_)) => {
                return Err(CannotConnect::Newer(schema));
            }
            Err(MigrateError::Execute(cause)) => return Err(refused(cause)),
            Err(cause) => return Err(CannotConnect::Refused(cause.to_string())),
        }
        drop(connection);
        let among = Among {
            me: uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string(),
            url: url.to_owned(),
            channel: format!("a2a_{schema}"),
            listener: Mutex::new(None),
        };
        Ok(Self { write: pool.clone(), read: pool, shared: Some(among), _lock: None })
    }

    async fn read_news(&self, task: &TaskId, after: u64) -> Result<Option<News>, StoreError> {
        use sqlx::Row;
        let row = {
            let mut connection = self.read.acquire().await.map_err(failed)?;
            let found = sql!("SELECT number, runner, cancel FROM task WHERE id = $1", task.as_str());
            found.fetch_optional(&mut *connection).await.map_err(failed)?
        };
        let Some(row) = row else { return Ok(None) };
        let newest: i64 = row.try_get("number").map_err(failed)?;
        let runner: Option<String> = row.try_get("runner").map_err(failed)?;
        let cancel: i64 = row.try_get("cancel").map_err(failed)?;
        let mine = runner.as_deref() == Some(self.me());
        let mut news =
            News { events: Vec::new(), record: None, elsewhere: runner.is_some() && !mine, cancel: cancel != 0 };
        if newest > signed(after) {
            let mut connection = self.read.acquire().await.map_err(failed)?;
            let events = self.find_events(&mut connection, task, after).await?;
            drop(connection);
            let without_a_gap = events.iter().enumerate().all(|(at, event)| event.number == after + 1 + at as u64);
            if without_a_gap && events.last().is_some_and(|last| signed(last.number) >= newest) {
                news.events = events.into_iter().map(Arc::new).collect();
            } else {
                news.record = self.read_task(task).await?;
            }
        }
        Ok(Some(news))
    }

    async fn say_alive(&self) -> Result<Taken, StoreError> {
        use sqlx::Row;
        let me = self.me();
        self.together(async |connection| {
            let dead_after = i64::try_from(DEAD_AFTER.as_millis()).unwrap_or(i64::MAX);
            let seen = format!("UPDATE process SET seen = {NOW} WHERE id = $1");
            let was_known = run(connection, sql!(AssertSqlSafe(seen), me)).await? > 0;
            if !was_known {
                let enter = format!("INSERT INTO process (id, seen) VALUES ($1, {NOW}) ON CONFLICT DO NOTHING");
                run(connection, sql!(AssertSqlSafe(enter), me)).await?;
            }
            let dead = format!("DELETE FROM process WHERE seen < {NOW} - $1");
            run(connection, sql!(AssertSqlSafe(dead), dead_after)).await?;
            let statement = sql!(
                "UPDATE task SET runner = $1 WHERE runner IS NOT NULL AND runner <> $1
                 AND runner NOT IN (SELECT id FROM process) RETURNING id",
                me,
            );
            let rows = statement.fetch_all(&mut *connection).await.map_err(failed)?;
            let tasks = rows.iter().map(|row| id(row, "id")).collect::<Result<_, _>>()?;
            let statement =
                sql!("UPDATE webhook SET sender = NULL WHERE sender IS NOT NULL AND sender NOT IN (SELECT id FROM process)");
            run(connection, statement).await?;
            let old = format!(
                "DELETE FROM event WHERE task IN (SELECT id FROM task WHERE folded >= event.number AND time < {NOW} - $1)
                 AND NOT EXISTS (SELECT 1 FROM delivery
                 WHERE delivery.task = event.task AND delivery.number = event.number)"
            );
            run(connection, sql!(AssertSqlSafe(old), EVENTS_STAY)).await?;
            let asked = sql!("SELECT id FROM task WHERE runner = $1 AND cancel <> 0", me);
            let rows = asked.fetch_all(&mut *connection).await.map_err(failed)?;
            let cancel = rows.iter().map(|row| row.try_get::<String, _>("id").map_err(failed));
            let cancel = cancel.map(|id| TaskId::new(id?).map_err(StoreError::failed)).collect::<Result<_, _>>()?;
            Ok(Taken { tasks, cancel, was_dead: !was_known })
        })
        .await
    }

    async fn listen(&self, among: &Among) -> Result<Vec<Call>, StoreError> {
        let mut held = among.listener.lock().await;
        let mut listener = match held.take() {
            Some(listener) => listener,
            None => {
                let mut listener = PgListener::connect(&among.url).await.map_err(failed)?;
                listener.listen(&among.channel).await.map_err(failed)?;
                *held = Some(listener);
                return Ok(vec![Call::Everything]);
            }
        };
        // Dropped if this fails or is dropped, and connected anew the next time.
        let notice = listener.try_recv().await.map_err(failed)?;
        *held = Some(listener);
        let Some(notice) = notice else { return Ok(vec![Call::Everything]) };
        let said = notice.payload().split_once(' ').filter(|(from, _)| *from != among.me);
        Ok(said.and_then(|(_, task)| TaskId::new(task).ok()).map(Call::Task).into_iter().collect())
    }
}

impl Shared for Sql {
    fn since<'a>(&'a self, id: &'a TaskId, number: u64) -> Kept<'a, Option<News>> {
        later(self.read_news(id, number))
    }

    fn claim<'a>(&'a self, id: &'a TaskId, number: u64) -> Kept<'a, bool> {
        later(self.together(async move |connection| {
            let statement = sql!(
                "UPDATE task SET runner = $1, cancel = 0 WHERE id = $2 AND number = $3 AND (runner IS NULL OR runner = $1)",
                self.me(),
                id.as_str(),
                signed(number),
            );
            Ok(run(connection, statement).await? > 0)
        }))
    }

    fn release<'a>(&'a self, id: &'a TaskId) -> Kept<'a, ()> {
        later(self.together(async move |connection| {
            let statement =
                sql!("UPDATE task SET runner = NULL, cancel = 0 WHERE id = $1 AND runner = $2", id.as_str(), self.me());
            if run(connection, statement).await? > 0 {
                self.tell(connection, id).await?;
            }
            Ok(())
        }))
    }

    fn ask_to_cancel<'a>(&'a self, id: &'a TaskId) -> Kept<'a, ()> {
        later(self.together(async move |connection| {
            let statement = sql!("UPDATE task SET cancel = 1 WHERE id = $1 AND runner IS NOT NULL", id.as_str());
            run(connection, statement).await?;
            self.tell(connection, id).await
        }))
    }

    fn beat(&self) -> Kept<'_, Taken> {
        later(self.say_alive())
    }

    fn leave(&self) -> Kept<'_, ()> {
        later(self.together(async |connection| {
            let me = self.me();
            run(connection, sql!("UPDATE webhook SET sender = NULL WHERE sender = $1", me)).await?;
            // Its tasks, if it left any, are taken over at once.
            run(connection, sql!("DELETE FROM process WHERE id = $1", me)).await.map(drop)
        }))
    }

    fn claim_queue<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, bool> {
        later(self.together(async move |connection| {
            let statement = sql!(
                "UPDATE webhook SET sender = $1 WHERE task = $2 AND id = $3 AND (sender IS NULL OR sender = $1)",
                self.me(),
                task.as_str(),
                id.as_str(),
            );
            Ok(run(connection, statement).await? > 0)
        }))
    }

    fn release_queue<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, bool> {
        later(self.together(async move |connection| {
            // The row is held first: what another process adds comes before it or after.
            let statement = sql!(
                "UPDATE webhook SET sender = NULL WHERE task = $1 AND id = $2 AND sender = $3
                 AND NOT EXISTS (SELECT 1 FROM delivery WHERE task = $1 AND id = $2)",
                task.as_str(),
                id.as_str(),
                self.me(),
            );
            Ok(run(connection, statement).await? > 0)
        }))
    }

    fn hear(&self) -> Kept<'_, Vec<Call>> {
        later(async move {
            match &self.shared {
                Some(among) => self.listen(among).await,
                None => std::future::pending().await,
            }
        })
    }
}
