//! The kit's test-runner on a port of its own.
//!
//! ```text
//! $ cargo run -p test-runner
//! INFO test-runner recites the story payments-api; it runs no real tests
//! test-runner is ready: http://localhost:41241/.well-known/agent-card.json
//! ```
//!
//! Ctrl-C ends it. `--help` lists the flags; `--story FILE` lets it recite something else.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use script::{Script, stories};
use server::{Dedupe, cli};
use test_runner::TestRunner;

/// The kit's test-runner on a port of its own.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    shared: cli::Flags,
    /// What it recites: a story file, or the name of the story that is built in.
    #[arg(long, value_name = "FILE", default_value = stories::DEFAULT)]
    story: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let agent = match Script::open(test_runner::NAME, &arguments.story) {
        Ok(script) => TestRunner::reciting(script),
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
        notice: agent.notice(),
    };
    cli::run(&arguments.shared, defaults, Arc::new(agent))
}

#[test]
fn the_flags_do_not_contradict_each_other() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}
