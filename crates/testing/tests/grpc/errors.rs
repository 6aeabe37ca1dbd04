//! One table of faults, each made on every binding that can carry it: the same name, words, violations and metadata
//! everywhere, and the numbers of the one table of errors.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::ErrorKind;
use protocol::card::AgentExtension;
use serde_json::{Value, json};
use server::Setup;
use testing::{Answer, Binding, Scripted, Served, Slow, message, send, serve};

use crate::{echo, locked};

/// What a client does wrong.
enum Does {
    /// Calls an operation with params and headers.
    Call(&'static str, Value, &'static [(&'static str, &'static str)]),
    /// Does the same to a task that was asked something and, if it says so, has ended.
    ToTask { ended: bool, method: &'static str, params: fn(&str) -> Value },
    /// Sends what is no request at all.
    Garbage,
    /// Asks for what is not there.
    NoSuchMethod,
}

struct Fault {
    kind: ErrorKind,
    agent: Scripted,
    setup: Box<dyn FnOnce(&mut Setup)>,
    does: Does,
    /// The fields that are named.
    fields: &'static [&'static str],
}

fn fault(kind: ErrorKind, does: Does) -> Fault {
    Fault { kind, agent: echo(), setup: Box::new(|_| {}), does, fields: &[] }
}

/// The store of the fault that needs one fails once `fails` is set: a server whose store fails does not start.
fn faults(fails: &Arc<AtomicBool>) -> Vec<Fault> {
    use Does::{Call, Garbage, NoSuchMethod, ToTask};
    let mut failing = Slow::default();
    failing.fails = fails.clone();
    let (mut no_push, mut no_streams, mut strict, mut promising) = (echo(), echo(), echo(), echo());
    no_push.card.capabilities.push_notifications = Some(false);
    no_streams.card.capabilities.streaming = Some(false);
    let uri = "urn:must".to_owned();
    strict.card.capabilities.extensions = vec![AgentExtension { uri, description: None, required: true, params: None }];
    promising.card.capabilities.extended_agent_card = Some(true);
    let hook = |task: &str| json!({"taskId": task, "url": "https://hooks.example.com/x"});
    let wrong = json!({
        "message": {"role": "ROLE_AGENT", "parts": [{"text": "fine"}, {}], "referenceTaskIds": ["", "t"]},
        "configuration": {"historyLength": -1, "taskPushNotificationConfig": {"authentication": {}}}
    });
    let wrong_fields: &[&str] = &[
        "message.messageId",
        "message.role",
        "message.parts[1]",
        "message.referenceTaskIds[0]",
        "configuration.historyLength",
        "configuration.taskPushNotificationConfig.url",
        "configuration.taskPushNotificationConfig.authentication.scheme",
    ];
    let image = json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"url": "x", "mediaType": "image/png"}]}
    });
    let mut elsewhere = send("x");
    elsewhere["tenant"] = json!("acme");
    let invalid = |does, fields| Fault { fields, ..fault(ErrorKind::InvalidParams, does) };
    vec![
        fault(ErrorKind::Parse, Garbage),
        fault(ErrorKind::MethodNotFound, NoSuchMethod),
        invalid(Call("SendMessage", wrong.clone(), &[]), wrong_fields),
        invalid(Call("SendStreamingMessage", wrong, &[]), wrong_fields),
        invalid(Call("SendMessage", elsewhere, &[]), &["tenant"]),
        invalid(Call("ListTasks", json!({"pageSize": 0, "historyLength": -1}), &[]), &["pageSize", "historyLength"]),
        invalid(Call("ListTasks", json!({"pageToken": "junk"}), &[]), &["pageToken"]),
        invalid(
            ToTask { ended: false, method: "GetTask", params: |task| json!({"id": task, "historyLength": -1}) },
            &["historyLength"],
        ),
        invalid(
            ToTask {
                ended: false,
                method: "SendMessage",
                params: |task| {
                    let mut message = message("x");
                    (message["taskId"], message["contextId"]) = (json!(task), json!("another"));
                    json!({"message": message})
                },
            },
            &["message.contextId"],
        ),
        invalid(
            ToTask {
                ended: false,
                method: "CreateTaskPushNotificationConfig",
                params: |task| json!({"taskId": task, "authentication": {"scheme": ""}}),
            },
            &["url", "authentication.scheme"],
        ),
        Fault {
            setup: Box::new(|setup| setup.store = Arc::new(failing)),
            ..fault(ErrorKind::Internal, Call("SendMessage", send("x"), &[]))
        },
        fault(ErrorKind::TaskNotFound, Call("GetTask", json!({"id": "none"}), &[])),
        fault(ErrorKind::TaskNotFound, Call("CancelTask", json!({"id": "none"}), &[])),
        fault(ErrorKind::TaskNotFound, Call("SubscribeToTask", json!({"id": "none"}), &[])),
        fault(ErrorKind::TaskNotFound, Call("CreateTaskPushNotificationConfig", hook("none"), &[])),
        fault(
            ErrorKind::TaskNotCancelable,
            ToTask { ended: true, method: "CancelTask", params: |task| json!({"id": task}) },
        ),
        Fault {
            agent: no_push,
            ..fault(ErrorKind::PushNotificationNotSupported, Call("CreateTaskPushNotificationConfig", hook("any"), &[]))
        },
        Fault {
            agent: no_streams,
            ..fault(ErrorKind::UnsupportedOperation, Call("SendStreamingMessage", send("x"), &[]))
        },
        fault(
            ErrorKind::UnsupportedOperation,
            ToTask { ended: true, method: "SubscribeToTask", params: |task| json!({"id": task}) },
        ),
        fault(
            ErrorKind::UnsupportedOperation,
            ToTask {
                ended: true,
                method: "SendMessage",
                params: |task| {
                    let mut message = message("more");
                    message["taskId"] = json!(task);
                    json!({"message": message})
                },
            },
        ),
        fault(ErrorKind::UnsupportedOperation, Call("GetExtendedAgentCard", json!({}), &[])),
        fault(ErrorKind::ContentTypeNotSupported, Call("SendMessage", image, &[])),
        Fault {
            agent: promising,
            setup: Box::new(locked),
            ..fault(
                ErrorKind::ExtendedAgentCardNotConfigured,
                Call("GetExtendedAgentCard", json!({}), &[("authorization", "Bearer right")]),
            )
        },
        Fault { agent: strict, ..fault(ErrorKind::ExtensionSupportRequired, Call("SendMessage", send("x"), &[])) },
        fault(ErrorKind::VersionNotSupported, Call("GetTask", json!({"id": "x"}), &[("a2a-version", "99.0")])),
        fault(ErrorKind::VersionNotSupported, Call("GetTask", json!({"id": "x"}), &[("a2a-version", "")])),
    ]
}

