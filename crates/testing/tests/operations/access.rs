//! Who may see and approve what: the decisions O17 to O19.

use std::sync::Arc;

use serde_json::json;
use server::{Credential, Setup, Start};
use testing::{Binding, Served, id, scripted, send, serve, state, to};
use tokio::sync::Semaphore;

use super::busy;

#[tokio::test]
async fn o17_another_callers_task_is_not_found() {
    let credential = |name: &str| Credential { token: format!("t-{name}"), principal: name.into() };
    let both = |setup: &mut Setup| setup.credentials = vec![credential("ada"), credential("bob")];
    let served = serve(
        scripted(|_, say| async move {
            say.ask("which?").await?;
            Ok(())
        }),
        both,
    )
    .await;
    let as_ada = [("authorization", "Bearer t-ada")];
    let as_bob = [("authorization", "bearer t-bob")];
    let made = served.call_with(Binding::Rpc, "SendMessage", send("go"), &as_ada).await;
    let task = id(&made.result()["task"]);
    for binding in Binding::ALL {
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            let hidden = served.call_with(binding, method, json!({"id": task}), &as_bob).await;
            assert_eq!(hidden.reason(), "TASK_NOT_FOUND", "{method}");
        }
        let hidden = served.call_with(binding, "SendMessage", json!({"message": to(&task, "x")}), &as_bob).await;
        assert_eq!(hidden.reason(), "TASK_NOT_FOUND");
        let config = json!({"taskId": task, "url": "http://localhost:1/"});
        let hidden = served.call_with(binding, "CreateTaskPushNotificationConfig", config, &as_bob).await;
        assert_eq!(hidden.reason(), "TASK_NOT_FOUND");
        let list = served.call_with(binding, "ListTasks", json!({}), &as_bob).await;
        assert_eq!(list.result()["totalSize"], 0);
        assert_eq!(served.call_with(binding, "GetTask", json!({"id": task}), &as_ada).await.status, 200);
    }
}

#[tokio::test]
async fn o18_the_extended_card_needs_its_capability_its_setting_and_a_credential() {
    let locked = |setup: &mut Setup| {
        setup.credentials = vec![Credential { token: "t".into(), principal: "ada".into() }];
    };
    let token = [("authorization", "Bearer t")];
    let agent = |declared: bool, set: bool| {
        let mut agent = busy();
        agent.card.capabilities.extended_agent_card = Some(declared);
        agent.extended = set.then(|| agent.card.clone());
        agent
    };
    for binding in Binding::ALL {
        let get = async |served: &Served, headers: &[(&str, &str)]| {
            served.call_with(binding, "GetExtendedAgentCard", json!({}), headers).await
        };
        let served = serve(agent(false, true), locked).await;
        assert_eq!(get(&served, &token).await.reason(), "UNSUPPORTED_OPERATION");
        let served = serve(agent(true, false), locked).await;
        assert_eq!(get(&served, &token).await.reason(), "EXTENDED_AGENT_CARD_NOT_CONFIGURED");
        let served = serve(agent(true, true), locked).await;
        assert_eq!(get(&served, &token).await.result()["name"], "scripted");
        assert!(get(&served, &[]).await.is_unauthenticated());
        let open = serve(agent(true, true), |_| {}).await;
        assert!(get(&open, &[]).await.is_unauthenticated(), "never without a credential");
    }
}

#[tokio::test]
async fn o19_an_approval_counts_once_and_only_for_a_task_that_waits_for_it() {
    let served = serve(
        scripted(|job, say| async move {
            match job.start {
                Start::Approval { .. } => say.done("live").await?,
                _ => say.need_approval(format!("allow it at {}", job.base_url)).await?,
            }
            Ok(())
        }),
        |_| {},
    )
    .await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let task = id(&answer.result()["task"]);
    let approvals = served.http("GET", "/approvals", &[], "").await.body;
    let text = format!("allow it at {}", served.url);
    assert_eq!(approvals["approvals"][0]["taskId"], json!(task));
    assert_eq!(approvals["approvals"][0]["text"], json!(text));
    assert!(approvals["approvals"][0]["since"].is_string());
    // A message is never an approval: the agent asks again.
    let asked = served.call(Binding::Rpc, "SendMessage", json!({"message": to(&task, "I approve")})).await;
    assert_eq!(state(&asked.result()["task"]), "AUTH_REQUIRED");
    let approve = async |id: &str| served.http("POST", &format!("/approve/{id}"), &[], "{}").await;
    let first = approve(&task).await;
    assert_eq!((first.status, first.body), (200, json!({"approved": true, "taskId": task})));
    served.until(&task, "TASK_STATE_COMPLETED").await;
    for id in [task.as_str(), "unknown"] {
        let refused = approve(id).await;
        assert_eq!((refused.status, refused.body), (404, json!({"approved": false})));
    }
    assert_eq!(served.http("GET", "/approvals", &[], "").await.body, json!({"approvals": []}));
}

#[tokio::test]
async fn o19_of_two_approvals_at_once_one_counts() {
    let gate = Arc::new(Semaphore::new(0));
    let hold = gate.clone();
    let served = serve(
        scripted(move |job, say| {
            let hold = hold.clone();
            async move {
                if let Start::Approval { .. } = job.start {
                    hold.acquire().await?.forget();
                    say.done("live").await?;
                } else {
                    say.need_approval("allow it").await?;
                }
                Ok(())
            }
        }),
        |_| {},
    )
    .await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let path = format!("/approve/{}", id(&answer.result()["task"]));
    let post = async || served.http("POST", &path, &[], "{}").await.status;
    // One is acknowledged when the agent's words about it are kept, the other is refused before.
    let (refused, counts) = futures_util::future::select(Box::pin(post()), Box::pin(post())).await.factor_first();
    assert_eq!(refused, 404);
    gate.add_permits(1);
    assert_eq!(counts.await, 200);
    served.until(&id(&answer.result()["task"]), "TASK_STATE_COMPLETED").await;
    assert_eq!(post().await, 404);
    served.until(&id(&answer.result()["task"]), "TASK_STATE_COMPLETED").await;
}
