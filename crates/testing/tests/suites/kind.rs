//! Six kinds of suites, each passing, failing, crashing, hanging and canceled.

use serde_json::json;
use testing::{Binding, immediately, message};

use super::{Repository, bench, has, outcome, python};

/// What a kind of suite looks like.
struct Kind<'a> {
    /// The command.
    command: &'a str,
    /// The file that holds the tests, and what stands beside it.
    file: &'a str,
    beside: &'a [(&'a str, &'a str)],
    passing: &'a str,
    failing: &'a str,
    crashing: &'a str,
    hanging: &'a str,
    /// A test of the failing case, as the summary names it, and its error. None where only numbers are known.
    failure: Option<(&'a str, &'a str)>,
}

async fn each_case(kind: Kind<'_>) {
    let files = |text: &str| {
        let beside = kind.beside.iter().map(|(name, text)| (*name, (*text).to_owned()));
        beside.chain([(kind.file, text.to_owned())]).collect::<Vec<_>>()
    };
    let cases =
        [("passing", kind.passing), ("failing", kind.failing), ("crashing", kind.crashing), ("hanging", kind.hanging)];
    let cases: Vec<_> = cases.iter().map(|(name, text)| (*name, files(text))).collect();
    let cases: Vec<_> = cases.iter().map(|(name, files)| (*name, files.as_slice())).collect();
    let repository = Repository::new(&cases);

    let patient = bench(&repository, kind.command, 300).await;
    let task = patient.test("passing").await;
    let (state, words, log, summary) = outcome(&task);
    assert_eq!((state, words), ("TASK_STATE_COMPLETED", "2 passed"), "{log}");
    assert_eq!(summary, Some(&json!({"passed": 2, "failed": 0})));
    let task = patient.test("failing").await;
    let (state, words, log, summary) = outcome(&task);
    assert_eq!((state, words), ("TASK_STATE_COMPLETED", "1 failed, 1 passed"), "{log}");
    let summary = summary.unwrap();
    assert_eq!((&summary["passed"], &summary["failed"]), (&json!(1), &json!(1)));
    if let Some((test, error)) = kind.failure {
        assert_eq!((&summary["failures"][0]["test"], &summary["failures"][0]["error"]), (&json!(test), &json!(error)));
    }
    let task = patient.test("crashing").await;
    let (state, words, log, _) = outcome(&task);
    assert_eq!(state, "TASK_STATE_FAILED", "{words}\n{log}");
    assert!(words.starts_with("The suite ended with "), "{words}");

    // Canceled as soon as its tests run.
    let text = "Run the tests of shop at branch hanging";
    let answer = patient.served.call(Binding::Rpc, "SendMessage", immediately(message(text))).await;
    let id = testing::id(&answer.result()["task"]);
    let mut stream = patient.served.stream(Binding::Rpc, "SubscribeToTask", json!({"id": id})).await;
    while let Some(frame) = stream.next().await {
        if frame.to_string().contains("hangs now") {
            break;
        }
    }
    let since = std::time::Instant::now();
    let canceled = patient.served.call(Binding::Rpc, "CancelTask", json!({"id": id})).await;
    assert_eq!(testing::state(canceled.result()), "CANCELED");
    assert!(since.elapsed().as_secs_f32() < 2.0, "{:?}", since.elapsed());
    patient.is_clean();

    let hurried = bench(&repository, kind.command, 20).await;
    let task = hurried.test("hanging").await;
    let (state, words, log, _) = outcome(&task);
    assert_eq!((state, words), ("TASK_STATE_FAILED", "The suite took longer than 20 s and was stopped."));
    assert!(log.contains("hangs now"), "{log}");
    hurried.is_clean();
    assert_eq!(repository.worktrees(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest() {
    let Some(python) = python() else { return };
    each_case(Kind {
        command: &format!("{} -m pytest -s -o junit_family=xunit1 --junit-xml={{report}}", python.display()),
        file: "tests/test_shop.py",
        beside: &[],
        passing: "def test_a(): pass\ndef test_b(): pass\n",
        failing: "def test_a(): pass\ndef test_b():\n    net = 450\n    assert net == 500, f'{net} != 500'\n",
        crashing: "import os\ndef test_a(): os.abort()\n",
        hanging: "import time\ndef test_a():\n    print('hangs now')\n    time.sleep(600)\n",
        failure: Some(("tests/test_shop.py::test_b", "AssertionError: 450 != 500")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unittest() {
    if !has("python3", &["--version"]) {
        return;
    }
    let test = |body: &str| {
        format!(
            "import os, time, unittest\nclass Shop(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self):\n        {body}\n"
        )
    };
    each_case(Kind {
        command: "python3 -m unittest",
        file: "test_shop.py",
        beside: &[],
        passing: &test("pass"),
        failing: &test("self.assertEqual(450, 500)"),
        crashing: &test("os.abort()"),
        hanging: &test("print('hangs now')\n        time.sleep(600)"),
        failure: None,
    })
    .await;
}

const CARGO: &[(&str, &str)] = &[
    ("Cargo.toml", "[package]\nname = \"shop\"\nedition = \"2024\"\n[workspace]\n[profile.test]\ndebug = false\n"),
    ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"shop\"\nversion = \"0.0.0\"\n"),
];

fn cargo_test(body: &str) -> String {
    format!("#[test]\nfn a() {{}}\n#[test]\nfn b() {{ {body} }}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn cargo() {
    each_case(Kind {
        command: "cargo test --offline --no-fail-fast --lib -- --nocapture",
        file: "src/lib.rs",
        beside: CARGO,
        passing: &cargo_test(""),
        failing: &cargo_test("assert_eq!(450, 500);"),
        crashing: &cargo_test("std::process::abort();"),
        hanging: &cargo_test("println!(\"hangs now\"); std::thread::sleep(std::time::Duration::from_secs(600));"),
        failure: Some(("b", "failed")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nextest() {
    if !has("cargo", &["nextest", "--version"]) {
        return;
    }
    each_case(Kind {
        command: "cargo nextest run --offline --no-fail-fast --no-capture",
        file: "src/lib.rs",
        beside: CARGO,
        passing: &cargo_test(""),
        failing: &cargo_test("assert_eq!(450, 500);"),
        // A test that aborts is a failed test here; the build is what breaks.
        crashing: "compile_error!(\"no\");",
        hanging: &cargo_test("println!(\"hangs now\"); std::thread::sleep(std::time::Duration::from_secs(600));"),
        failure: None,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node() {
    if !has("node", &["--version"]) {
        return;
    }
    let test = |body: &str| {
        format!(
            "import test from 'node:test';\nimport assert from 'node:assert';\ntest('a', () => {{}});\ntest('b', async () => {{ {body} }});\n"
        )
    };
    each_case(Kind {
        command: "node --test --test-reporter=tap",
        file: "shop.test.mjs",
        beside: &[],
        passing: &test(""),
        failing: &test("assert.equal(450, 500);"),
        // A file that crashes is a failed test to node; a runner that cannot start is what crashes.
        crashing: "process.kill(process.ppid, 'SIGKILL'); setInterval(() => {}, 1000);",
        hanging: &test("console.log('hangs now'); await new Promise((done) => setTimeout(done, 600000));"),
        failure: None,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_script_with_a_report() {
    let report = |second: &str| {
        format!(
            "echo begun\ncat > \"$1\" <<END\n<testsuites><testsuite name=\"shop\"><testcase name=\"a\"/><testcase name=\"b\">{second}</testcase></testsuite></testsuites>\nEND\n"
        )
    };
    each_case(Kind {
        command: "sh check.sh {report}",
        file: "check.sh",
        beside: &[],
        passing: &report(""),
        failing: &format!("{}exit 1\n", report("<failure message=\"450 is not 500\"/>")),
        crashing: "echo begun; kill -SEGV $$\n",
        hanging: "echo hangs now; sleep 600\n",
        failure: Some(("b", "450 is not 500")),
    })
    .await;
}
