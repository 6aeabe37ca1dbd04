//! Replies that get lost, and answers about something else: nothing is done twice, and the planner says what it knows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use std::sync::{Arc, Mutex};

use planner::{Ended, Failure, Order, Outcome};
use played::{Played, Says, play, task};
use protocol::{Part, TaskState};
use serde_json::{Value, json};

async fn delegate(played: &Played, skill: &str) -> Result<Outcome, Failure> {
    played.planner.delegate(skill, vec![Part::text("go")]).await
}

fn is_completed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Task(task) if task.status.state == TaskState::Completed)
}

/// The task of a message, as GetTask shows it.
fn of(message: &Value, state: &str) -> Value {
    let mut task = task(state, "done");
    task["history"] = json!([message]);
    task
}

fn page(tasks: &[Value]) -> Says {
    let size = tasks.len();
    Says::Result(json!({"tasks": tasks, "nextPageToken": "", "pageSize": 50, "totalSize": size}))
}

/// What stood in the messages that were sent.
type Sent = Arc<Mutex<Vec<Value>>>;

#[tokio::test]
async fn o11_a_message_whose_reply_was_lost_is_looked_for_and_its_task_followed() {
    for lost in [|| Says::Cut, || Says::Other(502, "text/html", "<html>"), || Says::Other(200, "text/html", "<html>")] {
        let sent = Sent::default();
        let seen = sent.clone();
        let played = play(move |method, params, number| {
            let of_it = |state| of(&seen.lock().unwrap()[0], state);
            match method {
                "SendMessage" => {
                    seen.lock().unwrap().push(params["message"].clone());
                    lost()
                }
                // It appears late.
                "ListTasks" if number == 2 => page(&[]),
                "ListTasks" => page(&[of_it("WORKING")]),
                "SubscribeToTask" => Says::Error(-32004, "no streams"),
                "GetTask" if number < 6 => Says::Result(of_it("WORKING")),
                "GetTask" => Says::Result(of_it("COMPLETED")),
                other => panic!("{other}"),
            }
        })
        .await;
        assert!(is_completed(&delegate(&played, "deploy").await.unwrap()));
        assert_eq!(sent.lock().unwrap().len(), 1, "{:?}", played.calls());
        assert_eq!(played.log()[2], "  player has the message: it is task 0123456789");
    }
}

#[tokio::test]
async fn o11_what_must_not_happen_twice_is_not_sent_again_when_nobody_knows() {
    let shows: [fn() -> Says; 4] = [
        || page(&[]),
        || page(&[task("COMPLETED", "another one, without a history")]),
        || Says::Error(-32601, "Method not found"),
        || Says::Other(502, "text/html", "<html>"),
    ];
    let mut unknown = tokio::task::JoinSet::new();
    for show in shows {
        for lost in [|| Says::Cut, || Says::Other(504, "text/html", "<html>")] {
            unknown.spawn(stops(show, lost));
        }
    }
    unknown.join_all().await;
}

/// The planner sends a deploy once, and says what it does not know.
async fn stops(show: fn() -> Says, lost: fn() -> Says) {
    let sent = Sent::default();
    let seen = sent.clone();
    let played = play(move |method, params, _| match method {
        "SendMessage" => {
            seen.lock().unwrap().push(params["message"].clone());
            lost()
        }
        "ListTasks" => show(),
        other => panic!("{other}"),
    })
    .await;
    let failure = delegate(&played, "deploy").await.unwrap_err();
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), 1, "{:?}", played.calls());
    let id = sent[0]["messageId"].as_str().unwrap();
    assert!(failure.to_string().contains(&format!("whether message {id} was taken cannot be known")), "{failure}");
}

