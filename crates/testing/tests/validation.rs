//! What is wrong with a request: every field of it is named (DECISIONS W7), whichever binding it came over, and with what
//! only the agent knows (its tenants, its pages, its webhooks) beside what everybody can see.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use serde_json::{Value, json};
use server::Setup;
use testing::{Answer, Binding, Served, message, scripted, send, serve};

async fn served() -> Served {
    let agent = scripted(|_, say| async move {
        say.done(()).await?;
        Ok(())
    });
    serve(agent, |setup: &mut Setup| setup.tenants = vec!["acme".to_owned()]).await
}

/// Each violation as `field: what is wrong`.
fn violations(refused: &Answer) -> Vec<String> {
    let error = refused.error().unwrap_or_else(|| panic!("not refused: {}", refused.body));
    let details = error.get("data").or_else(|| error.get("details")).unwrap_or_else(|| panic!("{}", refused.body));
    let violations = details[0]["fieldViolations"].as_array().unwrap();
    let words = violations.iter().map(|violation| {
        format!("{}: {}", violation["field"].as_str().unwrap(), violation["description"].as_str().unwrap())
    });
    words.collect()
}

/// The operations of which all is wrong that can be, with what is then said. What stands in a path of HTTP+JSON cannot
/// be wrong there; it is given as it is, and as it is wrong over JSON-RPC.
fn all_wrong() -> Vec<(&'static str, Value, Value, Vec<&'static str>)> {
    let wrong_send = json!({
        "tenant": "other",
        "message": {
            "messageId": "", "contextId": 7, "taskId": [], "role": "ROLE_AGENT",
            "parts": [{"text": "a", "data": 1}, {"raw": "@"}, {"url": 5, "mediaType": 5}, "x", {"text": "a", "metadata": 5}],
            "metadata": [], "extensions": "x", "referenceTaskIds": ["", 5]
        },
        "configuration": {
            "acceptedOutputModes": [1], "historyLength": 1.5, "returnImmediately": "yes",
            "taskPushNotificationConfig": {"url": "ftp://x", "authentication": {"credentials": 1}}
        },
        "metadata": 3
    });
    let said_of_send = vec![
        "tenant: this agent has no tenant other",
        "message.messageId: messageId is required",
        "message.contextId: contextId must be a string",
        "message.taskId: taskId must be a string",
        "message.role: role must be ROLE_USER",
        "message.parts[0]: exactly one of text, raw, url and data must be there",
        "message.parts[1].raw: raw must be base64",
        "message.parts[2].url: url must be a string",
        "message.parts[2].mediaType: mediaType must be a string",
        "message.parts[3]: parts[3] must be an object",
        "message.parts[4].metadata: metadata must be an object",
        "message.metadata: metadata must be an object",
        "message.extensions: extensions must be a list",
        "message.referenceTaskIds[0]: referenceTaskIds[0] must not be empty",
        "message.referenceTaskIds[1]: referenceTaskIds[1] must be a string",
        "configuration.acceptedOutputModes[0]: acceptedOutputModes[0] must be a string",
        "configuration.historyLength: historyLength must be a whole number",
        "configuration.returnImmediately: returnImmediately must be true or false",
        "configuration.taskPushNotificationConfig.url: url must be an http or https URL",
        "configuration.taskPushNotificationConfig.authentication.scheme: scheme is required",
        "configuration.taskPushNotificationConfig.authentication.credentials: credentials must be a string",
        "metadata: metadata must be an object",
    ];
    let (no_tenant, no_task) = ("tenant: this agent has no tenant other", "taskId: taskId is required");
    let no_page = "pageToken: pageToken is not one of this agent's";
    vec![
        ("SendMessage", wrong_send.clone(), json!({}), said_of_send.clone()),
        ("SendStreamingMessage", wrong_send, json!({}), said_of_send),
        (
            "GetTask",
            json!({"tenant": "other", "historyLength": -1}),
            json!({"id": 7}),
            vec![no_tenant, "id: id must be a string", "historyLength: historyLength must not be negative"],
        ),
        (
            "ListTasks",
            json!({
                "tenant": "other", "status": "WORKING", "pageSize": 0, "pageToken": "zzz", "historyLength": "many",
                "statusTimestampAfter": "yesterday", "includeArtifacts": "maybe"
            }),
            json!({}),
            vec![
                no_tenant,
                "status: status must be one of the TASK_STATE_ words",
                "pageSize: pageSize must be from 1 to 100",
                no_page,
                "historyLength: historyLength must be a whole number",
                "statusTimestampAfter: statusTimestampAfter must be an RFC 3339 timestamp",
                "includeArtifacts: includeArtifacts must be true or false",
            ],
        ),
        (
            "CancelTask",
            json!({"tenant": "other", "metadata": 5}),
            json!({"id": ""}),
            vec![no_tenant, "id: id is required", "metadata: metadata must be an object"],
        ),
        ("SubscribeToTask", json!({"tenant": "other"}), json!({}), vec![no_tenant, "id: id is required"]),
        (
            "CreateTaskPushNotificationConfig",
            json!({
                "tenant": "other", "id": 5, "url": "nowhere", "token": {}, "authentication": {"scheme": "", "credentials": 5}
            }),
            json!({}),
            vec![
                no_tenant,
                "id: id must be a string",
                no_task,
                "url: url must be an absolute URL",
                "token: token must be a string",
                "authentication.scheme: scheme is required",
                "authentication.credentials: credentials must be a string",
            ],
        ),
        (
            "GetTaskPushNotificationConfig",
            json!({"tenant": "other"}),
            json!({}),
            vec![no_tenant, no_task, "id: id is required"],
        ),
        (
            "ListTaskPushNotificationConfigs",
            json!({"tenant": "other", "pageSize": -1, "pageToken": "zzz"}),
            json!({"taskId": null}),
            vec![no_tenant, no_task, "pageSize: pageSize must not be negative", no_page],
        ),
        (
            "DeleteTaskPushNotificationConfig",
            json!({"tenant": "other"}),
            json!({"id": ["x"]}),
            vec![no_tenant, no_task, "id: id must be a string"],
        ),
        ("GetExtendedAgentCard", json!({"tenant": "other"}), json!({}), vec![no_tenant]),
    ]
}

