//! One of the hammer's clients: it makes one visit after the other, each drawn at random, and holds what it sees
//! against what may be.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use protocol::error::RemoteError;
use protocol::{StreamResponse, Task, TaskId};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::follow::{Follower, each_message_once};
use super::hooks::{Hook, Hooks, Manner};
use super::plan::{self, Plan, Step};
use super::wire::{Next, Open, Target};
use super::{Tally, Wrong};
use crate::talk::Binding;

/// How many ended tasks a client looks at again later.
const REMEMBERED: usize = 64;

/// One client.
pub struct Client {
    pub(super) target: Target,
    pub(super) random: StdRng,
    pub(super) hooks: Arc<Hooks>,
    pub(super) tally: Arc<Tally>,
    /// The agent may have dropped tasks that ended.
    pub(super) forgets: bool,
    /// Its name begins its messages' ids.
    pub(super) name: String,
    pub(super) drawn: u64,
    /// Ended tasks as they were.
    pub(super) ended: VecDeque<Task>,
    /// The context of its next tasks, and those of them that have ended.
    pub(super) context: (String, Vec<TaskId>),
}

/// A message that is about to be sent.
pub(super) struct Letter {
    pub id: String,
    pub params: Value,
}

pub(super) fn reason(error: &RemoteError) -> String {
    error.reason().unwrap_or_else(|| error.to_string())
}

pub(super) fn sleep(micros: u64) -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_micros(micros))
}

impl Client {
    pub(super) fn binding(&mut self) -> Binding {
        Binding::BOTH[self.random.random_range(0..2)]
    }

    /// A name that no client has used yet.
    pub(super) fn fresh(&mut self) -> String {
        self.drawn += 1;
        format!("{}-{}", self.name, self.drawn)
    }

    /// A plan that ends like this.
    pub(super) fn plan(&mut self, end: &[Step]) -> Plan {
        let name = self.fresh();
        Plan::draw(name, &mut self.random, end)
    }

    /// A message with a plan, for a new task of this client's context or for one that is there.
    pub(super) fn letter(&self, plan: &Plan, task: Option<&TaskId>) -> Letter {
        let id = format!("m-{}", plan.name);
        let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": plan.text()}]});
        match task {
            Some(task) => message["taskId"] = json!(task),
            None => message["contextId"] = json!(self.context.0),
        }
        Letter { id, params: json!({"message": message}) }
    }

    /// Adds a webhook to some of the messages.
    pub(super) fn maybe_hooked(&mut self, letter: &mut Letter) -> Option<Hook> {
        let manner = match self.random.random_range(0..400u16) {
            0..40 => Manner::Takes,
            40..50 => Manner::TakesItsTime(Duration::from_millis(self.random.random_range(1..8))),
            50..54 => Manner::FailsAtFirst(1),
            54..58 => Manner::Refuses,
            58..61 => Manner::IsDown,
            61..63 => Manner::Hangs,
            _ => return None,
        };
        let (number, _) = (self.random.random::<u64>(), self.tally.count("webhooks"));
        let hook = self.hooks.open(number, manner);
        letter.params["configuration"] = json!({"taskPushNotificationConfig": {"url": hook.url()}});
        Some(hook)
    }

    /// Sends a message and waits for what comes.
    pub(super) async fn send(&mut self, params: &Value) -> Result<Result<StreamResponse, RemoteError>, Wrong> {
        let binding = self.binding();
        let answer = self.target.call(binding, "SendMessage", params).await?;
        self.tally.refused("SendMessage", &answer)?;
        Ok(answer)
    }

    /// Sends a message that must make a task.
    pub(super) async fn task_of(&mut self, params: &Value) -> Result<Task, Wrong> {
        match self.send(params).await? {
            Ok(StreamResponse::Task(task)) => {
                each_message_once(&task)?;
                Ok((*task).clone())
            }
            other => Err(format!("a task was to come, but not {other:?}").into()),
        }
    }

