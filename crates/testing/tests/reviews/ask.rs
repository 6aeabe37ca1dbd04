//! What it asks, and what it makes of the answers.

use code_reviewer::real::Config;
use serde_json::json;
use testing::{Binding, send};

use super::{AFTER, BEFORE, Repository, content, notes, review, reviewer, say, status, with_diff};

const WHICH: &str = "Which base branch should I compare this diff against?";

#[tokio::test(flavor = "multi_thread")]
async fn the_base_is_asked_for_only_where_there_is_more_than_one_branch_and_none_was_named() {
    let repository = Repository::new(&[("a.py", BEFORE)]);
    let diff = repository.diff(&[("a.py", AFTER)]);
    let served = reviewer(repository.config("")).await;
    let task = review(&served, "Review this diff of shop.", &diff).await;
    assert_eq!(content(&task)["base"], "main");
    assert_eq!(task["history"][1]["parts"][0]["text"], "Comparing the diff against main");

    repository.branch("other");
    let asked = review(&served, "Review this diff of shop.", &diff).await;
    assert_eq!(status(&asked), ("INPUT_REQUIRED", WHICH));
    let branches = |task: &serde_json::Value| task["status"]["message"]["parts"][1]["data"]["branches"].clone();
    assert_eq!(branches(&asked), json!(["main", "other"]));
    let again = say(&served, &asked, "mian").await;
    assert_eq!(status(&again), ("INPUT_REQUIRED", &*format!("shop has no branch mian. {WHICH}")));
    assert_eq!(branches(&again), json!(["main", "other"]));
    let done = say(&served, &again, "Sorry, the branch is main.").await;
    assert_eq!((&content(&done)["base"], notes(&done)), (&json!("main"), vec![]));

    let named = review(&served, "Review this diff of shop, base: other", &diff).await;
    assert_eq!(content(&named)["base"], "other");
    let unknown = review(&served, "Review this diff of shop, base: --output=x", &diff).await;
    assert!(status(&unknown).1.starts_with("shop has no branch --output=x. "), "{unknown}");
    // A new file is the same against every base.
    let new = repository.diff(&[("b.py", BEFORE)]);
    assert!(content(&review(&served, "Review this diff of shop.", &new).await).get("base").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_project_is_asked_for_where_there_is_a_choice_and_one_that_is_not_there_has_its_hunks_read() {
    let repository = Repository::new(&[("a.py", BEFORE)]);
    let diff = repository.diff(&[("a.py", AFTER)]);
    let served = reviewer(repository.config("[project.depot]\npath = \"..\"\n")).await;
    let asked = review(&served, "Review this, base: main", &diff).await;
    let question = "Which project is this diff of: depot, shop? Say none to have its hunks read alone.";
    assert_eq!(status(&asked), ("INPUT_REQUIRED", question));
    let done = say(&served, &asked, "shop").await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(done["history"].to_string().contains("Comparing the diff against main"), "{done}");

    let asked = review(&served, "Review this", &diff).await;
    let done = say(&served, &asked, "none").await;
    assert!(done["history"].to_string().contains("Reading the changes of 1 file"), "{done}");
    let other = review(&served, "Review this diff of billing.", &diff).await;
    let words = "billing is not configured here, so the hunks were read alone. Configured: depot, shop.";
    assert_eq!(notes(&other), [words]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_diff_is_asked_for_one_over_every_binding() {
    let served = reviewer(Config::default()).await;
    for binding in Binding::ALL {
        let asked = served.call(binding, "SendMessage", send("Review this diff of payments-api.")).await;
        let task = &asked.result()["task"];
        assert_eq!(status(task), ("INPUT_REQUIRED", "Which diff should I review? Send it as a text/x-diff part."));
        let mut answer = with_diff("Here it is.", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n");
        answer["message"]["taskId"] = task["id"].clone();
        let done = served.call(binding, "SendMessage", answer).await;
        let task = &done.result()["task"];
        assert_eq!(testing::state(task), "COMPLETED", "{task}");
    }
    // Between words it is found as well, and words alone are none.
    let text = "Review this, please:\n```diff\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n```\n";
    let done = served.call(Binding::Rpc, "SendMessage", send(text)).await;
    assert_eq!(testing::state(&done.result()["task"]), "COMPLETED");
    let none = review(&served, "Review this", "@@ -1 +1 @@\n-a\n+b\n").await;
    let words = "There is no diff in what was sent. The hunk \"@@ -1 +1 @@\" belongs to no file.";
    assert_eq!(status(&none), ("FAILED", words));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_with_a_message_from_the_table_of_the_rules() {
    let served = reviewer(Config::default()).await;
    for binding in Binding::ALL {
        let answer = served.call(binding, "SendMessage", send("What languages can you review?")).await;
        let message = &answer.result()["message"];
        let words = "I review unified diffs in Python, TypeScript, Go and Rust. \
            Send the diff as a text/x-diff part and name the base branch.";
        assert_eq!(message["parts"][0]["text"], words);
        assert!(message.get("taskId").is_none());
    }
    for rule in code_reviewer::real::rules::all() {
        let answer = served.call(Binding::Rpc, "SendMessage", send(&format!("What is {}?", rule.id))).await;
        let text = answer.result()["message"]["parts"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains(rule.id) && text.contains(rule.why), "{text}");
    }
    let tasks = served.call(Binding::Rpc, "ListTasks", json!({})).await;
    assert_eq!(tasks.result()["totalSize"], 0);
}
