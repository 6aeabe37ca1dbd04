//! The commands, one file each.

mod agent;
mod check;
mod interop_agent;
mod list;
mod record;
mod rules;
mod run;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::record::{Recording, record_until};
use crate::set::Set;

/// The bench of the Agent2Agent workshop kit.
///
/// Exit codes: 0 done, 1 ran and differs or stopped, 2 could not run.
#[derive(Debug, Parser)]
#[command(name = "workshop", version)]
pub struct Arguments {
    /// Reads scenarios and stories from a folder instead of those that are built in.
    #[arg(long, global = true, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Bench(Bench),
    /// Serves an agent that is written as data.
    Agent(Box<agent::Agent>),
    /// Serves the agent that the public interop kit calls.
    InteropAgent(interop_agent::InteropAgent),
}

/// The commands of the bench itself.
#[derive(Debug, Subcommand)]
enum Bench {
    /// Starts the three agents and lets the planner ship a commit (the default).
    Run(run::Run),
    /// Writes the captures of scenarios.
    Record(record::Record),
    /// Records a set and compares it with its committed captures.
    Check(check::Check),
    /// Lists the scenarios with the questions they answer.
    List(list::List),
    /// Keeps the three agents up on the kit's ports.
    Serve(serve::Serve),
    /// Lists the rules by which a code-reviewer that works reads diffs.
    Rules(rules::Rules),
}

/// How a command ended.
pub enum End {
    /// It did what it should.
    Done,
    /// It ran, and differs or stopped.
    Differs,
}

/// Runs a command to its exit code.
pub fn execute(arguments: Arguments) -> ExitCode {
    let files = crate::files::Files::of(arguments.scenarios);
    match arguments.command.unwrap_or(Command::Bench(Bench::Run(run::Run::default()))) {
        // Brings its own log and runtime, as the agent binaries do.
        Command::Agent(command) => command.run(&files),
        Command::InteropAgent(command) => command.run(),
        Command::Bench(command) => {
            server::cli::logging(&std::env::var("RUST_LOG").unwrap_or_else(|_| "warn".to_owned()));
            match bench(command, &files) {
                Ok(End::Done) => ExitCode::SUCCESS,
                Ok(End::Differs) => ExitCode::from(1),
                Err(why) => {
                    eprintln!("{why}");
                    ExitCode::from(2)
                }
            }
        }
    }
}

/// Runs a command of the bench. The error is why it could not run.
#[tokio::main]
async fn bench(command: Bench, files: &crate::files::Files) -> Result<End, String> {
    match command {
        Bench::Run(command) => command.run(files).await,
        Bench::Record(command) => command.run(files).await,
        Bench::Check(command) => command.run(files).await,
        Bench::List(command) => command.run(files),
        Bench::Serve(command) => command.run(files).await,
        Bench::Rules(command) => command.run(),
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Records, until Ctrl-C.
async fn recorded(set: &Set, wanted: &[usize]) -> Result<Recording, String> {
    let signals = server::cli::Signals::new().map_err(words)?;
    record_until(signals.any(), set, wanted).await.map_err(words)
}

/// Writes files into a folder, which is made.
fn write(folder: &std::path::Path, recording: &Recording) -> Result<(), String> {
    let at = |path: &std::path::Path, cause: std::io::Error| format!("{}: {cause}", path.display());
    std::fs::create_dir_all(folder).map_err(|cause| at(folder, cause))?;
    for (name, bytes) in recording {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|cause| at(&path, cause))?;
    }
    Ok(())
}
