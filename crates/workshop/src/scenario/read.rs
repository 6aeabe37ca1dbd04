//! From TOML to a scenario. Every way in which a scenario file can be refused stands here.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use axum::http::{HeaderName, HeaderValue};
use client::Binding;
use protocol::{Method, TaskState, media};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::DeValue;

use super::{Act, Call, On, Raw, Scenario, Step, Take, When};
use crate::mistake::{Mistake, Source, Table, hint};
use crate::placeholder::{NEW_ID, fill_json, is_name, names};

/// What is known while the files of a set are read in their order.
pub(crate) struct Known<'a> {
    /// The agents of the set.
    pub agents: &'a [&'a str],
    /// The set receives webhooks.
    pub webhooks: bool,
    /// The names that were taken so far.
    pub names: Vec<String>,
    /// The gate that this scenario has set last.
    held: Option<Held>,
}

/// A gate, and what the scenario has let through it.
struct Held {
    agent: String,
    line: usize,
    /// A call has started the turn that it holds.
    begun: bool,
    permits: usize,
    open: bool,
}

impl<'a> Known<'a> {
    pub fn new(agents: &'a [&'a str], webhooks: bool) -> Self {
        Self { agents, webhooks, names: Vec::new(), held: None }
    }
}

/// Reads a scenario.
pub(crate) fn read(name: &str, source: Source<'_>, known: &mut Known<'_>) -> Result<Scenario, Mistake> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Text {
        question: String,
        seed: u32,
        #[serde(rename = "step")]
        _steps: Option<IgnoredAny>,
    }
    let table = source.table()?;
    let steps = tables(&source, &table, "step")?;
    let Text { question, seed, .. } = source.read(table)?;
    if steps.is_empty() {
        return Err(source.mistake_in(1, "a scenario has at least one [[step]]"));
    }
    known.held = None;
    let mut reading = Reading { source, known };
    let steps = steps.into_iter().map(|table| reading.step(table)).collect::<Result<_, _>>()?;
    if let Some(held) = known.held.take().filter(|held| !held.begun) {
        let words = format!("this gate holds nothing: no message to {} follows it", held.agent);
        return Err(source.mistake_in(held.line, words));
    }
    Ok(Scenario { name: name.to_owned(), question, seed, steps })
}

/// The tables under a key, which may be missing.
fn tables<'a>(source: &Source<'_>, table: &Table<'a>, key: &str) -> Result<Vec<Table<'a>>, Mistake> {
    let Some(value) = table.get_ref().get(key) else { return Ok(Vec::new()) };
    let expected = |value: &Spanned<DeValue<'_>>| source.mistake(value.span(), format!("{key} is a list of tables"));
    let entries = value.get_ref().as_array().ok_or_else(|| expected(value))?;
    let entries = entries.iter().map(|entry| match entry.get_ref() {
        DeValue::Table(table) => Ok(Spanned::new(entry.span(), table.clone())),
        _ => Err(expected(entry)),
    });
    entries.collect()
}

/// The key that makes a step what it is.
const VERBS: [&str; 13] = [
    "card",
    "call",
    "raw",
    "approve",
    "note",
    "gate",
    "step",
    "wait",
    "release",
    "idle",
    "webhooks",
    "ship",
    "signature",
];
/// Those that can stand between two frames.
const ACTS: [&str; 5] = ["note", "approve", "step", "wait", "release"];

