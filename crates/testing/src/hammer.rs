//! The hammer: mixed traffic at random against a running agent, and what must hold whatever happens.
//!
//! Many clients visit the agent at once: blocking, immediate and streaming sends, streams dropped in the middle and
//! taken up again, cancels that race each other and the end, several answers to one question, approvals, resends,
//! webhooks whose receivers fail, walks over lists. Each message carries a plan (`plan.rs`) that the agent
//! plays, so that the client knows what must come of it. What is checked all the time:
//!
//! - a task has one end, and nothing comes after it;
//! - a stream begins with a task, or is one message; its frames' numbers rise; it ends where it should;
//! - the state of its last frame is that of `GetTask`;
//! - artifacts rebuilt from frames, from webhooks, from the plans and from `GetTask` are the same;
//! - each message stands in a task at most once; an answer that was taken is there, one that was refused is not;
//! - a blocking reply is what `GetTask` gives right after;
//! - cancels and approvals agree with the end;
//! - pages lose and repeat nothing;
//! - there is no internal error, and everything is answered in time;
//! - at the end nothing is left running.
//!
//! Start at [`Hammer::run`]. The agent is [`agent()`]. The process that is hammered may be another one: only its URL is
//! needed, and its id to look at its memory.

mod agent;
mod client;
pub(crate) mod follow;
mod hooks;
mod memory;
pub(crate) mod plan;
mod visit;
pub(crate) mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use protocol::call::ListTasksResponse;
use protocol::error::RemoteError;
use protocol::{Task, TaskState};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::json;

use crate::talk::Binding;
use client::Client;
use wire::Target;

pub use agent::{agent, hide_planned_panics};
pub use memory::resident;

/// Something that must not be.
#[derive(Debug)]
pub(crate) struct Wrong(pub String);

impl From<String> for Wrong {
    fn from(wrong: String) -> Self {
        Self(wrong)
    }
}

/// How many mistakes are written down; the hammer then stops.
const ENOUGH: usize = 20;

/// What is to be hammered, and how.
#[derive(Debug, Clone)]
pub struct Hammer {
    /// The agent's base, such as `http://127.0.0.1:41241`.
    pub url: String,
    /// How long.
    pub length: Duration,
    /// What the clients draw from. The same seed draws the same visits, though not the same races.
    pub seed: u64,
    /// How many clients there are.
    pub clients: usize,
    /// The agent's process, whose memory is looked at.
    pub process: Option<u32>,
    /// The agent may drop tasks that have ended.
    pub forgets: bool,
}

/// What was counted and what was wrong.
#[derive(Debug, Default)]
struct Tally {
    counts: Mutex<BTreeMap<String, u64>>,
    wrong: Mutex<Vec<String>>,
}

impl Tally {
    fn count(&self, what: &str) {
        let mut counts = self.counts.lock().unwrap();
        match counts.get_mut(what) {
            Some(count) => *count += 1,
            None => {
                counts.insert(what.to_owned(), 1);
            }
        }
    }

    /// Counts a refusal. An internal error is never one.
    fn refused<T>(&self, method: &str, answer: &Result<T, RemoteError>) -> Result<(), Wrong> {
        let Err(error) = answer else { return Ok(()) };
        if matches!(error.code, -32603 | 500) {
            return Err(format!("{method}: {error}").into());
        }
        self.count(&format!("{method} refused: {}", client::reason(error)));
        Ok(())
    }

    fn wrong(&self, wrong: String) {
        self.wrong.lock().unwrap().push(wrong);
    }

    fn is_enough(&self) -> bool {
        self.wrong.lock().unwrap().len() >= ENOUGH
    }
}

