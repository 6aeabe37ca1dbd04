//! Several processes of one agent that share a database: each serves every task, a turn runs in one of them, and what one
//! leaves the others take over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::store::Sql;
use server::{Dedupe, Setup, Start};
use testing::{
    Apart, Binding, Postgres, Scripted, Served, Webhooks, Wire, chunk, frame_state, id, immediately, message, rebuilt,
    scripted, send, state, to,
};
use tokio::sync::Semaphore;

/// How long it may take until what a dead process has left is another's.
const TAKEN_OVER: Duration = Duration::from_secs(10);

/// What the agents of one test share: they wait for the test, and count.
#[derive(Debug)]
struct Stage {
    go: Semaphore,
    turns: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Stage {
    fn new() -> Arc<Self> {
        let [turns, at_once, most_at_once] = Default::default();
        Arc::new(Self { go: Semaphore::new(0), turns, at_once, most_at_once })
    }

    fn go(&self) {
        self.go.add_permits(1);
    }

    async fn wait(&self) {
        self.go.acquire().await.unwrap().forget();
    }

    fn agent(self: &Arc<Self>) -> Scripted {
        let stage = self.clone();
        scripted(move |job, say| {
            let stage = stage.clone();
            async move {
                stage.turns.fetch_add(1, Ordering::SeqCst);
                if job.start == Start::Restart {
                    say.artifact(chunk("log", "resumed", true, true)).await?;
                    return Ok(say.done("done").await?);
                }
                match job.message.text().as_str() {
                    "long" => {
                        say.working("at it").await?;
                        say.artifact(chunk("log", "one", false, false)).await?;
                        stage.wait().await;
                        say.artifact(chunk("log", "two", true, true)).await?;
                        say.done("done").await?;
                    }
                    "ask" => say.ask("which?").await?,
                    "ask later" => {
                        say.working("at it").await?;
                        stage.wait().await;
                        say.ask("which?").await?;
                    }
                    "approve" => match job.start {
                        Start::Approval { .. } => say.done("done").await?,
                        _ => say.need_approval("allow it").await?,
                    },
                    "end" => say.done("done").await?,
                    again => {
                        let at_once = stage.at_once.fetch_add(1, Ordering::SeqCst) + 1;
                        stage.most_at_once.fetch_max(at_once, Ordering::SeqCst);
                        say.artifact(chunk(again, again, false, true)).await?;
                        stage.at_once.fetch_sub(1, Ordering::SeqCst);
                        say.ask("and now?").await?;
                    }
                }
                Ok(())
            }
        })
    }
}

/// One database, and where it is.
struct Cluster {
    postgres: &'static Postgres,
    database: String,
    stage: Arc<Stage>,
}

impl Cluster {
    fn new() -> Option<Self> {
        let postgres = Postgres::shared()?;
        Some(Self { postgres, database: postgres.database(), stage: Stage::new() })
    }

    async fn serve_at(&self, url: &str, change: impl FnOnce(&mut Setup) + Send + 'static, resumes: bool) -> Apart {
        let store = Sql::postgres(url, "scripted").await.unwrap();
        let mut agent = self.stage.agent();
        agent.resumes = resumes;
        Apart::serve(agent, |setup| {
            setup.store = Arc::new(store);
            change(setup);
        })
        .await
    }

    async fn serve(&self) -> Apart {
        self.serve_at(&self.postgres.url(&self.database), |_| {}, false).await
    }

