//! Why a set is refused when it is read.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};

/// A mistake in a file. It is for the person who writes the file: it names the place and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {words}")]
pub struct Mistake {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub words: String,
}

/// A TOML table that knows where everything in it stands.
pub(crate) type Table<'a> = Spanned<DeTable<'a>>;

/// A file's text with its name, for naming lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// The line, from 1, in which a byte of the text stands.
    pub fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    pub fn mistake(&self, span: Range<usize>, words: impl Into<String>) -> Mistake {
        self.mistake_in(self.line(span.start), words)
    }

    pub fn mistake_in(&self, line: usize, words: impl Into<String>) -> Mistake {
        Mistake { file: self.file.to_owned(), line, words: words.into() }
    }

    /// The whole file.
    pub fn table(&self) -> Result<Table<'a>, Mistake> {
        DeTable::parse(self.text).map_err(|error| self.of_toml(&error))
    }

    /// Reads a table as a type. A key that the type does not know is refused with the nearest one that it does.
    pub fn read<T: DeserializeOwned>(&self, table: Table<'_>) -> Result<T, Mistake> {
        let span = table.span();
        let value = Spanned::new(span.clone(), DeValue::Table(table.into_inner()));
        T::deserialize(ValueDeserializer::from(value)).map_err(|error| {
            let mistake = self.of_toml(&error);
            if error.span().is_some() { mistake } else { self.mistake(span, mistake.words) }
        })
    }

    /// The line in which a byte of a text stands that is a value of the file. It is known when the text is written
    /// between three single quotes, where nothing is escaped; else the line in which the text begins is given.
    pub fn line_within(&self, text: &Spanned<String>, at: usize) -> usize {
        let begins = self.line(text.span().start);
        let Some(written) = self.text.get(text.span()).and_then(|written| written.strip_prefix("'''")) else {
            return begins;
        };
        let dropped = usize::from(written.starts_with(['\r', '\n']));
        begins + dropped + text.get_ref().bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    fn of_toml(&self, error: &Error) -> Mistake {
        let mut words = error.message().to_owned();
        if let Some((unknown, known)) = unknown_field(&words) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            words = format!("unknown key {unknown}{}", hint(&unknown, &known));
        }
        self.mistake(error.span().unwrap_or(0..0), words)
    }
}

/// The words of an "unknown field `tilte`, expected one of `title`, …".
fn unknown_field(words: &str) -> Option<(String, Vec<String>)> {
    let mut quoted = words.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2).map(str::to_owned);
    Some((quoted.next()?, quoted.collect()))
}

/// What could have been meant by a word, as the end of a sentence about it.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    const CLOSE: f64 = 0.6;
    let rated = known.iter().map(|known| (strsim::normalized_damerau_levenshtein(word, known), *known));
    let nearest = rated.filter(|(rate, _)| *rate >= CLOSE).max_by(|(a, _), (b, _)| a.total_cmp(b));
    match nearest {
        _ if known.is_empty() => "; none is expected here".to_owned(),
        Some((_, nearest)) => format!("; did you mean {nearest}? Known here: {}", known.join(", ")),
        None => format!("; known here: {}", known.join(", ")),
    }
}
