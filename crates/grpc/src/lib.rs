//! The gRPC binding's wire (specification 10): the service `lf.a2a.v1.A2AService` as bytes, and the only conversion
//! between its messages and the types of [`protocol`].
//!
//! The messages are generated from `proto/a2a.proto` and never leave this crate. A server reads a [`protocol::Call`] out of
//! a request with [`call::read`] and writes what came of it with [`answer`]; a client does the opposite. [`status`] is
//! the error table on this wire, and [`Raw`] the codec that hands tonic the bytes as they are.
//!
//! What the other bindings refuse with a field's name is refused here with the same name and the same words. What
//! differs is in the nature of the wire:
//!
//! - `data` and `metadata` travel as `google.protobuf.Value`: numbers are doubles (a larger one becomes the largest
//!   double, and digits beyond the sixteenth are lost), the members of an object have no order, and of two members of one
//!   name the last stays. A whole number comes back without a fraction.
//! - A reader of protobuf stops at 100 nested messages, so `data` and `metadata` hold at most 31 objects in one another,
//!   or 47 lists. A request with more is refused with the field's name. An answer with more, which an agent made or which
//!   came over another binding, is an InvalidAgentResponse whose metadata names the field; of a stream it is the end. The
//!   other bindings carry such a task.
//! - An authentication scheme of a card that the proto does not know keeps its name only.
//! - Frames have no numbers, so a reader that comes back begins with the task; a quiet connection is kept by the pings of
//!   HTTP/2 instead of comments.
//!
//! What is left out: connections, who may call, and what a call does (`server`, `client`).

pub mod answer;
pub mod call;
mod card;
mod codec;
mod data;
mod depth;
mod push;
mod read;
pub mod status;
mod task;

pub use codec::Raw;
pub use depth::TooDeep;
use protocol::Method;

/// What `build.rs` makes of the proto.
#[allow(missing_docs, clippy::all, reason = "generated")]
mod wire {
    include!(concat!(env!("OUT_DIR"), "/lf.a2a.v1.rs"));
}

/// The service's full name.
pub const SERVICE: &str = "lf.a2a.v1.A2AService";

/// The proto and what it imports as an encoded `google.protobuf.FileDescriptorSet`: what reflection shows.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/a2a.bin"));

/// The path of an operation.
pub fn path(method: Method) -> String {
    format!("/{SERVICE}/{}", method.name())
}
