//! Mistakes in scenario files are refused when they are read, with file, line and what was expected; and the example
//! of `docs/scenarios.md` runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::Path;

use workshop::files::Files;
use workshop::record::record;
use workshop::set::Set;

const SET: &str = r#"
about = "a set of a test"
story = "payments-api"
clock = "2026-10-06T09:00:00Z"
tick_ms = 250
order = ["one"]

[agents.code-reviewer]
origin = "localhost:41242"
seed = 7
"#;

fn set_of(scenario: &str) -> (tempfile::TempDir, Result<Set, workshop::Mistake>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("test")).unwrap();
    std::fs::write(folder.path().join("test/set.toml"), SET).unwrap();
    std::fs::write(folder.path().join("test/one.toml"), scenario).unwrap();
    let set = Set::read(&Files::Folder(folder.path().into()), "test");
    (folder, set)
}

fn refused(scenario: &str, line: usize, words: &str) {
    let (_folder, set) = set_of(scenario);
    let mistake = set.expect_err(scenario);
    assert!(mistake.file.ends_with("one.toml"), "{mistake}");
    assert_eq!(mistake.line, line, "{mistake}");
    assert!(mistake.words.contains(words), "{mistake}");
}

#[test]
fn a_mistake_is_named_with_its_line_and_what_was_expected() {
    let step = |body: &str| format!("question = \"?\"\nseed = 1\n\n[[step]]\n{body}\n");
    refused(&step("card = \"code-reviewer\"\ntitel = \"x\""), 6, "did you mean title?");
    refused(&step("card = \"code-reviwer\"\ntitle = \"x\""), 5, "did you mean code-reviewer?");
    refused(&step("card = \"code-reviewer\""), 4, "title");
    refused(&step("call = \"SendMesage\"\nto = \"code-reviewer\"\ntitle = \"x\"\nparams = '{}'"), 5, "unknown = true");
    refused(
        &step("call = \"GetTask\"\nto = \"code-reviewer\"\ntitle = \"x\"\nparams = '{\"id\": }'"),
        8,
        "no JSON object",
    );
    refused(
        &step("call = \"GetTask\"\nto = \"code-reviewer\"\ntitle = \"x\"\nparams = '{\"id\": \"{task}\"}'"),
        8,
        "{task} was not taken",
    );
    refused(&step("wait = 2"), 4, "need a gate");
    refused(&step("note = \"hello\""), 4, "inside a stream");
    refused(&step("gate = \"code-reviewer\"\nwait = 2"), 4, "exactly one of gate, wait");
    refused(&step("gate = \"code-reviewer\""), 5, "holds nothing");
    refused(&step("title = \"x\""), 4, "a step has one of card, call");
    let held = "gate = \"code-reviewer\"\n[[step]]\ncall = \"SendMessage\"\nto = \"code-reviewer\"\ntitle = \"x\"\nparams = '{}'";
    refused(&step(&format!("{held}\n[[step]]\nwait = 2")), 10, "would wait for ever");
    refused("question = \"?\"\nseed = 1\n", 1, "at least one [[step]]");
    refused("question = \"?\"\nseed = \n", 2, "");
}

#[test]
fn an_unknown_set_or_scenario_is_answered_with_the_nearest_names() {
    let mistake = Set::read(&Files::Embedded, "kid").expect_err("there is no such set");
    assert!(mistake.words.contains("the nearest are kit"), "{mistake}");
    let set = Set::read(&Files::Embedded, "kit").unwrap();
    assert_eq!(set.find("04"), set.find("04-polling"));
    assert!(set.find("4-poling").unwrap_err().contains("04-polling"));
}

/// The example's files: each code block that begins with `# file: NAME`.
fn example() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```").skip(1).step_by(2);
    let files = blocks.filter_map(|block| {
        let body = block.strip_prefix("toml\n")?;
        let name = body.lines().next()?.strip_prefix("# file: ")?;
        Some((name.to_owned(), body.to_owned()))
    });
    files.collect()
}

#[tokio::test]
async fn the_example_of_the_page_runs() {
    let files = example();
    assert!(files.len() >= 2, "the page has a set and a scenario");
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let set = Set::read(&Files::Folder(folder.path().into()), "mine").unwrap();
    let all: Vec<usize> = (0..set.scenarios.len()).collect();
    let first = record(&set, &all).await.unwrap();
    assert!(first.keys().any(|name| name.ends_with(".http")));
    assert_eq!(first, record(&set, &all).await.unwrap(), "recorded again it is the same");
}
