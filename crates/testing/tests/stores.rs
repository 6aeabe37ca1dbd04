//! Tasks in a file and in PostgreSQL: what a process that died has left, and what a file that cannot be the store says.
//! A crash is a copy of the file at that moment: what a commit has written, `kill -9` does not take away.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use server::Dedupe;
use server::store::{CannotOpen, Memory, Sql, Store};
use testing::{
    Apart, Binding, Postgres, Scripted, Webhooks, chunk, id, immediately, message, scripted, send, serve, state, to,
};

fn agent() -> Scripted {
    scripted(|job, say| async move {
        let text = job.message.text();
        match (job.task.as_ref(), text.as_str()) {
            (None, "ask") => say.ask("which?").await?,
            (None, "quick") => say.done("done").await?,
            (None, _) => {
                say.working("at it").await?;
                say.artifact(chunk("log", "one", false, false)).await?;
                say.artifact(chunk("log", "two", true, false)).await?;
                job.stop.cancelled().await;
            }
            (Some(_), _) => say.done(format!("took {text}")).await?,
        }
        Ok(())
    })
}

/// Where tasks are kept.
enum Place {
    File(PathBuf),
    Database(&'static Postgres, String),
}

impl Place {
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::File(file) => Arc::new(Sql::sqlite(file).await.unwrap()),
            Self::Database(postgres, name) => Arc::new(Sql::postgres(&postgres.url(name), "scripted").await.unwrap()),
        }
    }

    async fn serve(&self) -> Apart {
        let store = self.open().await;
        Apart::serve(agent(), |setup| setup.store = store).await
    }

    /// The store as a crash at this moment leaves it. In a database the others learn at once of the death, for which
    /// they else wait some seconds.
    fn crash(self, before: Apart) -> Self {
        match &self {
            Self::File(file) => {
                let copy = file.with_file_name("crashed.sqlite");
                for end in ["", "-wal"] {
                    let name = |file: &Path| format!("{}{end}", file.display());
                    std::fs::copy(name(file), name(&copy)).unwrap();
                }
                before.kill();
                Self::File(copy)
            }
            Self::Database(postgres, name) => {
                before.kill();
                postgres.sql(name, "UPDATE scripted.process SET seen = 0");
                self
            }
        }
    }
}

/// Plays a test on each kind of store.
async fn on_each<Played: Future<Output = ()>>(play: impl Fn(Place) -> Played) {
    let folder = tempfile::tempdir().unwrap();
    play(Place::File(folder.path().join("tasks.sqlite"))).await;
    if let Some(postgres) = Postgres::shared() {
        play(Place::Database(postgres, postgres.database())).await;
    }
}

#[tokio::test]
async fn o13_a_task_whose_process_died_fails_at_the_start_and_has_all_that_was_told() {
    on_each(async |place| {
        let before = place.serve().await;
        let mut stream = before.stream(Binding::Rpc, "SendStreamingMessage", send("long")).await;
        let task = id(&stream.next().await.unwrap()["task"]);
        for _ in 0..3 {
            stream.next().await.unwrap();
        }
        // Its caller was told that the agent has it.
        let later = before.call(Binding::Rpc, "SendMessage", immediately(to(&task, "and this"))).await;
        assert_eq!(state(&later.result()["task"]), "WORKING");
        let after = place.crash(before).serve().await;
        let told = after.task(&task).await;
        assert_eq!(state(&told), "FAILED");
        assert_eq!(told["status"]["message"]["parts"][0]["text"], "The agent restarted.");
        assert_eq!(told["artifacts"][0]["parts"], json!([{"text": "one"}, {"text": "two"}]));
        let history = told["history"].as_array().unwrap();
        let said: Vec<_> = history.iter().map(|message| &message["parts"][0]["text"]).collect();
        assert_eq!(said, ["long", "at it", "and this"]);
    })
    .await;
}

#[tokio::test]
async fn b17_a_parked_task_goes_on_after_a_restart() {
    on_each(async |place| {
        let before = place.serve().await;
        let asked = before.call(Binding::Rpc, "SendMessage", send("ask")).await;
        let task = id(&asked.result()["task"]);
        let after = place.crash(before).serve().await;
        let mut stream = after.stream(Binding::Rest, "SubscribeToTask", json!({"id": task})).await;
        assert_eq!(state(&stream.next().await.unwrap()["task"]), "INPUT_REQUIRED");
        let answered = after.call(Binding::Rpc, "SendMessage", json!({"message": to(&task, "main")})).await;
        assert_eq!(state(&answered.result()["task"]), "COMPLETED");
        let frames = stream.rest().await;
        assert_eq!(testing::frame_state(frames.last().unwrap()), "COMPLETED");
        assert_eq!(answered.result()["task"], after.task(&task).await);
    })
    .await;
}

#[tokio::test]
async fn o15_a_webhook_gets_after_a_restart_what_it_had_not_got() {
    on_each(async |place| {
        let hooks = Webhooks::answering(|number| if number < 2 { 503 } else { 200 }).await;
        let before = place.serve().await;
        let configuration = json!({"taskPushNotificationConfig": {"url": hooks.url}});
        let params = json!({"message": message("quick"), "configuration": configuration});
        before.call(Binding::Rpc, "SendMessage", params).await.result();
        hooks.wait(1).await;
        let _after = place.crash(before).serve().await;
        let got = hooks.wait(3).await;
        assert_eq!(got.last().unwrap().tells(), "COMPLETED");
    })
    .await;
}

