//! The transcript: the text form in which scenarios are kept, for reading from top to bottom.
//!
//! ```text
//! ### 1 · watch a task
//! GET /tasks/1 HTTP/1.1
//! Host: localhost:8080
//!
//! HTTP/1.1 200 OK
//! Content-Type: text/event-stream
//!
//! data: {"state": "working"}
//!
//! # a note
//!
//! ### 2 · approve it
//! …
//! ```
//!
//! Every part ends with an empty line; the text ends with one line feed. JSON bodies are indented, events stand on
//! one line, other bodies are written as they are. An exchange begun while a stream was open stands between the
//! stream's events. A missing answer is the line `# no answer: reason`. Webhooks follow the last exchange.
//!
//! It is a rendering, not the wire: times, most headers and the white space of JSON are gone. Nor can it tell
//! everything apart: where no event or note follows, an exchange in a stream reads as one after it, and events of
//! two streams that were open together read as events of the one that was opened last. [`events`] can, from the
//! capture as it was recorded.

mod read;
mod write;

pub use read::{Problem, ReadError, read};
pub use write::{events, write};

/// What stands before the reason why there is no answer.
const NO_ANSWER: &str = "# no answer";

#[cfg(test)]
mod tests;
