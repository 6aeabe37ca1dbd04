//! What the three agents recite, rule by rule.

use std::sync::Arc;

use crate::{Heard, Script, Step, Story, stories};
use protocol::{Content, ContextId, Message, MessageId, Part, Role, Task, TaskId, TaskState, TaskStatus, media};
use server::{Job, Start};

const DIFF_WITH_ROUNDING: &str = "-    net = amount - fee(charge)\n+    net = int(amount) - fee(charge)\n";
const CLEAN_DIFF: &str = "+    assert partial_refund(charge(1000), 450).net == 450\n";

fn script(agent: &str) -> Script {
    Story::parse("payments-api.toml", stories::PAYMENTS_API).unwrap().agent(agent).unwrap()
}

fn message(parts: Vec<Part>) -> Message {
    Message::new(MessageId::new("m").unwrap(), Role::User, parts)
}

fn text(text: &str) -> Message {
    message(vec![Part::text(text)])
}

fn diff(text: &str, diff: &str) -> Message {
    message(vec![Part::text(text), Part::raw(diff.as_bytes().to_vec(), "refunds.diff", media::DIFF)])
}

/// A turn on a task that `first` began.
fn later(first: Message, start: Start, message: Message) -> Job {
    let task = Task {
        id: TaskId::new("t").unwrap(),
        context_id: None,
        status: TaskStatus { state: TaskState::InputRequired, message: None, timestamp: None },
        history: vec![Arc::new(first)],
        artifacts: Vec::new(),
        metadata: None,
    };
    Job {
        start,
        message: Arc::new(message),
        task: Some(Arc::new(task)),
        context_id: ContextId::new("c").unwrap(),
        asker: None,
        base_url: "http://localhost:41243".into(),
        accepted_output_modes: Arc::default(),
        stop: Default::default(),
    }
}

/// The steps as lines: the word of the story, then what is said.
fn told(agent: &str, heard: &Heard<'_>) -> Vec<String> {
    let script = script(agent);
    let steps = script.choose(heard).unwrap().steps();
    steps.iter().map(line).collect()
}

fn line(step: &Step) -> String {
    match step {
        Step::Words(verb, words) => {
            format!("{}: {}", verb.word(), words.0.iter().flatten().map(content).collect::<Vec<_>>().join(" | "))
        }
        Step::Artifact(chunk) => {
            let (id, name) = (&chunk.artifact.artifact_id, chunk.artifact.name.as_deref().unwrap_or("-"));
            let parts = chunk.artifact.parts.iter().map(content).collect::<Vec<_>>().join(" | ");
            let append = if chunk.append { " append" } else { "" };
            let last = if chunk.last_chunk { " last" } else { "" };
            format!("{id} {name}{append}{last}: {parts}")
        }
        Step::Sleep { .. } | Step::Flaw(_) => panic!("the story is told without a pause and without a flaw"),
    }
}

