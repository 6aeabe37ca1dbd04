//! The planner on the command line.
//!
//! ```text
//! $ planner ship --agent http://localhost:41241 --agent http://localhost:41242 --agent http://localhost:41243 \
//!     --token deployer=dpl_test_7c1e4b
//! card test-runner: skills run-tests; JSONRPC at http://localhost:41241/a2a/jsonrpc
//! …
//! deploy: TASK_STATE_COMPLETED
//! ```

mod approvals;
mod calls;
mod job;
mod review;
mod words;

use std::future::Future;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use client::{Http, Limits};
use protocol::Dial;
use signature::Key;

/// The client agent of the workshop: ships a commit with three agents, or makes one call to one agent.
///
/// Exit codes: 0 done, 1 ran and stopped, 2 could not run.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// How long all of it may take, in seconds. Without it: as long as the work takes.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// How long one call may take until its answer begins, in seconds. Without it: 30, and a message as long as its work
    /// takes.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    call_limit: Option<Duration>,
    /// How long a stream may be quiet, in seconds.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    idle: Duration,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tests a commit, reviews its diff and deploys its build, with whichever agents have the skills.
    Ship(Box<job::Ship>),
    /// Does what a plan says, with whichever agents have the skills.
    Run(Box<job::Run>),
    /// Prints what the planner does about each kind of reply, as the functions say that decide it.
    Explain,
    /// Lets a code-reviewer read a diff and prints what it finds. Exit code 1 when a finding is high.
    Review(review::Review),
    #[command(flatten)]
    Operator(approvals::Operator),
    #[command(flatten)]
    Call(calls::Call),
}

/// A time limit: more than no time, and no more than a clock can hold.
fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "a number of seconds is expected, such as 2.5")?;
    let sane = number > 0.0 && number <= 1e9;
    if sane { Ok(Duration::from_secs_f64(number)) } else { Err("more than 0 seconds are expected".to_owned()) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (answer, whole) = (arguments.call_limit, Limits::default());
    let limits = Limits { idle: arguments.idle, answer, look: answer.unwrap_or(whole.look), ..whole };
    let http = Http::new(Dial::default(), limits, None);
    let limit = arguments.timeout;
    let done = match arguments.command {
        Command::Ship(ship) => job::ship(*ship, http, limit).await,
        Command::Run(run) => job::run(*run, http, limit).await,
        Command::Explain => {
            out(planner::explain::table().trim_end());
            Ok(true)
        }
        Command::Review(review) => within(limit, review::run(review, http))
            .await
            .unwrap_or_else(|limit| Err(format!("it took longer than {} s and is given up", limit.as_secs_f32()))),
        Command::Operator(operator) => within(limit, approvals::run(operator, http))
            .await
            .unwrap_or_else(|limit| Err(format!("it took longer than {} s and is given up", limit.as_secs_f32()))),
        Command::Call(call) => within(limit, calls::run(call, http))
            .await
            .unwrap_or_else(|limit| Err(format!("it took longer than {} s and is given up", limit.as_secs_f32()))),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{}", planner::shown::lines(&why));
            ExitCode::from(2)
        }
    }
}

/// Waits for something, at most so long. The error is the limit.
async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Result<T, Duration> {
    match limit {
        None => Ok(work.await),
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| limit),
    }
}

/// Writes to standard output. A reader that has gone away is no reason to stop half way.
fn out(line: &str) {
    let _ = writeln!(std::io::stdout(), "{}", planner::shown::lines(line));
}

/// The keys of a set at a URL or in a file. The error names the flag.
async fn keys(http: &Http, flag: &str, place: &str) -> Result<Vec<Key>, String> {
    if place.starts_with("http://") || place.starts_with("https://") {
        return http.public_keys(place).await.map_err(|why| format!("{flag} {place}: {why}"));
    }
    signature::jwks::read(&read(Path::new(place))?).map_err(|cause| format!("{flag} {place}: {cause}"))
}

/// Reads a file, or standard input for a dash. The error says which and why.
fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut content).map_err(|cause| format!("standard input: {cause}"))?;
        return Ok(content);
    }
    std::fs::read(file).map_err(|cause| format!("{}: {cause}", file.display()))
}
