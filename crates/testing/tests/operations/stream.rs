//! Streams: the decisions O5 and O6.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use server::{Setup, Start};
use testing::{Binding, Slow, chunk, frame_state, id, rebuilt, scripted, send, serve, to};
use tokio::sync::{Notify, Semaphore};

use super::{busy, held};

#[tokio::test]
async fn o05_a_send_stream_begins_with_the_task_and_ends_with_its_turn() {
    let served = serve(busy(), |_| {}).await;
    for binding in Binding::ALL {
        let frames = served.stream(binding, "SendStreamingMessage", send("go")).await.rest().await;
        let states: Vec<_> = frames.iter().map(frame_state).collect();
        assert_eq!(states, ["SUBMITTED", "WORKING", "artifact", "artifact", "COMPLETED"]);
        let (task, context) = (&frames[0]["task"]["id"], &frames[0]["task"]["contextId"]);
        for frame in &frames[1..] {
            let update = frame.as_object().unwrap().values().next().unwrap();
            assert_eq!((&update["taskId"], &update["contextId"]), (task, context));
        }
    }
}

#[tokio::test]
async fn o05_input_required_ends_a_send_stream_but_not_a_subscription() {
    let gate = Arc::new(Semaphore::new(1));
    let served = serve(held(gate.clone()), |_| {}).await;
    for binding in Binding::ALL {
        let frames = served.stream(binding, "SendStreamingMessage", send("ask")).await.rest().await;
        assert_eq!(frames.iter().map(frame_state).collect::<Vec<_>>(), ["SUBMITTED", "WORKING", "INPUT_REQUIRED"]);
        let task = id(&frames[0]["task"]);
        let mut watch = served.stream(binding, "SubscribeToTask", json!({"id": task})).await;
        assert_eq!(frame_state(&watch.next().await.unwrap()), "INPUT_REQUIRED");
        gate.add_permits(3);
        for text in ["ask", "go on"] {
            served.call(binding, "SendMessage", json!({"message": to(&task, text)})).await;
        }
        let states: Vec<_> = watch.rest().await.iter().map(|frame| frame_state(frame).to_owned()).collect();
        assert_eq!(states, ["WORKING", "WORKING", "INPUT_REQUIRED", "WORKING", "WORKING", "COMPLETED"]);
    }
}

#[tokio::test]
async fn o05_auth_required_keeps_a_send_stream_open() {
    let served = serve(
        scripted(|job, say| async move {
            match job.start {
                Start::Approval { .. } => say.done("live").await?,
                _ => say.need_approval("allow it").await?,
            }
            Ok(())
        }),
        |_| {},
    )
    .await;
    let mut stream = served.stream(Binding::Rpc, "SendStreamingMessage", send("deploy")).await;
    let task = id(&stream.next().await.unwrap()["task"]);
    assert_eq!(frame_state(&stream.next().await.unwrap()), "AUTH_REQUIRED");
    // Sent the moment the frame is seen.
    let approved = served.http("POST", &format!("/approve/{task}"), &[], "{}").await;
    assert_eq!((approved.status, &approved.body["approved"]), (200, &json!(true)));
    assert_eq!(stream.rest().await.iter().map(frame_state).collect::<Vec<_>>(), ["COMPLETED"]);
}

