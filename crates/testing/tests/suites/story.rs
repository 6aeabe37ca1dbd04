//! `workshop run --real`: the kit's story, with agents that work.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::python;

/// The log that the kit's planner writes.
const KIT: &str = include_str!("../../../../scenarios/kit/captures/19-planner.log");

/// Runs it, into a folder `out`.
fn run(python: &Path, folder: &Path, more: &[&str]) -> Output {
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", python.parent().unwrap().display());
    let mut workshop = Command::new(testing::workshop());
    workshop.args(["run", "--real"]).args(more).current_dir(folder).env("PATH", path).output().unwrap()
}

/// A log with its ids out of it.
fn without_ids(log: &str) -> String {
    let is_id = |word: &str| word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let word = |word: &str| match word.rsplit_once('/') {
        Some((before, id)) if is_id(id) => format!("{before}/ID"),
        None if is_id(word) => "ID".to_owned(),
        _ => word.to_owned(),
    };
    log.lines().map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn a_real_build_is_tested_reviewed_and_deployed_as_the_story_tells_it() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    // Twice: the second finds what the first has deployed.
    for _ in 0..2 {
        let output = run(python, folder.path(), &[]);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{printed}{}", String::from_utf8_lossy(&output.stderr));
        let out = |name: &str| folder.path().join("out").join(name);
        assert_eq!(without_ids(&fs::read_to_string(out("run.log")).unwrap()), without_ids(KIT));

        let live = fs::canonicalize(out("staging/current")).unwrap();
        let is = fs::read_to_string(live.join("payments/refunds.py")).unwrap();
        let of_commit = include_str!("../../../../scenarios/payments-api/second/payments/refunds.py");
        assert_eq!(is, of_commit);
        let http = fs::read_to_string(out("run.http")).unwrap();
        // A recital names no rule.
        assert!(http.contains("\"rule\": \"test-name-without-rule\""), "{http}");
        let frames = http.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let report = frames
            .filter(|frame| frame["result"]["artifactUpdate"]["artifact"]["artifactId"] == "deploy-report")
            .map(|frame| frame["result"]["artifactUpdate"]["artifact"]["parts"][0]["data"].clone())
            .next()
            .unwrap_or_else(|| panic!("no report in {http}"));
        assert_eq!(report["healthChecks"], "3 of 3 passing");
        let saw = |at: usize| report["checks"][at]["saw"].as_str().unwrap_or_default();
        assert!(saw(1).contains("200") && saw(2).contains("200"), "{report}");
        let audited = Command::new(testing::programs().join("deployer")).arg("audit").arg(out("audit.jsonl")).output();
        let audited = String::from_utf8(audited.unwrap().stdout).unwrap();
        assert!(audited.contains("approved") && audited.contains("2026.10.06-1"), "{audited}");
    }
}

#[test]
fn a_commit_whose_test_fails_is_not_deployed() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = run(python, folder.path(), &["--commit", "9f3c2e1"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("tests: 1 failed, 11 passed\nstop: 1 test(s) failed"), "{printed}");
    let http = fs::read_to_string(folder.path().join("out/run.http")).unwrap();
    for one in ["\"tests/test_refunds.py::test_partial_refund\"", "\"AssertionError: 450 != 500\""] {
        assert!(http.contains(one), "{http}");
    }
    assert!(!folder.path().join("out/staging/current").exists());
}

#[test]
fn the_bundle_holds_what_the_folders_hold() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/payments-api.sh");
    let output = Command::new(script).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