#[tokio::test]
async fn o11_what_may_be_done_twice_is_sent_again_as_it_was_and_not_for_ever() {
    let sent = Sent::default();
    let seen = sent.clone();
    let played = play(move |method, params, _| match method {
        "SendMessage" => {
            let mut seen = seen.lock().unwrap();
            seen.push(params["message"].clone());
            if seen.len() < 3 { Says::Cut } else { Says::Result(json!({"task": task("COMPLETED", "done")})) }
        }
        _ => page(&[]),
    })
    .await;
    assert!(is_completed(&delegate(&played, "run-tests").await.unwrap()));
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|message| *message == sent[0]), "member for member: {sent:?}");

    let played = play(|method, _, _| if method == "SendMessage" { Says::Cut } else { page(&[]) }).await;
    let failure = delegate(&played, "review-diff").await.unwrap_err();
    assert!(matches!(failure, Failure::Call { .. }), "{failure}");
    assert_eq!(played.calls().iter().filter(|call| *call == "SendMessage").count(), 4);
}

#[tokio::test]
async fn o11_an_answer_whose_reply_was_lost_is_looked_for_in_its_task() {
    let sent = Sent::default();
    let seen = sent.clone();
    let played = play(move |method, params, number| match (method, number) {
        ("SendMessage", 1) => Says::Result(json!({"task": task("INPUT_REQUIRED", "Which base branch?")})),
        ("SendMessage", _) => {
            seen.lock().unwrap().push(params["message"].clone());
            Says::Cut
        }
        ("GetTask", _) => Says::Result(of(&seen.lock().unwrap()[0], "COMPLETED")),
        other => panic!("{other:?}"),
    })
    .await;
    assert!(is_completed(&delegate(&played, "deploy").await.unwrap()));
    assert_eq!(played.calls(), ["SendMessage", "SendMessage", "GetTask"]);
}

#[tokio::test]
async fn an_answer_that_came_twice_is_looked_for_in_its_task_and_one_that_was_refused_is_not_there() {
    for taken in [true, false] {
        let sent = Sent::default();
        let seen = sent.clone();
        let played = play(move |method, params, number| match (method, number) {
            ("SendMessage", 1) => Says::Result(json!({"task": task("INPUT_REQUIRED", "Which base branch?")})),
            ("SendMessage", _) => {
                seen.lock().unwrap().push(params["message"].clone());
                Says::Error(-32004, "This operation is not supported")
            }
            ("GetTask", _) if taken => Says::Result(of(&seen.lock().unwrap()[0], "COMPLETED")),
            ("GetTask", _) => Says::Result(task("CANCELED", "by somebody")),
            other => panic!("{other:?}"),
        })
        .await;
        let outcome = delegate(&played, "review-diff").await.unwrap();
        assert_eq!((is_completed(&outcome), matches!(outcome, Outcome::Nothing)), (taken, !taken));
    }
}

#[tokio::test]
async fn an_approval_that_was_lost_is_given_again_only_for_what_was_asked() {
    for asks in ["the same", "something new", "nothing more"] {
        let mut played = play(move |method, _, number| match (method, number) {
            ("SendMessage", _) => Says::Result(json!({"task": task("AUTH_REQUIRED", "approve me")})),
            ("SubscribeToTask", _) => Says::Error(-32004, "no streams"),
            ("GetTask", 4) => match asks {
                "the same" => Says::Result(task("AUTH_REQUIRED", "approve me")),
                "something new" => {
                    let mut new = task("AUTH_REQUIRED", "and this");
                    new["status"]["message"]["messageId"] = "another".into();
                    Says::Result(new)
                }
                _ => Says::Result(task("COMPLETED", "live")),
            },
            ("GetTask", _) => Says::Result(task("COMPLETED", "live")),
            other => panic!("{other:?}"),
        })
        .await;
        played.stage.approval.store(502, std::sync::atomic::Ordering::Relaxed);
        played.planner = played.planner.with_patience(std::time::Duration::from_secs(20));
        assert!(is_completed(&delegate(&played, "deploy").await.unwrap()), "{asks}");
        let again = if asks == "the same" { 2 } else { 1 };
        let approvals = played.calls().iter().filter(|call| *call == "approve").count();
        assert_eq!(approvals, again, "{asks}: {:?}", played.calls());
    }
}

