//! The extension of this workspace (specification 4.6): timestamps of messages and artifacts, from the public catalogue in
//! the repository a2aproject/a2a-samples.
//!
//! A client that activates it finds in the metadata of each message and artifact of the agent's when that was made. Its
//! text and its samples disagree on its URI: the text has one path element more. Each URI is an extension of its own
//! then, with a field of its own; an agent declares both, and a client takes what is offered.

use crate::card::{AgentCard, AgentExtension};
use crate::json::{Json, Object};
use crate::message::{Message, Role};
use crate::task::{Artifact, Task};
use crate::time::Timestamp;

/// The timestamp extension, under one of its two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// As its text spells it.
    Specified,
    /// As its samples spell it.
    Sampled,
}

impl Timestamps {
    /// Both, the better one first.
    pub const ALL: [Self; 2] = [Self::Specified, Self::Sampled];

    /// The URI that a card declares and a request names.
    pub fn uri(self) -> &'static str {
        match self {
            Self::Specified => "https://github.com/a2aproject/a2a-samples/samples/extensions/timestamp/v1",
            Self::Sampled => "https://github.com/a2aproject/a2a-samples/extensions/timestamp/v1",
        }
    }

    /// The member of the metadata.
    pub fn field(self) -> &'static str {
        match self {
            Self::Specified => "github.com/a2aproject/a2a-samples/samples/extensions/timestamp/v1/timestamp",
            Self::Sampled => "github.com/a2aproject/a2a-samples/extensions/timestamp/v1/timestamp",
        }
    }

    /// The declaration on a card.
    pub fn declared(self) -> AgentExtension {
        AgentExtension {
            uri: self.uri().to_owned(),
            description: Some("Says when each message and artifact was made.".to_owned()),
            required: false,
            params: None,
        }
    }

    /// The better one of those that a card declares.
    pub fn offered(card: &AgentCard) -> Option<Self> {
        let declared = |name: &Self| card.capabilities.extensions.iter().any(|extension| extension.uri == name.uri());
        Self::ALL.into_iter().find(declared)
    }

    /// The name under which the last thing that the agent said in a task has a timestamp, if it has.
    pub fn of_task(task: &Task) -> Option<Self> {
        let said = task.status.message.iter().chain(task.history.iter().rev());
        let last = said.into_iter().find(|message| message.role == Role::Agent)?;
        Self::ALL.into_iter().find(|name| last.extensions.iter().any(|uri| uri == name.uri()))
    }

    /// Says in a message when it was made, unless it says so already.
    pub fn stamp_message(self, message: &mut Message, made: Timestamp) {
        self.stamp(&mut message.metadata, &mut message.extensions, made);
    }

    /// Says in an artifact when it was made, unless it says so already.
    pub fn stamp_artifact(self, artifact: &mut Artifact, made: Timestamp) {
        self.stamp(&mut artifact.metadata, &mut artifact.extensions, made);
    }

    fn stamp(self, metadata: &mut Option<Object>, extensions: &mut Vec<String>, made: Timestamp) {
        let there = metadata.clone().map_or_else(|| Object::parse("{}"), Ok);
        let stamped = there.and_then(|there| match there.member(self.field()) {
            Some(_) => Ok(None),
            None => there.with(self.field(), &Json::of(&made)?).map(Some),
        });
        // What does not fit in stays as it is.
        let Ok(Some(stamped)) = stamped else { return };
        *metadata = Some(stamped);
        if !extensions.iter().any(|uri| uri == self.uri()) {
            extensions.push(self.uri().to_owned());
        }
    }

    /// When the thing with this metadata was made, if it says so under either name.
    pub fn made(metadata: Option<&Object>) -> Option<Timestamp> {
        Self::ALL.into_iter().find_map(|name| metadata?.member(name.field())?.read().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MessageId;

    fn stamped(metadata: Option<&str>) -> Message {
        let mut message = Message::new(MessageId::new("m").unwrap(), Role::Agent, Vec::new());
        message.metadata = metadata.map(|text| Object::parse(text).unwrap());
        Timestamps::Specified.stamp_message(&mut message, Timestamp::from_millis(1_500));
        message
    }

    #[test]
    fn a_timestamp_joins_the_metadata_that_is_there_and_replaces_none() {
        let field = Timestamps::Specified.field();
        let expected = format!(r#""{field}":"1970-01-01T00:00:01.500Z""#);
        for (metadata, text) in [
            (None, format!("{{{expected}}}")),
            (Some("{}"), format!("{{{expected}}}")),
            (Some(r#"{"a": {"b": 1.0}}"#), format!(r#"{{"a":{{"b":1.0}},{expected}}}"#)),
        ] {
            let message = stamped(metadata);
            assert_eq!(message.metadata.as_ref().unwrap().text(), text);
            assert_eq!(message.extensions, [Timestamps::Specified.uri()]);
            assert_eq!(Timestamps::made(message.metadata.as_ref()), Some(Timestamp::from_millis(1_500)));
        }
        let own = format!(r#"{{"{field}": "2026-10-06T09:00:00Z"}}"#);
        let message = stamped(Some(&own));
        assert_eq!(message.metadata, Some(Object::parse(&own).unwrap()));
        assert_eq!(message.extensions, Vec::<String>::new(), "whoever stamps says so itself");
    }

    #[test]
    fn a_timestamp_is_read_under_either_name_and_only_when_it_is_one() {
        let read = |name: Timestamps, value: &str| {
            Timestamps::made(Some(&Object::parse(&format!(r#"{{"{}": {value}}}"#, name.field())).unwrap()))
        };
        let moment = Timestamp::from_millis(1_500);
        assert_eq!(read(Timestamps::Sampled, r#""1970-01-01T00:00:01.500000+00:00""#), Some(moment));
        assert_eq!(read(Timestamps::Specified, r#""1970-01-01T00:00:01.500Z""#), Some(moment));
        assert_eq!(read(Timestamps::Specified, "7"), None);
        assert_eq!(read(Timestamps::Specified, r#""soon""#), None);
        assert_eq!(Timestamps::made(None), None);
    }

    #[test]
    fn the_better_name_is_taken_of_those_that_are_offered() {
        let offering = |names: &[Timestamps]| {
            let card = r#"{"name": "a", "description": "", "version": "1"}"#;
            let mut card: AgentCard = serde_json::from_str(card).unwrap();
            card.capabilities.extensions = names.iter().map(|name| name.declared()).collect();
            Timestamps::offered(&card)
        };
        assert_eq!(offering(&[]), None);
        assert_eq!(offering(&[Timestamps::Sampled]), Some(Timestamps::Sampled));
        assert_eq!(offering(&[Timestamps::Sampled, Timestamps::Specified]), Some(Timestamps::Specified));
    }
}
