//! An agent on SQLite, killed under load: `scripts/crash.sh [TIMES]`. Exits with 1 when something was wrong.

#![allow(clippy::unwrap_used, reason = "what cannot go on panics")]

use std::process::ExitCode;

use clap::Parser;
use testing::crash::{Crash, Life};

/// An agent on SQLite, killed under load at random points, and what is there after each restart.
#[derive(Parser)]
struct Arguments {
    /// How often it is killed.
    #[arg(default_value_t = 100)]
    times: usize,
    /// What is drawn from: what the clients do, and when it is killed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { times, seed } = Arguments::parse();
    let program = std::env::current_exe().unwrap().with_file_name("hammer-agent");
    let mut crash = Crash::new(&program, seed);
    let (mut all, mut wrong) = (Life::default(), 0);
    for number in 1..=times {
        match crash.life().await {
            Ok(life) => {
                println!(
                    "{number:>3}  {:>4} tasks were told of, {:>2} of them open; {:>3} webhooks got {:>3} events afterwards",
                    life.tasks, life.open, life.hooks, life.sent_again
                );
                all.tasks += life.tasks;
                all.open += life.open;
                all.hooks += life.hooks;
                all.sent_again += life.sent_again;
            }
            Err(what) => {
                wrong += 1;
                println!("{number:>3}  WRONG  {what}");
            }
        }
    }
    println!(
        "killed {times} times, {wrong} things wrong: {} tasks, {} of them open; {} webhooks got {} events afterwards",
        all.tasks, all.open, all.hooks, all.sent_again
    );
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
