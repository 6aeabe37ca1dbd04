//! `planner review`: a diff to a code-reviewer, and its findings as compilers print them.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use client::live::LiveIds;
use client::{Binding, Connection, Http, Reply, choose};
use planner::shown;
use protocol::call::{SendMessageConfiguration, SendMessageRequest};
use protocol::{Content, Ids, Message, MessageId, Part, Role, Task, TaskState, Timestamps, media};
use serde::Deserialize;

use crate::{out, read};

/// How long the planner waits before it looks again at a task whose agent answered early.
const AGAIN: Duration = Duration::from_millis(500);

/// The flags of `planner review`.
#[derive(clap::Args)]
pub struct Review {
    /// The diff, such as that of `git diff`; - reads standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    diff: PathBuf,
    /// The branch to compare it with.
    #[arg(long, value_name = "BRANCH")]
    base: Option<String>,
    /// The project that it is of, by the name that the agent knows.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// The agent's URL, or that of its card.
    #[arg(long, value_name = "URL", default_value = "http://localhost:41242")]
    agent: String,
    /// The agent's bearer token.
    #[arg(long, value_name = "T")]
    token: Option<String>,
}

/// What the planner reads of a review.
#[derive(Deserialize)]
struct Found {
    findings: Vec<Finding>,
    #[serde(default)]
    notes: Vec<Note>,
}

#[derive(Deserialize)]
struct Finding {
    file: String,
    line: u64,
    severity: Severity,
    finding: String,
    rule: Option<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Low,
    Medium,
    High,
}

#[derive(Deserialize)]
struct Note {
    file: Option<String>,
    hunk: Option<u64>,
    note: String,
}

/// Reviews a diff. True when no finding is high. The error says why there is no review.
pub async fn run(review: Review, http: Http) -> Result<bool, String> {
    let diff = read(&review.diff)?;
    if diff.iter().all(u8::is_ascii_whitespace) {
        note("there is nothing to review");
        return Ok(true);
    }
    let card = http.card("read the agent card", &review.agent).await.map_err(|error| error.to_string())?;
    let (interface, binding) = choose(&card, Binding::SPOKEN).map_err(|none| none.to_string())?;
    let agent = Connection::new(http, &interface.url, binding, review.token.clone());
    let agent = agent.of_tenant(interface.tenant.clone()).activating(Timestamps::offered(&card).map(Timestamps::uri));

    let mut text = "Review this diff".to_owned();
    if let Some(project) = &review.project {
        text.push_str(&format!(" of {project}"));
    }
    if let Some(base) = &review.base {
        text.push_str(&format!(", base: {base}"));
    }
    let parts = vec![Part::text(text), Part::raw(diff, "change.diff", media::DIFF)];
    let mut task = send(&agent, parts, None).await?;
    let words = |task: &Task| task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
    if task.status.state == TaskState::InputRequired
        && let Some(base) = &review.base
        && words(&task).to_lowercase().contains("base branch")
    {
        task = send(&agent, vec![Part::text(base.clone())], Some(&task)).await?;
    }
    match task.status.state {
        TaskState::Completed => {}
        TaskState::InputRequired => {
            let (asks, there) = (words(&task), branches(&task));
            return Err(format!("{} asks: {asks}{there} (--base and --project answer)", card.name));
        }
        state => return Err(format!("task {} is {state}: {}", task.id, words(&task))),
    }
    let found = found(&task)?;
    for one in &found.findings {
        let rule = one.rule.as_ref().map(|rule| format!(" [{rule}]")).unwrap_or_default();
        let severity = match one.severity {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        };
        out(&shown::line(&format!("{}:{}: {severity}: {}{rule}", one.file, one.line, one.finding)));
    }
    for one in &found.notes {
        let file = one.file.as_ref().map(|file| format!("{file}: ")).unwrap_or_default();
        let hunk = one.hunk.map(|hunk| format!("hunk {hunk}: ")).unwrap_or_default();
        note(&format!("note: {file}{hunk}{}", one.note));
    }
    note(&words(&task));
    Ok(found.findings.iter().all(|one| one.severity != Severity::High))
}

/// The branches that a question names as its answers.
fn branches(task: &Task) -> String {
    #[derive(serde::Deserialize)]
    struct Branches {
        branches: Vec<String>,
    }
    let parts = task.status.message.iter().flat_map(|message| &message.parts);
    let branches = parts.filter_map(|part| match &part.content {
        Content::Data(json) => json.read::<Branches>().ok(),
        _ => None,
    });
    branches.map(|there| format!(" There are: {}.", there.branches.join(", "))).collect()
}

/// What is no finding goes to standard error, so that an editor may read the other.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", shown::line(line));
}

/// Sends a message and gives its task when that has ended, or asks.
async fn send(agent: &Connection, parts: Vec<Part>, task: Option<&Task>) -> Result<Task, String> {
    let id = MessageId::new(LiveIds.next()).map_err(|empty| empty.to_string())?;
    let mut message = Message::new(id, Role::User, parts);
    message.task_id = task.map(|task| task.id.clone());
    message.context_id = task.and_then(|task| task.context_id.clone());
    let mut request = SendMessageRequest::new(message);
    let accepted_output_modes = vec![media::JSON.into(), media::TEXT.into()];
    request.configuration = Some(SendMessageConfiguration { accepted_output_modes, ..Default::default() });
    let reply = agent.send("SendMessage", request).await.map_err(|error| error.to_string())?;
    let mut task = match reply {
        Reply::Task(task) => task,
        Reply::Message(message) => return Err(format!("the agent answers without a review: {}", message.text())),
        Reply::Error(error) => return Err(error.to_string()),
    };
    while !task.status.state.phase().settles() {
        tokio::time::sleep(AGAIN).await;
        task = agent.get("GetTask", &task.id, Some(0)).await.map_err(|error| error.to_string())?;
    }
    Ok(Task::clone(&task))
}

/// The review that a task made.
fn found(task: &Task) -> Result<Found, String> {
    let made = task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == "review");
    let data = made.into_iter().flat_map(|artifact| artifact.parts.iter()).find_map(|part| match &part.content {
        Content::Data(json) => Some(json),
        _ => None,
    });
    let data = data.ok_or("the task has no artifact review with data")?;
    data.read().map_err(|cause| format!("the review cannot be read: {cause}"))
}
