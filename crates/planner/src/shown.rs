//! Foreign text on a terminal: control characters are shown, not sent.

use std::borrow::Cow;

/// Whether a character would do something to a terminal or to the order of what is read, instead of being seen.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text as one line: each character that acts is written as its escape, a line end too, so that nobody writes a line
/// of somebody else's log.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// The text with its line ends and tabs, and each other character that acts as its escape.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| acts(character) && !matches!(character, '\n' | '\t'))
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if acts(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::{line, lines};

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_all_else_stays() {
        assert_eq!(line("a\u{1b}[2Jb\rc\nd\u{9b}e\u{202e}f\u{7f}"), r"a\u{1b}[2Jb\rc\nd\u{9b}e\u{202e}f\u{7f}");
        assert_eq!(lines("a\n\tb\u{1b}]0;x\u{7}"), "a\n\tb\\u{1b}]0;x\\u{7}");
        for plain in ["žluťoučký 🦀 你好", "C:\\new", "👩‍💻"] {
            assert!(matches!(line(plain), std::borrow::Cow::Borrowed(same) if same == plain));
        }
    }
}
