//! What each binding has of its own: JSONRPC-*, HTTP_JSON-*, GRPC-*. A test is named after the requirement of the kit.

use protocol::ErrorKind;
use serde_json::{Value, json};
use testing::{Answer, Binding, Served};

use crate::{UNKNOWN, conformance, next, played, refused, refused_as, stream, task};

/// Every fault that the agent in its configurations can be brought to, with its error.
pub(crate) async fn faults(binding: Binding) -> Vec<(ErrorKind, Answer)> {
    let (full, nocap, req) = (conformance("full").await, conformance("nocap").await, conformance("req").await);
    let done = task(&full, binding, "tck-complete-task").await;
    let send = json!({"message": played("tck-complete-task")});
    let (id, unknown) = (json!({"id": done["id"]}), json!({"id": UNKNOWN}));
    let hook = json!({"taskId": UNKNOWN, "url": "https://example.com/hook"});
    let mut image = send.clone();
    image["message"]["parts"] = json!([{"url": "https://example.com/x", "mediaType": "image/png"}]);
    vec![
        (ErrorKind::TaskNotFound, full.call(binding, "GetTask", unknown).await),
        (ErrorKind::TaskNotCancelable, full.call(binding, "CancelTask", id.clone()).await),
        (ErrorKind::UnsupportedOperation, full.call(binding, "SubscribeToTask", id).await),
        (ErrorKind::UnsupportedOperation, nocap.call(binding, "SendStreamingMessage", send.clone()).await),
        (ErrorKind::PushNotificationNotSupported, nocap.call(binding, "CreateTaskPushNotificationConfig", hook).await),
        (ErrorKind::ContentTypeNotSupported, full.call(binding, "SendMessage", image).await),
        (ErrorKind::ExtensionSupportRequired, req.call(binding, "SendMessage", send.clone()).await),
        (
            ErrorKind::VersionNotSupported,
            full.call_with(binding, "SendMessage", send, &[("a2a-version", "99.0")]).await,
        ),
    ]
}

/// The first detail of an error is an ErrorInfo of A2A's.
fn has_error_info(details: &Value, kind: ErrorKind) {
    let info = &details[0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{kind:?}: {details}");
    assert_eq!((&info["domain"], info["reason"].as_str()), (&json!("a2a-protocol.org"), kind.reason()), "{kind:?}");
}

async fn rpc(agent: &Served, path: &str, body: &str, content_type: &str) -> Answer {
    agent.http("POST", path, &[("content-type", content_type), ("a2a-version", "1.0")], body).await
}

/// The names of the proto, as the kit's client of JSON-RPC sends them.
const SNAKE: &str = r#"{"jsonrpc":"2.0","id":"1","method":"ListTasks","params":
    {"context_id":"x","page_size":5,"history_length":0,"include_artifacts":true}}"#;

#[tokio::test]
async fn jsonrpc_fmt_001_an_answer_is_json_rpc_2_0_and_has_the_request_s_id() {
    let agent = conformance("full").await;
    // With and without a slash at the end, which no client should need to know.
    for path in ["/a2a/jsonrpc", "/a2a/jsonrpc/"] {
        let body = rpc(&agent, path, SNAKE, "application/json").await.body;
        assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!("1")));
        assert_eq!(body["result"]["pageSize"], 5);
        assert_eq!(body.get("error"), None);
    }
}

#[tokio::test]
async fn jsonrpc_fmt_002_answers_are_application_json_errors_too() {
    let agent = conformance("full").await;
    for method in ["ListTasks", "NoSuchMethod"] {
        let answer = agent.call(Binding::Rpc, method, json!({})).await;
        assert_eq!(answer.content_type(), "application/json", "{method}");
    }
}

#[tokio::test]
async fn jsonrpc_svc_001_methods_go_by_the_names_of_the_proto_and_no_others() {
    let agent = conformance("full").await;
    assert!(agent.call(Binding::Rpc, "ListTasks", json!({})).await.error().is_none());
    for other in ["listTasks", "tasks/list", "list_tasks", "message/send"] {
        refused(&agent, Binding::Rpc, other, json!({}), ErrorKind::MethodNotFound).await;
    }
}

#[tokio::test]
async fn jsonrpc_svc_002_the_version_and_the_extensions_are_headers() {
    let agent = conformance("req").await;
    let send = json!({"message": played("tck-complete-task")});
    let named = [("a2a-extensions", "urn:other, urn:a2a:tck:required-extension")];
    assert!(agent.call_with(Binding::Rpc, "SendMessage", send.clone(), &named).await.error().is_none());
    refused(&agent, Binding::Rpc, "SendMessage", send, ErrorKind::ExtensionSupportRequired).await;
}

