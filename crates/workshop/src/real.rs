//! Agents that work, in the place of those that recite.

mod staging;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use code_reviewer::CodeReviewer;
use code_reviewer::real::{Config, Reviewer};
use server::Agent;
pub use staging::{Staging, staging};
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
    let project: Project = payments_api(folder)?.parse().map_err(|mistake: test_runner::real::Mistake| mistake.0)?;
    let runner = Runner::new(vec![project], &folder.join("runs"), 1).map_err(|mistake| mistake.0)?;
    Ok(Arc::new(TestRunner::working(runner)))
}

/// A code-reviewer that reads real diffs of payments-api, in the files of its branches. The error says what is missing.
pub fn code_reviewer(folder: &Path) -> Result<Arc<dyn Agent>, String> {
    let project = payments_api(folder)?.parse().map_err(|mistake: code_reviewer::real::Mistake| mistake.0)?;
    let config = Config { projects: vec![project], ..Config::default() };
    Ok(Arc::new(CodeReviewer::working(Reviewer::new(config).map_err(|mistake| mistake.0)?)))
}

/// The diff that a commit of payments-api is against `main`; none when there is no such commit.
pub fn diff(folder: &Path, commit: &str) -> Result<Option<Vec<u8>>, String> {
    of_repository(folder, &["diff", "--end-of-options", "main", commit, "--"])
}

/// What git says of the repository of payments-api, which is unpacked in the folder the first time; none when it fails.
fn of_repository(folder: &Path, arguments: &[&str]) -> Result<Option<Vec<u8>>, String> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = git.output().map_err(|cause| format!("git: {cause}"))?;
        Ok::<_, String>(output.status.success().then_some(output.stdout))
    };
    if !folder.join("payments-api.git").is_dir() {
        payments_api(folder)?;
        git(&["clone", "--quiet", "--mirror", "payments-api.bundle", "payments-api.git"])?;
    }
    git(&[&["--git-dir", "payments-api.git"], arguments].concat())
}

/// The project as the agents are told of it, `NAME=PATH`; its bundle is written into the folder.
fn payments_api(folder: &Path) -> Result<String, String> {
    let bundle = folder.join("payments-api.bundle");
    std::fs::write(&bundle, PAYMENTS_API).map_err(|cause| format!("{}: {cause}", bundle.display()))?;
    Ok(format!("payments-api={}", bundle.display()))
}
