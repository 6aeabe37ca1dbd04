//! The decision table that `planner explain` prints is what the loop does: each row is played.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use planner::explain::{losses, replies};
use planner::{Failure, Operator};
use played::{SKILLS, Says, alone, task};
use protocol::Part;
use serde_json::{Value, json};

/// The calls that a row's words stand for.
fn calls_of(does: &str) -> &'static [&'static str] {
    let known: [(&str, &[&str]); 6] = [
        ("logs the error", &["SendMessage"]),
        ("takes the message", &["SendMessage"]),
        ("takes the task", &["SendMessage"]),
        ("answers", &["SendMessage", "SendMessage"]),
        ("asks the operator", &["SendMessage", "SubscribeToTask", "approve"]),
        ("follows the task", &["SendMessage", "SubscribeToTask"]),
    ];
    known.into_iter().find(|(words, _)| does.starts_with(words)).unwrap_or_else(|| panic!("{does}")).1
}

#[tokio::test]
async fn every_shape_and_every_state_is_treated_as_the_table_says() {
    let rows = replies();
    assert_eq!(rows.len(), 11);
    for row in rows {
        let comes = row.comes.clone();
        let state = comes.strip_prefix("a task in TASK_STATE_").map(str::to_owned);
        let first = move || match (comes.as_str(), &state) {
            (_, Some(state)) => Says::Result(json!({"task": task(state, "so it is")})),
            ("an error", None) => Says::Error(-32603, "no"),
            ("a message", None) => {
                let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]});
                Says::Result(json!({"message": message}))
            }
            (other, None) => panic!("{other}"),
        };
        let state = row.comes.strip_prefix("a task in TASK_STATE_").unwrap_or_default().to_owned();
        let agent = alone(true, &SKILLS, move |method, _: &Value, number| match (method, number) {
            ("SendMessage", 1) => first(),
            ("SubscribeToTask", _) => Says::Stream(vec![
                json!({"task": task(&state, "so it is")}),
                json!({"task": task("COMPLETED", "done")}),
            ]),
            _ => Says::Result(json!({"task": task("COMPLETED", "done")})),
        });
        let played = agent.await.met(Operator::Auto).await;
        let ended = played.delegate().await;
        assert!(ended.is_ok(), "{row:?}: {ended:?}");
        assert_eq!(played.calls(), calls_of(&row.does), "{row:?}");
    }
}

#[tokio::test]
async fn a_reply_that_does_not_come_is_treated_as_the_table_says() {
    for (skill, repeatable) in [("run-tests", true), ("deploy", false)] {
        for row in losses(repeatable) {
            let says: fn() -> Says = match row.comes.as_str() {
                "the connection breaks" => || Says::Cut,
                "408, 429, 502, 503 or 504 of a proxy" => || Says::Other(503, "text/html", "<html>busy</html>"),
                "any other answer that is no A2A" => || Says::Other(200, "text/html", "<html>hello</html>"),
                // These need another agent, or none: tests/lost.rs and tests/cli.rs.
                _ => continue,
            };
            let agent = alone(true, &SKILLS, move |method, _: &Value, _| match method {
                "ListTasks" => Says::Result(json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0})),
                _ => says(),
            });
            let played = agent.await.met(Operator::Auto).await;
            let failure = played.planner.delegate(skill, vec![Part::text("go")]).await.unwrap_err();
            let calls = played.calls();
            let (sent, looked) = (
                calls.iter().filter(|call| *call == "SendMessage").count(),
                calls.iter().filter(|call| *call == "ListTasks").count(),
            );
            let number = |before: &str| {
                let (_, rest) = row.does.split_once(before)?;
                rest.split(' ').next()?.parse::<usize>().ok()
            };
            let resent = number("sends the same again, ").unwrap_or(0);
            assert_eq!(sent, 1 + resent, "{row:?}: {calls:?}");
            assert_eq!(looked, number("the message, ").unwrap_or(1 + resent), "{row:?}: {calls:?}");
            let unknowable = matches!(failure, Failure::Unknowable { .. });
            assert_eq!(unknowable, row.does.ends_with("it cannot be known"), "{row:?}: {failure}");
        }
    }
}
