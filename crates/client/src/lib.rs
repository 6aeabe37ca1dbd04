//! Calls an A2A agent: finds its card, chooses an interface, sends messages, follows streams.
//!
//! Entry points: [`Http`] (one for a whole client), [`Http::card`], [`choose()`], and a [`Connection`] for each agent.
//! [`Cards`] keeps cards as long as their servers allow, and [`Http::verify`] looks at a card's signatures.
//! Whoever wants to listen to what goes over the wire hands in a [`Tap`]. A [`Connection`] makes one call at a time
//! or several; a stream ends when its [`Events`] are dropped.
//!
//! With the feature `grpc` it speaks gRPC too: [`Binding::SPOKEN`] says what a build speaks. What goes over gRPC is not
//! told to the tap, which knows of HTTP with readable bodies; the connection's answers and frames are the same JSON that
//! HTTP+JSON would have brought.
//!
//! What is left out: retries, and every decision about what to do next (`planner`).

mod approvals;
mod card;
mod choose;
mod connection;
mod error;
mod events;
#[cfg(feature = "grpc")]
mod grpc;
mod http;
pub mod live;
mod tap;
mod verify;

pub use approvals::{Approvals, Decision, Known, NotTaken, Waiting};
pub use card::{Cards, Fetched};
pub use choose::{Binding, NoInterface, choose};
pub use connection::{Connection, Reply, Wanted};
pub use error::ClientError;
pub use events::{Events, Frame};
pub use http::{Answer, Http, Limits, Opened};
pub use tap::{Exchange, Headers, Sent, Tap};
pub use verify::{Seal, Source};
