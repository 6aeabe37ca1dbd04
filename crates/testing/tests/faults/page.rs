//! `docs/faults.md` against the tree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all tests in the tree.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && !["target", ".git"].contains(&entry.file_name().to_str().unwrap()) {
            tests(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| {
                let line = line.trim_start();
                let line = line.strip_prefix("async ").unwrap_or(line);
                line.strip_prefix("fn ")?.split(['(', '<']).next()
            });
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_test_that_the_page_names_is_there() {
    let page = std::fs::read_to_string(root().join("docs/faults.md")).unwrap();
    let mut there = BTreeSet::new();
    tests(&root().join("crates"), &mut there);
    let mut named = 0;
    for code in page.split('`').skip(1).step_by(2) {
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        if code.chars().all(is_name) && code.matches('_').count() > 3 {
            assert!(there.contains(code), "docs/faults.md names {code}, which is no test");
            named += 1;
        }
    }
    assert!(named > 30, "only {named} tests are named");
}

#[test]
fn every_entry_of_the_page_names_a_test_or_says_why_it_needs_none() {
    let page = std::fs::read_to_string(root().join("docs/faults.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| B"));
    let mut entries = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [entry, .., shown] = cells[..] else { panic!("several cells: {row}") };
        assert!(entries.insert(entry), "{entry} stands there twice");
        assert!(cells.iter().all(|cell| !cell.is_empty()), "{row}");
        assert!(shown.contains('`') || shown.starts_with("cannot occur"), "{row}");
    }
    assert!(entries.len() > 30, "{entries:?}");
}
