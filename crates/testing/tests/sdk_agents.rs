//! The planner ships with agents that were written with the public SDKs, each a process, over the bindings that both
//! sides have: it tests, answers a question, has a deploy approved and follows it to its end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::process::Command;

use testing::{Foreign, Sdk, program, skip};

const BINDINGS: [&str; 2] = ["JSONRPC", "HTTP+JSON"];

/// Runs the planner's job with one agent, which has all three skills. What it printed, and its exit code.
fn ship(agent: &Foreign, more: &[&str]) -> (String, Option<i32>) {
    let state = tempfile::tempdir().unwrap();
    let mut planner: Command = program("planner", state.path());
    let output = planner.args(["--timeout", "60", "ship", "--agent", &agent.url]).args(more).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (printed, output.status.code())
}

async fn deployed(agent: &Foreign) -> Vec<String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listed = reqwest::get(format!("{}/deploys", agent.url)).await.unwrap().text().await.unwrap();
    serde_json::from_str(&listed).unwrap()
}

async fn ships(sdk: Sdk) {
    let installed = match sdk.installed(env!("CARGO_TARGET_TMPDIR")) {
        Ok(installed) => installed,
        Err(why) => return skip(&format!("the SDK for {sdk:?} cannot be installed: {why}")),
    };
    for binding in BINDINGS {
        let agent = installed.agent(binding);
        let (log, code) = ship(&agent, &["--build", "first"]);
        let who = format!("{sdk:?} over {binding}:\n{log}");
        assert_eq!(code, Some(0), "{who}");
        assert!(log.contains(&format!("; {binding} at {}/a2a\n", agent.url)), "{who}");
        assert!(log.contains("\ntests: 13 passed\n"), "{who}");
        let asked =
            "  it asks: Which base branch is this diff against? The planner answers from its own context: main\n";
        assert!(log.contains(asked), "{who}");
        assert!(log.contains("\nreview: 1 finding, 0 blocking\n"), "{who}");
        assert!(log.ends_with("  the stream ends at TASK_STATE_COMPLETED\ndeploy: TASK_STATE_COMPLETED\n"), "{who}");
        assert_eq!(deployed(&agent).await, ["first"], "{who}");

        let (log, code) = ship(&agent, &["--build", "second", "--commit", "9f3c2e1"]);
        assert_eq!(code, Some(1), "{sdk:?} over {binding}:\n{log}");
        assert!(
            log.ends_with("tests: 1 failed, 12 passed\nstop: 1 test(s) failed\n"),
            "{sdk:?} over {binding}:\n{log}"
        );
        assert_eq!(deployed(&agent).await, ["first"]);
    }
}

#[tokio::test]
async fn a_build_is_shipped_with_an_agent_of_the_python_sdk() {
    ships(Sdk::Python).await;
}

#[tokio::test]
async fn a_build_is_shipped_with_an_agent_of_the_javascript_sdk() {
    ships(Sdk::JavaScript).await;
}

#[tokio::test]
async fn a_build_is_shipped_with_an_agent_of_the_rust_sdk() {
    ships(Sdk::Rust).await;
}
