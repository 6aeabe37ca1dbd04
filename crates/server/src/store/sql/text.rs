//! Texts as the database holds them. PostgreSQL takes no U+0000 in a text, but a client's id may hold one: it is kept as
//! U+001A and "0", and U+001A itself as U+001A and "S". JSON has neither in it.

use std::borrow::Cow;

const STANDS_FOR: char = '\u{1A}';

/// An argument of a statement.
pub(in crate::store) trait Argument {
    /// What the database gets.
    type Bound;

    /// As the database gets it.
    fn bound(self) -> Self::Bound;
}

impl Argument for &str {
    type Bound = String;

    fn bound(self) -> String {
        if !self.as_bytes().contains(&0) && !self.as_bytes().contains(&(STANDS_FOR as u8)) {
            return self.to_owned();
        }
        let mut bound = String::with_capacity(self.len() + 2);
        for character in self.chars() {
            match character {
                '\0' => bound.extend([STANDS_FOR, '0']),
                STANDS_FOR => bound.extend([STANDS_FOR, 'S']),
                other => bound.push(other),
            }
        }
        bound
    }
}

impl<T: Argument> Argument for Option<T> {
    type Bound = Option<T::Bound>;

    fn bound(self) -> Self::Bound {
        self.map(T::bound)
    }
}

impl Argument for i64 {
    type Bound = Self;

    fn bound(self) -> Self {
        self
    }
}

/// A text that came out of the database, as it was before it went in.
pub(super) fn read(text: Cow<'_, str>) -> String {
    if !text.as_bytes().contains(&(STANDS_FOR as u8)) {
        return text.into_owned();
    }
    let mut read = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            STANDS_FOR => read.push(if characters.next() == Some('0') { '\0' } else { STANDS_FOR }),
            other => read.push(other),
        }
    }
    read
}

#[test]
fn each_text_comes_out_as_it_went_in() {
    for text in ["", "a", "\0", "\u{1A}", "\0\u{1A}0", "a\u{1A}S\0\0", "\u{1A}\u{1A}0"] {
        let bound = text.bound();
        assert!(!bound.contains('\0'));
        assert_eq!(read(bound.into()), text);
    }
    let mut all: Vec<String> = ["\0", "\u{1A}0", "\u{1A}S", "\u{1A}", "0"].iter().map(|text| text.bound()).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 5);
}
