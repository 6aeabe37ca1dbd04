//! The code-reviewer at work: real diffs, made by git and by hand, in the files of real repositories and without any;
//! what it asks, what it gives to whom, and what it makes of other tools.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod ask;
mod context;
mod form;
mod program;
mod story;
mod tools;

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use code_reviewer::CodeReviewer;
use code_reviewer::real::{Config, Reviewer};
use serde_json::{Value, json};
use testing::{Binding, Served, serve};

/// A git repository.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=Test", "-c", "user.email=test@example.com"]);
    let output = git.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Repository {
    /// A repository whose branch `main` has these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        git(repository.path(), &["init", "--quiet", "--initial-branch", "main"]);
        repository.commit(files);
        repository
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes files and commits them on the branch that is checked out.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        git(self.path(), &["add", "--all"]);
        git(self.path(), &["commit", "--quiet", "--allow-empty", "--message", "Change"]);
    }

    /// The diff that these files make against `main`.
    pub(crate) fn diff(&self, files: &[(&str, &str)]) -> String {
        git(self.path(), &["checkout", "--quiet", "-b", "side", "main"]);
        self.commit(files);
        let diff = git(self.path(), &["diff", "main", "side"]);
        git(self.path(), &["checkout", "--quiet", "main"]);
        git(self.path(), &["branch", "--quiet", "--delete", "--force", "side"]);
        diff
    }

    /// A branch at `main`.
    pub(crate) fn branch(&self, name: &str) {
        git(self.path(), &["branch", name, "main"]);
    }

    /// A configuration in which it is the project `shop`, with these tools.
    pub(crate) fn config(&self, more: &str) -> Config {
        let file = self.path().join(".git/review.toml");
        fs::write(&file, format!("[project.shop]\npath = \"..\"\n{more}")).unwrap();
        Config::open(&file).unwrap()
    }
}

/// Serves a reviewer.
pub(crate) async fn reviewer(config: Config) -> Served {
    serve(CodeReviewer::working(Reviewer::new(config).unwrap()), |_| {}).await
}

/// The params of a send with a diff.
pub(crate) fn with_diff(text: &str, diff: &str) -> Value {
    let mut message = testing::message(text);
    let raw = BASE64_STANDARD.encode(diff);
    let part = json!({"raw": raw, "filename": "change.diff", "mediaType": "text/x-diff"});
    message["parts"].as_array_mut().unwrap().push(part);
    json!({"message": message})
}

/// Sends a diff and gives the task.
pub(crate) async fn review(served: &Served, text: &str, diff: &str) -> Value {
    let answer = served.call(Binding::Rpc, "SendMessage", with_diff(text, diff)).await;
    answer.result()["task"].clone()
}

/// Answers the question of a task.
pub(crate) async fn say(served: &Served, task: &Value, text: &str) -> Value {
    let params = json!({"message": testing::to(&testing::id(task), text)});
    served.call(Binding::Rpc, "SendMessage", params).await.result()["task"].clone()
}

/// The state and the words of a task's status.
pub(crate) fn status(task: &Value) -> (&str, &str) {
    (testing::state(task), task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default())
}

/// The content of `review.json`.
pub(crate) fn content(task: &Value) -> &Value {
    assert_eq!(testing::state(task), "COMPLETED", "{task}");
    assert_eq!(task["artifacts"][0]["name"], "review.json");
    &task["artifacts"][0]["parts"][1]["data"]
}

/// The notes of a review, as its summary shows them.
pub(crate) fn notes(task: &Value) -> Vec<String> {
    let summary = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap();
    summary.lines().skip(1).map(str::to_owned).collect()
}

/// A change of one Python file that adds lines 2 and 3.
pub(crate) const BEFORE: &str = "def first():\n    return 1\n\n\ndef last():\n    return 2\n";
pub(crate) const AFTER: &str = "def first():\n    value = 2\n    return value\n\n\ndef last():\n    return 2\n";
