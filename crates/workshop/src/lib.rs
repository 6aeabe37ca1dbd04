//! The bench: starts the agents, runs scenario files, records what goes over the wire and compares it with what was
//! recorded before.
//!
//! Entry points: [`set::Set`] (scenarios as data), [`record::record`] (a set, run from its beginning), and one file in
//! `commands` for each command. A recording uses seeded ids and clocks ([`seeded`]) and real sockets; nothing in it
//! sleeps or asks for the time.

mod agents;
pub mod commands;
pub mod files;
#[cfg(feature = "interop")]
pub mod interop;
mod mistake;
mod placeholder;
#[cfg(feature = "real")]
pub mod real;
pub mod record;
pub mod scenario;
pub mod seeded;
pub mod set;
mod steps;
mod walkthrough;
mod webhooks;

pub use agents::{Agents, Live};
pub use mistake::Mistake;