fn joined(one: &Value, other: &Value) -> Value {
    let mut all = one.clone();
    all.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
    all
}

#[tokio::test]
async fn w07_every_operation_names_every_field_that_is_wrong_in_the_same_words_on_both_json_bindings() {
    let served = served().await;
    for (method, wrong, wrong_in_path, said) in all_wrong() {
        let refused = served.call(Binding::Rpc, method, joined(&wrong, &wrong_in_path)).await;
        assert_eq!((refused.status, refused.error().unwrap()["code"].as_i64()), (200, Some(-32602)));
        assert_eq!(violations(&refused), said, "{method}");

        let refused = served.call(Binding::Rest, method, joined(&wrong, &json!({"id": "x", "taskId": "x"}))).await;
        // The id of a config is the client's to give, so only there it stands in the body as well.
        let in_path = |words: &&&str| words.starts_with("taskId:") || words.starts_with("id:");
        let left: Vec<_> = said.iter().filter(|words| !in_path(words)).collect();
        assert_eq!(refused.status, 400);
        assert_eq!(violations(&refused), left.into_iter().copied().collect::<Vec<_>>(), "{method}");
    }
    for binding in Binding::BOTH {
        let list = served.call(binding, "ListTasks", json!({"tenant": "acme"})).await;
        assert_eq!(list.result()["totalSize"], 0, "nothing was stored");
    }
}

