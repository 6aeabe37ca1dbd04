//! Ids, turns and history, as agents get them wrong: entries B46 to B56 of `docs/faults.md`, as a client meets them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use planner::Outcome;
use played::{Played, Says, play, status, task};
use protocol::{Part, TaskState};
use serde_json::{Value, json};

async fn delegate(played: &Played) -> Option<TaskState> {
    match played.planner.delegate("deploy", vec![Part::text("go")]).await.unwrap() {
        Outcome::Task(task) => Some(task.status.state),
        _ => None,
    }
}

fn with(mut task: Value, member: &str, value: Value) -> Value {
    task[member] = value;
    task
}

#[tokio::test]
async fn b46_every_answer_names_the_task_and_the_context_of_its_question() {
    let played = play(|_, _, number| match number {
        1..=3 => Says::Result(json!({"task": task("INPUT_REQUIRED", "Which base branch?")})),
        _ => Says::Result(json!({"task": task("COMPLETED", "done")})),
    })
    .await;
    assert_eq!(delegate(&played).await, Some(TaskState::Completed));
    let sent = played.stage.sent.lock().unwrap().clone();
    let ids = |at: usize| (&sent[at]["message"]["taskId"], &sent[at]["message"]["contextId"]);
    assert_eq!(ids(0), (&Value::Null, &Value::Null));
    for answer in 1..=3 {
        assert_eq!(ids(answer), (&json!("0123456789"), &json!("c")), "{answer}");
    }
    let mut messages: Vec<_> = sent.iter().map(|params| params["message"]["messageId"].to_string()).collect();
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len(), 4, "each message has an id of its own");
}

#[tokio::test]
async fn b47_a_task_whose_context_is_absent_empty_or_null_is_answered_without_one() {
    for context in [None, Some(json!("")), Some(Value::Null)] {
        let mut asks = task("INPUT_REQUIRED", "Which base branch?");
        asks.as_object_mut().unwrap().remove("contextId");
        if let Some(context) = context {
            asks["contextId"] = context;
        }
        let played = play(move |_, _, number| match number {
            1 => Says::Result(json!({"task": asks})),
            _ => Says::Result(json!({"task": task("COMPLETED", "done")})),
        })
        .await;
        assert_eq!(delegate(&played).await, Some(TaskState::Completed));
        let sent = played.stage.sent.lock().unwrap()[1]["message"].clone();
        assert_eq!((sent["taskId"].as_str(), sent.get("contextId")), (Some("0123456789"), None));
    }
}

#[tokio::test]
async fn b50_frames_of_another_task_or_context_change_nothing_and_those_without_ids_are_none() {
    let other = |member: &str| {
        let mut frame = status("FAILED");
        frame["statusUpdate"][member] = "other".into();
        frame
    };
    let foreign = [
        other("taskId"),
        other("contextId"),
        json!({"task": with(task("FAILED", "not this one"), "id", "other".into())}),
        json!({"task": with(task("FAILED", "not this one"), "contextId", "other".into())}),
    ];
    let frames: Vec<Value> = foreign.into_iter().chain([status("COMPLETED")]).collect();
    let played = play(move |method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("WORKING", "at it")})),
        _ => Says::Stream(frames.clone()),
    })
    .await;
    assert_eq!(delegate(&played).await, Some(TaskState::Completed));

    // What cannot be read is not guessed at: the agent is asked.
    for member in ["taskId", "contextId"] {
        let mut frame = status("FAILED");
        frame["statusUpdate"][member] = "".into();
        let played = play(move |method, _, _| match method {
            "SendMessage" => Says::Result(json!({"task": task("WORKING", "at it")})),
            "SubscribeToTask" => Says::Stream(vec![frame.clone()]),
            _ => Says::Result(task("COMPLETED", "done")),
        })
        .await;
        assert_eq!(delegate(&played).await, Some(TaskState::Completed));
        assert_eq!(played.calls().last().unwrap(), "GetTask", "{member}");
    }
}

#[tokio::test]
async fn b52_an_answer_to_a_task_that_has_ended_meanwhile_is_explained_in_one_line() {
    let played = play(|method, _, number| match (method, number) {
        ("SendMessage", 1) => Says::Result(json!({"task": task("INPUT_REQUIRED", "Which base branch?")})),
        ("SendMessage", _) => Says::Error(-32004, "The task has ended: it takes no more messages"),
        _ => Says::Result(task("CANCELED", "by somebody")),
    })
    .await;
    assert_eq!(delegate(&played).await, None);
    assert_eq!(played.log().last().unwrap(), "  error -32004: The task has ended: it takes no more messages");
    assert_eq!(played.stage.sent.lock().unwrap().len(), 2, "it is not sent again");
}

#[tokio::test]
async fn b55_a_lost_message_is_found_wherever_an_agent_keeps_it_and_however_often() {
    // Agents keep a message once, several times, among others, or show it only when the task itself is read.
    for (listed, read) in [(1, 1), (2, 3), (0, 1)] {
        let sent = std::sync::Mutex::new(Value::Null);
        let played = play(move |method, params, number| {
            let history = |times: usize| {
                let another = json!({"messageId": "another", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]});
                let mine = sent.lock().unwrap().clone();
                let history = std::iter::repeat_n(mine, times).chain([another]);
                if times == 0 { Vec::new() } else { history.collect() }
            };
            match (method, number) {
                ("SendMessage", 1) => {
                    *sent.lock().unwrap() = params["message"].clone();
                    Says::Cut
                }
                ("ListTasks", _) => {
                    assert!(params["historyLength"].as_u64() > Some(0), "{params}");
                    let task = with(task("WORKING", "at it"), "history", history(listed).into());
                    Says::Result(json!({"tasks": [task], "nextPageToken": "", "pageSize": 50, "totalSize": 1}))
                }
                ("GetTask", _) => Says::Result(with(task("COMPLETED", "done"), "history", history(read).into())),
                other => panic!("{other:?}"),
            }
        })
        .await;
        assert_eq!(delegate(&played).await, Some(TaskState::Completed), "{listed} {read}");
        assert_eq!(played.stage.sent.lock().unwrap().len(), 1, "it is not sent again");
    }
}
