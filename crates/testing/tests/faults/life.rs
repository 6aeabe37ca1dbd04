//! Section D: disconnect, cancel, concurrency, shutdown.

use std::sync::Arc;

use serde_json::json;
use testing::{
    Binding, Slow, Webhooks, chunk, frame_state, id, immediately, message, scripted, send, serve, state, to,
};

use super::obedient;

#[tokio::test]
async fn b34_a_task_that_waits_for_its_turn_is_canceled_too() {
    let served = serve(
        scripted(|job, say| async move {
            say.queued("second in line").await?;
            job.stop.cancelled().await;
            Ok(())
        }),
        |_| {},
    )
    .await;
    for binding in Binding::ALL {
        let task = served.started("go").await;
        let canceled = served.call(binding, "CancelTask", json!({"id": task})).await;
        assert_eq!(state(canceled.result()), "CANCELED");
        assert_eq!(served.task(&task).await, *canceled.result());
    }
}

#[tokio::test]
async fn b38_a_cancel_is_the_last_thing_that_streams_and_webhooks_hear() {
    for (binding, text) in [(Binding::Rpc, "work wait"), (Binding::Rest, "work wait"), (Binding::Rpc, "work ask")] {
        let (hooks, served) = (Webhooks::new().await, serve(obedient(), |_| {}).await);
        let configuration = json!({"taskPushNotificationConfig": {"url": hooks.url}});
        let params = json!({"message": message(text), "configuration": configuration});
        let mut stream = served.stream(binding, "SendStreamingMessage", params).await;
        let task = id(&stream.next().await.unwrap()["task"]);
        let watch = served.stream(binding, "SubscribeToTask", json!({"id": task})).await;
        let told = if text.ends_with("ask") { 2 } else { 1 };
        hooks.wait(told).await;
        served.call(binding, "CancelTask", json!({"id": task})).await.result();
        assert_eq!(frame_state(&watch.rest().await.pop().unwrap()), "CANCELED");
        let sent = stream.rest().await;
        let last = if text.ends_with("ask") { "INPUT_REQUIRED" } else { "CANCELED" };
        assert_eq!(frame_state(sent.last().unwrap()), last, "the stream of a send ends at a question");
        assert_eq!(hooks.wait(told + 1).await.last().unwrap().tells(), "CANCELED");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b40_nothing_is_lost_when_artifacts_messages_and_a_cancel_come_at_once() {
    let served = serve(
        scripted(|job, say| async move {
            let pieces = if job.message.text() == "go" { 100 } else { 1 };
            for number in 0..pieces {
                let name = job.message.message_id.as_str();
                say.artifact(chunk(&format!("{name} {number}"), "made", false, true)).await?;
            }
            Ok(say.ask("more?").await?)
        }),
        |setup| setup.store = Arc::new(Slow::new()),
    )
    .await;
    let served = Arc::new(served);
    let task = served.started("go").await;
    let more = |served: &Arc<testing::Served>, task: &str| {
        let (served, params) = (served.clone(), immediately(to(task, "more")));
        tokio::spawn(async move { served.call(Binding::Rpc, "SendMessage", params).await })
    };
    for told in (0..20).map(|_| more(&served, &task)).collect::<Vec<_>>() {
        told.await.unwrap().result();
    }
    let made = async || served.task(&task).await["artifacts"].as_array().map_or(0, Vec::len);
    while made().await < 120 {
        tokio::task::yield_now().await;
    }
    assert_eq!(made().await, 120, "each piece once");
    let last: Vec<_> = (0..5).map(|_| more(&served, &task)).collect();
    let canceled = served.call(Binding::Rest, "CancelTask", json!({"id": task})).await;
    assert_eq!(state(canceled.result()), "CANCELED");
    let mut taken = 21;
    for told in last {
        let answer = told.await.unwrap();
        match answer.error() {
            None => taken += 1,
            Some(_) => assert_eq!(answer.reason(), "UNSUPPORTED_OPERATION"),
        }
    }
    let ended = served.task(&task).await;
    assert_eq!(ended, *canceled.result(), "the cancel stays");
    let history = ended["history"].as_array().unwrap();
    let sent = history.iter().filter(|message| message["role"] == "ROLE_USER").count();
    assert_eq!(sent, taken, "each message that was taken is there once");
}

#[tokio::test]
async fn b41_streams_that_nobody_reads_any_more_hold_nothing_up() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        for _ in 0..200 {
            let stream = served.stream(binding, "SendStreamingMessage", send("work ask")).await;
            drop(stream);
        }
    }
    let parked = json!({"status": "TASK_STATE_INPUT_REQUIRED", "pageSize": 100});
    while served.call(Binding::Rpc, "ListTasks", parked.clone()).await.result()["totalSize"] != 200 * Binding::ALL.len()
    {
        tokio::task::yield_now().await;
    }
    let answer = served.call(Binding::Rpc, "SendMessage", send("work done")).await;
    assert_eq!(state(&answer.result()["task"]), "COMPLETED");
}
