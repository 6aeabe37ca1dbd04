//! Agents that are written as data, served: each step of the language, and each flaw.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use script::{Scripted, Story};
use serde_json::{Value, json};
use server::Setup;
use testing::{Binding, Served, frame_state, message, send, serve, state, texts, to};

/// Serves an agent whose rules these are. Every rule is `[[a.rule]]`.
async fn served(rules: &str, change: impl FnOnce(&mut Setup)) -> Served {
    let about = "[a]\ndescription = \"d\"\nversion = \"1\"\n\
                 skill = [{ id = \"s\", name = \"s\", description = \"s\", tags = \"t\" }]\n";
    let story = Story::parse("a.toml", &format!("{about}{rules}")).unwrap();
    serve(Scripted::of(&story, "a.toml", None, None).unwrap(), change).await
}

/// Serves an agent that says this to everything.
async fn saying(steps: &str) -> Served {
    served(&rule("otherwise = true", steps), |_| {}).await
}

fn rule(at: &str, steps: &str) -> String {
    format!("[[a.rule]]\n{at}\nsay = [{steps}]\n")
}

async fn sent(agent: &Served, text: &str) -> Value {
    agent.call(Binding::Rpc, "SendMessage", send(text)).await.result().clone()
}

async fn task(agent: &Served, text: &str) -> Value {
    sent(agent, text).await["task"].clone()
}

fn words(status: &Value) -> &str {
    status["message"]["parts"][0]["text"].as_str().unwrap()
}

/// What a stream tells, from its first frame on.
async fn told(agent: &Served, text: &str) -> Vec<Value> {
    agent.stream(Binding::Rpc, "SendStreamingMessage", send(text)).await.rest().await
}

#[tokio::test]
async fn reply_is_a_direct_message() {
    let answer = sent(&saying("{ reply = \"You said: {text}\" }").await, "hello").await;
    assert_eq!(answer["message"]["parts"][0]["text"], "You said: hello");
    assert_eq!(answer["message"]["role"], "ROLE_AGENT");
}

#[tokio::test]
async fn queued_and_working_are_told_in_their_order() {
    let agent = saying("{ queued = \"second in line\" }, \"working\", { working = \"half\" }, \"done\"").await;
    let frames = told(&agent, "go").await;
    let states: Vec<&str> = frames.iter().map(frame_state).collect();
    assert_eq!(states, ["SUBMITTED", "SUBMITTED", "WORKING", "WORKING", "COMPLETED"]);
    assert_eq!(words(&frames[1]["statusUpdate"]["status"]), "second in line");
    assert_eq!(frames[2]["statusUpdate"]["status"].get("message"), None);
}

#[tokio::test]
async fn an_artifact_comes_in_pieces_with_a_name_and_parts_of_every_kind() {
    let steps = r#"
        { artifact = "x", name = "x.txt", parts = [{ text = "1" }] },
        { artifact = "x", append = true, last_chunk = true, parts = [{ text = "2" }] },
        { artifact = "y", parts = [
            { json = '{"n": 1.50}' },
            { file = "tck", filename = "a.txt", media_type = "text/plain" },
            { base64 = "/wA=" },
            { url = "https://example.com/a" },
        ] },
        "done",
    "#;
    let agent = saying(steps).await;
    let frames = told(&agent, "go").await;
    assert_eq!(frames[2]["artifactUpdate"]["append"], true);
    assert_eq!(frames[2]["artifactUpdate"]["lastChunk"], true);
    let task = task(&agent, "go").await;
    assert_eq!(
        (texts(&task["artifacts"][0]), &task["artifacts"][0]["name"]),
        (vec!["1".into(), "2".into()], &json!("x.txt"))
    );
    assert_eq!(
        task["artifacts"][1]["parts"],
        json!([
            {"data": {"n": 1.5}, "mediaType": "application/json"},
            {"raw": "dGNr", "filename": "a.txt", "mediaType": "text/plain"},
            {"raw": "/wA="},
            {"url": "https://example.com/a"},
        ])
    );
}

#[tokio::test]
async fn a_log_comes_line_by_line() {
    let task = task(&saying("{ log = \"l\", name = \"l.txt\", lines = [\"a\", \"b\"] }, \"done\"").await, "go").await;
    assert_eq!(texts(&task["artifacts"][0]), ["a\n", "b\n"]);
}

#[tokio::test]
async fn sleep_lets_time_pass_the_same_or_another_one_each_time() {
    let agent = saying("\"working\", { sleep_ms = 5 }, { sleep_ms = [1, 5] }, \"done\"").await;
    let begun = std::time::Instant::now();
    assert_eq!(state(&task(&agent, "go").await), "COMPLETED");
    assert!(begun.elapsed() >= Duration::from_millis(6));
}

#[tokio::test]
async fn a_sleep_ends_when_the_client_cancels() {
    let agent = saying("\"working\", { sleep_ms = 3600000 }, \"done\"").await;
    let id = agent.started("go").await;
    let canceled = agent.call(Binding::Rpc, "CancelTask", json!({"id": id})).await.result().clone();
    assert_eq!(state(&canceled), "CANCELED");
}

#[tokio::test]
async fn ask_waits_for_an_answer_which_is_matched_anew() {
    let rules = rule("on = \"answer\"\ncontains = \"main\"", "{ done = \"against {text}\" }")
        + &rule("on = \"answer\"", "{ ask = \"A branch, please.\" }")
        + &rule("otherwise = true", "{ ask = \"Which branch?\" }");
    let agent = served(&rules, |_| {}).await;
    let asked = task(&agent, "go").await;
    assert_eq!((state(&asked), words(&asked["status"])), ("INPUT_REQUIRED", "Which branch?"));
    let id = asked["id"].as_str().unwrap();
    let answer = async |text: &str| {
        let answer = agent.call(Binding::Rpc, "SendMessage", json!({"message": to(id, text)})).await;
        answer.result()["task"].clone()
    };
    assert_eq!(words(&answer("what?").await["status"]), "A branch, please.");
    let done = answer("main").await;
    assert_eq!((state(&done), words(&done["status"])), ("COMPLETED", "against main"));
}

