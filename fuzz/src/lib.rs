//! What must hold for whatever bytes a stranger sends: one function for each parser that meets them. Each panics when
//! it does not hold.
//!
//! `tests/short.rs` runs them on the corpus and on mutations of it, with no tool beside Rust. libFuzzer, which sees what
//! an input reaches, finds more: `scripts/fuzz.sh`.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "to panic is how a finding is told")]

mod diff;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

pub use diff::diff;

use code_reviewer::real::{Language, Source, rules as review};
use protocol::call::{ListTaskPushNotificationConfigsResponse, ListTasksResponse, SendMessageResponse};
use protocol::rpc::{self, Answer, Id, Request};
use protocol::sse::{self, Broken, Event, Reader};
use protocol::{
    AgentCard, Call, Error, ErrorKind, Message, Method, Part, StreamResponse, Task, TaskPushNotificationConfig,
    Timestamp,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A target.
pub type Target = fn(&[u8]);

/// All of them, each with the name of its corpus.
pub const TARGETS: [(&str, Target); 6] =
    [("diff", diff), ("envelope", envelope), ("part", part), ("rules", rules), ("sse", sse), ("timestamp", timestamp)];

/// A body that a server or a client reads as JSON-RPC: as a request, with its params taken for those of every
/// operation, and as an answer of every kind.
pub fn envelope(body: &[u8]) {
    match rpc::read(body) {
        Ok(request) => Method::ALL.into_iter().for_each(|(method, name)| called(&request, method, name)),
        Err(refusal) => {
            assert!(matches!(refusal.error.kind(), ErrorKind::Parse | ErrorKind::InvalidRequest), "{refusal:?}");
            refused(&refusal.id, &refusal.error);
        }
    }
    answered::<SendMessageResponse>(body);
    answered::<StreamResponse>(body);
    answered::<Task>(body);
    answered::<AgentCard>(body);
    answered::<TaskPushNotificationConfig>(body);
    answered::<ListTaskPushNotificationConfigsResponse>(body);
    if let Ok(Answer::Result(page)) = rpc::answer::<ListTasksResponse>(body) {
        page.tasks.iter().for_each(|task| same(&**task));
    }
}

/// What is accepted is the same call after it was written and read; what is refused names its fields.
fn called(request: &Request<'_>, method: Method, name: &str) {
    match Call::read(method, request.params) {
        Ok(call) => {
            assert_eq!(call.method(), method);
            let body = rpc::request(&request.id, name, &call).unwrap();
            let again = rpc::read(&body).unwrap();
            assert_eq!((&again.id, &*again.method), (&request.id, name));
            assert_eq!(Call::read(method, again.params).unwrap(), call);
            assert_eq!(again.params.unwrap().get(), serde_json::to_string(&call).unwrap());
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidParams);
            named(&error, "");
            refused(&request.id, &error);
        }
    }
}

/// The error says which fields are wrong, and all of them stand at this place.
fn named(error: &Error, place: &str) {
    assert!(!error.field_violations().is_empty());
    for violation in error.field_violations() {
        assert!(violation.field.starts_with(place), "{violation:?} is not in {place}");
        assert_ne!(violation.description, "params cannot be read");
    }
}

/// An error can be written, stands in the table, and comes with the id that was sent.
fn refused(id: &Id<'_>, error: &Error) {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let body = rpc::error(id, error);
    assert_eq!(serde_json::from_slice::<Envelope<'_>>(&body).unwrap().id.get(), id.json());
    let Answer::Error(read) = rpc::answer::<Value>(&body).unwrap() else { panic!("{body:?} is no error") };
    let code = i32::try_from(read.code).unwrap();
    assert_eq!(ErrorKind::from_code(code), Some(error.kind()));
    assert_eq!(read.message, error.kind().message());
}

fn answered<T: DeserializeOwned + Serialize + PartialEq + Debug>(body: &[u8]) {
    if let Ok(Answer::Result(result)) = rpc::answer::<T>(body) {
        same(&result);
        let body = rpc::result(&Id::NULL, &result).unwrap();
        let Answer::Result(again) = rpc::answer::<T>(&body).unwrap() else { panic!("{body:?} is no result") };
        assert_eq!(again, result);
    }
}

/// A value is the same after it was written and read, and is then written the same.
fn same<T: DeserializeOwned + Serialize + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    let again: T = serde_json::from_str(&text).unwrap();
    assert_eq!(&again, value, "{text}");
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
}

