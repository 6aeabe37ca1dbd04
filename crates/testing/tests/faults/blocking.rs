//! Section A: a blocking send against the events.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use server::{Dedupe, Setup};
use testing::{Binding, chunk, frame_state, id, message, scripted, send, serve, state, texts};
use tokio::sync::Semaphore;

use super::obedient;

async fn each_gets_its_own_task() {
    let served = Arc::new(
        serve(
            scripted(|job, say| async move {
                let text = job.message.text();
                if text.ends_with("later") {
                    tokio::task::yield_now().await;
                }
                say.artifact(chunk("echo", text, false, true)).await?;
                Ok(say.done(()).await?)
            }),
            |_| {},
        )
        .await,
    );
    let sends = (0..64).map(|number| {
        let served = served.clone();
        tokio::spawn(async move {
            for (round, binding) in Binding::ALL.into_iter().cycle().take(6).enumerate() {
                let text = format!("{number} {round} {}", if round % 3 == 0 { "later" } else { "now" });
                let answer = served.call(binding, "SendMessage", send(&text)).await;
                let task = &answer.result()["task"];
                assert_eq!(state(task), "COMPLETED");
                assert_eq!(texts(&task["artifacts"][0]), [text]);
            }
        })
    });
    for send in sends.collect::<Vec<_>>() {
        send.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_of_many_blocking_sends_at_once_each_gets_its_own_task() {
    each_gets_its_own_task().await;
}

#[tokio::test]
async fn b02_of_many_blocking_sends_at_once_each_gets_its_own_task_on_one_thread_too() {
    each_gets_its_own_task().await;
}

#[tokio::test]
async fn b05_a_stream_begins_with_the_task_as_it_is_and_invents_no_state() {
    let always = |setup: &mut Setup| setup.dedupe = Dedupe::Always;
    let served = serve(obedient(), always).await;
    for binding in Binding::ALL {
        let frames = served.stream(binding, "SendStreamingMessage", send("ask")).await.rest().await;
        assert_eq!(frames.iter().map(frame_state).collect::<Vec<_>>(), ["SUBMITTED", "INPUT_REQUIRED"]);
        // The same message again, on a stream, when its task has ended.
        let ended = send("work done");
        let task = served.call(binding, "SendMessage", ended.clone()).await.result()["task"].clone();
        let frames = served.stream(binding, "SendStreamingMessage", ended).await.rest().await;
        assert_eq!(frames, [json!({"task": task})]);
    }
}

#[tokio::test]
async fn b07_only_return_immediately_returns_immediately() {
    let gate = Arc::new(Semaphore::new(0));
    let hold = gate.clone();
    let agent = scripted(move |_, say| {
        let hold = hold.clone();
        async move {
            say.working("at it").await?;
            hold.acquire().await?.forget();
            Ok(say.done(()).await?)
        }
    });
    let served = Arc::new(serve(agent, |_| {}).await);
    for binding in Binding::ALL {
        for configuration in [json!({}), json!({"blocking": false}), json!({"returnImmediately": false})] {
            let params = json!({"message": message("go"), "configuration": configuration});
            let own = served.clone();
            let waiting = tokio::spawn(async move { own.call(binding, "SendMessage", params).await });
            let working = json!({"status": "TASK_STATE_WORKING"});
            while served.call(binding, "ListTasks", working.clone()).await.result()["totalSize"] == 0 {
                tokio::task::yield_now().await;
            }
            assert!(!waiting.is_finished(), "{configuration}");
            gate.add_permits(1);
            assert_eq!(state(&waiting.await.unwrap().result()["task"]), "COMPLETED");
        }
        let params = json!({"message": message("go"), "configuration": {"returnImmediately": true}});
        let answer = served.call(binding, "SendMessage", params).await;
        assert_eq!(state(&answer.result()["task"]), "SUBMITTED");
        gate.add_permits(1);
        served.until(&id(&answer.result()["task"]), "TASK_STATE_COMPLETED").await;
    }
}

#[tokio::test]
async fn b10_after_any_number_of_panics_the_next_task_works() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        for text in ["panic", "work panic"].into_iter().cycle().take(20) {
            let frames = served.stream(binding, "SendStreamingMessage", send(text)).await.rest().await;
            assert_eq!(frame_state(frames.last().unwrap()), "FAILED");
        }
        let answer = served.call(binding, "SendMessage", send("work piece done")).await;
        assert_eq!(state(&answer.result()["task"]), "COMPLETED");
    }
}

#[tokio::test]
async fn b11_a_limit_that_passed_is_no_error_and_only_a_missing_task_is_not_found() {
    let limit = |setup: &mut Setup| setup.limits.blocking = Some(Duration::from_millis(20));
    let served = serve(obedient(), limit).await;
    for (binding, status) in [(Binding::Rpc, 200), (Binding::Rest, 404), (Binding::Grpc, 200)] {
        let answer = served.call(binding, "SendMessage", send("work wait")).await;
        let task: &Value = &answer.result()["task"];
        assert_eq!((answer.status, state(task)), (200, "WORKING"));
        let read = served.call(binding, "GetTask", json!({"id": task["id"]})).await;
        assert_eq!(state(read.result()), "WORKING");
        let missing = served.call(binding, "GetTask", json!({"id": "no-such"})).await;
        assert_eq!((missing.status, missing.reason()), (status, "TASK_NOT_FOUND"));
    }
}
