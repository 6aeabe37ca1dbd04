//! What rules read: the new side of a changed file.

use std::collections::BTreeSet;

/// A language that the rules know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Python.
    Python,
    /// TypeScript, and JavaScript, which is read as such.
    TypeScript,
    /// TypeScript or JavaScript with elements in it.
    Tsx,
    /// Go.
    Go,
    /// Rust.
    Rust,
}

impl Language {
    /// The language of a file, told from how its name ends.
    pub fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (stem, end) = name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        Some(match end {
            "py" | "pyi" => Self::Python,
            "ts" | "mts" | "cts" | "js" | "mjs" | "cjs" => Self::TypeScript,
            "tsx" | "jsx" => Self::Tsx,
            "go" => Self::Go,
            "rs" => Self::Rust,
            _ => return None,
        })
    }

    /// Its name, as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::TypeScript | Self::Tsx => "TypeScript",
            Self::Go => "Go",
            Self::Rust => "Rust",
        }
    }
}

/// The new side of one file: whole when the repository gave the rest, else one hunk.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file's path after the change.
    pub path: &'a str,
    /// Its language.
    pub language: Language,
    /// The text. Line ends are as they came.
    pub text: &'a str,
    /// The number of the text's first line in the new file; 1 when it is whole.
    pub first_line: u32,
    /// Whether the text is the whole file.
    pub whole: bool,
    /// The numbers, in the new file, of the lines that the change adds.
    pub changed: &'a BTreeSet<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_tells_the_language() {
        let of = Language::of;
        assert_eq!(of("payments/refunds.py"), Some(Language::Python));
        assert_eq!(of("web/app.d.ts"), Some(Language::TypeScript));
        assert_eq!(of("web/App.jsx"), Some(Language::Tsx));
        assert_eq!(of("main.go"), Some(Language::Go));
        assert_eq!(of("src/lib.rs"), Some(Language::Rust));
        for other in ["Makefile", ".py", "a/.rs", "src.rs/readme", "x.pyc", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
