//! Runs an agent.

pub mod agent;
mod say;

pub use agent::{Agent, Fault, Job, Start, Turn, Words};
pub use say::{Chunk, Over, Say};