#[tokio::test]
async fn jsonrpc_err_001_an_error_has_a_code_and_a_message_and_perhaps_data() {
    for (kind, answer) in faults(Binding::Rpc).await {
        refused_as(&answer, Binding::Rpc, kind);
        assert_eq!(
            answer.error().unwrap().as_object().unwrap().keys().collect::<Vec<_>>(),
            ["code", "message", "data"]
        );
        assert_eq!(answer.body.get("result"), None);
    }
}

#[tokio::test]
async fn jsonrpc_err_002_the_errors_of_a2a_have_numbers_of_their_own() {
    for (kind, answer) in faults(Binding::Rpc).await {
        let code = answer.error().unwrap()["code"].as_i64().unwrap();
        assert!((-32099..=-32001).contains(&code), "{kind:?}");
    }
}

#[tokio::test]
async fn jsonrpc_err_003_the_errors_of_a2a_have_an_error_info() {
    for (kind, answer) in faults(Binding::Rpc).await {
        has_error_info(&answer.error().unwrap()["data"], kind);
    }
}

#[tokio::test]
async fn jsonrpc_sse_001_a_stream_is_server_sent_events_each_a_whole_answer() {
    let agent = conformance("full").await;
    let params = json!({"message": played("tck-sse-streaming-001")});
    let response = agent.request(Binding::Rpc, "SendStreamingMessage", &params, &[]).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let frames: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(frames.len() >= 2, "{text}");
    for frame in frames {
        let frame: Value = serde_json::from_str(frame).unwrap();
        assert_eq!((&frame["jsonrpc"], &frame["id"]), (&json!("2.0"), &json!(7)));
        assert_eq!(frame["result"].as_object().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn jsonrpc_sse_002_each_error_has_its_code() {
    for (kind, answer) in faults(Binding::Rpc).await {
        refused_as(&answer, Binding::Rpc, kind);
    }
    let agent = conformance("full").await;
    let answer = rpc(&agent, "/a2a/jsonrpc", "{'jsonrpc': '2.0'}", "text/plain").await;
    assert_eq!(answer.error().unwrap()["code"], ErrorKind::ContentTypeNotSupported.code());
}

#[tokio::test]
async fn http_json_url_001_tasks_are_resources() {
    let agent = conformance("full").await;
    let done = task(&agent, Binding::Rest, "tck-complete-task").await;
    let (id, headers) = (done["id"].as_str().unwrap(), [("a2a-version", "1.0")]);
    for path in ["tasks".to_owned(), format!("tasks/{id}"), format!("tasks/{id}/pushNotificationConfigs")] {
        assert_eq!(agent.http("GET", &format!("/a2a/rest/{path}"), &headers, "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn http_json_url_002_each_operation_has_its_verb() {
    let agent = conformance("full").await;
    let open = task(&agent, Binding::Rest, "tck-input-required").await;
    let id = open["id"].as_str().unwrap();
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    for (verb, path, status) in [
        ("GET", "message:send".to_owned(), 405),
        ("POST", "tasks".to_owned(), 405),
        ("DELETE", format!("tasks/{id}"), 405),
        ("GET", format!("tasks/{id}:cancel"), 405),
        ("DELETE", format!("tasks/{id}/pushNotificationConfigs/none"), 200),
        // The kit's client sends these without a body.
        ("POST", format!("tasks/{id}:cancel"), 200),
    ] {
        assert_eq!(agent.http(verb, &format!("/a2a/rest/{path}"), &headers, "").await.status, status, "{verb} {path}");
    }
}

/// A request that says no type gets the type of A2A's own, as the specification recommends since 1.0.1; the kit holds
/// to 1.0.0 (docs/conformance.md).
#[tokio::test]
async fn http_json_svc_001_every_answer_to_the_kit_is_application_json() {
    let agent = conformance("full").await;
    let body = json!({"message": played("tck-complete-task")}).to_string();
    for sent in ["application/json", "application/json; charset=utf-8", "application/a2a+json"] {
        let answer = rpc(&agent, "/a2a/rest/message:send", &body, sent).await;
        assert_eq!((answer.status, answer.content_type()), (200, "application/json"));
        let refused = rpc(&agent, "/a2a/rest/message:send", "{}", sent).await;
        assert_eq!((refused.status, refused.content_type()), (400, "application/json"));
    }
    for (path, status) in [("/tasks", 200), ("/tasks/no-such-task", 404)] {
        let untyped = agent.http("GET", &format!("/a2a/rest{path}"), &[("a2a-version", "1.0")], "").await;
        assert_eq!((untyped.status, untyped.content_type()), (status, "application/json"));
    }
}

#[tokio::test]
async fn http_json_svc_002_the_version_and_the_extensions_are_headers() {
    let agent = conformance("req").await;
    let send = json!({"message": played("tck-complete-task")});
    let named = [("a2a-extensions", "urn:a2a:tck:required-extension")];
    assert!(agent.call_with(Binding::Rest, "SendMessage", send.clone(), &named).await.error().is_none());
    refused(&agent, Binding::Rest, "SendMessage", send, ErrorKind::ExtensionSupportRequired).await;
}

#[tokio::test]
async fn http_json_qp_001_query_parameters_are_in_camel_case() {
    let agent = conformance("full").await;
    task(&agent, Binding::Rest, "tck-artifact-text").await;
    let path = "/a2a/rest/tasks?pageSize=1&includeArtifacts=true&historyLength=0";
    let body = agent.http("GET", path, &[("a2a-version", "1.0")], "").await.body;
    assert_eq!((&body["pageSize"], body["tasks"][0].get("history")), (&json!(1), None));
    assert!(body["tasks"][0]["artifacts"].is_array());
}

#[tokio::test]
async fn http_json_err_001_an_error_has_the_members_of_a_status() {
    for (kind, answer) in faults(Binding::Rest).await {
        let error = answer.error().unwrap();
        assert_eq!(error.as_object().unwrap().keys().collect::<Vec<_>>(), ["code", "status", "message", "details"]);
        assert_eq!(error["code"], answer.status, "{kind:?}");
        assert_eq!(answer.body.as_object().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn http_json_err_002_the_errors_of_a2a_have_an_error_info() {
    for (kind, answer) in faults(Binding::Rest).await {
        has_error_info(&answer.error().unwrap()["details"], kind);
    }
}

#[tokio::test]
async fn http_json_status_001_each_error_has_its_status() {
    for (kind, answer) in faults(Binding::Rest).await {
        refused_as(&answer, Binding::Rest, kind);
    }
}

#[tokio::test]
async fn http_json_sse_001_a_stream_is_server_sent_events() {
    let agent = conformance("full").await;
    let params = json!({"message": played("tck-sse-streaming-001")});
    let response = agent.request(Binding::Rest, "SendStreamingMessage", &params, &[]).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let frames: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(frames.iter().all(|frame| serde_json::from_str::<Value>(frame).unwrap().as_object().unwrap().len() == 1));
}

#[tokio::test]
async fn grpc_svc_001_every_method_of_the_service_is_there() {
    let agent = conformance("full").await;
    let unimplemented = 12;
    for method in [
        "SendMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    ] {
        let answer = agent.call(Binding::Grpc, method, json!({})).await;
        assert!(answer.error().is_none_or(|error| error["code"] != unimplemented), "{method}: {}", answer.body);
    }
}

/// The other side of this test makes its messages of the descriptors alone.
#[tokio::test]
async fn grpc_svc_002_messages_are_protobuf() {
    let agent = conformance("full").await;
    let data = task(&agent, Binding::Grpc, "tck-artifact-data").await;
    assert_eq!(data["artifacts"][0]["parts"][0]["data"]["key"], "value");
}

#[tokio::test]
async fn grpc_meta_001_the_version_and_the_extensions_are_metadata() {
    let agent = conformance("req").await;
    let send = json!({"message": played("tck-complete-task")});
    let named = [("a2a-extensions", "urn:a2a:tck:required-extension")];
    let answer = agent.call_with(Binding::Grpc, "SendMessage", send.clone(), &named).await;
    assert_eq!(answer.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    refused(&agent, Binding::Grpc, "SendMessage", send, ErrorKind::ExtensionSupportRequired).await;
}

#[tokio::test]
async fn grpc_err_001_the_errors_of_a2a_have_an_error_info() {
    for (kind, answer) in faults(Binding::Grpc).await {
        assert_eq!(Some(answer.reason()), kind.reason());
    }
}

/// The kit holds to the table of 1.0.0, which 1.0.1 changed in three places (docs/conformance.md).
#[tokio::test]
async fn grpc_err_002_each_error_has_its_status() {
    for (kind, answer) in faults(Binding::Grpc).await {
        refused_as(&answer, Binding::Grpc, kind);
    }
    let failed_precondition = 9;
    for kind in
        [ErrorKind::VersionNotSupported, ErrorKind::UnsupportedOperation, ErrorKind::PushNotificationNotSupported]
    {
        assert_eq!(kind.grpc_status().number(), failed_precondition);
    }
}

#[tokio::test]
async fn grpc_err_003_a_stream_is_a_server_s_stream() {
    let agent = conformance("full").await;
    assert!(stream(&agent, Binding::Grpc, "tck-grpc-streaming-001").await.len() >= 2);
    let open = task(&agent, Binding::Grpc, "tck-input-required").await;
    let mut reader = agent.stream(Binding::Grpc, "SubscribeToTask", json!({"id": open["id"]})).await;
    assert_eq!(reader.next().await.unwrap()["task"]["id"], open["id"]);
    crate::sent(&agent, Binding::Grpc, next("tck-complete-task", &open)).await;
    assert_eq!(reader.rest().await.len(), 2);
}
