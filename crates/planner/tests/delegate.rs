//! Each branch of the planner's loop, against an agent that plays it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use std::time::Duration;

use planner::{Ended, Failure, Operator, Order, Outcome};
use played::{SKILLS, Says, alone, play, status, task};
use protocol::{Part, TaskState};
use serde_json::{Value, json};

fn state_of(outcome: &Outcome) -> Option<TaskState> {
    match outcome {
        Outcome::Task(task) => Some(task.status.state),
        _ => None,
    }
}

#[tokio::test]
async fn an_error_is_logged_and_ends_the_delegation_without_a_result() {
    let played = play(|_, _, _| Says::Error(-32004, "This operation is not supported")).await;
    assert!(matches!(played.delegate().await.unwrap(), Outcome::Nothing));
    let log = ["delegate run-tests to player", "  error -32004: This operation is not supported"];
    assert_eq!(played.log(), log);
}

#[tokio::test]
async fn a_direct_message_is_the_whole_answer() {
    let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]}});
    let played = play(move |_, _, _| Says::Result(message.clone())).await;
    assert!(matches!(played.delegate().await.unwrap(), Outcome::Message(message) if message.text() == "hello"));
    assert_eq!(played.log()[1], "  direct reply, no task to follow");
    assert_eq!(played.calls(), ["SendMessage"]);
}

#[tokio::test]
async fn a_task_in_a_member_or_bare_that_has_ended_is_the_result() {
    for state in ["COMPLETED", "FAILED", "CANCELED", "REJECTED"] {
        for bare in [true, false] {
            let result = if bare { task(state, "done") } else { json!({"task": task(state, "done")}) };
            let played = play(move |_, _, _| Says::Result(result.clone())).await;
            let outcome = played.delegate().await.unwrap();
            assert_eq!(state_of(&outcome).unwrap().word(), format!("TASK_STATE_{state}"));
            assert_eq!(played.log()[1], format!("  task 01234567 is TASK_STATE_{state}"));
            assert_eq!(played.calls(), ["SendMessage"]);
        }
    }
}

#[tokio::test]
async fn a_question_about_a_base_branch_is_answered_on_the_same_task() {
    let played = play(|_, params, number| match number {
        1 => Says::Result(json!({"task": task("INPUT_REQUIRED", "Which base branch?")})),
        _ => {
            assert_eq!(params["message"]["taskId"], "0123456789");
            assert_eq!(params["message"]["contextId"], "c");
            assert_eq!(params["message"]["parts"][0]["text"], "main");
            Says::Result(json!({"task": task("COMPLETED", "done")}))
        }
    })
    .await;
    assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
    assert_eq!(played.log()[2], "  it asks: Which base branch? The planner answers from its own context: main");
}

#[tokio::test]
async fn a_question_about_anything_else_is_not_answered_from_thin_air() {
    let played = play(|_, params, number| match number {
        1 => Says::Result(json!({"task": task("INPUT_REQUIRED", "What is your quest?")})),
        _ => {
            assert_eq!(params["message"]["parts"][0]["text"], "I cannot answer that.");
            Says::Result(json!({"task": task("FAILED", "no answer")}))
        }
    })
    .await;
    assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Failed));
}

#[tokio::test]
async fn an_approval_is_asked_for_on_the_first_frame_and_followed_to_the_end() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
        "SubscribeToTask" => Says::Stream(vec![
            json!({"task": task("AUTH_REQUIRED", "approve me")}),
            status("WORKING"),
            status("COMPLETED"),
        ]),
        other => panic!("{other} was not expected"),
    })
    .await;
    assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "approve"]);
    assert_eq!(played.log().last().unwrap(), "  the stream ends at TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn an_approval_without_a_stream_is_asked_for_and_polled() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
        "SubscribeToTask" => Says::Error(-32004, "no streams"),
        _ => Says::Result(task("COMPLETED", "live")),
    })
    .await;
    assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "approve", "GetTask"]);
}

#[tokio::test]
async fn a_stream_that_ends_early_is_followed_by_polling() {
    for state in ["SUBMITTED", "WORKING"] {
        let played = play(move |method, _, _| match method {
            "SendMessage" => Says::Result(json!({"task": task(state, "later")})),
            "SubscribeToTask" => Says::Stream(vec![json!({"task": task("WORKING", "later")})]),
            _ => Says::Result(task("COMPLETED", "done")),
        })
        .await;
        assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
        assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "GetTask"]);
    }
}

