//! Reading messages: everything that is wrong is found, not only the first thing.
//!
//! Each function looks at its fields in the order in which `protocol::check` names them, takes down what is wrong, and
//! gives nothing back if its own value cannot be made of what is left.

use std::fmt;

use protocol::check::{Rules, Violations, Wrong, no_rules};

/// Where something stands in a message, such as `message.parts[1].raw`: written only when something is wrong with it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At<'a> {
    /// The message itself.
    Whole,
    /// A field of it.
    Field(&'a At<'a>, &'static str),
    /// An entry of a list in it.
    Entry(&'a At<'a>, &'static str, usize),
}

impl At<'_> {
    pub(crate) fn field<'a>(&'a self, name: &'static str) -> At<'a> {
        At::Field(self, name)
    }

    pub(crate) fn entry<'a>(&'a self, name: &'static str, place: usize) -> At<'a> {
        At::Entry(self, name, place)
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (above, name) = match self {
            Self::Whole => return Ok(()),
            Self::Field(above, name) | Self::Entry(above, name, _) => (above, name),
        };
        if !matches!(above, Self::Whole) {
            write!(f, "{above}.")?;
        }
        f.write_str(name)?;
        if let Self::Entry(_, _, place) = self { write!(f, "[{place}]") } else { Ok(()) }
    }
}

/// A message that is being read.
pub(crate) struct Reading<'a> {
    pub(crate) found: Violations,
    /// What else the server wants of texts.
    rules: &'a Rules<'a>,
}

impl Default for Reading<'_> {
    fn default() -> Self {
        Self::by(&no_rules)
    }
}

impl<'a> Reading<'a> {
    pub(crate) fn by(rules: &'a Rules<'a>) -> Self {
        Self { found: Violations::default(), rules }
    }

    /// The tenant of a request.
    pub(crate) fn tenant(&mut self, tenant: &str) -> Option<String> {
        self.text(At::Whole.field("tenant"), tenant)
    }

    /// An optional text that the server may know something about.
    pub(crate) fn text(&mut self, at: At<'_>, text: &str) -> Option<String> {
        self.ask(at, text);
        optional(text)
    }

    /// Asks the server's rules about a text.
    pub(crate) fn ask(&mut self, at: At<'_>, text: &str) {
        self.found.ask(self.rules, &at.to_string(), text);
    }

    /// Takes down that something is wrong.
    pub(crate) fn wrong<T>(&mut self, at: At<'_>, wrong: Wrong) -> Option<T> {
        self.found.add(&at.to_string(), wrong);
        None
    }

    /// A text, or an id, that has to be there.
    pub(crate) fn required<T: for<'t> TryFrom<&'t str>>(&mut self, at: At<'_>, text: &str) -> Option<T> {
        let known = Some(text).filter(|text| !text.is_empty()).and_then(|text| T::try_from(text).ok());
        known.or_else(|| self.wrong(at, Wrong::Required))
    }

    /// A message that has to be there.
    pub(crate) fn there<T>(&mut self, at: At<'_>, message: Option<T>) -> Option<T> {
        message.or_else(|| self.wrong(at, Wrong::Required))
    }

    /// A number that is not negative, if it is there.
    pub(crate) fn not_negative(&mut self, at: At<'_>, number: Option<i32>) -> Option<i32> {
        self.within(at, number, 0, i32::MAX)
    }

    /// A number within these two, if it is there.
    pub(crate) fn within(&mut self, at: At<'_>, number: Option<i32>, low: i32, high: i32) -> Option<i32> {
        if number.is_some_and(|number| !(low..=high).contains(&number)) {
            self.found.within(&at.to_string(), number, low, high);
        }
        number
    }
}

/// An optional text or id: an empty one is absent.
pub(crate) fn optional<T: for<'t> TryFrom<&'t str>>(text: &str) -> Option<T> {
    Some(text).filter(|text| !text.is_empty()).and_then(|text| T::try_from(text).ok())
}

/// An optional text as it is written.
pub(crate) fn written(text: Option<impl ToString>) -> String {
    text.map(|text| text.to_string()).unwrap_or_default()
}
