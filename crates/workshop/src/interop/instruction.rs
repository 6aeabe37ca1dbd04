//! What the kit asks an agent to do: a protobuf message in a part of an A2A message. Names and numbers are the kit's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use protocol::{Content, Message, Part};

/// The media type of the part that holds an instruction.
pub const MEDIA_TYPE: &str = "application/x-protobuf";
/// The name of the file in that part.
const FILENAME: &str = "instruction.bin";

/// One thing to do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Instruction {
    /// What it is.
    #[prost(oneof = "Step", tags = "1, 2, 3")]
    pub step: Option<Step>,
}

/// What an instruction says to do.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Step {
    /// Call an agent.
    #[prost(message, tag = "1")]
    CallAgent(Box<CallAgent>),
    /// Say something.
    #[prost(message, tag = "2")]
    ReturnResponse(Response),
    /// Do several things.
    #[prost(message, tag = "3")]
    Steps(Series),
}

/// A call of another agent.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CallAgent {
    /// The binding: `jsonrpc`, `http_json` or `grpc`.
    #[prost(string, tag = "1")]
    pub transport: String,
    /// Where the agent is.
    #[prost(string, tag = "2")]
    pub agent_card_uri: String,
    /// What to tell it.
    #[prost(message, optional, boxed, tag = "3")]
    pub instruction: Option<Box<Instruction>>,
    /// Its answer is to be a stream.
    #[prost(bool, tag = "4")]
    pub streaming: bool,
    /// How to follow what it does.
    #[prost(oneof = "Behavior", tags = "5, 6, 7")]
    pub behavior: Option<Behavior>,
}

/// How to follow what an agent that was called does.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Behavior {
    /// By its answer.
    #[prost(message, tag = "5")]
    SendMessage(()),
    /// By its answer, while it also tells a webhook.
    #[prost(message, tag = "6")]
    PushNotification(PushNotification),
    /// By leaving its stream, subscribing to the task and canceling it in the end.
    #[prost(message, tag = "7")]
    Resubscribe(()),
}

/// Where events are to be posted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PushNotification {
    /// The beginning of the webhook's URL.
    #[prost(string, tag = "1")]
    pub url: String,
}

/// Something to say.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    /// The text.
    #[prost(string, tag = "1")]
    pub response: String,
    /// The task is to stay open for a while.
    #[prost(bool, tag = "2")]
    pub hold_task: bool,
}

/// Several things to do, one after the other. What they say is told in this order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Series {
    /// The things.
    #[prost(message, repeated, tag = "1")]
    pub instructions: Vec<Instruction>,
    /// How to make one answer of theirs. Only one way is known: all of them.
    #[prost(int32, tag = "2")]
    pub response_generator: i32,
}

impl Instruction {
    /// The instruction in a message: in a part of its type or name, as bytes or as base64, or in any text that is one.
    pub fn of(message: &Message) -> Option<Self> {
        message.parts.iter().find_map(|part| {
            let named = part.media_type.as_deref() == Some(MEDIA_TYPE) || part.filename.as_deref() == Some(FILENAME);
            let read = match &part.content {
                Content::Raw(bytes) if named => Self::decode(bytes.clone()).ok(),
                Content::Text(text) => STANDARD.decode(text.trim()).ok().and_then(|bytes| Self::decode(&*bytes).ok()),
                _ => None,
            };
            read.filter(|read| read.step.is_some())
        })
    }

    /// A part that holds it.
    pub fn part(&self) -> Part {
        Part::raw(self.encode_to_vec(), FILENAME, MEDIA_TYPE)
    }

    /// Whether the task is to stay open for a while. What another agent is told does not count.
    pub fn holds(&self) -> bool {
        match &self.step {
            Some(Step::ReturnResponse(response)) => response.hold_task,
            Some(Step::Steps(series)) => series.instructions.iter().any(Self::holds),
            _ => false,
        }
    }
}
