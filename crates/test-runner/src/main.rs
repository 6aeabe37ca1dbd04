//! The kit's test-runner on a port of its own.
//!
//! ```text
//! $ cargo run -p test-runner
//! INFO test-runner recites the story payments-api; it runs no real tests
//! test-runner is ready: http://localhost:41241/.well-known/agent-card.json
//!
//! $ cargo run -p test-runner -- --project payments-api=../payments-api
//! INFO test-runner runs the real tests of payments-api, inside bwrap
//! ```
//!
//! Ctrl-C ends it. `--help` lists the flags; `--story FILE` lets it recite something else, `--project NAME=PATH` and
//! `--projects FILE` let it work.

#[cfg(feature = "real")]
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use script::{Script, stories};
use server::{Dedupe, cli};
use test_runner::TestRunner;
#[cfg(feature = "real")]
use test_runner::real::{self, Project, Runner};

/// The kit's test-runner on a port of its own.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    shared: cli::Flags,
    /// What it recites: a story file, or the name of the story that is built in; none, when it is to work.
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
    /// A project whose suites it runs: a git repository or a git bundle. Its suite is told from its files. Repeatable.
    #[arg(long = "project", value_name = "NAME=PATH")]
    project: Vec<Project>,
    /// A file with projects and their suites.
    #[arg(long, value_name = "FILE")]
    projects: Option<PathBuf>,
    /// How many suites run at once; the rest wait in their order.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    jobs: usize,
    /// Runs suites without bwrap even where it is installed.
    #[arg(long)]
    no_sandbox: bool,
    /// Where runs have their folders. Without it: a2a/test-runner in the user's cache directory.
    #[arg(long, value_name = "FOLDER")]
    work_dir: Option<PathBuf>,
}

#[cfg(feature = "real")]
impl Real {
    /// The agent that works, if there is something to work on.
    fn agent(self) -> Result<Option<TestRunner>, real::Mistake> {
        let mut projects = self.project;
        if let Some(path) = &self.projects {
            projects.extend(real::open(path)?);
        }
        if projects.is_empty() {
            return Ok(None);
        }
        let base = self.work_dir.unwrap_or_else(real::work_dir);
        let runner = Runner::new(projects, &base, self.jobs)?;
        Ok(Some(TestRunner::working(if self.no_sandbox { runner.without_sandbox() } else { runner })))
    }
}

fn agent(story: &str, #[cfg(feature = "real")] real: Real) -> Result<TestRunner, String> {
    #[cfg(feature = "real")]
    if let Some(agent) = real.agent().map_err(|mistake| mistake.to_string())? {
        return Ok(agent);
    }
    if story == "none" {
        return Err(
            "without a story there must be something to test: --project NAME=PATH, or --projects FILE".to_owned()
        );
    }
    Script::open(test_runner::NAME, story).map(TestRunner::reciting).map_err(|mistake| mistake.to_string())
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
        port: test_runner::PORT,
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
