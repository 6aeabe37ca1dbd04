//! What a card says that an agent cannot do is not asked of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use planner::{Ended, Operator, Order, Outcome};
use played::{Alone, Played, SKILLS, Says, alone, status, task};
use protocol::{Part, TaskState};
use serde_json::{Value, json};

fn completed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Task(task) if task.status.state == TaskState::Completed)
}

#[tokio::test]
async fn an_agent_without_streams_is_polled_and_never_asked_for_one() {
    for (first, approve) in [("WORKING", false), ("SUBMITTED", false), ("AUTH_REQUIRED", true)] {
        let agent = alone(false, &SKILLS, move |method, _, number| match (method, number) {
            ("SendMessage", _) => Says::Result(json!({"task": task(first, "may I")})),
            ("GetTask", 2 | 3) => Says::Result(task(first, "may I")),
            ("GetTask", _) => Says::Result(task("COMPLETED", "done")),
            other => panic!("{other:?} was not expected"),
        });
        let played = agent.await.met_by(Operator::Auto, |planner| planner.with_patience(PATIENCE)).await.unwrap();
        assert!(completed(&played.delegate().await.unwrap()), "{first}");
        let calls = played.calls();
        assert_eq!(calls.contains(&"approve".to_owned()), approve, "{calls:?}");
        assert!(!calls.contains(&"SubscribeToTask".to_owned()), "{calls:?}");
        if approve {
            assert!(played.log()[2].ends_with("so it asks the operator and polls."), "{:?}", played.log());
            assert_eq!(played.log().last().unwrap(), "  the polling ends at TASK_STATE_COMPLETED");
        }
    }
}

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

#[tokio::test]
async fn only_an_agent_that_posts_to_webhooks_is_asked_to() {
    const HOOK: &str = "http://hook.example/planner";
    for posts in [true, false] {
        let agent = alone(true, &SKILLS, |method, _, _| match method {
            "SendMessage" => Says::Result(json!({"task": task("WORKING", "later")})),
            _ => Says::Stream(vec![status("COMPLETED")]),
        })
        .await;
        agent.stage.card.lock().unwrap().json["capabilities"]["pushNotifications"] = json!(posts);
        let webhook = |planner: planner::Planner| planner.with_webhook(Some(HOOK.to_owned()));
        let played = agent.met_by(Operator::Auto, webhook).await.unwrap();
        assert!(completed(&played.delegate().await.unwrap()));
        let sent = played.stage.sent.lock().unwrap()[0].clone();
        let asked = sent["configuration"]["taskPushNotificationConfig"]["url"].as_str();
        assert_eq!(asked, posts.then_some(HOOK), "{sent}");
        let said = played.log().contains(&"  player posts to no webhook, so it is not asked to".to_owned());
        assert_eq!(said, !posts, "{:?}", played.log());
    }
    // Without a webhook nobody is asked, and nothing is said.
    let played = played::play(|_, _, _| Says::Result(json!({"task": task("COMPLETED", "done")}))).await;
    played.delegate().await.unwrap();
    assert_eq!(played.stage.sent.lock().unwrap()[0].get("configuration"), None);
    assert_eq!(played.log().len(), 2, "{:?}", played.log());
}

async fn with_modes(input: Value, output: Value, own: Value) -> Played {
    let agent: Alone = alone(true, &SKILLS, |_, _, _| Says::Result(json!({"task": task("FAILED", "as told")}))).await;
    {
        let card = &mut agent.stage.card.lock().unwrap().json;
        card["defaultInputModes"] = input;
        card["defaultOutputModes"] = output;
        card["skills"][1]["inputModes"] = own;
    }
    agent.met(Operator::Auto).await
}

#[tokio::test]
async fn what_an_agent_does_not_take_is_not_sent_and_the_log_says_what_it_would_have_been() {
    let parts = || vec![Part::text("Review this"), Part::raw("+1", "a.diff", "text/x-diff")];
    let taken = [
        (json!(["text/plain", "text/x-diff"]), json!([])),
        (json!(["text/*"]), json!([])),
        (json!([]), json!([])),
        (json!(["text/plain"]), json!(["text/plain", "TEXT/X-DIFF; charset=utf-8"])),
    ];
    for (all, own) in taken {
        let played = with_modes(all, json!([]), own).await;
        played.planner.delegate("review-diff", parts()).await.unwrap();
        assert_eq!(played.calls(), ["SendMessage"]);
    }
    for (all, own) in [(json!(["text/plain"]), json!([])), (json!(["*/*"]), json!(["text/plain"]))] {
        let played = with_modes(all, json!([]), own).await;
        let outcome = played.planner.delegate("review-diff", parts()).await.unwrap();
        assert!(matches!(outcome, Outcome::Nothing) && played.calls().is_empty(), "{outcome:?}");
        let expected = "  player takes text/plain for review-diff, and no text/x-diff: nothing is sent. It would have been \
             text/plain \"Review this\", text/x-diff a.diff (2 bytes)";
        assert_eq!(played.log(), ["delegate review-diff to player", expected]);
    }
}

#[tokio::test]
async fn an_agent_that_does_not_give_what_a_plan_reads_gets_no_work() {
    let played = with_modes(json!([]), json!(["text/plain"]), json!([])).await;
    assert_eq!(played.planner.ship(&Order::default()).await.unwrap(), Ended::Stopped);
    assert!(played.calls().is_empty());
    let expected = "  player gives text/plain for run-tests, and no application/json to be read: nothing is sent. It would \
         have been text/plain \"Run the unit tests for payments-api at commit a41d7c3\"";
    assert_eq!(played.log(), ["delegate run-tests to player", expected, "stop: the test task did not complete"]);
}
