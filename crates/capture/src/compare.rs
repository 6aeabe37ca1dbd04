//! Where two texts part.

use std::fmt;

/// The first line in which two texts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line's number, from 1.
    pub line: usize,
    /// The line that was expected; `None` if the text should have ended before it.
    pub expected: Option<String>,
    /// The line that was found; `None` if the text ended before it.
    pub actual: Option<String>,
}

/// Compares byte by byte and tells the first line that differs; `None` if the texts are the same.
///
/// A missing last line feed is a difference: the empty line after it is missing. In lines that are not UTF-8 the
/// foreign bytes are told as `\x` escapes.
pub fn first_difference(expected: &[u8], actual: &[u8]) -> Option<Difference> {
    let mut left = expected.split(|byte| *byte == b'\n');
    let mut right = actual.split(|byte| *byte == b'\n');
    for line in 1.. {
        match (left.next(), right.next()) {
            (None, None) => break,
            (expected, actual) if expected == actual => {}
            (expected, actual) => {
                return Some(Difference { line, expected: expected.map(readable), actual: actual.map(readable) });
            }
        }
    }
    None
}

fn readable(line: &[u8]) -> String {
    match std::str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        Err(_) => line.escape_ascii().to_string(),
    }
}

impl fmt::Display for Difference {
    /// `line 12: expected …, got …`. Of long lines only the part around the difference is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [expected, actual] = [&self.expected, &self.actual].map(|line| line.as_deref().unwrap_or_default());
        let shared = expected.chars().zip(actual.chars()).take_while(|(left, right)| left == right).count();
        let show = |line: &Option<String>| match line {
            Some(text) => format!("`{}`", around(text, shared)),
            None => "the end of the text".to_owned(),
        };
        let (line, expected, actual) = (self.line, show(&self.expected), show(&self.actual));
        write!(f, "line {line}: expected {expected}, got {actual}")
    }
}

/// The text near its character number `place`, with control characters made visible.
fn around(text: &str, place: usize) -> String {
    const BEFORE: usize = 40;
    const AFTER: usize = 80;
    let start = if text.chars().count() > BEFORE + AFTER { place.saturating_sub(BEFORE) } else { 0 };
    let mut shown = String::from(if start > 0 { "…" } else { "" });
    let mut rest = text.chars().skip(start);
    for c in rest.by_ref().take(BEFORE + AFTER) {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(expected: &str, actual: &str) -> String {
        first_difference(expected.as_bytes(), actual.as_bytes()).unwrap().to_string()
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(first_difference(b"a\nb\n", b"a\nb\n"), None);
        assert_eq!(first_difference(b"", b""), None);
    }

    #[test]
    fn the_first_line_that_differs_is_told() {
        assert_eq!(told("a\nb\nc\n", "a\nx\ny\n"), "line 2: expected `b`, got `x`");
    }

    #[test]
    fn a_text_that_ends_early_or_late_is_told() {
        assert_eq!(told("a\nb", "a"), "line 2: expected `b`, got the end of the text");
        assert_eq!(told("a", "a\n"), "line 2: expected the end of the text, got ``");
    }

    #[test]
    fn what_the_eye_misses_is_made_visible() {
        assert_eq!(told("a", "a\r"), "line 1: expected `a`, got `a\\r`");
        let difference = first_difference(b"\xff", b"\xfe").unwrap();
        assert_eq!(difference.to_string(), "line 1: expected `\\xff`, got `\\xfe`");
    }

    #[test]
    fn a_long_line_is_shown_around_its_difference() {
        let long = "é".repeat(500);
        let told = told(&format!("{long}1{long}"), &format!("{long}2{long}"));
        assert!(told.contains("é1é") && told.contains("é2é"));
        assert!(told.chars().count() < 300, "{told}");
    }
}
