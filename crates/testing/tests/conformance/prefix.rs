//! What the agent says depends on the beginning of the message's id. One test a row of the kit's table.

use serde_json::{Value, json};
use testing::{Binding, frame_state, rebuilt, state, texts};

use crate::{conformance, next, played, sent, stream, task};

fn words(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap()
}

/// What an event tells, with the text of a piece.
fn telling(frame: &Value) -> String {
    match frame.get("artifactUpdate") {
        Some(update) => texts(&update["artifact"]).concat(),
        None => frame_state(frame).to_owned(),
    }
}

/// The task makes one artifact of these parts and is completed.
async fn makes(prefix: &str, parts: Value) {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let task = task(&agent, binding, prefix).await;
        assert_eq!(state(&task), "COMPLETED", "{binding:?}");
        assert_eq!(task["artifacts"].as_array().unwrap().len(), 1, "{binding:?}");
        assert!(!task["artifacts"][0]["artifactId"].as_str().unwrap().is_empty(), "{binding:?}");
        assert_eq!(task["artifacts"][0]["parts"], parts, "{binding:?}");
    }
}

/// The stream tells this after its first frame, the task.
async fn streams(prefix: &str, told: &[&str]) {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let frames = stream(&agent, binding, prefix).await;
        assert!(frames[0].get("task").is_some(), "{binding:?}");
        assert_eq!(frames[1..].iter().map(telling).collect::<Vec<_>>(), told, "{binding:?}");
    }
}

#[tokio::test]
async fn tck_complete_task() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let done = task(&agent, binding, "tck-complete-task").await;
        assert_eq!((state(&done), words(&done)), ("COMPLETED", "Hello from TCK"));
        let open = task(&agent, binding, "tck-input-required").await;
        let done = sent(&agent, binding, next("tck-complete-task", &open)).await["task"].clone();
        assert_eq!((state(&done), words(&done)), ("COMPLETED", "Hello from TCK"));
        assert_eq!((&done["id"], &done["contextId"]), (&open["id"], &open["contextId"]));
    }
}

#[tokio::test]
async fn tck_input_required() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let mut open = task(&agent, binding, "tck-input-required").await;
        assert_eq!(state(&open), "INPUT_REQUIRED");
        // The task stays open as often as the same id comes again.
        for _ in 0..3 {
            open = sent(&agent, binding, next("tck-input-required", &open)).await["task"].clone();
            assert_eq!(state(&open), "INPUT_REQUIRED");
        }
        assert_eq!(state(&sent(&agent, binding, next("tck-complete-task", &open)).await["task"]), "COMPLETED");
    }
}

#[tokio::test]
async fn tck_artifact_text() {
    makes("tck-artifact-text", json!([{"text": "Generated text content"}])).await;
}

