//! Webhooks: PUSH-*. A test is named after the requirement of the kit.

use protocol::ErrorKind;
use serde_json::{Value, json};
use testing::{Binding, Served, Webhooks};

use crate::{each, next, played, refused, sent, task};

/// A webhook for a task under an id that the client chose, as the kit makes it: nobody listens there.
async fn created(agent: &Served, binding: Binding, task: &Value) -> Value {
    let params = json!({"taskId": task["id"], "id": "tck-push", "url": "https://example.com/webhook"});
    agent.call(binding, "CreateTaskPushNotificationConfig", params).await.result().clone()
}

fn named(task: &Value) -> Value {
    json!({"taskId": task["id"], "id": "tck-push"})
}

async fn listed(agent: &Served, binding: Binding, task: &Value) -> Vec<Value> {
    let answer = agent.call(binding, "ListTaskPushNotificationConfigs", json!({"taskId": task["id"]})).await;
    answer.result()["configs"].as_array().cloned().unwrap_or_default()
}

/// Sends a message with a webhook of its own, and gives what comes there until the task has ended.
async fn delivered(agent: &Served, binding: Binding) -> Vec<testing::Hook> {
    let hooks = Webhooks::new().await;
    let config = json!({
        "url": hooks.url.replace("127.0.0.1", "localhost"),
        "authentication": {"scheme": "Bearer", "credentials": "tck-secret"}
    });
    let configuration = json!({"taskPushNotificationConfig": config});
    let params = json!({"message": played("tck-complete-task"), "configuration": configuration});
    agent.call(binding, "SendMessage", params).await.result();
    hooks.wait(1).await
}

#[tokio::test]
async fn push_create_001_a_webhook_is_kept_under_the_client_s_id_even_when_the_task_has_ended() {
    each(async |agent, binding| {
        let (one, two) =
            (task(agent, binding, "tck-complete-task").await, task(agent, binding, "tck-complete-task").await);
        // The same id at another task is another webhook.
        for task in [&one, &two] {
            let config = created(agent, binding, task).await;
            assert_eq!((&config["id"], &config["taskId"]), (&json!("tck-push"), &task["id"]), "{binding:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn push_create_002_a_webhook_stays_until_it_is_deleted() {
    each(async |agent, binding| {
        let open = task(agent, binding, "tck-input-required").await;
        created(agent, binding, &open).await;
        sent(agent, binding, next("tck-input-required", &open)).await;
        assert_eq!(listed(agent, binding, &open).await.len(), 1, "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn push_get_001_a_webhook_is_read_as_it_was_made() {
    each(async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        let made = created(agent, binding, &done).await;
        let got = agent.call(binding, "GetTaskPushNotificationConfig", named(&done)).await.result().clone();
        assert_eq!((&got, &got["url"]), (&made, &json!("https://example.com/webhook")), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn push_get_002_a_webhook_that_is_not_there_is_not_found() {
    each(async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        refused(agent, binding, "GetTaskPushNotificationConfig", named(&done), ErrorKind::TaskNotFound).await;
    })
    .await;
}

#[tokio::test]
async fn push_list_001_all_webhooks_of_a_task_are_listed() {
    each(async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        let made = created(agent, binding, &done).await;
        assert_eq!(listed(agent, binding, &done).await, [made], "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn push_del_001_a_webhook_that_was_deleted_is_gone() {
    each(async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        created(agent, binding, &done).await;
        agent.call(binding, "DeleteTaskPushNotificationConfig", named(&done)).await.result();
        refused(agent, binding, "GetTaskPushNotificationConfig", named(&done), ErrorKind::TaskNotFound).await;
        assert!(listed(agent, binding, &done).await.is_empty(), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn push_del_002_deleting_it_again_is_no_error() {
    each(async |agent, binding| {
        let done = task(agent, binding, "tck-complete-task").await;
        created(agent, binding, &done).await;
        for _ in 0..2 {
            agent.call(binding, "DeleteTaskPushNotificationConfig", named(&done)).await.result();
        }
    })
    .await;
}

#[tokio::test]
async fn push_deliver_001_a_webhook_shows_the_credentials_that_it_was_given() {
    each(async |agent, binding| {
        let hooks = delivered(agent, binding).await;
        assert_eq!(hooks[0].header("authorization"), Some("Bearer tck-secret"), "{binding:?}");
    })
    .await;
}

#[tokio::test]
async fn push_deliver_002_a_webhook_is_called() {
    each(async |agent, binding| assert_eq!(delivered(agent, binding).await[0].tells(), "COMPLETED", "{binding:?}"))
        .await;
}

#[tokio::test]
async fn push_deliver_003_a_webhook_gets_what_a_stream_gets() {
    each(async |agent, binding| {
        let body = delivered(agent, binding).await.remove(0).body;
        assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["statusUpdate"], "{binding:?}");
        assert_eq!(body["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{binding:?}");
    })
    .await;
}
