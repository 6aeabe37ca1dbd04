//! What is tested: the story's own project, the choice of project and commit, the queue, and what must not be reached.

use std::path::Path;

use serde_json::json;
use test_runner::TestRunner;
use test_runner::real::{Project, Runner};
use testing::{Binding, immediately, message, send, serve};

use super::{Bench, Repository, bench, outcome, project, python, walk};

/// The bundle of the story's project.
fn payments_api() -> Project {
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/payments-api.bundle");
    format!("payments-api={}", bundle.display()).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_project_of_the_story_gives_the_summaries_of_the_story() {
    let Some(python) = python() else { return };
    let base = tempfile::tempdir().unwrap();
    let mut project = payments_api();
    let pytest = ["-m", "pytest", "-o", "junit_family=xunit1", "--junit-xml={report}"];
    project.suites[0].command =
        [python.to_str().unwrap()].iter().chain(&pytest).map(|word| (*word).to_owned()).collect();
    let runner = Runner::new(vec![project], base.path(), 1).unwrap();
    let served = serve(TestRunner::working(runner), |_| {}).await;
    let run = async |text: &str| {
        let answer = served.call(Binding::Rpc, "SendMessage", send(text)).await;
        answer.result()["task"].clone()
    };

    let task = run("Run the unit tests for payments-api at commit 9f3c2e1").await;
    let (state, words, log, summary) = outcome(&task);
    assert_eq!((state, words), ("TASK_STATE_COMPLETED", "1 failed, 11 passed"), "{log}");
    let failures = json!([{
        "test": "tests/test_refunds.py::test_partial_refund",
        "error": "AssertionError: 450 != 500",
        "file": "tests/test_refunds.py",
        "line": 18,
    }]);
    assert_eq!(*summary.unwrap(), json!({"passed": 11, "failed": 1, "failures": failures}));
    for line in ["collected 12 items", "FAILED tests/test_refunds.py::test_partial_refund - AssertionError: 450 != 500"]
    {
        assert!(log.contains(line), "{log}");
    }
    let working = &task["history"][1]["parts"][0]["text"];
    assert_eq!(working, "Checking out 9f3c2e1 and starting the suite");

    let task = run("Run the unit tests for payments-api at commit a41d7c3").await;
    let (state, words, log, summary) = outcome(&task);
    assert_eq!((state, words), ("TASK_STATE_COMPLETED", "13 passed"), "{log}");
    assert_eq!(*summary.unwrap(), json!({"passed": 13, "failed": 0}));

    let task = run("Run the unit tests for payments-api at commit deadbee").await;
    let (state, words, ..) = outcome(&task);
    assert_eq!((state, words), ("TASK_STATE_FAILED", "Commit deadbee does not exist in payments-api."));
    let task = run("Run the unit tests for billing").await;
    let (state, words, ..) = outcome(&task);
    assert_eq!(state, "TASK_STATE_FAILED");
    assert_eq!(words, "Project billing is not configured here. Configured: payments-api.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_names_no_project_is_asked_for_one_and_goes_on_with_the_answer() {
    let script = |text: &str| [("check.sh", text.to_owned())];
    let repository = Repository::new(&[("one", &script("echo 'Ran 1 tests in 1s'; echo OK"))]);
    let mut other = project(&repository, "sh check.sh", 60);
    other.name = "depot".to_owned();
    let base = tempfile::tempdir().unwrap();
    let runner = Runner::new(vec![project(&repository, "sh check.sh", 60), other], base.path(), 1).unwrap();
    let served = serve(TestRunner::working(runner), |_| {}).await;
    let asked = served.call(Binding::Rpc, "SendMessage", send("Run the tests at branch one")).await;
    let task = &asked.result()["task"];
    let (state, words, ..) = outcome(task);
    assert_eq!((state, words), ("TASK_STATE_INPUT_REQUIRED", "Which project should I test: shop, depot?"));
    let answer =
        served.call(Binding::Rpc, "SendMessage", json!({"message": testing::to(&testing::id(task), "depot")})).await;
    let (state, words, log, _) = outcome(&answer.result()["task"]);
    assert_eq!((state, words), ("TASK_STATE_COMPLETED", "1 passed"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_wait_say_where_they_stand_and_run_in_their_order() {
    let script = "while [ ! -e go ]; do sleep 0.05; done; echo 'Ran 1 tests in 1s'; echo OK".to_owned();
    let repository = Repository::new(&[("one", &[("check.sh", script)])]);
    let Bench { served, base } = bench(&repository, "sh check.sh", 60).await;
    let text = "Run the tests of shop at branch one";
    let mut ids = Vec::new();
    for at in 0..3 {
        let answer = served.call(Binding::Rpc, "SendMessage", immediately(message(text))).await;
        let id = testing::id(&answer.result()["task"]);
        let state = if at == 0 { "TASK_STATE_WORKING" } else { "TASK_STATE_SUBMITTED" };
        let task = served.until(&id, state).await;
        if at > 0 {
            let runs = if at == 1 { "1 run is" } else { "2 runs are" };
            let mut task = task;
            while task["status"]["message"].is_null() {
                task = served.task(&id).await;
            }
            assert_eq!(outcome(&task).1, format!("Waiting: {runs} before this one."));
        }
        ids.push(id);
    }
    // One that waits is canceled, and the next one moves up.
    served.call(Binding::Rpc, "CancelTask", json!({"id": ids[1]})).await;
    while outcome(&served.task(&ids[2]).await).1 != "Waiting: 1 run is before this one." {
        tokio::task::yield_now().await;
    }
    for id in [&ids[0], &ids[2]] {
        while testing::state(&served.task(id).await) != "COMPLETED" {
            for tree in walk(base.path()).iter().filter(|path| path.ends_with("tree")) {
                let _ = std::fs::write(tree.join("go"), "");
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_reach_no_shell_no_other_folder_and_no_other_project() {
    let repository = Repository::new(&[("one", &[("check.sh", "echo 'Ran 1 tests in 1s'; echo OK".to_owned())])]);
    let bench = bench(&repository, "sh check.sh", 60).await;
    let owned = tempfile::tempdir().unwrap();
    let flag = owned.path().join("owned");
    let touch = format!("touch {}", flag.display());
    let texts = [
        format!("Run the tests of shop at commit $({touch})"),
        format!("Run the tests of shop at commit `{touch}`"),
        format!("Run the tests of shop at commit x;{touch};"),
        format!("Run the tests of shop at commit x\n{touch}\n"),
        format!("Run the tests of shop at commit '\"; {touch} #"),
        format!("Run the tests of shop at commit --upload-pack={touch}"),
        format!("Run the tests of shop at commit --output={}", flag.display()),
        "Run the tests of shop at commit -h".to_owned(),
        "Run the tests of shop at commit --help".to_owned(),
        "Run the tests of shop at commit ../../../etc/passwd".to_owned(),
        "Run the tests of shop at commit /etc/passwd".to_owned(),
        "Run the tests of shop at commit main..one".to_owned(),
        "Run the tests of shop at commit one^{/.*}".to_owned(),
        "Run the tests of shop at commit :/Nothing".to_owned(),
        "Run the tests of shop at commit one:check.sh".to_owned(),
        "Run the tests of shop at commit @{-1}".to_owned(),
        "Run the tests of shop at commit one\0".to_owned(),
        format!("Run the tests of shop at commit {}", "a".repeat(100_000)),
        "Run the tests for ../shop".to_owned(),
        "Run the tests for /etc".to_owned(),
        "Run the tests for project --git-dir=/etc".to_owned(),
        "Run the tests of ext::sh at commit one".to_owned(),
    ];
    for text in &texts {
        let answer = bench.served.call(Binding::Rpc, "SendMessage", send(text)).await;
        let (state, words, log, _) = outcome(&answer.result()["task"]);
        assert_eq!(state, "TASK_STATE_FAILED", "{text:?}: {words}");
        assert_eq!(log, "", "{text:?}: nothing was run");
        assert!(!words.contains(repository.path().to_str().unwrap()), "{words}");
    }
    assert!(!flag.exists());
    bench.is_clean();
}