#[tokio::test]
async fn an_early_reply_of_an_agent_without_streams_is_polled() {
    let played = alone(false, &SKILLS, |method, _, number| match (method, number) {
        ("SendMessage", _) => Says::Result(json!({"task": task("SUBMITTED", "later")})),
        ("GetTask", 2) => Says::Result(task("WORKING", "still")),
        _ => Says::Result(task("COMPLETED", "done")),
    });
    let played = played.await.met(Operator::Auto).await;
    let planner = played.planner.delegate("run-tests", vec![Part::text("go")]);
    assert_eq!(state_of(&planner.await.unwrap()), Some(TaskState::Completed));
    assert_eq!(played.calls(), ["SendMessage", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn a_task_that_never_ends_is_canceled_and_named() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("WORKING", "for ever")})),
        "SubscribeToTask" => Says::OpenStream(vec![json!({"task": task("WORKING", "for ever")})]),
        "CancelTask" => Says::Result(task("CANCELED", "stopped")),
        other => panic!("{other} was not expected"),
    })
    .await;
    let failure = played.delegate().await.unwrap_err();
    assert!(matches!(failure, Failure::TooLong { state: TaskState::Working, .. }), "{failure}");
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "CancelTask"]);
}

#[tokio::test]
async fn b91_a_task_that_never_ends_is_canceled_when_it_is_polled_too() {
    let agent = alone(false, &SKILLS, |method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("WORKING", "for ever")})),
        "GetTask" => Says::Result(task("WORKING", "still")),
        _ => Says::Result(task("CANCELED", "stopped")),
    });
    let played = agent.await.met(Operator::Auto).await;
    let failure = played.delegate().await.unwrap_err();
    assert!(matches!(failure, Failure::TooLong { state: TaskState::Working, .. }), "{failure}");
    let calls = played.calls();
    assert!(calls[1..calls.len() - 1].iter().all(|call| call == "GetTask") && calls.last().unwrap() == "CancelTask");
}

#[tokio::test]
async fn an_answer_that_is_no_a2a_names_the_agent_and_what_was_expected() {
    let played = play(|_, _, _| Says::Other(502, "text/html", "<html>Bad Gateway</html>")).await;
    let failure = played.delegate().await.unwrap_err().to_string();
    assert!(failure.starts_with("player: "), "{failure}");
    assert!(failure.contains("502 text/html"), "{failure}");
    assert!(failure.contains("a JSON-RPC answer was expected"), "{failure}");
}

#[tokio::test]
async fn a_failure_names_the_tasks_that_were_made() {
    let played = play(|method, _, number| match (method, number) {
        ("SendMessage", 1) => Says::Result(json!({"task": task("INPUT_REQUIRED", "Which base branch?")})),
        _ => Says::Other(200, "application/json", "not json"),
    })
    .await;
    let failure = played.delegate().await.unwrap_err().to_string();
    assert!(failure.contains("tasks made until then: 0123456789 at player"), "{failure}");
}

#[tokio::test]
async fn a_skill_that_nobody_has_is_named_with_those_that_there_are() {
    let played = play(|_, _, _| Says::Error(-32603, "never called")).await;
    let failure = played.planner.delegate("paint", vec![]).await.unwrap_err().to_string();
    assert_eq!(failure, "no agent has the skill paint; there are run-tests, review-diff, deploy");
}

/// A task that completed with one artifact.
fn made(artifact: &str, data: Value) -> Value {
    let mut task = task("COMPLETED", "done");
    let part = json!({"data": data, "mediaType": "application/json"});
    task["artifacts"] = json!([{"artifactId": artifact, "parts": [part]}]);
    json!({"task": task})
}

#[tokio::test]
async fn the_job_stops_where_a_rule_says_so() {
    let finding = |severity: &str| json!({"findings": [{"severity": severity}]});
    let passed = json!({"passed": 3, "failed": 0});
    let cases: [(Vec<Value>, &str); 4] = [
        (vec![json!({"task": task("FAILED", "no such commit")})], "stop: the test task did not complete"),
        (vec![made("summary", json!({"passed": 11, "failed": 2}))], "stop: 2 test(s) failed"),
        (
            vec![made("summary", passed.clone()), made("review", finding("high"))],
            "stop: a high-severity finding blocks the deploy",
        ),
        (vec![made("summary", passed), json!({"task": task("REJECTED", "no")})], "stop: the review did not complete"),
    ];
    for (replies, last) in cases {
        let played = play(move |_, _, number| Says::Result(replies[number - 1].clone())).await;
        assert_eq!(played.planner.ship(&Order::default()).await.unwrap(), Ended::Stopped);
        assert_eq!(played.log().last().unwrap(), last);
        assert!(!played.log().iter().any(|line| line.starts_with("delegate deploy")));
    }
}

