//! Sending a message whose reply may get lost, so that nothing is done twice (DECISIONS O11).
//!
//! A message that nobody took is sent again as it is, with the same messageId. When it may have been taken, the agent is
//! asked for the task that it became. Where there is none, only a message whose work may be done twice is sent again;
//! for any other one the planner stops, for it cannot know whether the message is still on its way.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use client::{ClientError, Reply};
use protocol::call::{ListTasksRequest, SendMessageConfiguration, SendMessageRequest};
use protocol::push::TaskPushNotificationConfig;
use protocol::{ContextId, Message, MessageId, Task, TaskId};

use crate::agents::Agent;
use crate::answers::Answer;
use crate::journal::Entry;
use crate::{Failure, Planner};

/// The skills whose work changes nothing outside their agent: doing it twice costs time, and nothing else.
const REPEATABLE: [&str; 2] = ["run-tests", "review-diff"];

/// A piece of work that is delegated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    /// Its name in the journal.
    pub step: &'a str,
    /// The skill that it needs.
    pub skill: &'a str,
    /// Whether a message about it may be sent again when nobody knows what became of it.
    pub repeatable: bool,
    /// Whether data is read from what it makes.
    pub reads_data: bool,
    /// Whether it takes long, so that the agent is asked to answer as soon as there is a task.
    pub long: bool,
    /// What the agent is answered when it asks.
    pub answers: &'a [Answer],
}

impl<'a> Work<'a> {
    /// The work of a skill, of which the job has one piece.
    pub(crate) fn of(skill: &'a str) -> Self {
        let repeatable = REPEATABLE.contains(&skill);
        Self { step: skill, skill, repeatable, reads_data: false, long: false, answers: &[] }
    }
}

/// How often anything is tried again.
pub(crate) const REPEATS: u32 = 3;

/// How often the task of a message is looked for that must not be sent again.
pub(crate) const LOOKS: u32 = 5;

/// How many tasks are read one by one that were listed without history.
const READS: usize = 20;

/// How much history of a task is asked for when a message is looked for. Some agents list none unless they are asked to.
const HISTORY: i32 = 100;

/// How many pages of tasks are looked through. The newest come first, so what was just sent is on the first of them.
const PAGES: usize = 20;

/// What a call that failed says about its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody took it.
    Untaken,
    /// It may have been taken, and another try may do better.
    Unknown,
    /// It may have been taken; the answer is one that another try would get too.
    Odd,
    /// The agent's own answer, or a request that could not be made.
    Settled,
}

pub(crate) fn fate(cause: &ClientError) -> Fate {
    match cause {
        ClientError::Unreachable { .. } | ClientError::TooSlow { what: "connecting", .. } => Fate::Untaken,
        ClientError::TooSlow { .. } | ClientError::Broken { .. } | ClientError::Cut { .. } => Fate::Unknown,
        ClientError::NotA2a { status: 408 | 429 | 502..=504, .. } => Fate::Unknown,
        ClientError::NotA2a { .. } => Fate::Odd,
        ClientError::NoCard { cause, .. } => fate(cause),
        ClientError::Url(_) | ClientError::Request(_) | ClientError::Remote(_) => Fate::Settled,
    }
}

/// Whether a call that only reads is worth another try.
pub(crate) fn may_pass(cause: &ClientError) -> bool {
    matches!(fate(cause), Fate::Untaken | Fate::Unknown)
}

/// The pause before the repeat with this number: it doubles, and up to half of it again is left to chance, so that
/// planners that met the same trouble do not come back at the same moment.
pub(crate) fn pause(repeat: u32) -> Duration {
    let base = 100u64 << repeat.min(6);
    // A hasher with keys of its own is chance enough for this.
    Duration::from_millis(base + RandomState::new().hash_one(repeat) % (base / 2))
}

/// Makes a call that only reads, and makes it again when that may help.
pub(crate) async fn patiently<T, F: Future<Output = Result<T, ClientError>>>(
    call: impl Fn() -> F,
) -> Result<T, ClientError> {
    let mut repeat = 0;
    loop {
        match call().await {
            Err(cause) if may_pass(&cause) && repeat < REPEATS => {}
            read => return read,
        }
        tokio::time::sleep(pause(repeat)).await;
        repeat += 1;
    }
}

