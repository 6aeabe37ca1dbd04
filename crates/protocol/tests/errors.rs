//! The error table and what is said about wrong requests: decision W7.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use proptest::prelude::*;
use protocol::error::{FieldViolation, HttpError};
use protocol::{Call, Error, ErrorKind, Method, TaskId, TaskState};
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[test]
fn w07_the_table_is_the_one_of_the_kit_and_the_specification() {
    use ErrorKind::*;
    #[rustfmt::skip]
    let table = [
        (Parse, -32700, 400, 3, "INVALID_ARGUMENT", None, "Invalid JSON payload"),
        (InvalidRequest, -32600, 400, 3, "INVALID_ARGUMENT", None, "Request payload validation error"),
        (MethodNotFound, -32601, 404, 12, "NOT_FOUND", None, "Method not found"),
        (InvalidParams, -32602, 400, 3, "INVALID_ARGUMENT", None, "Invalid parameters"),
        (Internal, -32603, 500, 13, "INTERNAL", None, "Internal error"),
        (TaskNotFound, -32001, 404, 5, "NOT_FOUND", Some("TASK_NOT_FOUND"), "Task not found"),
        (TaskNotCancelable, -32002, 400, 9, "FAILED_PRECONDITION", Some("TASK_NOT_CANCELABLE"), "Task cannot be canceled"),
        (PushNotificationNotSupported, -32003, 400, 9, "FAILED_PRECONDITION", Some("PUSH_NOTIFICATION_NOT_SUPPORTED"), "Push notifications are not supported"),
        (UnsupportedOperation, -32004, 400, 9, "FAILED_PRECONDITION", Some("UNSUPPORTED_OPERATION"), "This operation is not supported"),
        (ContentTypeNotSupported, -32005, 400, 3, "INVALID_ARGUMENT", Some("CONTENT_TYPE_NOT_SUPPORTED"), "Content type not supported"),
        (InvalidAgentResponse, -32006, 500, 13, "INTERNAL", Some("INVALID_AGENT_RESPONSE"), "Invalid agent response"),
        (ExtendedAgentCardNotConfigured, -32007, 400, 9, "FAILED_PRECONDITION", Some("EXTENDED_AGENT_CARD_NOT_CONFIGURED"), "Extended agent card is not configured"),
        (ExtensionSupportRequired, -32008, 400, 9, "FAILED_PRECONDITION", Some("EXTENSION_SUPPORT_REQUIRED"), "Extension support is required"),
        (VersionNotSupported, -32009, 400, 9, "FAILED_PRECONDITION", Some("VERSION_NOT_SUPPORTED"), "Protocol version not supported"),
    ];
    assert_eq!(table.map(|row| row.0), ErrorKind::ALL);
    for (kind, code, http, grpc, word, reason, message) in table {
        assert_eq!((kind.code(), kind.http_status(), kind.grpc_status().number()), (code, http, grpc), "{kind:?}");
        assert_eq!((kind.http_word(), kind.reason(), kind.message()), (word, reason, message), "{kind:?}");
        assert_eq!(ErrorKind::from_code(code), Some(kind));
        assert_eq!(Error::from(kind).kind(), kind);
    }
    assert_eq!(ErrorKind::from_code(-32000), None);
    assert_eq!(ErrorKind::MethodNotFound.grpc_status().word(), "UNIMPLEMENTED");
}