    pub(super) async fn get(&mut self, id: &TaskId) -> Result<Task, Wrong> {
        let binding = self.binding();
        let answer = self.target.call::<Task>(binding, "GetTask", &json!({"id": id})).await?;
        self.tally.refused("GetTask", &answer)?;
        let task = answer.map_err(|error| format!("GetTask of {id}: {error}"))?;
        each_message_once(&task)?;
        Ok(task)
    }

    /// Opens the stream of a message; it must be one.
    pub(super) async fn stream_of(&mut self, params: &Value) -> Result<Open, Wrong> {
        let binding = self.binding();
        let opened = self.target.open(binding, "SendStreamingMessage", params, None).await?;
        opened.map_err(|error| format!("SendStreamingMessage: {error}").into())
    }

    /// Subscribes; nothing when the task has ended.
    pub(super) async fn subscribe(&mut self, id: &TaskId, last_id: Option<u64>) -> Result<Option<Open>, Wrong> {
        let binding = self.binding();
        match self.target.open(binding, "SubscribeToTask", &json!({"id": id}), last_id).await? {
            Ok(open) => Ok(Some(open)),
            Err(error) if reason(&error) == "UNSUPPORTED_OPERATION" => Ok(None),
            Err(error) => Err(format!("SubscribeToTask of {id}: {error}").into()),
        }
    }

    /// The task has ended: reads it, and holds it against the plans in it. It will be looked at again.
    pub(super) async fn the_end(&mut self, id: &TaskId) -> Result<Task, Wrong> {
        let task = self.get(id).await?;
        if !task.status.state.is_terminal() {
            return Err(format!("task {id} was to have ended, but is {}", task.status.state).into());
        }
        plan::check(&task).map_err(|wrong| format!("task {id}, {}: {wrong}", task.status.state))?;
        self.tally.count("tasks ended");
        if task.context_id.as_ref().is_some_and(|context| context.as_str() == self.context.0) {
            self.context.1.push(task.id.clone());
        }
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back(task.clone());
        Ok(task)
    }

    /// Looks again at a task that ended before: it must be what it was.
    pub(super) async fn looks_back(&mut self) -> Result<(), Wrong> {
        if self.ended.is_empty() {
            return Ok(());
        }
        let before = self.ended[self.random.random_range(0..self.ended.len())].clone();
        let binding = self.binding();
        let answer = self.target.call::<Task>(binding, "GetTask", &json!({"id": before.id})).await?;
        match answer {
            Ok(now) if now == before => Ok(()),
            Ok(now) => Err(format!("after its end {before:?} became {now:?}").into()),
            Err(error) if self.forgets && reason(&error) == "TASK_NOT_FOUND" => {
                self.ended.retain(|task| task.id != before.id);
                Ok(())
            }
            Err(error) => Err(format!("GetTask of {}, which has ended: {error}", before.id).into()),
        }
    }
}

/// Reads a stream to its end, or until a frame that satisfies.
pub(super) async fn read_until(
    open: &mut Open,
    follower: &mut Follower,
    mut enough: impl FnMut(&Follower) -> bool,
) -> Result<bool, Wrong> {
    loop {
        match open.next().await? {
            Next::Frame(frame) => {
                follower.take(frame)?;
                if enough(follower) {
                    return Ok(false);
                }
            }
            Next::End => return Ok(true),
            Next::Refused(error) => return Err(format!("a stream broke off: {error}").into()),
        }
    }
}

/// Reads a subscription to its end, which must be that of the task.
pub(super) async fn read_to_the_end(mut open: Open) -> Result<Follower, Wrong> {
    let mut follower = Follower::new();
    read_until(&mut open, &mut follower, |_| false).await?;
    match follower.state() {
        Some(state) if state.is_terminal() => Ok(follower),
        state => Err(format!("a subscription ended in {state:?}").into()),
    }
}