impl Planner {
    /// Sends a message about work, at most once where that matters, and keeps in the journal what is sent and what was
    /// answered. What the journal has already is neither sent nor asked again.
    pub(crate) async fn deliver(
        &self,
        agent: &Agent,
        work: Work<'_>,
        title: &str,
        message: Message,
    ) -> Result<Reply, Failure> {
        let (message, killed) = match self.past(work.step, |entry| matches!(entry, Entry::Sent { .. })) {
            Some(Entry::Sent { agent: name, url, message, .. }) => {
                if (name.as_str(), url.as_str()) != (&agent.name, agent.connection.url()) {
                    let (was, is) =
                        (format!("{name} at {url}"), format!("{} at {}", agent.name, agent.connection.url()));
                    return Err(Failure::Moved { step: work.step.to_owned(), was, is });
                }
                if let Some(reply) = self.past_reply(work.step) {
                    return Ok(reply);
                }
                (message, true)
            }
            _ => {
                let (name, url) = (agent.name.clone(), agent.connection.url().to_owned());
                self.keep(&Entry::Sent { step: work.step.to_owned(), agent: name, url, message: message.clone() })?;
                (message, false)
            }
        };
        let open = (agent.name.clone(), message.message_id.clone());
        self.book().open.push(open.clone());
        let reply = self.sent(agent, work, title, message, killed).await?;
        self.book().open.retain(|known| *known != open);
        self.keep(&Entry::of(work.step, &reply))?;
        Ok(reply)
    }

    /// Sends a message until it is answered, or its task is found. When the planner was killed after it had written the
    /// message down, the agent is asked before anything is sent.
    async fn sent(
        &self,
        agent: &Agent,
        work: Work<'_>,
        title: &str,
        message: Message,
        killed: bool,
    ) -> Result<Reply, Failure> {
        let mut repeat = 0;
        let mut lost = killed.then_some(ClientError::Broken {
            origin: agent.name.clone(),
            why: "the planner was stopped before it heard an answer".to_owned(),
        });
        loop {
            let sent = match lost.take() {
                Some(cause) => Err(cause),
                None => agent.connection.send(title, self.request(agent, work, message.clone())).await,
            };
            let cause = match sent {
                Ok(Reply::Task(task)) => {
                    self.is_the_one(agent, message.task_id.as_ref(), message.context_id.as_ref(), &task)?;
                    return Ok(Reply::Task(task));
                }
                // A proxy, or this loop, may have brought an answer twice, and the second one came too late.
                Ok(Reply::Error(error)) if message.task_id.is_some() => {
                    let task = self.look_for(agent, &message, REPEATS).await;
                    return Ok(task.map_or(Reply::Error(error), Reply::Task));
                }
                Ok(reply) => return Ok(reply),
                Err(cause) => cause,
            };
            let fate = fate(&cause);
            if matches!(fate, Fate::Unknown | Fate::Odd) {
                self.say(format!("  the reply is lost: {cause}"));
                let repeatable = work.repeatable || (killed && repeat == 0 && self.sends_again);
                if let Some(task) = self.look_for(agent, &message, if repeatable { 1 } else { LOOKS }).await {
                    self.say(format!("  {} has the message: it is task {}", agent.name, task.id));
                    return Ok(Reply::Task(task));
                }
                if !repeatable {
                    let (agent, message) = (agent.name.clone(), message.message_id);
                    return Err(Failure::Unknowable { agent, message, cause: Box::new(cause) });
                }
            }
            if repeat == REPEATS || matches!(fate, Fate::Odd | Fate::Settled) {
                return Err(self.failure(&agent.name, cause));
            }
            tokio::time::sleep(pause(repeat)).await;
            repeat += 1;
            let why = if fate == Fate::Untaken { format!(": {cause}") } else { String::new() };
            self.say(format!("  sends the same message again, {repeat} of {REPEATS}{why}"));
        }
    }

