//! The two diffs of the story, made by git of the project, against the captures: findings, their number, and what the
//! planner decides.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use client::live::LiveIds;
use client::{Http, Limits};
use code_reviewer::real::{Config, Project};
use planner::{Ended, Operator, Order, Planner};
use protocol::{Dial, TaskState};
use serde_json::{Value, json};
use testing::{Program, Served};

use super::{Repository, content, git, review, reviewer, say, status};

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// The task with a review that a capture tells of.
fn captured(name: &str) -> Value {
    let text = fs::read_to_string(scenarios().join("kit/captures").join(name)).unwrap();
    let bodies = text.match_indices("\n\n{").filter_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        values.next()?.ok()
    });
    let tasks = bodies.map(|body| body["result"]["task"].clone());
    let mut reviewed = tasks.filter(|task| task["artifacts"][0]["artifactId"] == "review");
    reviewed.next().unwrap_or_else(|| panic!("{name} tells of no review"))
}

/// What of a review must be as captured: its base, and of each finding the file, the line and the severity.
fn told(review: &Value) -> Value {
    let of = |one: &Value| json!([one["file"], one["line"], one["severity"]]);
    let findings: Vec<Value> = review["findings"].as_array().unwrap().iter().map(of).collect();
    json!({"base": review["base"], "findings": findings})
}

/// What the review says in words.
fn summary(task: &Value) -> &Value {
    &task["artifacts"][0]["parts"][0]["text"]
}

/// The project, with two branches and the files from before a change, and the change as git tells it. The files of
/// `first` are those before it, or after it.
fn made(change: &str, first_is_after: bool) -> (Repository, String) {
    let names = ["payments/__init__.py", "payments/charges.py", "payments/refunds.py", "tests/test_refunds.py"];
    let folder = scenarios().join("payments-api/first");
    let texts = names.map(|name| fs::read_to_string(folder.join(name)).unwrap());
    let files: Vec<(&str, &str)> = names.into_iter().zip(texts.iter().map(String::as_str)).collect();
    let repository = Repository::new(&files);
    let patch = scenarios().join("payments-api").join(change);
    let patch = patch.to_str().unwrap();
    if first_is_after {
        git(repository.path(), &["apply", "--reverse", patch]);
        repository.commit(&[]);
    }
    repository.branch("rounding");
    git(repository.path(), &["apply", patch]);
    let diff = git(repository.path(), &["diff"]);
    git(repository.path(), &["checkout", "--quiet", "--", "."]);
    (repository, diff)
}

/// A reviewer of the project.
async fn of_project(repository: &Repository) -> Served {
    let project = Project { name: "payments-api".to_owned(), path: repository.path().to_owned() };
    reviewer(Config { projects: vec![project], tools: Vec::new() }).await
}

/// Ships a diff as the kit does. Gives how it ended, and the planner's log.
async fn shipped(reviewer: &Served, diff: &str) -> (Ended, String) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let written = log.clone();
    let line = Arc::new(move |line: &str| written.lock().unwrap().push(line.to_owned()));
    let http = Http::new(Dial::default(), Limits::default(), None);
    let mut planner = Planner::new(http, Arc::new(LiveIds), line, Operator::Auto);
    let token = |asking: &str| (asking == "deployer").then(|| "dpl_test_7c1e4b".to_owned());
    let [tests, deploys] = ["test-runner", "deployer"].map(|name| Program::start_with(name, &["--store", "memory"]));
    for url in [&tests.url, &reviewer.url, &deploys.url] {
        planner.meet(url, token).await.unwrap();
    }
    let ended = planner.ship(&Order { diff: diff.as_bytes().to_vec(), ..Order::default() }).await.unwrap();
    let log = log.lock().unwrap().join("\n");
    (ended, log)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_diffs_of_the_story_give_the_captures_findings_and_decisions() {
    let stops = "review: 2 findings, 1 blocking\nstop: a high-severity finding blocks the deploy";
    // What the planner of the captures says, up to the state of the deploy.
    let log = fs::read_to_string(scenarios().join("kit/captures/19-planner.log")).unwrap();
    let goes_on = log.lines().find(|line| line.starts_with("review: ")).unwrap();
    for (change, first_is_after, capture, decision, ended) in [
        ("rounds-down.diff", true, "06-input-required.http", stops, Ended::Stopped),
        ("keeps-cents.diff", false, "19-planner.http", goes_on, Ended::Deployed(Some(TaskState::Completed))),
    ] {
        let (repository, diff) = made(change, first_is_after);
        let reviewer = of_project(&repository).await;
        let asked = review(&reviewer, "Review this diff of payments-api.", &diff).await;
        assert_eq!(status(&asked).0, "INPUT_REQUIRED", "{change}: {asked}");
        let done = say(&reviewer, &asked, "main").await;
        let expected = captured(capture);
        assert_eq!(told(content(&done)), told(content(&expected)), "{change}");
        assert_eq!(status(&done), status(&expected), "{change}: how many there are");
        assert_eq!(summary(&done), summary(&expected), "{change}");

        let (came_to, log) = shipped(&reviewer, &diff).await;
        assert_eq!(came_to, ended, "{log}");
        assert!(log.contains(decision), "{change}: {log}");
    }
}
