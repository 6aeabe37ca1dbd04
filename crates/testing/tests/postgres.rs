//! What only a database that several connections write at once can do wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use server::store::Sql;
use testing::{Binding, Postgres, Webhooks, chunk, immediately, message, scripted, serve};
use tokio::sync::Notify;

/// Asks again until the answer is this.
async fn becomes(postgres: &Postgres, database: &str, question: &str, answer: &str) {
    let limit = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let now = postgres.sql(database, question);
        if now == answer {
            return;
        }
        assert!(tokio::time::Instant::now() < limit, "{question}: {now}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Makes a kind of statement on a table take as long as somebody holds the lock number 7.
const WINDOW: &str = "
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o15_a_webhook_that_refuses_gets_no_event_that_was_kept_at_that_moment() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    let store = Arc::new(Sql::postgres(&postgres.url(&database), "scripted").await.unwrap());
    // The second event is on its way into the queue for as long as the window is open.
    let trigger = format!(
        "SET search_path TO scripted; {WINDOW};
         CREATE TRIGGER opened BEFORE INSERT ON delivery FOR EACH ROW WHEN (NEW.number = 2) EXECUTE FUNCTION wait()"
    );
    postgres.sql(&database, &trigger);
    let window = postgres.hold(&database);
    let window = Arc::new(std::sync::Mutex::new(Some(window)));
    let (held, name, came) = (window.clone(), database.clone(), Arc::new(Notify::new()));
    let asked = came.clone();
    let hooks = Webhooks::answering_later(move |number| {
        let (held, name, asked) = (held.clone(), name.clone(), asked.clone());
        async move {
            if number > 0 {
                return 200;
            }
            asked.notify_one();
            let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
            becomes(postgres, &name, waits, "1").await;
            // It closes when the refusal has had the time to be written down, if it does not wait.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                drop(held.lock().unwrap().take());
            });
            404
        }
    })
    .await;
    let agent = scripted(move |_, say| {
        let came = came.clone();
        async move {
            say.working("at it").await?;
            came.notified().await;
            say.artifact(chunk("log", "one", false, false)).await?;
            say.done("done").await?;
            Ok(())
        }
    });
    let served = serve(agent, |setup| setup.store = store).await;
    let mut params = immediately(message("go"));
    params["configuration"]["taskPushNotificationConfig"] = json!({"url": hooks.url});
    served.call(Binding::Rpc, "SendMessage", params).await.result();
    becomes(postgres, &database, "SELECT state FROM scripted.task", "3").await;
    becomes(postgres, &database, "SELECT count(*) FROM scripted.webhook WHERE given_up IS NOT NULL", "1").await;
    becomes(postgres, &database, "SELECT count(*) FROM scripted.delivery", "0").await;
    assert_eq!(hooks.got().len(), 1, "a receiver that refused is not asked again");
}

#[tokio::test]
async fn a_database_that_cannot_be_the_store_is_said_with_the_remedy_and_without_its_password() {
    let unreachable =
        Sql::postgres("postgres://ada:secret@127.0.0.1:1/tasks", "scripted").await.unwrap_err().to_string();
    assert!(unreachable.contains("refused") && unreachable.contains("--store postgres://"), "{unreachable}");
    assert!(!unreachable.contains("secret"), "{unreachable}");
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    drop(Sql::postgres(&postgres.url(&database), "scripted").await.unwrap());
    let newer = "INSERT INTO scripted._sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (999, 'later', true, '', 0)";
    postgres.sql(&database, newer);
    let newer = Sql::postgres(&postgres.url(&database), "scripted").await.unwrap_err().to_string();
    assert!(newer.contains("newer version") && newer.contains("scripted"), "{newer}");
}
