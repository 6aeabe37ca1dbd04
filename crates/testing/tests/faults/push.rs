//! Section I: webhooks.

use std::sync::Arc;

use serde_json::{Value, json};
use testing::{Binding, Webhooks, id, message, serve};
use tokio::sync::Semaphore;

use super::obedient;

fn send_with(text: &str, config: Value) -> Value {
    json!({"message": message(text), "configuration": {"taskPushNotificationConfig": config}})
}

#[tokio::test]
async fn b82_half_filled_credentials_make_no_half_filled_header() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        for (authentication, expected) in [
            (json!({"scheme": "Bearer", "credentials": "c"}), Some("Bearer c")),
            (json!({"scheme": "Basic", "credentials": "dTpw"}), Some("Basic dTpw")),
            (json!({"scheme": "Bearer"}), None),
            (Value::Null, None),
        ] {
            let hooks = Webhooks::new().await;
            let config = json!({"url": hooks.url, "authentication": authentication});
            served.call(binding, "SendMessage", send_with("done", config)).await.result();
            let got = hooks.wait(1).await;
            assert_eq!(got[0].header("authorization"), expected, "{authentication}");
            assert_eq!(got[0].header("x-a2a-notification-token"), None);
            assert_eq!(got[0].header("content-type"), Some("application/a2a+json"));
            assert_eq!(got[0].body.as_object().unwrap().len(), 1, "one member of the four");
        }
        let config = json!({"url": "http://localhost:1/", "authentication": {"credentials": "c"}});
        let refused = served.call(binding, "SendMessage", send_with("done", config)).await;
        assert_eq!(refused.fields(), ["configuration.taskPushNotificationConfig.authentication.scheme"]);
    }
}

#[tokio::test]
async fn b83_the_order_stays_when_the_first_answer_is_late_and_other_tasks_do_not_wait() {
    for binding in Binding::ALL {
        let gate = Arc::new(Semaphore::new(0));
        let hold = gate.clone();
        let late = Webhooks::answering_later(move |number| {
            let hold = hold.clone();
            async move {
                if number == 0 {
                    hold.acquire().await.unwrap().forget();
                }
                200
            }
        })
        .await;
        let served = serve(obedient(), |_| {}).await;
        let text = format!("work {}done", "piece ".repeat(8));
        served.call(binding, "SendMessage", send_with(&text, json!({"url": late.url}))).await.result();
        late.wait(1).await;
        // The first one is not answered yet; another task's webhooks all arrive.
        let other = Webhooks::new().await;
        served.call(binding, "SendMessage", send_with(&text, json!({"url": other.url}))).await.result();
        let expected: Vec<_> = other.wait(10).await.iter().map(testing::Hook::tells).collect();
        assert_eq!(late.got().len(), 1, "one at a time");
        gate.add_permits(1);
        let told: Vec<_> = late.wait(10).await.iter().map(testing::Hook::tells).collect();
        assert_eq!(told, expected);
        assert_eq!((told.first().unwrap().as_str(), told.last().unwrap().as_str()), ("WORKING", "COMPLETED"));
    }
}

#[tokio::test]
async fn b85_a_config_that_comes_with_a_message_is_listed_and_told_from_the_first_event() {
    for binding in Binding::ALL {
        let (hooks, served) = (Webhooks::new().await, serve(obedient(), |_| {}).await);
        let mut params = send_with("work ask", json!({"url": hooks.url}));
        // An older name of the same member is no member.
        params["configuration"]["pushNotificationConfig"] = json!({"url": "http://localhost:1/older"});
        let task = id(&served.call(binding, "SendMessage", params).await.result()["task"]);
        let list = served.call(binding, "ListTaskPushNotificationConfigs", json!({"taskId": task})).await;
        let configs = list.result()["configs"].as_array().unwrap();
        assert_eq!(configs.len(), 1);
        assert_eq!(configs[0]["url"], json!(hooks.url));
        assert!(configs[0]["id"].as_str().is_some_and(|id| !id.is_empty()), "the server gives it an id");
        let told: Vec<_> = hooks.wait(2).await.iter().map(testing::Hook::tells).collect();
        assert_eq!(told, ["WORKING", "INPUT_REQUIRED"]);
    }
}

#[tokio::test]
async fn b86_a_redirect_is_not_followed_and_is_final() {
    for binding in Binding::ALL {
        let (moved, served) = (Webhooks::answering(|_| 307).await, serve(obedient(), |_| {}).await);
        let task = served.call(binding, "SendMessage", send_with("work ask", json!({"url": moved.url}))).await;
        let task = id(&task.result()["task"]);
        moved.wait(1).await;
        // Another receiver of the same task gets all that comes; the one that redirects gets nothing more.
        let hooks = Webhooks::new().await;
        let other = json!({"taskId": task, "url": hooks.url});
        served.call(binding, "CreateTaskPushNotificationConfig", other).await.result();
        let more = testing::to(&task, "piece piece piece done");
        served.call(binding, "SendMessage", json!({"message": more})).await.result();
        hooks.wait(5).await;
        assert_eq!(moved.got().len(), 1);
        assert_eq!(moved.got()[0].path, "/hook", "the way it was given");
    }
}
