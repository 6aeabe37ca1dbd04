//! One scenario as data: the steps of a client. `docs/scenarios.md` explains the language.
//!
//! A file is checked when it is read; a mistake is named with its file, its line and what was expected.

use std::collections::BTreeMap;
use std::ops::Range;

use client::Binding;
use protocol::{Method, TaskState};
use serde::Deserialize;
use serde_json::value::RawValue;
use toml::Spanned;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {words}")]
pub struct Mistake {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub words: String,
}

/// A text with its file's name, for naming lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    pub fn mistake(&self, span: Range<usize>, words: impl Into<String>) -> Mistake {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Mistake { file: self.file.to_owned(), line, words: words.into() }
    }

    pub fn read<T: for<'de> Deserialize<'de>>(&self) -> Result<T, Mistake> {
        toml::from_str(self.text).map_err(|error| {
            let mut words = error.message().to_owned();
            // "unknown field `tilte`, expected one of …": the nearest one helps more than the list.
            if let Some((unknown, known)) = unknown_field(&words) {
                let nearest = known.iter().max_by(|a, b| {
                    let near = |name: &str| strsim::jaro_winkler(name, &unknown);
                    near(a).total_cmp(&near(b))
                });
                if let Some(nearest) = nearest {
                    words = format!("unknown key {unknown}; did you mean {nearest}? Known here: {}", known.join(", "));
                }
            }
            self.mistake(error.span().unwrap_or(0..0), words)
        })
    }
}

fn unknown_field(words: &str) -> Option<(String, Vec<String>)> {
    let rest = words.strip_prefix("unknown field ")?;
    let mut quoted = rest.split('`').skip(1).step_by(2).map(str::to_owned);
    Some((quoted.next()?, quoted.collect()))
}

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
    /// Posts a body to the JSON-RPC URL as it is.
    Raw {
        /// The agent.
        agent: String,
        /// What the exchange is called.
        title: String,
        /// The body.
        body: String,
    },
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
    /// Holds back the next turn of an agent.
    Gate(String),
    /// Lets the held agent say so many events more.
    Permit(usize),
    /// Waits until the held agent has said so many events in all.
    Wait(usize),
    /// Lets the held agent go on.
    Release,
    /// Waits until no turn of an agent runs.
    Idle(String),
    /// Waits until so many webhooks have come in all.
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
    /// Values to take from the answer: their names, and JSON pointers.
    pub take: BTreeMap<String, String>,
    /// What to do when frames of a stream arrive.
    pub on: Vec<On>,
    /// After how many frames to close the stream.
    pub close_after: Option<usize>,
}

