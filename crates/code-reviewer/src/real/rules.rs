//! The rules.
//!
//! A file is parsed, walked once, and forgotten; each language has a module with what its rules look at. A rule says
//! nothing where it is not sure: what it leaves out on purpose stands on its page, `docs/rules/ID.md`.

mod change;
mod file;
mod go;
mod python;
mod rust;
mod strings;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod typescript;

use super::finding::{Finding, Severity};
use super::source::{Language, Source};
use file::File;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its id, such as `swallowed-exception`.
    pub id: &'static str,
    /// How bad what it finds is.
    pub severity: Severity,
    /// What it finds, in a few words.
    pub title: &'static str,
    /// Why that is bad.
    pub why: &'static str,
    /// The languages in which it looks.
    pub languages: &'static [Language],
}

macro_rules! rules {
    ($($name:ident $id:literal $severity:ident [$($language:ident)*] $title:literal $why:literal)*) => {
        $(const $name: Rule = Rule {
            id: $id,
            severity: Severity::$severity,
            title: $title,
            why: $why,
            languages: &[$(Language::$language),*],
        };)*
        const ALL: &[Rule] = &[$($name),*];
    };
}

rules! {
    TRUNCATED_MONEY "truncated-money" High [Python TypeScript Tsx Go Rust]
        "A conversion cuts off a part of an amount of money"
        "It rounds toward zero, which nobody decided, and a fraction that binary cannot hold loses a cent: 19.99 * 100 becomes 1998."
    SQL_FROM_STRINGS "sql-from-strings" High [Python TypeScript Tsx Go Rust]
        "A value is put into the text of an SQL statement"
        "Whoever chooses the value can write SQL. Parameters cannot be mistaken for the statement."
    SHELL_FROM_STRINGS "shell-from-strings" High [Python TypeScript Tsx Go Rust]
        "A value is put into the text of a shell command"
        "Whoever chooses the value can run commands. A list of arguments needs no shell."
    SECRET_IN_SOURCE "secret-in-source" High [Python TypeScript Tsx Go Rust]
        "A secret stands in the source"
        "Everybody who can read the repository has it, and it stays in the history when the line is gone."
    TLS_UNVERIFIED "tls-unverified" High [Python TypeScript Tsx Go Rust]
        "The certificate of the other side is not checked"
        "Whoever stands between the two reads and changes what they say."
    EVAL_OF_DATA "eval-of-data" High [Python TypeScript Tsx]
        "Text that is not fixed is run as code"
        "Whoever chooses the text chooses what the program does."
    LOCK_ACROSS_AWAIT "lock-across-await" High [Rust]
        "A lock of a thread is held while a future waits"
        "Another future that wants the lock blocks its thread, and with it perhaps the one that would give it back."
    SWALLOWED_EXCEPTION "swallowed-exception" Medium [Python TypeScript Tsx Go]
        "An error of any kind is caught and nothing is done"
        "What goes wrong there goes wrong in silence, also what nobody thought of."
    BARE_EXCEPT "bare-except" Medium [Python]
        "An except without a type"
        "It also catches the wish to end: KeyboardInterrupt and SystemExit."
    UNWRAP_ON_INPUT "unwrap-on-input" Medium [Rust]
        "What comes from outside is unwrapped"
        "Input that is not as expected ends the program, so whoever sends it can."
    ALWAYS_TRUE "always-true" Medium [Python TypeScript Tsx Go Rust]
        "A comparison whose result is always the same"
        "It decides nothing, so something else was meant."
    RESOURCE_NOT_CLOSED "resource-not-closed" Medium [Python Go]
        "What was opened is not closed"
        "It stays open until somebody tidies up, or the process runs out of files."
    AWAIT_FORGOTTEN "await-forgotten" Medium [Python TypeScript Tsx]
        "What an async function returns is dropped"
        "In Python the function never runs; in TypeScript nobody waits for it and nobody hears of its error."
    MUTABLE_DEFAULT "mutable-default" Medium [Python]
        "A default argument that can change"
        "It is made once and shared by all calls, so one call sees what another left."
    ERROR_IGNORED "error-ignored" Medium [Go]
        "An error is not looked at"
        "The value beside it means nothing when there is one."
    INEXACT_EQUALITY "inexact-equality" Medium [Python TypeScript Tsx Go Rust]
        "Equality with a fraction that binary cannot hold"
        "0.1 + 0.2 is not equal to 0.3, so it is false when it should be true."
    DEBUGGING_LEFT "debugging-left" Low [Python TypeScript Tsx Go Rust]
        "What was put in to debug is still there"
        "It stops or talks where the program runs for others."
    UNSAFE_WITHOUT_REASON "unsafe-without-reason" Low [Rust]
        "Unsafe code without the reason why it is sound"
        "Whoever changes it next has to know what must hold."
    UNTESTED_CHANGE "untested-change" Low [Python TypeScript Tsx Go Rust]
        "A public function got a branch, or is new, and no test changed"
        "Nothing shows that the new way works, or will say so when it stops."
    TEST_NAME_WITHOUT_RULE "test-name-without-rule" Low [Python]
        "A test of fractions of money whose name does not say how they are rounded"
        "When it fails, its name should say which rule was broken."
    TODO_WITHOUT_ISSUE "todo-without-issue" Low [Python TypeScript Tsx Go Rust]
        "A new TODO that names no issue"
        "Nobody will come across it, and nobody knows when it is done."
}

/// All rules, the worst first.
pub fn all() -> &'static [Rule] {
    ALL
}

/// Whether a rule is about the words of a line alone, which are not new where the change takes the same line away
/// elsewhere.
pub fn is_about_words(id: &str) -> bool {
    id == TODO_WITHOUT_ISSUE.id
}

/// What the rules find on the changed lines of a file or hunk.
pub fn check(source: &Source<'_>) -> Vec<Finding> {
    if source.changed.is_empty() {
        return Vec::new();
    }
    let Some(tree) = tree::parse(source) else { return Vec::new() };
    let root = tree.root_node();
    let mut file = File::new(source);
    let outside = file.test;
    let futures = match source.language {
        Language::Python | Language::TypeScript | Language::Tsx => text::futures(&file, root),
        Language::Go | Language::Rust => text::Names::default(),
    };
    // Where code of tests ends that stands in a file of other code.
    let mut tests_until = 0;
    tree::walk(root, |node, up| {
        if !file.touches(node) {
            return false;
        }
        if source.language == Language::Rust && rust::is_test(&file, node) {
            tests_until = tests_until.max(node.end_byte());
        }
        file.test = outside || node.start_byte() < tests_until;
        text::look(&mut file, node, up);
        strings::look(&mut file, node, up);
        match source.language {
            Language::Python => python::look(&mut file, node, up, &futures),
            Language::TypeScript | Language::Tsx => typescript::look(&mut file, node, up, &futures),
            Language::Go => go::look(&mut file, node, up),
            Language::Rust => rust::look(&mut file, node, up),
        }
        true
    });
    file.found
}

/// What rules over the whole change find.
pub fn check_change(files: &[Source<'_>]) -> Vec<Finding> {
    change::check(files)
}
