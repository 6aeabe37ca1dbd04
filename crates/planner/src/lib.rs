//! The client agent: it reads the agents' cards, delegates work by skill, and acts on what comes back.
//!
//! Entry points: [`Planner::meet`] and [`Planner::ship`]. The loop that decides what a reply means is
//! [`Planner::delegate`], alone in its file. [`record`] is the one adapter between the client's tap and a capture. What
//! may be done twice is tried again, and what may not is asked about first (`deliver.rs`). With a [`Journal`] a job goes
//! on after its planner was killed.

mod agents;
mod answers;
mod checks;
mod delegate;
mod deliver;
pub mod explain;
mod follow;
pub mod journal;
pub mod operator;
pub mod plan;
pub mod record;
mod ship;
pub mod shown;

use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::{Cards, ClientError, Http, NoInterface};
use protocol::{Ids, MessageId, Task, TaskId, TaskState};
use signature::Key;

pub use agents::Agent;
pub use delegate::Outcome;
pub use journal::{Journal, JournalError};
pub use operator::Operator;
pub use plan::Plan;
pub use ship::{Ended, Order, SHIP};

/// Takes the lines of the planner's log.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The client agent.
pub struct Planner {
    http: Http,
    cards: Cards,
    /// The keys of which one must vouch for each card; none: any card is taken.
    card_keys: Option<Vec<Key>>,
    ids: Arc<dyn Ids>,
    log: Log,
    operator: Operator,
    /// The operator's own tokens, each with the name of the agent that gets it.
    operator_tokens: Vec<(String, String)>,
    /// The answer to a question about a base branch.
    base: String,
    /// How long it follows one task.
    patience: Duration,
    /// Whether every agent is to answer as soon as there is a task.
    returns_immediately: bool,
    /// Where agents are asked to post what happens.
    webhook: Option<String>,
    calls: Arc<AtomicU64>,
    agents: Vec<Agent>,
    book: Mutex<Book>,
    journal: Option<Journal>,
    /// Whether a message that a killed planner may have sent, and of which the agent shows no task, is sent again.
    sends_again: bool,
}

/// What the planner has to answer for when something breaks.
#[derive(Default)]
struct Book {
    /// The tasks made so far, each with its agent's name.
    made: Vec<(String, TaskId)>,
    /// Those of them that have not ended.
    underway: Vec<(String, TaskId)>,
    /// The messages of which nothing was heard yet, each with its agent's name.
    open: Vec<(String, MessageId)>,
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
    /// The reply to a message was lost, the agent shows no task of it, and it must not be done twice.
    #[error(
        "{agent}: whether message {message} was taken cannot be known ({cause}), and no task of it is seen there; it may \
         still be done, so it is not sent again. Look at the agent before you do"
    )]
    Unknowable {
        /// The agent.
        agent: String,
        /// The message whose fate is not known.
        message: MessageId,
        /// What happened to its reply.
        cause: Box<ClientError>,
    },
    /// An agent answered with another task, or with the task in another context.
    #[error("{agent} was asked about {asked} and answered with {answered}{}", tasks(made))]
    Another {
        /// The agent.
        agent: String,
        /// The task or context that was asked about.
        asked: String,
        /// The one in the answer.
        answered: String,
        /// The tasks that were made until then.
        made: Vec<(String, TaskId)>,
    },
    /// The journal cannot be used, so nothing more is done.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What the plan needs was not given, or something that it does not know was.
    #[error("{0}")]
    Inputs(String),
    /// A job goes on whose work was begun with another agent.
    #[error("{step} was begun with {was}, and the agent for it is now {is}; the job does not go on with another one")]
    Moved {
        /// The step of the job.
        step: String,
        /// The agent that it was begun with.
        was: String,
        /// The one that the cards name now.
        is: String,
    },
    /// No trusted key vouches for a card.
    #[error("{agent}: its card at {url} is refused, for no trusted key vouches for it: {why}")]
    Unvouched {
        /// The name in the card.
        agent: String,
        /// Where it was read.
        url: String,
        /// What is wrong with its signatures.
        why: String,
    },
    /// An agent's card changed under way, so that its work would go elsewhere.
    #[error("{agent} changed its card under way: {what}; the job does not go on with it{}", tasks(made))]
    Changed {
        /// The agent.
        agent: String,
        /// What is other now.
        what: String,
        /// The tasks that were made until then.
        made: Vec<(String, TaskId)>,
    },
    /// Two agents have the name to which a token belongs.
    #[error("two agents call themselves {agent}, so whose token it is cannot be known; name one of them alone")]
    Namesake {
        /// The name.
        agent: String,
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
    #[error("{agent}: task {task} is still {state} after {} s; the planner gives up and cancels it", patience.as_secs_f32())]
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
    /// An agent asked again and again. The task was asked to stop.
    #[error(
        "{agent} comes to no end: it asks again after every answer; the planner gives up and cancels{}",
        tasks(made)
    )]
    NoEnd {
        /// The agent.
        agent: String,
        /// The tasks that were made until then.
        made: Vec<(String, TaskId)>,
    },
    /// The whole job took too long. The task that had not ended was asked to stop.
    #[error("the job took longer than {} s and is given up{}{}", limit.as_secs_f32(), tasks(made), unheard(open))]
    OutOfTime {
        /// The limit.
        limit: Duration,
        /// The tasks that were made until then.
        made: Vec<(String, TaskId)>,
        /// The messages that may have been taken, each with its agent's name.
        open: Vec<(String, MessageId)>,
    },
}