/// What to do when a frame arrives.
#[derive(Debug, Clone)]
pub struct On {
    /// The frame's number, from 1.
    pub frame: Option<usize>,
    /// The state that the frame shows.
    pub state: Option<TaskState>,
    /// Values to take from the frame.
    pub take: BTreeMap<String, String>,
    /// The steps.
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    question: String,
    seed: u32,
    #[serde(default)]
    step: Vec<Spanned<StepText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText {
    title: Option<String>,
    to: Option<Spanned<String>>,
    card: Option<Spanned<String>>,
    call: Option<Spanned<String>>,
    over: Option<Spanned<String>>,
    unknown: Option<bool>,
    params: Option<Spanned<String>>,
    version: Option<bool>,
    token: Option<bool>,
    #[serde(default)]
    take: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    on: Vec<Spanned<OnText>>,
    close_after: Option<usize>,
    raw: Option<String>,
    approve: Option<Spanned<String>>,
    note: Option<String>,
    gate: Option<Spanned<String>>,
    step: Option<usize>,
    wait: Option<usize>,
    release: Option<bool>,
    idle: Option<Spanned<String>>,
    webhooks: Option<usize>,
    ship: Option<Vec<Spanned<String>>>,
    commit: Option<String>,
    build: Option<String>,
    base: Option<String>,
    signature: Option<Spanned<String>>,
    forged: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnText {
    frame: Option<usize>,
    state: Option<Spanned<String>>,
    #[serde(default)]
    take: BTreeMap<String, Spanned<String>>,
    #[serde(default, rename = "do")]
    steps: Vec<Spanned<StepText>>,
}

/// What is known while files are read in their order: agents, and names that were taken so far.
pub(crate) struct Known<'a> {
    pub agents: &'a [String],
    pub names: &'a mut Vec<String>,
    /// A turn was gated in this scenario.
    pub gated: bool,
}

/// Reads a scenario.
pub(crate) fn read(name: &str, source: Source<'_>, known: &mut Known<'_>) -> Result<Scenario, Mistake> {
    let file: FileText = source.read()?;
    known.gated = false;
    let steps = file.step.into_iter().map(|step| read_step(step, source, known, false));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    if steps.is_empty() {
        return Err(source.mistake(0..0, "a scenario has at least one [[step]]"));
    }
    Ok(Scenario { name: name.to_owned(), question: file.question, seed: file.seed, steps })
}

const VERBS: &str = "card, call, raw, approve, note, gate, step, wait, release, idle, webhooks, ship or signature";

fn read_step(
    step: Spanned<StepText>,
    source: Source<'_>,
    known: &mut Known<'_>,
    in_stream: bool,
) -> Result<Step, Mistake> {
    let span = step.span();
    let step = step.into_inner();
    let wrong = |words: String| source.mistake(span.clone(), words);
    let verbs = [
        step.card.is_some(),
        step.call.is_some(),
        step.raw.is_some(),
        step.approve.is_some(),
        step.note.is_some(),
        step.gate.is_some(),
        step.step.is_some(),
        step.wait.is_some(),
        step.release.is_some(),
        step.idle.is_some(),
        step.webhooks.is_some(),
        step.ship.is_some(),
        step.signature.is_some(),
    ];
    if verbs.iter().filter(|there| **there).count() != 1 {
        return Err(wrong(format!("a step has exactly one of {VERBS}")));
    }
    if step.call.is_none() {
        let only_calls = step.over.is_some()
            || step.unknown.is_some()
            || step.params.is_some()
            || step.version.is_some()
            || step.token.is_some()
            || !step.take.is_empty()
            || !step.on.is_empty()
            || step.close_after.is_some();
        if only_calls {
            let words = "over, unknown, params, version, token, take, on and close_after go with call only";
            return Err(wrong(words.to_owned()));
        }
    }
    let agent = |name: Option<Spanned<String>>, key: &str, known: &Known<'_>| {
        let Some(name) = name else { return Err(wrong(format!("{key} = \"…\" is missing: which agent"))) };
        if known.agents.contains(name.get_ref()) {
            return Ok(name.into_inner());
        }
        let words = format!("no agent is called {}; there are {}", name.get_ref(), known.agents.join(", "));
        Err(source.mistake(name.span(), words))
    };
    let title = |title: Option<String>| title.ok_or_else(|| wrong("title = \"…\" is missing".to_owned()));
    let gated = |known: &Known<'_>| {
        if known.gated { Ok(()) } else { Err(wrong("step, wait and release need a gate before them".to_owned())) }
    };
    if let Some(card) = step.card {
        return Ok(Step::Card { agent: agent(Some(card), "card", known)?, title: title(step.title)? });
    }
    if let Some(method) = step.call {
        if in_stream {
            return Err(wrong("a call cannot stand inside a stream; note, approve, step and release can".to_owned()));
        }
        let operation = Method::from_name(method.get_ref());
        if operation.is_none() && step.unknown != Some(true) {
            let names = Method::ALL.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
            let words = format!(
                "no operation is called {}; there are {names}. unknown = true sends it all the same",
                method.get_ref()
            );
            return Err(source.mistake(method.span(), words));
        }
        let binding = match step.over {
            None => Binding::JsonRpc,
            Some(over) => Binding::from_word(over.get_ref())
                .ok_or_else(|| source.mistake(over.span(), "over is \"JSONRPC\" or \"HTTP+JSON\""))?,
        };
        if binding == Binding::HttpJson && operation.is_none() {
            return Err(wrong("an unknown method can only be called over JSONRPC".to_owned()));
        }
        let params = step.params.ok_or_else(|| wrong("params = '…' is missing: the request as JSON".to_owned()))?;
        check_params(&params, source, known)?;
        let to = agent(step.to, "to", known)?;
        let streams = operation.is_some_and(Method::streams);
        if !streams && (!step.on.is_empty() || step.close_after.is_some()) {
            return Err(wrong("on and close_after go with SendStreamingMessage and SubscribeToTask".to_owned()));
        }
        let mut on = Vec::new();
        for text in step.on {
            on.push(read_on(text, source, known)?);
        }
        let take = read_take(step.take, source, known)?;
        return Ok(Step::Call(Box::new(Call {
            agent: to,
            title: title(step.title)?,
            method: method.into_inner(),
            operation,
            binding,
            params: params.into_inner(),
            version: step.version.unwrap_or(true),
            token: step.token.unwrap_or(true),
            take,
            on,
            close_after: step.close_after,
        })));
    }
    if let Some(body) = step.raw {
        return Ok(Step::Raw { agent: agent(step.to, "to", known)?, title: title(step.title)?, body });
    }
    if let Some(task) = step.approve {
        check_names(&task, source, known)?;
        let agent = agent(step.to, "to", known)?;
        return Ok(Step::Approve { agent, title: title(step.title)?, task: task.into_inner() });
    }
    if let Some(note) = step.note {
        return if in_stream {
            Ok(Step::Note(note))
        } else {
            Err(wrong("a note stands inside a stream: under on".to_owned()))
        };
    }
    if let Some(gate) = step.gate {
        known.gated = true;
        return Ok(Step::Gate(agent(Some(gate), "gate", known)?));
    }
    if let Some(count) = step.step {
        gated(known)?;
        return Ok(Step::Permit(count));
    }
    if let Some(count) = step.wait {
        gated(known)?;
        return Ok(Step::Wait(count));
    }
    if step.release.is_some() {
        gated(known)?;
        return Ok(Step::Release);
    }
    if let Some(idle) = step.idle {
        return Ok(Step::Idle(agent(Some(idle), "idle", known)?));
    }
    if let Some(count) = step.webhooks {
        return Ok(Step::Webhooks(count));
    }
    if let Some(names) = step.ship {
        let agents = names.into_iter().map(|name| agent(Some(name), "ship", known)).collect::<Result<_, _>>()?;
        let order = planner::Order::default();
        return Ok(Step::Ship {
            agents,
            commit: step.commit.unwrap_or(order.commit),
            build: step.build.unwrap_or(order.build),
            base: step.base.unwrap_or_else(|| "main".to_owned()),
        });
    }
    let forged =
        step.forged.ok_or_else(|| wrong("forged = \"…\" is missing: the description of a forger".to_owned()))?;
    Ok(Step::Signature { agent: agent(step.signature, "signature", known)?, forged })
}