#[tokio::test]
async fn o05_a_reader_that_comes_back_gets_what_it_missed_and_no_snapshot() {
    let gate = Arc::new(Semaphore::new(0));
    let steps = gate.clone();
    let served = serve(
        scripted(move |_, say| {
            let steps = steps.clone();
            async move {
                for number in 0..6 {
                    steps.acquire().await?.forget();
                    say.artifact(chunk("log", format!("{number}"), number > 0, number == 5)).await?;
                }
                say.done(()).await?;
                Ok(())
            }
        }),
        |_| {},
    )
    .await;
    let task = served.started("go").await;
    let mut first = served.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
    assert_eq!(frame_state(&first.next().await.unwrap()), "SUBMITTED");
    gate.add_permits(2);
    first.next().await.unwrap();
    first.next().await.unwrap();
    let seen = first.last_id.unwrap().to_string();
    drop(first);
    gate.add_permits(2);
    for binding in Binding::BOTH {
        let headers = [("last-event-id", seen.as_str())];
        let params = json!({"id": task});
        let again = served.try_stream(binding, "SubscribeToTask", params, &headers).await;
        let mut again = again.unwrap_or_else(|answer| panic!("{}", answer.body));
        for expected in ["2", "3"] {
            let frame = again.next().await.unwrap();
            assert_eq!(frame["artifactUpdate"]["artifact"]["parts"][0]["text"], expected);
        }
    }
    gate.add_permits(2);
    served.until(&task, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn o05_a_quiet_stream_carries_comments() {
    let gate = Arc::new(Semaphore::new(0));
    let often = |setup: &mut Setup| setup.limits.keep_alive = Duration::from_millis(10);
    let served = serve(held(gate.clone()), often).await;
    let params = send("go");
    let mut response = served.request(Binding::Rpc, "SendStreamingMessage", &params, &[]).send().await.unwrap();
    let mut heard = String::new();
    while heard.matches(": keep-alive").count() < 2 {
        heard += &String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap());
    }
    gate.add_permits(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o05_nothing_is_lost_between_the_snapshot_and_the_first_event() {
    let served = serve(
        scripted(|_, say| async move {
            for number in 0..40 {
                say.artifact(chunk("log", format!("{number} "), number > 0, false)).await?;
                tokio::task::yield_now().await;
            }
            say.done(()).await?;
            Ok(())
        }),
        |setup| setup.store = Arc::new(Slow::new()),
    )
    .await;
    let expected: Vec<String> = (0..40).map(|number| format!("{number} ")).collect();
    for _ in 0..20 {
        let task = served.started("go").await;
        let params = json!({"id": task});
        let stream = match served.try_stream(Binding::Rpc, "SubscribeToTask", params, &[]).await {
            Ok(stream) => stream,
            Err(_) => continue,
        };
        assert_eq!(rebuilt(&stream.rest().await), [&expected[..]]);
    }
}

#[tokio::test]
async fn o05_what_is_said_before_the_response_leaves_never_counts_as_falling_behind() {
    let served = serve(
        scripted(|_, say| async move {
            for number in 0..10_000 {
                say.artifact(chunk("log", "x", number > 0, false)).await?;
            }
            say.done(()).await?;
            Ok(())
        }),
        |_| {},
    )
    .await;
    let frames = served.stream(Binding::Rpc, "SendStreamingMessage", send("go")).await.rest().await;
    assert_eq!(frames.len(), 10_002);
    assert_eq!(frame_state(frames.last().unwrap()), "COMPLETED");
}

#[tokio::test]
async fn o05_a_reader_that_falls_behind_is_told_and_nobody_else_is_slowed() {
    let (go, chunks) = (Arc::new(Notify::new()), 3_000);
    let start = go.clone();
    let served = serve(
        scripted(move |_, say| {
            let start = start.clone();
            async move {
                say.working(()).await?;
                start.notified().await;
                let text = "x".repeat(6_000);
                for number in 0..chunks {
                    say.artifact(chunk("log", text.clone(), number > 0, false)).await?;
                    tokio::task::yield_now().await;
                }
                say.done(()).await?;
                Ok(())
            }
        }),
        |_| {},
    )
    .await;
    let ended = json!({"status": "TASK_STATE_COMPLETED"});
    for (before, (binding, code)) in
        [(Binding::Rpc, -32603), (Binding::Rest, 500), (Binding::Grpc, 13)].into_iter().enumerate()
    {
        let task = served.started("go").await;
        let mut slow = served.stream(binding, "SubscribeToTask", json!({"id": task})).await;
        slow.next().await.unwrap();
        go.notify_one();
        while served.call(Binding::Rpc, "ListTasks", ended.clone()).await.result()["totalSize"] == before {
            tokio::task::yield_now().await;
        }
        assert_eq!(served.task(&task).await["artifacts"][0]["parts"].as_array().unwrap().len(), chunks);
        let frames = slow.rest().await;
        assert!(frames.len() < chunks, "it was cut off");
        assert_eq!(frames.last().unwrap()["error"]["code"], code);
    }
}

#[tokio::test]
async fn o06_an_error_before_the_first_frame_is_a_plain_answer() {
    let served = serve(busy(), |_| {}).await;
    let done = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let task = id(&done.result()["task"]);
    for (binding, status) in [(Binding::Rpc, 200), (Binding::Rest, 400), (Binding::Grpc, 200)] {
        let params = json!({"id": task});
        let refused = served.try_stream(binding, "SubscribeToTask", params, &[]).await.err().unwrap();
        assert_eq!((refused.status, refused.reason()), (status, "UNSUPPORTED_OPERATION"));
        let refused = served.try_stream(binding, "SendStreamingMessage", json!({}), &[]).await.err().unwrap();
        assert_eq!(refused.fields(), ["message"]);
    }
}