tokio::task_local! {
    /// The step whose lines are written, when others run beside it.
    static BESIDE: String;
}

/// Does something beside others: each line of the log that it writes names it.
fn beside<T>(step: String, work: impl Future<Output = T>) -> impl Future<Output = T> {
    BESIDE.scope(step, work)
}

fn tasks(made: &[(String, TaskId)]) -> String {
    if made.is_empty() {
        return String::new();
    }
    let named: Vec<_> = made.iter().map(|(agent, task)| format!("{task} at {agent}")).collect();
    format!("; tasks made until then: {}", named.join(", "))
}

fn unheard(open: &[(String, MessageId)]) -> String {
    if open.is_empty() {
        return String::new();
    }
    let named: Vec<_> = open.iter().map(|(agent, message)| format!("message {message} to {agent}")).collect();
    format!("; no answer was heard to {}, so it may still be done", named.join(", "))
}

impl Planner {
    /// A planner that has met nobody yet.
    pub fn new(http: Http, ids: Arc<dyn Ids>, log: Log, operator: Operator) -> Self {
        Self {
            cards: Cards::new(http.clone()),
            http,
            card_keys: None,
            ids,
            log,
            operator,
            operator_tokens: Vec::new(),
            base: "main".to_owned(),
            patience: Duration::from_secs(600),
            returns_immediately: false,
            webhook: None,
            calls: Arc::default(),
            agents: Vec::new(),
            book: Mutex::default(),
            journal: None,
            sends_again: false,
        }
    }

    /// The branch that it names when an agent asks for a base.
    pub fn with_base(self, base: impl Into<String>) -> Self {
        Self { base: base.into(), ..self }
    }

    /// The keys that it trusts: it takes no card that none of them has signed.
    pub fn trusting(self, card_keys: Vec<Key>) -> Self {
        Self { card_keys: Some(card_keys), ..self }
    }

    /// The same planner, which asks each agent to answer as soon as there is a task (specification 3.2.2), and follows it;
    /// else that is only done about steps that a plan calls long.
    pub fn returning_immediately(self, returns_immediately: bool) -> Self {
        Self { returns_immediately, ..self }
    }

    /// The same planner, which asks those agents that post to webhooks (specification 3.1.7) to post here what happens to
    /// their tasks. It follows them all the same.
    pub fn with_webhook(self, url: Option<String>) -> Self {
        Self { webhook: url, ..self }
    }

    /// The token that an operator has at the agent of this name; approvals there are sent with it, and nothing else is.
    pub fn with_operator_token(mut self, agent: impl Into<String>, token: impl Into<String>) -> Self {
        self.operator_tokens.push((agent.into(), token.into()));
        self
    }

    /// How long it follows one task before it gives up.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same planner, told that a message which a killed planner may have sent is to be sent again, whatever it does,
    /// when the agent shows no task of it.
    pub fn sending_again(self, sends_again: bool) -> Self {
        Self { sends_again, ..self }
    }

    /// The agents it has met.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    fn say(&self, line: impl AsRef<str>) {
        let line = shown::line(line.as_ref());
        match BESIDE.try_with(|step| format!("{step} | {line}")) {
            Ok(line) => (self.log)(&line),
            Err(_) => (self.log)(&line),
        }
    }

    /// Gives the job up, for whoever put a limit to it and has stopped waiting: asks the agent of the task that has not
    /// ended to cancel it, and tells what was made.
    pub async fn give_up(&self, limit: Duration) -> Failure {
        self.cancel_underway(Duration::from_millis(300)).await;
        let book = self.book();
        Failure::OutOfTime { limit, made: book.made.clone(), open: book.open.clone() }
    }

    async fn no_end(&self, agent: &Agent) -> Failure {
        self.cancel_underway(Duration::from_secs(5)).await;
        Failure::NoEnd { agent: agent.name.clone(), made: self.book().made.clone() }
    }

    async fn cancel_underway(&self, limit: Duration) {
        let underway = self.book().underway.clone();
        for (agent, task) in underway {
            if let Some(agent) = self.agents.iter().find(|known| known.name == agent) {
                self.cancel(agent, &task, limit).await;
            }
        }
    }

    /// Asks for an end. Whether the agent heeds it or not, the planner has given up.
    async fn cancel(&self, agent: &Agent, task: &TaskId, limit: Duration) {
        let title = format!("CancelTask on {}", agent.name);
        let _ = tokio::time::timeout(limit, agent.connection.cancel(&title, task)).await;
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, agent: &Agent, task: &Task) {
        let mut book = self.book();
        let entry = (agent.name.clone(), task.id.clone());
        if !book.made.contains(&entry) {
            book.made.push(entry.clone());
        }
        book.underway.retain(|known| *known != entry);
        if !task.status.state.is_terminal() {
            book.underway.push(entry);
        }
    }

    fn failure(&self, agent: &str, cause: ClientError) -> Failure {
        Failure::Call { agent: agent.to_owned(), cause: Box::new(cause), made: self.book().made.clone() }
    }
}
