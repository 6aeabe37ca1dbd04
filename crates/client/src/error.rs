//! Why a call brought no answer that the protocol knows.

use std::time::Duration;

/// A call that failed. An error of the protocol's own is no failure: it is an answer, see [`crate::Reply`] and
/// [`ClientError::Remote`] for the operations that have no other place for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The URL cannot be called.
    #[error("{0} is no URL that can be called")]
    Url(String),
    /// The request cannot be written, so nothing was sent.
    #[error("the request cannot be sent: {0}")]
    Request(String),
    /// Nobody answers there.
    #[error("{origin} does not answer: {why}")]
    Unreachable {
        /// Host and port.
        origin: String,
        /// The first cause, in words.
        why: String,
    },
    /// A time limit ran out.
    #[error("{origin}: {what} took longer than {} s", limit.as_secs_f32())]
    TooSlow {
        /// Host and port.
        origin: String,
        /// Which limit: connecting, waiting for an answer, or a quiet stream.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The connection broke in the middle.
    #[error("{origin}: the connection broke: {why}")]
    Broken {
        /// Host and port.
        origin: String,
        /// The cause, in words.
        why: String,
    },
    /// The answer is not what the protocol says it is.
    #[error("{origin} answered {status} {content_type}, which is no A2A: {why}")]
    NotA2a {
        /// Host and port.
        origin: String,
        /// The HTTP status.
        status: u16,
        /// The content type, or a dash.
        content_type: String,
        /// What was expected, and how the answer begins.
        why: String,
    },
    /// A stream ended before its task did.
    #[error("{origin}: the stream ended early, inside an event")]
    Cut {
        /// Host and port.
        origin: String,
    },
    /// The agent answered with an error of the protocol.
    #[error(transparent)]
    Remote(#[from] protocol::error::RemoteError),
    /// No card was found.
    #[error("no agent card; tried {}", tried.join(" and "))]
    NoCard {
        /// Each URL, with what came of it.
        tried: Vec<String>,
        /// Why the last one gave none.
        cause: Box<ClientError>,
    },
}