/// What a frame can show.
const STATES: [TaskState; 8] = [
    TaskState::Submitted,
    TaskState::Working,
    TaskState::InputRequired,
    TaskState::AuthRequired,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::Rejected,
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardText {
    card: Spanned<String>,
    title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallText {
    call: Spanned<String>,
    to: Spanned<String>,
    title: String,
    params: Spanned<String>,
    over: Option<Spanned<String>>,
    #[serde(default)]
    unknown: bool,
    #[serde(default = "yes")]
    version: bool,
    #[serde(default = "yes")]
    token: bool,
    #[serde(default)]
    take: TakeText,
    close_after: Option<NonZeroUsize>,
    #[serde(rename = "on")]
    _on: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawText {
    raw: Spanned<String>,
    to: Spanned<String>,
    title: String,
    method: Option<Spanned<String>>,
    path: Option<Spanned<String>>,
    headers: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    take: TakeText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnText {
    frame: Option<NonZeroUsize>,
    state: Option<Spanned<String>>,
    #[serde(default)]
    take: TakeText,
    #[serde(rename = "do")]
    _acts: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproveText {
    approve: Spanned<String>,
    to: Spanned<String>,
    title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShipText {
    ship: Vec<Spanned<String>>,
    commit: Option<String>,
    build: Option<String>,
    base: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureText {
    signature: Spanned<String>,
    forged: String,
}

/// A step that is one key and its value.
macro_rules! alone {
    ($name:ident, $key:ident: $type:ty) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            $key: $type,
        }
    };
}
alone!(NoteText, note: String);
alone!(GateText, gate: Spanned<String>);
alone!(PermitText, step: NonZeroUsize);
alone!(WaitText, wait: Spanned<NonZeroUsize>);
alone!(ReleaseText, release: Spanned<bool>);
alone!(IdleText, idle: Spanned<String>);
alone!(WebhooksText, webhooks: Spanned<NonZeroUsize>);

type TakeText = BTreeMap<String, Spanned<String>>;

fn yes() -> bool {
    true
}

/// One file that is being read.
struct Reading<'r, 'a> {
    source: Source<'r>,
    known: &'r mut Known<'a>,
}

impl Reading<'_, '_> {
    /// The one verb of a step.
    fn verb(&self, table: &Table<'_>) -> Result<&'static str, Mistake> {
        let there: Vec<_> = VERBS.iter().copied().filter(|verb| table.get_ref().contains_key(*verb)).collect();
        match there[..] {
            [verb] => Ok(verb),
            [] => Err(self.source.mistake(table.span(), format!("a step has one of {}", VERBS.join(", ")))),
            _ => {
                let words = format!("a step has exactly one of {}", there.join(", "));
                Err(self.source.mistake(table.span(), words))
            }
        }
    }

    fn step(&mut self, table: Table<'_>) -> Result<Step, Mistake> {
        let span = table.span();
        let source = self.source;
        Ok(match self.verb(&table)? {
            "card" => {
                let CardText { card, title } = source.read(table)?;
                Step::Card { agent: self.agent(card)?, title }
            }
            "call" => Step::Call(Box::new(self.call(table)?)),
            "raw" => Step::Raw(Box::new(self.raw(table)?)),
            "gate" => {
                let GateText { gate } = source.read(table)?;
                let line = source.line(gate.span().start);
                let agent = self.agent(gate)?;
                self.gate(agent.clone(), line)?;
                Step::Gate(agent)
            }
            "idle" => {
                let IdleText { idle } = source.read(table)?;
                Step::Idle(self.agent(idle)?)
            }
            "webhooks" => {
                let WebhooksText { webhooks } = source.read(table)?;
                if !self.known.webhooks {
                    let words = "no webhook can come: set.toml names no webhook = \"HOST:PORT\"";
                    return Err(source.mistake(webhooks.span(), words));
                }
                Step::Webhooks(webhooks.into_inner().get())
            }
            "ship" => {
                let ShipText { ship, commit, build, base } = source.read(table)?;
                let agents: Vec<_> = ship.into_iter().map(|name| self.agent(name)).collect::<Result<_, _>>()?;
                if let Some(held) = &self.known.held
                    && !held.begun
                    && agents.contains(&held.agent)
                {
                    let words = format!("the planner would wait for ever: {} is held by a gate", held.agent);
                    return Err(source.mistake(span, words));
                }
                let kit = planner::Order::default();
                let (commit, build) = (commit.unwrap_or(kit.commit), build.unwrap_or(kit.build));
                Step::Ship { agents, commit, build, base: base.unwrap_or_else(|| "main".to_owned()) }
            }
            "signature" => {
                let SignatureText { signature, forged } = source.read(table)?;
                Step::Signature { agent: self.agent(signature)?, forged }
            }
            "note" => {
                return Err(source.mistake(span, "a note stands inside a stream: in do = [...] under [[step.on]]"));
            }
            _ => Step::Act(self.act(table)?),
        })
    }

    fn act(&mut self, table: Table<'_>) -> Result<Act, Mistake> {
        let span = table.span();
        let source = self.source;
        Ok(match self.verb(&table)? {
            "note" => {
                let NoteText { note } = source.read(table)?;
                Act::Note(note)
            }
            "approve" => {
                let ApproveText { approve, to, title } = source.read(table)?;
                self.names(&approve)?;
                Act::Approve { agent: self.agent(to)?, title, task: approve.into_inner() }
            }
            "step" => {
                let PermitText { step } = source.read(table)?;
                let held = self.held(span)?;
                held.permits += step.get();
                Act::Permit(step.get())
            }
            "wait" => {
                let WaitText { wait } = source.read(table)?;
                let held = self.held(span)?;
                if !held.open && wait.get_ref().get() > held.permits {
                    let words = format!("this would wait for ever: the gate has let {} through so far", held.permits);
                    return Err(source.mistake(wait.span(), words));
                }
                Act::Wait(wait.into_inner().get())
            }
            "release" => {
                let ReleaseText { release } = source.read(table)?;
                if !release.get_ref() {
                    return Err(source.mistake(release.span(), "release is true, or the step is left out"));
                }
                self.held(span)?.open = true;
                Act::Release
            }
            verb => {
                let words = format!("{verb} cannot stand inside a stream; {} can", ACTS.join(", "));
                return Err(source.mistake(span, words));
            }
        })
    }

    fn call(&mut self, mut table: Table<'_>) -> Result<Call, Mistake> {
        let source = self.source;
        let on = tables(&source, &table, "on")?;
        // Their mistakes are named one by one; what is left is this table's own.
        table.get_mut().remove("on");
        let text: CallText = source.read(table)?;
        let agent = self.agent(text.to)?;
        let method = text.call.get_ref().clone();
        let operation = Method::from_name(&method);
        if operation.is_none() && !text.unknown {
            let operations = Method::ALL.map(|(_, name)| name);
            let also = "unknown = true sends it all the same";
            let words = format!("no operation is called {method}{}. {also}", hint(&method, &operations));
            return Err(source.mistake(text.call.span(), words));
        }
        let binding = match text.over {
            None => Binding::JsonRpc,
            Some(over) => Binding::from_word(over.get_ref())
                .ok_or_else(|| source.mistake(over.span(), "over is \"JSONRPC\" or \"HTTP+JSON\""))?,
        };
        if binding == Binding::HttpJson && operation.is_none() {
            let words = "HTTP+JSON has no path for an unknown method; raw makes any request";
            return Err(source.mistake(text.call.span(), words));
        }
        self.params(&text.params, operation.filter(|_| binding == Binding::HttpJson))?;
        let streams = operation.is_some_and(Method::streams);
        if let Some(first) = on.first().filter(|_| !streams) {
            return Err(source.mistake(first.span(), "on goes with SendStreamingMessage and SubscribeToTask"));
        }
        if text.close_after.is_some() && !streams {
            let words = "close_after goes with SendStreamingMessage and SubscribeToTask";
            return Err(source.mistake(text.call.span(), words));
        }
        let take = self.take(text.take)?;
        let starts = matches!(operation, Some(Method::SendMessage | Method::SendStreamingMessage));
        let began = starts && self.begin(&agent);
        if began && operation == Some(Method::SendMessage) && !returns_immediately(text.params.get_ref()) {
            let words = "this would wait for ever: the agent is held by a gate; \
                         \"configuration\": {\"returnImmediately\": true} does not wait";
            return Err(source.mistake(text.params.span(), words));
        }
        let on = on.into_iter().map(|table| self.on(table)).collect::<Result<Vec<_>, _>>()?;
        let close_after = text.close_after.map(NonZeroUsize::get);
        let moves = |act: &Act| matches!(act, Act::Permit(_) | Act::Release);
        if began && streams && close_after != Some(1) && !on.iter().flat_map(|on| &on.acts).any(moves) {
            let words =
                "this would wait for ever: the agent is held by a gate, and no step or release under on lets it go";
            return Err(source.mistake(text.call.span(), words));
        }
        let (title, version, token) = (text.title, text.version, text.token);
        let params = text.params.into_inner();
        Ok(Call { agent, title, method, operation, binding, params, version, token, take, on, close_after })
    }

    fn raw(&mut self, table: Table<'_>) -> Result<Raw, Mistake> {
        let source = self.source;
        let text: RawText = source.read(table)?;
        let agent = self.agent(text.to)?;
        self.names(&text.raw)?;
        let method = text.method.map_or(Ok("POST".to_owned()), |method| {
            let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
            if known.contains(&method.get_ref().as_str()) {
                return Ok(method.into_inner());
            }
            let words = format!("{} is no HTTP method{}", method.get_ref(), hint(method.get_ref(), &known));
            Err(source.mistake(method.span(), words))
        })?;
        let path = match text.path {
            None => "/a2a/jsonrpc".to_owned(),
            Some(path) if path.get_ref().starts_with('/') => {
                self.names(&path)?;
                path.into_inner()
            }
            Some(path) => return Err(source.mistake(path.span(), "a path begins with /")),
        };
        let headers = match text.headers {
            None => vec![
                ("Content-Type".to_owned(), media::JSON.to_owned()),
                ("A2A-Version".to_owned(), media::VERSION.to_owned()),
            ],
            Some(headers) => headers.iter().map(|header| self.header(header)).collect::<Result<_, _>>()?,
        };
        self.begin(&agent);
        let take = self.take(text.take)?;
        Ok(Raw { agent, title: text.title, method, path, headers, body: text.raw.into_inner(), take })
    }

    fn header(&self, header: &Spanned<String>) -> Result<(String, String), Mistake> {
        let wrong = |words: &str| self.source.mistake(header.span(), words);
        let (name, value) = header.get_ref().split_once(':').ok_or_else(|| wrong("a header is \"Name: value\""))?;
        let value = value.trim();
        let name_fits = HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !name_fits || HeaderValue::from_str(value).is_err() {
            return Err(wrong("a header is \"Name: value\", with nothing in it that HTTP does not take"));
        }
        if ["host", "content-length"].contains(&name.to_ascii_lowercase().as_str()) {
            return Err(wrong("Host and Content-Length are set by the client"));
        }
        self.names(header)?;
        Ok((name.to_owned(), value.to_owned()))
    }

    fn on(&mut self, mut table: Table<'_>) -> Result<On, Mistake> {
        let span = table.span();
        let acts = tables(&self.source, &table, "do")?;
        table.get_mut().remove("do");
        let text: OnText = self.source.read(table)?;
        let when = match (text.frame, text.state) {
            (Some(frame), None) => When::Frame(frame.get()),
            (None, Some(word)) => When::State(TaskState::from_word(word.get_ref()).ok_or_else(|| {
                let states = STATES.map(TaskState::word);
                let words = format!("{} is no state{}", word.get_ref(), hint(word.get_ref(), &states));
                self.source.mistake(word.span(), words)
            })?),
            _ => return Err(self.source.mistake(span, "on has either frame = N or state = \"TASK_STATE_…\"")),
        };
        let take = self.take(text.take)?;
        let acts = acts.into_iter().map(|table| self.act(table)).collect::<Result<_, _>>()?;
        Ok(On { when, take, acts })
    }

    fn agent(&self, name: Spanned<String>) -> Result<String, Mistake> {
        if self.known.agents.contains(&name.get_ref().as_str()) {
            return Ok(name.into_inner());
        }
        let words = format!("the set has no agent {}{}", name.get_ref(), hint(name.get_ref(), self.known.agents));
        Err(self.source.mistake(name.span(), words))
    }

    fn take(&mut self, take: TakeText) -> Result<Take, Mistake> {
        let mut read = Take::new();
        for (name, pointer) in take {
            if name == NEW_ID || !is_name(&name) {
                let words = format!("{name} cannot be taken: a name is small letters, digits and _, and not {NEW_ID}");
                return Err(self.source.mistake(pointer.span(), words));
            }
            if !pointer.get_ref().starts_with('/') {
                let words = "a JSON pointer is expected, such as \"/result/task/id\"";
                return Err(self.source.mistake(pointer.span(), words));
            }
            self.known.names.push(name.clone());
            read.insert(name, pointer.into_inner());
        }
        Ok(read)
    }

    fn names(&self, text: &Spanned<String>) -> Result<(), Mistake> {
        let taken = |name: &str| name == NEW_ID || self.known.names.iter().any(|known| known == name);
        let Some((at, name)) = names(text.get_ref()).find(|(_, name)| !taken(name)) else { return Ok(()) };
        let known: Vec<_> = self.known.names.iter().map(String::as_str).chain([NEW_ID]).collect();
        let words = format!("{{{name}}} was not taken by an earlier step{}", hint(name, &known));
        Err(self.source.mistake_in(self.source.line_within(text, at), words))
    }

    /// Params are a JSON object. Those of an operation over HTTP+JSON are its request, because path and query are
    /// made of them.
    fn params(&self, params: &Spanned<String>, request_of: Option<Method>) -> Result<(), Mistake> {
        self.names(params)?;
        if let Err(cause) = serde_json::from_str::<serde_json::Map<_, _>>(params.get_ref()) {
            let text = params.get_ref();
            let before = text.split_inclusive('\n').take(cause.line().saturating_sub(1)).map(str::len).sum();
            let line = self.source.line_within(params, before);
            return Err(self.source.mistake_in(line, format!("params are no JSON object: {cause}")));
        }
        let Some(operation) = request_of else { return Ok(()) };
        // A digit can stand for a name and for a number.
        let sample = fill_json(params.get_ref(), |_| Some("1".to_owned())).unwrap_or_default();
        let sample = serde_json::from_str::<&RawValue>(&sample).ok();
        match protocol::Call::read(operation, sample) {
            Ok(_) => Ok(()),
            Err(cause) => {
                let words = format!("params are no request of {}: {cause}; raw makes any request", operation.name());
                Err(self.source.mistake(params.span(), words))
            }
        }
    }

    fn gate(&mut self, agent: String, line: usize) -> Result<(), Mistake> {
        if let Some(held) = self.known.held.as_ref().filter(|held| !held.begun) {
            let words =
                format!("the gate in line {} holds nothing yet: a message to {} comes first", held.line, held.agent);
            return Err(self.source.mistake_in(line, words));
        }
        self.known.held = Some(Held { agent, line, begun: false, permits: 0, open: false });
        Ok(())
    }

    /// A message goes to an agent. Whether it starts a turn that is held.
    fn begin(&mut self, agent: &str) -> bool {
        match &mut self.known.held {
            Some(held) if held.agent == agent && !held.begun => {
                held.begun = true;
                true
            }
            _ => false,
        }
    }

    fn held(&mut self, span: std::ops::Range<usize>) -> Result<&mut Held, Mistake> {
        let words = "step, wait and release need a gate before them, and a message to the agent that it holds";
        let mistake = self.source.mistake(span, words);
        self.known.held.as_mut().filter(|held| held.begun).ok_or(mistake)
    }
}

/// Whether a request says that it does not wait. Params that cannot be read say nothing.
fn returns_immediately(params: &str) -> bool {
    let params: serde_json::Value = serde_json::from_str(params).unwrap_or_default();
    params.pointer("/configuration/returnImmediately") == Some(&serde_json::Value::Bool(true))
}
