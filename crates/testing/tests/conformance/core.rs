//! The operations: CORE-*. A test is named after the requirement of the kit.

use protocol::ErrorKind;
use serde_json::{Value, json};
use testing::{Binding, Served, frame_state, state};

use crate::{UNKNOWN, conformance, each, each_of, next, played, refused, refused_as, sent, stream, task};

async fn got(agent: &Served, binding: Binding, params: Value) -> Value {
    agent.call(binding, "GetTask", params).await.result().clone()
}

/// The texts of what the client wrote, as the history has them.
fn written(task: &Value) -> Vec<String> {
    let history = task["history"].as_array().into_iter().flatten();
    let users = history.filter(|message| message["role"] == "ROLE_USER");
    users.map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// A task with three messages of the client, each with a text of its own.
async fn talked(agent: &Served, binding: Binding) -> Value {
    let text = |mut message: Value, text: &str| {
        message["parts"][0]["text"] = json!(text);
        message
    };
    let task = sent(agent, binding, text(played("tck-input-required"), "one")).await["task"].clone();
    sent(agent, binding, text(next("tck-input-required", &task), "two")).await;
    sent(agent, binding, text(next("tck-complete-task", &task), "three")).await["task"].clone()
}

async fn listed(agent: &Served, binding: Binding, params: Value) -> Value {
    agent.call(binding, "ListTasks", params).await.result().clone()
}

#[tokio::test]
async fn core_send_001_a_task_or_a_message_comes_back() {
    each(async |agent, binding| {
        for (prefix, member) in [("tck-complete-task", "task"), ("tck-message-response", "message")] {
            let answer = sent(agent, binding, played(prefix)).await;
            assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), [member], "{binding:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn core_send_002_a_task_that_has_ended_takes_no_message() {
    each(async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        let more = json!({"message": next("tck-complete-task", &done)});
        refused(agent, binding, "SendMessage", more.clone(), ErrorKind::UnsupportedOperation).await;
        refused(agent, binding, "SendStreamingMessage", more, ErrorKind::UnsupportedOperation).await;
    })
    .await;
}

/// The kit's own test of it wants the message to be taken (docs/conformance.md).
#[tokio::test]
async fn core_send_003_a_part_of_a_type_that_is_not_on_the_card_is_refused() {
    each(async |agent, binding| {
        let mut message = played("tck-send-003");
        message["parts"] = json!([{"raw": "AA==", "mediaType": "application/x-unsupported-type"}]);
        let params = json!({"message": message});
        refused(agent, binding, "SendMessage", params, ErrorKind::ContentTypeNotSupported).await;
    })
    .await;
}

#[tokio::test]
async fn core_stream_001_a_stream_opens() {
    each(async |agent, binding| assert!(stream(agent, binding, "tck-stream-001").await.len() > 1)).await;
}

#[tokio::test]
async fn core_stream_002_a_direct_message_is_all_of_its_stream() {
    each(async |agent, binding| {
        let frames = stream(agent, binding, "tck-message-response").await;
        let members: Vec<&String> = frames.iter().flat_map(|frame| frame.as_object().unwrap().keys()).collect();
        assert_eq!(members, ["message"], "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_stream_003_the_stream_of_a_task_begins_with_it_and_closes_when_it_has_ended() {
    each(async |agent, binding| {
        let frames = stream(agent, binding, "tck-stream-003").await;
        assert!(frames[0].get("task").is_some(), "{binding:?}");
        assert_eq!(frame_state(frames.last().unwrap()), "COMPLETED", "{binding:?}");
        assert_eq!(frames.iter().filter(|frame| frame_state(frame) == "COMPLETED").count(), 1, "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_get_001_a_task_is_read_as_it_is() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        assert_eq!(got(agent, binding, json!({"id": open["id"]})).await, open);
        sent(agent, binding, next("tck-complete-task", &open)).await;
        assert_eq!(state(&got(agent, binding, json!({"id": open["id"]})).await), "COMPLETED");
    })
    .await;
}

#[tokio::test]
async fn core_get_002_a_task_that_is_not_there_is_not_found() {
    each(async |agent, binding| {
        refused(agent, binding, "GetTask", json!({"id": UNKNOWN}), ErrorKind::TaskNotFound).await;
    })
    .await;
}

/// Whose tasks a caller sees is tested where callers have names: `o17_…` of the operations.
#[tokio::test]
async fn core_list_001_tasks_are_listed() {
    each(async |agent, binding| {
        let task = task(agent, binding, "tck-complete-task").await;
        let listed = listed(agent, binding, json!({"contextId": task["contextId"]})).await;
        assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "{binding:?}");
        assert_eq!(listed["tasks"][0]["id"], task["id"], "{binding:?}");
        assert_eq!((listed["totalSize"].as_u64(), listed["pageSize"].as_u64()), (Some(1), Some(50)), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_list_002_pages_follow_each_other_without_a_gap() {
    each(async |agent, binding| {
        let mut made = Vec::new();
        let context = json!(format!("context-{binding:?}"));
        for _ in 0..5 {
            let mut message = played("tck-complete-task");
            message["contextId"] = context.clone();
            made.push(sent(agent, binding, message).await["task"]["id"].clone());
        }
        let (mut seen, mut token) = (Vec::new(), json!(""));
        for size in [2, 2, 1] {
            let mut params = json!({"contextId": context, "pageSize": 2});
            if token != "" {
                params["pageToken"] = token;
            }
            let page = listed(agent, binding, params).await;
            assert_eq!(page["tasks"].as_array().unwrap().len(), size, "{binding:?}");
            assert_eq!(page["totalSize"], 5, "{binding:?}");
            seen.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()));
            token = page["nextPageToken"].clone();
        }
        assert_eq!(token, "", "{binding:?}");
        seen.sort_by_key(Value::to_string);
        made.sort_by_key(Value::to_string);
        assert_eq!(seen, made, "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_list_003_the_task_that_changed_last_comes_first() {
    each(async |agent, binding| {
        for _ in 0..3 {
            task(agent, binding, "tck-complete-task").await;
        }
        let listed = listed(agent, binding, json!({})).await;
        let tasks = listed["tasks"].as_array().unwrap();
        let stamps: Vec<&str> = tasks.iter().map(|task| task["status"]["timestamp"].as_str().unwrap()).collect();
        assert!(stamps.is_sorted_by(|a, b| a >= b), "{binding:?} {stamps:?}");
    })
    .await;
}

#[tokio::test]
async fn core_list_004_the_last_page_has_an_empty_token() {
    each(async |agent, binding| {
        task(agent, binding, "tck-complete-task").await;
        assert_eq!(listed(agent, binding, json!({})).await["nextPageToken"], "", "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_list_005_artifacts_are_absent_unless_asked_for() {
    each(async |agent, binding| {
        let task = task(agent, binding, "tck-artifact-text").await;
        for (params, there) in [
            (json!({"contextId": task["contextId"]}), false),
            (json!({"contextId": task["contextId"], "includeArtifacts": false}), false),
            (json!({"contextId": task["contextId"], "includeArtifacts": true}), true),
        ] {
            let listed = listed(agent, binding, params).await;
            assert_eq!(listed["tasks"][0].get("artifacts").is_some(), there, "{binding:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn core_cancel_001_a_canceled_task_comes_back_canceled() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        let canceled = agent.call(binding, "CancelTask", json!({"id": open["id"]})).await.result().clone();
        assert_eq!((state(&canceled), &canceled["id"]), ("CANCELED", &open["id"]), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_cancel_002_a_task_that_has_ended_cannot_be_canceled() {
    each(async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        refused(agent, binding, "CancelTask", json!({"id": done["id"]}), ErrorKind::TaskNotCancelable).await;
    })
    .await;
}

#[tokio::test]
async fn core_cancel_003_a_task_that_is_not_there_cannot_be_canceled() {
    each(async |agent, binding| {
        refused(agent, binding, "CancelTask", json!({"id": UNKNOWN}), ErrorKind::TaskNotFound).await;
    })
    .await;
}

#[tokio::test]
async fn core_execution_mode_001_a_blocking_call_waits_for_an_end_or_a_question() {
    each(async |agent, binding| {
        assert_eq!(state(&task(agent, binding, "tck-input-required").await), "INPUT_REQUIRED", "{binding:?}");
        assert_eq!(state(&task(agent, binding, "tck-stream-001").await), "COMPLETED", "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_execution_mode_002_a_call_that_does_not_wait_comes_back_at_once() {
    each(async |agent, binding| {
        let configuration = json!({"returnImmediately": true});
        let params = json!({"message": played("test-resubscribe-message-id"), "configuration": configuration});
        let answer = agent.call(binding, "SendMessage", params).await;
        let begun = &answer.result()["task"];
        assert!(["SUBMITTED", "WORKING"].contains(&state(begun)), "{binding:?}");
        agent.call(binding, "CancelTask", json!({"id": begun["id"]})).await.result();
    })
    .await;
}

#[tokio::test]
async fn core_err_001_an_error_says_what_is_wrong_and_what_it_is_about() {
    each(async |agent, binding| {
        let answer = agent.call(binding, "GetTask", json!({"id": UNKNOWN})).await;
        refused_as(&answer, binding, ErrorKind::TaskNotFound);
        assert!(answer.body.to_string().contains(UNKNOWN), "{binding:?}: {}", answer.body);
    })
    .await;
}

#[tokio::test]
async fn core_err_002_what_is_missing_is_named_before_anything_happens() {
    each(async |agent, binding| {
        let answer = agent.call(binding, "SendMessage", json!({})).await;
        refused_as(&answer, binding, ErrorKind::InvalidParams);
        assert_eq!(answer.fields(), ["message"], "{binding:?}");
        assert_eq!(listed(agent, binding, json!({})).await["totalSize"].as_u64().unwrap_or_default(), 0);
    })
    .await;
}

#[tokio::test]
async fn core_cap_001_webhooks_are_refused_where_the_card_has_none() {
    each_of("nocap", async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        let config = json!({"taskId": done["id"], "id": "c"});
        let create = json!({"taskId": done["id"], "url": "https://example.com/hook"});
        for (method, params) in [
            ("CreateTaskPushNotificationConfig", create),
            ("GetTaskPushNotificationConfig", config.clone()),
            ("ListTaskPushNotificationConfigs", json!({"taskId": done["id"]})),
            ("DeleteTaskPushNotificationConfig", config),
        ] {
            refused(agent, binding, method, params, ErrorKind::PushNotificationNotSupported).await;
        }
    })
    .await;
}

#[tokio::test]
async fn core_cap_002_streams_are_refused_where_the_card_has_none() {
    each_of("nocap", async |agent, binding| {
        let send = json!({"message": played("tck-stream-001")});
        refused(agent, binding, "SendStreamingMessage", send, ErrorKind::UnsupportedOperation).await;
        let open = task(agent, binding, "tck-input-required").await;
        let id = json!({"id": open["id"]});
        refused(agent, binding, "SubscribeToTask", id, ErrorKind::UnsupportedOperation).await;
    })
    .await;
}

#[tokio::test]
async fn core_cap_003_the_extended_card_is_refused_where_there_is_none() {
    each(async |agent, binding| {
        refused(agent, binding, "GetExtendedAgentCard", json!({}), ErrorKind::UnsupportedOperation).await;
    })
    .await;
}

#[tokio::test]
async fn core_cap_004_a_client_that_does_not_name_a_required_extension_is_refused() {
    const URI: &str = "urn:a2a:tck:required-extension";
    each_of("req", async |agent, binding| {
        let send = json!({"message": played("tck-complete-task")});
        refused(agent, binding, "SendMessage", send.clone(), ErrorKind::ExtensionSupportRequired).await;
        let answer = agent.call_with(binding, "SendMessage", send, &[("a2a-extensions", URI)]).await;
        assert_eq!(state(&answer.result()["task"]), "COMPLETED", "{binding:?}");
        assert_eq!(answer.headers["a2a-extensions"], URI, "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_multi_001_a_context_is_made_where_the_client_names_none() {
    each(async |agent, binding| {
        let (one, two) = (task(agent, binding, "tck-infer-ctx").await, task(agent, binding, "tck-infer-ctx").await);
        assert_ne!(one["contextId"], two["contextId"], "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_multi_001a_the_context_that_was_made_is_in_the_answer() {
    each(async |agent, binding| {
        assert!(!task(agent, binding, "tck-infer-ctx").await["contextId"].as_str().unwrap().is_empty());
        let reply = sent(agent, binding, played("tck-message-response")).await;
        assert!(!reply["message"]["contextId"].as_str().unwrap().is_empty(), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_multi_002_the_client_s_own_context_is_taken() {
    each(async |agent, binding| {
        let mut message = played("tck-complete-task");
        message["contextId"] = json!("my-context");
        assert_eq!(sent(agent, binding, message).await["task"]["contextId"], "my-context", "{binding:?}");
    })
    .await;
}

/// No context is unacceptable here, so there is none to refuse; what is taken is the context itself.
#[tokio::test]
async fn core_multi_002a_a_context_is_taken_as_it_is_and_never_replaced() {
    each(async |agent, binding| {
        for context in ["", "a", "a b/c?d", "\u{e9}"] {
            let mut message = played("tck-complete-task");
            message["contextId"] = json!(context);
            let answered = sent(agent, binding, message).await["task"]["contextId"].clone();
            assert!(answered == context || context.is_empty(), "{binding:?}: {answered}");
        }
    })
    .await;
}

#[tokio::test]
async fn core_multi_003_every_task_has_an_id_of_its_own() {
    each(async |agent, binding| {
        let (one, two) =
            (task(agent, binding, "tck-complete-task").await, task(agent, binding, "tck-complete-task").await);
        assert_ne!(one["id"], two["id"], "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_multi_004_a_message_to_a_task_that_is_not_there_is_refused() {
    each(async |agent, binding| {
        let message = next("tck-complete-task", &json!({"id": UNKNOWN}));
        refused(agent, binding, "SendMessage", json!({"message": message}), ErrorKind::TaskNotFound).await;
    })
    .await;
}

#[tokio::test]
async fn core_multi_005_a_message_with_a_task_alone_belongs_to_the_task_s_context() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        let done = sent(agent, binding, next("tck-complete-task", &open)).await["task"].clone();
        assert_eq!(done["contextId"], open["contextId"], "{binding:?}");
        let history = done["history"].as_array().unwrap();
        assert!(history.iter().all(|message| message["contextId"] == open["contextId"]), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_multi_006_a_context_that_is_not_the_task_s_is_refused() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        let mut message = next("tck-complete-task", &open);
        message["contextId"] = json!("another-context");
        let answer = agent.call(binding, "SendMessage", json!({"message": message})).await;
        refused_as(&answer, binding, ErrorKind::InvalidParams);
        assert_eq!(answer.fields(), ["message.contextId"], "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_hist_001_no_history_when_none_is_wanted() {
    each(async |agent, binding| {
        let task = talked(agent, binding).await;
        assert_eq!(got(agent, binding, json!({"id": task["id"], "historyLength": 0})).await.get("history"), None);
    })
    .await;
}

#[tokio::test]
async fn core_hist_002_no_more_history_than_is_wanted() {
    each(async |agent, binding| {
        let task = talked(agent, binding).await;
        let last = got(agent, binding, json!({"id": task["id"], "historyLength": 1})).await;
        let whole = got(agent, binding, json!({"id": task["id"]})).await;
        assert_eq!(last["history"].as_array().unwrap().len(), 1, "{binding:?}");
        assert_eq!(last["history"][0], *whole["history"].as_array().unwrap().last().unwrap(), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_hist_003_an_answer_without_history_when_none_is_wanted() {
    each(async |agent, binding| {
        let params = json!({"message": played("tck-complete-task"), "configuration": {"historyLength": 0}});
        let answer = agent.call(binding, "SendMessage", params).await;
        assert_eq!(answer.result()["task"].get("history"), None, "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_hist_004_messages_are_kept() {
    each(async |agent, binding| assert_eq!(written(&talked(agent, binding).await).len(), 3, "{binding:?}")).await;
}

#[tokio::test]
async fn core_hist_005_messages_are_in_the_order_in_which_they_came() {
    each(async |agent, binding| {
        let id = talked(agent, binding).await["id"].clone();
        let task = got(agent, binding, json!({"id": id, "historyLength": 10})).await;
        assert_eq!(written(&task), ["one", "two", "three"], "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn core_hist_006_messages_are_as_they_were_sent() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let mut message = played("tck-complete-task");
        message["parts"] = json!([{"text": " \u{e9}\n\"x\" "}, {"data": {"a": [true, null]}}]);
        message["metadata"] = json!({"k": "v"});
        let task = sent(&agent, binding, message.clone()).await["task"].clone();
        for member in ["messageId", "role", "parts", "metadata"] {
            assert_eq!(task["history"][0][member], message[member], "{binding:?}");
        }
    }
}
