//! What a run came to: from the JUnit XML report that it left, else from the last words of the runner itself.

use std::path::Path;

use junit_parser::{TestCase, TestStatus, TestSuite};
use serde::Serialize;

/// The content of `summary.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How many tests passed.
    pub passed: u64,
    /// How many failed, errors included.
    pub failed: u64,
    /// How many were skipped.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Each failure that is known by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A test that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The test, as its runner calls it.
    pub test: String,
    /// The first line of what went wrong.
    pub error: String,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

impl Summary {
    /// In words: `1 failed, 11 passed`.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if self.failed > 0 {
            words.push(format!("{} failed", self.failed));
        }
        words.push(format!("{} passed", self.passed));
        if self.skipped > 0 {
            words.push(format!("{} skipped", self.skipped));
        }
        words.join(", ")
    }

    /// Reads a report. The error says what is wrong with it.
    pub fn of_report(path: &Path) -> Result<Self, String> {
        let file = std::fs::File::open(path).map_err(|cause| cause.to_string())?;
        let suites = junit_parser::from_reader(std::io::BufReader::new(file)).map_err(|cause| cause.to_string())?;
        let mut summary = Self::default();
        suites.suites.iter().for_each(|suite| summary.add(suite));
        Ok(summary)
    }

    fn add(&mut self, suite: &TestSuite) {
        suite.suites.iter().for_each(|suite| self.add(suite));
        for case in &suite.cases {
            let message = match &case.status {
                TestStatus::Success => {
                    self.passed += 1;
                    continue;
                }
                TestStatus::Skipped(_) => {
                    self.skipped += 1;
                    continue;
                }
                TestStatus::Failure(failure) => [&failure.message, &failure.text, &failure.failure_type],
                TestStatus::Error(error) => [&error.message, &error.text, &error.error_type],
            };
            self.failed += 1;
            let line =
                message.iter().filter_map(|text| text.lines().map(str::trim).find(|line| !line.is_empty())).next();
            let file = case.file.clone().or_else(|| suite.file.clone()).filter(|file| !file.is_empty());
            self.failures.push(Failure {
                test: name(case, file.as_deref()),
                error: line.unwrap_or("failed").to_owned(),
                // pytest counts lines from zero.
                line: case.line.filter(|_| case.file.is_some()).map(|line| line + u64::from(suite.name == "pytest")),
                file,
            });
        }
    }

    /// Reads what the runner says at its end; the log's last lines are enough.
    pub fn of_log(log: &str) -> Option<Self> {
        let log = strip_colours(log);
        let lines = || log.lines().map(str::trim);
        let mut found = None;
        // Several crates or files: the sums of all of them.
        let mut cargo = Self::default();
        let mut is_cargo = false;
        let mut go = Self::default();
        for line in lines() {
            if let Some(rest) = line.strip_prefix("test result: ") {
                is_cargo = true;
                cargo.passed += number_before(rest, " passed").unwrap_or_default();
                cargo.failed += number_before(rest, " failed").unwrap_or_default();
                cargo.skipped += number_before(rest, " ignored").unwrap_or_default();
            } else if let Some(test) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
                cargo.failures.push(Failure {
                    test: test.to_owned(),
                    error: "failed".to_owned(),
                    ..Failure::default()
                });
            } else if line.starts_with("--- PASS: ") {
                go.passed += 1;
            } else if line.starts_with("--- SKIP: ") {
                go.skipped += 1;
            } else if let Some(rest) = line.strip_prefix("--- FAIL: ") {
                go.failed += 1;
                let test = rest.split_whitespace().next().unwrap_or(rest).to_owned();
                go.failures.push(Failure { test, error: "failed".to_owned(), ..Failure::default() });
            }
        }
        if is_cargo {
            return Some(cargo);
        }
        if go.passed + go.failed + go.skipped > 0 {
            return Some(go);
        }
        let (mut pass, mut fail, mut skip) = (None, None, None);
        let mut ran = None;
        for line in lines() {
            // node --test: "# pass 3" in TAP, "ℹ pass 3" for people.
            let node = line.strip_prefix("# ").or_else(|| line.strip_prefix("\u{2139} "));
            match node.and_then(|rest| rest.split_once(' ')) {
                Some(("pass", number)) => pass = number.parse().ok(),
                Some(("fail", number)) => fail = number.parse().ok(),
                Some(("skipped", number)) => skip = number.parse().ok(),
                _ => {}
            }
            if let (Some(passed), Some(failed)) = (pass, fail) {
                found = Some(Self { passed, failed, skipped: skip.unwrap_or_default(), failures: Vec::new() });
            }
            // unittest: "Ran 5 tests in 0.1s", then "OK" or "FAILED (failures=1, errors=2, skipped=3)".
            if let Some(number) = line.strip_prefix("Ran ").and_then(|rest| rest.split(' ').next()) {
                ran = number.parse::<u64>().ok();
            }
            if let Some(all) = ran
                && (line == "OK" || line.starts_with("OK (") || line.starts_with("FAILED ("))
            {
                let of = |name: &str| number_after(line, &format!("{name}=")).unwrap_or_default();
                let (failed, skipped) = (of("failures") + of("errors") + of("unexpected successes"), of("skipped"));
                found =
                    Some(Self { passed: all.saturating_sub(failed + skipped), failed, skipped, failures: Vec::new() });
            }
            // pytest, nextest and jest: "1 failed, 11 passed in 4.21s", "Summary [...] 3 tests run: 2 passed, 1 failed".
            let is_last = line.contains(" passed") || line.contains(" failed");
            let speaks = line.contains(" in ")
                && line.trim_matches('=').trim().starts_with(|c: char| c.is_ascii_digit())
                || line.contains(" tests run:")
                || line.contains(" test run:")
                || line.starts_with("Tests:");
            if is_last && speaks {
                let of = |word: &str| number_before(line, word).unwrap_or_default();
                let failed = of(" failed") + of(" error") + of(" timed out");
                found = Some(Self { passed: of(" passed"), failed, skipped: of(" skipped"), failures: Vec::new() });
            }
        }
        if let Some(found) = &mut found {
            for line in lines() {
                // pytest: "FAILED tests/a.py::test_b - AssertionError: 1 != 2".
                if let Some(rest) = line.strip_prefix("FAILED ").filter(|rest| rest.contains("::")) {
                    let (test, error) = rest.split_once(" - ").unwrap_or((rest, "failed"));
                    let file = test.split_once("::").map(|(file, _)| file.to_owned());
                    found.failures.push(Failure { test: test.to_owned(), error: error.to_owned(), file, line: None });
                }
            }
        }
        found
    }
}