#[tokio::test]
async fn o11_with_dedupe_always_a_resend_after_a_restart_finds_its_task() {
    on_each(async |place| {
        let always = async |place: &Place| {
            let store = place.open().await;
            let change = |setup: &mut server::Setup| (setup.store, setup.dedupe) = (store, Dedupe::Always);
            Apart::serve(agent(), change).await
        };
        let sent = send("quick");
        let before = always(&place).await;
        let first = before.call(Binding::Rpc, "SendMessage", sent.clone()).await;
        let after = always(&place.crash(before)).await;
        for binding in [Binding::Rpc, Binding::Rest] {
            let again = after.call(binding, "SendMessage", sent.clone()).await;
            assert_eq!(again.result()["task"]["id"], first.result()["task"]["id"]);
        }
    })
    .await;
}

#[tokio::test]
async fn ids_of_clients_may_hold_any_character() {
    on_each(async |place| {
        let store = place.open().await;
        let change = |setup: &mut server::Setup| (setup.store, setup.dedupe) = (store, Dedupe::Always);
        let agent = Apart::serve(agent(), change).await;
        let mut last = String::new();
        for odd in ["a\0b", "a\u{1A}0b", "a\u{1A}Sb", "\0", "a'; DROP TABLE task; --"] {
            let mut message = message("ask");
            message["messageId"] = json!(odd);
            message["contextId"] = json!(odd);
            let config = json!({"id": odd, "url": "http://127.0.0.1:9/hook"});
            let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": config}});
            let task = agent.call(Binding::Rpc, "SendMessage", params.clone()).await.result()["task"].clone();
            assert_eq!((state(&task), task["contextId"].as_str()), ("INPUT_REQUIRED", Some(odd)));
            assert_ne!(id(&task), last);
            last = id(&task);
            let again = agent.call(Binding::Rpc, "SendMessage", params).await;
            assert_eq!(id(&again.result()["task"]), last);
            let listed = agent.call(Binding::Rpc, "ListTasks", json!({"contextId": odd})).await.result().clone();
            assert_eq!((&listed["totalSize"], id(&listed["tasks"][0])), (&json!(1), last.clone()));
            let named = json!({"taskId": last, "id": odd});
            let config = agent.call(Binding::Rpc, "GetTaskPushNotificationConfig", named.clone()).await;
            assert_eq!(config.result()["id"], odd);
            agent.call(Binding::Rpc, "DeleteTaskPushNotificationConfig", named.clone()).await.result();
            assert_eq!(agent.call(Binding::Rpc, "GetTask", json!({"id": odd})).await.error().unwrap()["code"], -32001);
        }
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_taken_away_is_said_and_taken_again_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.sqlite");
    let agent = Place::File(file.clone()).serve().await;
    let before = agent.call(Binding::Rpc, "SendMessage", send("quick")).await.result()["task"].clone();
    let away = folder.path().join("away.sqlite");
    std::fs::rename(&file, &away).unwrap();
    for instead in [None, Some("something else")] {
        if let Some(text) = instead {
            std::fs::write(&file, text).unwrap();
        }
        let answer = agent.call(Binding::Rpc, "SendMessage", send("quick")).await;
        let error = answer.error().unwrap();
        assert_eq!(error["code"], -32603);
        assert!(!error.to_string().contains("tasks.sqlite"), "{error}");
        assert_eq!(agent.task(&id(&before)).await, before);
    }
    std::fs::rename(&away, &file).unwrap();
    let after = agent.call(Binding::Rpc, "SendMessage", send("quick")).await.result()["task"].clone();
    assert_eq!(state(&after), "COMPLETED");
    let again = Place::File(file).crash(agent).serve().await;
    for task in [&before, &after] {
        assert_eq!(&again.task(&id(task)).await, task);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_the_store_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.sqlite");
    let _held = Sql::sqlite(&file).await.unwrap();
    let second = Sql::sqlite(&file).await.unwrap_err();
    assert!(matches!(second, CannotOpen::InUse(_)), "{second}");
    let other = folder.path().join("no store.sqlite");
    std::fs::write(&other, "this is a text and no database, and long enough to be told apart from an empty file")
        .unwrap();
    let none = Sql::sqlite(&other).await.unwrap_err();
    let inside = Sql::sqlite(&file.join("inside")).await.unwrap_err();
    for (refused, file) in [(second, &file), (none, &other), (inside, &file.join("inside"))] {
        let words = refused.to_string();
        assert!(words.contains(&file.display().to_string()), "{words}");
        assert!(words.contains("--store sqlite:PATH"), "{words}");
    }
}

async fn keeps_three(store: Arc<dyn Store>) {
    let served = serve(agent(), |setup| (setup.limits.keep_tasks, setup.store) = (Some(3), store)).await;
    let mut tasks = vec![id(&served.call(Binding::Rpc, "SendMessage", send("ask")).await.result()["task"])];
    for _ in 0..5 {
        tasks.push(id(&served.call(Binding::Rpc, "SendMessage", send("quick")).await.result()["task"]));
    }
    let mut total = json!(null);
    while total != 3 {
        total = served.call(Binding::Rpc, "ListTasks", json!({})).await.result()["totalSize"].clone();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let purged = served.call(Binding::Rpc, "GetTask", json!({"id": tasks[1]})).await;
    assert_eq!(purged.error().unwrap()["code"], -32001);
    assert_eq!(state(&served.task(&tasks[0]).await), "INPUT_REQUIRED", "what waits for somebody goes last");
}

#[tokio::test]
async fn b41_what_is_kept_has_a_limit_and_the_oldest_go_first() {
    keeps_three(Arc::new(Memory::default())).await;
    on_each(async |place| keeps_three(place.open().await).await).await;
}
