//! Tenants (DECISIONS W10): on the card, in each request, and between tasks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use client::live::LiveIds;
use client::{Binding as Spoken, Connection, Http, Limits, Reply, choose};
use protocol::call::{ListTasksRequest, SendMessageRequest};
use protocol::{AgentCard, Dial, Ids, Message, MessageId, Part, Role};
use serde_json::{Value, json};
use server::Setup;
use testing::{Binding, Scripted, Served, scripted, send, serve};

fn asking() -> Scripted {
    scripted(|_, say| async move {
        say.ask("which?").await?;
        Ok(())
    })
}

async fn served(tenants: &[&str]) -> Served {
    let mut agent = asking();
    agent.card.capabilities.extended_agent_card = Some(true);
    let change = |setup: &mut Setup| setup.tenants = tenants.iter().map(|&tenant| tenant.to_owned()).collect();
    serve(agent, change).await
}

fn within(tenant: Option<&str>, mut params: Value) -> Value {
    if let Some(tenant) = tenant {
        params["tenant"] = tenant.into();
    }
    params
}

/// Every operation with params that are right but for the tenant.
fn operations(task: &str) -> Vec<(&'static str, Value)> {
    let config = json!({"taskId": task, "id": "c"});
    vec![
        ("SendMessage", send("x")),
        ("SendStreamingMessage", send("x")),
        ("GetTask", json!({"id": task})),
        ("ListTasks", json!({})),
        ("SubscribeToTask", json!({"id": task})),
        ("CreateTaskPushNotificationConfig", json!({"taskId": task, "id": "c", "url": "http://127.0.0.1:9/"})),
        ("GetTaskPushNotificationConfig", config.clone()),
        ("ListTaskPushNotificationConfigs", json!({"taskId": task})),
        ("DeleteTaskPushNotificationConfig", config),
        ("GetExtendedAgentCard", json!({})),
        ("CancelTask", json!({"id": task})),
    ]
}

#[tokio::test]
async fn w10_the_cards_interfaces_name_the_tenants_in_the_order_of_the_flags() {
    let served = served(&["acme", "zeta"]).await;
    let card = served.http("GET", "/.well-known/agent-card.json", &[], "").await.body;
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let named: Vec<_> = interfaces
        .iter()
        .map(|interface| (interface["protocolBinding"].as_str().unwrap(), interface["tenant"].as_str().unwrap()))
        .filter(|(binding, _)| *binding != "GRPC")
        .collect();
    assert_eq!(named, [("JSONRPC", "acme"), ("HTTP+JSON", "acme"), ("JSONRPC", "zeta"), ("HTTP+JSON", "zeta")]);
}

