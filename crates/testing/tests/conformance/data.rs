//! The data model and how it is written: DM-*. A test is named after the requirement of the kit.

use serde_json::{Value, json};
use testing::{Binding, Served};

use crate::{each, next, played, sent, stream, task};

/// Tasks of every kind that the agent makes, each read anew.
async fn tasks(agent: &Served, binding: Binding) -> Vec<Value> {
    let mut tasks = Vec::new();
    for prefix in
        ["tck-complete-task", "tck-input-required", "tck-artifact-text", "tck-artifact-data", "tck-reject-task"]
    {
        let made = task(agent, binding, prefix).await;
        tasks.push(agent.call(binding, "GetTask", json!({"id": made["id"]})).await.result().clone());
        tasks.push(made);
    }
    tasks
}

/// Every message that a task holds.
fn messages(task: &Value) -> Vec<&Value> {
    task["history"].as_array().into_iter().flatten().chain(task["status"].get("message")).collect()
}

fn parts(task: &Value) -> Vec<&Value> {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    messages(task).into_iter().chain(artifacts).flat_map(|holder| holder["parts"].as_array().unwrap()).collect()
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// Every key at every depth, but not inside what clients wrote or agents made.
fn keys(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                into.push(key.clone());
                if !["data", "metadata"].contains(&key.as_str()) {
                    keys(value, into);
                }
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| keys(entry, into)),
        _ => {}
    }
}

async fn all(check: impl Fn(&Value, Binding)) {
    each(async |agent, binding| tasks(agent, binding).await.iter().for_each(|task| check(task, binding))).await;
}

#[tokio::test]
async fn dm_task_001_a_task_has_an_id_and_a_status() {
    all(|task, binding| {
        assert!(is_text(&task["id"]) && task["status"].is_object(), "{binding:?}: {task}");
        let known = ["id", "contextId", "status", "artifacts", "history", "metadata"];
        assert!(task.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{binding:?}: {task}");
    })
    .await;
}

#[tokio::test]
async fn dm_task_002_a_state_is_one_of_the_words() {
    all(|task, binding| {
        let word = task["status"]["state"].as_str().unwrap();
        assert!(protocol::TaskState::from_word(word).is_some(), "{binding:?}: {word}");
    })
    .await;
}

#[tokio::test]
async fn dm_msg_001_a_message_has_an_id_a_role_and_parts() {
    all(|task, binding| {
        for message in messages(task) {
            assert!(is_text(&message["messageId"]) && is_text(&message["role"]), "{binding:?}: {message}");
            assert!(!message["parts"].as_array().unwrap().is_empty(), "{binding:?}: {message}");
        }
    })
    .await;
}

#[tokio::test]
async fn dm_msg_002_a_role_is_one_of_the_words() {
    all(|task, binding| {
        for message in messages(task) {
            let role = message["role"].as_str().unwrap();
            assert!(["ROLE_USER", "ROLE_AGENT"].contains(&role), "{binding:?}: {role}");
        }
    })
    .await;
}

#[tokio::test]
async fn dm_part_001_a_part_has_exactly_one_content() {
    all(|task, binding| {
        for part in parts(task) {
            let contents = ["text", "raw", "url", "data"].iter().filter(|kind| part.get(kind).is_some());
            assert_eq!(contents.count(), 1, "{binding:?}: {part}");
        }
    })
    .await;
    each(async |agent, binding| {
        let mut message = played("tck-complete-task");
        message["parts"] = json!([{"text": "a", "url": "https://example.com"}]);
        if binding != Binding::Grpc {
            // Protobuf cannot carry both.
            let answer = agent.call(binding, "SendMessage", json!({"message": message})).await;
            assert_eq!(answer.fields(), ["message.parts[0]"], "{binding:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn dm_art_001_an_artifact_has_an_id_and_parts() {
    each(async |agent, binding| {
        for prefix in ["tck-artifact-text", "tck-artifact-file", "tck-artifact-file-url", "tck-artifact-data"] {
            let artifact = &task(agent, binding, prefix).await["artifacts"][0];
            assert!(is_text(&artifact["artifactId"]), "{binding:?}: {artifact}");
            assert_eq!(artifact["parts"].as_array().unwrap().len(), 1, "{binding:?}: {artifact}");
        }
    })
    .await;
}

#[tokio::test]
async fn dm_status_001_a_status_has_a_state() {
    all(|task, binding| assert!(is_text(&task["status"]["state"]), "{binding:?}: {task}")).await;
}

#[tokio::test]
async fn dm_serial_001_names_are_in_camel_case() {
    each(async |agent, binding| {
        let mut values = tasks(agent, binding).await;
        values.extend(stream(agent, binding, "tck-stream-artifact-chunked").await);
        values.push(agent.call(binding, "ListTasks", json!({})).await.result().clone());
        values.push(agent.http("GET", "/.well-known/agent-card.json", &[], "").await.body);
        let mut names = Vec::new();
        values.iter().for_each(|value| keys(value, &mut names));
        assert!(names.iter().all(|name| !name.contains('_')), "{binding:?}: {names:?}");
    })
    .await;
}

#[tokio::test]
async fn dm_serial_002_enumerations_are_words() {
    all(|task, binding| {
        assert!(task["status"]["state"].as_str().unwrap().starts_with("TASK_STATE_"), "{binding:?}");
        assert!(messages(task).iter().all(|message| message["role"].as_str().unwrap().starts_with("ROLE_")));
    })
    .await;
}

#[tokio::test]
async fn dm_serial_003_stamps_are_utc_and_end_in_z() {
    all(|task, binding| {
        let stamp = task["status"]["timestamp"].as_str().unwrap();
        assert!(stamp.ends_with('Z') && stamp.parse::<protocol::Timestamp>().is_ok(), "{binding:?}: {stamp}");
    })
    .await;
}

#[tokio::test]
async fn dm_serial_004_what_must_be_there_is_there_even_when_it_is_empty() {
    each(async |agent, binding| {
        let listed = agent.call(binding, "ListTasks", json!({"contextId": "nobody's"})).await.result().clone();
        if binding != Binding::Grpc {
            // Protobuf does not tell an empty list from an absent one.
            assert_eq!(
                listed,
                json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}),
                "{binding:?}"
            );
        }
        let open = task(agent, binding, "tck-input-required").await;
        let frame = stream(agent, binding, "tck-stream-003").await.pop().unwrap();
        let update = &frame["statusUpdate"];
        assert!(is_text(&update["taskId"]) && is_text(&update["contextId"]) && update["status"].is_object());
        assert!(is_text(&open["contextId"]), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn dm_serial_005_what_is_not_known_is_ignored() {
    for binding in Binding::BOTH {
        let agent = crate::conformance("full").await;
        let mut message = played("tck-dm-serial-005");
        message["somethingNew"] = json!({"a": 1});
        let params = json!({"message": message, "alsoNew": true});
        let answer = agent.call(binding, "SendMessage", params).await;
        let task = &answer.result()["task"];
        assert!(!answer.body.to_string().contains("somethingNew"), "{binding:?}");
        // The same on a message to a task.
        let open = crate::task(&agent, binding, "tck-input-required").await;
        let mut more = next("tck-complete-task", &open);
        more["somethingNew"] = json!(1);
        assert_eq!(sent(&agent, binding, more).await["task"]["status"]["state"], task["status"]["state"]);
    }
}
