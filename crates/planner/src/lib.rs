//! The client agent: it reads the agents' cards, delegates work by skill, and acts on what comes back.
//!
//! Entry points: [`Planner::meet`] and [`Planner::ship`]. The loop that decides what a reply means is
//! [`Planner::delegate`], alone in its file. [`record`] is the one adapter between the client's tap and a capture.
//! What is left out: retries and memory over a restart.

mod agents;
mod delegate;
mod follow;
pub mod operator;
pub mod record;
mod ship;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use client::{ClientError, Http, NoInterface};
use protocol::{Ids, TaskId, TaskState};

pub use agents::Agent;
pub use delegate::Outcome;
pub use operator::Operator;
pub use ship::{Ended, Order};

/// Takes the lines of the planner's log.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The client agent.
pub struct Planner {
    http: Http,
    ids: Arc<dyn Ids>,
    log: Log,
    operator: Operator,
    /// The answer to a question about a base branch.
    base: String,
    /// How long it follows one task.
    patience: Duration,
    calls: Arc<AtomicU64>,
    agents: Vec<Agent>,
    /// The tasks made so far, to be named when something breaks.
    made: std::sync::Mutex<Vec<(String, TaskId)>>,
}

/// Why a job could not be done at all.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A call to an agent brought no A2A answer.
    #[error("{agent}: {cause}{}", tasks(made))]
    Call {
        /// The agent's name, or its URL before its card was read.
        agent: String,
        /// What happened.
        cause: Box<ClientError>,
        /// The tasks that were made until then.
        made: Vec<(String, TaskId)>,
    },
    /// A card offers no interface that the planner speaks.
    #[error(transparent)]
    NoInterface(#[from] NoInterface),
    /// No agent has a skill that the job needs.
    #[error("no agent has the skill {skill}; there are {there}")]
    NoSkill {
        /// The skill.
        skill: String,
        /// The skills that there are.
        there: String,
    },
    /// A task did not end in time. It was asked to stop.
    #[error("{agent}: task {task} is still {state} after {} s; the planner gives up and cancels it", patience.as_secs())]
    TooLong {
        /// The agent.
        agent: String,
        /// The task.
        task: TaskId,
        /// Its last known state.
        state: TaskState,
        /// How long the planner waited.
        patience: Duration,
    },
}

fn tasks(made: &[(String, TaskId)]) -> String {
    if made.is_empty() {
        return String::new();
    }
    let named: Vec<_> = made.iter().map(|(agent, task)| format!("{task} at {agent}")).collect();
    format!("; tasks made until then: {}", named.join(", "))
}

impl Planner {
    /// A planner that has met nobody yet.
    pub fn new(http: Http, ids: Arc<dyn Ids>, log: Log, operator: Operator) -> Self {
        Self {
            http,
            ids,
            log,
            operator,
            base: "main".to_owned(),
            patience: Duration::from_secs(600),
            calls: Arc::default(),
            agents: Vec::new(),
            made: std::sync::Mutex::default(),
        }
    }

    /// The branch that it names when an agent asks for a base.
    pub fn with_base(self, base: impl Into<String>) -> Self {
        Self { base: base.into(), ..self }
    }

    /// How long it follows one task before it gives up.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The agents it has met.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    fn say(&self, line: impl AsRef<str>) {
        (self.log)(line.as_ref());
    }

    fn remember(&self, agent: &Agent, task: &TaskId) {
        let mut made = self.made.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !made.iter().any(|(_, known)| known == task) {
            made.push((agent.name.clone(), task.clone()));
        }
    }

    fn failure(&self, agent: &str, cause: ClientError) -> Failure {
        let made = self.made.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        Failure::Call { agent: agent.to_owned(), cause: Box::new(cause), made }
    }
}
