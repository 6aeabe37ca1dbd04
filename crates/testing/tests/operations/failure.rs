//! Agents and stores that fail, and servers that stop: the decisions O12 and O13.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use server::Start;
use server::store::Memory;
use testing::{Binding, Slow, frame_state, id, scripted, send, serve, state, to};
use tokio::sync::Semaphore;

use super::held;

#[tokio::test]
async fn o12_whatever_an_agent_does_its_task_ends() {
    let served = serve(
        scripted(|job, say| {
            let text = job.message.text();
            assert!(text != "panics at once", "before there is a future");
            async move {
                match text.as_str() {
                    "panics" => panic!("in the middle"),
                    "panics later" => {
                        say.working(()).await?;
                        tokio::task::yield_now().await;
                        panic!("after a while");
                    }
                    "fails" => return Err("secret cause at /etc/passwd".into()),
                    "says nothing" => {}
                    "stops half way" => say.working("half").await?,
                    _ => {
                        say.working(()).await?;
                        std::future::pending::<()>().await;
                    }
                }
                Ok(())
            }
        }),
        |setup| {
            setup.limits.turn = Duration::from_millis(100);
            setup.limits.cancel = Duration::from_millis(20);
        },
    )
    .await;
    let texts = ["panics at once", "panics", "panics later", "fails", "says nothing", "stops half way", "never ends"];
    for text in texts {
        for binding in Binding::ALL {
            let answer = served.call(binding, "SendMessage", send(text)).await;
            let task = &answer.result()["task"];
            assert_eq!(state(task), "FAILED", "{text}");
            let words = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
            assert!(words.starts_with("The agent"), "{words}");
            assert!(!answer.body.to_string().contains("secret"));
            let frames = served.stream(binding, "SendStreamingMessage", send(text)).await.rest().await;
            assert_eq!(frame_state(frames.last().unwrap()), "FAILED", "{text}");
        }
    }
}

#[tokio::test]
async fn o12_a_store_that_fails_is_an_internal_error_and_nothing_is_told_that_was_not_kept() {
    let slow = Slow::default();
    let fails = slow.fails.clone();
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(held(gate.clone()), |setup| setup.store = Arc::new(slow)).await;
    let task = served.started("go").await;
    served.until(&task, "TASK_STATE_WORKING").await;
    fails.store(true, Ordering::SeqCst);
    for (binding, status) in [(Binding::Rpc, 200), (Binding::Rest, 500), (Binding::Grpc, 200)] {
        let refused = served.call(binding, "SendMessage", send("go")).await;
        assert_eq!(refused.status, status);
        assert_eq!(refused.error().unwrap()["message"], "Internal error");
        assert!(!refused.body.to_string().contains("made to fail"));
    }
    fails.store(false, Ordering::SeqCst);
    gate.add_permits(2);
    served.until(&task, "TASK_STATE_COMPLETED").await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    assert_eq!(state(&answer.result()["task"]), "COMPLETED", "it works again without a restart");
}

#[tokio::test]
async fn o12_a_task_whose_end_could_not_be_kept_ends_when_the_store_is_back() {
    let slow = Slow::default();
    let fails = slow.fails.clone();
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(held(gate.clone()), |setup| {
        setup.store = Arc::new(slow);
        setup.limits.cancel = Duration::from_millis(50);
    })
    .await;
    let (ends, canceled) = (served.started("ends").await, served.started("canceled").await);
    for task in [&ends, &canceled] {
        served.until(task, "TASK_STATE_WORKING").await;
    }
    fails.store(true, Ordering::SeqCst);
    gate.add_permits(1);
    let refused = served.call(Binding::Rpc, "CancelTask", json!({"id": canceled})).await;
    assert_eq!(refused.error().unwrap()["code"], -32603);
    tokio::time::sleep(Duration::from_millis(100)).await;
    fails.store(false, Ordering::SeqCst);
    served.until(&ends, "TASK_STATE_FAILED").await;
    served.until(&canceled, "TASK_STATE_CANCELED").await;
}

#[tokio::test]
async fn o13_a_parked_task_read_back_from_its_store_can_be_watched_and_answered() {
    let store = Arc::new(Memory::default());
    let agent = || {
        scripted(|job, say| async move {
            match job.start {
                Start::Answer => say.done("thanks").await?,
                _ => say.ask("which?").await?,
            }
            Ok(())
        })
    };
    let first = serve(agent(), |setup| setup.store = store.clone()).await;
    let answer = first.call(Binding::Rpc, "SendMessage", send("go")).await;
    let task = id(&answer.result()["task"]);
    first.stop().await;
    let second = serve(agent(), |setup| setup.store = store.clone()).await;
    let mut watch = second.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
    assert_eq!(frame_state(&watch.next().await.unwrap()), "INPUT_REQUIRED");
    let answer = second.call(Binding::Rpc, "SendMessage", json!({"message": to(&task, "this")})).await;
    assert_eq!(state(&answer.result()["task"]), "COMPLETED");
    assert_eq!(frame_state(&watch.rest().await.pop().unwrap()), "COMPLETED");
}

#[tokio::test]
async fn a_server_that_stops_tells_its_work_to_and_ends_its_streams() {
    let served = serve(
        scripted(|job, say| async move {
            say.working(()).await?;
            match job.message.text().as_str() {
                "heeds" => job.stop.cancelled().await,
                _ => std::future::pending().await,
            }
            Ok(())
        }),
        |setup| setup.limits.grace = Duration::from_millis(200),
    )
    .await;
    let heeding = served.stream(Binding::Rpc, "SendStreamingMessage", send("heeds")).await;
    let ignoring = served.stream(Binding::Rpc, "SendStreamingMessage", send("ignores")).await;
    let stopped = tokio::time::timeout(Duration::from_secs(3), served.stop());
    let (heeded, ignored, stopped) = tokio::join!(heeding.rest(), ignoring.rest(), stopped);
    stopped.expect("it stops within its grace and a second more");
    assert_eq!(frame_state(heeded.last().unwrap()), "FAILED", "work that was stopped says so");
    assert_eq!(frame_state(ignored.last().unwrap()), "FAILED", "work that was dropped does not stay WORKING");
}