fn read_on(text: Spanned<OnText>, source: Source<'_>, known: &mut Known<'_>) -> Result<On, Mistake> {
    let span = text.span();
    let text = text.into_inner();
    if text.frame.is_some() == text.state.is_some() {
        return Err(source.mistake(span, "on has either frame = N or state = \"TASK_STATE_…\""));
    }
    let state = match text.state {
        None => None,
        Some(word) => Some(
            TaskState::from_word(word.get_ref())
                .ok_or_else(|| source.mistake(word.span(), format!("{} is no state", word.get_ref())))?,
        ),
    };
    let take = read_take(text.take, source, known)?;
    let steps = text.steps.into_iter().map(|step| read_step(step, source, known, true)).collect::<Result<_, _>>()?;
    Ok(On { frame: text.frame, state, take, steps })
}

fn read_take(
    take: BTreeMap<String, Spanned<String>>,
    source: Source<'_>,
    known: &mut Known<'_>,
) -> Result<BTreeMap<String, String>, Mistake> {
    let mut read = BTreeMap::new();
    for (name, pointer) in take {
        if name == NEW_ID || !name.chars().all(is_name) {
            let words = format!("{name} is no name to take; use small letters, digits and _");
            return Err(source.mistake(pointer.span(), words));
        }
        if !pointer.get_ref().starts_with('/') {
            return Err(source.mistake(pointer.span(), "a JSON pointer is expected, such as \"/result/task/id\""));
        }
        known.names.push(name.clone());
        read.insert(name, pointer.into_inner());
    }
    Ok(read)
}

/// The placeholder that is a fresh id.
pub(crate) const NEW_ID: &str = "new_id";

fn is_name(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_'
}

/// The names in a text: `{name}`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let name = rest.split('}').next()?;
        let closed = rest.len() > name.len();
        (closed && !name.is_empty() && name.chars().all(is_name)).then_some(name)
    })
}

/// Puts values in the place of names.
pub(crate) fn fill(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        filled.push_str(before);
        let name = from[1..].split('}').next().unwrap_or_default();
        let whole = from.len() > name.len() + 1 && !name.is_empty() && name.chars().all(is_name);
        match value(name).filter(|_| whole) {
            Some(value) => {
                filled.push_str(&value);
                rest = &from[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &from[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

fn check_names(text: &Spanned<String>, source: Source<'_>, known: &Known<'_>) -> Result<(), Mistake> {
    let unknown = names(text.get_ref()).find(|name| *name != NEW_ID && !known.names.iter().any(|taken| taken == name));
    match unknown {
        None => Ok(()),
        Some(name) => {
            let words =
                format!("{{{name}}} was not taken by an earlier step; taken so far: {}", known.names.join(", "));
            Err(source.mistake(text.span(), words))
        }
    }
}

fn check_params(params: &Spanned<String>, source: Source<'_>, known: &Known<'_>) -> Result<(), Mistake> {
    check_names(params, source, known)?;
    match serde_json::from_str::<&RawValue>(params.get_ref()) {
        Ok(_) => Ok(()),
        Err(cause) => Err(source.mistake(params.span(), format!("params are no JSON: {cause}"))),
    }
}