#[tokio::test]
async fn the_last_line_says_how_the_deploy_ended() {
    for state in ["COMPLETED", "REJECTED"] {
        let replies = [
            made("summary", json!({"passed": 3, "failed": 0})),
            made("review", json!({"findings": [{"severity": "low"}]})),
            json!({"task": task(state, "the end")}),
        ];
        let played = play(move |_, _, number| Says::Result(replies[number - 1].clone())).await;
        let ended = played.planner.ship(&Order::default()).await.unwrap();
        assert_eq!(ended.is_live(), state == "COMPLETED");
        assert_eq!(played.log().last().unwrap(), &format!("deploy: TASK_STATE_{state}"));
        assert!(played.log().contains(&"review: 1 finding, 0 blocking".to_owned()));
    }
}

#[tokio::test]
async fn a_stream_that_is_refused_in_whatever_way_is_replaced_by_polling() {
    let refusals = [
        || Says::Error(-32004, "no streams"),
        || Says::Other(502, "text/html", "<html>"),
        || Says::Other(200, "text/event-stream", ""),
        || Says::Other(405, "text/plain", ""),
    ];
    for refusal in refusals {
        let played = play(move |method, _, _| match method {
            "SendMessage" => Says::Result(json!({"task": task("WORKING", "later")})),
            "SubscribeToTask" => refusal(),
            _ => Says::Result(task("COMPLETED", "done")),
        })
        .await;
        assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
        assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "GetTask"]);
    }
}

#[tokio::test]
async fn an_early_reply_is_followed_by_its_stream_to_the_end() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("SUBMITTED", "later")})),
        "SubscribeToTask" => Says::Stream(vec![
            json!({"task": task("WORKING", "later")}),
            json!({"artifactUpdate": {"taskId": "0123456789", "contextId": "c",
                "artifact": {"artifactId": "a", "parts": [{"text": "made"}]}}}),
            status("COMPLETED"),
        ]),
        other => panic!("{other} was not expected"),
    })
    .await;
    let outcome = played.delegate().await.unwrap();
    assert!(matches!(&outcome, Outcome::Task(task) if task.artifacts.len() == 1), "{outcome:?}");
    let log = ["  task 01234567 is TASK_STATE_SUBMITTED", "  task 01234567 is TASK_STATE_COMPLETED"];
    assert_eq!(played.log()[1..], log);
}

#[tokio::test]
async fn a_stream_that_stays_open_after_the_end_is_left() {
    for first in ["WORKING", "AUTH_REQUIRED"] {
        let played = play(move |method, _, _| match method {
            "SendMessage" => Says::Result(json!({"task": task(first, "later")})),
            "SubscribeToTask" => Says::OpenStream(vec![json!({"task": task(first, "later")}), status("COMPLETED")]),
            other => panic!("{other} was not expected"),
        });
        let played = played.await;
        assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
    }
}

#[tokio::test]
async fn what_an_agent_asks_after_an_approval_is_answered_on_a_stream_that_stays_open() {
    let played = play(|method, params, number| match (method, number) {
        ("SendMessage", 1) => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
        ("SendMessage", _) => {
            assert_eq!(params["message"]["taskId"], "0123456789");
            Says::Result(json!({"task": task("COMPLETED", "done")}))
        }
        ("SubscribeToTask", _) => Says::OpenStream(vec![
            json!({"task": task("AUTH_REQUIRED", "approve me")}),
            status("WORKING"),
            json!({"task": task("INPUT_REQUIRED", "Which base branch?")}),
        ]),
        other => panic!("{other:?} was not expected"),
    })
    .await;
    assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "approve", "SendMessage"]);
    assert!(played.log().contains(&"  the stream ends at TASK_STATE_INPUT_REQUIRED".to_owned()));
}

#[tokio::test]
async fn a_second_approval_of_the_same_task_is_asked_for_again() {
    let played = play(|method, _, number| match (method, number) {
        ("SendMessage", _) => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
        ("SubscribeToTask", 2) => Says::OpenStream(vec![
            json!({"task": task("AUTH_REQUIRED", "approve me")}),
            status("WORKING"),
            json!({"task": task("AUTH_REQUIRED", "and once more")}),
        ]),
        ("SubscribeToTask", _) => {
            Says::Stream(vec![json!({"task": task("AUTH_REQUIRED", "and once more")}), status("COMPLETED")])
        }
        other => panic!("{other:?} was not expected"),
    })
    .await;
    assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "approve", "SubscribeToTask", "approve"]);
}

#[tokio::test]
async fn an_approval_that_came_from_elsewhere_meanwhile_is_not_given_again() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
        "SubscribeToTask" => Says::Stream(vec![json!({"task": task("WORKING", "approved")}), status("COMPLETED")]),
        other => panic!("{other} was not expected"),
    })
    .await;
    assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Completed));
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask"]);
}

