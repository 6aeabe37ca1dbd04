//! The agent that the public conformance kit calls, `scenarios/agents/conformance.toml`, called as the kit calls it, over
//! each binding: every beginning of a message id that the kit uses, and every requirement that the kit tests. So CI
//! holds what the kit saw (`docs/conformance.md`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod prefix;

use script::{Scripted, Story};
use serde_json::{Value, json};
use testing::{Served, message, serve};

const FILE: &str = include_str!("../../../../scenarios/agents/conformance.toml");

/// Serves the agent in one of its configurations, set up as `workshop agent` sets it up.
async fn conformance(configuration: &str) -> Served {
    let story = Story::parse("conformance.toml", FILE).unwrap();
    let agent = Scripted::of(&story, "conformance.toml", None, Some(configuration)).unwrap();
    let about = agent.about.clone();
    serve(agent, |setup| {
        setup.dedupe = about.dedupe;
        setup.allow_local_webhooks = about.allow_local_webhooks;
    })
    .await
}

/// A message whose id begins like this.
fn played(prefix: &str) -> Value {
    let mut message = message("hello");
    message["messageId"] = json!(format!("{prefix}-1a2b3c4d"));
    message
}
