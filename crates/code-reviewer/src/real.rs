//! Real work: a diff is parsed, put into the files of its base branch where a repository is configured, and read by
//! rules.

pub mod diff;
pub mod finding;
pub mod rules;
pub mod source;

pub use finding::{Finding, Severity};
pub use source::{Language, Source};
