//! Runs an A2A agent: bindings, the checks at the door, the engine, the store, streams, webhooks and the card.
//!
//! Entry point: [`run()`] with listeners, a [`Setup`] and the future that ends it. An agent implements [`Agent`]: it gets
//! a [`Job`] and speaks through a [`Say`], and knows nothing of HTTP or stores.
//!
//! The way of a request: `jsonrpc`, `rest` or, behind the feature `grpc`, `grpc` (which path) -> `door` (credential, version, extensions) ->
//! [`protocol::Call`] (decoded once) -> `engine` (decides) -> `slot` (the one owner of the task) -> [`store`] (keeps),
//! then [`hub`] (tells). The way of an event: the agent says it -> `Task::apply` -> kept -> told to streams and webhooks.
//!
//! What is left out: any one agent's trade, and how clients behave (`client`).

pub mod agent;
mod approvals;
mod attempt;
mod card;
pub mod cli;
mod cors;
mod door;
mod engine;
pub mod gate;
#[cfg(feature = "grpc")]
mod grpc;
mod host;
pub mod hub;
mod jsonrpc;
pub mod live;
mod operators;
mod page;
mod push;
mod rest;
mod run;
mod say;
mod setup;
mod slot;
pub mod store;
mod together;
mod tokens;
pub mod told;

pub use agent::{Agent, Fault, Job, Noted, Start, Turn, Words};
pub use attempt::Dedupe;
pub use gate::Gate;
pub use run::run;
pub use say::{Chunk, Over, Say};
pub use setup::{ANONYMOUS, Credential, Limits, Setup};
pub use tokens::{Tokens, WrongLine};
