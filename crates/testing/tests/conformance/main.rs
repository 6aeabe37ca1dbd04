//! The agent that the public conformance kit calls, `scenarios/agents/conformance.toml`, called as the kit calls it, over
//! each binding: every beginning of a message id that the kit uses, and every requirement that the kit tests. So CI
//! holds what the kit saw (`docs/conformance.md`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod card;
mod core;
mod data;
mod page;
mod prefix;
mod push;
mod shape;
mod stream;
mod unseen;
mod wire;

use protocol::ErrorKind;
use script::{Scripted, Story};
use serde_json::{Value, json};
use testing::{Answer, Binding, Served, message, serve};

const FILE: &str = include_str!("../../../../scenarios/agents/conformance.toml");

/// Serves the agent in one of its configurations, set up as `workshop agent` sets it up.
async fn conformance(configuration: &str) -> Served {
    let story = Story::parse("conformance.toml", FILE).unwrap();
    let agent = Scripted::of(&story, "conformance.toml", None, Some(configuration)).unwrap();
    let about = agent.about.clone();
    serve(agent, |setup| {
        setup.dedupe = about.dedupe;
        setup.allow_local_webhooks = about.allow_local_webhooks;
        setup.plain_json = about.plain_json;
    })
    .await
}

/// Does the same over each binding, with an agent that can do everything.
async fn each(test: impl AsyncFn(&Served, Binding)) {
    each_of("full", test).await;
}

/// Does the same over each binding, with the agent in one of its configurations.
async fn each_of(configuration: &str, test: impl AsyncFn(&Served, Binding)) {
    let agent = conformance(configuration).await;
    for binding in Binding::ALL {
        test(&agent, binding).await;
    }
}

/// A message whose id begins like this.
fn played(prefix: &str) -> Value {
    let mut message = message("hello");
    message["messageId"] = json!(format!("{prefix}-1a2b3c4d"));
    message
}

/// The message to a task that the kit sends: with the task's id and nothing else.
fn next(prefix: &str, task: &Value) -> Value {
    let mut message = played(prefix);
    message["taskId"] = task["id"].clone();
    message
}

/// Sends a message and gives the answer's result.
async fn sent(agent: &Served, binding: Binding, message: Value) -> Value {
    agent.call(binding, "SendMessage", json!({"message": message})).await.result().clone()
}

/// Sends a message of this kind and gives the task that comes of it.
async fn task(agent: &Served, binding: Binding, prefix: &str) -> Value {
    sent(agent, binding, played(prefix)).await["task"].clone()
}

/// Follows what a message of this kind starts, to the end.
async fn stream(agent: &Served, binding: Binding, prefix: &str) -> Vec<Value> {
    agent.stream(binding, "SendStreamingMessage", json!({"message": played(prefix)})).await.rest().await
}

/// Makes a call that must be refused like this.
async fn refused(agent: &Served, binding: Binding, method: &str, params: Value, kind: ErrorKind) {
    refused_as(&agent.call(binding, method, params).await, binding, kind);
}

/// The answer is this error, as the table of errors has it for the binding.
fn refused_as(answer: &Answer, binding: Binding, kind: ErrorKind) {
    let (status, code) = match binding {
        Binding::Rpc => (200, kind.code()),
        Binding::Rest => (kind.http_status(), kind.http_status().into()),
        Binding::Grpc => (200, kind.grpc_status().number()),
    };
    let error = answer.error().unwrap_or_else(|| panic!("{binding:?}: {}", answer.body));
    assert_eq!((answer.status, error["code"].as_i64()), (status, Some(code.into())), "{binding:?}: {}", answer.body);
    assert_eq!(error["message"], kind.message(), "{binding:?}");
    if let Some(reason) = kind.reason() {
        assert_eq!(answer.reason(), reason, "{binding:?}");
    }
}

/// The id of no task.
const UNKNOWN: &str = "no-such-task";
