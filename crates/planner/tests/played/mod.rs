//! An agent that plays: it answers each call as the test says.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use client::live::LiveIds;
use client::{Http, Limits};
use planner::{Failure, Operator, Outcome, Planner};
use protocol::{Dial, Part};
use serde_json::{Value, json};

/// What the played agent answers.
pub enum Says {
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
    /// An answer that breaks off.
    Cut,
    /// Nothing, ever.
    Silence,
}

pub type Play = Arc<dyn Fn(&str, &Value, usize) -> Says + Send + Sync>;

pub struct Stage {
    play: Play,
    pub calls: Mutex<Vec<String>>,
    /// The status with which approvals are answered; 0: never.
    pub approval: AtomicU16,
    /// The messages that were sent, each with its configuration.
    pub sent: Mutex<Vec<Value>>,
    pub card: Mutex<Card>,
}

/// The agent's card, and how it is served.
pub struct Card {
    pub json: Value,
    pub headers: Vec<(&'static str, String)>,
    /// Statuses with which the next requests for it are answered instead.
    pub failures: Vec<u16>,
    /// What was asked, each with its condition, if any.
    pub asked: Vec<Option<String>>,
}

async fn card(State(stage): State<Arc<Stage>>, headers: HeaderMap) -> Response<Body> {
    let mut card = stage.card.lock().unwrap();
    let condition = headers.get("if-none-match").map(|tag| tag.to_str().unwrap().to_owned());
    card.asked.push(condition.clone());
    let same = condition.is_some() && card.headers.iter().any(|(_, value)| Some(value) == condition.as_ref());
    let failed = if card.failures.is_empty() { None } else { Some(card.failures.remove(0)) };
    let status = failed.unwrap_or(if same { 304 } else { 200 });
    let answer = card
        .headers
        .iter()
        .fold(Response::builder().status(status), |answer, (name, value)| answer.header(*name, value));
    answer.body(if status == 200 { card.json.to_string().into() } else { Body::empty() }).unwrap()
}

/// An agent with one skill that answers as the play says: given the method, the params and the number of the call.
pub struct Played {
    pub planner: Planner,
    log: Arc<Mutex<Vec<String>>>,
    pub stage: Arc<Stage>,
}

async fn answer(State(stage): State<Arc<Stage>>, uri: Uri, body: Bytes) -> Response<Body> {
    let respond = |status: u16, content_type: &str, body: Body| {
        Response::builder().status(status).header("content-type", content_type).body(body).unwrap()
    };
    if uri.path().starts_with("/approve/") {
        stage.calls.lock().unwrap().push("approve".to_owned());
        let status = stage.approval.load(Ordering::Relaxed);
        if status == 0 {
            return std::future::pending().await;
        }
        let body = json!({"approved": status == 200}).to_string();
        return respond(status, "application/json", body.into());
    }
    let call: Value = serde_json::from_slice(&body).unwrap();
    let method = call["method"].as_str().unwrap();
    let number = {
        let mut calls = stage.calls.lock().unwrap();
        calls.push(method.to_owned());
        calls.len()
    };
    if method == "SendMessage" {
        stage.sent.lock().unwrap().push(call["params"].clone());
    }
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
        Says::OpenStream(results) => respond(200, "text/event-stream", stays_open(frames(&results))),
        Says::Other(status, content_type, text) => respond(status, content_type, text.into()),
        Says::Cut => respond(200, "application/json", breaks_off()),
        Says::Silence => std::future::pending().await,
    }
}

/// A body that says something and then stays open.
fn stays_open(first: String) -> Body {
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

/// A body of which only the beginning comes.
fn breaks_off() -> Body {
    struct Cut(bool);
    impl axum::body::HttpBody for Cut {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            let first = !std::mem::replace(&mut self.0, true);
            let cut = Err(std::io::Error::other("cut"));
            let frame = if first { Ok(http_body::Frame::data(Bytes::from_static(b"{\"jsonrpc\":"))) } else { cut };
            std::task::Poll::Ready(Some(frame))
        }
    }
    Body::new(Cut(false))
}

/// The agent alone, for a client that brings its own planner.
pub struct Alone {
    pub origin: String,
    pub stage: Arc<Stage>,
}

pub const SKILLS: [&str; 3] = ["run-tests", "review-diff", "deploy"];

pub async fn alone(
    streaming: bool,
    skills: &[&str],
    play: impl Fn(&str, &Value, usize) -> Says + Send + Sync + 'static,
) -> Alone {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let skills: Vec<_> = skills.iter().map(|id| json!({"id": id, "name": id, "description": id, "tags": []})).collect();
    let card = json!({
        "name": "player", "description": "plays", "version": "1",
        "supportedInterfaces": [{"url": format!("{origin}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": streaming}, "defaultInputModes": ["text/plain", "text/x-diff"],
        "defaultOutputModes": ["application/json"],
        "skills": skills
    });
    let stage = Arc::new(Stage {
        play: Arc::new(play),
        calls: Mutex::default(),
        approval: AtomicU16::new(200),
        sent: Mutex::default(),
        card: Mutex::new(Card { json: card, headers: Vec::new(), failures: Vec::new(), asked: Vec::new() }),
    });
    let app = Router::new()
        .route("/.well-known/agent-card.json", axum::routing::get(self::card))
        .fallback(answer)
        .with_state(stage.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    Alone { origin, stage }
}

pub async fn play(play: impl Fn(&str, &Value, usize) -> Says + Send + Sync + 'static) -> Played {
    alone(true, &SKILLS, play).await.met(Operator::Auto).await
}

impl Alone {
    /// A planner of little patience that has met the agent.
    pub async fn met(self, operator: Operator) -> Played {
        self.met_by(operator, |planner| planner).await.unwrap()
    }

    /// A planner of little patience, made more of, that has tried to meet the agent.
    pub async fn met_by(self, operator: Operator, more: impl FnOnce(Planner) -> Planner) -> Result<Played, Failure> {
        let log = Arc::new(Mutex::new(Vec::new()));
        let written = log.clone();
        let limits = Limits { idle: Duration::from_secs(5), ..Limits::default() };
        let http = Http::new(Dial::default(), limits, None);
        let say = Arc::new(move |line: &str| written.lock().unwrap().push(line.to_owned()));
        let planner = Planner::new(http, Arc::new(LiveIds), say, operator).with_patience(Duration::from_millis(300));
        let mut planner = more(planner);
        planner.meet(&self.origin, |_| None).await?;
        log.lock().unwrap().clear();
        Ok(Played { planner, log, stage: self.stage })
    }
}

impl Played {
    pub async fn delegate(&self) -> Result<Outcome, Failure> {
        let delegated = self.planner.delegate("run-tests", vec![Part::text("go")]);
        // Shorter than the idle limit, so that no stream is followed longer than the planner means to.
        tokio::time::timeout(Duration::from_secs(4), delegated).await.expect("the planner comes to an end")
    }

    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    pub fn calls(&self) -> Vec<String> {
        self.stage.calls.lock().unwrap().clone()
    }
}

pub fn task(state: &str, words: &str) -> Value {
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": words}]});
    json!({"id": "0123456789", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}"), "message": message}})
}

pub fn status(state: &str) -> Value {
    let status = json!({"state": format!("TASK_STATE_{state}")});
    json!({"statusUpdate": {"taskId": "0123456789", "contextId": "c", "status": status}})
}
