//! What a review says about one line.

use std::borrow::Cow;
use std::cmp::Reverse;

use serde::Serialize;

/// How bad it is. One that is high speaks against the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a look.
    Low,
    /// Worth a change.
    Medium,
    /// Worth stopping for.
    High,
}

impl Severity {
    /// Its word: `high`, `medium` or `low`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Something to say about a changed line. Its members stand in the order of `review.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file's path after the change.
    pub file: String,
    /// The line in the new file, from 1.
    pub line: u32,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, as a sentence.
    pub finding: String,
    /// The id of the rule that found it. A rule of another tool has the tool's name before it: `ruff/F401`.
    pub rule: Cow<'static, str>,
}

/// Puts findings into the order in which they are told: by file as the diff has them, by line, the worst first.
/// What two rules or tools say in the same words about the same line is told once.
pub fn order(findings: &mut Vec<Finding>, files: &[&str]) {
    let place = |file: &str| files.iter().position(|one| *one == file).unwrap_or(files.len());
    findings.sort_by_cached_key(|one| {
        (place(&one.file), one.file.clone(), one.line, Reverse(one.severity), one.rule.clone(), one.finding.clone())
    });
    findings.dedup_by(|two, one| {
        (&two.file, two.line, &two.finding) == (&one.file, one.line, &one.finding)
            || (&two.file, two.line, &two.rule) == (&one.file, one.line, &one.rule)
    });
}
