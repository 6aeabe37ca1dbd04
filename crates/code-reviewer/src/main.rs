//! The kit's code-reviewer on a port of its own.
//!
//! ```text
//! $ cargo run -p code-reviewer
//! INFO code-reviewer recites the story payments-api; it reads no real diffs
//! code-reviewer is ready: http://localhost:41242/.well-known/agent-card.json
//!
//! $ cargo run -p code-reviewer -- --project payments-api=../payments-api
//! INFO code-reviewer reads real diffs of payments-api in the files of their base, by 20 rules
//! ```
//!
//! Ctrl-C ends it. `--help` lists the flags; `--story FILE` lets it recite something else, `--project NAME=PATH`,
//! `--config FILE` and `--story none` let it work.

#[cfg(feature = "real")]
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use code_reviewer::CodeReviewer;
#[cfg(feature = "real")]
use code_reviewer::real::{Config, Mistake, Project, Reviewer};
use script::{Script, stories};
use server::{Dedupe, cli};

/// The kit's code-reviewer on a port of its own.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    shared: cli::Flags,
    /// What it recites: a story file, or the name of the story that is built in; none, when it is to work. Then it reads
    /// the hunks of diffs, with a project also the files around them.
    #[arg(long, value_name = "FILE", default_value = stories::DEFAULT)]
    story: String,
    #[cfg(feature = "real")]
    #[command(flatten)]
    real: Real,
}

/// Real work.
#[cfg(feature = "real")]
#[derive(clap::Args)]
struct Real {
    /// A project whose diffs it reads in the files of their base branch: a git repository or a git bundle. Repeatable.
    #[arg(long = "project", value_name = "NAME=PATH")]
    project: Vec<Project>,
    /// A file with projects, and with linters that write SARIF.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Clients that accept application/sarif+json get SARIF 2.1.0, and the card says so.
    #[arg(long)]
    sarif: bool,
}

#[cfg(feature = "real")]
impl Real {
    /// The agent that works, if it is to.
    fn agent(self, story: &str) -> Result<Option<CodeReviewer>, Mistake> {
        if self.project.is_empty() && self.config.is_none() && story != "none" {
            let words = "--sarif is for a reviewer that works: --project NAME=PATH, --config FILE or --story none";
            return if self.sarif { Err(Mistake(words.to_owned())) } else { Ok(None) };
        }
        let mut config = self.config.as_deref().map(Config::open).transpose()?.unwrap_or_default();
        config.projects.extend(self.project);
        let reviewer = Reviewer::new(config)?;
        Ok(Some(CodeReviewer::working(if self.sarif { reviewer.with_sarif() } else { reviewer })))
    }
}

fn agent(story: &str, #[cfg(feature = "real")] real: Real) -> Result<CodeReviewer, String> {
    #[cfg(feature = "real")]
    if let Some(agent) = real.agent(story).map_err(|mistake| mistake.to_string())? {
        return Ok(agent);
    }
    Script::open(code_reviewer::NAME, story).map(CodeReviewer::reciting).map_err(|mistake| mistake.to_string())
}

fn main() -> ExitCode {
    let Arguments {
        shared,
        story,
        #[cfg(feature = "real")]
        real,
    } = Arguments::parse();
    let agent = agent(
        &story,
        #[cfg(feature = "real")]
        real,
    );
    let agent = match agent {
        Ok(agent) => agent,
        Err(mistake) => {
            eprintln!("{mistake}");
            return ExitCode::from(2);
        }
    };
    let defaults = cli::Defaults {
        port: code_reviewer::PORT,
        token: None,
        dedupe: Dedupe::Unanswered,
        signing_key: None,
        needs_operators: false,
        notice: agent.notice(),
    };
    cli::run(&shared, defaults, Arc::new(agent))
}

#[test]
fn the_flags_do_not_contradict_each_other() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}
