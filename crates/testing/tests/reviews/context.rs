//! The diff in the files of its base, or without them.

use code_reviewer::real::Config;

use super::{AFTER, BEFORE, Repository, content, notes, review, reviewer, status};

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_that_does_not_apply_is_said_so_hunk_by_hunk_and_read_anyway() {
    let long = |first: &str, last: &str| {
        let middle: String = (2..30).map(|number| format!("value_{number} = {number}\n")).collect();
        format!("{first}\n{middle}{last}\n")
    };
    let repository = Repository::new(&[("a.py", &long("one = 1", "two = 2")), ("gone.py", BEFORE)]);
    let changed = long("one = 11", "two = 22");
    let diff = repository.diff(&[("a.py", &changed), ("gone.py", AFTER), ("new.py", BEFORE)]);
    let served = reviewer(repository.config("")).await;
    let fits = review(&served, "Review this diff of shop, base: main", &diff).await;
    assert_eq!((content(&fits)["base"].as_str(), notes(&fits)), (Some("main"), vec![]));

    // The base goes on: the last line is another, a file is gone, and one is there already. Lines before do no harm.
    repository.commit(&[("a.py", &format!("# First.\n{}", long("one = 1", "two = 3"))), ("new.py", BEFORE)]);
    super::git(repository.path(), &["rm", "--quiet", "gone.py"]);
    repository.commit(&[]);
    let harmed = review(&served, "Review this diff of shop, base: main", &diff).await;
    let expected = [
        "a.py, hunk 2: It does not apply to main: its old lines are not there.",
        "gone.py: The diff does not apply: gone.py is not in main. The hunks were read alone.",
        "new.py: The diff makes it, and it is in main already.",
    ];
    assert_eq!(notes(&harmed), expected);
    assert_eq!(testing::state(&harmed), "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_leads_outside_and_one_with_spaces_and_quotes_are_names_and_nothing_else() {
    let repository = Repository::new(&[("a b/\"q\" ä.py", BEFORE)]);
    let diff = repository.diff(&[("a b/\"q\" ä.py", AFTER)]);
    let served = reviewer(repository.config("")).await;
    let task = review(&served, "Review this", &diff).await;
    assert_eq!(notes(&task), Vec::<String>::new(), "{task}");
    let outside = "--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n\
        --- /etc/hosts\n+++ /etc/hosts\n@@ -1 +1 @@\n-a\n+b\n";
    let task = review(&served, "Review this", outside).await;
    let [first, second] = notes(&task).try_into().unwrap();
    assert_eq!(
        first,
        "../../etc/passwd: The diff does not apply: ../../etc/passwd is not in main. The hunks were read alone."
    );
    assert_eq!(second, "/etc/hosts: The diff does not apply: /etc/hosts is not in main. The hunks were read alone.");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_repository_hunks_are_read_alone_and_what_cannot_be_read_is_said() {
    let served = reviewer(Config::default()).await;
    let diff = "diff --git a/logo.png b/logo.png\nindex 1..2 100644\nBinary files a/logo.png and b/logo.png differ\n\
        --- a/one.py\n+++ b/one.py\n@@ -1,9 +1,9 @@\n-a = 1\n+a = 2\n@@ -40,1 +40,1 @@\n-b = 1\n+b = 2\n";
    let task = review(&served, "Review this diff, base: main.", diff).await;
    let expected = [
        "one.py, hunk 1: Its header says 9 old and 9 new lines, and it has 1 and 1.",
        "logo.png: It is binary and was not read.",
    ];
    assert_eq!(notes(&task), expected);
    assert_eq!(content(&task)["base"], "main");
    assert_eq!(content(&task)["notes"][0]["hunk"], 1);
    assert_eq!(status(&task).0, "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_a_repository_too() {
    let bundle = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/payments-api.bundle");
    let project = format!("payments-api={}", bundle.display()).parse().unwrap();
    let served = reviewer(Config { projects: vec![project], tools: Vec::new() }).await;
    let diff = "--- a/payments/refunds.py\n+++ b/payments/refunds.py\n@@ -42 +42 @@\n\
        -    net = int(amount) * 100 - fee(charge)\n+    net = gross - fee(charge)\n";
    let task = review(&served, "Review this diff of payments-api, base: main", diff).await;
    assert_eq!((content(&task)["base"].as_str(), notes(&task)), (Some("main"), vec![]), "{task}");
    let task = review(&served, "Review this diff of payments-api, base: rounding", diff).await;
    assert_eq!(
        notes(&task),
        ["payments/refunds.py, hunk 1: It does not apply to rounding: its old lines are not there."]
    );
}
