//! Runs the steps of one scenario.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use capture::{Recorder, transcript};
use client::{Binding, Connection, Events, Http, Limits, Opened, Wanted};
use planner::record::Record;
use planner::{Operator, Order, Planner};
use protocol::{Ids, TaskId, media};
use serde_json::Value;
use serde_json::value::RawValue;
use server::Gate;

use crate::agents::{Agents, Live};
use crate::record::Recording;
use crate::scenario::{Call, NEW_ID, On, Scenario, Step, fill};
use crate::seeded::SeededIds;
use crate::webhooks::Receiver;

/// The client of one scenario: its own ids, its own count of calls, its own recording.
pub(crate) struct Client<'a> {
    scenario: &'a Scenario,
    agents: &'a Agents,
    receiver: &'a Receiver,
    /// Values taken from answers; they live as long as the set.
    names: &'a mut HashMap<String, String>,
    ids: Arc<SeededIds>,
    calls: Arc<AtomicU64>,
    http: Http,
    recorder: Recorder,
    gate: Option<Arc<Gate>>,
    /// Files that are no exchanges.
    texts: Recording,
}

/// What went wrong, in words.
type Words = String;

impl<'a> Client<'a> {
    pub fn new(
        scenario: &'a Scenario,
        agents: &'a Agents,
        receiver: &'a Receiver,
        names: &'a mut HashMap<String, String>,
    ) -> Self {
        let recorder = Recorder::new();
        receiver.record(recorder.clone());
        let http = Http::new(agents.dial.clone(), Limits::default(), Some(Arc::new(Record(recorder.clone()))));
        let ids = Arc::new(SeededIds::new(scenario.seed));
        let (calls, texts) = (Arc::default(), Recording::new());
        Self { scenario, agents, receiver, names, ids, calls, http, recorder, gate: None, texts }
    }

    /// The files of what was recorded.
    pub fn files(self) -> Recording {
        let mut files = self.texts;
        let name = &self.scenario.name;
        let capture = self.recorder.capture();
        if !capture.entries.is_empty() {
            files.insert(format!("{name}.http"), transcript::write(&capture).into_bytes());
        }
        if let Some(events) = transcript::events(&capture) {
            files.insert(format!("{name}.events.json"), events.into_bytes());
        }
        files
    }

    /// Runs one step.
    pub async fn step(&mut self, step: &Step) -> Result<(), Words> {
        match step {
            Step::Card { agent, title } => {
                let url = format!("http://{}", self.agent(agent)?.origin);
                self.http.card(title, &url).await.map(|_| ()).map_err(words)
            }
            Step::Call(call) => self.call(call).await,
            Step::Raw { agent, title, body } => {
                let url = self.agent(agent)?.rpc_url();
                let headers = [("Content-Type", media::JSON.to_owned()), ("A2A-Version", media::VERSION.to_owned())];
                let opened = self.http.open(title, "POST", &url, &headers, Some(body.clone().into_bytes()));
                opened.await.map_err(words)?.whole().await.map(|_| ()).map_err(words)
            }
            Step::Ship { agents, commit, build, base } => self.ship(agents, commit, build, base).await,
            Step::Signature { agent, forged } => self.signature(agent, forged).await,
            Step::Idle(agent) => {
                self.agent(agent)?.gate.idle().await;
                Ok(())
            }
            Step::Webhooks(count) => {
                self.receiver.wait(*count).await;
                Ok(())
            }
            Step::Gate(agent) => {
                let gate = self.agent(agent)?.gate.clone();
                gate.next();
                self.gate = Some(gate);
                Ok(())
            }
            Step::Wait(count) => {
                self.gate()?.wait(*count).await;
                Ok(())
            }
            Step::Permit(_) | Step::Release | Step::Approve { .. } | Step::Note(_) => self.in_stream(step, None).await,
        }
    }

    /// Runs one of the steps that may also stand between two frames.
    async fn in_stream(&mut self, step: &Step, events: Option<&mut Events>) -> Result<(), Words> {
        match (step, events) {
            (Step::Permit(count), _) => self.gate()?.step(*count),
            (Step::Release, _) => self.gate()?.release(),
            (Step::Approve { agent, title, task }, _) => {
                let url = self.agent(agent)?.rpc_url();
                let task = TaskId::new(self.fill(task)).map_err(words)?;
                if !self.http.approve(title, &url, &task).await.map_err(words)? {
                    return Err(format!("task {task} waits for no approval"));
                }
            }
            (Step::Note(note), Some(events)) => events.note(note),
            (other, Some(_)) => return self.boxed(other).await,
            (other, None) => return Err(format!("{other:?} cannot stand here")),
        }
        Ok(())
    }

    /// `step` and `in_stream` call each other.
    fn boxed<'b>(&'b mut self, step: &'b Step) -> Pin<Box<dyn Future<Output = Result<(), Words>> + Send + 'b>> {
        Box::pin(self.step(step))
    }

