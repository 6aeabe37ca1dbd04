//! The agent that the hammer is meant for, as a process of its own: `cargo run --release -p testing --example
//! hammer-agent -- --listen 127.0.0.1:0 --allow-local-webhooks`. The flags are those of every agent here.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use server::{Dedupe, cli};
use testing::hammer;

/// Does what each message plans.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    shared: cli::Flags,
}

fn main() -> ExitCode {
    hammer::hide_planned_panics();
    let defaults = cli::Defaults {
        port: 41290,
        token: None,
        dedupe: Dedupe::Unanswered,
        signing_key: None,
        needs_operators: false,
        notice: "hammer-agent does what each message plans".to_owned(),
    };
    cli::run(&Arguments::parse().shared, defaults, Arc::new(hammer::agent()))
}