#[test]
fn w07_both_json_forms_are_those_of_the_captures() {
    let id = TaskId::new("t").unwrap();
    let info = |reason: &str, metadata: &str| {
        format!(
            r#"[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}","domain":"a2a-protocol.org"{metadata}}}]"#
        )
    };
    let ended = r#","metadata":{"taskId":"t","state":"TASK_STATE_COMPLETED"}"#;
    let wrong = r#"[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.messageId","description":"messageId is required"}]}]"#;
    let version =
        Error::from(ErrorKind::VersionNotSupported).with("requested", "0.3 (no header)").with("supported", "1.0");
    #[rustfmt::skip]
    let forms = [
        (ErrorKind::Parse.into(), "400", "INVALID_ARGUMENT", None),
        (ErrorKind::MethodNotFound.into(), "404", "NOT_FOUND", None),
        (ErrorKind::Internal.into(), "500", "INTERNAL", None),
        (Error::task_not_found(&id), "404", "NOT_FOUND", Some(info("TASK_NOT_FOUND", r#","metadata":{"taskId":"t"}"#))),
        (Error::not_cancelable(&id, TaskState::Completed), "400", "FAILED_PRECONDITION", Some(info("TASK_NOT_CANCELABLE", ended))),
        (Error::unsupported_in(&id, TaskState::Completed), "400", "FAILED_PRECONDITION", Some(info("UNSUPPORTED_OPERATION", ended))),
        (Error::content_type("image/png"), "400", "INVALID_ARGUMENT", Some(info("CONTENT_TYPE_NOT_SUPPORTED", r#","metadata":{"mediaType":"image/png"}"#))),
        (ErrorKind::PushNotificationNotSupported.into(), "400", "FAILED_PRECONDITION", Some(info("PUSH_NOTIFICATION_NOT_SUPPORTED", ""))),
        (version, "400", "FAILED_PRECONDITION", Some(info("VERSION_NOT_SUPPORTED", r#","metadata":{"requested":"0.3 (no header)","supported":"1.0"}"#))),
        (Error::invalid("message.messageId", "messageId is required"), "400", "INVALID_ARGUMENT", Some(wrong.to_owned())),
    ];
    for (error, status, word, details) in forms {
        let (code, message) = (error.kind().code(), error.kind().message());
        let member = |name| details.as_ref().map(|details| format!(r#","{name}":{details}"#)).unwrap_or_default();
        let rpc = format!(r#"{{"code":{code},"message":"{message}"{}}}"#, member("data"));
        let rest =
            format!(r#"{{"error":{{"code":{status},"status":"{word}","message":"{message}"{}}}}}"#, member("details"));
        assert_eq!(serde_json::to_string(&error).unwrap(), rpc);
        assert_eq!(serde_json::to_string(&HttpError(&error)).unwrap(), rest);
        assert_eq!(error.to_string(), format!("{code} {message}"));
    }
}

/// What is wrong with these params, as `field: description` lines.
fn wrong(method: Method, params: &str) -> String {
    let raw = RawValue::from_string(params.to_owned()).unwrap();
    let Err(error) = Call::read(method, Some(&raw)) else { return String::new() };
    assert_eq!(error.kind(), ErrorKind::InvalidParams);
    let line = |FieldViolation { field, description }: &FieldViolation| format!("{field}: {description}");
    error.field_violations().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn w07_every_wrong_field_of_a_message_is_named_with_its_path_and_in_order() {
    for (message, expected) in [
        (r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":""}]}"#, ""),
        (r#"{"message_id":"m","role":1,"parts":[{"data":null}],"contextId":"","taskId":null}"#, ""),
        ("null", "message: message is required"),
        ("7", "message: message must be an object"),
        ("[]", "message: message must be an object"),
        (r#""hi""#, "message: message must be an object"),
        (
            "{}",
            "message.messageId: messageId is required\nmessage.role: role is required\nmessage.parts: parts is required",
        ),
        (
            r#"{"parts":[],"role":null,"messageId":""}"#,
            "message.messageId: messageId is required\nmessage.role: role is required\nmessage.parts: parts is required",
        ),
        (
            r#"{"kind":"message","messageId":7,"role":"user","parts":{"text":"hi"}}"#,
            "message.messageId: messageId must be a string\nmessage.role: role must be ROLE_USER\nmessage.parts: parts must be a list",
        ),
        (r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"a"}]}"#, "message.role: role must be ROLE_USER"),
        (r#"{"messageId":"m","role":"","parts":[{"text":"a"}]}"#, "message.role: role must be ROLE_USER"),
        (r#"{"messageId":"m","role":0,"parts":[{"text":"a"}]}"#, "message.role: role is required"),
        (r#"{"messageId":"m","role":"ROLE_UNSPECIFIED","parts":[{"text":"a"}]}"#, "message.role: role is required"),
        (r#"{"messageId":"m","role":1}"#, "message.parts: parts is required"),
        (r#"{"messageId":"m","role":1,"parts":null}"#, "message.parts: parts is required"),
        (
            r#"{"messageId":"m","role":1,"parts":[{"text":"a"},{"raw":"@@"},{},null,"x",[],{"text":7},{"text":"a","data":{}},{"text":"a","text":"b"},{"url":{}}]}"#,
            "message.parts[1].raw: raw must be base64\n\
             message.parts[2]: exactly one of text, raw, url and data must be there\n\
             message.parts[3]: parts[3] must be an object\n\
             message.parts[4]: parts[4] must be an object\n\
             message.parts[5]: parts[5] must be an object\n\
             message.parts[6].text: text must be a string\n\
             message.parts[7]: exactly one of text, raw, url and data must be there\n\
             message.parts[8].text: text stands there twice\n\
             message.parts[9].url: url must be a string",
        ),
        (
            r#"{"messageId":"m","role":1,"parts":[{"text":"\ud800"},{"data":"\udc00"},{"data":{"\ud800":1}},{"raw":"\ud800"},{"text":"a","\ud800":1}]}"#,
            "message.parts[0].text: a lone surrogate escape is no text\n\
             message.parts[1].data: a lone surrogate escape is no text\n\
             message.parts[2].data: a lone surrogate escape is no text\n\
             message.parts[3].raw: raw must be base64\n\
             message.parts[4]: a lone surrogate escape is no text",
        ),
        (
            r#"{"messageId":"m","message_id":"n","role":1,"parts":[{"text":"a","metadata":[],"filename":1,"mediaType":{}}],"metadata":"x","extensions":"e","referenceTaskIds":["",7,"t"]}"#,
            "message.messageId: messageId stands there twice\n\
             message.parts[0].metadata: metadata must be an object\n\
             message.parts[0].filename: filename must be a string\n\
             message.parts[0].mediaType: mediaType must be a string\n\
             message.metadata: metadata must be an object\n\
             message.extensions: extensions must be a list\n\
             message.referenceTaskIds[0]: referenceTaskIds[0] must not be empty\n\
             message.referenceTaskIds[1]: referenceTaskIds[1] must be a string",
        ),
        (r#"{"role":1,"parts":[{"data":{"big":1e400,"z":1,"z":2}}]}"#, "message.messageId: messageId is required"),
    ] {
        for method in [Method::SendMessage, Method::SendStreamingMessage] {
            assert_eq!(wrong(method, &format!(r#"{{"message":{message}}}"#)), expected, "{message}");
        }
    }
}

#[test]
fn w07_every_wrong_field_of_every_operation_is_named() {
    use Method::*;
    let message = r#""message":{"messageId":"m","role":1,"parts":[{"text":"a"}]}"#;
    let with = |rest: &str| format!("{{{message},{rest}}}");
    let table: &[(Method, &str, &str)] = &[
        (SendMessage, "{}", "message: message is required"),
        (SendMessage, "[]", "params: params must be an object"),
        (SendMessage, r#""x""#, "params: params must be an object"),
        (SendMessage, "7", "params: params must be an object"),
        (SendMessage, r#"{"\ud800":1}"#, "params: a lone surrogate escape is no text"),
        (SendMessage, &with(r#""configuration":null,"metadata":null,"tenant":"""#), ""),
        (
            SendMessage,
            &with(r#""configuration":{"historyLength":"2.0","returnImmediately":null,"blocking":false}"#),
            "",
        ),
        (
            SendMessage,
            &with(
                r#""tenant":7,"configuration":{"historyLength":-1,"returnImmediately":"yes","acceptedOutputModes":["a",1],"taskPushNotificationConfig":{"url":"","authentication":{}}},"metadata":[]"#,
            ),
            "tenant: tenant must be a string\n\
             configuration.acceptedOutputModes[1]: acceptedOutputModes[1] must be a string\n\
             configuration.historyLength: historyLength must not be negative\n\
             configuration.returnImmediately: returnImmediately must be true or false\n\
             configuration.taskPushNotificationConfig.url: url is required\n\
             configuration.taskPushNotificationConfig.authentication.scheme: scheme is required\n\
             metadata: metadata must be an object",
        ),
        (SendMessage, &with(r#""configuration":[]"#), "configuration: configuration must be an object"),
        (GetTask, "{}", "id: id is required"),
        (GetTask, r#"{"id":""}"#, "id: id is required"),
        (GetTask, r#"{"id":7}"#, "id: id must be a string"),
        (GetTask, r#"{"id":"t","historyLength":-1}"#, "historyLength: historyLength must not be negative"),
        (GetTask, r#"{"id":"t","historyLength":1.5}"#, "historyLength: historyLength must be a whole number"),
        (GetTask, r#"{"id":"t","historyLength":1e400}"#, "historyLength: historyLength must be a whole number"),
        (GetTask, r#"{"id":"t","historyLength":"one"}"#, "historyLength: historyLength must be a whole number"),
        (GetTask, r#"{"id":"t","historyLength":true}"#, "historyLength: historyLength must be a whole number"),
        (
            GetTask,
            r#"{"id":"t","historyLength":2147483648}"#,
            "historyLength: historyLength must be from 0 to 2147483647",
        ),
        (
            GetTask,
            r#"{"historyLength":-3000000000}"#,
            "id: id is required\nhistoryLength: historyLength must not be negative",
        ),
        (ListTasks, "{}", ""),
        (
            ListTasks,
            r#"{"status":"","pageSize":"7","status_timestamp_after":null}"#,
            "status: status must be one of the TASK_STATE_ words",
        ),
        (ListTasks, r#"{"pageSize":0}"#, "pageSize: pageSize must be from 1 to 100"),
        (ListTasks, r#"{"pageSize":101}"#, "pageSize: pageSize must be from 1 to 100"),
        (ListTasks, r#"{"pageSize":-1}"#, "pageSize: pageSize must be from 1 to 100"),
        (ListTasks, r#"{"pageSize":9007199254740993}"#, "pageSize: pageSize must be from 1 to 100"),
        (
            ListTasks,
            r#"{"contextId":1,"status":"working","pageSize":[],"pageToken":{},"historyLength":"-2","statusTimestampAfter":1767225600,"includeArtifacts":"true"}"#,
            "contextId: contextId must be a string\n\
             status: status must be one of the TASK_STATE_ words\n\
             pageSize: pageSize must be a whole number\n\
             pageToken: pageToken must be a string\n\
             historyLength: historyLength must not be negative\n\
             statusTimestampAfter: statusTimestampAfter must be an RFC 3339 timestamp\n\
             includeArtifacts: includeArtifacts must be true or false",
        ),
        (CancelTask, r#"{"metadata":7}"#, "id: id is required\nmetadata: metadata must be an object"),
        (SubscribeToTask, "{}", "id: id is required"),
        (CreateTaskPushNotificationConfig, "{}", "taskId: taskId is required\nurl: url is required"),
        (CreateTaskPushNotificationConfig, r#"{"taskId":"","url":"u"}"#, "taskId: taskId is required"),
        (
            CreateTaskPushNotificationConfig,
            r#"{"task_id":"t","url":null,"token":7,"authentication":{"credentials":1}}"#,
            "url: url is required\ntoken: token must be a string\n\
             authentication.scheme: scheme is required\nauthentication.credentials: credentials must be a string",
        ),
        (GetTaskPushNotificationConfig, "{}", "taskId: taskId is required\nid: id is required"),
        (DeleteTaskPushNotificationConfig, r#"{"taskId":"t","id":""}"#, "id: id is required"),
        (ListTaskPushNotificationConfigs, "{}", "taskId: taskId is required"),
        (ListTaskPushNotificationConfigs, r#"{"taskId":"t","pageSize":-1}"#, "pageSize: pageSize must not be negative"),
        (GetExtendedAgentCard, "{}", ""),
        (GetExtendedAgentCard, "[]", "params: params must be an object"),
        (GetExtendedAgentCard, r#"{"tenant":[]}"#, "tenant: tenant must be a string"),
    ];
    for (method, params, expected) in table {
        assert_eq!(wrong(*method, params), *expected, "{params}");
    }
}

#[test]
fn o03_a_negative_history_length_is_refused_and_none_is_allowed() {
    assert_eq!(wrong(Method::GetTask, r#"{"id":"t","historyLength":0}"#), "");
    assert_eq!(
        wrong(Method::GetTask, r#"{"id":"t","history_length":-1}"#),
        "historyLength: historyLength must not be negative"
    );
}

/// Good params for an operation, with every member.
fn good(method: Method) -> Value {
    let push = json!({"tenant": "x", "id": "p", "taskId": "t", "url": "http://h/", "token": "s",
        "authentication": {"scheme": "Bearer", "credentials": "c"}});
    match method {
        Method::SendMessage | Method::SendStreamingMessage => json!({
            "tenant": "x",
            "message": {"messageId": "m", "contextId": "c", "taskId": "t", "role": "ROLE_USER", "parts": [
                {"text": "a", "metadata": {}, "filename": "f", "mediaType": "text/plain"}, {"raw": "AAE="}, {"url": "u"}, {"data": [1]}],
                "metadata": {"k": 1}, "extensions": ["e"], "referenceTaskIds": ["r"]},
            "configuration": {"acceptedOutputModes": ["m"], "historyLength": 1, "returnImmediately": true,
                "taskPushNotificationConfig": push},
            "metadata": {"k": 1}}),
        Method::ListTasks => json!({"tenant": "x", "contextId": "c", "status": "TASK_STATE_WORKING", "pageSize": 1,
            "pageToken": "p", "historyLength": 1, "statusTimestampAfter": "2026-01-01T00:00:00Z", "includeArtifacts": true}),
        Method::CreateTaskPushNotificationConfig => push,
        _ => {
            json!({"tenant": "x", "id": "t", "taskId": "t", "historyLength": 1, "metadata": {}, "pageSize": 1, "pageToken": "p"})
        }
    }
}

/// The places of all values inside, as JSON pointers.
fn places(value: &Value, at: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (format!("{at}/{name}"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, value)| (format!("{at}/{n}"), value)).collect(),
        _ => Vec::new(),
    };
    inner.into_iter().flat_map(|(at, value)| [vec![at.clone()], places(value, &at)].concat()).collect()
}

const MARK: &str = "\"\u{1}\"";

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each wrong value is named by its own path, and no words of the decoder ever show.
    #[test]
    fn w07_whatever_is_wrong_is_named_by_a_field(
        method in proptest::sample::select(Method::ALL.map(|(method, _)| method).to_vec()),
        places_and_values in proptest::collection::vec((any::<prop::sample::Index>(), proptest::sample::select(vec![
            "null", "true", "7", "-1", "1.5", "1e400", "3000000000", "\"\"", "\"x\"", "\"\\ud800\"", "[]", "{}", "[null]",
            "[\"\"]", "[{}]", "{\"a\":1}", "{\"\\ud800\":1}", "{\"text\":null,\"text\":\"a\"}",
        ])), 1..4),
    ) {
        let mut params = good(method);
        let mut values = Vec::new();
        for (index, value) in places_and_values {
            let places = places(&params, "");
            if let Some(place) = (!places.is_empty()).then(|| index.get(&places)) {
                *params.pointer_mut(place).unwrap() = "\u{1}".into();
                values.push(value);
            }
        }
        let mut text = serde_json::to_string(&params).unwrap().replace("\"\\u0001\"", MARK);
        for value in values {
            text = text.replacen(MARK, value, 1);
        }
        let raw = RawValue::from_string(text).unwrap();
        match Call::read(method, Some(&raw)) {
            Ok(call) => {
                let written = RawValue::from_string(serde_json::to_string(&call).unwrap()).unwrap();
                prop_assert_eq!(Call::read(method, Some(&written)).unwrap(), call);
            }
            Err(error) => {
                prop_assert!(!error.field_violations().is_empty());
                for FieldViolation { field, description } in error.field_violations() {
                    prop_assert!(field != "params", "{}: {}", raw.get(), description);
                    for word in ["expected", "struct", "invalid type", "line ", "column", "protocol::"] {
                        prop_assert!(!description.contains(word), "{description}");
                    }
                }
            }
        }
    }
}
