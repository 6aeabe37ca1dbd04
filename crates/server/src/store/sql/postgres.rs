//! PostgreSQL: several processes of one agent share a store.
//!
//! A turn runs in the process whose name stands in the task's row. Each process says once a second that it lives; one
//! that has not done so for [`DEAD_AFTER`] is dead to the others, and its tasks are taken over. Every write names the
//! number of the event before it and the process that has the turn, so that a process that was cut off and comes back
//! changes nothing any more. `LISTEN` and `NOTIFY` of the same database carry the news: one part less to run than a
//! broker, and a notice leaves only with the commit that it speaks of.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use protocol::{ConfigId, TaskId};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, AnyRow};
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgListener;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Connection};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::read::id;
use super::{Pools, Sql, failed, migrate, run, signed, sql};
use crate::store::{Call, Kept, News, Shared, StoreError, Taken};

/// How long a process may be silent before it is dead to the others.
pub(crate) const DEAD_AFTER: Duration = Duration::from_secs(6);
/// How long the events of a settled turn are there for the others to read, in milliseconds.
const EVENTS_STAY: i64 = 15_000;
/// After how many signs of life events that nobody wants any more are dropped.
const TIDY_EVERY: u32 = 5;
/// How many connections one process holds, beside the one that says that it lives and the one that listens.
const CONNECTIONS: u32 = 10;
/// How long a call waits for a connection before it fails.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(3);
/// How long a sign of life may take. If it takes longer, the database is not reached.
const BEAT_LIMIT: Duration = Duration::from_secs(2);
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How long the others may be silent. Each sign of life is heard, this process's own too.
const HEAR_LIMIT: Duration = Duration::from_secs(5);

/// This process among those that share a store.
#[derive(Debug)]
pub(super) struct Among {
    /// Its name.
    pub me: String,
    url: String,
    schema: String,
    connect: AnyConnectOptions,
    /// Says that this process lives, however busy the others are.
    beats: Mutex<Option<AnyConnection>>,
    listener: Mutex<Option<PgListener>>,
    beaten: AtomicU32,
    /// Ends when the database is not reached: whoever waits for it then fails at once. Begun anew when it is back.
    reached: RwLock<CancellationToken>,
}

impl Among {
    /// The channel of the news.
    fn channel(&self) -> String {
        format!("a2a_{}", self.schema)
    }

    /// Lets the others know, when the transaction is committed, that something happened to a task.
    pub async fn tell(&self, connection: &mut AnyConnection, task: &TaskId) -> Result<(), StoreError> {
        self.notify(connection, format!("{} {task}", self.me)).await
    }

    async fn notify(&self, connection: &mut AnyConnection, words: String) -> Result<(), StoreError> {
        // The function's own type is none that rows of any database have.
        let statement = sql!("SELECT CASE WHEN pg_notify($1, $2) IS NULL THEN 0 ELSE 1 END", &*self.channel(), &*words);
        run(connection, statement).await.map(drop)
    }

    fn reached(&self) -> CancellationToken {
        self.reached.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Work that fails when the database is not reached: at once when that is known already.
    pub fn while_reached<'a, T: Send + 'a>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> Kept<'a, T> {
        let reached = self.reached();
        Kept::Later(Box::pin(async move {
            tokio::select! {
                biased;
                () = reached.cancelled() => Err(StoreError::failed("the database is not reached")),
                done = tokio::time::timeout(LIMIT, work) => {
                    done.unwrap_or_else(|_| Err(StoreError::failed("the database does not answer")))
                }
            }
        }))
    }

    fn pool(&self) -> AnyPool {
        let schema = self.schema.clone();
        let options = AnyPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(ACQUIRE_LIMIT);
        let options = options.after_connect(move |connection, _| {
            let schema = schema.clone();
            Box::pin(async move { set(connection, &schema).await })
        });
        options.connect_lazy_with(self.connect.clone())
    }
}

