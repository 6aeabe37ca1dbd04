//! An agent, or the story of one, written as data: what is matched, what is then said.
//!
//! A [`Story`] is a TOML file with the rules of one agent or more. An agent takes its [`Script`] from it and lets the
//! script tell each turn: [`Script::tell`] finds the first rule that matches what was heard and says its steps, one
//! event a step. A story is read once and never changes; a script is a cheap handle on its rules.
//!
//! A file that cannot work is refused when it is read, with its name, the line and what was expected ([`Mistake`]).
//! What is left out: the card, which is who the agent is and stays when it stops reciting, and everything about
//! serving it.
//!
//! # The language
//!
//! ```toml
//! [[greeter.rule]]                       # rules of the agent "greeter", in order; the first that matches is told
//! contains = "hello"                     # what it looks at
//! say = [{ done = "Hello yourself." }]   # what is then said
//!
//! [[greeter.rule]]
//! otherwise = true                       # the last one may match everything
//! say = [
//!     { working = "Thinking" },
//!     { ask = "What is your name?" },
//! ]
//! ```
//!
//! A rule matches when everything it looks at holds. "The text" is the text parts of the message joined by one space;
//! capital and small letters differ. Where a list may stand, all of its entries must hold.
//!
//! | key | holds when |
//! |---|---|
//! | `on` | the turn was started by this, or by one entry of this list: `"message"`, `"answer"` (a message to a task that waits), `"approval"`, `"refusal"`, `"expiry"` (of the wait for an approval). Without it: by anything |
//! | `contains`, `lacks` | the text contains this; does not contain it. A text or a list |
//! | `ends_with` | some text part ends with this, white space at its end aside |
//! | `has_media_type`, `lacks_media_type` | some part has this media type; none has it. A text or a list. A part that states none counts as `text/plain`, `application/json` (data) or `application/octet-stream` |
//! | `part = { media_type, contains }` | one part has this media type and its content, decoded, contains this text; either may be left out |
//! | `first_message_part = { media_type, contains }` | the same of the message that the task began with |
//! | `otherwise = true` | always; it stands alone |
//!
//! For an approval, a refusal or an expiry, "the message" is the last one of the client. When no rule matches, the
//! task fails and says so.
//!
//! | step | what is said |
//! |---|---|
//! | `{ reply = WORDS }` | a direct message instead of a task. It stands alone, and its rule is looked at only for a message that belongs to no task |
//! | `{ queued = WORDS }`, `{ working = WORDS }` | the task waits for its turn; is being worked on |
//! | `{ artifact = ID, name = TEXT, parts = [PART], append = true, last_chunk = true }` | a piece of an artifact; `name`, `append` and `last_chunk` may be left out |
//! | `{ log = ID, name = TEXT, lines = [TEXT] }` | an artifact line by line: each line is a piece and ends in a line break, the name is on the first, the last says that it is the last |
//! | `{ ask = WORDS }`, `{ need_approval = WORDS }` | ends the turn; the answer, or the approval, starts the next one |
//! | `{ done = WORDS }`, `{ failed = WORDS }`, `{ rejected = WORDS }`, `{ canceled = WORDS }` | ends the task |
//! | `{ sleep_ms = NUMBER }` | nothing, for so many milliseconds |
//!
//! WORDS is a text or a list of parts; a status without words is its bare name, such as `"working"`. Texts in WORDS
//! may hold `{task_id}` and `{approve_url}`, the address where an operator approves this task. A PART is
//! `{ text = TEXT }`, `{ json = TEXT }` (data; its members stay in their order), `{ file = TEXT }` (the bytes of a file)
//! or `{ url = TEXT }`, each with `media_type` and `filename` where wanted.

mod mistake;
mod read;
mod rule;
mod step;
pub mod stories;
mod story;
mod table;
#[cfg(test)]
mod tests;

pub use mistake::Mistake;
pub use rule::{Heard, On, Rule};
pub use step::{Step, Verb};
pub use story::{Script, Story};
