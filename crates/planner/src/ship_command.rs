//! `planner ship`: the job on the command line, with its journal and its operator.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use client::Http;
use client::live::LiveIds;
use planner::{Failure, Journal, Operator, Order, Planner};
use protocol::{Content, Part, media};
use serde::{Deserialize, Serialize};

use crate::{out, read, seconds, within};

#[derive(clap::Args)]
pub struct Ship {
    /// An agent's URL. Repeatable.
    #[arg(long = "agent", value_name = "URL", required_unless_present = "resume")]
    agents: Vec<String>,
    /// The commit to test.
    #[arg(long, value_name = "C", default_value = "a41d7c3", conflicts_with = "resume")]
    commit: String,
    /// The diff to review; - reads standard input. Without it, the diff of the story.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    diff: Option<PathBuf>,
    /// The build to deploy.
    #[arg(long, value_name = "B", default_value = "2026.10.06-1", conflicts_with = "resume")]
    build: String,
    /// The branch to name when an agent asks for a base.
    #[arg(long, value_name = "BRANCH", default_value = "main", conflicts_with = "resume")]
    base: String,
    /// An agent's bearer token. Repeatable. It is kept in no journal.
    #[arg(long = "token", value_name = "NAME=T", value_parser = token)]
    tokens: Vec<(String, String)>,
    #[command(flatten)]
    channel: Channel,
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
    commit: String,
    diff: Part,
    build: String,
    base: String,
}

fn token(text: &str) -> Result<(String, String), String> {
    let (name, token) = text.split_once('=').ok_or("NAME=T is expected, such as deployer=dpl_test_7c1e4b")?;
    Ok((name.to_owned(), token.to_owned()))
}

/// The job, and the journal that it is kept in.
fn job(ship: &mut Ship) -> Result<(Job, Option<Journal>), String> {
    if let (Some(path), true) = (&ship.kept.journal, ship.kept.resume) {
        let (journal, job) = Journal::resume(path).map_err(|cause| cause.to_string())?;
        let mut job: Job = serde_json::from_value(job).map_err(|cause| format!("{}: {cause}", path.display()))?;
        if !ship.agents.is_empty() {
            job.agents = std::mem::take(&mut ship.agents);
        }
        return Ok((job, Some(journal)));
    }
    let diff = ship.diff.as_deref().map(read).transpose()?.unwrap_or_else(|| Order::default().diff);
    let [commit, build, base] = [&mut ship.commit, &mut ship.build, &mut ship.base].map(std::mem::take);
    let diff = Part::raw(diff, "refunds.diff", media::DIFF);
    let job = Job { agents: std::mem::take(&mut ship.agents), commit, diff, build, base };
    let kept = ship.kept.journal.as_deref().map(|path| {
        let first = serde_json::to_value(&job).map_err(|cause| cause.to_string())?;
        Journal::begin(path, first).map_err(|cause| cause.to_string())
    });
    Ok((job, kept.transpose()?))
}

/// Ships. True when the build is live.
pub async fn run(mut ship: Ship, http: Http, limit: Option<Duration>) -> Result<bool, String> {
    let (job, journal) = job(&mut ship)?;
    let Content::Raw(diff) = job.diff.content else { return Err("the journal's diff is none".to_owned()) };
    let order = Order { commit: job.commit, diff: diff.to_vec(), build: job.build };
    let planner = Planner::new(http, Arc::new(LiveIds), Arc::new(out), ship.channel.operator());
    let mut planner = planner.with_base(job.base).with_patience(ship.patience).sending_again(ship.kept.send_again);
    if let Some(journal) = journal {
        planner = planner.with_journal(journal);
    }
    let tokens = ship.tokens;
    let token = |agent: &str| tokens.iter().find(|(name, _)| name == agent).map(|(_, token)| token.clone());
    let shipped = async {
        for agent in &job.agents {
            planner.meet(agent, token).await?;
        }
        planner.ship(&order).await
    };
    let done = match within(limit, shipped).await {
        Ok(done) => done,
        Err(limit) => Err(planner.give_up(limit).await),
    };
    done.map(|ended| ended.is_live()).map_err(|failure: Failure| failure.to_string())
}