/// A test as people call it: pytest's `file::Class::test` where the report names the file.
fn name(case: &TestCase, file: Option<&str>) -> String {
    let plain = &case.original_name;
    match (file.filter(|file| file.ends_with(".py")), case.classname.as_deref().filter(|class| !class.is_empty())) {
        (Some(file), class) => {
            let module = file.trim_end_matches(".py").replace('/', ".");
            let class = class.and_then(|class| class.strip_prefix(&module)).unwrap_or_default();
            let class = class.trim_start_matches('.');
            if class.is_empty() {
                format!("{file}::{plain}")
            } else {
                format!("{file}::{}::{plain}", class.replace('.', "::"))
            }
        }
        (None, Some(class)) => format!("{class}::{plain}"),
        (None, None) => plain.clone(),
    }
}

/// The number that stands right before these words.
fn number_before(text: &str, words: &str) -> Option<u64> {
    let before = &text[..text.find(words)?];
    let digits = before.rfind(|character: char| !character.is_ascii_digit()).map_or(0, |at| at + 1);
    before[digits..].parse().ok()
}

fn number_after(text: &str, words: &str) -> Option<u64> {
    let after = &text[text.find(words)? + words.len()..];
    after[..after.find(|character: char| !character.is_ascii_digit()).unwrap_or(after.len())].parse().ok()
}

