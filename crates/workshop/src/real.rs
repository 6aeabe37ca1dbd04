//! Agents that work, in the place of those that recite.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use server::Agent;
use test_runner::TestRunner;
use test_runner::real::{Project, Runner};

/// The project of the story, with its two commits.
const PAYMENTS_API: &[u8] = include_bytes!("../../../scenarios/payments-api.bundle");

/// A test-runner that runs the real tests of payments-api. It keeps the project and its runs in the folder. The error
/// says what is missing.
pub fn test_runner(folder: &Path) -> Result<Arc<dyn Agent>, String> {
    let works = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let mut missing = Vec::new();
    if !works("git", &["--version"]) {
        missing.push("git");
    }
    if !works("python3", &["--version"]) {
        missing.push("python3");
    } else if !works("python3", &["-c", "import pytest"]) {
        missing.push("pytest for python3 (python3 -m venv .venv && . .venv/bin/activate && pip install pytest)");
    }
    if !missing.is_empty() {
        return Err(format!("the tests of payments-api cannot be run here; missing: {}", missing.join(", ")));
    }
    let bundle = folder.join("payments-api.bundle");
    std::fs::write(&bundle, PAYMENTS_API).map_err(|cause| format!("{}: {cause}", bundle.display()))?;
    let project: Project = format!("payments-api={}", bundle.display())
        .parse()
        .map_err(|mistake: test_runner::real::Mistake| mistake.0)?;
    let runner = Runner::new(vec![project], &folder.join("runs"), 1).map_err(|mistake| mistake.0)?;
    Ok(Arc::new(TestRunner::working(runner)))
}
