//! The JSON-RPC envelope (specification 9, DECISIONS W4): read borrowed, written in one pass.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind, RemoteError};
use crate::json::DEPTH;
use crate::read::{self, Text};

/// A request's id as it stood in the body: a string, an integer or null, with its type and all its digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id<'a>(Cow<'a, str>);

impl Id<'_> {
    /// The id of an answer to a request that has none, or none that could be read.
    pub const NULL: Id<'static> = Id(Cow::Borrowed("null"));

    /// The id as JSON.
    pub fn json(&self) -> &str {
        &self.0
    }

    /// The same id, owned: for an answer that outlives its request.
    pub fn into_owned(self) -> Id<'static> {
        Id(Cow::Owned(self.0.into_owned()))
    }
}

impl From<u64> for Id<'static> {
    fn from(number: u64) -> Self {
        Self(Cow::Owned(number.to_string()))
    }
}

/// A request whose envelope is right. Method and params are not looked at yet.
#[derive(Debug)]
pub struct Request<'a> {
    /// To be echoed.
    pub id: Id<'a>,
    /// The operation's name.
    pub method: Cow<'a, str>,
    /// The operation's request.
    pub params: Option<&'a RawValue>,
}

/// A body that is no request: the error with the id to answer it with.
#[derive(Debug, PartialEq)]
pub struct Refusal<'a> {
    /// Null unless the body had an id that could be read.
    pub id: Id<'a>,
    /// -32700 or -32600.
    pub error: Error,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "read::present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Reads a request.
pub fn read(body: &[u8]) -> Result<Request<'_>, Refusal<'_>> {
    let refuse = |id, kind: ErrorKind| Refusal { id, error: kind.into() };
    let text = std::str::from_utf8(body).map_err(|_| refuse(Id::NULL, ErrorKind::Parse))?;
    let wire: Wire<'_> = read::whole(serde_json::Deserializer::from_str(text)).map_err(|_| {
        // An array (a batch), a text or a number is JSON all the same, but no request.
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        refuse(Id::NULL, if is_json { ErrorKind::InvalidRequest } else { ErrorKind::Parse })
    })?;
    let id = match wire.id.map(RawValue::get) {
        None => Id::NULL,
        Some(raw) if is_id(raw) => Id(Cow::Borrowed(raw)),
        Some(_) => return Err(refuse(Id::NULL, ErrorKind::InvalidRequest)),
    };
    let two = wire.jsonrpc.and_then(|raw| as_text(raw.get())).as_deref() == Some("2.0");
    let method = wire.method.and_then(|raw| as_text(raw.get()));
    match method {
        Some(method) if two && !deeper_than(body, DEPTH) => Ok(Request { id, method, params: wire.params }),
        _ => Err(refuse(id, ErrorKind::InvalidRequest)),
    }
}

/// The text that this JSON is, if it is one.
fn as_text(json: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(json).ok().map(|text| text.0)
}

fn is_id(raw: &str) -> bool {
    match raw.as_bytes() {
        [b'"', ..] => as_text(raw).is_some(),
        b"null" => true,
        [b'-' | b'0'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether JSON is nested deeper than this. A body with fewer brackets than that cannot be, which costs almost nothing.
pub fn deeper_than(body: &[u8], limit: usize) -> bool {
    let opening = body.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if opening <= limit {
        return false;
    }
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

/// Writes a call.
pub fn request(id: &Id<'_>, method: &str, params: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Call<'a, P> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        method: &'a str,
        params: &'a P,
    }
    let id = serde_json::from_str(id.json())?;
    serde_json::to_vec(&Call { jsonrpc: "2.0", id, method, params })
}

/// Writes an answer that holds a result. The error is that of the result's `Serialize`.
pub fn result(id: &Id<'_>, result: &impl Serialize) -> Result<Bytes, serde_json::Error> {
    let mut body = Vec::with_capacity(512);
    open(&mut body, id, "result");
    serde_json::to_writer(&mut body, result)?;
    body.push(b'}');
    Ok(body.into())
}

/// Writes an answer that holds an error.
pub fn error(id: &Id<'_>, error: &Error) -> Bytes {
    let mut body = Vec::with_capacity(256);
    open(&mut body, id, "error");
    // Writing an error's strings and numbers into memory cannot fail.
    let _ = serde_json::to_writer(&mut body, error);
    body.push(b'}');
    body.into()
}

/// Begins an answer; whoever calls it writes the value and the closing brace.
pub fn open(body: &mut Vec<u8>, id: &Id<'_>, member: &str) {
    for piece in [r#"{"jsonrpc":"2.0","id":"#, id.json(), r#",""#, member, r#"":"#] {
        body.extend_from_slice(piece.as_bytes());
    }
}

/// An answer as a client reads it. The order of the kit's loop: the error first.
#[derive(Debug)]
pub enum Answer<T> {
    /// The server refused.
    Error(RemoteError),
    /// The server answered.
    Result(T),
}

/// Why a body is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NotAnAnswer {
    /// It is no JSON, or holds other types than an answer does.
    #[error("not a JSON-RPC answer: {0}")]
    Json(#[from] serde_json::Error),
    /// It has neither a result nor an error.
    #[error("not a JSON-RPC answer: neither a result nor an error")]
    Empty,
}

/// Reads an answer. An `error` member wins over a `result`; a `result` of null is one, as some servers answer a delete.
pub fn answer<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<Answer<T>, NotAnAnswer> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "read::present")]
        result: Option<&'a RawValue>,
    }
    let wire: Wire<'a> = read::whole(serde_json::Deserializer::from_slice(body))?;
    match (wire.error, wire.result) {
        (Some(error), _) => Ok(Answer::Error(serde_json::from_str(error.get())?)),
        (None, Some(result)) => Ok(Answer::Result(serde_json::from_str(result.get())?)),
        (None, None) => Err(NotAnAnswer::Empty),
    }
}
