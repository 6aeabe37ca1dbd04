//! Work that takes long: asked for with `returnImmediately`, followed, and limited call by call.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use std::time::Duration;

use planner::plan::{Finished, Inputs};
use planner::{Operator, Outcome, Plan, Planner};
use played::{Played, SKILLS, Says, alone, status, task};
use protocol::TaskState;
use serde_json::{Value, json};

fn completed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Task(task) if task.status.state == TaskState::Completed)
}

fn early(planner: Planner) -> Planner {
    planner.returning_immediately(true).with_patience(Duration::from_secs(3))
}

fn returns_immediately(played: &Played) -> Vec<bool> {
    let sent = played.stage.sent.lock().unwrap();
    sent.iter().map(|params| params["configuration"]["returnImmediately"] == true).collect()
}

/// A task that asks, with a message of its own.
fn asks(message: &str, words: &str) -> Value {
    let mut task = task("INPUT_REQUIRED", words);
    task["status"]["message"]["messageId"] = message.into();
    task
}

#[tokio::test]
async fn long_work_is_answered_early_and_followed_by_stream_or_by_polling() {
    for streaming in [true, false] {
        let agent = alone(streaming, &SKILLS, |method, _, number| match (method, number) {
            ("SendMessage", _) => Says::Result(json!({"task": task("SUBMITTED", "later")})),
            ("SubscribeToTask", _) => {
                Says::Stream(vec![json!({"task": task("SUBMITTED", "later")}), status("WORKING"), status("COMPLETED")])
            }
            ("GetTask", 2) => Says::Result(task("WORKING", "still")),
            _ => Says::Result(task("COMPLETED", "done")),
        });
        let played = agent.await.met_by(Operator::Auto, early).await.unwrap();
        assert!(completed(&played.delegate().await.unwrap()));
        assert_eq!(returns_immediately(&played), [true]);
        let follows: &[&str] = if streaming { &["SubscribeToTask"] } else { &["GetTask", "GetTask"] };
        assert_eq!(played.calls()[1..], *follows);
    }
}

#[tokio::test]
async fn a_step_that_is_long_is_answered_early_and_the_others_are_not() {
    let plan = "[[steps]]\nname = \"one\"\nskill = \"run-tests\"\nsend = [{ text = \"1\" }]\n\
         [[steps]]\nname = \"two\"\nskill = \"deploy\"\nlong = true\nsend = [{ text = \"2\" }]\n";
    let played = played::play(|_, _, _| Says::Result(json!({"task": task("COMPLETED", "done")}))).await;
    let finished = played.planner.run(&Plan::read(plan).unwrap(), &Inputs::new()).await.unwrap();
    assert_eq!(finished, Finished::Done(Some(TaskState::Completed)));
    assert_eq!(returns_immediately(&played), [false, true]);
    assert_eq!(played.stage.sent.lock().unwrap()[0].get("configuration"), None);
}

#[tokio::test]
async fn a_question_that_was_answered_is_not_answered_again_when_the_reply_came_early() {
    for streaming in [true, false] {
        let agent = alone(streaming, &SKILLS, |method, _, number| match (method, number) {
            // The reply to the answer is the task as it still is; then it asks something else.
            ("SendMessage", 1 | 2) => Says::Result(json!({"task": asks("first", "Which base branch?")})),
            ("SubscribeToTask", _) => Says::Stream(vec![
                json!({"task": asks("first", "Which base branch?")}),
                json!({"task": asks("second", "And the other base branch?")}),
            ]),
            ("GetTask", 3) => Says::Result(asks("first", "Which base branch?")),
            ("GetTask", _) => Says::Result(asks("second", "And the other base branch?")),
            _ => Says::Result(json!({"task": task("COMPLETED", "done")})),
        });
        let played = agent.await.met_by(Operator::Auto, early).await.unwrap();
        assert!(completed(&played.delegate().await.unwrap()));
        let questions: Vec<_> = played.log().into_iter().filter(|line| line.starts_with("  it asks: ")).collect();
        assert_eq!(questions.len(), 2, "{questions:?}");
        assert!(questions[0].contains("Which base branch?") && questions[1].contains("the other"), "{questions:?}");
        assert_eq!(returns_immediately(&played), [true; 3]);
    }
}

#[tokio::test]
async fn a_message_that_outlasts_the_limit_of_a_call_is_looked_for_and_its_task_followed() {
    let sent = std::sync::Arc::new(std::sync::Mutex::new(Value::Null));
    let agent = alone(true, &SKILLS, move |method, params, _| {
        let mut working = task("WORKING", "at it");
        match method {
            "SendMessage" => {
                *sent.lock().unwrap() = params["message"].clone();
                Says::Silence
            }
            "ListTasks" => {
                assert_eq!(params["historyLength"], 100, "an agent may show no history unless it is asked to");
                working["history"] = json!([*sent.lock().unwrap()]);
                Says::Result(json!({"tasks": [working], "nextPageToken": "", "pageSize": 50, "totalSize": 1}))
            }
            "GetTask" => {
                working["history"] = json!([*sent.lock().unwrap()]);
                Says::Result(working)
            }
            _ => Says::Stream(vec![status("COMPLETED")]),
        }
    })
    .await;
    let planner = tokio::process::Command::new(env!("CARGO_BIN_EXE_planner"))
        .args(["run", "-", "--agent", &agent.origin, "--call-limit", "0.3", "--timeout", "20"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut planner = planner.unwrap();
    let plan = "[[steps]]\nname = \"deploy\"\nskill = \"deploy\"\nsend = [{ text = \"Deploy it\" }]\n";
    tokio::io::AsyncWriteExt::write_all(&mut planner.stdin.take().unwrap(), plan.as_bytes()).await.unwrap();
    let output = planner.wait_with_output().await.unwrap();
    let log = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    let origin = agent.origin.strip_prefix("http://").unwrap();
    assert!(log.contains(&format!("  the reply is lost: {origin}: the answer took longer than 0.3 s\n")), "{log}");
    assert!(log.contains("  player has the message: it is task 0123456789\n"), "{log}");
    assert!(log.ends_with("  task 01234567 is TASK_STATE_COMPLETED\n"), "{log}");
}
