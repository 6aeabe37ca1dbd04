//! An agent, or the story of one, written as data: what is matched, what is then said.
//!
//! A [`Story`] is a TOML file with the rules of one agent or more. An agent takes its [`Script`] from it and lets the
//! script tell each turn: [`Script::tell`] finds the rule that matches what was heard and says its steps, one event a
//! step. When the file also says who the agent is, it is a whole agent, [`Scripted`], and needs no Rust. A file is read
//! once and never changes; a script is a cheap handle on its rules.
//!
//! A file that cannot work is refused when it is read, with its name, the line and what was expected ([`Mistake`]).
//! What is left out: serving it, which `server` does, and any work; an agent that works is written in Rust.
//!
#![doc = include_str!("../language.md")]

mod about;
mod agent;
mod mistake;
mod read;
mod rule;
mod step;
pub mod stories;
mod story;
mod table;
#[cfg(test)]
mod tests;

pub use about::About;
pub use agent::Scripted;
pub use mistake::{Mistake, one_of};
pub use rule::{Heard, On, Rule};
pub use step::{Flaw, Step, Verb};
pub use story::{Script, Story};
