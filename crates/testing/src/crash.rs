//! An agent that keeps its tasks in a file, killed under load at random points; and what must be there after each restart.
//!
//! The agent is the [hammer](crate::hammer)'s, as a process. Several clients send, stream and follow, with webhooks. At a
//! random moment the process is killed with SIGKILL and started again on the same file. Then:
//!
//! - each task that a client had been told of is there, with everything that the client had seen of it;
//! - none is submitted or working;
//! - each webhook gets what it had not got, to the last event, in order.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol::call::ListTasksResponse;
use protocol::{StreamResponse, Task, TaskId, TaskState};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::Webhooks;
use crate::hammer::follow::{Follower, agrees_so_far};
use crate::hammer::plan::{Plan, Step};
use crate::hammer::wire::{Next, Target};
use crate::talk::Binding;

/// How many clients there are.
const CLIENTS: usize = 16;
/// How long a webhook may take to get what it had not got.
const LIMIT: Duration = Duration::from_secs(20);

/// What one client was told of one task.
#[derive(Debug)]
struct Told {
    id: TaskId,
    task: Task,
    /// The path of its webhook.
    hook: Option<String>,
}

type Notes = Arc<Mutex<Vec<Arc<Mutex<Option<Told>>>>>>;

/// What was seen in one life of the agent.
#[derive(Debug, Default)]
pub struct Life {
    /// How many tasks clients had been told of.
    pub tasks: usize,
    /// How many of them had not ended.
    pub open: usize,
    /// How many webhooks there were, and how many events they got after the restart.
    pub hooks: usize,
    /// How many events came to them after the restart.
    pub sent_again: usize,
}

/// The agent and its file.
pub struct Crash {
    program: PathBuf,
    folder: tempfile::TempDir,
    random: StdRng,
    lives: usize,
}

/// A process that is killed when it is dropped.
struct Process {
    child: Child,
    target: Target,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Crash {
    /// Begins with an empty file. `program` is hammer-agent, or another agent that plays the hammer's plans.
    pub fn new(program: &Path, seed: u64) -> Self {
        let (folder, random) = (tempfile::tempdir().unwrap(), StdRng::seed_from_u64(seed));
        Self { program: program.to_owned(), folder, random, lives: 0 }
    }

    fn start(&self) -> Process {
        let store = format!("sqlite:{}", self.folder.path().join("tasks.sqlite").display());
        let mut agent = Command::new(&self.program);
        agent.args(["--listen", "127.0.0.1:0", "--allow-local-webhooks", "--log", "error", "--store", &store]);
        let mut child = agent.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split(" is ready: ").nth(1).and_then(|url| url.split("/.well-known").next());
        let url = url.unwrap_or_else(|| panic!("the agent does not start: {line}"));
        Process { child, target: Target::new(&url.replace("localhost", "127.0.0.1")) }
    }

    /// One life under load, the kill, the restart, and what must then be there.
    pub async fn life(&mut self) -> Result<Life, String> {
        self.lives += 1;
        // A receiver that does not take everything at once, so that something is left to be sent.
        let hooks = Webhooks::answering(|number| if number % 5 == 1 { 503 } else { 200 }).await;
        let notes = Notes::default();
        {
            let mut agent = self.start();
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let client = Client {
                        name: format!("k{}-{number}", self.lives),
                        target: agent.target.clone(),
                        random: StdRng::seed_from_u64(self.random.random()),
                        notes: notes.clone(),
                        hooks: hooks.url.clone(),
                    };
                    tokio::spawn(client.visits())
                })
                .collect();
            tokio::time::sleep(Duration::from_micros(self.random.random_range(20_000..900_000))).await;
            agent.child.kill().map_err(|cause| cause.to_string())?;
            agent.child.wait().map_err(|cause| cause.to_string())?;
            clients.iter().for_each(tokio::task::JoinHandle::abort);
            for client in clients {
                let _ = client.await;
            }
        }
        let before = hooks.got().len();
        let agent = self.start();
        let told: Vec<Told> = notes.lock().unwrap().iter().filter_map(|told| told.lock().unwrap().take()).collect();
        let mut life = Life { tasks: told.len(), ..Life::default() };
        for state in [TaskState::Submitted, TaskState::Working] {
            let list = call::<ListTasksResponse>(&agent.target, "ListTasks", json!({"status": state})).await?;
            if list.total_size != Some(0) {
                return Err(format!("{:?} tasks are {state} after the restart", list.total_size));
            }
        }
        for Told { id, task, hook } in &told {
            let now = call::<Task>(&agent.target, "GetTask", json!({"id": id})).await?;
            agrees_so_far(task, &now).map_err(|wrong| format!("task {id}: {wrong}"))?;
            life.open += usize::from(!task.status.state.is_terminal());
            if let Some(hook) = hook {
                life.hooks += 1;
                gets_the_rest(&hooks, hook, &now).await?;
            }
        }
        life.sent_again = hooks.got().len().saturating_sub(before);
        Ok(life)
    }
}

