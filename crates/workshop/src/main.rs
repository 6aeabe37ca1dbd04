//! The bench on the command line: `cargo run` ships a commit with three agents inside this process.

use std::process::ExitCode;

use clap::Parser;
use workshop::commands::{Arguments, End, run};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    server::cli::logging(&std::env::var("RUST_LOG").unwrap_or_else(|_| "warn".to_owned()));
    match run(arguments).await {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Differs) => ExitCode::from(1),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