#[tokio::test]
async fn an_approval_starts_the_next_turn() {
    let rules = rule("on = \"approval\"", "{ done = \"out\" }")
        + &rule("otherwise = true", "{ need_approval = \"{task_id}: {approve_url}\" }");
    let agent = served(&rules, |_| {}).await;
    let waits = task(&agent, "go").await;
    let id = waits["id"].as_str().unwrap();
    assert_eq!(state(&waits), "AUTH_REQUIRED");
    assert_eq!(words(&waits["status"]), format!("{id}: {}/approve/{id}", agent.url));
    let approved = agent.http("POST", &format!("/approve/{id}"), &[], "").await;
    assert_eq!(approved.status, 200);
    assert_eq!(words(&agent.until(id, "TASK_STATE_COMPLETED").await["status"]), "out");
}

#[tokio::test]
async fn a_task_ends_in_each_of_the_four_ways() {
    for (step, end) in [("done", "COMPLETED"), ("failed", "FAILED"), ("rejected", "REJECTED"), ("canceled", "CANCELED")]
    {
        let task = task(&saying(&format!("{{ {step} = \"so\" }}")).await, "go").await;
        assert_eq!((state(&task), words(&task["status"])), (end, "so"));
    }
}

#[tokio::test]
async fn a_message_that_no_rule_knows_fails_its_task_and_says_so() {
    let agent = served(&rule("contains = \"x\"", "\"done\""), |_| {}).await;
    let failed = task(&agent, "y").await;
    assert_eq!((state(&failed), words(&failed["status"])), ("FAILED", "The story has no rule for this message."));
}

#[tokio::test]
async fn the_beginning_of_the_message_id_chooses_the_rule() {
    let rules = rule("message_id_prefix = \"a-\"", "{ reply = \"a\" }")
        + &rule("message_id_prefix = \"a-b-\"", "{ reply = \"a-b\" }")
        + &rule("otherwise = true", "{ reply = \"other\" }");
    let agent = served(&rules, |_| {}).await;
    for (id, reply) in [("a-b-1", "a-b"), ("a-1", "a"), ("b-1", "other")] {
        let mut message = message("go");
        message["messageId"] = json!(id);
        let answer = agent.call(Binding::Rpc, "SendMessage", json!({"message": message})).await;
        assert_eq!(answer.result()["message"]["parts"][0]["text"], reply);
    }
}

// ---- flaws

#[tokio::test]
async fn panic_and_error_fail_the_task_without_a_word_of_their_cause() {
    for flaw in ["panic", "error"] {
        let failed = task(&saying(&format!("\"working\", \"{flaw}\"")).await, "go").await;
        assert_eq!((state(&failed), words(&failed["status"])), ("FAILED", "The agent failed."));
    }
}

#[tokio::test]
async fn return_without_end_fails_the_task() {
    let failed = task(&saying("\"working\", \"return_without_end\"").await, "go").await;
    assert_eq!((state(&failed), words(&failed["status"])), ("FAILED", "The agent stopped without a result."));
}

#[tokio::test]
async fn never_end_goes_on_until_the_limit_of_a_turn() {
    let short = |setup: &mut Setup| setup.limits.turn = Duration::from_millis(20);
    let agent = served(&rule("otherwise = true", "\"working\", \"never_end\""), short).await;
    let failed = task(&agent, "go").await;
    assert_eq!((state(&failed), words(&failed["status"])), ("FAILED", "The agent took too long and was stopped."));
}

#[tokio::test]
async fn never_end_heeds_a_cancel() {
    let patient = |setup: &mut Setup| setup.limits.cancel = Duration::from_secs(3600);
    let agent = served(&rule("otherwise = true", "\"working\", \"never_end\""), patient).await;
    let id = agent.started("go").await;
    let canceled = agent.call(Binding::Rpc, "CancelTask", json!({"id": id})).await;
    assert_eq!(state(canceled.result()), "CANCELED");
}

#[tokio::test]
async fn ignore_cancel_does_not_heed_it_and_is_dropped() {
    let steps = "{ artifact = \"x\", parts = [{ text = \"made\" }] }, \"ignore_cancel\", \"never_end\"";
    let short = |setup: &mut Setup| setup.limits.cancel = Duration::from_millis(20);
    let agent = served(&rule("otherwise = true", steps), short).await;
    let id = agent.started("go").await;
    let begun = std::time::Instant::now();
    let canceled = agent.call(Binding::Rpc, "CancelTask", json!({"id": id})).await.result().clone();
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert_eq!((state(&canceled), texts(&canceled["artifacts"][0])), ("CANCELED", vec!["made".to_owned()]));
}

#[tokio::test]
async fn what_is_said_after_an_ignored_cancel_changes_nothing() {
    let steps = "\"working\", \"ignore_cancel\", { sleep_ms = 30 }, { working = \"on\" }, { done = \"ready\" }";
    let patient = |setup: &mut Setup| setup.limits.cancel = Duration::from_secs(3600);
    let agent = served(&rule("otherwise = true", steps), patient).await;
    let id = agent.started("go").await;
    let canceled = agent.call(Binding::Rpc, "CancelTask", json!({"id": id})).await;
    assert_eq!(state(canceled.result()), "CANCELED");
}