async fn call<T: serde::de::DeserializeOwned>(
    target: &Target,
    method: &str,
    params: serde_json::Value,
) -> Result<T, String> {
    let answer = target.call::<T>(Binding::Rpc, method, &params).await.map_err(|wrong| wrong.0)?;
    answer.map_err(|error| format!("{method} {params}: {error}"))
}

/// Waits until a webhook has got everything; an event whose arrival was not noted before the kill may come twice in a row.
async fn gets_the_rest(hooks: &Webhooks, path: &str, task: &Task) -> Result<(), String> {
    let since = Instant::now();
    loop {
        let mut bodies: Vec<_> =
            hooks.got().into_iter().filter(|hook| hook.path == path).map(|hook| hook.body).collect();
        bodies.dedup();
        let mut follower = Follower::default();
        for body in bodies {
            let told: StreamResponse = serde_json::from_value(body).map_err(|cause| cause.to_string())?;
            follower.take_hook(told).map_err(|wrong| format!("the webhook of task {}: {wrong}", task.id))?;
        }
        let agrees = follower.agrees(task);
        if agrees.is_ok() {
            return Ok(());
        }
        if since.elapsed() > LIMIT {
            return agrees.map_err(|wrong| format!("the webhook of task {}: {wrong}", task.id));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends messages until the agent is gone.
struct Client {
    name: String,
    target: Target,
    random: StdRng,
    notes: Notes,
    hooks: String,
}

impl Client {
    async fn visits(mut self) {
        for number in 0.. {
            let plan = self.plan(number);
            let message = json!({
                "messageId": format!("m-{}", plan.name), "role": "ROLE_USER", "parts": [{"text": plan.text()}],
            });
            let hook = self.random.random_bool(0.3).then(|| format!("{}/{}", self.hooks, plan.name));
            let path = hook.as_ref().map(|hook| hook[hook.find("/hook").unwrap_or_default()..].to_owned());
            let streams = self.random.random_bool(0.6);
            let mut params = json!({"message": message});
            if let Some(hook) = hook {
                params["configuration"]["taskPushNotificationConfig"] = json!({"url": hook});
            }
            let kept = if streams { self.streams(params, path).await } else { self.sends(params, path).await };
            if kept.is_none() {
                return;
            }
        }
    }

    fn plan(&mut self, number: usize) -> Plan {
        let mut steps = vec![Step::Working, Step::New(0)];
        for _ in 0..self.random.random_range(0..40) {
            steps.push(Step::Append(0));
            if self.random.random_bool(0.5) {
                steps.push(Step::Pause(self.random.random_range(0..20_000)));
            }
        }
        steps.push([Step::Done, Step::Failed, Step::Ask, Step::Return][self.random.random_range(0..4)]);
        Plan { name: format!("{}-{number}", self.name), steps }
    }

    fn note(&self, task: &Task, hook: Option<String>) -> Arc<Mutex<Option<Told>>> {
        let told = Told { id: task.id.clone(), task: task.clone(), hook };
        let told = Arc::new(Mutex::new(Some(told)));
        self.notes.lock().unwrap().push(told.clone());
        told
    }

    /// None when the agent is gone.
    async fn streams(&mut self, params: serde_json::Value, hook: Option<String>) -> Option<()> {
        let mut open = self.target.open(Binding::Rpc, "SendStreamingMessage", &params, None).await.ok()?.ok()?;
        let (mut follower, mut note) = (Follower::new(), None);
        loop {
            match open.next().await.ok()? {
                Next::Frame(frame) => {
                    follower.take(frame).ok()?;
                    let task = follower.task.as_ref()?;
                    let note = note.get_or_insert_with(|| self.note(task, hook.clone()));
                    if let Some(told) = &mut *note.lock().unwrap() {
                        told.task = task.clone();
                    }
                }
                Next::End => return Some(()),
                Next::Refused(_) => return None,
            }
        }
    }

    async fn sends(&mut self, mut params: serde_json::Value, hook: Option<String>) -> Option<()> {
        params["configuration"]["returnImmediately"] = json!(self.random.random_bool(0.5));
        let answer = self.target.call::<StreamResponse>(Binding::Rest, "SendMessage", &params).await.ok()?.ok()?;
        let StreamResponse::Task(task) = answer else { return None };
        self.note(&task, hook);
        Some(())
    }
}