    fn agent(&self, name: &str) -> Result<&'a Live, Words> {
        self.agents.get(name).ok_or_else(|| format!("the set has no agent {name}"))
    }

    fn gate(&self) -> Result<&Arc<Gate>, Words> {
        self.gate.as_ref().ok_or_else(|| "no agent is gated".to_owned())
    }

    fn fill(&self, text: &str) -> String {
        fill(text, |name| match name {
            NEW_ID => Some(self.ids.next()),
            name => self.names.get(name).cloned(),
        })
    }

    async fn call(&mut self, call: &Call) -> Result<(), Words> {
        let agent = self.agent(&call.agent)?;
        let params = self.fill(&call.params);
        let params: &RawValue = serde_json::from_str(&params).map_err(words)?;
        let url = if call.binding == Binding::JsonRpc { agent.rpc_url() } else { agent.rest_url() };
        let token = agent.token.map(str::to_owned);
        let connection = Connection::sharing(self.http.clone(), url, call.binding, token, self.calls.clone());
        let wanted = Wanted { version: call.version, token: call.token };
        let streams = call.operation.is_some_and(protocol::Method::streams);
        let opened = match (call.binding, call.operation) {
            (Binding::HttpJson, Some(operation)) => {
                let request = protocol::Call::read(operation, Some(params)).map_err(words)?;
                connection.open(&call.title, &request).await
            }
            _ => connection.open_rpc(&call.title, &call.method, &params, streams, wanted).await,
        };
        let opened = opened.map_err(words)?;
        if opened.is_event_stream() {
            let events = connection.follow(opened).await.map_err(words)?;
            return self.follow(call, events).await;
        }
        self.answer(call, opened).await
    }

    async fn answer(&mut self, call: &Call, opened: Opened) -> Result<(), Words> {
        let answer = opened.whole().await.map_err(words)?;
        if call.take.is_empty() {
            return Ok(());
        }
        let body: Value = serde_json::from_slice(&answer.body).map_err(words)?;
        self.take(&call.take, &body)
    }

    async fn follow(&mut self, call: &Call, mut events: Events) -> Result<(), Words> {
        let mut count = 0;
        while let Some(data) = events.next_data().await.map_err(words)? {
            count += 1;
            let frame: Value = serde_json::from_str(&data).map_err(words)?;
            if count == 1 {
                self.take(&call.take, &frame)?;
            }
            for on in call.on.iter().filter(|on| fits(on, count, &frame)) {
                self.take(&on.take, &frame)?;
                for step in &on.steps {
                    self.in_stream(step, Some(&mut events)).await?;
                }
            }
            if call.close_after == Some(count) {
                return Ok(());
            }
        }
        match call.close_after {
            Some(wanted) => Err(format!("the stream ended after {count} frames; {wanted} were expected")),
            None => Ok(()),
        }
    }

    fn take(&mut self, take: &std::collections::BTreeMap<String, String>, from: &Value) -> Result<(), Words> {
        for (name, pointer) in take {
            let found = from.pointer(pointer);
            let value = match found {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => return Err(format!("the answer has nothing at {pointer}")),
                Some(other) => other.to_string(),
            };
            self.names.insert(name.clone(), value);
        }
        Ok(())
    }

    async fn ship(&mut self, agents: &[String], commit: &str, build: &str, base: &str) -> Result<(), Words> {
        let lines = Arc::new(Mutex::new(String::new()));
        let written = lines.clone();
        let log = Arc::new(move |line: &str| {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.push_str(line);
            written.push('\n');
        });
        let mut planner = Planner::new(self.http.clone(), self.ids.clone(), log, Operator::Auto).with_base(base);
        for name in agents {
            let agent = self.agent(name)?;
            let token = |_: &str| agent.token.map(str::to_owned);
            planner.meet(&format!("http://{}", agent.origin), token).await.map_err(words)?;
        }
        let order = Order { commit: commit.to_owned(), build: build.to_owned(), ..Order::default() };
        planner.ship(&order).await.map_err(words)?;
        let log = lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.texts.insert(format!("{}.log", self.scenario.name), log.into_bytes());
        Ok(())
    }

    async fn signature(&mut self, agent: &str, forged: &str) -> Result<(), Words> {
        let origin = format!("http://{}", self.agent(agent)?.origin);
        // The walk-through is a text of its own; reading the card is no exchange of it.
        let silent = Http::new(self.agents.dial.clone(), Limits::default(), None);
        let card = silent.card("", &origin).await.map_err(words)?;
        let text = crate::walkthrough::text(&card, &deployer::signing_key(), forged).map_err(words)?;
        self.texts.insert(format!("{}.txt", self.scenario.name), text.into_bytes());
        Ok(())
    }
}

fn words(error: impl std::fmt::Display) -> Words {
    error.to_string()
}

/// Whether a frame is one that the scenario waits for.
fn fits(on: &On, count: usize, frame: &Value) -> bool {
    let result = frame.get("result").unwrap_or(frame);
    let state = || {
        let status = ["/task/status/state", "/statusUpdate/status/state"];
        status.iter().find_map(|pointer| result.pointer(pointer)).and_then(Value::as_str)
    };
    on.frame == Some(count) || on.state.is_some_and(|wanted| state() == Some(wanted.word()))
}
