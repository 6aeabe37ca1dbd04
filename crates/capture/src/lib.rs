//! HTTP exchanges as data: write, read, compare.
//!
//! A [`Capture`] is what one client saw, in the order of its requests. Whoever makes calls fills one through a
//! [`Recorder`]; whoever shows, checks or replays calls reads one. The recorder's life is the caller's: it keeps
//! everything until it is dropped, and an exchange is over when its [`Ticket`] is.
//!
//! Text forms are modules that each offer `write` and `read` over the same [`Capture`]. There is one so far:
//! [`transcript`], the form in which scenarios are kept, made for reading from top to bottom. Another form is
//! another module beside it; nothing here picks one by looking at a file.
//!
//! The crate knows HTTP and JSON. It leaves out what the calls mean, clocks (times are handed in), files and
//! sockets, and secrets: an `Authorization` header is kept as it was sent.

pub mod compare;
pub mod exchange;
pub mod json;
pub mod recorder;
pub mod transcript;

pub use compare::{Difference, first_difference};
pub use exchange::{Answer, Capture, End, Entry, Exchange, Headers, Request, Response, Stream, StreamItem, Webhook};
pub use recorder::{Recorder, Ticket};