/// The JSON of a part: alone, and in a message.
pub fn part(json: &[u8]) {
    let Ok(json) = std::str::from_utf8(json) else { return };
    let read = serde_json::from_str::<Part>(json);
    if let Ok(part) = &read {
        same(part);
        let text = serde_json::to_string(part).unwrap();
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(&text).unwrap();
        let contents = ["text", "raw", "url", "data"].into_iter().filter(|kind| members.contains_key(*kind));
        assert_eq!(contents.count(), 1, "{text}");
        assert!(part.media_type.is_none() || !part.media_type().is_empty());
    }
    if serde_json::from_str::<&RawValue>(json).is_err() {
        return;
    }
    let params = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{json}]}}}}"#);
    match (Call::read(Method::SendMessage, Some(serde_json::from_str(&params).unwrap())), read) {
        (Ok(Call::SendMessage(request)), Ok(part)) => assert_eq!(request.message.parts, [part]),
        (Err(error), Err(_)) => named(&error, "message.parts[0]"),
        (in_a_message, alone) => panic!("{alone:?} alone, {in_a_message:?} in a message"),
    }
    if let Ok(message) = serde_json::from_str::<Message>(json) {
        same(&message);
    }
}

/// The most that an event of the streams here may hold.
const LIMIT: usize = 256;

/// A stream of events, cut in pieces as its first bytes say: it gives the same events and the same end as in one
/// piece, and no event is larger than the limit.
pub fn sse(data: &[u8]) {
    let (cuts, stream) = data.split_at(data.len().min(4));
    let whole = events([stream]);
    assert_eq!(events(stream.chunks(1)), whole);
    let mut rest = stream;
    let sizes = cuts.iter().cycle().map(|size| usize::from(*size % 32) + 1);
    let pieces = sizes.map_while(|size| {
        let (piece, after) = rest.split_at(rest.len().min(size));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    });
    assert_eq!(events(pieces), whole);
    let (events, _, _) = whole;
    let mut written = Vec::new();
    for event in &events {
        assert!(event.data.len() <= LIMIT && event.id.as_ref().is_none_or(|id| id.len() <= LIMIT), "{event:?}");
        written.extend(sse::frame(&event.data, None));
    }
    // The ids that we write are numbers; the data comes back whatever it is.
    let mut reader = Reader::default();
    reader.push(&written).unwrap();
    let again: Vec<Event> = std::iter::from_fn(|| reader.next()).collect();
    assert_eq!(
        again.iter().map(|event| &event.data).collect::<Vec<_>>(),
        events.iter().map(|event| &event.data).collect::<Vec<_>>()
    );
}

/// The events of a stream, how it broke, and whether it was cut inside an event.
fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Option<Broken>, bool) {
    let mut reader = Reader::new(LIMIT);
    let mut found = Vec::new();
    for piece in pieces {
        let pushed = reader.push(piece);
        found.extend(std::iter::from_fn(|| reader.next()));
        if let Err(broken) = pushed {
            return (found, Some(broken), false);
        }
    }
    (found, None, reader.is_cut())
}

/// A timestamp: alone, and where a request holds one.
pub fn timestamp(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let read = text.parse::<Timestamp>();
    if let Ok(moment) = read {
        same(&moment);
        let written = moment.to_string();
        assert_eq!((written.len(), written.parse()), (24, Ok(moment)));
        assert_eq!(Timestamp::from_millis(moment.millis()), moment);
        // An oracle: what another parser reads too, it reads as the same moment, but for what is below a millisecond.
        if let Ok(other) = text.parse::<jiff::Timestamp>() {
            assert_eq!(other.as_nanosecond().div_euclid(1_000_000), moment.millis().into(), "{text}");
        }
    }
    let params = format!(r#"{{"statusTimestampAfter":{}}}"#, serde_json::to_string(text).unwrap());
    match (Call::read(Method::ListTasks, Some(serde_json::from_str(&params).unwrap())), read) {
        (Ok(Call::ListTasks(request)), Ok(moment)) => assert_eq!(request.status_timestamp_after, Some(moment)),
        (Err(error), Err(_)) => named(&error, "statusTimestampAfter"),
        (in_a_request, alone) => panic!("{alone:?} alone, {in_a_request:?} in a request"),
    }
}

/// A file in the language that the first byte names, with those lines changed that the second one names: the rules
/// speak of these only, and say the same again.
pub fn rules(data: &[u8]) {
    let [language, every, text @ ..] = data else { return };
    let (path, language) = [
        ("a.py", Language::Python),
        ("a.ts", Language::TypeScript),
        ("a.tsx", Language::Tsx),
        ("a.go", Language::Go),
        ("a.rs", Language::Rust),
    ][usize::from(*language) % 5];
    let text = String::from_utf8_lossy(text);
    let lines = u32::try_from(text.split('\n').count()).unwrap();
    let (first_line, step) = (1 + u32::from(*every) / 16, 1 + usize::from(*every) % 16);
    let changed: BTreeSet<u32> = (first_line..first_line + lines).step_by(step).collect();
    let source = Source { path, language, text: &text, first_line, whole: first_line == 1, changed: &changed };
    let read = || [review::check(&source), review::check_change(&[source])].concat();
    let found = read();
    for one in &found {
        assert!(changed.contains(&one.line) && one.file == path && !one.finding.is_empty(), "{one:?}");
        assert!(review::all().iter().any(|rule| rule.id == one.rule && rule.severity == one.severity), "{one:?}");
    }
    assert_eq!(read(), found);
}
