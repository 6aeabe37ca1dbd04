//! A file while the rules read it.

use std::borrow::Cow;

use tree_sitter::Node;

use super::Rule;
use super::tree::{part, within};
use crate::real::finding::Finding;
use crate::real::source::{Language, Source};

/// A file, and what was found in it so far.
pub(super) struct File<'a> {
    pub source: &'a Source<'a>,
    /// Whether the place that is read is code of tests.
    pub test: bool,
    /// Whether it is a program for people at a terminal, an example or a script, where printing is the purpose.
    pub aside: bool,
    pub found: Vec<Finding>,
}

impl<'a> File<'a> {
    pub fn new(source: &'a Source<'a>) -> Self {
        Self { source, test: is_test(source.path), aside: is_aside(source), found: Vec::new() }
    }

    /// A node's text; nothing when the tree and the text disagree.
    pub fn text(&self, node: Node<'_>) -> &'a str {
        self.source.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The text of a child with a role; nothing without one.
    pub fn part(&self, node: Node<'_>, role: &str) -> &'a str {
        part(node, role).map_or("", |one| self.text(one))
    }

    /// The lines in which a node stands, whole.
    pub fn lines(&self, node: Node<'_>) -> &'a str {
        let text = self.source.text;
        let from = text.get(..node.start_byte()).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let rest = text.get(node.end_byte()..).unwrap_or_default();
        let to = node.end_byte() + rest.find('\n').unwrap_or(rest.len());
        text.get(from..to).unwrap_or_default()
    }

    /// The number of a node's first line in the new file.
    pub fn line(&self, node: Node<'_>) -> u32 {
        self.at(node.start_position().row)
    }

    fn at(&self, row: usize) -> u32 {
        self.source.first_line.saturating_add(u32::try_from(row).unwrap_or(u32::MAX))
    }

    /// Whether a node's end is seen. That of a hunk is not the end of what it stands in.
    pub fn ends(&self, node: Node<'_>) -> bool {
        self.source.whole || node.end_byte() < self.source.text.trim_end().len()
    }

    /// Whether one of a node's lines was changed.
    pub fn touches(&self, node: Node<'_>) -> bool {
        let (from, to) = (self.line(node), self.at(node.end_position().row));
        from <= to && self.source.changed.range(from..=to).next().is_some()
    }

    /// Whether a node's first line was changed.
    pub fn begins_changed(&self, node: Node<'_>) -> bool {
        self.source.changed.contains(&self.line(node))
    }

    /// Whether all lines of a node were changed.
    pub fn all_changed(&self, node: Node<'_>) -> bool {
        (self.line(node)..=self.at(node.end_position().row)).all(|line| self.source.changed.contains(&line))
    }

    /// Says what is wrong at a node, unless its line is not one of the change or the rule has spoken there.
    pub fn say(&mut self, rule: &Rule, node: Node<'_>, finding: impl Into<String>) {
        self.say_at(rule, self.line(node), finding);
    }

    /// The same for a line.
    pub fn say_at(&mut self, rule: &Rule, line: u32, finding: impl Into<String>) {
        let again = self.found.iter().rev().take(8).any(|one| one.line == line && one.rule == rule.id);
        if self.source.changed.contains(&line) && !again {
            self.found.push(Finding {
                file: self.source.path.to_owned(),
                line,
                severity: rule.severity,
                finding: finding.into(),
                rule: Cow::Borrowed(rule.id),
            });
        }
    }

    /// A node's text on one line, at most some 60 characters, to be quoted.
    pub fn quote(&self, node: Node<'_>) -> String {
        let words: Vec<&str> = self.text(node).split_whitespace().take(30).collect();
        let text = words.join(" ");
        match text.char_indices().nth(60) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    }

    /// Whether a name in a node tells of money.
    pub fn of_money(&self, node: Node<'_>) -> bool {
        within(node, 60).iter().any(|(one, _)| one.kind().ends_with("identifier") && tells_of_money(self.text(*one)))
    }

    /// The text of what calls, or of the macro: `os.system`.
    pub fn callee(&self, call: Node<'_>) -> &'a str {
        let callee = self.part(call, "function");
        if callee.len() > 80 { "" } else { callee }
    }
}

/// Whether a path is one of tests.
pub(super) fn is_test(path: &str) -> bool {
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    let folder = |one: &&str| {
        matches!(*one, "test" | "tests" | "testing" | "__tests__" | "spec" | "specs" | "fixtures" | "testdata" | "e2e")
    };
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    folders.iter().any(folder)
        || name.contains(".test.")
        || name.contains(".spec.")
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || matches!(stem, "conftest" | "tests" | "test")
}

fn is_aside(source: &Source<'_>) -> bool {
    let mut folders: Vec<&str> = source.path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let folder = |one: &&str| {
        matches!(
            *one,
            "examples"
                | "example"
                | "scripts"
                | "script"
                | "bin"
                | "benches"
                | "benchmarks"
                | "tools"
                | "docs"
                | "cli"
                | "cmd"
                | "xtask"
        )
    };
    folders.iter().any(folder)
        || matches!(stem, "main" | "__main__" | "cli" | "setup" | "build" | "noxfile" | "manage")
        || source.whole && source.text.starts_with("#!") && source.language != Language::Rust
}

/// The words of a name: `refundAmount` and `refund_amount` have two. In lower case.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    for letter in name.chars().take(80) {
        if letter == '_' || letter.is_uppercase() && before_lower {
            words.push(String::new());
        }
        before_lower = letter.is_lowercase() || letter.is_ascii_digit();
        if letter != '_'
            && let Some(last) = words.last_mut()
        {
            last.extend(letter.to_lowercase());
        }
    }
    words
}

fn tells_of_money(name: &str) -> bool {
    words(name).iter().any(|word| {
        matches!(
            word.as_str(),
            "amount"
                | "price"
                | "prices"
                | "cents"
                | "fee"
                | "fees"
                | "refund"
                | "salary"
                | "money"
                | "payment"
                | "invoice"
                | "euros"
                | "dollars"
                | "discount"
                | "subtotal"
        )
    })
}

/// Whether a name stands for a constant: `TABLE`.
pub(super) fn is_constant(name: &str) -> bool {
    name.contains(|letter: char| letter.is_ascii_uppercase())
        && name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || "_.".contains(letter))
}
