//! An agent with the three skills of the workshop, written with the public Rust SDK: `agent-lf JSONRPC|HTTP+JSON`.
//!
//! It tests, and commit 9f3c2e1 fails; it reviews a diff once it was told a base branch; it deploys what is approved at
//! `POST /approve/TASK`. `GET /deploys` lists what it has deployed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use a2a::{
    A2AError, AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Artifact, Message, Part, PartContent, Role,
    StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use a2a_server::agent_card::agent_card_router;
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::rest::rest_router;
use a2a_server::{AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore, StaticAgentCard};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use tokio::sync::oneshot;

type Event = Result<StreamResponse, A2AError>;

/// What is approved, and what has been deployed.
#[derive(Clone, Default)]
struct Deploys {
    waiting: Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>,
    done: Arc<Mutex<Vec<String>>>,
}

impl Deploys {
    async fn approve(State(deploys): State<Self>, Path(task): Path<String>) -> (StatusCode, Json<Value>) {
        let waiting = deploys.waiting.lock().expect("nobody panics").remove(&task);
        let approved = waiting.is_some_and(|waiting| waiting.send(()).is_ok());
        let status = if approved { StatusCode::OK } else { StatusCode::NOT_FOUND };
        (status, Json(json!({"approved": approved})))
    }

    async fn list(State(deploys): State<Self>) -> Json<Vec<String>> {
        Json(deploys.done.lock().expect("nobody panics").clone())
    }
}

/// The task that events are about.
#[derive(Clone)]
struct About {
    task: String,
    context: String,
}

impl About {
    fn status(&self, state: TaskState, words: &str) -> Event {
        let mut message = Message::new(Role::Agent, vec![Part::text(words)]);
        message.task_id = Some(self.task.clone());
        message.context_id = Some(self.context.clone());
        let status = TaskStatus { state, message: Some(message), timestamp: None };
        let (task_id, context_id) = (self.task.clone(), self.context.clone());
        Ok(StreamResponse::StatusUpdate(TaskStatusUpdateEvent { task_id, context_id, status, metadata: None }))
    }

    fn artifact(&self, name: &str, data: Value) -> Event {
        let artifact = Artifact {
            artifact_id: name.to_owned(),
            name: Some(name.to_owned()),
            description: None,
            parts: vec![Part::data(data)],
            metadata: None,
            extensions: None,
        };
        Ok(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            artifact,
            append: None,
            last_chunk: Some(true),
            metadata: None,
        }))
    }
}

struct Agent(Deploys);

impl Agent {
    fn deploy(&self, about: About, build: String) -> BoxStream<'static, Event> {
        let (approve, approved) = oneshot::channel();
        self.0.waiting.lock().expect("nobody panics").insert(about.task.clone(), approve);
        let asked = about.status(TaskState::AuthRequired, "A person has to approve this deploy.");
        let deploys = self.0.done.clone();
        let approved = stream::once(async move {
            if approved.await.is_err() {
                return about.status(TaskState::Canceled, "Nobody will approve it.");
            }
            deploys.lock().expect("nobody panics").push(build);
            about.status(TaskState::Completed, "It is live.")
        });
        stream::iter([asked]).chain(approved).boxed()
    }
}

impl AgentExecutor for Agent {
    fn execute(&self, context: ExecutorContext) -> BoxStream<'static, Event> {
        let message = context.message.unwrap_or_else(|| Message::new(Role::User, Vec::new()));
        let text = message.text().unwrap_or_default().to_owned();
        let about = About { task: context.task_id, context: context.context_id };
        if context.stored_task.as_ref().is_some_and(|task| task.status.state == TaskState::InputRequired) {
            let findings = json!({"base": text, "findings": [{"severity": "low", "text": "A name could be shorter."}]});
            let done = about.status(TaskState::Completed, "1 finding");
            return stream::iter([about.artifact("review", findings), done]).boxed();
        }
        let begun = Ok(StreamResponse::Task(Task {
            id: about.task.clone(),
            context_id: about.context.clone(),
            status: TaskStatus { state: TaskState::Working, message: None, timestamp: None },
            artifacts: None,
            history: Some(vec![message.clone()]),
            metadata: None,
        }));
        let rest = match text.split_once(' ').map_or("", |(verb, _)| verb) {
            "Run" => {
                let failed = u8::from(text.ends_with("9f3c2e1"));
                let summary = about.artifact("summary", json!({"passed": 13 - failed, "failed": failed}));
                stream::iter([summary, about.status(TaskState::Completed, "The tests have run.")]).boxed()
            }
            "Review" if message.parts.iter().any(|part| matches!(part.content, PartContent::Raw(_))) => {
                let asked = about.status(TaskState::InputRequired, "Which base branch is this diff against?");
                stream::iter([asked]).boxed()
            }
            "Deploy" => self.deploy(about, text.split(' ').nth(2).unwrap_or_default().to_owned()),
            _ => stream::iter([about.status(TaskState::Rejected, "I have no skill for that.")]).boxed(),
        };
        stream::iter([begun]).chain(rest).boxed()
    }

    fn cancel(&self, context: ExecutorContext) -> BoxStream<'static, Event> {
        self.0.waiting.lock().expect("nobody panics").remove(&context.task_id);
        let about = About { task: context.task_id, context: context.context_id };
        stream::iter([about.status(TaskState::Canceled, "It is canceled.")]).boxed()
    }
}

fn card(url: &str, binding: &str) -> AgentCard {
    let skill = |id: &str| AgentSkill {
        id: id.to_owned(),
        name: id.to_owned(),
        description: id.to_owned(),
        tags: Vec::new(),
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    };
    AgentCard {
        name: "rust-sdk".to_owned(),
        description: "Tests, reviews and deploys".to_owned(),
        version: "1".to_owned(),
        supported_interfaces: vec![AgentInterface::new(format!("{url}/a2a"), binding)],
        capabilities: AgentCapabilities { streaming: Some(true), ..Default::default() },
        default_input_modes: vec!["text/plain".to_owned(), "text/x-diff".to_owned()],
        default_output_modes: vec!["application/json".to_owned()],
        skills: ["run-tests", "review-diff", "deploy"].map(skill).to_vec(),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    }
}

#[tokio::main]
async fn main() {
    let binding = std::env::args().nth(1).expect("JSONRPC or HTTP+JSON");
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://127.0.0.1:{}", listener.local_addr().expect("an address").port());
    let card = card(&url, &binding);
    let deploys = Deploys::default();
    let handler = DefaultRequestHandler::new(Agent(deploys.clone()), InMemoryTaskStore::new());
    let handler = Arc::new(handler.with_capabilities(card.capabilities.clone()));
    let calls = if binding == "JSONRPC" { jsonrpc_router(handler) } else { rest_router(handler) };
    let app = Router::new()
        .route("/approve/{task}", post(Deploys::approve))
        .route("/deploys", get(Deploys::list))
        .with_state(deploys)
        .merge(agent_card_router(Arc::new(StaticAgentCard::new(card))))
        .nest("/a2a", calls);
    println!("ready {url}");
    axum::serve(listener, app).await.expect("it serves");
}
