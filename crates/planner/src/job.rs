//! `planner ship` and `planner run`: jobs on the command line, with their journal and their operator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use client::Http;
use client::live::LiveIds;
use planner::plan::{Finished, Inputs, PlanError};
use planner::{Failure, Journal, JournalError, Operator, Order, Plan, Planner};
use protocol::{Content, Part, TaskState};
use serde::{Deserialize, Serialize};

use crate::approvals::token_in;
use crate::{out, read, seconds, within};

#[derive(clap::Args)]
pub struct Ship {
    /// The commit to test.
    #[arg(long, value_name = "C", default_value = "a41d7c3", conflicts_with = "resume")]
    commit: String,
    /// The diff to review; - reads standard input. Without it, the diff of the story.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    diff: Option<PathBuf>,
    /// The build to deploy.
    #[arg(long, value_name = "B", default_value = "2026.10.06-1", conflicts_with = "resume")]
    build: String,
    #[command(flatten)]
    with: With,
}

#[derive(clap::Args)]
pub struct Run {
    /// The plan, a TOML file. A resumed job has that of its journal.
    #[arg(value_name = "PLAN.toml", required_unless_present = "resume")]
    plan: Option<PathBuf>,
    /// What the plan needs, as text. Repeatable.
    #[arg(long = "set", value_name = "NAME=TEXT", value_parser = pair, conflicts_with = "resume")]
    texts: Vec<(String, String)>,
    /// What the plan needs, out of a file; - reads standard input. Repeatable.
    #[arg(long = "file", value_name = "NAME=FILE", value_parser = pair, conflicts_with = "resume")]
    files: Vec<(String, String)>,
    /// Only check the plan.
    #[arg(long, conflicts_with = "resume")]
    check: bool,
    #[command(flatten)]
    with: With,
}

/// What every job can be told.
#[derive(clap::Args)]
struct With {
    /// An agent's URL. Repeatable.
    #[arg(long = "agent", value_name = "URL")]
    agents: Vec<String>,
    /// The branch to name when an agent asks for a base.
    #[arg(long, value_name = "BRANCH", default_value = "main", conflicts_with = "resume")]
    base: String,
    /// An agent's bearer token. Repeatable. It is kept in no journal.
    #[arg(long = "token", value_name = "NAME=T", value_parser = pair)]
    tokens: Vec<(String, String)>,
    /// Keys to trust, as a JSON Web Key Set: then only agents are taken whose card one of them has signed.
    #[arg(long, value_name = "FILE|URL")]
    card_keys: Option<String>,
    #[command(flatten)]
    channel: Channel,
    /// Have every agent answer as soon as there is a task, and follow it.
    #[arg(long)]
    return_immediately: bool,
    /// A webhook for what happens to the tasks of agents that post to any.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// How long to follow one task before giving up, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "600")]
    patience: Duration,
    #[command(flatten)]
    kept: Kept,
}

