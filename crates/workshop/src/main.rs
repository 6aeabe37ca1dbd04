//! The bench on the command line: `cargo run` ships a commit with three agents inside this process.

use std::process::ExitCode;

use clap::Parser;
use workshop::commands::{Arguments, execute};

fn main() -> ExitCode {
    execute(Arguments::parse())
}