#[tokio::test]
async fn an_answer_about_another_task_or_context_is_refused() {
    let changed = |member: &str| {
        let mut task = task("COMPLETED", "done");
        task[member] = "other".into();
        task
    };
    for (member, words) in [
        ("id", "player was asked about task 0123456789 and answered with task other"),
        ("contextId", "player was asked about context c and answered with context other"),
    ] {
        let answer = changed(member);
        let played = play(move |_, _, number| match number {
            1 => Says::Result(json!({"task": task("INPUT_REQUIRED", "Which base branch?")})),
            _ => Says::Result(json!({"task": answer})),
        })
        .await;
        let failure = delegate(&played, "deploy").await.unwrap_err().to_string();
        assert!(failure.starts_with(words), "{failure}");

        let polled = changed(member);
        let played = play(move |method, _, _| match method {
            "SendMessage" => Says::Result(json!({"task": task("WORKING", "later")})),
            "SubscribeToTask" => Says::Error(-32004, "no streams"),
            _ => Says::Result(polled.clone()),
        })
        .await;
        let failure = delegate(&played, "deploy").await.unwrap_err().to_string();
        assert!(failure.starts_with(words), "{failure}");
    }
}

#[tokio::test]
async fn a_poll_that_fails_in_passing_is_made_again() {
    let played = play(|method, _, number| match (method, number) {
        ("SendMessage", _) => Says::Result(json!({"task": task("WORKING", "later")})),
        ("SubscribeToTask", _) => Says::Other(200, "application/json", ""),
        ("GetTask", 3) => Says::Cut,
        _ => Says::Result(task("COMPLETED", "done")),
    })
    .await;
    assert!(is_completed(&delegate(&played, "deploy").await.unwrap()));
    assert_eq!(played.calls(), ["SendMessage", "SubscribeToTask", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn nobody_writes_a_line_of_the_log_but_the_planner() {
    let played = play(|_, _, _| Says::Error(-32603, "no\ndeploy: TASK_STATE_COMPLETED\u{1b}[2J")).await;
    delegate(&played, "deploy").await.unwrap();
    assert_eq!(played.log()[1], r"  error -32603: no\ndeploy: TASK_STATE_COMPLETED\u{1b}[2J");
    assert_eq!(played.log().len(), 2);
}

#[tokio::test]
async fn a_result_that_lacks_what_the_job_needs_stops_it_and_is_named() {
    let made = |artifact: &str, parts: Value| {
        let mut task = task("COMPLETED", "done");
        task["artifacts"] = json!([{"artifactId": artifact, "parts": parts}]);
        json!({"task": task})
    };
    let data = |data: Value| json!([{"data": data}]);
    let passed = made("summary", data(json!({"passed": 3, "failed": 0})));
    let summary = "stop: the test task has no summary that can be read: ";
    let review = "stop: the review task has no review that can be read: ";
    let cases = [
        (vec![made("other", data(json!({})))], summary, "there is no artifact summary"),
        (vec![made("summary", json!([{"text": "3 passed"}]))], summary, "the artifact summary has no data"),
        (vec![made("summary", data(json!({"passed": 3})))], summary, "failed is missing"),
        (
            vec![made("summary", data(json!({"passed": 3, "failed": "none"})))],
            summary,
            "failed is \"none\", and a whole number is expected",
        ),
        (vec![passed.clone(), made("review", data(json!({})))], review, "findings is missing"),
        (
            vec![passed.clone(), made("review", data(json!({"findings": [{}]})))],
            review,
            "findings[0].severity is missing",
        ),
        (
            vec![passed.clone(), made("review", data(json!({"findings": [{"severity": "critical"}]})))],
            review,
            "findings[0].severity is \"critical\", and one of low, medium, high is expected",
        ),
    ];
    for (replies, stop, why) in cases {
        let played = play(move |_, _, number| Says::Result(replies[number - 1].clone())).await;
        assert_eq!(played.planner.ship(&Order::default()).await.unwrap(), Ended::Stopped);
        let last = played.log().last().unwrap().clone();
        assert!(last.starts_with(stop) && last.contains(why), "{last}");
    }
}
