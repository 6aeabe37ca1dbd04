//! The shape of everything that the agent answers, which the kit's schema hardly looks at: what must be there is there,
//! of a oneof exactly one, and nothing else.

use serde_json::{Value, json};
use testing::{Binding, Webhooks, frame_state};

use crate::{conformance, next, played, sent, stream, task};

/// Looks at one value; panics when it has another shape.
type Look = fn(&Value);

/// The members of an object.
type Members = &'static [(&'static str, Look)];

/// An object that has the first members, may have the second, has exactly one of the third if there are any, and has no
/// others.
fn is(value: &Value, must: Members, may: Members, one_of: Members) {
    let members = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    for (name, _) in must {
        assert!(members.contains_key(*name), "{name} is missing: {value}");
    }
    let there = one_of.iter().filter(|(name, _)| members.contains_key(*name)).count();
    assert_eq!(there, usize::from(!one_of.is_empty()), "one of several: {value}");
    for (name, member) in members {
        let known = must.iter().chain(may).chain(one_of).find(|(known, _)| known == name);
        let (_, look) = known.unwrap_or_else(|| panic!("{name} is not known: {value}"));
        look(member);
    }
}

fn text(value: &Value) {
    assert!(value.as_str().is_some_and(|text| !text.is_empty()), "no text: {value}");
}

fn truth(value: &Value) {
    assert!(value.is_boolean(), "neither true nor false: {value}");
}

fn number(value: &Value) {
    assert!(value.is_u64(), "no number: {value}");
}

fn object(value: &Value) {
    assert!(value.is_object(), "no object: {value}");
}

fn any(_: &Value) {}

fn base64(value: &Value) {
    use base64::Engine;
    assert!(base64::prelude::BASE64_STANDARD.decode(value.as_str().unwrap()).is_ok(), "no base64: {value}");
}

fn stamp(value: &Value) {
    let text = value.as_str().unwrap();
    assert!(text.ends_with('Z') && text.len() >= 20 && text.as_bytes()[10] == b'T', "no stamp: {value}");
}

fn role(value: &Value) {
    assert!(["ROLE_USER", "ROLE_AGENT"].contains(&value.as_str().unwrap()), "no role: {value}");
}

fn state(value: &Value) {
    assert!(protocol::TaskState::from_word(value.as_str().unwrap()).is_some(), "no state: {value}");
}

fn each(value: &Value, look: Look) {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}")).iter().for_each(look);
}

fn part(value: &Value) {
    is(
        value,
        &[],
        &[("filename", text), ("mediaType", text), ("metadata", object)],
        &[("text", text), ("raw", base64), ("url", text), ("data", any)],
    );
}

fn parts(value: &Value) {
    assert_ne!(value, &json!([]));
    each(value, part);
}

fn message(value: &Value) {
    is(
        value,
        &[("messageId", text), ("role", role), ("parts", parts)],
        &[("contextId", text), ("taskId", text), ("metadata", object)],
        &[],
    );
}

fn status(value: &Value) {
    is(value, &[("state", state), ("timestamp", stamp)], &[("message", message)], &[]);
}

fn artifact(value: &Value) {
    let may: Members = &[("name", text), ("description", text), ("metadata", object)];
    is(value, &[("artifactId", text), ("parts", parts)], may, &[]);
}

fn history(value: &Value) {
    each(value, message);
}

fn artifacts(value: &Value) {
    each(value, artifact);
}

fn whole(value: &Value) {
    is(
        value,
        &[("id", text), ("contextId", text), ("status", status)],
        &[("history", history), ("artifacts", artifacts), ("metadata", object)],
        &[],
    );
}

fn status_update(value: &Value) {
    is(value, &[("taskId", text), ("contextId", text), ("status", status)], &[("metadata", object)], &[]);
}

fn artifact_update(value: &Value) {
    is(
        value,
        &[("taskId", text), ("contextId", text), ("artifact", artifact)],
        &[("append", truth), ("lastChunk", truth), ("metadata", object)],
        &[],
    );
}

fn reply(value: &Value) {
    is(value, &[], &[], &[("task", whole), ("message", message)]);
}

fn frame(value: &Value) {
    is(
        value,
        &[],
        &[],
        &[("task", whole), ("message", message), ("statusUpdate", status_update), ("artifactUpdate", artifact_update)],
    );
}

fn tasks(value: &Value) {
    each(value, whole);
}

fn token(value: &Value) {
    assert!(value.is_string(), "no token: {value}");
}