#[tokio::test]
async fn tck_artifact_file() {
    makes("tck-artifact-file", json!([{"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}])).await;
}

#[tokio::test]
async fn tck_artifact_file_url() {
    let parts = json!([{"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}]);
    makes("tck-artifact-file-url", parts).await;
}

#[tokio::test]
async fn tck_artifact_data() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let task = task(&agent, binding, "tck-artifact-data").await;
        let data = &task["artifacts"][0]["parts"][0]["data"];
        assert_eq!((&data["key"], data["count"].as_f64()), (&json!("value"), Some(42.0)), "{binding:?}");
    }
}

#[tokio::test]
async fn tck_message_response() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let answer = sent(&agent, binding, played("tck-message-response")).await;
        assert_eq!(answer["message"]["parts"], json!([{"text": "Direct message response"}]));
        assert_eq!(answer.get("task"), None);
        let frames = stream(&agent, binding, "tck-message-response").await;
        assert_eq!(frames.len(), 1);
        assert!(frames[0].get("message").is_some());
    }
}

#[tokio::test]
async fn tck_stream_001() {
    streams("tck-stream-001", &["WORKING", "Stream hello from TCK", "COMPLETED"]).await;
}

#[tokio::test]
async fn tck_stream_002() {
    streams("tck-stream-002", &["COMPLETED"]).await;
}

#[tokio::test]
async fn tck_stream_003() {
    streams("tck-stream-003", &["WORKING", "Stream task lifecycle", "COMPLETED"]).await;
}

#[tokio::test]
async fn tck_stream_ordering_001() {
    streams("tck-stream-ordering-001", &["WORKING", "Ordered output", "COMPLETED"]).await;
}

#[tokio::test]
async fn tck_reject_task() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let task = task(&agent, binding, "tck-reject-task").await;
        assert_eq!((state(&task), words(&task)), ("REJECTED", "rejected"));
    }
}

#[tokio::test]
async fn tck_stream_artifact_text() {
    streams("tck-stream-artifact-text", &["WORKING", "Streamed text content", "COMPLETED"]).await;
}

#[tokio::test]
async fn tck_stream_artifact_file() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let frames = stream(&agent, binding, "tck-stream-artifact-file").await;
        let parts = json!([{"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}]);
        assert_eq!(frames[2]["artifactUpdate"]["artifact"]["parts"], parts, "{binding:?}");
        assert_eq!((frame_state(&frames[1]), frame_state(&frames[3])), ("WORKING", "COMPLETED"), "{binding:?}");
    }
}

#[tokio::test]
async fn tck_stream_artifact_chunked() {
    streams("tck-stream-artifact-chunked", &["WORKING", "chunk-1 ", "chunk-2", "COMPLETED"]).await;
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let frames = stream(&agent, binding, "tck-stream-artifact-chunked").await;
        let (first, second) = (&frames[2]["artifactUpdate"], &frames[3]["artifactUpdate"]);
        assert_eq!(first["artifact"]["artifactId"], second["artifact"]["artifactId"]);
        assert_eq!((&second["append"], &second["lastChunk"]), (&json!(true), &json!(true)));
        assert_eq!(rebuilt(&frames), [["chunk-1 ", "chunk-2"]]);
    }
}

/// The turn sleeps twice as long as the kit waits for a stream; the test cancels it.
#[tokio::test]
async fn test_resubscribe_message_id() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let params = json!({"message": played("test-resubscribe-message-id")});
        let mut first = agent.stream(binding, "SendStreamingMessage", params).await;
        let id = first.next().await.unwrap()["task"]["id"].clone();
        while frame_state(&first.next().await.unwrap()) != "WORKING" {}
        drop(first);
        let mut second = agent.stream(binding, "SubscribeToTask", json!({"id": id})).await;
        assert_eq!(frame_state(&second.next().await.unwrap()), "WORKING", "{binding:?}");
        let canceled = agent.call(binding, "CancelTask", json!({"id": id})).await;
        assert_eq!(state(canceled.result()), "CANCELED", "{binding:?}");
        assert_eq!(second.rest().await.iter().map(frame_state).collect::<Vec<_>>(), ["CANCELED"], "{binding:?}");
    }
}

#[tokio::test]
async fn anything_else_is_a_quick_success() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        for prefix in ["tck-dm-test-001", "tck-transport-test-001", "tck-infer-ctx", "tck-send-003", "x"] {
            assert_eq!(state(&task(&agent, binding, prefix).await), "COMPLETED", "{binding:?} {prefix}");
            assert_eq!(frame_state(stream(&agent, binding, prefix).await.last().unwrap()), "COMPLETED");
        }
    }
}

/// The kit makes an id once and sends it again with other messages, to other tasks and over other bindings.
#[tokio::test]
async fn the_same_id_again_is_another_message() {
    let agent = conformance("full").await;
    let mut ids = std::collections::HashSet::new();
    for binding in Binding::ALL {
        for _ in 0..3 {
            ids.insert(task(&agent, binding, "tck-complete-task").await["id"].to_string());
        }
    }
    assert_eq!(ids.len(), 9);
}