async fn make(served: &Served, binding: Binding, does: &Does, task: Option<&str>) -> Answer {
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    match (does, binding) {
        (Does::Call(method, params, headers), _) => served.call_with(binding, method, params.clone(), headers).await,
        (Does::ToTask { method, params, .. }, _) => served.call(binding, method, params(task.unwrap())).await,
        (Does::Garbage, Binding::Rpc) => served.raw("{").await,
        (Does::Garbage, Binding::Rest) => served.http("POST", "/a2a/rest/message:send", &headers, "{").await,
        (Does::Garbage, Binding::Grpc) => {
            served.raw_message("/lf.a2a.v1.A2AService/SendMessage", b"\xff\xff\xff").await
        }
        (Does::NoSuchMethod, Binding::Rpc) => served.call(binding, "NoSuchMethod", json!({})).await,
        (Does::NoSuchMethod, Binding::Rest) => served.http("GET", "/a2a/rest/nowhere", &headers, "").await,
        (Does::NoSuchMethod, Binding::Grpc) => served.raw_message("/lf.a2a.v1.A2AService/NoSuchMethod", b"").await,
    }
}

/// A task that waits for an answer, or one that has ended.
async fn task(served: &Served, ended: bool) -> String {
    let answer = served.call(Binding::Rpc, "SendMessage", send("ask")).await;
    let id = answer.result()["task"]["id"].as_str().unwrap().to_owned();
    if ended {
        served.call(Binding::Rpc, "CancelTask", json!({"id": id})).await.result();
    }
    id
}

#[tokio::test]
async fn w07_the_same_fault_is_the_same_error_on_three_bindings() {
    let mut seen = HashSet::new();
    let fails = Arc::<AtomicBool>::default();
    for Fault { kind, agent, setup, does, fields } in faults(&fails) {
        seen.insert(kind);
        fails.store(false, Ordering::SeqCst);
        let served = serve(agent, setup).await;
        let task = match does {
            Does::ToTask { ended, .. } => Some(task(&served, ended).await),
            _ => None,
        };
        served.http("GET", "/.well-known/agent-card.json", &[], "").await;
        fails.store(true, Ordering::SeqCst);
        let mut told = Vec::new();
        for binding in Binding::ALL {
            let answer = make(&served, binding, &does, task.as_deref()).await;
            let error = answer.error().unwrap_or_else(|| panic!("{kind:?} on {binding:?}: {}", answer.body));
            let (http_status, code, details) = match binding {
                Binding::Rpc => (200, kind.code(), error.get("data")),
                Binding::Rest => (kind.http_status(), kind.http_status().into(), error.get("details")),
                Binding::Grpc => (200, kind.grpc_status().number(), error.get("details")),
            };
            assert_eq!(
                (answer.status, error["code"].as_i64()),
                (http_status, Some(code.into())),
                "{kind:?} {binding:?}"
            );
            assert_eq!(error["message"], kind.message(), "{binding:?}");
            assert_eq!(error.get("status").is_some(), binding == Binding::Rest);
            if !fields.is_empty() {
                assert_eq!(answer.fields(), fields, "{binding:?}");
            } else if let Some(reason) = kind.reason() {
                assert_eq!(answer.reason(), reason, "{binding:?}");
            } else {
                assert_eq!(details, None, "{binding:?}");
            }
            // The task's id is the same on all three, so everything that is said about the error is.
            told.push(details.cloned());
        }
        assert!(told.iter().all(|details| *details == told[0]), "{kind:?}: {told:#?}");
        let fine = served.call(Binding::Grpc, "ListTasks", json!({})).await;
        let usable = fine.error().is_none_or(|error| error["code"] != 14);
        assert!(usable, "the connection is as it was: {}", fine.body);
    }
    // Only JSON-RPC has an envelope that can be wrong; and what agents answer here is made of types, so none of it can
    // be no answer.
    let elsewhere = [ErrorKind::InvalidRequest, ErrorKind::InvalidAgentResponse];
    for kind in ErrorKind::ALL.into_iter().filter(|kind| !elsewhere.contains(kind)) {
        assert!(seen.contains(&kind), "{kind:?} is not in the table");
    }
}