fn content(part: &Part) -> String {
    match &part.content {
        Content::Text(text) => text.to_string(),
        Content::Data(data) => format!("{} {}", part.media_type(), data.text()),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_commit_that_does_not_exist_fails() {
    let asked = text("Run the unit tests for payments-api at commit deadbee");
    assert_eq!(
        told("test-runner", &Heard::first(&asked)),
        ["working: Checking out deadbee", "failed: Commit deadbee does not exist in payments-api."]
    );
}

#[test]
fn any_other_commit_is_the_one_with_the_mistake() {
    for asked in ["Run the unit tests for payments-api at commit 9f3c2e1", "Run the tests at 0000000", "hello"] {
        assert_eq!(
            told("test-runner", &Heard::first(&text(asked))),
            [
                "working: Checking out 9f3c2e1 and starting the suite",
                "test-log test-log.txt: collected 12 items\n",
                "test-log - append: tests/test_charges.py ........  [ 66%]\n",
                "test-log - append: tests/test_refunds.py ..F.  [100%]\n",
                "test-log - append: FAILED tests/test_refunds.py::test_partial_refund - AssertionError: 450 != 500\n",
                "test-log - append last: 1 failed, 11 passed in 4.21s\n",
                "summary summary.json last: application/json {\"passed\":11,\"failed\":1,\"failures\":[{\"test\":\
                 \"tests/test_refunds.py::test_partial_refund\",\"error\":\"AssertionError: 450 != 500\"}]}",
                "done: 1 failed, 11 passed",
            ]
        );
    }
}

#[test]
fn the_commit_with_the_fix_passes_and_its_summary_has_no_failures_member() {
    let asked = text("Run the unit tests for payments-api at commit a41d7c3");
    assert_eq!(
        told("test-runner", &Heard::first(&asked)),
        [
            "working: Checking out a41d7c3 and starting the suite",
            "test-log test-log.txt: collected 13 items\n",
            "test-log - append: tests/test_charges.py ........  [ 61%]\n",
            "test-log - append: tests/test_refunds.py .....  [100%]\n",
            "test-log - append last: 13 passed in 4.38s\n",
            "summary summary.json last: application/json {\"passed\":13,\"failed\":0}",
            "done: 13 passed",
        ]
    );
}

#[test]
fn the_full_suite_has_eight_lines_and_no_summary_on_either_commit() {
    for (commit, asked) in [
        ("9f3c2e1", "Run the full suite for payments-api at commit 9f3c2e1"),
        ("9f3c2e1", "Run the full suite"),
        ("a41d7c3", "Run the full suite for payments-api at commit a41d7c3"),
    ] {
        let told = told("test-runner", &Heard::first(&text(asked)));
        assert_eq!(told[0], format!("working: Checking out {commit} and starting the suite"));
        assert_eq!(told[1], "test-log test-log.txt: tests/test_suite_01.py ........\n");
        for (number, told) in (2..8).zip(&told[2..8]) {
            assert_eq!(*told, format!("test-log - append: tests/test_suite_0{number}.py ........\n"));
        }
        assert_eq!(told[8], "test-log - append last: tests/test_suite_08.py ........\n");
        assert_eq!(told[9..], ["done: 96 passed"]);
    }
}

#[test]
fn deadbee_comes_before_the_full_suite() {
    let asked = text("Run the full suite at deadbee and a41d7c3");
    assert_eq!(told("test-runner", &Heard::first(&asked))[0], "working: Checking out deadbee");
}

#[test]
fn only_the_reviewer_answers_directly_and_only_a_question_without_a_diff() {
    let reviewer = script("code-reviewer");
    assert!(reviewer.answers_directly(&text("What languages can you review?")));
    assert!(reviewer.answers_directly(&text("What languages can you review? \n")));
    assert!(reviewer.answers_directly(&message(vec![Part::text("Really?"), Part::text("I wonder.")])));
    assert!(!reviewer.answers_directly(&text("Review this diff of payments-api.")));
    assert!(!reviewer.answers_directly(&text("Who? Me.")));
    assert!(!reviewer.answers_directly(&diff("Can you review this?", CLEAN_DIFF)));
    assert!(!script("test-runner").answers_directly(&text("Can you run the tests?")));
    assert!(!script("deployer").answers_directly(&text("Is it live?")));
    assert_eq!(
        told("code-reviewer", &Heard::first(&text("What languages can you review?"))),
        [
            "reply: I review unified diffs in Python, TypeScript and Go. Send the diff as a text/x-diff part and name the \
          base branch."
        ]
    );
}

#[test]
fn a_question_on_a_task_is_an_answer_and_gets_no_direct_reply() {
    let job = later(diff("Review this.", CLEAN_DIFF), Start::Answer, text("main?"));
    assert_eq!(told("code-reviewer", &Heard::of(&job))[0], "working: Comparing the diff against main");
}

#[test]
fn a_review_without_a_base_asks_for_it() {
    let asked = diff("Review this diff of payments-api.", DIFF_WITH_ROUNDING);
    assert_eq!(
        told("code-reviewer", &Heard::first(&asked)),
        ["ask: Which base branch should I compare this diff against?"]
    );
}

#[test]
fn the_answer_starts_the_review_of_the_diff_that_came_first() {
    let job = later(diff("Review this diff of payments-api.", DIFF_WITH_ROUNDING), Start::Answer, text("main"));
    assert_eq!(told("code-reviewer", &Heard::of(&job)), two_findings());
    let job = later(diff("Review this diff of payments-api.", CLEAN_DIFF), Start::Answer, text("main"));
    assert_eq!(told("code-reviewer", &Heard::of(&job)), one_finding());
    let job = later(text("Review it."), Start::Answer, diff("main", DIFF_WITH_ROUNDING));
    assert_eq!(told("code-reviewer", &Heard::of(&job)), one_finding(), "the answer's own diff does not count");
}

#[test]
fn a_base_in_the_first_message_starts_the_review_at_once() {
    let asked = diff("Review this diff, base: main", DIFF_WITH_ROUNDING);
    assert_eq!(told("code-reviewer", &Heard::first(&asked)), two_findings());
    let asked = diff("Review this diff, base: main", CLEAN_DIFF);
    assert_eq!(told("code-reviewer", &Heard::first(&asked)), one_finding());
}

#[test]
fn the_rounding_counts_only_in_a_diff() {
    let job = later(text("int(amount)"), Start::Answer, text("int(amount)"));
    assert_eq!(told("code-reviewer", &Heard::of(&job)), one_finding());
}

fn two_findings() -> [&'static str; 3] {
    [
        "working: Comparing the diff against main",
        "review review.json last: 2 findings in payments/refunds.py | application/json {\"base\":\"main\",\"findings\":\
         [{\"file\":\"payments/refunds.py\",\"line\":42,\"severity\":\"high\",\"finding\":\"Partial refunds round the \
         amount down before the fee is subtracted.\"},{\"file\":\"payments/refunds.py\",\"line\":57,\"severity\":\
         \"low\",\"finding\":\"The new branch has no test.\"}]}",
        "done: 2 findings",
    ]
}

fn one_finding() -> [&'static str; 3] {
    [
        "working: Comparing the diff against main",
        "review review.json last: 1 finding in tests/test_refunds.py | application/json {\"base\":\"main\",\
         \"findings\":[{\"file\":\"tests/test_refunds.py\",\"line\":18,\"severity\":\"low\",\"finding\":\"The test name \
         does not say which rounding rule it checks.\"}]}",
        "done: 1 finding",
    ]
}

#[test]
fn a_deploy_to_staging_needs_an_approval() {
    assert_eq!(
        told("deployer", &Heard::first(&text("Deploy build 2026.10.06-1 to staging"))),
        [
            "working: Preparing build 2026.10.06-1 for staging",
            "need_approval: An operator must approve this deploy at {approve_url}",
        ]
    );
}

#[test]
fn a_deploy_to_production_is_rejected_before_any_work() {
    assert_eq!(
        told("deployer", &Heard::first(&text("Deploy build 2026.10.06-1 to production"))),
        ["rejected: Production deploys are outside this agent's policy. Use the release train."]
    );
}

#[test]
fn an_approval_rolls_out() {
    let asked = text("Deploy build 2026.10.06-1 to staging");
    let job = later(asked.clone(), Start::Approval { by: None }, asked);
    assert_eq!(
        told("deployer", &Heard::of(&job)),
        [
            "working: Approved by an operator. Rolling out to staging",
            "deploy-report deploy-report.json last: application/json {\"environment\":\"staging\",\"build\":\
             \"2026.10.06-1\",\"url\":\"https://staging.example.com\",\"healthChecks\":\"3 of 3 passing\"}",
            "done: Build 2026.10.06-1 is live on staging",
        ]
    );
}

#[test]
fn o19_a_message_to_a_waiting_deploy_is_never_an_approval() {
    for words in ["approved", "yes, go on", "to production"] {
        let job = later(text("Deploy build 2026.10.06-1 to staging"), Start::Answer, text(words));
        assert_eq!(
            told("deployer", &Heard::of(&job)),
            ["need_approval: An operator must approve this deploy at {approve_url}"]
        );
    }
}

#[test]
fn a_refusal_rejects_and_an_expiry_cancels() {
    let asked = text("Deploy build 2026.10.06-1 to staging");
    let job = later(asked.clone(), Start::Refusal { by: None, reason: None }, asked.clone());
    assert_eq!(told("deployer", &Heard::of(&job)), ["rejected: An operator refused this deploy."]);
    let job = later(asked.clone(), Start::Expiry, asked);
    assert_eq!(told("deployer", &Heard::of(&job)), ["canceled: Nobody approved this deploy in time."]);
}

#[test]
fn the_story_is_named_by_its_file_and_opened_by_its_name() {
    assert_eq!(Script::open("deployer", "payments-api").unwrap().story(), "payments-api");
    assert_eq!(
        Story::open("payments-api").unwrap().agents().collect::<Vec<_>>(),
        ["code-reviewer", "deployer", "test-runner"]
    );
}
