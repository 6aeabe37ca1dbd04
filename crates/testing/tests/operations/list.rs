//! ListTasks: the decision O14.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use testing::{Binding, id, scripted, send, serve, to};

use super::busy;

#[tokio::test]
async fn o14_pages_lose_and_repeat_nothing_even_when_stamps_are_equal() {
    struct Still;
    impl protocol::Clock for Still {
        fn now(&self) -> protocol::Timestamp {
            protocol::Timestamp::from_millis(1_000)
        }
    }
    let served = serve(busy(), |setup| setup.clock = Arc::new(Still)).await;
    for _ in 0..7 {
        served.call(Binding::Rpc, "SendMessage", send("go")).await;
    }
    for binding in Binding::ALL {
        let (mut ids, mut token) = (Vec::new(), String::new());
        loop {
            let mut params = json!({"pageSize": 2});
            if !token.is_empty() {
                params["pageToken"] = json!(token);
            }
            let answer = served.call(binding, "ListTasks", params).await;
            let page = answer.result();
            assert_eq!(page["totalSize"], 7);
            for task in page["tasks"].as_array().unwrap() {
                assert!(task.get("artifacts").is_none(), "artifacts come only when asked for");
                ids.push(id(task));
            }
            token = page["nextPageToken"].as_str().unwrap().to_owned();
            if token.is_empty() {
                break;
            }
        }
        let mut sorted = ids.clone();
        sorted.sort();
        sorted.reverse();
        sorted.dedup();
        assert_eq!(ids, sorted, "by id, descending, each once");
        assert_eq!(ids.len(), 7);
        let whole = served.call(binding, "ListTasks", json!({"includeArtifacts": true})).await;
        assert_eq!(whole.result()["tasks"][0]["artifacts"].as_array().unwrap().len(), 2);
        assert_eq!(whole.result()["pageSize"], 50);
    }
}

#[tokio::test]
async fn o14_pages_stay_right_while_tasks_change_between_them() {
    /// Every look at it is a second later.
    struct Ticking(AtomicI64);
    impl protocol::Clock for Ticking {
        fn now(&self) -> protocol::Timestamp {
            protocol::Timestamp::from_millis(self.0.fetch_add(1_000, Ordering::SeqCst))
        }
    }
    for binding in Binding::ALL {
        let agent = scripted(|_, say| async move {
            say.ask("which?").await?;
            Ok(())
        });
        let served = serve(agent, |setup| setup.clock = Arc::new(Ticking(AtomicI64::new(0)))).await;
        let make = async || id(&served.call(binding, "SendMessage", send("go")).await.result()["task"]);
        let ids = |page: &Value| page["tasks"].as_array().unwrap().iter().map(id).collect::<Vec<_>>();
        let page = async |token: &Value| {
            let mut params = json!({"pageSize": 2});
            if token != "" {
                params["pageToken"] = token.clone();
            }
            served.call(binding, "ListTasks", params).await.result().clone()
        };
        let mut tasks = Vec::new();
        for _ in 0..6 {
            tasks.push(make().await);
        }
        let first = page(&json!("")).await;
        assert_eq!(ids(&first), [&*tasks[5], &tasks[4]], "{binding:?}: the one that changed last comes first");
        // One that was shown changes, one that was not, one ends, and one is new: all of them are now before the cursor.
        for task in [5, 1] {
            served.call(binding, "SendMessage", json!({"message": to(&tasks[task], "this")})).await.result();
        }
        served.call(binding, "CancelTask", json!({"id": tasks[3]})).await.result();
        tasks.push(make().await);
        let second = page(&first["nextPageToken"]).await;
        assert_eq!(ids(&second), [&*tasks[2], &tasks[0]], "{binding:?}: nothing twice, and what stayed is there");
        assert_eq!((&second["totalSize"], first["totalSize"].as_u64()), (&json!(7), Some(6)), "{binding:?}");
        let last = second.get("nextPageToken").is_none_or(|token| token == "");
        assert!(last, "{binding:?}: {second}");
        let whole = served.call(binding, "ListTasks", json!({})).await.result().clone();
        let order = [6, 3, 1, 5, 4, 2, 0].map(|task: usize| tasks[task].clone());
        assert_eq!(ids(&whole), order, "{binding:?}");
    }
}

#[tokio::test]
async fn o14_filters_filter_and_bad_ones_are_named() {
    let served = serve(busy(), |_| {}).await;
    let first = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let context = first.result()["task"]["contextId"].clone();
    served.call(Binding::Rpc, "SendMessage", send("go")).await;
    for binding in Binding::ALL {
        let count = async |params| served.call(binding, "ListTasks", params).await.result()["totalSize"].clone();
        assert_eq!(count(json!({"contextId": context})).await, 1);
        assert_eq!(count(json!({"status": "TASK_STATE_COMPLETED"})).await, 2);
        assert_eq!(count(json!({"status": "TASK_STATE_WORKING"})).await, 0);
        assert_eq!(count(json!({"statusTimestampAfter": "2020-01-01T00:00:00Z"})).await, 2);
        assert_eq!(count(json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"})).await, 0);
        for (name, value) in [
            ("pageSize", json!(0)),
            ("pageSize", json!(101)),
            ("status", json!(77)),
            ("status", json!("working")),
            ("pageToken", json!("junk")),
            ("statusTimestampAfter", json!("yesterday")),
        ] {
            let only_in_json = value == "working" || value == "yesterday";
            if only_in_json && binding == Binding::Grpc {
                continue;
            }
            let refused = served.call(binding, "ListTasks", json!({name: value})).await;
            assert_eq!(refused.fields(), [name], "{value}");
        }
    }
}
