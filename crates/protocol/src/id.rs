//! Identifiers. Each is a shared string of its own type, so that a task id never stands where a context id should.
//! Foreign ids need not be UUIDs (specification 4.1.1 says "e.g. UUID"); the one thing refused is an empty one.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::read::Text;

/// An identifier was empty. In ProtoJSON an empty string is the same as an absent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id must not be empty")]
pub struct EmptyId;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a text as it is. The only error is an empty text.
            pub fn new(text: impl Into<Arc<str>>) -> Result<Self, EmptyId> {
                let text = text.into();
                if text.is_empty() { Err(EmptyId) } else { Ok(Self(text)) }
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = EmptyId;

            fn try_from(text: &str) -> Result<Self, EmptyId> {
                Self::new(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(&*Text::deserialize(deserializer)?.0).map_err(de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// Identifies a task; made by the server (specification 3.4.2).
    TaskId;
    /// Identifies a context, the thread that messages and tasks belong to; made by the server or proposed by the client.
    ContextId;
    /// Identifies a message; made by whoever wrote the message.
    MessageId;
    /// Identifies an artifact within one task.
    ArtifactId;
    /// Identifies a push notification config within one task.
    ConfigId;
}