/// The text without what colours it.
fn strip_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 2..];
        let end = rest.find(|character: char| character.is_ascii_alphabetic()).map_or(rest.len(), |at| at + 1);
        rest = &rest[end..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runner_is_understood_by_its_last_words() {
        let table = [
            ("FAILED tests/a.py::test_b - AssertionError: 1 != 2\n=== 1 failed, 11 passed in 4.21s ===\n", (11, 1, 0)),
            ("13 passed in 4.38s\n", (13, 0, 0)),
            ("= 2 failed, 1 passed, 3 skipped, 1 error in 1.00s =", (1, 3, 3)),
            ("..F\nRan 5 tests in 0.010s\n\nFAILED (failures=1, errors=1, skipped=1)\n", (2, 2, 1)),
            ("Ran 5 tests in 0.010s\n\nOK\n", (5, 0, 0)),
            ("Ran 5 tests in 0.010s\n\nOK (skipped=2)\n", (3, 0, 2)),
            (
                "test a ... ok\ntest b ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n\
              test result: ok. 3 passed; 0 failed; 2 ignored\n",
                (4, 1, 2),
            ),
            ("     Summary [   0.004s] 3 tests run: 2 passed, 1 failed, 4 skipped\n", (2, 1, 4)),
            ("# tests 3\n# pass 2\n# fail 1\n# cancelled 0\n# skipped 0\n", (2, 1, 0)),
            ("\u{2139} pass 2\n\u{2139} fail 0\n\u{2139} skipped 1\n", (2, 0, 1)),
            ("Tests:       1 failed, 2 skipped, 3 passed, 6 total\n", (3, 1, 2)),
            ("=== RUN TestA\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n", (1, 1, 0)),
            ("\x1b[32m\x1b[1m13 passed\x1b[0m\x1b[32m in 4.38s\x1b[0m\n", (13, 0, 0)),
        ];
        for (log, (passed, failed, skipped)) in table {
            let summary = Summary::of_log(log).unwrap_or_else(|| panic!("{log}"));
            assert_eq!((summary.passed, summary.failed, summary.skipped), (passed, failed, skipped), "{log}");
        }
    }

    #[test]
    fn a_log_without_such_words_is_not_guessed_at() {
        for log in ["", "done\n", "Segmentation fault\n", "all 3 tests passed, I think\n", "3 passed the bridge\n"] {
            assert_eq!(Summary::of_log(log), None, "{log}");
        }
    }

    #[test]
    fn a_report_of_pytest_names_the_test_the_error_and_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.xml");
        let report = r#"<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="0"
            failures="1" skipped="1" tests="4" time="0.1"><testcase classname="tests.test_refunds"
            name="test_partial_refund" file="tests/test_refunds.py" line="11" time="0.01"><failure
            message="AssertionError: 450 != 500&#10;assert 450 == 500">def test</failure></testcase>
            <testcase classname="tests.test_refunds.TestFee" name="test_fee" file="tests/test_refunds.py" line="3" time="0"><error
            message="failed on setup"/></testcase>
            <testcase classname="tests.test_a" name="test_ok" file="tests/test_a.py" line="1" time="0"/>
            <testcase classname="tests.test_a" name="test_not" time="0"><skipped message="no"/></testcase></testsuite></testsuites>"#;
        std::fs::write(&path, report).unwrap();
        let summary = Summary::of_report(&path).unwrap();
        assert_eq!(summary.words(), "2 failed, 1 passed, 1 skipped");
        let [first, second] = summary.failures.as_slice() else { panic!("{summary:?}") };
        assert_eq!(first.test, "tests/test_refunds.py::test_partial_refund");
        assert_eq!(first.error, "AssertionError: 450 != 500");
        assert_eq!((first.file.as_deref(), first.line), (Some("tests/test_refunds.py"), Some(12)));
        assert_eq!(second.test, "tests/test_refunds.py::TestFee::test_fee");
        std::fs::write(&path, "<testsuites><testsuite").unwrap();
        assert!(Summary::of_report(&path).is_err());
    }
}