#[tokio::test]
async fn an_approval_that_the_agent_does_not_take_is_said() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
        "SubscribeToTask" => {
            Says::Stream(vec![json!({"task": task("AUTH_REQUIRED", "approve me")}), status("REJECTED")])
        }
        other => panic!("{other} was not expected"),
    })
    .await;
    played.stage.approval.store(404, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(state_of(&played.delegate().await.unwrap()), Some(TaskState::Rejected));
    assert!(played.log().contains(&"  player took no approval for this task".to_owned()), "{:?}", played.log());
}

#[tokio::test]
async fn an_operator_who_waits_posts_nothing_and_patience_ends_it() {
    let played = alone(true, &SKILLS, |method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
        "SubscribeToTask" => Says::OpenStream(vec![json!({"task": task("AUTH_REQUIRED", "approve me")})]),
        "CancelTask" => Says::Result(task("CANCELED", "stopped")),
        other => panic!("{other} was not expected"),
    });
    let played = played.await.met(Operator::Wait).await;
    let failure = played.delegate().await.unwrap_err();
    assert!(matches!(failure, Failure::TooLong { state: TaskState::AuthRequired, .. }), "{failure}");
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "CancelTask"]);
}

#[tokio::test]
async fn no_call_about_a_task_outlasts_the_planners_patience() {
    type Case = (&'static str, fn() -> Says, fn() -> Says);
    let cases: [Case; 3] = [
        ("WORKING", || Says::Silence, || panic!("never polled")),
        ("WORKING", || Says::Error(-32004, "no"), || Says::Silence),
        ("AUTH_REQUIRED", || Says::OpenStream(vec![]), || panic!("never polled")),
    ];
    for (state, subscribe, poll) in cases {
        let played = play(move |method, _, _| match method {
            "SendMessage" => Says::Result(json!({"task": task(state, "for ever")})),
            "SubscribeToTask" => subscribe(),
            "GetTask" => poll(),
            "CancelTask" => Says::Result(task("CANCELED", "stopped")),
            other => panic!("{other} was not expected"),
        })
        .await;
        let failure = played.delegate().await.unwrap_err().to_string();
        let expected = format!(
            "player: task 0123456789 is still TASK_STATE_{state} after 0.3 s; the planner gives up and cancels it"
        );
        assert_eq!(failure, expected);
        assert_eq!(played.calls().last().unwrap(), "CancelTask");
    }
}

#[tokio::test]
async fn an_approval_that_is_never_answered_does_not_outlast_it_either() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
        "SubscribeToTask" => Says::Error(-32004, "no streams"),
        "CancelTask" => Says::Result(task("CANCELED", "stopped")),
        other => panic!("{other} was not expected"),
    })
    .await;
    played.stage.approval.store(0, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(played.delegate().await.unwrap_err(), Failure::TooLong { .. }));
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "approve", "CancelTask"]);
}

#[tokio::test]
async fn an_agent_that_asks_again_after_every_answer_is_given_up() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("INPUT_REQUIRED", "And why?")})),
        "CancelTask" => Says::Result(task("CANCELED", "stopped")),
        other => panic!("{other} was not expected"),
    })
    .await;
    let failure = played.delegate().await.unwrap_err();
    assert!(matches!(failure, Failure::NoEnd { .. }), "{failure}");
    assert!(failure.to_string().ends_with("tasks made until then: 0123456789 at player"), "{failure}");
    assert_eq!(played.calls().last().unwrap(), "CancelTask");
}

#[tokio::test]
async fn a_job_that_is_given_up_cancels_what_has_not_ended_and_names_what_was_made() {
    let played = play(|method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("WORKING", "later")})),
        "SubscribeToTask" => Says::OpenStream(vec![json!({"task": task("WORKING", "later")})]),
        "CancelTask" => Says::Result(task("CANCELED", "stopped")),
        other => panic!("{other} was not expected"),
    })
    .await;
    let limit = Duration::from_millis(100);
    assert!(tokio::time::timeout(limit, played.planner.ship(&Order::default())).await.is_err());
    let failure = played.planner.give_up(limit).await.to_string();
    let expected = "the job took longer than 0.1 s and is given up; tasks made until then: 0123456789 at player";
    assert_eq!(failure, expected);
    assert_eq!(played.calls().last().unwrap(), "CancelTask");
}

#[tokio::test]
async fn nothing_is_begun_while_a_skill_is_missing() {
    let alone = alone(true, &["run-tests", "deploy"], |method, _, _| panic!("{method} was not expected"));
    let played = alone.await.met(Operator::Auto).await;
    let failure = played.planner.ship(&Order::default()).await.unwrap_err().to_string();
    assert_eq!(failure, "no agent has the skill review-diff; there are run-tests, deploy");
    assert!(played.calls().is_empty() && played.log().is_empty());
}
