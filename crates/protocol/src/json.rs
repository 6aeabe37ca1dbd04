//! JSON of the client's own making (`data`, `metadata`): kept as text, so that it comes back member for member in its
//! own order and digit for digit.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

/// How deep JSON may be nested before it is refused, here and in every body. An answer holds what a request brought a few
/// levels further down, and many readers, serde_json's `Value` among them, stop at 127.
pub const DEPTH: usize = 100;

/// Any JSON value, compact, with its members and digits as they came.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// A JSON object, compact, with its members and digits as they came: `google.protobuf.Struct` in the proto.
#[derive(Clone, PartialEq)]
pub struct Object(Json);

/// Why a text is no value of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotJson {
    /// The text is no JSON.
    #[error("not JSON")]
    Syntax,
    /// A `\u` escape names half of a surrogate pair.
    #[error("a lone surrogate escape is no text")]
    Surrogate,
    /// The value is nested deeper than [`DEPTH`].
    #[error("nested deeper than {DEPTH} levels")]
    Depth,
    /// The value is not an object.
    #[error("not a JSON object")]
    NotAnObject,
}

impl Json {
    /// Reads a text; white space between tokens is dropped.
    pub fn parse(text: &str) -> Result<Self, NotJson> {
        Self::compact(serde_json::from_str(text).map_err(|_| NotJson::Syntax)?)
    }

    /// Writes any value as JSON. The error is that of its `Serialize`.
    pub fn of(value: &impl Serialize) -> Result<Self, NotJson> {
        let text = serde_json::to_string(value).map_err(|_| NotJson::Syntax)?;
        Self::parse(&text)
    }

    /// The compact text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Reads the value as a type of the caller's.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    fn compact(raw: Box<RawValue>) -> Result<Self, NotJson> {
        let text = raw.get();
        let bytes = text.as_bytes();
        let mut compact = String::new();
        let (mut at, mut kept, mut depth) = (0, 0, 0usize);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => at = string_end(bytes, at)?,
                b' ' | b'\n' | b'\r' | b'\t' => {
                    compact.push_str(&text[kept..at]);
                    at += 1;
                    kept = at;
                    continue;
                }
                b'{' | b'[' => {
                    depth += 1;
                    if depth > DEPTH {
                        return Err(NotJson::Depth);
                    }
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        if kept == 0 {
            return Ok(Self(raw.into()));
        }
        compact.push_str(&text[kept..]);
        let raw = RawValue::from_string(compact).map_err(|_| NotJson::Syntax)?;
        Ok(Self(raw.into()))
    }
}

/// The place of the closing quote of the string that opens at `open`.
fn string_end(bytes: &[u8], open: usize) -> Result<usize, NotJson> {
    let unit = |at: usize| {
        let digits = bytes.get(at + 2..at + 6).and_then(|hex| std::str::from_utf8(hex).ok());
        let escape = bytes.get(at) == Some(&b'\\') && bytes.get(at + 1) == Some(&b'u');
        digits.filter(|_| escape).and_then(|hex| u16::from_str_radix(hex, 16).ok())
    };
    let mut at = open + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at),
            Some(b'\\') => match unit(at) {
                Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
                Some(0xD800..=0xDFFF) => return Err(NotJson::Surrogate),
                _ => at += 2,
            },
            Some(_) => at += 1,
            None => return Err(NotJson::Syntax),
        }
    }
}

impl Object {
    /// Reads a text; the error says whether it is no JSON or no object.
    pub fn parse(text: &str) -> Result<Self, NotJson> {
        Json::parse(text)?.try_into()
    }

    /// The compact text.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Reads the object as a type of the caller's.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        self.0.read()
    }
}

impl Object {
    /// The value of a member, if it is there. The last one counts, if it stands there twice.
    pub fn member(&self, name: &str) -> Option<Json> {
        let members: HashMap<String, &RawValue> = self.read().ok()?;
        members.get(name).map(|value| Json((*value).to_owned().into()))
    }

    /// The same object with one member more, at the end. The error is that it would be nested too deep.
    pub fn with(&self, name: &str, value: &Json) -> Result<Self, NotJson> {
        let inside = self.text().strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default();
        let comma = if inside.is_empty() { "" } else { "," };
        Self::parse(&format!("{{{inside}{comma}{}:{}}}", serde_json::Value::from(name), value.text()))
    }
}

impl TryFrom<Json> for Object {
    type Error = NotJson;

    fn try_from(json: Json) -> Result<Self, NotJson> {
        if json.text().starts_with('{') { Ok(Self(json)) } else { Err(NotJson::NotAnObject) }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::compact(Box::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
    }
}
