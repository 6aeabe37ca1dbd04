//! TOML values that know where they stand, so that every mistake names its line.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::mistake::{Mistake, hint};

/// The file that is being read.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// The line, counted from 1, of a byte of the text.
    pub fn line(self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    pub fn mistake(self, line: usize, words: impl Into<String>) -> Mistake {
        Mistake { file: self.file.to_owned(), line: Some(line), words: words.into() }
    }
}

/// One value with the name it goes by.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    pub source: Source<'a>,
    /// Its key; for an entry of a list, the list's.
    pub name: &'a str,
    place: usize,
    value: &'a DeValue<'a>,
}

impl<'a> Value<'a> {
    fn new(source: Source<'a>, name: &'a str, spanned: &'a Spanned<DeValue<'a>>) -> Self {
        Self { source, name, place: spanned.span().start, value: spanned.get_ref() }
    }

    pub fn line(self) -> usize {
        self.source.line(self.place)
    }

    /// The value as it is written in the file, from its first byte on.
    pub fn written(self) -> &'a str {
        self.source.text.get(self.place..).unwrap_or_default()
    }

    pub fn mistake(self, words: impl Into<String>) -> Mistake {
        self.source.mistake(self.line(), words)
    }

    fn wrong(self, expected: &str) -> Mistake {
        let article = if self.value.type_str().starts_with(['a', 'i']) { "an" } else { "a" };
        self.mistake(format!("`{}` must be {expected}, and is {article} {}", self.name, self.value.type_str()))
    }

    /// A text, perhaps empty.
    pub fn any_text(self) -> Result<&'a str, Mistake> {
        self.value.as_str().ok_or_else(|| self.wrong("a text"))
    }

    /// A text that says something.
    pub fn text(self) -> Result<&'a str, Mistake> {
        match self.any_text()? {
            "" => Err(self.mistake(format!("`{}` must not be empty", self.name))),
            text => Ok(text),
        }
    }

    /// The text, when it is one; for values that may also be something else.
    pub fn as_text(self) -> Option<&'a str> {
        self.value.as_str()
    }

    pub fn truth(self) -> Result<bool, Mistake> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// A whole number that is not negative.
    pub fn number(self) -> Result<u64, Mistake> {
        let number = self.value.as_integer().ok_or_else(|| self.wrong("a whole number"))?;
        u64::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| self.mistake(format!("`{}` must be a whole number that is not negative", self.name)))
    }

    /// A list with at least one entry.
    pub fn list(self, expected: &str) -> Result<Vec<Value<'a>>, Mistake> {
        let list = self.value.as_array().ok_or_else(|| self.wrong(expected))?;
        if list.is_empty() {
            return Err(self.mistake(format!("`{}` must have at least one entry", self.name)));
        }
        Ok(list.iter().map(|entry| Value::new(self.source, self.name, entry)).collect())
    }

    pub fn is_list(self) -> bool {
        self.value.is_array()
    }

    /// One text, or a list of them.
    pub fn texts(self) -> Result<Vec<Value<'a>>, Mistake> {
        match self.value {
            DeValue::String(_) => Ok(vec![self]),
            _ => self.list("a text or a list of texts"),
        }
    }

    pub fn table(self, expected: &str) -> Result<Table<'a>, Mistake> {
        match self.value.as_table() {
            Some(members) => Ok(Table { source: self.source, place: self.place, members }),
            None => Err(self.wrong(expected)),
        }
    }
}

/// Members by their keys.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    source: Source<'a>,
    place: usize,
    members: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// The whole file.
    pub fn whole(source: Source<'a>, root: &'a Spanned<DeTable<'a>>) -> Self {
        Self { source, place: 0, members: root.get_ref() }
    }

    pub fn line(self) -> usize {
        self.source.line(self.place)
    }

    pub fn mistake(self, words: impl Into<String>) -> Mistake {
        self.source.mistake(self.line(), words)
    }

    pub fn get(self, key: &str) -> Option<Value<'a>> {
        self.members.get_key_value(key).map(|(key, value)| Value::new(self.source, key.get_ref(), value))
    }

    /// Every member, in the order of the file.
    pub fn members(self) -> Vec<(Range<usize>, Value<'a>)> {
        let member = |(key, value): (&'a Spanned<_>, _)| (key.span(), Value::new(self.source, named(key), value));
        let mut members: Vec<_> = self.members.iter().map(member).collect();
        members.sort_by_key(|(place, _)| place.start);
        members
    }

    /// Refuses the first key that is not known here.
    pub fn only(self, known: &[&str]) -> Result<(), Mistake> {
        match self.members().into_iter().find(|(_, member)| !known.contains(&member.name)) {
            Some((place, Value { name, .. })) => {
                let words = format!("unknown key `{name}`{}", hint(name, known));
                Err(self.source.mistake(self.source.line(place.start), words))
            }
            None => Ok(()),
        }
    }
}

fn named<'a>(key: &'a Spanned<std::borrow::Cow<'a, str>>) -> &'a str {
    key.get_ref()
}