    async fn two(&self) -> [Apart; 2] {
        [self.serve().await, self.serve().await]
    }
}

/// Begins a stream and reads until the first piece of the artifact. Gives the task.
async fn begin(served: &Served) -> (testing::Stream, String) {
    let mut stream = served.stream(Binding::Rpc, "SendStreamingMessage", send("long")).await;
    let task = id(&stream.next().await.unwrap()["task"]);
    while frame_state(&stream.next().await.unwrap()) != "artifact" {}
    (stream, task)
}

async fn subscribe(served: &Served, task: &str) -> testing::Stream {
    served.stream(Binding::Rest, "SubscribeToTask", json!({"id": task})).await
}

/// Asks until the task is in this state.
async fn comes_to(served: &Served, task: &str, wanted: &str) -> Value {
    let since = Instant::now();
    loop {
        let now = served.call(Binding::Rpc, "GetTask", json!({"id": task})).await;
        if let Some(error) = now.error() {
            assert!(since.elapsed() < 2 * TAKEN_OVER, "{error}");
        } else if state(now.result()) == wanted {
            return now.result().clone();
        } else {
            assert!(since.elapsed() < 2 * TAKEN_OVER, "the task is {} and not {wanted}", state(now.result()));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_task_that_runs_in_one_process_is_read_listed_and_followed_in_the_other() {
    let Some(cluster) = Cluster::new() else { return };
    let [here, there] = cluster.two().await;
    let (first, task) = begin(&here).await;
    assert_eq!(there.task(&task).await, here.task(&task).await);
    let list = there.call(Binding::Rest, "ListTasks", json!({"includeArtifacts": true})).await;
    assert_eq!(list.result()["tasks"][0]["artifacts"][0]["parts"], json!([{"text": "one"}]));
    let second = subscribe(&there, &task).await;
    cluster.stage.go();
    let (first, second) = (first.rest().await, second.rest().await);
    assert_eq!(frame_state(first.last().unwrap()), "COMPLETED");
    assert_eq!(first[first.len() - 2..], second[second.len() - 2..]);
    assert_eq!(rebuilt(&second), [["one", "two"]]);
}

#[tokio::test]
async fn o10_a_cancel_ends_the_work_in_the_other_process() {
    let Some(cluster) = Cluster::new() else { return };
    let [here, there] = cluster.two().await;
    let (stream, task) = begin(&here).await;
    let canceled = there.call(Binding::Rpc, "CancelTask", json!({"id": task})).await;
    assert_eq!(state(canceled.result()), "CANCELED");
    assert_eq!(frame_state(stream.rest().await.last().unwrap()), "CANCELED");
    let again = here.call(Binding::Rest, "CancelTask", json!({"id": task})).await;
    assert_eq!(again.reason(), "TASK_NOT_CANCELABLE");
}

#[tokio::test]
async fn o09_a_follow_up_in_the_other_process_gets_its_own_turn_however_it_was_sent() {
    let Some(cluster) = Cluster::new() else { return };
    let [here, there] = cluster.two().await;
    let begun = here.call(Binding::Rpc, "SendMessage", immediately(message("ask later"))).await;
    let task = id(&begun.result()["task"]);
    comes_to(&there, &task, "WORKING").await;
    let mut streamed =
        there.stream(Binding::Rpc, "SendStreamingMessage", json!({"message": to(&task, "streamed")})).await;
    assert_eq!(frame_state(&streamed.next().await.unwrap()), "WORKING");
    let later = there.call(Binding::Rest, "SendMessage", immediately(to(&task, "later"))).await;
    assert_eq!(state(&later.result()["task"]), "WORKING");
    let waits = there.call(Binding::Rpc, "SendMessage", json!({"message": to(&task, "waits")}));
    let (waited, ()) = tokio::join!(waits, async { cluster.stage.go() });
    let made = |task: &Value| -> Vec<String> {
        task["artifacts"].as_array().unwrap().iter().map(|made| made["artifactId"].as_str().unwrap().into()).collect()
    };
    assert_eq!(state(&waited.result()["task"]), "INPUT_REQUIRED");
    assert!(made(&waited.result()["task"]).contains(&"waits".to_owned()), "the reply is that of its own turn");
    let frames = streamed.rest().await;
    assert!(rebuilt(&frames).contains(&vec!["streamed".to_owned()]), "the stream is that of its own turn");
    assert_eq!(frame_state(frames.last().unwrap()), "INPUT_REQUIRED");
    let all = async {
        loop {
            let task = here.task(&task).await;
            if state(&task) == "INPUT_REQUIRED" && made(&task).len() == 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TAKEN_OVER, all).await.unwrap();
    assert_eq!(cluster.stage.most_at_once.load(Ordering::SeqCst), 1);
    assert_eq!(cluster.stage.turns.load(Ordering::SeqCst), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o09_answers_that_race_to_several_processes_get_a_turn_each_and_one_at_a_time() {
    const EACH: usize = 20;
    let Some(cluster) = Cluster::new() else { return };
    let replicas = cluster.two().await;
    let asked = replicas[0].call(Binding::Rpc, "SendMessage", send("ask")).await;
    let task = id(&asked.result()["task"]);
    let answers = (0..EACH).flat_map(|number| {
        let task = &task;
        replicas.iter().enumerate().map(move |(place, replica)| {
            let mut params = json!({"message": to(task, &format!("{place}-{number}"))});
            params["configuration"] = json!({"returnImmediately": number % 2 == 0});
            replica.call(Binding::Rpc, "SendMessage", params)
        })
    });
    for answer in futures_util::future::join_all(answers).await {
        answer.result();
    }
    let all = async {
        loop {
            let task = replicas[1].task(&task).await;
            if state(&task) == "INPUT_REQUIRED" && task["artifacts"].as_array().unwrap().len() == 2 * EACH {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(2 * TAKEN_OVER, all).await.unwrap();
    assert_eq!(cluster.stage.most_at_once.load(Ordering::SeqCst), 1);
    assert_eq!(cluster.stage.turns.load(Ordering::SeqCst), 2 * EACH + 1);
}

#[tokio::test]
async fn o19_an_approval_counts_in_any_process_and_once() {
    let Some(cluster) = Cluster::new() else { return };
    let [here, there] = cluster.two().await;
    let asked = here.stream(Binding::Rpc, "SendStreamingMessage", send("approve")).await;
    let mut asked = asked;
    let task = id(&asked.next().await.unwrap()["task"]);
    assert_eq!(frame_state(&asked.next().await.unwrap()), "AUTH_REQUIRED");
    let approve = async |served: &Served| {
        let request = reqwest::Client::new().post(format!("{}/approve/{task}", served.url)).body("{}");
        request.send().await.unwrap().status().as_u16()
    };
    let mut counted = [approve(&there), approve(&here)].map(Box::pin);
    let [first, second] = &mut counted;
    let mut answers = <[u16; 2]>::from(tokio::join!(first, second));
    answers.sort_unstable();
    assert_eq!(answers, [200, 404]);
    assert_eq!(frame_state(asked.rest().await.last().unwrap()), "COMPLETED");
}

#[tokio::test]
async fn o11_a_resend_to_another_process_joins_the_first_attempt() {
    let Some(cluster) = Cluster::new() else { return };
    let url = cluster.postgres.url(&cluster.database);
    let always = |setup: &mut Setup| setup.dedupe = Dedupe::Always;
    let (here, there) = (cluster.serve_at(&url, always, false).await, cluster.serve_at(&url, always, false).await);
    let sent = send("long");
    let first = here.call(Binding::Rpc, "SendMessage", immediately(sent["message"].clone())).await;
    let task = id(&first.result()["task"]);
    comes_to(&there, &task, "WORKING").await;
    let again = there.call(Binding::Rpc, "SendMessage", sent);
    let (again, ()) = tokio::join!(again, async { cluster.stage.go() });
    assert_eq!(again.result()["task"]["id"], json!(task));
    assert_eq!(state(&again.result()["task"]), "COMPLETED", "it waits for the turn");
    assert_eq!(cluster.stage.turns.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn o13_a_task_whose_process_is_killed_fails_within_ten_seconds_and_followers_elsewhere_hear_it() {
    let Some(cluster) = Cluster::new() else { return };
    let [here, there] = cluster.two().await;
    let (_stream, task) = begin(&here).await;
    let mut follower = subscribe(&there, &task).await;
    assert_eq!(frame_state(&follower.next().await.unwrap()), "WORKING");
    let since = Instant::now();
    here.kill();
    let last = follower.next().await.unwrap();
    assert!(since.elapsed() < TAKEN_OVER, "{:?}", since.elapsed());
    assert_eq!(frame_state(&last), "FAILED");
    assert_eq!(follower.next().await, None);
    let task = there.task(&task).await;
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "one"}]));
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "The agent restarted.");
}

#[tokio::test]
async fn o13_a_task_whose_process_is_killed_goes_on_in_another_where_the_agent_resumes() {
    let Some(cluster) = Cluster::new() else { return };
    let url = cluster.postgres.url(&cluster.database);
    let here = cluster.serve_at(&url, |_| {}, true).await;
    let others = [cluster.serve_at(&url, |_| {}, true).await, cluster.serve_at(&url, |_| {}, true).await];
    let (_stream, task) = begin(&here).await;
    let followers = [subscribe(&others[0], &task).await, subscribe(&others[1], &task).await];
    let since = Instant::now();
    here.kill();
    for follower in followers {
        let frames = follower.rest().await;
        assert_eq!(rebuilt(&frames), [["one", "resumed"]]);
        assert_eq!(frame_state(frames.last().unwrap()), "COMPLETED");
    }
    assert!(since.elapsed() < TAKEN_OVER, "{:?}", since.elapsed());
    assert_eq!(cluster.stage.turns.load(Ordering::SeqCst), 2, "one of the two resumed it");
}

#[tokio::test]
async fn o15_webhooks_of_a_process_that_is_killed_are_sent_by_another() {
    let Some(cluster) = Cluster::new() else { return };
    let [here, there] = cluster.two().await;
    let hooks = Webhooks::answering(|number| if number == 0 { 503 } else { 200 }).await;
    let mut params = send("end");
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": hooks.url}});
    here.call(Binding::Rpc, "SendMessage", params).await.result();
    hooks.wait(1).await;
    here.kill();
    let got = hooks.wait(2).await;
    assert_eq!(got.last().unwrap().tells(), "COMPLETED");
    drop(there);
}

#[tokio::test]
async fn a_process_that_is_told_to_stop_leaves_nothing_to_wait_for() {
    let Some(cluster) = Cluster::new() else { return };
    let url = cluster.postgres.url(&cluster.database);
    let here = cluster.serve_at(&url, |setup| setup.limits.grace = Duration::ZERO, false).await;
    let there = cluster.serve().await;
    let (stream, task) = begin(&here).await;
    let follower = subscribe(&there, &task).await;
    let since = Instant::now();
    here.stop().await;
    assert_eq!(frame_state(follower.rest().await.last().unwrap()), "FAILED");
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    drop(stream);
    let left = cluster.postgres.sql(&cluster.database, "SELECT count(*) FROM scripted.process");
    assert_eq!(left, "1");
}

/// Cuts a process off while it works, and mends the wire when another has taken its task over.
async fn cut_off(cut: impl Fn(&Wire)) {
    let Some(cluster) = Cluster::new() else { return };
    let wire = Wire::to(cluster.postgres.socket()).await;
    let here = cluster.serve_at(&wire.url(&cluster.database), |_| {}, false).await;
    let there = cluster.serve().await;
    let (stream, task) = begin(&here).await;
    let follower = subscribe(&there, &task).await;
    let since = Instant::now();
    cut(&wire);
    // Whoever followed the cut off process is told to come back.
    let frames = stream.rest().await;
    assert_eq!(frames.last().unwrap()["error"]["code"], -32603, "{frames:?}");
    assert!(since.elapsed() < Duration::from_secs(6), "the others may begin after six seconds");
    // It says so at once from then on, on each binding.
    let refused = Instant::now();
    for (binding, method, params) in [
        (Binding::Rpc, "GetTask", json!({"id": task})),
        (Binding::Rest, "ListTasks", json!({})),
        (Binding::Rpc, "SendMessage", send("end")),
        (Binding::Rest, "CancelTask", json!({"id": task})),
        (Binding::Grpc, "GetTask", json!({"id": task})),
    ] {
        let answer = here.call(binding, method, params).await;
        let code = answer.error().unwrap()["code"].as_i64().unwrap();
        assert!(matches!(code, -32603 | 500 | 13), "{method}: {code}");
    }
    assert!(refused.elapsed() < Duration::from_secs(1), "{:?}", refused.elapsed());
    // The other takes the task over.
    assert_eq!(frame_state(follower.rest().await.last().unwrap()), "FAILED");
    assert!(since.elapsed() < TAKEN_OVER, "{:?}", since.elapsed());
    wire.mend();
    // What was cut off may go on now, and changes nothing.
    cluster.stage.go();
    let again = comes_to(&here, &task, "FAILED").await;
    assert_eq!(cluster.stage.go.forget_permits(1), 1, "its work is not there any more");
    assert_eq!(again, there.task(&task).await);
    assert_eq!(again["artifacts"][0]["parts"], json!([{"text": "one"}]));
    let next = here.call(Binding::Rpc, "SendMessage", send("end")).await;
    assert_eq!(state(&next.result()["task"]), "COMPLETED");
    let (stream, task) = begin(&here).await;
    let follower = subscribe(&there, &task).await;
    cluster.stage.go();
    assert_eq!(frame_state(stream.rest().await.last().unwrap()), "COMPLETED");
    assert_eq!(frame_state(follower.rest().await.last().unwrap()), "COMPLETED");
    // And hears of the others again.
    let (stream, task) = begin(&there).await;
    let follower = subscribe(&here, &task).await;
    cluster.stage.go();
    assert_eq!(frame_state(follower.rest().await.last().unwrap()), "COMPLETED");
    drop(stream);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_connections_are_reset_says_so_stops_its_work_and_comes_back() {
    cut_off(Wire::cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_hears_nothing_from_the_database_says_so_stops_its_work_and_comes_back() {
    cut_off(Wire::fall_silent).await;
}
