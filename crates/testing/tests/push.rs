//! Webhooks: the decision O15.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::time::{Duration, Instant};

use protocol::{Artifact, ArtifactId, Part};
use serde_json::{Value, json};
use server::Chunk;
use testing::{Binding, Scripted, Served, Webhooks, message, scripted, serve};

const CHUNKS: usize = 4;

fn working() -> Scripted {
    scripted(|job, say| async move {
        say.working("at it").await?;
        for number in 0..CHUNKS {
            let artifact = Artifact::new(ArtifactId::new("log")?, vec![Part::text(format!("{number}"))]);
            say.artifact(Chunk { artifact, append: number > 0, last_chunk: number + 1 == CHUNKS }).await?;
        }
        match job.message.text().as_str() {
            "ask" => say.ask("which?").await?,
            _ => say.done("done").await?,
        }
        Ok(())
    })
}

async fn send_with(served: &Served, binding: Binding, text: &str, config: Value) -> Value {
    let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": config});
    let params = json!({"message": message(text), "configuration": configuration});
    served.call(binding, "SendMessage", params).await.result()["task"].clone()
}

fn tells(hooks: &[testing::Hook]) -> Vec<String> {
    hooks.iter().map(testing::Hook::tells).collect()
}

const ALL: [&str; 6] = ["WORKING", "artifact", "artifact", "artifact", "artifact", "COMPLETED"];

#[tokio::test]
async fn o15_each_event_is_posted_in_order_with_its_credentials_and_never_the_first_task() {
    for binding in Binding::ALL {
        let (hooks, served) = (Webhooks::new().await, serve(working(), |_| {}).await);
        let authentication = json!({"scheme": "Bearer", "credentials": "secret"});
        let config = json!({"url": hooks.url, "token": "mine", "authentication": authentication});
        let task = send_with(&served, binding, "go", config).await;
        let got = hooks.wait(ALL.len()).await;
        assert_eq!(tells(&got), ALL);
        for hook in &got {
            assert_eq!(hook.header("content-type"), Some("application/a2a+json"));
            assert_eq!(hook.header("authorization"), Some("Bearer secret"));
            assert_eq!(hook.header("x-a2a-notification-token"), Some("mine"));
            assert_eq!(hook.header("a2a-notification-token"), Some("mine"));
            let update = hook.body.as_object().unwrap().values().next().unwrap();
            assert_eq!(update["taskId"], task["id"]);
            assert_eq!(update["contextId"], task["contextId"]);
        }
    }
}

#[tokio::test]
async fn o15_configs_can_be_made_read_listed_and_taken_away() {
    let (hooks, served) = (Webhooks::new().await, serve(working(), |_| {}).await);
    for binding in Binding::ALL {
        let asked = json!({"message": message("ask")});
        let asked = served.call(binding, "SendMessage", asked).await.result()["task"].clone();
        let task = asked["id"].as_str().unwrap();
        let made = json!({"taskId": task, "id": "mine", "url": hooks.url});
        let made = served.call(binding, "CreateTaskPushNotificationConfig", made).await.result().clone();
        assert_eq!((&made["id"], &made["taskId"]), (&json!("mine"), &json!(task)), "client ids are kept");
        let one = json!({"taskId": task, "id": "mine"});
        assert_eq!(*served.call(binding, "GetTaskPushNotificationConfig", one.clone()).await.result(), made);
        let all = served.call(binding, "ListTaskPushNotificationConfigs", json!({"taskId": task})).await;
        assert_eq!(all.result()["configs"], json!([made]));
        for _ in 0..2 {
            let gone = served.call(binding, "DeleteTaskPushNotificationConfig", one.clone()).await;
            assert_eq!((gone.status, &gone.body.get("error")), (200, &None), "also the second time");
        }
        let gone = served.call(binding, "GetTaskPushNotificationConfig", one).await;
        assert_eq!(gone.reason(), "TASK_NOT_FOUND");
        for method in ["ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"] {
            let unknown = served.call(binding, method, json!({"taskId": "nowhere", "id": "x"})).await;
            assert_eq!(unknown.reason(), "TASK_NOT_FOUND");
        }
    }
    assert!(hooks.got().is_empty());
}

