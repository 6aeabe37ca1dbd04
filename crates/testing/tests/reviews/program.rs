//! The programs: the reviewer's flags, `planner review`, and `workshop rules`.

use std::io::Write;
use std::process::{Command, Stdio};

use testing::{Program, programs};

use super::{AFTER, BEFORE, Repository};

/// Exit code, standard output and standard error of `planner review`.
fn planner(agent: &Program, more: &[&str], diff: &str) -> (i32, String, String) {
    let mut planner = Command::new(programs().join("planner"));
    planner.args(["review", "--agent", &agent.url]).args(more);
    let mut child = planner.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn planner_review_prints_findings_as_compilers_do_and_ends_with_1_when_one_is_high() {
    let repository = Repository::new(&[("a.py", BEFORE), ("check.sh", "printf '%s' \"$1\"")]);
    repository.branch("other");
    let diff = repository.diff(&[("a.py", AFTER)]);
    let result = |level: &str| {
        format!(
            r#"{{"runs":[{{"results":[{{"ruleId":"{level}","level":"{level}","message":{{"text":"A value."}},"locations":[{{"physicalLocation":{{"artifactLocation":{{"uri":"a.py"}},"region":{{"startLine":2}}}}}}]}}]}}]}}"#
        )
    };
    let run = |severity: &str, more: &[&str]| {
        let file = repository.path().join(".git/review.toml");
        let text = format!(
            "[project.shop]\npath = \"..\"\n[tool.lint]\ncommand = [\"sh\", \"check.sh\", '{}']\n\
             languages = [\"python\"]\nseverity = \"{severity}\"\n",
            result("L1")
        );
        std::fs::write(&file, text).unwrap();
        let agent = Program::start_with("code-reviewer", &["--config", file.to_str().unwrap()]);
        planner(&agent, more, &diff)
    };
    let (code, out, error) = run("high", &["--base", "main", "-"]);
    assert_eq!(out.lines().next(), Some("a.py:2: high: A value. [lint/L1]"), "{error}");
    assert_eq!(code, 1);
    let (code, out, error) = run("low", &["--base", "main"]);
    assert_eq!((code, out.lines().next()), (0, Some("a.py:2: low: A value. [lint/L1]")), "{error}");
    let (code, out, error) = run("low", &[]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(error.contains("Which base branch should I compare this diff against? There are: main, other."), "{error}");
    let (code, _, error) = run("low", &["--base", "nowhere"]);
    assert!(code == 2 && error.contains("shop has no branch nowhere."), "{error}");
}

#[test]
fn planner_review_says_what_could_not_be_read_and_when_there_is_nothing() {
    let agent = Program::start_with("code-reviewer", &["--story", "none"]);
    let wrong = "--- \"a/\\033[2J.py\"\n+++ \"b/\\033[2J.py\"\n@@ -1,2 +1 @@\n-a\n+b\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n";
    let (code, out, error) = planner(&agent, &[], wrong);
    assert_eq!((code, out.as_str()), (0, ""), "{error}");
    let words =
        "note: \\u{1b}[2J.py: hunk 1: Its header says 2 old and 1 new lines, and it has 1 and 1.\nno findings\n";
    assert_eq!(error, words);
    assert_eq!(planner(&agent, &[], "\n"), (0, String::new(), "there is nothing to review\n".to_owned()));
    let (code, _, error) = planner(&agent, &[], "no diff\n");
    assert!(code == 2 && error.contains("There is no diff in what was sent."), "{error}");
}

#[test]
fn the_reviewer_refuses_what_it_cannot_work_with() {
    let run = |arguments: &[&str]| {
        let output = Command::new(programs().join("code-reviewer")).args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = run(&["--sarif"]);
    assert!(code == 2 && error.contains("--story none"), "{error}");
    let (code, error) = run(&["--project", "shop=/nowhere"]);
    assert!(code == 2 && error.contains("neither a git repository nor a git bundle"), "{error}");
    let (code, error) = run(&["--config", "/nowhere.toml"]);
    assert!(code == 2 && error.contains("/nowhere.toml"), "{error}");
}

#[test]
fn workshop_rules_lists_each_rule_with_its_severity_and_its_languages() {
    let workshop = |arguments: &[&str]| {
        let output = Command::new(testing::workshop()).args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let rules = code_reviewer::real::rules::all();
    let (code, said, error) = workshop(&["rules"]);
    assert_eq!((code, said.lines().count()), (0, rules.len()), "{error}");
    for (line, rule) in said.lines().zip(rules) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..2], [rule.id, rule.severity.word()], "{line}");
        assert!(line.contains(rule.title) && line.contains(rule.languages[0].name()), "{line}");
    }
    let (code, said, error) = workshop(&["rules", "--language", "go"]);
    let of_go = rules.iter().filter(|rule| rule.languages.iter().any(|language| language.name() == "Go"));
    assert_eq!((code, said.lines().count()), (0, of_go.count()), "{error}");
    assert!(said.contains("error-ignored ") && !said.contains("bare-except "), "{said}");
    let (code, said, error) = workshop(&["rules", "--language", "cobol"]);
    assert!(code == 2 && said.is_empty(), "{said}{error}");
    assert!(error.contains("no rule reads cobol; there are rules for Python, TypeScript, Go and Rust"), "{error}");
}