/// Protobuf does not tell an empty text from none.
fn page(value: &Value, binding: Binding) {
    let counts: Members = &[("tasks", tasks), ("pageSize", number), ("totalSize", number), ("nextPageToken", token)];
    if binding == Binding::Grpc { is(value, &counts[..3], &counts[3..], &[]) } else { is(value, counts, &[], &[]) }
}

fn authentication(value: &Value) {
    is(value, &[("scheme", text)], &[("credentials", text)], &[]);
}

fn webhook(value: &Value) {
    is(
        value,
        &[("id", text), ("taskId", text), ("url", text)],
        &[("token", text), ("authentication", authentication)],
        &[],
    );
}

fn webhooks(value: &Value) {
    each(value, webhook);
}

/// What the agent is asked to say, of every kind.
const KINDS: [&str; 9] = [
    "tck-complete-task",
    "tck-input-required",
    "tck-reject-task",
    "tck-message-response",
    "tck-artifact-text",
    "tck-artifact-file",
    "tck-artifact-file-url",
    "tck-artifact-data",
    "tck-stream-artifact-chunked",
];

#[tokio::test]
async fn every_answer_has_what_it_must_have_and_nothing_else() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        for kind in KINDS {
            reply(&sent(&agent, binding, played(kind)).await);
        }
        let open = task(&agent, binding, "tck-input-required").await;
        whole(&agent.call(binding, "GetTask", json!({"id": open["id"]})).await.result().clone());
        whole(&agent.call(binding, "CancelTask", json!({"id": open["id"]})).await.result().clone());
        for params in
            [json!({"includeArtifacts": true}), json!({"pageSize": 2}), json!({"status": "TASK_STATE_CANCELED"})]
        {
            page(agent.call(binding, "ListTasks", params).await.result(), binding);
        }
        for (id, more) in [("plain", json!({})), ("all", json!({"scheme": "Bearer", "credentials": "c"}))] {
            let mut config = json!({"taskId": open["id"], "id": id, "url": "http://localhost:1/", "token": "t"});
            if more["scheme"].is_string() {
                config["authentication"] = more;
            }
            webhook(agent.call(binding, "CreateTaskPushNotificationConfig", config).await.result());
            let named = json!({"taskId": open["id"], "id": id});
            webhook(agent.call(binding, "GetTaskPushNotificationConfig", named).await.result());
        }
        let params = json!({"taskId": open["id"]});
        let listed = agent.call(binding, "ListTaskPushNotificationConfigs", params).await.result().clone();
        is(&listed, &[("configs", webhooks)], &[("nextPageToken", token)], &[]);
    }
}

#[tokio::test]
async fn every_frame_is_one_thing_and_the_last_one_is_the_only_one_that_ends_the_task() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        for kind in KINDS {
            let frames = stream(&agent, binding, kind).await;
            frames.iter().for_each(frame);
            if kind == "tck-message-response" {
                assert_eq!(frames.len(), 1, "{binding:?}: a direct message is all");
                continue;
            }
            assert!(frames[0].get("task").is_some(), "{binding:?} {kind}: the task comes first");
            assert!(frames[1..].iter().all(|frame| frame.get("task").is_none()), "{binding:?} {kind}: and only then");
            let ends = |frame: &&Value| ["COMPLETED", "REJECTED", "INPUT_REQUIRED"].contains(&frame_state(frame));
            assert_eq!(frames.iter().filter(ends).count(), 1, "{binding:?} {kind}");
            assert!(ends(&frames.last().unwrap()), "{binding:?} {kind}: {frames:?}");
        }
        let open = task(&agent, binding, "tck-input-required").await;
        let subscribed = agent.stream(binding, "SubscribeToTask", json!({"id": open["id"]})).await;
        sent(&agent, binding, next("tck-stream-artifact-chunked", &open)).await;
        let frames = subscribed.rest().await;
        frames.iter().for_each(frame);
        assert_eq!(frame_state(frames.last().unwrap()), "COMPLETED", "{binding:?}");
    }
}

#[tokio::test]
async fn every_webhook_is_one_thing() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let hooks = Webhooks::new().await;
        let configuration = json!({"taskPushNotificationConfig": {"url": hooks.url}});
        let params = json!({"message": played("tck-stream-artifact-chunked"), "configuration": configuration});
        agent.call(binding, "SendMessage", params).await.result();
        for hook in hooks.wait(4).await {
            frame(&hook.body);
            assert!(hook.body.get("task").is_none(), "{binding:?}: {}", hook.body);
        }
    }
}
