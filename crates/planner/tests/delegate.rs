//! Each branch of the planner's loop, against an agent that plays it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, Uri};
use client::live::LiveIds;
use client::{Http, Limits};
use planner::{Ended, Failure, Operator, Order, Outcome, Planner};
use protocol::{Dial, Part, TaskState};
use serde_json::{Value, json};

/// What the played agent answers.
enum Says {
    /// A JSON-RPC result.
    Result(Value),
    /// A JSON-RPC error.
    Error(i32, &'static str),
    /// A stream of results, which then ends.
    Stream(Vec<Value>),
    /// A stream of results, which then stays open.
    OpenStream(Vec<Value>),
    /// Something that is no JSON-RPC.
    Other(u16, &'static str, &'static str),
}

type Play = Arc<dyn Fn(&str, &Value, usize) -> Says + Send + Sync>;

struct Stage {
    play: Play,
    calls: Mutex<Vec<String>>,
}

/// An agent with one skill that answers as the play says: given the method, the params and the number of the call.
struct Played {
    planner: Planner,
    log: Arc<Mutex<Vec<String>>>,
    stage: Arc<Stage>,
}

async fn answer(State(stage): State<Arc<Stage>>, uri: Uri, body: Bytes) -> Response<Body> {
    let respond = |status: u16, content_type: &str, body: Body| {
        Response::builder().status(status).header("content-type", content_type).body(body).unwrap()
    };
    if uri.path().starts_with("/approve/") {
        stage.calls.lock().unwrap().push("approve".to_owned());
        return respond(200, "application/json", Body::from(r#"{"approved":true}"#));
    }
    let call: Value = serde_json::from_slice(&body).unwrap();
    let method = call["method"].as_str().unwrap();
    let number = {
        let mut calls = stage.calls.lock().unwrap();
        calls.push(method.to_owned());
        calls.len()
    };
    let envelope = |result: &Value| json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string();
    let frames = |results: &[Value]| -> String {
        results.iter().map(|result| format!("data: {}\n\n", envelope(result))).collect()
    };
    match (stage.play)(method, &call["params"], number) {
        Says::Result(result) => respond(200, "application/json", envelope(&result).into()),
        Says::Error(code, message) => {
            let error = json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}});
            respond(200, "application/json", error.to_string().into())
        }
        Says::Stream(results) => respond(200, "text/event-stream", frames(&results).into()),
        Says::OpenStream(results) => {
            let first = frames(&results);
            let stream = futures(first);
            respond(200, "text/event-stream", stream)
        }
        Says::Other(status, content_type, text) => respond(status, content_type, text.into()),
    }
}

/// A body that says something and then stays open.
fn futures(first: String) -> Body {
    struct Open(Option<String>);
    impl axum::body::HttpBody for Open {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            match self.0.take() {
                Some(first) => std::task::Poll::Ready(Some(Ok(http_body::Frame::data(first.into())))),
                None => std::task::Poll::Pending,
            }
        }
    }
    Body::new(Open(Some(first)))
}

async fn play(play: impl Fn(&str, &Value, usize) -> Says + Send + Sync + 'static) -> Played {
    play_with(true, play).await
}

async fn play_with(streaming: bool, play: impl Fn(&str, &Value, usize) -> Says + Send + Sync + 'static) -> Played {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let skill = |id: &str| json!({"id": id, "name": id, "description": id, "tags": []});
    let card = json!({
        "name": "player", "description": "plays", "version": "1",
        "supportedInterfaces": [{"url": format!("{origin}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": streaming}, "defaultInputModes": ["text/plain"], "defaultOutputModes": [],
        "skills": [skill("run-tests"), skill("review-diff"), skill("deploy")]
    });
    let stage = Arc::new(Stage { play: Arc::new(play), calls: Mutex::default() });
    let card = card.to_string();
    let app = Router::new()
        .route("/.well-known/agent-card.json", axum::routing::get(move || async move { card }))
        .fallback(answer)
        .with_state(stage.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let log = Arc::new(Mutex::new(Vec::new()));
    let written = log.clone();
    let limits = Limits { idle: Duration::from_secs(5), ..Limits::default() };
    let http = Http::new(Dial::default(), limits, None);
    let say = Arc::new(move |line: &str| written.lock().unwrap().push(line.to_owned()));
    let planner = Planner::new(http, Arc::new(LiveIds), say, Operator::Auto).with_patience(Duration::from_millis(300));
    let mut planner = planner;
    planner.meet(&origin, |_| None).await.unwrap();
    log.lock().unwrap().clear();
    Played { planner, log, stage }
}

impl Played {
    async fn delegate(&self) -> Result<Outcome, Failure> {
        self.planner.delegate("run-tests", vec![Part::text("go")]).await
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn calls(&self) -> Vec<String> {
        self.stage.calls.lock().unwrap().clone()
    }
}

fn task(state: &str, words: &str) -> Value {
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": words}]});
    json!({"id": "0123456789", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}"), "message": message}})
}

fn status(state: &str) -> Value {
    let status = json!({"state": format!("TASK_STATE_{state}")});
    json!({"statusUpdate": {"taskId": "0123456789", "contextId": "c", "status": status}})
}

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
    let played = play_with(false, |method, _, number| match (method, number) {
        ("SendMessage", _) => Says::Result(json!({"task": task("SUBMITTED", "later")})),
        ("GetTask", 2) => Says::Result(task("WORKING", "still")),
        _ => Says::Result(task("COMPLETED", "done")),
    })
    .await;
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