/// What holds for each connection.
async fn set(connection: &mut AnyConnection, schema: &str) -> Result<(), sqlx::Error> {
    for setting in [
        format!("SET search_path TO \"{schema}\""),
        // What waits for a lock or an answer longer than this is in trouble, and the caller should know.
        "SET statement_timeout TO 5000".to_owned(),
        // Less than it takes until a process is dead: what it held is free when the others take over.
        "SET idle_in_transaction_session_timeout TO 4000".to_owned(),
        "SET client_min_messages TO warning".to_owned(),
    ] {
        sql!(AssertSqlSafe(setting)).execute(&mut *connection).await?;
    }
    Ok(())
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
                // Its text might show the URL.
                sqlx::Error::Configuration(_) => "the URL is none of PostgreSQL's".to_owned(),
                cause => cause.to_string(),
            })
        };
        let schema: String = agent
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' })
            .collect();
        let connect: AnyConnectOptions = url.parse().map_err(refused)?;
        // Not one of a pool's: a pool tries again for a while what fails here at once.
        let first = tokio::time::timeout(LIMIT, AnyConnection::connect_with(&connect)).await;
        let mut first = first.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(refused)?;
        set(&mut first, &schema).await.map_err(refused)?;
        // Those who start at once come one after the other.
        let alone = sql!("SELECT CASE WHEN pg_advisory_lock(hashtext($1)) IS NULL THEN 0 ELSE 1 END", schema.as_str());
        alone.execute(&mut first).await.map_err(refused)?;
        let there = sql!("SELECT 1 AS there FROM pg_namespace WHERE nspname = $1", schema.as_str());
        if there.fetch_optional(&mut first).await.map_err(refused)?.is_none() {
            // Not IF NOT EXISTS: that needs the right to make one even where it is there.
            let made = sql!(AssertSqlSafe(format!("CREATE SCHEMA \"{schema}\"")));
            made.execute(&mut first).await.map_err(refused)?;
        }
        match migrate(&mut first, "TEXT COLLATE \"C\"").await {
            Ok(()) => {}
            Err(MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_)) => {
                return Err(CannotConnect::Newer(schema));
            }
            Err(MigrateError::Execute(cause)) => return Err(refused(cause)),
            Err(cause) => return Err(CannotConnect::Refused(cause.to_string())),
        }
        first.close().await.map_err(refused)?;
        let among = Among {
            me: uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string(),
            url: url.to_owned(),
            schema,
            connect,
            beats: Mutex::default(),
            listener: Mutex::default(),
            beaten: AtomicU32::new(0),
            reached: RwLock::default(),
        };
        let pool = among.pool();
        let pools = RwLock::new(Pools { write: pool.clone(), read: pool });
        Ok(Self {
            pools,
            shared: Some(among),
            #[cfg(feature = "sqlite")]
            file: None,
        })
    }

    async fn read_news(&self, task: &TaskId, after: u64) -> Result<Option<News>, StoreError> {
        use sqlx::Row;
        let row = {
            let mut connection = self.read().acquire().await.map_err(failed)?;
            let found = sql!("SELECT number, runner, cancel FROM task WHERE id = $1", task.as_str());
            found.fetch_optional(&mut *connection).await.map_err(failed)?
        };
        let Some(row) = row else { return Ok(None) };
        let newest: i64 = row.try_get("number").map_err(failed)?;
        let runner: Option<String> = row.try_get("runner").map_err(failed)?;
        let cancel: i64 = row.try_get("cancel").map_err(failed)?;
        let mine = runner.as_deref() == Some(self.me());
        let (elsewhere, cancel) = (runner.is_some() && !mine, cancel != 0);
        let mut news = News { events: Vec::new(), record: None, elsewhere, here: mine, cancel };
        if newest > signed(after) {
            let mut connection = self.read().acquire().await.map_err(failed)?;
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

    /// Says that this process lives. False when the others did not know of it, or not any more.
    async fn say_alive(&self, among: &Among) -> Result<bool, StoreError> {
        let mut held = among.beats.lock().await;
        // Dropped if this fails or is dropped, and connected anew the next time.
        let mut connection = match held.take() {
            Some(connection) => connection,
            None => {
                let mut connection = AnyConnection::connect_with(&among.connect).await.map_err(failed)?;
                set(&mut connection, &among.schema).await.map_err(failed)?;
                connection
            }
        };
        let seen = format!("UPDATE process SET seen = {NOW} WHERE id = $1");
        let was_known = run(&mut connection, sql!(AssertSqlSafe(seen), among.me.as_str())).await? > 0;
        if !was_known {
            let enter = format!("INSERT INTO process (id, seen) VALUES ($1, {NOW}) ON CONFLICT DO NOTHING");
            run(&mut connection, sql!(AssertSqlSafe(enter), among.me.as_str())).await?;
        }
        among.notify(&mut connection, among.me.clone()).await?;
        *held = Some(connection);
        Ok(was_known)
    }

    /// Takes over what the dead have left. What somebody holds at this moment is left for the next time.
    async fn take_over(&self, among: &Among) -> Result<Taken, StoreError> {
        let me = among.me.as_str();
        let ids = |rows: &[AnyRow]| rows.iter().map(|row| id(row, "id")).collect::<Result<Vec<TaskId>, _>>();
        let mut connection = self.read().acquire().await.map_err(failed)?;
        let connection = &mut *connection;
        let dead_after = i64::try_from(DEAD_AFTER.as_millis()).unwrap_or(i64::MAX);
        let dead = format!("DELETE FROM process WHERE seen < {NOW} - $1");
        run(connection, sql!(AssertSqlSafe(dead), dead_after)).await?;
        let statement = sql!(
            "UPDATE task SET runner = $1 WHERE id IN (
                 SELECT id FROM task WHERE runner IS NOT NULL AND runner <> $1
                 AND runner NOT IN (SELECT id FROM process) FOR UPDATE SKIP LOCKED
             ) RETURNING id",
            me,
        );
        let tasks = ids(&statement.fetch_all(&mut *connection).await.map_err(failed)?)?;
        let statement = sql!(
            "UPDATE webhook SET sender = NULL WHERE (task, id) IN (
                 SELECT task, id FROM webhook WHERE sender IS NOT NULL
                 AND sender NOT IN (SELECT id FROM process) FOR UPDATE SKIP LOCKED
             )"
        );
        run(connection, statement).await?;
        let own = sql!("SELECT id FROM task WHERE runner = $1", me);
        let own = ids(&own.fetch_all(&mut *connection).await.map_err(failed)?)?;
        let asked = sql!("SELECT id FROM task WHERE runner = $1 AND cancel <> 0", me);
        let cancel = ids(&asked.fetch_all(&mut *connection).await.map_err(failed)?)?;
        if among.beaten.fetch_add(1, Ordering::Relaxed).is_multiple_of(TIDY_EVERY) {
            let old = format!(
                "DELETE FROM event WHERE EXISTS (SELECT 1 FROM task WHERE id = event.task AND folded >= event.number
                     AND time < {NOW} - $1)
                 AND NOT EXISTS (SELECT 1 FROM delivery
                     WHERE delivery.task = event.task AND delivery.number = event.number)"
            );
            run(connection, sql!(AssertSqlSafe(old), EVENTS_STAY)).await?;
        }
        Ok(Taken { tasks, cancel, own, was_dead: false })
    }

    /// One sign of life with what follows from it.
    async fn live(&self, among: &Among) -> Result<Taken, StoreError> {
        let alive = tokio::time::timeout(BEAT_LIMIT, self.say_alive(among)).await;
        let was_known = match alive.unwrap_or_else(|_| Err(StoreError::failed("the database does not answer"))) {
            Ok(was_known) => was_known,
            Err(cause) => {
                self.lose(among);
                return Err(cause);
            }
        };
        {
            let mut reached = among.reached.write().unwrap_or_else(PoisonError::into_inner);
            if reached.is_cancelled() {
                tracing::info!("the database is reached again");
                *reached = CancellationToken::new();
            }
        }
        let taken = tokio::time::timeout(BEAT_LIMIT, self.take_over(among)).await;
        let taken = taken.unwrap_or_else(|_| Err(StoreError::failed("the database does not answer")));
        let taken = taken.unwrap_or_else(|cause| {
            tracing::warn!(%cause, "what dead processes have left waits");
            Taken::default()
        });
        Ok(Taken { was_dead: !was_known, ..taken })
    }

    /// The database is not reached. Whoever waits for it fails, and what is connected to it is not used any more.
    fn lose(&self, among: &Among) {
        let reached = among.reached();
        if reached.is_cancelled() {
            return;
        }
        let pool = among.pool();
        *self.pools.write().unwrap_or_else(PoisonError::into_inner) = Pools { write: pool.clone(), read: pool };
        reached.cancel();
    }

    async fn listen(&self, among: &Among) -> Result<Vec<Call>, StoreError> {
        let mut held = among.listener.lock().await;
        // Dropped if this fails or is dropped, and connected anew the next time.
        let Some(mut listener) = held.take() else {
            let mut listener = PgListener::connect(&among.url).await.map_err(failed)?;
            listener.listen(&among.channel()).await.map_err(failed)?;
            *held = Some(listener);
            return Ok(vec![Call::Everything]);
        };
        let notice = tokio::time::timeout(HEAR_LIMIT, listener.try_recv()).await;
        let notice = notice.map_err(|_| StoreError::failed("not even its own signs of life are heard"))?;
        let notice = notice.map_err(failed)?;
        *held = Some(listener);
        let Some(notice) = notice else { return Ok(vec![Call::Everything]) };
        let said = notice.payload().split_once(' ').filter(|(from, _)| *from != among.me);
        let task = |text: &str| TaskId::new(super::text::read(text.into())).ok();
        Ok(said.and_then(|(_, id)| task(id)).map(Call::Task).into_iter().collect())
    }
}

