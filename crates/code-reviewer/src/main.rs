//! The kit's code-reviewer on a port of its own.
//!
//! ```text
//! $ cargo run -p code-reviewer
//! INFO code-reviewer recites the story payments-api; it reads no real diffs
//! code-reviewer is ready: http://localhost:41242/.well-known/agent-card.json
//! ```
//!
//! Ctrl-C ends it. `--help` lists the flags; `--story FILE` lets it recite something else.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use code_reviewer::CodeReviewer;
use script::{Script, stories};
use server::{Dedupe, cli};

/// The kit's code-reviewer on a port of its own.
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
    let agent = match Script::open(code_reviewer::NAME, &arguments.story) {
        Ok(script) => CodeReviewer::reciting(script),
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
    cli::run(&arguments.shared, defaults, Arc::new(agent))
}

#[test]
fn the_flags_do_not_contradict_each_other() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}
