//! The A2A 1.0 wire: the data model, the eleven operations, ProtoJSON reading and writing, the JSON-RPC envelope,
//! the error table and the framing of server-sent events.
//!
//! Pure data and pure functions: no clock, no randomness, no runtime, no HTTP. Servers, clients, the recorder and the
//! figures all use these types, and all of them rebuild a task through [`Task::apply`].
//!
//! Where to start: [`task`] for what a task is, [`call`] for the operations, [`rpc`] for the envelope, [`error`] for
//! the error table. What is left out: transport (`server`, `client`), card signatures (`signature`).

pub mod call;
pub mod card;
pub mod check;
pub mod dial;
pub mod error;
pub mod event;
pub mod extension;
pub mod id;
pub mod json;
pub mod media;
pub mod message;
pub mod part;
pub mod push;
mod read;
pub mod rpc;
pub mod seam;
pub mod sse;
pub mod task;
pub mod time;

pub use call::{Call, Method};
pub use card::AgentCard;
pub use dial::Dial;
pub use error::{Error, ErrorKind};
pub use event::{StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
pub use extension::Timestamps;
pub use id::{ArtifactId, ConfigId, ContextId, EmptyId, MessageId, TaskId};
pub use json::{Json, Object};
pub use message::{Message, Role};
pub use part::{Content, Part};
pub use push::TaskPushNotificationConfig;
pub use seam::{Clock, Ids};
pub use task::{Artifact, Change, Parts, Phase, Task, TaskState, TaskStatus};
pub use time::Timestamp;