/// Who approves.
#[derive(clap::Args)]
pub struct Channel {
    /// Who approves: the planner's own operator, the person at the terminal, or somebody else.
    #[arg(long, value_enum, default_value_t = Who::Auto)]
    operator: Who,
    /// A program that decides, run by the shell: it reads {"agent", "taskId", "text"} as JSON; exit code 0 approves, 1
    /// refuses, and any other one leaves it to somebody else. The first line that it prints is who decided.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["operator", "operator_webhook"])]
    operator_command: Option<String>,
    /// A web service that decides: it is posted the same JSON and answers {"approved": true, "by": "NAME"}.
    #[arg(long, value_name = "URL", conflicts_with = "operator")]
    operator_webhook: Option<String>,
    /// The file with the token of an operator of the agent of this name: approvals there are sent with it. Repeatable.
    #[arg(long = "operator-token-file", value_name = "NAME=FILE", value_parser = pair)]
    operator_tokens: Vec<(String, String)>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Who {
    Auto,
    Ask,
    Wait,
}

impl Channel {
    fn operator(self) -> Operator {
        match (self.operator_command, self.operator_webhook, self.operator) {
            (Some(command), ..) => Operator::Command(command),
            (None, Some(url), _) => Operator::Webhook(url),
            (None, None, Who::Auto) => Operator::Auto,
            (None, None, Who::Ask) => Operator::Ask,
            (None, None, Who::Wait) => Operator::Wait,
        }
    }
}

/// The journal of a job.
#[derive(clap::Args)]
pub struct Kept {
    /// Keeps what is sent and answered in a file, before it is acted upon, so that the job can go on when the planner was
    /// killed.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Goes on with the job of the journal, with the same tasks. Its agents are those of the journal, unless they are
    /// named; its tokens have to be given again.
    #[arg(long, requires = "journal")]
    resume: bool,
    /// When the planner was killed while it sent a message, and the agent shows no task of it: send it again. Only for
    /// agents that know a message which they have had; any other one may do the work twice.
    #[arg(long, requires = "resume")]
    send_again: bool,
}

/// What stands in the first line of a journal.
#[derive(Serialize, Deserialize)]
struct Job {
    agents: Vec<String>,
    base: String,
    plan: String,
    inputs: BTreeMap<String, Part>,
    /// Whether its cards have to be signed by a key that is trusted.
    #[serde(default)]
    signed: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected, such as deployer=dpl_test_7c1e4b")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Ships. True when the build is live.
pub async fn ship(ship: Ship, http: Http, limit: Option<Duration>) -> Result<bool, String> {
    let diff = ship.diff.as_deref().map(read).transpose()?.unwrap_or_else(|| Order::default().diff);
    let inputs = Order { commit: ship.commit, diff, build: ship.build }.inputs();
    done(ship.with, planner::SHIP.to_owned(), inputs, http, limit).await
}

/// Does what a plan says. True when every step was done and the last one's task completed.
pub async fn run(run: Run, http: Http, limit: Option<Duration>) -> Result<bool, String> {
    let mut source = String::new();
    if let Some(path) = &run.plan {
        source = String::from_utf8(read(path)?).map_err(|_| format!("{}: the plan is not UTF-8", path.display()))?;
        let named = |wrong: PlanError| wrong.to_string().replace("line ", &format!("{}, line ", path.display()));
        let plan = Plan::read(&source).map_err(named)?;
        if run.check {
            let needs = if plan.inputs().is_empty() { "nothing".to_owned() } else { plan.inputs().join(", ") };
            out(&format!("{} is a plan; it needs {needs}", path.display()));
            return Ok(true);
        }
    }
    let mut inputs: Inputs = run.texts.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    for (name, file) in run.files {
        inputs.insert(name, read(file.as_ref())?);
    }
    done(run.with, source, inputs, http, limit).await
}

/// Does a job, from its beginning or on from its journal.
async fn done(with: With, plan: String, inputs: Inputs, http: Http, limit: Option<Duration>) -> Result<bool, String> {
    let inputs = inputs.into_iter().map(|(name, bytes)| (name, Part::raw(bytes, "input", "application/octet-stream")));
    if with.agents.is_empty() && !with.kept.resume {
        return Err("which agents? --agent URL names one, and can be repeated".to_owned());
    }
    let signed = with.card_keys.is_some();
    let mut job = Job { agents: with.agents.clone(), base: with.base, plan, inputs: inputs.collect(), signed };
    let card_keys = match &with.card_keys {
        Some(place) => Some(crate::keys(&http, "--card-keys", place).await?),
        None => None,
    };
    let operators = with.channel.operator_tokens.iter();
    let operators = operators.map(|(name, file)| Ok((name.clone(), token_in(file.as_ref())?)));
    let operators = operators.collect::<Result<Vec<_>, String>>()?;
    let mut planner = Planner::new(http, Arc::new(LiveIds), Arc::new(out), with.channel.operator());
    for (name, token) in operators {
        planner = planner.with_operator_token(name, token);
    }
    if let Some(path) = &with.kept.journal {
        let wrong = |cause: JournalError| cause.to_string();
        let journal = if with.kept.resume {
            let (journal, kept) = Journal::resume(path).map_err(wrong)?;
            job = serde_json::from_value(kept).map_err(|cause| format!("{}: {cause}", path.display()))?;
            if job.signed && !signed {
                return Err("this job trusts certain keys; --card-keys has to name them again".to_owned());
            }
            if !with.agents.is_empty() {
                job.agents = with.agents;
            }
            journal
        } else {
            Journal::begin(path, serde_json::to_value(&job).map_err(|cause| cause.to_string())?).map_err(wrong)?
        };
        planner = planner.with_journal(journal);
    }
    let plan = Plan::read(&job.plan).map_err(|wrong| wrong.to_string())?;
    let inputs = job.inputs.into_iter().filter_map(|(name, part)| match part.content {
        Content::Raw(bytes) => Some((name, bytes.to_vec())),
        _ => None,
    });
    let inputs: Inputs = inputs.collect();
    if let Some(card_keys) = card_keys {
        planner = planner.trusting(card_keys);
    }
    let planner = planner.returning_immediately(with.return_immediately).with_webhook(with.webhook);
    let mut planner = planner.with_base(job.base).with_patience(with.patience).sending_again(with.kept.send_again);
    let tokens = with.tokens;
    let token = |agent: &str| tokens.iter().find(|(name, _)| name == agent).map(|(_, token)| token.clone());
    let work = async {
        for agent in &job.agents {
            planner.meet(agent, token).await?;
        }
        planner.run(&plan, &inputs).await
    };
    let done = match within(limit, work).await {
        Ok(done) => done,
        Err(limit) => Err(planner.give_up(limit).await),
    };
    let live = Finished::Done(Some(TaskState::Completed));
    done.map(|ended| ended == live).map_err(|failure: Failure| failure.to_string())
}
