//! The test-runner at work: real suites of real runners in real repositories, and what becomes of them when they end,
//! fail, crash, hang, are canceled, or lose their agent.

#![allow(clippy::unwrap_used)]

mod end;
mod kind;
mod place;
mod story;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use test_runner::TestRunner;
use test_runner::real::{Project, Runner};
use testing::{Served, send, serve, skip};

/// A git repository with a branch for each case.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=Test", "-c", "user.email=test@example.com"]);
    let output = git.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Repository {
    /// Each case is a branch of its own with these files.
    pub(crate) fn new(cases: &[(&str, &[(&str, String)])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet", "--initial-branch", "main"]);
        git(folder.path(), &["commit", "--quiet", "--allow-empty", "--message", "Nothing"]);
        for (branch, files) in cases {
            git(folder.path(), &["checkout", "--quiet", "-b", branch, "main"]);
            for (name, text) in *files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            git(folder.path(), &["add", "--all"]);
            git(folder.path(), &["commit", "--quiet", "--message", branch]);
        }
        git(folder.path(), &["checkout", "--quiet", "main"]);
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The working trees that git knows of, beside its own.
    pub(crate) fn worktrees(&self) -> usize {
        git(self.path(), &["worktree", "list"]).lines().count() - 1
    }
}

/// A working test-runner over one repository, and the folder of its runs.
pub(crate) struct Bench {
    pub(crate) served: Served,
    pub(crate) base: tempfile::TempDir,
}

/// Serves a test-runner with one suite. The command is split at spaces.
pub(crate) async fn bench(repository: &Repository, command: &str, seconds: u64) -> Bench {
    bench_in(repository, command, seconds, true).await
}

/// Serves a test-runner that uses `bwrap` where it is installed, or does not.
pub(crate) async fn bench_in(repository: &Repository, command: &str, seconds: u64, sandbox: bool) -> Bench {
    let base = tempfile::tempdir().unwrap();
    let projects = vec![project(repository, command, seconds)];
    let runner = Runner::new(projects, base.path(), 1).unwrap();
    let runner = if sandbox { runner } else { runner.without_sandbox() };
    Bench { served: serve(TestRunner::working(runner), |_| {}).await, base }
}

pub(crate) fn project(repository: &Repository, command: &str, seconds: u64) -> Project {
    let mut project: Project = format!("shop={}", repository.path().display()).parse().unwrap();
    let suite = &mut project.suites[0];
    suite.command = command.split_whitespace().map(str::to_owned).collect();
    suite.time_limit = std::time::Duration::from_secs(seconds);
    project
}

impl Bench {
    /// Runs the tests of a branch to their end.
    pub(crate) async fn test(&self, branch: &str) -> Value {
        let text = format!("Run the tests of shop at branch {branch}");
        let answer = self.served.call(testing::Binding::Rpc, "SendMessage", send(&text)).await;
        answer.result()["task"].clone()
    }

    /// Nothing is left of any run: no process, no folder.
    pub(crate) fn is_clean(&self) {
        assert_eq!(processes(self.base.path()), Vec::<String>::new());
        let folders = walk(self.base.path()).into_iter().filter(|path| path.to_string_lossy().contains("/run-"));
        assert_eq!(folders.count(), 0);
    }
}

pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.iter().flat_map(|path| walk(path)).chain(paths.clone()).collect()
}

/// The processes whose mark leads into a folder.
pub(crate) fn processes(base: &Path) -> Vec<String> {
    let base = fs::canonicalize(base).unwrap();
    let mark = format!("A2A_TEST_RUN={}", base.display());
    let ids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
        let ours = environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes()));
        ours.then(|| fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default().replace('\0', " "))
    });
    ids.filter(|command| !command.is_empty()).collect()
}

/// The state, the words of the status, the log, and the summary of a task.
pub(crate) fn outcome(task: &Value) -> (&str, &str, String, Option<&Value>) {
    let artifacts = || task["artifacts"].as_array().into_iter().flatten();
    let find = |id: &str| artifacts().find(|artifact| artifact["artifactId"] == id);
    let log = find("test-log").map(|log| testing::texts(log).concat()).unwrap_or_default();
    let summary = find("summary").map(|summary| &summary["parts"][0]["data"]);
    let words = task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    (task["status"]["state"].as_str().unwrap(), words, log, summary)
}

/// A Python with pytest, installed once.
pub(crate) fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let installed = PYTHON.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pytest");
        fs::create_dir_all(&folder).unwrap();
        let lock = fs::File::create(folder.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let python = folder.join("bin/python");
        let has_pytest = |python: &Path| {
            Command::new(python).args(["-c", "import pytest"]).output().is_ok_and(|output| output.status.success())
        };
        if !has_pytest(&python) {
            let _ = Command::new("python3").args(["-m", "venv"]).arg(&folder).output();
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pytest==9.2.0"];
            let _ = Command::new(&python).args(pip).output();
        }
        has_pytest(&python).then_some(python)
    });
    if installed.is_none() {
        skip("Python with venv and pip, which pytest is installed with, is not here");
    }
    installed.as_deref()
}

/// Whether a program can be run.
pub(crate) fn has(program: &str, arguments: &[&str]) -> bool {
    let there = Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success());
    if !there {
        skip(&format!("{program} {} does not run here", arguments.join(" ")));
    }
    there
}