/// What a run gave.
#[derive(Debug)]
pub struct Report {
    /// What was wrong, in the order it was found. Empty when all is well.
    pub wrong: Vec<String>,
    /// How often what was done.
    pub counts: BTreeMap<String, u64>,
    /// Seconds since the start, and the bytes that the agent then held.
    pub memory: Vec<(f64, u64)>,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// By how much the agent's memory at the end differs from that after five seconds: 0.2 is 20 % more.
    pub fn growth(&self) -> Option<f64> {
        let (_, early) = self.memory.iter().find(|(since, _)| *since >= 5.0)?;
        let (_, late) = self.memory.last()?;
        Some(*late as f64 / *early as f64 - 1.0)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.counts {
            writeln!(f, "{count:>9}  {what}")?;
        }
        for (since, bytes) in &self.memory {
            writeln!(f, "{:>7.1} s  {:.1} MiB", since, *bytes as f64 / (1 << 20) as f64)?;
        }
        if let Some(growth) = self.growth() {
            writeln!(f, "memory after 5 s and at the end: {:+.1} %", growth * 100.0)?;
        }
        for wrong in &self.wrong {
            writeln!(f, "WRONG  {wrong}")?;
        }
        let seconds = self.took.as_secs_f64();
        match self.wrong.len() {
            0 => write!(f, "nothing wrong in {seconds:.1} s"),
            ENOUGH.. => write!(f, "{ENOUGH} things wrong and stopped after {seconds:.1} s"),
            some => write!(f, "{some} things wrong in {seconds:.1} s"),
        }
    }
}

impl Hammer {
    /// Hammers this agent for so long with 24 clients.
    pub fn new(url: &str, length: Duration, seed: u64) -> Self {
        Self { url: url.to_owned(), length, seed, clients: 24, process: None, forgets: false }
    }

    /// Hammers, then waits until what was begun has ended, and reports.
    pub async fn run(self) -> Report {
        let (tally, hooks, target) = (Arc::<Tally>::default(), hooks::Hooks::new().await, Target::new(&self.url));
        let since = Instant::now();
        let clients = (0..self.clients).map(|number| {
            let name = format!("h{}-{number}", self.seed);
            let mut client = Client {
                target: target.clone(),
                random: StdRng::seed_from_u64(self.seed.wrapping_mul(1000) + number as u64),
                hooks: hooks.clone(),
                tally: tally.clone(),
                forgets: self.forgets,
                context: (format!("{name}-c0"), Vec::new()),
                name,
                drawn: 0,
                ended: VecDeque::new(),
            };
            let (tally, length) = (tally.clone(), self.length);
            tokio::spawn(async move {
                while since.elapsed() < length && !tally.is_enough() {
                    if let Err(wrong) = client.visit(number).await {
                        tally.wrong(format!("client {}, {wrong}", client.name));
                    }
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        let memory = Arc::<Mutex<Vec<(f64, u64)>>>::default();
        let watching = tokio::spawn(watch_memory(self.process, since, memory.clone()));
        for client in join_all(clients).await {
            if let Err(panic) = client {
                tally.wrong(format!("a client of the hammer's own failed: {panic}"));
            }
        }
        if let Err(Wrong(wrong)) = nothing_is_left(&target).await {
            tally.wrong(wrong);
        }
        watching.abort();
        let mut memory = std::mem::take(&mut *memory.lock().unwrap());
        memory.extend(self.process.and_then(resident).map(|bytes| (since.elapsed().as_secs_f64(), bytes)));
        let wrong = std::mem::take(&mut *tally.wrong.lock().unwrap());
        let counts = std::mem::take(&mut *tally.counts.lock().unwrap());
        Report { wrong, counts, memory, took: since.elapsed() }
    }
}

/// Looks at a process's memory every five seconds.
async fn watch_memory(process: Option<u32>, since: Instant, seen: Arc<Mutex<Vec<(f64, u64)>>>) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let now = since.elapsed().as_secs_f64();
        seen.lock().unwrap().extend(process.and_then(resident).map(|bytes| (now, bytes)));
    }
}

/// Waits until no task is left that has not ended.
async fn nothing_is_left(target: &Target) -> Result<(), Wrong> {
    let since = Instant::now();
    for state in [TaskState::Submitted, TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired] {
        loop {
            let params = json!({"status": state, "pageSize": 3});
            let list = target.call::<ListTasksResponse>(Binding::Rpc, "ListTasks", &params).await?;
            let list = list.map_err(|error| format!("ListTasks: {error}"))?;
            if list.tasks.is_empty() && list.total_size == Some(0) {
                break;
            }
            if since.elapsed() > wire::LIMIT {
                let ids: Vec<_> = list.tasks.iter().map(|task: &Arc<Task>| task.id.as_str()).collect();
                return Err(format!("{:?} tasks are left in {state}, such as {ids:?}", list.total_size).into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
