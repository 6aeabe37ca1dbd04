//! `planner approvals`, `planner approve` and `planner refuse`: an operator's part, on the command line.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use client::{Decision, Http, NotTaken, Waiting};
use planner::shown;
use protocol::{TaskId, Timestamp, media};

use crate::{out, read};

/// The variable that holds the operator's token where no file is named.
const TOKEN: &str = "A2A_OPERATOR_TOKEN";
/// How many characters of a task's id name it, at least.
const SHORTEST: usize = 4;

#[derive(clap::Subcommand)]
pub enum Operator {
    /// Lists what waits for an approval, longest first.
    Approvals {
        #[command(flatten)]
        to: To,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Approves what a task asks for. Exit code 1 when the agent does not take it.
    Approve {
        #[command(flatten)]
        to: To,
        /// The task, or the beginning of its id if no other one that waits begins so.
        task: String,
    },
    /// Refuses what a task asks for. Exit code 1 when the agent does not take it.
    Refuse {
        #[command(flatten)]
        to: To,
        /// The task, or the beginning of its id if no other one that waits begins so.
        task: String,
        /// Why, for whoever asked.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// At which agent, and as whom.
#[derive(clap::Args)]
pub struct To {
    /// The agent's URL, or that of its card.
    #[arg(long, value_name = "URL", default_value = "http://localhost:41243")]
    agent: String,
    /// The file with the operator's token; - reads standard input. Without it, the token is that of the environment
    /// variable A2A_OPERATOR_TOKEN, if it is set.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl To {
    fn token(&self) -> Result<Option<String>, String> {
        match &self.token_file {
            Some(file) => token_in(file).map(Some),
            None => match std::env::var(TOKEN) {
                Ok(text) if !text.trim().is_empty() => token(&text, TOKEN).map(Some),
                Ok(_) | Err(std::env::VarError::NotPresent) => Ok(None),
                Err(std::env::VarError::NotUnicode(_)) => Err(format!("{TOKEN} holds no token")),
            },
        }
    }

    fn url(&self) -> &str {
        self.agent.strip_suffix(media::CARD_PATH).unwrap_or(&self.agent)
    }

    /// The agent's words, and what to do.
    fn remedy(&self, not: &NotTaken, token: Option<&str>) -> String {
        let given = format!("--token-file FILE or {TOKEN} gives it");
        match (not.status, token) {
            (401, None) => format!("{}: operators have tokens here; {given}", self.agent),
            (401, Some(_)) => format!("{}: no operator has this token; {given}", self.agent),
            _ => format!("{}: {not}", self.agent),
        }
    }
}

/// The token in a file.
pub fn token_in(file: &Path) -> Result<String, String> {
    #[cfg(unix)]
    if let Ok(about) = std::fs::metadata(file) {
        use std::os::unix::fs::PermissionsExt;
        if about.is_file() && about.permissions().mode() & 0o077 != 0 {
            let shown = file.display();
            note(&format!("{shown}: others than its owner can read this token; `chmod 600 {shown}` mends it"));
        }
    }
    token(&String::from_utf8_lossy(&read(file)?), &file.display().to_string())
}

/// A text as a token. The error says where it is from, and nothing of what stands there.
fn token(text: &str, from: &str) -> Result<String, String> {
    let token = text.trim();
    if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(token.to_owned())
    } else {
        Err(format!("{from} holds no token: it is one word, as `deployer operator NAME` shows it"))
    }
}

/// Does what the operator wants. False when the agent does not take it. The error says why it could not be asked.
pub async fn run(operator: Operator, http: Http) -> Result<bool, String> {
    let (Operator::Approvals { to, .. } | Operator::Approve { to, .. } | Operator::Refuse { to, .. }) = &operator;
    let token = to.token()?;
    let token = token.as_deref();
    let listed = http.approvals("what waits", to.url(), token).await.map_err(|error| error.to_string())?;
    let listed = match listed {
        Ok(listed) => listed,
        Err(not) => return Ok(refused(&to.remedy(&not, token))),
    };
    let (given, reason) = match &operator {
        Operator::Approvals { json: true, .. } => {
            out(&serde_json::to_string_pretty(&listed).unwrap_or_default());
            return Ok(true);
        }
        Operator::Approvals { .. } => {
            out(&table(&listed.approvals, now()));
            return Ok(true);
        }
        Operator::Approve { task, .. } => (task, None),
        Operator::Refuse { task, reason, .. } => (task, Some(reason.as_str())),
    };
    let begins = |one: &&Waiting| {
        one.task_id.as_str() == given || (given.len() >= SHORTEST && one.task_id.as_str().starts_with(given.as_str()))
    };
    let found: Vec<&Waiting> = listed.approvals.iter().filter(begins).collect();
    let (task, since, what) = match found[..] {
        [one] => (one.task_id.clone(), one.since, what(one)),
        // The agent says what has become of it.
        [] => (TaskId::new(given.clone()).map_err(|empty| empty.to_string())?, None, String::new()),
        [..] => {
            let ids: Vec<&str> = found.iter().map(|one| one.task_id.as_str()).collect();
            return Err(format!("{given} is the beginning of several that wait: {}", ids.join(", ")));
        }
    };
    let decided = http.decide("the operator decides", to.url(), &task, &Decision { reason, since }, token).await;
    match decided.map_err(|error| error.to_string())? {
        Ok(()) => {
            let act = if reason.is_some() { "refused" } else { "approved" };
            let by = listed.operator.map(|by| format!(" by {by}")).unwrap_or_default();
            out(&shown::line(&format!("{act}{by}: {what} (task {task})")));
            Ok(true)
        }
        Err(NotTaken { status: 404, .. }) if reason.is_some() && listed.operator.is_none() => Ok(refused(&format!(
            "{}: this agent has no operators, so nobody can refuse; `planner cancel` ends a task",
            to.agent
        ))),
        Err(NotTaken { status: 404, .. }) => {
            Ok(refused(&format!("{}: no task {task} waits; `planner approvals` lists what does", to.agent)))
        }
        Err(not) => Ok(refused(&to.remedy(&not, token))),
    }
}

/// Says why the agent did not take it.
fn refused(why: &str) -> bool {
    note(why);
    false
}

fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", shown::line(line));
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// What is to be decided, in a few words.
fn what(waiting: &Waiting) -> String {
    let known = |name: &str| waiting.about.iter().find(|one| one.name == name).map(|one| one.value.as_str());
    match (known("build"), known("environment")) {
        (Some(build), Some(environment)) if known("action") == Some("rollback") => {
            format!("take {environment} back to build {build}")
        }
        (Some(build), Some(environment)) => format!("deploy build {build} to {environment}"),
        _ => waiting.text.clone().unwrap_or_default(),
    }
}

/// How long something has waited.
fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return "?".to_owned() };
    match (now.millis() - since.millis()).max(0) / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// What waits, a line each, in columns.
fn table(waiting: &[Waiting], now: Timestamp) -> String {
    if waiting.is_empty() {
        return "nothing waits".to_owned();
    }
    let head = ["TASK", "WAITS", "ASKED BY", "WHAT"].map(str::to_owned);
    let rows = waiting.iter().map(|one| {
        let not = if one.may_decide == Some(false) { " (not yours to decide)" } else { "" };
        let asker = one.asker.as_deref().unwrap_or("-");
        [one.task_id.as_str(), &age(one.since, now), asker, &format!("{}{not}", what(one))]
            .map(|cell| shown::line(cell).into_owned())
    });
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2)];
    let mut lines = String::new();
    for [task, age, asker, what] in &rows {
        let [first, second, third] = widths;
        let _ = writeln!(lines, "{task:first$}  {age:second$}  {asker:third$}  {what}");
    }
    lines.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_stands_in_columns_and_foreign_text_on_one_line() {
        let waiting: Vec<Waiting> = serde_json::from_value(serde_json::json!([
            {"taskId": "954267b7", "since": "2026-10-06T09:00:00Z", "asker": "carol", "text": "x", "mayDecide": false,
             "about": [{"name": "action", "value": "rollback"}, {"name": "build", "value": "7"},
                       {"name": "environment", "value": "staging"}]},
            {"taskId": "a", "since": "2026-10-06T10:59:30Z", "text": "Approve\n\u{1b}[2Jthis?"},
        ]))
        .unwrap();
        let table = table(&waiting, "2026-10-06T11:00:00Z".parse().unwrap());
        assert_eq!(
            table.lines().collect::<Vec<_>>(),
            [
                "TASK      WAITS  ASKED BY  WHAT",
                "954267b7  2 h    carol     take staging back to build 7 (not yours to decide)",
                "a         30 s   -         Approve\\n\\u{1b}[2Jthis?",
            ]
        );
        assert_eq!(super::table(&[], now()), "nothing waits");
    }

    #[test]
    fn a_token_is_one_word_and_is_not_shown_when_it_is_none() {
        assert_eq!(token(" abc\n", "F").as_deref(), Ok("abc"));
        for wrong in ["", " \n", "The token of ada, shown this once: s3cret", "ž"] {
            let words = token(wrong, "FILE").unwrap_err();
            assert!(words.starts_with("FILE holds no token") && !words.contains("s3cret"), "{words}");
        }
    }
}