#[tokio::test]
async fn w07_over_grpc_the_same_is_said_of_what_its_messages_can_get_wrong() {
    let served = served().await;
    let wrong_send = json!({
        "tenant": "other",
        "message": {"role": "ROLE_AGENT", "parts": [{"mediaType": "x"}, {"text": "a"}], "referenceTaskIds": [""]},
        "configuration": {"historyLength": -1, "taskPushNotificationConfig": {"url": "ftp://x", "authentication": {}}}
    });
    let config = json!({"tenant": "other", "url": "nowhere", "authentication": {}});
    let list = json!({"tenant": "other", "pageSize": 0, "pageToken": "zzz", "historyLength": -1});
    for (method, wrong) in [
        ("SendMessage", wrong_send.clone()),
        ("SendStreamingMessage", wrong_send),
        ("GetTask", json!({"tenant": "other", "historyLength": -1})),
        ("ListTasks", list),
        ("CancelTask", json!({"tenant": "other"})),
        ("SubscribeToTask", json!({})),
        ("CreateTaskPushNotificationConfig", config),
        ("GetTaskPushNotificationConfig", json!({})),
        ("ListTaskPushNotificationConfigs", json!({"tenant": "other", "pageSize": -1, "pageToken": "zzz"})),
        ("DeleteTaskPushNotificationConfig", json!({"tenant": "other"})),
        ("GetExtendedAgentCard", json!({})),
    ] {
        let over = async |binding| violations(&served.call(binding, method, wrong.clone()).await);
        assert_eq!(over(Binding::Grpc).await, over(Binding::Rpc).await, "{method}");
    }
}

#[tokio::test]
async fn w07_path_query_and_body_are_checked_together() {
    let served = served().await;
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    let ask = async |verb: &str, path: &str, body: &str| {
        violations(&served.http(verb, &format!("/a2a/rest{path}"), &headers, body).await)
    };
    let differs = "id: id is not that of the path";
    assert_eq!(
        ask("POST", "/other/tasks/x:cancel", r#"{"id": "y", "metadata": 5}"#).await,
        ["tenant: this agent has no tenant other", differs, "metadata: metadata must be an object"]
    );
    assert_eq!(
        ask("POST", "/acme/tasks/x:cancel", r#"{"tenant": "zeta", "id": "y"}"#).await,
        ["tenant: tenant is not that of the path", differs]
    );
    assert_eq!(
        ask("POST", "/tasks/x/pushNotificationConfigs", r#"{"task_id": "y", "url": "ftp://x"}"#).await,
        [
            "tenant: tenant is required",
            "taskId: taskId is not that of the path",
            "url: url must be an http or https URL"
        ]
    );
    assert_eq!(
        ask("GET", "/acme/tasks?pageSize=1&historyLength=-1&pageSize=2&unknown=1&unknown=2", "").await,
        ["pageSize: pageSize stands there twice", "historyLength: historyLength must not be negative"]
    );
    assert_eq!(
        ask("GET", "/acme/tasks/x?id=y&historyLength=", "").await,
        [differs, "historyLength: historyLength must be a whole number"]
    );
    assert_eq!(
        ask("DELETE", "/acme/tasks/x/pushNotificationConfigs/c?id=d&taskId=y", "").await,
        ["taskId: taskId is not that of the path", differs]
    );
    let words = served.http("GET", "/a2a/rest/acme/tasks?contextId=true&pageToken=", &headers, "").await;
    assert_eq!(words.result()["totalSize"], 0, "a context may have any name");
}

#[tokio::test]
async fn w07_what_an_agent_without_push_refuses_is_not_a_field() {
    let mut agent = scripted(|_, say| async move {
        say.done(()).await?;
        Ok(())
    });
    agent.card.capabilities.push_notifications = None;
    let served = serve(agent, |_| {}).await;
    for binding in Binding::ALL {
        let config = json!({"taskId": "x", "url": "ftp://x"});
        let refused = served.call(binding, "CreateTaskPushNotificationConfig", config).await;
        assert_eq!(refused.reason(), "PUSH_NOTIFICATION_NOT_SUPPORTED");
        let mut inline = send("x");
        inline["configuration"] = json!({"taskPushNotificationConfig": {"url": "ftp://x"}});
        assert_eq!(served.call(binding, "SendMessage", inline).await.reason(), "PUSH_NOTIFICATION_NOT_SUPPORTED");
        assert_eq!(served.call(binding, "SendMessage", json!({"message": message("x")})).await.status, 200);
    }
}