    /// Whether the agent is asked to answer as soon as there is a task.
    pub(crate) fn returns_early(&self, work: Work<'_>) -> bool {
        work.long || self.returns_immediately
    }

    /// A message with how it is to be answered: by default as the agent likes.
    fn request(&self, agent: &Agent, work: Work<'_>, message: Message) -> SendMessageRequest {
        let webhook = self.webhook.as_ref().filter(|_| agent.posts());
        let return_immediately = self.returns_early(work);
        let mut request = SendMessageRequest::new(message);
        if return_immediately || webhook.is_some() {
            let task_push_notification_config = webhook.map(|url| TaskPushNotificationConfig {
                tenant: None,
                id: None,
                task_id: None,
                url: url.clone(),
                token: None,
                authentication: None,
            });
            let others = SendMessageConfiguration::default();
            request.configuration =
                Some(SendMessageConfiguration { return_immediately, task_push_notification_config, ..others });
        }
        request
    }

    /// The task that a message has become. It is looked for a few times, for the message may still be on its way; none
    /// means that it was not seen, and not that it was not taken.
    async fn look_for(&self, agent: &Agent, message: &Message, looks: u32) -> Option<Arc<Task>> {
        for repeat in 0..looks {
            tokio::time::sleep(pause(repeat)).await;
            let found = match &message.task_id {
                Some(task) => Ok(Some(task.clone())),
                None => self.listed(agent, message).await,
            };
            let read = match found {
                Ok(Some(task)) => agent.connection.get(&format!("GetTask on {}", agent.name), &task, None).await,
                Ok(None) => continue,
                Err(cause) if may_pass(&cause) => continue,
                Err(_) => return None,
            };
            match read {
                Ok(task) if has(&task, &message.message_id) => return Some(task),
                Ok(_) => {}
                Err(cause) if may_pass(&cause) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// The id of the task in whose history the message stands.
    async fn listed(&self, agent: &Agent, message: &Message) -> Result<Option<TaskId>, ClientError> {
        let (mut page_token, mut reads) = (None, READS);
        for _ in 0..PAGES {
            let request = ListTasksRequest {
                tenant: None,
                context_id: message.context_id.clone(),
                status: None,
                page_size: None,
                page_token: page_token.take(),
                history_length: Some(HISTORY),
                status_timestamp_after: None,
                include_artifacts: None,
            };
            let page = agent.connection.list(&format!("ListTasks on {}", agent.name), request).await?;
            if let Some(task) = page.tasks.iter().find(|task| has(task, &message.message_id)) {
                return Ok(Some(task.id.clone()));
            }
            // Some lists hold no history, whatever is asked.
            for task in page.tasks.iter().filter(|task| task.history.is_empty()) {
                let Some(left) = reads.checked_sub(1) else { break };
                reads = left;
                let read = agent.connection.get(&format!("GetTask on {}", agent.name), &task.id, Some(HISTORY)).await?;
                if has(&read, &message.message_id) {
                    return Ok(Some(read.id.clone()));
                }
            }
            if page.next_page_token.is_empty() {
                break;
            }
            page_token = Some(page.next_page_token);
        }
        Ok(None)
    }

    /// Checks that an answer holds the task that was asked for, in its context.
    pub(crate) fn is_the_one(
        &self,
        agent: &Agent,
        id: Option<&TaskId>,
        context: Option<&ContextId>,
        task: &Task,
    ) -> Result<(), Failure> {
        let other = |asked: String, answered: String| {
            Err(Failure::Another { agent: agent.name.clone(), asked, answered, made: self.book().made.clone() })
        };
        if let Some(id) = id.filter(|id| **id != task.id) {
            return other(format!("task {id}"), format!("task {}", task.id));
        }
        match (context, &task.context_id) {
            (Some(asked), Some(answered)) if asked != answered => {
                other(format!("context {asked}"), format!("context {answered}"))
            }
            _ => Ok(()),
        }
    }
}

fn has(task: &Task, message: &MessageId) -> bool {
    task.history.iter().any(|said| said.message_id == *message)
}
