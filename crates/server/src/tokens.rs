//! Names with tokens of their own: the operators who approve, and callers. A file holds a line for each, with the hash of
//! the token and never the token:
//!
//! ```text
//! # who may approve
//! ana   sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! ```
//!
//! A name may have several lines, so that a token can be replaced while the old one still counts. The tokens that
//! [`Tokens::fresh`] makes cannot be guessed, which is why one plain hash is enough.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use subtle::ConstantTimeEq;

use crate::setup::ANONYMOUS;

/// Names, each with the hash of a token.
#[derive(Clone, Default)]
pub struct Tokens {
    known: Vec<(Arc<str>, [u8; SHA256_OUTPUT_LEN])>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.known.iter().map(|(name, _)| name)).finish()
    }
}

/// What is wrong with a file of tokens. The text names the line and shows nothing of it but the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct WrongLine {
    /// The line, from 1.
    pub line: usize,
    what: String,
}

/// What stands before the hash.
const SCHEME: &str = "sha256:";
/// The length of the longest name.
const LONGEST_NAME: usize = 64;

impl Tokens {
    /// Reads lines of `NAME sha256:HEX`. Empty lines, and what follows a `#`, say nothing.
    pub fn read(text: &str) -> Result<Self, WrongLine> {
        let mut known: Vec<(Arc<str>, [u8; SHA256_OUTPUT_LEN])> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let wrong = |what: String| WrongLine { line: at + 1, what };
            let said = line.split_once('#').map_or(line, |(said, _)| said);
            let mut words = said.split_whitespace();
            let Some(name) = words.next() else { continue };
            let (Some(hash), None) = (words.next(), words.next()) else {
                return Err(wrong(format!("a line is NAME {SCHEME}HEX")));
            };
            check_name(name).map_err(wrong)?;
            let hash = hash.strip_prefix(SCHEME).and_then(from_hex);
            let hash = hash.ok_or_else(|| {
                wrong(format!("after the name stands {SCHEME} and 64 hexadecimal digits, never the token itself"))
            })?;
            if let Some((other, _)) = known.iter().find(|(_, known)| *known == hash) {
                return Err(wrong(format!("{name} has the token of {other}")));
            }
            known.push((name.into(), hash));
        }
        Ok(Self { known })
    }

    /// Reads a file. The error is for the person who started the agent: what is wrong, and what to do.
    pub fn open(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|cause| format!("{shown}: {cause}"))?;
        let tokens = Self::read(&text).map_err(|wrong| format!("{shown}: {wrong}"))?;
        if tokens.is_empty() {
            return Err(format!("{shown}: nobody is named; a line is NAME {SCHEME}HEX"));
        }
        Ok(tokens)
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The names, each once.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let first = |at: usize, name: &str| !self.known[..at].iter().any(|(known, _)| **known == *name);
        self.known.iter().enumerate().filter(move |(at, (name, _))| first(*at, name)).map(|(_, (name, _))| name)
    }

    /// Whose token this is. All are compared, each in constant time, so that the time taken tells nothing.
    pub fn holder(&self, token: &str) -> Option<Arc<str>> {
        let shown = digest(&SHA256, token.as_bytes());
        let holder = self.known.iter().fold(None, |holder, (name, hash)| {
            let same: bool = hash.as_slice().ct_eq(shown.as_ref()).into();
            if same { Some(name) } else { holder }
        });
        holder.cloned()
    }

    /// A token that nobody has and nobody guesses: 256 random bits.
    pub fn fresh() -> String {
        let bits: [u8; 32] = rand::random();
        BASE64_URL_SAFE_NO_PAD.encode(bits)
    }

    /// The line of a name for the file.
    pub fn line(name: &str, token: &str) -> Result<String, String> {
        check_name(name)?;
        let hash = digest(&SHA256, token.as_bytes());
        let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{name} {SCHEME}{hex}"))
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    if name == ANONYMOUS {
        Err(format!("{ANONYMOUS} is what those are called who have no name"))
    } else if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(plain) {
        Ok(())
    } else {
        Err(format!("a name is up to {LONGEST_NAME} letters, digits, -, _, . and @"))
    }
}

fn from_hex(text: &str) -> Option<[u8; SHA256_OUTPUT_LEN]> {
    let mut bytes = [0; SHA256_OUTPUT_LEN];
    if text.len() != 2 * bytes.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_holder_s_alone() {
        let (ana, bob) = (Tokens::fresh(), Tokens::fresh());
        let lines = [Tokens::line("ana", &ana).unwrap(), Tokens::line("bob", &bob).unwrap()];
        let tokens = Tokens::read(&format!("# two\n\n{}  # since May\n{}\n", lines[0], lines[1])).unwrap();
        assert_eq!(tokens.holder(&ana).as_deref(), Some("ana"));
        assert_eq!(tokens.holder(&bob).as_deref(), Some("bob"));
        for wrong in ["", "ana", &ana[1..], &ana.to_uppercase(), &format!("{ana} "), &lines[0]] {
            assert_eq!(tokens.holder(wrong), None, "{wrong}");
        }
        assert_ne!(ana, bob);
        assert_eq!(ana.len(), 43);
    }

    #[test]
    fn a_name_may_have_two_tokens_and_counts_once() {
        let (old, new) = (Tokens::line("ana", "old").unwrap(), Tokens::line("ana", "new").unwrap());
        let tokens = Tokens::read(&format!("{old}\n{new}")).unwrap();
        assert_eq!(tokens.holder("old"), tokens.holder("new"));
        assert_eq!(tokens.names().map(|name| &**name).collect::<Vec<_>>(), ["ana"]);
    }

    #[test]
    fn a_wrong_line_is_named_and_its_token_is_not_shown() {
        let fine = Tokens::line("ana", "t").unwrap();
        for (wrong, words) in [
            ("bob", "a line is NAME sha256:HEX"),
            ("bob s3cret", "never the token itself"),
            ("bob sha256:s3cret", "never the token itself"),
            ("bob sha1:00 x", "a line is NAME"),
            ("b/b sha256:00", "a name is up to 64"),
            ("anonymous sha256:00", "who have no name"),
            (&fine.replace("ana", "bob"), "bob has the token of ana"),
        ] {
            let error = Tokens::read(&format!("{fine}\n# a comment\n{wrong}\n")).unwrap_err();
            assert_eq!(error.line, 3);
            assert!(error.to_string().contains(words), "{error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_is_shown_of_tokens_are_the_names() {
        let tokens = Tokens::read(&Tokens::line("ana", "t").unwrap()).unwrap();
        assert_eq!(format!("{tokens:?}"), "[\"ana\"]");
    }
}
