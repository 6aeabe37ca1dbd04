//! The forms of a review, and who gets which.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use code_reviewer::CodeReviewer;
use code_reviewer::real::{Config, Finding, Review, Reviewer, Severity, diff::Note};
use serde_json::{Value, json};
use testing::{Binding, Served, serve, skip};

use super::{status, with_diff};

const DIFF: &str = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n@@ -7 +7 @@ x\n-b\n";

async fn made_for(served: &Served, modes: &[&str]) -> Value {
    let mut params = with_diff("Review this, base: main", DIFF);
    params["configuration"] = json!({"acceptedOutputModes": modes});
    served.call(Binding::Rpc, "SendMessage", params).await.result()["task"].clone()
}

/// The artifacts' names, and the media types of their parts.
fn forms(task: &Value) -> Vec<(String, Vec<String>)> {
    let text = |value: &Value, usual: &str| value.as_str().unwrap_or(usual).to_owned();
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    artifacts
        .map(|made| {
            let parts = made["parts"].as_array().unwrap().iter();
            (text(&made["name"], ""), parts.map(|part| text(&part["mediaType"], "-")).collect())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_gets_the_forms_that_it_takes() {
    let plain = serve(CodeReviewer::working(Reviewer::new(Config::default()).unwrap()), |_| {}).await;
    let sarif = Reviewer::new(Config::default()).unwrap().with_sarif();
    let sarif = serve(CodeReviewer::working(sarif), |_| {}).await;
    let made = |name: &str, types: &[&str]| (name.to_owned(), types.iter().map(|one| (*one).to_owned()).collect());
    let json = made("review.json", &["-", "application/json"]);
    for modes in
        [&[][..], &["text/plain", "application/json"], &["*/*"], &["application/json", "application/sarif+json"]]
    {
        assert_eq!(forms(&made_for(&plain, modes).await), std::slice::from_ref(&json), "{modes:?}");
    }
    let only = made("review.sarif", &["application/sarif+json"]);
    assert_eq!(forms(&made_for(&sarif, &["application/sarif+json"]).await), std::slice::from_ref(&only));
    assert_eq!(forms(&made_for(&sarif, &["application/json", "application/sarif+json"]).await), [json.clone(), only]);
    assert_eq!(forms(&made_for(&sarif, &[]).await), [json]);
    assert_eq!(
        forms(&made_for(&plain, &["text/markdown", "text/plain"]).await),
        [made("review.md", &["text/markdown"])]
    );
    let text = made_for(&plain, &["text/plain"]).await;
    assert_eq!(forms(&text), [made("review.txt", &["-"])]);
    let words = "no findings\na.py, hunk 2: Its header says 1 old and 1 new lines, and it has 1 and 0.\n";
    assert_eq!(text["artifacts"][0]["parts"][0]["text"], words);
    let none = made_for(&plain, &["image/png"]).await;
    assert_eq!(status(&none).0, "REJECTED");
    assert!(status(&none).1.contains("application/json, text/markdown, text/plain"), "{none}");
    let none = made_for(&plain, &["application/sarif+json"]).await;
    assert_eq!(status(&none).0, "REJECTED");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_card_names_sarif_when_it_is_switched_on_and_is_the_kits_otherwise() {
    let card = async |reviewer: Reviewer| {
        let served = serve(CodeReviewer::working(reviewer), |_| {}).await;
        let mut card = served.http("GET", "/.well-known/agent-card.json", &[], "").await.body;
        card["supportedInterfaces"] = json!([]);
        card
    };
    let mut expected = serde_json::to_value(code_reviewer::card()).unwrap();
    assert_eq!(card(Reviewer::new(Config::default()).unwrap()).await, expected);
    expected["skills"][0]["outputModes"] = json!(["text/plain", "application/json", "application/sarif+json"]);
    assert_eq!(card(Reviewer::new(Config::default()).unwrap().with_sarif()).await, expected);
}

/// The schema of SARIF 2.1.0 and a Python that can validate by it, fetched once: the schema stands in the package
/// serde-sarif of crates.io, the validator is jsonschema of PyPI.
fn validator() -> Option<(PathBuf, PathBuf)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sarif");
    fs::create_dir_all(folder.join("src")).unwrap();
    let lock = fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let manifest = "[package]\nname = \"schema\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n\
        [dependencies]\nserde-sarif = \"=0.8.0\"\n";
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("src/lib.rs"), "").unwrap();
    let metadata = cargo_metadata::MetadataCommand::new().manifest_path(folder.join("Cargo.toml")).exec();
    let Ok(metadata) = metadata else {
        skip("the package with the schema of SARIF cannot be fetched");
        return None;
    };
    let package = metadata.packages.iter().find(|package| package.name.as_str() == "serde-sarif").unwrap();
    let schema = package.manifest_path.with_file_name("src/schema.json");
    let python = folder.join("bin/python");
    let works =
        || Command::new(&python).args(["-c", "import jsonschema"]).output().is_ok_and(|done| done.status.success());
    if !works() {
        let _ = Command::new("python3").args(["-m", "venv"]).arg(&folder).output();
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "jsonschema[format]==4.26.0"];
        let _ = Command::new(&python).args(pip).output();
    }
    if !works() {
        skip("Python with venv and pip, which jsonschema is installed with, is not here");
        return None;
    }
    Some((schema.into(), python))
}

/// What is wrong with a log; nothing when it is valid.
fn mistakes((schema, python): &(PathBuf, PathBuf), log: &Value) -> String {
    let script = "import json, sys, jsonschema\n\
        schema = json.load(open(sys.argv[1]))\n\
        validator = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())\n\
        for error in validator.iter_errors(json.load(sys.stdin)): print(error.json_path, error.message)\n";
    let mut python = Command::new(python);
    let mut child = python
        .args(["-c", script])
        .arg(schema)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), log).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sarif_is_valid_by_its_public_schema() {
    let Some(validator) = validator() else { return };
    let finding = |rule: &'static str| Finding {
        file: "a b/ä #1.py".to_owned(),
        line: 3,
        severity: Severity::High,
        finding: "Wrong.".to_owned(),
        rule: rule.into(),
    };
    let review = Review {
        base: Some("main".to_owned()),
        findings: code_reviewer::real::rules::all()
            .iter()
            .map(|rule| finding(rule.id))
            .chain([finding("ruff/F401")])
            .collect(),
        notes: vec![Note::of("c.py", Some(2), "Wrong."), Note::of_all("ruff was not asked.")],
    };
    assert_eq!(mistakes(&validator, &review.sarif()), "");
    assert_eq!(mistakes(&validator, &Review::default().sarif()), "");
    let reviewer = Reviewer::new(Config::default()).unwrap().with_sarif();
    let served = serve(CodeReviewer::working(reviewer), |_| {}).await;
    let task = made_for(&served, &["application/sarif+json"]).await;
    assert_eq!(mistakes(&validator, &task["artifacts"][0]["parts"][0]["data"]), "");
    // The validator finds mistakes.
    let mut wrong = review.sarif();
    wrong["runs"][0]["results"][0]["level"] = json!("high");
    assert!(mistakes(&validator, &wrong).contains("level"));
}
