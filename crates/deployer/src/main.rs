//! The kit's deployer on a port of its own. Callers show the bearer token `dpl_test_7c1e4b`, or the one of `--token`.
//!
//! ```text
//! $ cargo run -p deployer
//! INFO deployer recites the story payments-api; it deploys nothing
//! deployer is ready: http://localhost:41243/.well-known/agent-card.json
//! ```
//!
//! Ctrl-C ends it. `--help` lists the flags; `--story FILE` lets it recite something else.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use deployer::Deployer;
use script::{Script, stories};
use server::{Dedupe, cli};

/// The kit's deployer on a port of its own. Callers show the bearer token `dpl_test_7c1e4b`, or the one of `--token`.
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
    let agent = match Script::open(deployer::NAME, &arguments.story) {
        Ok(script) => Deployer::reciting(script),
        Err(mistake) => {
            eprintln!("{mistake}");
            return ExitCode::from(2);
        }
    };
    let defaults = cli::Defaults {
        port: deployer::PORT,
        token: Some(deployer::TOKEN),
        dedupe: Dedupe::Always,
        signing_key: Some(deployer::signing_key()),
        needs_operators: false,
        notice: agent.notice(),
    };
    cli::run(&arguments.shared, defaults, Arc::new(agent))
}

#[test]
fn the_flags_do_not_contradict_each_other() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}
