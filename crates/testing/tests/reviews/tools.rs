//! Other linters.

use serde_json::json;

use super::{AFTER, BEFORE, Repository, content, git, notes, review, reviewer};

/// A linter in the shell: a finding on every line that holds `value`, by grep.
const LINT: &str = r#"#!/bin/sh
printf '{"runs":[{"results":['
comma=
for file in "$@"; do
  grep -n value "$file" | cut -d: -f1 | while read -r line; do
    printf '%s{"ruleId":"L1","level":"error","message":{"text":"A value in %s."},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"%s"},"region":{"startLine":%s}}}]}' "$comma" "$(cat kind)" "$file" "$line"
    comma=,
  done
done
printf ']}]}'
exit 1
"#;

const TOOL: &str = "[tool.lint]\ncommand = [\"sh\", \"lint.sh\", \"{files}\"]\nlanguages = [\"python\"]\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_linter_finds_on_changed_lines_is_merged_with_its_name() {
    let before = format!("value = 1\n{BEFORE}");
    let repository = Repository::new(&[("a.py", &before), ("lint.sh", LINT), ("kind", "the base")]);
    // A diff does not change how the linter works: only files that are its own are written.
    let changed = format!("value = 1\n{AFTER}");
    let diff = repository.diff(&[("a.py", &changed), ("lint.sh", "touch ran"), ("kind", "the diff")]);
    let served = reviewer(repository.config(TOOL)).await;
    let task = review(&served, "Review this diff of shop", &diff).await;
    let findings: Vec<_> =
        content(&task)["findings"].as_array().unwrap().iter().filter(|one| one["rule"] == "lint/L1").collect();
    let found = |line: u32| {
        json!({
            "file": "a.py", "line": line, "severity": "medium", "finding": "A value in the base.", "rule": "lint/L1",
        })
    };
    assert_eq!(findings, [&found(3), &found(4)], "{task}");
    assert_eq!(notes(&task), Vec::<String>::new());
    assert_eq!(git(repository.path(), &["worktree", "list"]).lines().count(), 1);

    // The numbers are the diff's, wherever its lines are by now.
    repository.commit(&[("a.py", &format!("# One.\n# Two.\n{before}"))]);
    let task = review(&served, "Review this diff of shop", &diff).await;
    let lines = content(&task)["findings"].as_array().unwrap().iter().filter(|one| one["rule"] == "lint/L1");
    assert_eq!(lines.map(|one| one["line"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linter_that_is_missing_fails_or_hangs_is_said_so_and_the_review_goes_on() {
    let repository = Repository::new(&[("a.py", BEFORE)]);
    let diff = repository.diff(&[("a.py", AFTER)]);
    let tools = "[tool.absent]\ncommand = [\"no-such-linter\"]\nlanguages = [\"python\"]\n\
        [tool.broken]\ncommand = [\"sh\", \"-c\", \"echo usage; exit 3\"]\nlanguages = [\"python\"]\n\
        [tool.other]\ncommand = [\"no-such-linter\"]\nlanguages = [\"go\"]\n\
        [tool.slow]\ncommand = [\"sh\", \"-c\", \"sleep 600\"]\nendings = [\".py\"]\ntime-limit = 1\n";
    let served = reviewer(repository.config(tools)).await;
    let task = review(&served, "Review this diff of shop", &diff).await;
    let expected = [
        "absent was not asked: no-such-linter is not installed here.",
        "broken ended with exit status: 3 and without a report that can be read.",
        "slow took longer than 1 s and was stopped.",
    ];
    assert_eq!(notes(&task), expected);
    // Of another project there are no whole files.
    let task = review(&served, "Review this diff of billing", &diff).await;
    assert_eq!(notes(&task)[1], "absent was not asked: it reads whole files, and there is no base.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_writes_to_no_place_outside_the_working_tree() {
    let outside = tempfile::tempdir().unwrap();
    let repository = Repository::new(&[("a.py", BEFORE), ("lint.sh", LINT), ("kind", "it")]);
    std::os::unix::fs::symlink(outside.path(), repository.path().join("link")).unwrap();
    repository.commit(&[]);
    let served = reviewer(repository.config(TOOL)).await;
    let new = |path: &str| format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+value = 1\n");
    let harmless = review(&served, "Review this diff of shop", &new("../x.py")).await;
    assert_eq!(notes(&harmless), ["../x.py: lint was not asked about it: it is not whole."]);
    let task = review(&served, "Review this diff of shop", &new("link/x.py")).await;
    assert_eq!(notes(&task), ["link/x.py: lint was not asked about it: a link of the base is in its way."], "{task}");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}
