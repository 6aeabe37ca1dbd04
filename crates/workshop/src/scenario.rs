//! One scenario as data: the steps of a client. `docs/scenarios.md` explains the language; `read` reads it.

mod read;

use std::collections::BTreeMap;

use client::Binding;
use protocol::{Method, TaskState};

pub(crate) use read::{Known, read};

/// A scenario: the question that it answers, and the steps of its client.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name: that of its file.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// Where its client's ids come from.
    pub seed: u32,
    /// What its client does.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone)]
pub enum Step {
    /// Reads an agent's card.
    Card {
        /// The agent.
        agent: String,
        /// What the exchange is called.
        title: String,
    },
    /// Makes a call.
    Call(Box<Call>),
    /// Makes an HTTP exchange as it is written.
    Raw(Box<Raw>),
    /// Holds back the next turn of an agent.
    Gate(String),
    /// Waits until no turn of an agent runs.
    Idle(String),
    /// Waits until so many webhooks have come in this scenario.
    Webhooks(usize),
    /// Lets the planner ship with these agents.
    Ship {
        /// The agents.
        agents: Vec<String>,
        /// The commit to test.
        commit: String,
        /// The build to deploy.
        build: String,
        /// The base branch to name.
        base: String,
    },
    /// Walks through the signature of an agent's card.
    Signature {
        /// The agent.
        agent: String,
        /// The description of a forged copy.
        forged: String,
    },
    /// Does what may also be done while a stream is open.
    Act(Act),
}

/// What a client can do between two frames of a stream.
#[derive(Debug, Clone)]
pub enum Act {
    /// Approves a task outside A2A.
    Approve {
        /// The agent.
        agent: String,
        /// What the exchange is called.
        title: String,
        /// The task, with placeholders.
        task: String,
    },
    /// Writes a note into the stream that is open.
    Note(String),
    /// Lets the held agent say so many events more.
    Permit(usize),
    /// Waits until the held agent has said so many events in all.
    Wait(usize),
    /// Lets the held agent go on.
    Release,
}

/// A call of an operation.
#[derive(Debug, Clone)]
pub struct Call {
    /// The agent.
    pub agent: String,
    /// What the exchange is called.
    pub title: String,
    /// The method's name, which need not exist.
    pub method: String,
    /// The operation, when the name is one.
    pub operation: Option<Method>,
    /// How it is called.
    pub binding: Binding,
    /// The params as JSON, with placeholders.
    pub params: String,
    /// Whether the version header is sent.
    pub version: bool,
    /// Whether the agent's token is sent.
    pub token: bool,
    /// What to keep of the answer; of a stream, of its first frame.
    pub take: Take,
    /// What to do when frames of a stream arrive.
    pub on: Vec<On>,
    /// After how many frames to close the stream.
    pub close_after: Option<usize>,
}

/// An HTTP exchange as it is written.
#[derive(Debug, Clone)]
pub struct Raw {
    /// The agent.
    pub agent: String,
    /// What the exchange is called.
    pub title: String,
    /// The verb.
    pub method: String,
    /// The path with its query, with placeholders.
    pub path: String,
    /// The headers after `Host`, in their order, with placeholders.
    pub headers: Vec<(String, String)>,
    /// The body as it is sent; none when it is empty.
    pub body: String,
    /// What to keep of the answer.
    pub take: Take,
}

/// What to do when a frame arrives.
#[derive(Debug, Clone)]
pub struct On {
    /// Which frame.
    pub when: When,
    /// What to keep of it.
    pub take: Take,
    /// What to do.
    pub acts: Vec<Act>,
}

/// Which frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The one with this number, from 1.
    Frame(usize),
    /// Each one that shows this state.
    State(TaskState),
}

/// Values to keep: their names, and where they stand as JSON pointers.
pub type Take = BTreeMap<String, String>;
