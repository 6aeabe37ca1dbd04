//! Streams: STREAM-*. A test is named after the requirement of the kit.

use protocol::ErrorKind;
use serde_json::{Value, json};
use testing::{Binding, Served, Stream, frame_state};

use crate::{UNKNOWN, each, next, refused, sent, stream, task};

async fn subscribed(agent: &Served, binding: Binding, task: &Value) -> Stream {
    agent.stream(binding, "SubscribeToTask", json!({"id": task["id"]})).await
}

fn states(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(frame_state).collect()
}

#[tokio::test]
async fn stream_order_001_events_come_in_the_order_in_which_they_were_made() {
    each(async |agent, binding| {
        let frames = stream(agent, binding, "tck-stream-ordering-001").await;
        assert_eq!(states(&frames), ["SUBMITTED", "WORKING", "artifact", "COMPLETED"], "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn stream_order_002_every_open_stream_gets_the_events() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        let mut streams = Vec::new();
        for binding in Binding::ALL {
            streams.push(subscribed(agent, binding, &open).await);
        }
        sent(agent, binding, next("tck-complete-task", &open)).await;
        for stream in streams {
            assert_eq!(states(&stream.rest().await), ["INPUT_REQUIRED", "WORKING", "COMPLETED"], "{binding:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn stream_order_003_every_stream_gets_the_same_events_in_the_same_order() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        let (one, two) = (subscribed(agent, binding, &open).await, subscribed(agent, binding, &open).await);
        sent(agent, binding, next("tck-stream-artifact-chunked", &open)).await;
        assert_eq!(one.rest().await, two.rest().await, "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn stream_order_004_a_stream_that_is_closed_leaves_the_others_open() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        let (mut one, two) = (subscribed(agent, binding, &open).await, subscribed(agent, binding, &open).await);
        one.next().await.unwrap();
        drop(one);
        sent(agent, binding, next("tck-complete-task", &open)).await;
        assert_eq!(frame_state(two.rest().await.last().unwrap()), "COMPLETED", "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn stream_sub_001_the_first_event_is_the_task() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        let first = subscribed(agent, binding, &open).await.next().await.unwrap();
        assert_eq!(first["task"]["id"], open["id"], "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn stream_sub_002_the_stream_closes_when_the_task_has_ended() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        let stream = subscribed(agent, binding, &open).await;
        // A question does not close it.
        sent(agent, binding, next("tck-input-required", &open)).await;
        sent(agent, binding, next("tck-complete-task", &open)).await;
        let frames = stream.rest().await;
        assert_eq!(
            states(&frames),
            ["INPUT_REQUIRED", "WORKING", "INPUT_REQUIRED", "WORKING", "COMPLETED"],
            "{binding:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn stream_sub_003_a_task_that_has_ended_has_no_stream() {
    each(async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        refused(agent, binding, "SubscribeToTask", json!({"id": done["id"]}), ErrorKind::UnsupportedOperation).await;
    })
    .await;
}

#[tokio::test]
async fn stream_sub_004_a_task_that_is_not_there_has_no_stream() {
    each(async |agent, binding| {
        refused(agent, binding, "SubscribeToTask", json!({"id": UNKNOWN}), ErrorKind::TaskNotFound).await;
    })
    .await;
}