#[tokio::test]
async fn o15_what_may_pass_is_tried_again_and_what_is_final_is_not() {
    let served = serve(working(), |_| {}).await;
    let shaky = Webhooks::answering(|number| if number == 0 { 503 } else { 200 }).await;
    send_with(&served, Binding::Rpc, "go", json!({"url": shaky.url})).await;
    let got = shaky.wait(ALL.len() + 1).await;
    assert_eq!(tells(&got)[1..], ALL, "the first one comes again, then the rest in order");
    let refusing = Webhooks::answering(|_| 404).await;
    send_with(&served, Binding::Rpc, "go", json!({"url": refusing.url})).await;
    refusing.wait(1).await;
    // The first pause before another try is half a second at the most.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(refusing.got().len(), 1);
}

#[tokio::test]
async fn o15_a_dead_receiver_delays_neither_the_task_nor_another_receiver() {
    let served = serve(working(), |_| {}).await;
    // Takes connections and never answers.
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let silent = format!("http://{}/", silent.local_addr().unwrap());
    let since = Instant::now();
    let task = send_with(&served, Binding::Rpc, "ask", json!({"url": silent})).await;
    let id = task["id"].as_str().unwrap();
    served.until(id, "TASK_STATE_INPUT_REQUIRED").await;
    let hooks = Webhooks::new().await;
    let other = json!({"taskId": id, "url": hooks.url});
    served.call(Binding::Rpc, "CreateTaskPushNotificationConfig", other).await.result();
    let mut more = message("go");
    more["taskId"] = json!(id);
    served.call(Binding::Rpc, "SendMessage", json!({"message": more})).await.result();
    hooks.wait(ALL.len()).await;
    assert!(since.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn o15_taking_a_config_away_drops_what_is_still_queued() {
    let served = serve(working(), |_| {}).await;
    let hooks = Webhooks::answering(|_| 503).await;
    let task = send_with(&served, Binding::Rpc, "ask", json!({"id": "mine", "url": hooks.url})).await;
    hooks.wait(1).await;
    let one = json!({"taskId": task["id"], "id": "mine"});
    served.call(Binding::Rpc, "DeleteTaskPushNotificationConfig", one).await;
    let before = hooks.got().len();
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(hooks.got().len(), before);
}

#[tokio::test]
async fn o15_an_agent_without_push_refuses_before_anything_is_stored() {
    let mut agent = working();
    agent.card.capabilities.push_notifications = Some(false);
    let served = serve(agent, |_| {}).await;
    for binding in Binding::ALL {
        let configuration = json!({"taskPushNotificationConfig": {"url": "http://localhost:1/"}});
        let params = json!({"message": message("go"), "configuration": configuration});
        let refused = served.call(binding, "SendMessage", params).await;
        assert_eq!(refused.reason(), "PUSH_NOTIFICATION_NOT_SUPPORTED");
        assert_eq!(served.call(binding, "ListTasks", json!({})).await.result()["totalSize"], 0);
        let config = json!({"taskId": "x", "url": "http://localhost:1/"});
        let refused = served.call(binding, "CreateTaskPushNotificationConfig", config).await;
        assert_eq!(refused.reason(), "PUSH_NOTIFICATION_NOT_SUPPORTED");
    }
}

#[tokio::test]
async fn o15_webhooks_into_private_networks_are_refused_unless_they_are_allowed() {
    let served = serve(working(), |setup| setup.allow_local_webhooks = false).await;
    let asked = served.call(Binding::Rpc, "SendMessage", json!({"message": message("ask")})).await;
    let task = asked.result()["task"]["id"].clone();
    for url in [
        "http://127.0.0.1/",
        "http://localhost:80/",
        "http://10.1.2.3/",
        "http://192.168.0.1/",
        "http://172.16.0.1/",
        "http://169.254.169.254/",
        "http://100.64.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fd00::1]/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "ftp://example.com/",
        "not a url",
    ] {
        let config = json!({"taskId": task, "url": url});
        let refused = served.call(Binding::Rpc, "CreateTaskPushNotificationConfig", config).await;
        assert_eq!(refused.fields(), ["url"], "{url}");
    }
    // A name is not looked up when the config is made.
    let named = json!({"taskId": task, "url": "https://hooks.example.com/x"});
    served.call(Binding::Rpc, "CreateTaskPushNotificationConfig", named).await.result();
}
