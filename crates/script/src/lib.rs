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
//! # The language
//!
//! ```toml
//! [greeter]                              # who the agent is; an agent that only recites leaves this out
//! description = "Greets whoever writes."
//! version = "1.0.0"
//! skill = [{ id = "greet", name = "Greet", description = "Answers a greeting.", tags = ["greeting"] }]
//!
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
//! ## What a rule looks at
//!
//! A rule matches when everything it looks at holds. "The text" is the text parts of the message joined by one space;
//! capital and small letters differ. Where a list may stand, all of its entries must hold.
//!
//! | key | holds when |
//! |---|---|
//! | `on` | the turn was started by this, or by one entry of this list: `"message"`, `"answer"` (a message to a task that waits), `"approval"`, `"refusal"`, `"expiry"` (of the wait for an approval). Without it: by anything |
//! | `message_id_prefix` | the message's id begins with this. Rules with a longer prefix are tried before those with a shorter one or none, wherever they stand |
//! | `contains`, `lacks` | the text contains this; does not contain it. A text or a list |
//! | `ends_with` | some text part ends with this, white space at its end aside |
//! | `has_media_type`, `lacks_media_type` | some part has this media type; none has it. A text or a list. A part that states none counts as `text/plain`, `application/json` (data) or `application/octet-stream` |
//! | `part = { media_type, contains }` | one part has this media type and its content, decoded, contains this text; either may be left out |
//! | `first_message_part = { media_type, contains }` | the same of the message that the task began with |
//! | `otherwise = true` | always; it stands alone |
//!
//! For an approval, a refusal or an expiry, "the message" is the last one of the client. A message to a task, such as
//! the answer to a question, is matched anew like any other. When no rule matches, the task fails and says so.
//!
//! ## What it says
//!
//! | step | what is said |
//! |---|---|
//! | `{ reply = WORDS }` | a direct message instead of a task. It stands alone, and its rule is looked at only for a message that belongs to no task |
//! | `{ queued = WORDS }`, `{ working = WORDS }` | the task waits for its turn; is being worked on |
//! | `{ artifact = ID, name = TEXT, parts = [PART], append = true, last_chunk = true }` | a piece of an artifact; `name`, `append` and `last_chunk` may be left out |
//! | `{ log = ID, name = TEXT, lines = [TEXT] }` | an artifact line by line: each line is a piece and ends in a line break, the name is on the first, the last says that it is the last |
//! | `{ ask = WORDS }`, `{ need_approval = WORDS }` | ends the turn; the answer, or the approval, starts the next one |
//! | `{ done = WORDS }`, `{ failed = WORDS }`, `{ rejected = WORDS }`, `{ canceled = WORDS }` | ends the task |
//! | `{ sleep_ms = NUMBER }`, `{ sleep_ms = [LEAST, MOST] }` | nothing, for so many milliseconds; for a time between the two, another one each time |
//!
//! WORDS is a text or a list of parts; a status without words is its bare name, such as `"working"`. Texts in WORDS
//! may hold `{text}`, the text of the message, `{task_id}` and `{approve_url}`, the address where an operator approves
//! this task. A PART is `{ text = TEXT }`, `{ json = TEXT }` (data; its members stay in their order),
//! `{ file = TEXT }` or `{ base64 = TEXT }` (the bytes of a file) or `{ url = TEXT }`, each with `media_type` and
//! `filename` where wanted.
//!
//! And what no good agent does, to see what follows:
//!
//! | step | what happens |
//! |---|---|
//! | `"panic"`, `"error"` | the agent's code panics; returns an error. The server fails the task |
//! | `"return_without_end"` | the turn returns and has neither ended the task nor asked for anything. The server fails the task |
//! | `"never_end"` | the turn goes on until the client cancels it or `--turn-limit` has passed |
//! | `"ignore_cancel"` | from here on the turn does not heed that it is to stop: it sleeps on and says the rest. The server waits a moment, then drops it |
//!
//! ## Who the agent is
//!
//! | key | what it is |
//! |---|---|
//! | `name` | the card's name; without it, the one in brackets |
//! | `description`, `version` | of the agent; they must be there |
//! | `documentation_url`, `provider = { organization, url }` | on the card, where wanted |
//! | `skill` | what it can be asked to do: `[[NAME.skill]]` with `id`, `name`, `description`, `tags` and perhaps `examples`, `input_modes`, `output_modes`. At least one |
//! | `input_modes`, `output_modes` | the media types it takes and gives; `text/plain` when left out. A message with a part of another type is refused |
//! | `streaming`, `push` | whether it answers with streams (yes when left out) and posts to webhooks (no) |
//! | `extension` | `[[NAME.extension]]` with `uri` and perhaps `description` and `required = true` |
//! | `extended_skill` | skills that only callers with the token see; with them the agent has an extended card |
//! | `token` | the bearer token that callers must send |
//! | `port` | where it listens, 41250 when left out |
//! | `dedupe` | which resent messages join their first attempt: `"unanswered"` (when left out), `"always"`, `"off"` |
//! | `allow_local_webhooks` | `true`: webhooks may lead to this machine and to private networks |
//! | `configuration` | `[NAME.configuration.OTHER]` with those of the keys above that differ when the agent is started as OTHER |

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
