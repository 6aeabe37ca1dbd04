//! Who approves what the planner cannot: the channel to a person.

use std::io::{BufRead, Write};
use std::process::Stdio;

use client::Http;
use protocol::{Task, media};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How an approval comes about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// Approves by itself, as the kit's operator does: at the origin of the agent and for the task at hand, whatever
    /// the agent's text says (DECISIONS O19).
    Auto,
    /// Asks the person at the terminal. A no cancels the task.
    Ask,
    /// Somebody else will.
    Wait,
    /// Asks a program, run by the shell, which reads the question as JSON. Exit code 0 approves and 1 refuses; any other
    /// one leaves it to somebody else. The first line that it prints is who decided.
    Command(String),
    /// Asks a web service: the question is posted as JSON. `{"approved": true, "by": "NAME"}` is its answer; without
    /// `approved`, and when it does not answer, it is left to somebody else.
    Webhook(String),
}

/// What was decided, and who did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    pub approves: bool,
    pub by: String,
}

/// What a program or a web service is asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    agent: &'a str,
    task_id: &'a str,
    text: String,
}

impl Operator {
    /// What a recording says before the operator acts.
    pub(crate) fn note(&self) -> Option<&'static str> {
        (*self == Self::Auto).then_some("The operator approves the deploy, outside A2A.")
    }

    /// What the operator decides; `None` when somebody else will.
    pub(crate) async fn decide(&self, http: &Http, agent: &str, task: &Task) -> Option<Decided> {
        let text = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
        let question = Question { agent, task_id: task.id.as_str(), text };
        match self {
            Self::Wait => None,
            Self::Auto => Some(Decided { approves: true, by: "auto".to_owned() }),
            Self::Ask => Some(Decided { approves: ask(question.text).await, by: "the terminal".to_owned() }),
            Self::Command(command) => run(command, &question).await,
            Self::Webhook(url) => post(http, url, &question).await,
        }
    }
}

/// Asks at the terminal; anything but yes is no.
async fn ask(text: String) -> bool {
    let (answered, answer) = tokio::sync::oneshot::channel();
    // A thread of its own, so that a question that nobody answers does not keep the program from ending.
    std::thread::spawn(move || {
        let _ = write!(std::io::stderr(), "{}\nApprove? [y/N] ", crate::shown::lines(&text));
        let mut line = String::new();
        let _ = std::io::stdin().lock().read_line(&mut line);
        let _ = answered.send(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"));
    });
    answer.await.unwrap_or(false)
}

/// Asks a program. Nothing of the question stands on its command line: foreign text is no part of a shell's.
async fn run(command: &str, question: &Question<'_>) -> Option<Decided> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut asked = Command::new(shell);
    asked.args([flag, command]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut asked = asked.spawn().ok()?;
    let mut input = asked.stdin.take()?;
    let question = serde_json::to_vec(question).ok()?;
    // A program that does not read may close its end.
    let _ = input.write_all(&question).await;
    drop(input);
    let output = asked.wait_with_output().await.ok()?;
    let approves = match output.status.code() {
        Some(0) => true,
        Some(1) => false,
        _ => return None,
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    let by = printed.lines().map(str::trim).next().filter(|by| !by.is_empty()).unwrap_or(command);
    Some(Decided { approves, by: by.to_owned() })
}

/// Asks a web service.
async fn post(http: &Http, url: &str, question: &Question<'_>) -> Option<Decided> {
    #[derive(Deserialize)]
    struct Answer {
        approved: Option<bool>,
        by: Option<String>,
    }
    let headers = [("Content-Type", media::JSON.to_owned())];
    let body = serde_json::to_vec(question).ok()?;
    let answered = async { http.open("ask the operator", "POST", url, &headers, Some(body)).await?.whole().await };
    let answer = answered.await.ok().filter(|answer| answer.status == 200)?;
    let answer: Answer = serde_json::from_slice(&answer.body).ok()?;
    Some(Decided { approves: answer.approved?, by: answer.by.unwrap_or_else(|| url.to_owned()) })
}
