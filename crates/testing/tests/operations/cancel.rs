//! Cancel: the decision O10.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use testing::{Binding, Slow, chunk, frame_state, id, scripted, send, serve, state};
use tokio::sync::Notify;

#[tokio::test]
async fn o10_cancel_ends_work_that_heeds_it_ignores_it_or_waits() {
    let served = serve(
        scripted(|job, say| async move {
            match job.message.text().as_str() {
                "heeds" => {
                    say.artifact(chunk("a", "made", false, true)).await?;
                    job.stop.cancelled().await;
                }
                "ignores" => {
                    say.working(()).await?;
                    std::future::pending::<()>().await;
                }
                "goes on" => {
                    say.working(()).await?;
                    job.stop.cancelled().await;
                    assert!(say.done("too late").await.is_err());
                }
                "parked" => say.ask("which?").await?,
                _ => say.need_approval("allow").await?,
            }
            Ok(())
        }),
        |setup| setup.limits.cancel = Duration::from_millis(50),
    )
    .await;
    for binding in Binding::ALL {
        for text in ["heeds", "ignores", "goes on", "parked", "approval"] {
            let mut stream = served.stream(Binding::Rpc, "SendStreamingMessage", send(text)).await;
            let task = id(&stream.next().await.unwrap()["task"]);
            stream.next().await.unwrap();
            let watch = served.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
            let canceled = served.call(binding, "CancelTask", json!({"id": task})).await;
            assert_eq!(state(canceled.result()), "CANCELED", "{text}");
            assert_eq!(served.task(&task).await, *canceled.result());
            assert_eq!(canceled.result().get("artifacts").is_some(), text == "heeds", "artifacts stay");
            let last = watch.rest().await.pop().unwrap();
            assert_eq!(frame_state(&last), "CANCELED");
            let again = served.call(binding, "CancelTask", json!({"id": task})).await;
            assert_eq!(again.reason(), "TASK_NOT_CANCELABLE");
        }
    }
}

#[tokio::test]
async fn o10_what_was_being_kept_when_the_work_was_dropped_is_told() {
    let saying = Arc::new(Notify::new());
    let begun = saying.clone();
    let mut slow = Slow::new();
    slow.pause = Duration::from_millis(150);
    let served = serve(
        scripted(move |_, say| {
            let begun = begun.clone();
            async move {
                say.working(()).await?;
                begun.notify_one();
                say.artifact(chunk("a", "made", false, true)).await?;
                std::future::pending::<()>().await;
                Ok(())
            }
        }),
        |setup| {
            setup.store = Arc::new(slow);
            setup.limits.cancel = Duration::from_millis(20);
        },
    )
    .await;
    let task = served.started("go").await;
    let watch = served.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
    saying.notified().await;
    let _ = served.call(Binding::Rpc, "CancelTask", json!({"id": task})).await;
    let ended = served.until(&task, "TASK_STATE_CANCELED").await;
    let told = watch.rest().await.iter().any(|frame| frame_state(frame) == "artifact");
    assert_eq!(told, ended.get("artifacts").is_some(), "told if and only if it was kept");
    assert!(told, "what was being kept was kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o10_cancels_that_race_each_other_and_the_end_agree_on_one_end() {
    let served = Arc::new(
        serve(
            scripted(|_, say| async move {
                say.working(()).await?;
                tokio::time::sleep(Duration::from_micros(u64::from(rand_micros()))).await;
                say.done(()).await?;
                Ok(())
            }),
            |setup| setup.store = Arc::new(Slow::new()),
        )
        .await,
    );
    for _ in 0..40 {
        let task = served.started("go").await;
        let cancels: Vec<_> = (0..4)
            .map(|_| {
                let (served, params) = (served.clone(), json!({"id": task}));
                tokio::spawn(async move { served.call(Binding::Rpc, "CancelTask", params).await })
            })
            .collect();
        let mut canceled = 0;
        for cancel in cancels {
            let answer = cancel.await.unwrap();
            match answer.error() {
                None => {
                    assert_eq!(state(answer.result()), "CANCELED");
                    canceled += 1;
                }
                Some(_) => assert_eq!(answer.reason(), "TASK_NOT_CANCELABLE"),
            }
        }
        let ended = served.task(&task).await;
        assert_eq!(state(&ended), if canceled > 0 { "CANCELED" } else { "COMPLETED" });
    }
}

fn rand_micros() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    u16::try_from(NEXT.fetch_add(617, Ordering::Relaxed) % 3000).unwrap()
}