#[tokio::test]
async fn w10_every_operation_names_one_of_the_cards_tenants() {
    let served = served(&["acme", "zeta"]).await;
    for binding in Binding::ALL {
        let made = served.call(binding, "SendMessage", within(Some("acme"), send("x"))).await;
        let task = made.result()["task"]["id"].as_str().unwrap().to_owned();
        for (method, params) in operations(&task) {
            for (tenant, why) in [(None, "tenant is required"), (Some("other"), "this agent has no tenant other")] {
                let headers = [("accept", "application/json")];
                let refused = served.call_with(binding, method, within(tenant, params.clone()), &headers).await;
                assert_eq!(refused.fields(), ["tenant"], "{binding:?} {method} {tenant:?}");
                assert!(refused.body.to_string().contains(why), "{}", refused.body);
            }
            if !matches!(method, "SendStreamingMessage" | "SubscribeToTask" | "GetExtendedAgentCard") {
                let answer = served.call(binding, method, within(Some("acme"), params)).await;
                assert!(answer.error().is_none(), "{binding:?} {method}: {}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn w10_over_http_and_json_the_tenant_stands_before_the_path() {
    let served = served(&["acme"]).await;
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    let body = send("x").to_string();
    let made = served.http("POST", "/a2a/rest/acme/message:send", &headers, &body).await;
    let id = made.result()["task"]["id"].as_str().unwrap().to_owned();
    let read = served.http("GET", &format!("/a2a/rest/acme/tasks/{id}"), &headers, "").await;
    assert_eq!(read.result()["id"], json!(id));
    assert_eq!(served.http("GET", "/a2a/rest/acme/tasks", &headers, "").await.result()["totalSize"], 1);
    let config = json!({"url": "http://127.0.0.1:9/"}).to_string();
    let configs = format!("/a2a/rest/acme/tasks/{id}/pushNotificationConfigs");
    assert_eq!(served.http("POST", &configs, &headers, &config).await.result()["taskId"], json!(id));
    let canceled = served.http("POST", &format!("/a2a/rest/acme/tasks/{id}:cancel"), &headers, "{}").await;
    assert_eq!(canceled.result()["status"]["state"], "TASK_STATE_CANCELED");

    for path in ["/a2a/rest/tasks", "/a2a/rest/other/tasks"] {
        assert_eq!(served.http("GET", path, &headers, "").await.fields(), ["tenant"]);
    }
    let differs = within(Some("zeta"), send("x")).to_string();
    let refused = served.http("POST", "/a2a/rest/acme/message:send", &headers, &differs).await;
    assert_eq!(refused.fields(), ["tenant"], "the body must not name another one than the path");
    let same = within(Some("acme"), send("x")).to_string();
    assert_eq!(served.http("POST", "/a2a/rest/acme/message:send", &headers, &same).await.status, 200);
}

#[tokio::test]
async fn w10_a_task_of_one_tenant_is_not_there_for_another() {
    let served = served(&["acme", "zeta"]).await;
    let made = served.call(Binding::Rpc, "SendMessage", within(Some("acme"), send("x"))).await;
    let id = made.result()["task"]["id"].as_str().unwrap().to_owned();
    for binding in Binding::ALL {
        let get = |tenant| served.call(binding, "GetTask", within(Some(tenant), json!({"id": id})));
        assert_eq!(get("acme").await.result()["id"], json!(id));
        assert_eq!(get("zeta").await.reason(), "TASK_NOT_FOUND");
        let list = |tenant| served.call(binding, "ListTasks", within(Some(tenant), json!({})));
        assert_eq!(list("acme").await.result()["totalSize"], 1);
        assert_eq!(list("zeta").await.result()["totalSize"], 0);
        let mut answer = within(Some("zeta"), send("main"));
        answer["message"]["taskId"] = json!(id);
        assert_eq!(served.call(binding, "SendMessage", answer).await.reason(), "TASK_NOT_FOUND");
    }
}

#[tokio::test]
async fn w10_a_client_names_the_tenant_of_its_interface_in_every_call() {
    let served = served(&["acme"]).await;
    let http = Http::new(Dial::default(), Limits::default(), None);
    let card: AgentCard = http.card("", &served.url).await.unwrap();
    for spoken in Spoken::SPOKEN.iter().copied() {
        let (interface, binding) = choose(&card, &[spoken]).unwrap();
        assert_eq!(interface.tenant.as_deref(), Some("acme"));
        let agent = Connection::new(http.clone(), &interface.url, binding, None).of_tenant(interface.tenant.clone());
        let message = || Message::new(MessageId::new(LiveIds.next()).unwrap(), Role::User, vec![Part::text("x")]);
        let Reply::Task(task) = agent.send("", SendMessageRequest::new(message())).await.unwrap() else {
            panic!("a task was expected")
        };
        assert_eq!(agent.get("", &task.id, Some(0)).await.unwrap().id, task.id);
        let all: ListTasksRequest = serde_json::from_value(json!({"pageSize": 1})).unwrap();
        assert_eq!(agent.list("", all).await.unwrap().tasks.len(), 1);
        let mut events = agent.subscribe("", &task.id).await.unwrap();
        assert!(events.next().await.unwrap().is_some());
        let mut events = agent.stream("", SendMessageRequest::new(message())).await.unwrap();
        assert!(events.next().await.unwrap().is_some());
        let refused = agent.extended_card("").await.unwrap_err().to_string();
        assert!(!refused.contains("-32602") && !refused.contains("400"), "the tenant is there: {refused}");
        assert!(agent.cancel("", &task.id).await.unwrap().status.state.is_terminal());

        let without = Connection::new(http.clone(), &interface.url, binding, None);
        let error = without.get("", &task.id, None).await.unwrap_err().to_string();
        assert!(error.contains("Invalid parameters"), "{error}");
    }
}
