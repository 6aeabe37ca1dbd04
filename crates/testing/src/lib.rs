//! What the tests that span crates share: an agent from a closure, a served agent, a way to talk to it over all
//! bindings, a store that is slow or fails, a PostgreSQL and a wire to it that can be cut, a receiver of webhooks, the
//! agents as processes, the public SDKs, a browser, [replicas] that are killed, an agent that [crash]es, and the [hammer]. A dev-dependency only.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod agent;
mod browser;
pub mod crash;
mod foreign;
pub mod hammer;
mod postgres;
mod program;
pub mod replicas;
mod sdks;
mod slow;
mod talk;
mod task;
mod webhooks;
mod wire;

pub use agent::{Apart, Scripted, Served, card, scripted, serve};
pub use browser::{Browser, Window};
pub use postgres::Postgres;
pub use program::{Program, example, program, programs, skip, workshop};
pub use sdks::{Foreign, Installed, Sdk};
pub use slow::Slow;
pub use talk::{Answer, Binding, Stream, client, message, send};
pub use task::{chunk, frame_state, id, immediately, rebuilt, state, texts, to};
pub use webhooks::{Hook, Webhooks};
pub use wire::Wire;
