//! Plans: what is wrong with one is said before anything is sent, and what is right is done.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use planner::plan::{Finished, Inputs};
use planner::{Operator, Plan, SHIP};
use played::{Played, SKILLS, Says, alone, task};
use protocol::TaskState;
use serde_json::{Value, json};

#[test]
fn the_plan_that_comes_with_the_planner_is_right() {
    assert_eq!(Plan::read(SHIP).unwrap().inputs(), ["commit", "diff", "build"]);
}

const RIGHT: &str = r#"
inputs = ["what", "log"]

[skills.run-tests.summary]
failed = "whole"
by = "text"
cases = [{ kind = ["new", "old"] }]

[[steps]]
name = "first"
skill = "run-tests"
send = [{ text = "Test {what}" }, { file = "log", name = "a.log", media = "text/plain" }]
values = { failed = "summary.failed", fresh = "count summary.cases where kind = new" }
say = [{ when = "failed > 0", text = "{failed} failed" }, { text = "{fresh} new, {state}" }]
stop = [{ when = "failed > 1", text = "too many: {failed}" }]

[[steps]]
name = "second"
skill = "deploy"
send = [{ text = "{what} by {first.fresh}, {first.state}" }]
"#;

#[test]
fn what_is_wrong_with_a_plan_is_said_with_its_line() {
    let cases = [
        ("{what}\" }, {", "{whatever}\" }, {", 12, "\"whatever\" is not known here; known: log, what"),
        ("{first.fresh}", "{fresh}", 20, "\"fresh\" is not known here"),
        ("{first.fresh}", "{first.by}", 20, "\"first.by\" is not known here"),
        ("summary.failed\"", "summary.failure\"", 13, "the shape of the skill has no summary.failure"),
        ("summary.failed\"", "report.failed\"", 13, "the skill run-tests has no shape of an artifact report"),
        ("summary.failed\"", "summary.cases\"", 13, "summary.cases is no single value"),
        ("count summary.cases where", "count summary.failed where", 13, "summary.failed is no list"),
        ("where kind = new", "where kind = newer", 13, "kind is never newer, but one of new, old"),
        ("where kind = new", "where size = new", 13, "the items of summary.cases have no size"),
        ("failed > 0", "failed >> 0", 14, "\">>\" compares nothing"),
        ("failed > 0", "passed > 0", 14, "\"passed\" is not known here"),
        ("failed > 1", "failed > some", 15, "\"some\" is no number"),
        ("too many: {failed}", "too many: {failed", 15, "a { stands alone"),
        ("file = \"log\"", "file = \"logs\"", 12, "\"logs\" is not known here"),
        ("name = \"second\"", "name = \"first\"", 18, "there are two steps first"),
        ("name = \"second\"", "name = \"second\"\nafter = [\"third\"]", 19, "no step third comes before this one"),
        ("by = \"text\"", "by = \"txt\"", 6, "\"txt\" is no shape"),
        ("by = \"text\"", "by = [\"text\", 3]", 6, "a list is one shape, or two words and more"),
        ("send = [{ text = \"{what} by", "sent = [{ text = \"{what} by", 20, "unknown field `sent`"),
        ("skill = \"deploy\"", "skill = deploy", 19, ""),
    ];
    Plan::read(RIGHT).unwrap();
    for (from, to, line, why) in cases {
        assert_eq!(RIGHT.matches(from).count(), 1, "{from}");
        let wrong = Plan::read(&RIGHT.replace(from, to)).unwrap_err();
        let (at, said) = &wrong.0[0];
        assert!(*at == line && said.contains(why), "{from} -> {to}: {wrong}");
    }
    // All that is wrong, not only the first.
    let wrong = RIGHT.replace("failed > 0", "failed").replace("{first.fresh}", "{fresh}");
    assert_eq!(Plan::read(&wrong).unwrap_err().0.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [14, 20]);
    assert_eq!(Plan::read("steps = []").unwrap_err().0, [(1, "the plan has no steps".to_owned())]);
}

fn inputs(names: &[&str]) -> Inputs {
    names.iter().map(|name| ((*name).to_owned(), format!("the {name}").into_bytes())).collect()
}

/// A task that completed with an artifact.
fn made(data: Value) -> Says {
    let mut task = task("COMPLETED", "done");
    task["artifacts"] = json!([{"artifactId": "summary", "parts": [{"data": data}]}]);
    Says::Result(json!({"task": task}))
}

async fn player(answers: impl Fn(&str) -> Says + Send + Sync + 'static) -> Played {
    let play = move |_: &str, params: &Value, _| answers(params["message"]["parts"][0]["text"].as_str().unwrap());
    alone(true, &SKILLS, play).await.met(Operator::Auto).await
}

#[tokio::test]
async fn a_plan_reads_says_stops_and_hands_on() {
    let plan = Plan::read(RIGHT).unwrap();
    let cases = [(0, "3 new", true), (1, "1 failed", true), (2, "2 failed", false)];
    for (failed, said, goes_on) in cases {
        let played = player(move |text| match text {
            "Test the what" => {
                let cases = ["new", "old", "new", "new"].map(|kind| json!({"kind": kind}));
                made(json!({"failed": failed, "by": "me", "cases": cases}))
            }
            "the what by 3, TASK_STATE_COMPLETED" => Says::Result(json!({"task": task("COMPLETED", "live")})),
            other => panic!("{other}"),
        })
        .await;
        let finished = played.planner.run(&plan, &inputs(&["what", "log"])).await.unwrap();
        let log = played.log();
        assert!(log[2].starts_with(said), "{log:?}");
        if goes_on {
            assert_eq!(finished, Finished::Done(Some(TaskState::Completed)), "{log:?}");
        } else {
            assert_eq!((finished, log.last().unwrap().as_str()), (Finished::Stopped, "stop: too many: 2"));
        }
    }
}

