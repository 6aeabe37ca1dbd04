//! Two test-runners on one PostgreSQL behind a proxy, shown and then killed: `scripts/replicas.sh [ROUNDS]`. Exits with 1
//! when something was wrong.

#![allow(clippy::unwrap_used, reason = "what cannot go on panics")]

use std::process::ExitCode;

use clap::Parser;
use testing::replicas::Replicas;

/// Two test-runners on one PostgreSQL behind a proxy: each serves every task; then one of them is killed in the middle of
/// a stream, again and again.
#[derive(Parser)]
struct Arguments {
    /// How often one is killed. 0: none is; all of it stays there to be called, until Ctrl-C.
    #[arg(default_value_t = 50)]
    rounds: usize,
    /// What is drawn from: which one is killed, and when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { rounds, seed } = Arguments::parse();
    let Some(mut replicas) = Replicas::start(100, seed).await else { return ExitCode::from(2) };
    println!("{}\n", replicas.tell());
    match replicas.show().await {
        Ok(said) => println!("{}\n", said.join("\n")),
        Err(wrong) => {
            println!("WRONG  {wrong}");
            return ExitCode::FAILURE;
        }
    }
    if rounds == 0 {
        println!("Ctrl-C ends it");
        tokio::signal::ctrl_c().await.unwrap();
        return ExitCode::SUCCESS;
    }
    let mut wrong = 0;
    for number in 0..rounds {
        match replicas.round(number).await {
            Ok(said) => println!("{:>3}  {said}", number + 1),
            Err(what) => {
                wrong += 1;
                println!("{:>3}  WRONG  {what}", number + 1);
            }
        }
    }
    match replicas.nothing_is_left().await {
        Ok(said) => println!("{said}"),
        Err(what) => {
            wrong += 1;
            println!("WRONG  {what}");
        }
    }
    println!("{rounds} rounds, {wrong} things wrong");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
