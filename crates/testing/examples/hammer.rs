//! Hammers a running hammer-agent: `cargo run --release -p testing --example hammer -- URL --seconds 60`. Exits with 1
//! when something was wrong. `scripts/hammer.sh` starts both.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use testing::hammer::Hammer;

/// Mixed traffic at random against a running agent, and what must hold whatever happens.
#[derive(Parser)]
struct Arguments {
    /// The agent's base, such as http://127.0.0.1:41290.
    url: String,
    /// How long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// What the clients draw from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many clients there are.
    #[arg(long, default_value_t = 24)]
    clients: usize,
    /// The agent's process, whose memory is looked at.
    #[arg(long)]
    process: Option<u32>,
    /// The agent may drop tasks that have ended.
    #[arg(long)]
    forgets: bool,
    /// By how many percent the agent's memory at the end may differ from that after five seconds.
    #[arg(long)]
    growth: Option<f64>,
}

// One thread: the hammer leaves the rest of the machine to the agent.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { url, seconds, seed, clients, process, forgets, growth } = Arguments::parse();
    let mut hammer = Hammer::new(&url, Duration::from_secs(seconds), seed);
    (hammer.clients, hammer.process, hammer.forgets) = (clients, process, forgets);
    let report = hammer.run().await;
    println!("{report}");
    let grown = match (growth, report.growth()) {
        (Some(limit), Some(growth)) => growth.abs() * 100.0 > limit,
        _ => false,
    };
    if grown {
        println!("WRONG  the memory changed by more than that");
    }
    if report.wrong.is_empty() && !grown { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