/// A plan with answers to what the agent asks.
const ANSWERS: &str = r#"
inputs = ["branch"]

[[steps]]
name = "only"
skill = "deploy"
send = [{ text = "Deploy it" }]
answers = [
    { asks = "which * region", text = "the one of {branch}" },
    { asks = "base branch", text = "{branch}" },
    { data = "size", text = "small" },
    { data = "owner", text = "{branch}'s" },
]
"#;

#[test]
fn answers_are_checked_before_anything_is_sent() {
    let cases = [
        ("text = \"{branch}\"", "text = \"{brunch}\"", 10, "\"brunch\" is not known here; known: branch"),
        ("asks = \"base branch\", ", "", 10, "either which words are asked, or which member of data"),
        ("asks = \"base branch\"", "asks = \" \"", 10, "either which words are asked"),
        ("asks = \"base branch\"", "asks = \"x\", data = \"x\"", 10, "either which words are asked"),
        ("data = \"owner\"", "data = \"size\"", 12, "there is an answer to this already"),
        ("data = \"owner\"", "member = \"owner\"", 12, "unknown field `member`"),
    ];
    Plan::read(ANSWERS).unwrap();
    for (from, to, line, why) in cases {
        let wrong = Plan::read(&ANSWERS.replace(from, to)).unwrap_err();
        let (at, said) = &wrong.0[0];
        assert!(*at == line && said.contains(why), "{from} -> {to}: {wrong}");
    }
}

#[tokio::test]
async fn what_an_agent_asks_is_answered_out_of_the_plan_by_words_or_by_data() {
    let text = |text: &str| json!({"text": text});
    let cases = [
        (json!([{"text": "Which region, please?"}]), text("the one of trunk")),
        (json!([{"text": "What is the BASE BRANCH?"}]), text("trunk")),
        (json!([{"text": "Why?"}]), text("I cannot answer that.")),
        // Several members are answered together; what is not known is left out.
        (
            json!([{"text": "Tell me"}, {"data": {"size": null, "owner": "?", "colour": 1}}]),
            json!({"data": {"owner": "trunk's", "size": "small"}, "mediaType": "application/json"}),
        ),
        (json!([{"data": {"region": "which region?"}}]), text("the one of trunk")),
        (json!([{"text": "base branch?"}, {"data": ["size"]}]), text("trunk")),
    ];
    for (parts, answer) in cases {
        let question = parts.clone();
        let agent = alone(true, &SKILLS, move |_, _, number| match number {
            1 => {
                let mut asking = task("INPUT_REQUIRED", "");
                asking["status"]["message"]["parts"] = question.clone();
                Says::Result(json!({"task": asking}))
            }
            _ => Says::Result(json!({"task": task("COMPLETED", "done")})),
        });
        let played = agent.await.met(Operator::Auto).await;
        let inputs = Inputs::from([("branch".to_owned(), b"trunk".to_vec())]);
        let finished = played.planner.run(&Plan::read(ANSWERS).unwrap(), &inputs).await.unwrap();
        assert_eq!(finished, Finished::Done(Some(TaskState::Completed)));
        let sent = played.stage.sent.lock().unwrap()[1]["message"].clone();
        assert_eq!((&sent["parts"], &sent["taskId"]), (&json!([answer]), &json!("0123456789")), "{parts}");
        let shown = answer["text"].as_str().map_or_else(|| answer["data"].to_string(), str::to_owned);
        let asked = &played.log()[2];
        assert!(asked.starts_with("  it asks: ") && asked.ends_with(&format!("its own context: {shown}")), "{asked}");
    }
}

#[tokio::test]
async fn a_plan_whose_inputs_are_not_all_there_or_too_many_is_not_begun() {
    let plan = Plan::read(RIGHT).unwrap();
    for (given, why) in
        [(&["what"][..], "the plan's log is not given"), (&["log", "what", "why"], "the plan has no why")]
    {
        let played = player(|other| panic!("{other}")).await;
        let failure = played.planner.run(&plan, &inputs(given)).await.unwrap_err();
        assert_eq!(failure.to_string(), why);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn steps_after_the_same_ones_run_side_by_side_and_their_lines_name_them() {
    let plan = Plan::read(
        r#"
        [[steps]]
        name = "left"
        skill = "run-tests"
        send = [{ text = "left" }]
        [[steps]]
        name = "right"
        skill = "review-diff"
        after = []
        send = [{ text = "right" }]
        [[steps]]
        name = "last"
        skill = "deploy"
        after = ["left", "right"]
        send = [{ text = "{left.state} and {right.state}" }]
        "#,
    )
    .unwrap();
    // Neither is answered before both have come.
    let both = std::sync::Arc::new(std::sync::Barrier::new(2));
    let played = player(move |text| {
        if text == "left" || text == "right" {
            tokio::task::block_in_place(|| both.wait());
        } else {
            assert_eq!(text, "TASK_STATE_COMPLETED and TASK_STATE_COMPLETED");
        }
        Says::Result(json!({"task": task("COMPLETED", "done")}))
    })
    .await;
    let finished = played.planner.run(&plan, &Inputs::new()).await.unwrap();
    assert_eq!(finished, Finished::Done(Some(TaskState::Completed)));
    let mut log = played.log();
    assert_eq!(log.split_off(4), ["delegate deploy to player", "  task 01234567 is TASK_STATE_COMPLETED"]);
    log.sort();
    let beside = [
        "left |   task 01234567 is TASK_STATE_COMPLETED",
        "left | delegate run-tests to player",
        "right |   task 01234567 is TASK_STATE_COMPLETED",
        "right | delegate review-diff to player",
    ];
    assert_eq!(log, beside);
}
