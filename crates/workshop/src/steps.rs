//! Runs the steps of one scenario.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use capture::{Recorder, transcript};
use client::{Binding, Connection, Events, Http, Limits, Opened, Wanted};
use planner::record::Record;
use planner::{Operator, Order, Planner};
use protocol::{Ids, TaskId};
use serde_json::Value;
use serde_json::value::RawValue;
use server::Gate;

use crate::agents::{Agents, Live};
use crate::placeholder::{NEW_ID, fill, fill_json};
use crate::record::Recording;
use crate::scenario::{Act, Call, On, Raw, Scenario, Step, Take, When};
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
            Step::Raw(raw) => self.raw(raw).await,
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
            Step::Act(act) => self.act(act, None).await,
        }
    }

    /// Does what may also be done between two frames; `events` is the stream that is open.
    async fn act(&mut self, act: &Act, events: Option<&mut Events>) -> Result<(), Words> {
        match act {
            Act::Permit(count) => self.gate()?.step(*count),
            Act::Release => self.gate()?.release(),
            Act::Wait(count) => {
                let gate = self.gate()?;
                // When both are true the count is there.
                tokio::select! {
                    biased;
                    () = gate.wait(*count) => {}
                    () = gate.idle() => return Err(format!("the turn ended before it had said {count} events")),
                }
            }
            Act::Approve { agent, title, task } => {
                let url = self.agent(agent)?.rpc_url();
                let task = TaskId::new(self.fill(task)?).map_err(words)?;
                if !self.http.approve(title, &url, &task).await.map_err(words)? {
                    return Err(format!("task {task} waits for no approval"));
                }
            }
            Act::Note(note) => events.ok_or("no stream is open")?.note(note),
        }
        Ok(())
    }

    fn agent(&self, name: &str) -> Result<&'a Live, Words> {
        self.agents.get(name).ok_or_else(|| format!("the set has no agent {name}"))
    }

    fn gate(&self) -> Result<&Arc<Gate>, Words> {
        self.gate.as_ref().ok_or_else(|| "no agent is gated".to_owned())
    }

    fn value(&self, name: &str) -> Option<String> {
        if name == NEW_ID { Some(self.ids.next()) } else { self.names.get(name).cloned() }
    }

    fn fill(&self, text: &str) -> Result<String, Words> {
        fill(text, |name| self.value(name)).map_err(untaken)
    }

    async fn call(&mut self, call: &Call) -> Result<(), Words> {
        let agent = self.agent(&call.agent)?;
        let params = fill_json(&call.params, |name| self.value(name)).map_err(untaken)?;
        let params: &RawValue = serde_json::from_str(&params).map_err(words)?;
        let url = if call.binding == Binding::JsonRpc { agent.rpc_url() } else { agent.rest_url() };
        let token = agent.token.map(str::to_owned);
        let connection = Connection::sharing(self.http.clone(), url, call.binding, token, self.calls.clone());
        let wanted = Wanted { version: call.version, token: call.token };
        let streams = call.operation.is_some_and(protocol::Method::streams);
        let opened = match (call.binding, call.operation) {
            (Binding::HttpJson, Some(operation)) => {
                let request = protocol::Call::read(operation, Some(params)).map_err(words)?;
                connection.open_with(&call.title, &request, wanted).await
            }
            _ => connection.open_rpc(&call.title, &call.method, &params, streams, wanted).await,
        };
        let opened = opened.map_err(words)?;
        if opened.is_event_stream() {
            let events = connection.follow(opened).await.map_err(words)?;
            return self.follow(call, events).await;
        }
        let answer = self.whole(opened, &call.take).await?;
        if call.on.is_empty() && call.close_after.is_none() {
            return Ok(());
        }
        Err(format!("a stream was expected, the answer is {}", String::from_utf8_lossy(&answer)))
    }

    async fn raw(&mut self, raw: &Raw) -> Result<(), Words> {
        let url = format!("http://{}{}", self.agent(&raw.agent)?.origin, self.fill(&raw.path)?);
        let mut headers = Vec::new();
        for (name, value) in &raw.headers {
            headers.push((name.as_str(), self.fill(value)?));
        }
        let body = Some(self.fill(&raw.body)?.into_bytes()).filter(|body| !body.is_empty());
        let opened = self.http.open(&raw.title, &raw.method, &url, &headers, body).await.map_err(words)?;
        self.whole(opened, &raw.take).await.map(|_| ())
    }

    /// Reads an answer that is no stream.
    async fn whole(&mut self, opened: Opened, take: &Take) -> Result<Vec<u8>, Words> {
        let body = opened.whole().await.map_err(words)?.body;
        if !take.is_empty() {
            self.take(take, &serde_json::from_slice(&body).map_err(words)?)?;
        }
        Ok(body)
    }

    async fn follow(&mut self, call: &Call, mut events: Events) -> Result<(), Words> {
        let mut count = 0;
        let mut came = vec![false; call.on.len()];
        while let Some(data) = events.next_data().await.map_err(words)? {
            count += 1;
            let frame: Value = serde_json::from_str(&data).map_err(words)?;
            if count == 1 {
                self.take(&call.take, &frame)?;
            }
            for (on, came) in call.on.iter().zip(&mut came) {
                if !fits(on.when, count, &frame) {
                    continue;
                }
                *came = true;
                self.take(&on.take, &frame)?;
                for act in &on.acts {
                    self.act(act, Some(&mut events)).await?;
                }
            }
            if call.close_after == Some(count) {
                break;
            }
        }
        if let Some(wanted) = call.close_after.filter(|wanted| *wanted > count) {
            return Err(format!("the stream ended after {count} frames; {wanted} were expected"));
        }
        match call.on.iter().zip(came).find(|(_, came)| !came) {
            Some((On { when: When::Frame(frame), .. }, _)) => Err(format!("frame {frame} did not come, only {count}")),
            Some((On { when: When::State(state), .. }, _)) => Err(format!("no frame showed {}", state.word())),
            None => Ok(()),
        }
    }

    fn take(&mut self, take: &Take, from: &Value) -> Result<(), Words> {
        for (name, pointer) in take {
            let value = match from.pointer(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => return Err(format!("nothing stands at {pointer} in the answer {from}")),
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

fn untaken(name: &str) -> Words {
    format!("{{{name}}} has no value: the frame from which it is taken did not come")
}

/// Whether a frame is one that the scenario waits for.
fn fits(when: When, count: usize, frame: &Value) -> bool {
    match when {
        When::Frame(wanted) => wanted == count,
        When::State(wanted) => {
            let result = frame.get("result").unwrap_or(frame);
            let status = ["/task/status/state", "/statusUpdate/status/state"];
            let state = status.iter().find_map(|pointer| result.pointer(pointer)).and_then(Value::as_str);
            state == Some(wanted.word())
        }
    }
}
