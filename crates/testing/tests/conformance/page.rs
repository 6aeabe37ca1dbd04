//! `docs/conformance.md` against the tree.

use std::collections::{BTreeMap, BTreeSet};

use script::{Scripted, Story};

use crate::FILE;

const PAGE: &str = include_str!("../../../../docs/conformance.md");
/// The files of these tests.
const TESTS: [&str; 9] = [
    include_str!("card.rs"),
    include_str!("core.rs"),
    include_str!("data.rs"),
    include_str!("prefix.rs"),
    include_str!("push.rs"),
    include_str!("shape.rs"),
    include_str!("stream.rs"),
    include_str!("unseen.rs"),
    include_str!("wire.rs"),
];

/// The names of the tests.
fn tests() -> BTreeSet<&'static str> {
    let functions = TESTS.iter().flat_map(|file| file.split("#[tokio::test]\n").skip(1));
    let names = functions.map(|test| test.split("fn ").nth(1).unwrap().split('(').next().unwrap());
    names.collect()
}

/// The ids that a text names, such as `CORE-GET-001`.
fn ids(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "-_".contains(letter)));
    let is_id = |word: &&str| {
        let number = word.rsplit('-').next().unwrap().trim_end_matches('a');
        word.starts_with(|first: char| first.is_ascii_uppercase()) && number.len() == 3 && number.parse::<u16>().is_ok()
    };
    words.filter(is_id).collect()
}

/// What the names of a requirement's tests begin with.
fn prefix(id: &str) -> String {
    format!("{}_", id.to_lowercase().replace('-', "_"))
}

#[test]
fn each_requirement_of_the_page_is_a_test_and_each_test_of_one_is_on_the_page() {
    let list = PAGE.split("### Held by CI").nth(1).unwrap();
    let list: String = list.lines().filter(|line| line.starts_with("- ")).collect::<Vec<_>>().join("\n");
    let named = ids(&list);
    assert_eq!(named.len(), 104 + 21, "those that the kit tests, and those that it does not");
    let mut tests: BTreeMap<&str, usize> = tests().into_iter().map(|name| (name, 0)).collect();
    for id in named {
        let prefix = prefix(id);
        let mut held = tests.iter_mut().filter(|(name, _)| name.starts_with(&prefix)).peekable();
        assert!(held.peek().is_some(), "no test holds {id}");
        held.for_each(|(_, uses)| *uses += 1);
    }
    let is_of_one = |name: &str| {
        let number = |word: &str| word.trim_end_matches('a').parse::<u16>().is_ok_and(|_| word.len() >= 3);
        !name.starts_with("tck_") && name.split('_').any(number)
    };
    for (name, uses) in tests {
        assert_eq!(uses, usize::from(is_of_one(name)), "{name}");
    }
}

#[test]
fn each_failure_that_is_right_names_the_tests_that_hold_what_is_right() {
    let table = PAGE.split("### Failures that are right").nth(1).unwrap().split("###").next().unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), 5);
    let tests = tests();
    for row in rows {
        let held = row.trim_matches(['|', ' ']).rsplit(" | ").next().unwrap();
        let names: Vec<&str> = held.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names {
            assert!(tests.contains(name), "{name} is no test");
        }
    }
}

#[test]
fn the_configurations_of_the_page_are_those_of_the_agent() {
    let story = Story::parse("conformance.toml", FILE).unwrap();
    let kit = PAGE.split("\n## ").nth(1).unwrap();
    let rows = kit.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let named: BTreeSet<&str> = rows.chain(["req"]).collect();
    assert_eq!(named, BTreeSet::from(["full", "nocap", "ext", "req"]));
    for configuration in named {
        assert!(Scripted::of(&story, "conformance.toml", None, Some(configuration)).is_ok(), "{configuration}");
    }
}

#[test]
fn the_command_of_the_page_starts_the_agent() {
    let command = PAGE.lines().find(|line| line.starts_with("cargo run -p workshop --features grpc -- ")).unwrap();
    let words: Vec<&str> = command.split(" -- ").nth(1).unwrap().split(' ').collect();
    assert_eq!(words[..2], ["agent", "conformance"]);
    let mut flags = clap::Command::new("agent").no_binary_name(true);
    flags = <server::cli::Flags as clap::Args>::augment_args(flags.arg(clap::Arg::new("file")))
        .arg(clap::Arg::new("configuration").long("configuration"));
    let given = flags.try_get_matches_from(&words[1..]).unwrap();
    assert_eq!(given.get_one::<String>("configuration").unwrap(), "full");
}
