//! How deep the data of callers and agents may be nested. Readers of protobuf stop at a hundred messages within each
//! other, and would leave the other side with an error that names nothing, or with a stream that broke: so what is
//! nested deeper is neither taken nor sent, and the field is named.

use bytes::Bytes;
use prost::{DecodeError, Message as _};
use protocol::check::{Violations, Wrong};
use protocol::task::TaskView;
use protocol::{
    Artifact, Call, Content, Error, ErrorKind, Json, Message, Method, Object, Part, StreamResponse, TaskStatus,
};

use crate::read::At;
use crate::wire;

/// How many messages within each other data may take: a hundred without those around it where it stands deepest, in a
/// part of the status of a frame's task. An object takes three (itself, a member, its value), a list two.
const MOST: usize = 100 - 5;

/// What is wrong with a field of a request.
pub(crate) const TOO_DEEP: Wrong = Wrong::NotA("nested no deeper than gRPC carries, which is 31 objects or 47 lists");

/// A field holds data that this binding does not carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is nested deeper than gRPC carries")]
pub struct TooDeep(String);

impl From<TooDeep> for Error {
    /// What a server answers in place of an answer that cannot be read.
    fn from(TooDeep(field): TooDeep) -> Self {
        Self::from(ErrorKind::InvalidAgentResponse)
            .with("field", field)
            .with("problem", "nested deeper than gRPC carries")
    }
}

/// Whether JSON is too deep. What has few brackets cannot be.
pub(crate) fn is_too_deep(json: &str) -> bool {
    let opening = json.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if opening * 3 <= MOST {
        return false;
    }
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' => depth += 3,
            b'[' => depth += 2,
            b'}' => depth -= 3,
            b']' => depth -= 2,
            _ => {}
        }
        if depth > MOST {
            return true;
        }
    }
    false
}

type Checked = Result<(), TooDeep>;

fn json(at: At<'_>, json: &Json) -> Checked {
    if is_too_deep(json.text()) { Err(TooDeep(at.to_string())) } else { Ok(()) }
}

fn object(at: At<'_>, object: Option<&Object>) -> Checked {
    if object.is_some_and(|object| is_too_deep(object.text())) { Err(TooDeep(at.to_string())) } else { Ok(()) }
}

fn parts<'a>(at: At<'_>, parts: impl IntoIterator<Item = &'a Part>) -> Checked {
    parts.into_iter().enumerate().try_for_each(|(place, part)| {
        let at = at.entry("parts", place);
        if let Content::Data(data) = &part.content {
            json(at.field("data"), data)?;
        }
        object(at.field("metadata"), part.metadata.as_ref())
    })
}

pub(crate) fn message(at: At<'_>, message: &Message) -> Checked {
    parts(at, &message.parts)?;
    object(at.field("metadata"), message.metadata.as_ref())
}

fn status(at: At<'_>, status: &TaskStatus) -> Checked {
    status.message.as_deref().map_or(Ok(()), |said| message(at.field("message"), said))
}

fn artifact(at: At<'_>, artifact: &Artifact) -> Checked {
    parts(at, artifact.parts.iter())?;
    object(at.field("metadata"), artifact.metadata.as_ref())
}

pub(crate) fn task(at: At<'_>, view: &TaskView<'_>) -> Checked {
    status(at.field("status"), &view.task().status)?;
    for (place, made) in view.artifacts().iter().enumerate() {
        artifact(at.entry("artifacts", place), made)?;
    }
    for (place, said) in view.history().iter().enumerate() {
        message(at.entry("history", place), said)?;
    }
    object(at.field("metadata"), view.task().metadata.as_ref())
}

pub(crate) fn event(event: &StreamResponse) -> Checked {
    let whole = At::Whole;
    match event {
        StreamResponse::Task(told) => task(whole.field("task"), &told.view(None, true)),
        StreamResponse::Message(said) => message(whole.field("message"), said),
        StreamResponse::StatusUpdate(update) => {
            let at = whole.field("statusUpdate");
            status(at.field("status"), &update.status)?;
            object(at.field("metadata"), update.metadata.as_ref())
        }
        StreamResponse::ArtifactUpdate(update) => {
            let at = whole.field("artifactUpdate");
            artifact(at.field("artifact"), &update.artifact)?;
            object(at.field("metadata"), update.metadata.as_ref())
        }
    }
}

pub(crate) fn call(call: &Call) -> Checked {
    let whole = At::Whole;
    match call {
        Call::SendMessage(request) | Call::SendStreamingMessage(request) => {
            message(whole.field("message"), &request.message)?;
            object(whole.field("metadata"), request.metadata.as_ref())
        }
        Call::CancelTask(request) => object(whole.field("metadata"), request.metadata.as_ref()),
        _ => Ok(()),
    }
}

/// A request as far as the messages that hold data, which stay bytes. The numbers are those of the proto.
#[derive(Clone, PartialEq, prost::Message)]
struct Send {
    #[prost(bytes = "bytes", tag = "2")]
    message: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    metadata: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Said {
    #[prost(bytes = "bytes", repeated, tag = "5")]
    parts: Vec<Bytes>,
    #[prost(bytes = "bytes", tag = "6")]
    metadata: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Piece {
    #[prost(bytes = "bytes", tag = "4")]
    data: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    metadata: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Cancel {
    #[prost(bytes = "bytes", tag = "3")]
    metadata: Bytes,
}

/// The fields that keep a request from being read because of how deep they are. There are none when it is something else.
pub(crate) fn found(method: Method, request: Bytes) -> Violations {
    let mut found = Violations::default();
    // What cannot be read as far as this is no request, however deep.
    let _ = match method {
        Method::SendMessage | Method::SendStreamingMessage => send(request, &mut found),
        Method::CancelTask => Cancel::decode(request).map(|Cancel { metadata }| {
            let alone = Cancel { metadata }.encode_to_vec();
            note(At::Whole.field("metadata"), wire::CancelTaskRequest::decode(&*alone), &mut found);
        }),
        _ => Ok(()),
    };
    found
}

fn note<T>(at: At<'_>, read: Result<T, DecodeError>, found: &mut Violations) {
    // That is all that a reader says about why it stopped.
    if read.is_err_and(|cause| cause.to_string().ends_with("recursion limit reached")) {
        found.add(&at.to_string(), TOO_DEEP);
    }
}

/// Each field is tried in a request that holds nothing else.
fn send(request: Bytes, found: &mut Violations) -> Result<(), DecodeError> {
    let request = Send::decode(request)?;
    let said = Said::decode(request.message)?;
    let at = At::Whole;
    let at = at.field("message");
    let alone = |message: Said| {
        let request = Send { message: message.encode_to_vec().into(), metadata: Bytes::new() };
        wire::SendMessageRequest::decode(&*request.encode_to_vec())
    };
    for (place, part) in said.parts.into_iter().enumerate() {
        let (at, Piece { data, metadata }) = (at.entry("parts", place), Piece::decode(part)?);
        for (name, piece) in
            [("data", Piece { data, metadata: Bytes::new() }), ("metadata", Piece { data: Bytes::new(), metadata })]
        {
            let parts = vec![piece.encode_to_vec().into()];
            note(at.field(name), alone(Said { parts, metadata: Bytes::new() }), found);
        }
    }
    note(at.field("metadata"), alone(Said { parts: Vec::new(), metadata: said.metadata }), found);
    let alone = Send { message: Bytes::new(), metadata: request.metadata }.encode_to_vec();
    note(At::Whole.field("metadata"), wire::SendMessageRequest::decode(&*alone), found);
    Ok(())
}
