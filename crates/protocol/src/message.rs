//! `Message`, one unit of communication between client and agent (specification 4.1.4).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{ContextId, MessageId, TaskId};
use crate::json::Object;
use crate::part::Part;
use crate::read;

/// One turn of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct Message {
    /// Made by whoever wrote the message.
    #[serde(alias = "message_id")]
    pub message_id: MessageId,
    /// The context that the message belongs to. A server's message always has it.
    #[serde(default, deserialize_with = "read::id", skip_serializing_if = "Option::is_none", alias = "context_id")]
    pub context_id: Option<ContextId>,
    /// The task that the message belongs to.
    #[serde(default, deserialize_with = "read::id", skip_serializing_if = "Option::is_none", alias = "task_id")]
    pub task_id: Option<TaskId>,
    /// Who speaks. Read as [`Role::Unspecified`] when it is absent.
    #[serde(default)]
    pub role: Role,
    /// The content; at least one part. Read as none when it is absent.
    #[serde(default, deserialize_with = "read::or_default")]
    pub parts: Vec<Part>,
    /// A key and value object about the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The URIs of the extensions that shaped this message.
    #[serde(default, deserialize_with = "read::or_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Other tasks that the message speaks of.
    #[serde(
        default,
        deserialize_with = "read::or_default",
        skip_serializing_if = "Vec::is_empty",
        alias = "reference_task_ids"
    )]
    pub reference_task_ids: Vec<TaskId>,
}
read::object!(Message);

impl Message {
    /// A message with the members that every message has.
    pub fn new(message_id: MessageId, role: Role, parts: Vec<Part>) -> Self {
        Self {
            message_id,
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// The text parts joined by one space, without white space at the ends.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        texts.join(" ").trim().to_owned()
    }
}

/// Who a message comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// Not said. No message may carry it.
    #[default]
    Unspecified,
    /// The client.
    User,
    /// The agent.
    Agent,
}

impl Role {
    const WORDS: [(&'static str, Self); 3] =
        [("ROLE_UNSPECIFIED", Self::Unspecified), ("ROLE_USER", Self::User), ("ROLE_AGENT", Self::Agent)];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read::word(deserializer, &Self::WORDS)
    }
}
