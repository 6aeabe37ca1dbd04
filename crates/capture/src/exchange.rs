//! What was sent and what came back, as plain data.

use std::time::Duration;

/// Header names and values in the order in which they were sent. Names compare without regard to case.
pub type Headers = Vec<(String, String)>;

/// Everything one client saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Exchanges in the order of their requests, and webhooks where they arrived.
    pub entries: Vec<Entry>,
}

impl Capture {
    /// The exchanges with their numbers. The first one is number 1; webhooks are not counted.
    pub fn exchanges(&self) -> impl Iterator<Item = (usize, &Exchange)> {
        let exchanges = self.entries.iter().filter_map(|entry| match entry {
            Entry::Exchange(exchange) => Some(exchange),
            Entry::Webhook(_) => None,
        });
        (1..).zip(exchanges)
    }

    /// The webhooks with their numbers, counted on their own from 1.
    pub fn webhooks(&self) -> impl Iterator<Item = (usize, &Webhook)> {
        let webhooks = self.entries.iter().filter_map(|entry| match entry {
            Entry::Webhook(webhook) => Some(webhook),
            Entry::Exchange(_) => None,
        });
        (1..).zip(webhooks)
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The client asked.
    Exchange(Exchange),
    /// The client was told.
    Webhook(Webhook),
}

/// A request of the client and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// A line for the reader.
    pub title: String,
    /// What the client sent.
    pub request: Request,
    /// What came back.
    pub answer: Answer,
    /// When the request left, since a start that the caller chose. Text forms without times drop it.
    pub sent: Option<Duration>,
    /// When the answer, or the head of its stream, arrived or was given up.
    pub answered: Option<Duration>,
}

/// A request as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// The target of the request line, query included.
    pub path: String,
    /// All headers; each text form keeps those it names. HTTP libraries add `Host` late: record it too.
    pub headers: Headers,
    /// The body's bytes, if there was a body.
    pub body: Option<Vec<u8>>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One response, read to its end.
    Whole(Response),
    /// A response that arrived event by event.
    Stream(Stream),
    /// Nothing, and why. The reason is empty while the client is still waiting.
    NoAnswer(String),
}

/// A response read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The words after the status code; empty where there were none.
    pub reason: String,
    /// All headers.
    pub headers: Headers,
    /// The body's bytes, if there was a body.
    pub body: Option<Vec<u8>>,
}

impl Response {
    /// A response with the usual words for its status. An empty body counts as none.
    pub fn new(status: u16, headers: Headers, body: Vec<u8>) -> Self {
        Self { status, reason: reason(status).to_owned(), headers, body: (!body.is_empty()).then_some(body) }
    }
}

/// A response of type `text/event-stream`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The status code.
    pub status: u16,
    /// The words after the status code; empty where there were none.
    pub reason: String,
    /// All headers.
    pub headers: Headers,
    /// What came, was remarked or was asked while the stream was open, in order.
    pub items: Vec<StreamItem>,
    /// When it ended, whichever side closed it. `None` while it is open.
    pub end: Option<End>,
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// How many streams of the capture had ended before.
    pub order: usize,
    /// When it ended, since the caller's start.
    pub at: Option<Duration>,
}

/// One thing that happened while a stream was open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// An event.
    Frame {
        /// Its data as received, JSON as a rule; lines are separated by `\n`.
        data: String,
        /// When it arrived, since the caller's start.
        at: Option<Duration>,
    },
    /// A remark for the reader.
    Note(String),
    /// The exchange with this number was begun here. Its number is higher than that of the stream's own exchange.
    Exchange(usize),
}

/// A request that the client received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// What was received.
    pub request: Request,
    /// When it arrived, since the caller's start.
    pub at: Option<Duration>,
}

/// The usual words for a status code, or nothing for an unusual one.
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