impl Shared for Sql {
    fn since<'a>(&'a self, id: &'a TaskId, number: u64) -> Kept<'a, Option<News>> {
        self.later(self.read_news(id, number))
    }

    fn claim<'a>(&'a self, id: &'a TaskId, number: u64) -> Kept<'a, bool> {
        self.later(self.together(async move |connection| {
            let statement = sql!(
                "UPDATE task SET runner = $1, cancel = 0 WHERE id = $2 AND number = $3 AND (runner IS NULL OR runner = $1)
                 AND EXISTS (SELECT 1 FROM process WHERE id = $1)",
                self.me(),
                id.as_str(),
                signed(number),
            );
            Ok(run(connection, statement).await? > 0)
        }))
    }

    fn release<'a>(&'a self, id: &'a TaskId) -> Kept<'a, ()> {
        self.later(self.together(async move |connection| {
            let statement =
                sql!("UPDATE task SET runner = NULL, cancel = 0 WHERE id = $1 AND runner = $2", id.as_str(), self.me());
            if run(connection, statement).await? > 0 {
                self.tell(connection, id).await?;
            }
            Ok(())
        }))
    }

    fn ask_to_cancel<'a>(&'a self, id: &'a TaskId) -> Kept<'a, ()> {
        self.later(self.together(async move |connection| {
            let statement = sql!("UPDATE task SET cancel = 1 WHERE id = $1 AND runner IS NOT NULL", id.as_str());
            run(connection, statement).await?;
            self.tell(connection, id).await
        }))
    }

    fn beat(&self) -> Kept<'_, Taken> {
        Kept::Later(Box::pin(async move {
            match &self.shared {
                Some(among) => self.live(among).await,
                None => Ok(Taken::default()),
            }
        }))
    }

    fn leave(&self) -> Kept<'_, ()> {
        self.later(self.together(async |connection| {
            let me = self.me();
            run(connection, sql!("UPDATE webhook SET sender = NULL WHERE sender = $1", me)).await?;
            // Its tasks, if it left any, are taken over at once.
            run(connection, sql!("DELETE FROM process WHERE id = $1", me)).await.map(drop)
        }))
    }

    fn claim_queue<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, bool> {
        self.later(self.together(async move |connection| {
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
        self.later(self.together(async move |connection| {
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
        Kept::Later(Box::pin(async move {
            let Some(among) = &self.shared else { return std::future::pending().await };
            let reached = among.reached();
            tokio::select! {
                biased;
                () = reached.cancelled() => Err(StoreError::failed("the database is not reached")),
                heard = self.listen(among) => heard,
            }
        }))
    }
}
