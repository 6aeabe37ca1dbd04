//! The rules.

use super::finding::{Finding, Severity};
use super::source::{Language, Source};

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

/// All rules.
pub fn all() -> &'static [Rule] {
    &[]
}

/// What the rules find on the changed lines of a file or hunk.
pub fn check(_source: &Source<'_>) -> Vec<Finding> {
    Vec::new()
}

/// What rules over the whole change find.
pub fn check_change(_files: &[Source<'_>]) -> Vec<Finding> {
    Vec::new()
}
