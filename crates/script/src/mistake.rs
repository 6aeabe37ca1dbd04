//! Why a file is refused.

use std::fmt;

/// A file cannot work as a story. It is for the person who writes the file: its text names the place and what was
/// expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file as its writer named it.
    pub file: String,
    /// The line, counted from 1. None when it is about the file as a whole.
    pub line: Option<usize>,
    /// What is wrong and what was expected.
    pub words: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.words),
            None => write!(f, "{}: {}", self.file, self.words),
        }
    }
}

impl std::error::Error for Mistake {}

impl Mistake {
    /// A mistake of the file as a whole.
    pub(crate) fn of_file(file: &str, words: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, words: words.into() }
    }
}

/// `; did you mean ...?` when one of the known words is close, else `; expected ...` with all of them.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; expected {}", one_of(known)),
    }
}

/// The known word that is close enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    const CLOSE: f64 = 0.6;
    let rated = known.iter().map(|known| (strsim::normalized_damerau_levenshtein(word, known), *known));
    rated.filter(|(rate, _)| *rate >= CLOSE).max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

/// `` `a`, `b` or `c` ``.
pub fn one_of(known: &[&str]) -> String {
    let quoted: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}
