//! What a rule looks at, and whether it matches what was heard.

use protocol::{Content, Message, Part, media};
use server::{Job, Start};

use crate::step::Step;

/// What started a turn, as a story names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// A message to an agent that was not waiting for one.
    Message,
    /// A message to a task that waits, for input or for an approval.
    Answer,
    /// An operator approved.
    Approval,
    /// An operator refused.
    Refusal,
    /// Nobody approved in time.
    Expiry,
}

impl On {
    pub(crate) const WORDS: [&str; 5] = ["message", "answer", "approval", "refusal", "expiry"];

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Message, Self::Answer, Self::Approval, Self::Refusal, Self::Expiry];
        Self::WORDS.iter().zip(all).find(|(known, _)| **known == word).map(|(_, on)| on)
    }

    /// The word that a story uses.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

impl From<&Start> for On {
    fn from(start: &Start) -> Self {
        match start {
            Start::Message => Self::Message,
            Start::Answer => Self::Answer,
            Start::Approval { .. } => Self::Approval,
            Start::Refusal { .. } => Self::Refusal,
            Start::Expiry => Self::Expiry,
            // A story never goes on with a turn that was broken off; if its agent did, it would begin it again.
            Start::Restart => Self::Message,
        }
    }
}

/// What the agent has heard when a turn starts: all that a rule can look at.
#[derive(Debug, Clone)]
pub struct Heard<'a> {
    on: On,
    text: String,
    message: &'a Message,
    first: &'a Message,
    in_task: bool,
}

impl<'a> Heard<'a> {
    /// A message that belongs to no task.
    pub fn first(message: &'a Message) -> Self {
        Self { on: On::Message, text: message.text(), message, first: message, in_task: false }
    }

    /// What a job tells.
    pub fn of(job: &'a Job) -> Self {
        let (message, in_task) = (&*job.message, job.task.is_some());
        Self { on: (&job.start).into(), text: message.text(), message, first: job.first_message(), in_task }
    }

    /// What started the turn.
    pub fn on(&self) -> On {
        self.on
    }
}

/// What is matched, and what is then said.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Where it stands in its file.
    pub(crate) line: usize,
    pub(crate) when: When,
    pub(crate) steps: Vec<Step>,
}

impl Rule {
    /// The line of the story file where the rule begins.
    pub fn line(&self) -> usize {
        self.line
    }

    /// What is said, in order. The last step ends the turn.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether the rule answers with a direct message instead of a task.
    pub fn replies(&self) -> bool {
        self.when.no_task
    }

    pub(crate) fn matches(&self, heard: &Heard<'_>) -> bool {
        self.when.matches(heard)
    }
}

/// The conditions of a rule; all of them must hold. An empty list is no condition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct When {
    pub on: Vec<On>,
    pub message_id_prefix: Option<String>,
    pub contains: Vec<String>,
    pub lacks: Vec<String>,
    pub ends_with: Option<String>,
    pub has_media_type: Vec<String>,
    pub lacks_media_type: Vec<String>,
    pub part: Option<PartLike>,
    pub first_message_part: Option<PartLike>,
    /// A direct reply is possible only for a message that belongs to no task.
    pub no_task: bool,
}

/// A part that has this media type, and whose content contains this text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartLike {
    pub media_type: Option<String>,
    pub contains: Option<String>,
}

impl When {
    fn matches(&self, heard: &Heard<'_>) -> bool {
        let Heard { on, text, message, first, in_task } = heard;
        let has = |wanted: &str| message.parts.iter().any(|part| media::is(part.media_type(), wanted));
        let ends = |end: &String| {
            message.parts.iter().filter_map(Part::as_text).any(|text| text.trim_end().ends_with(end.as_str()))
        };
        (self.on.is_empty() || self.on.contains(on))
            && !(self.no_task && *in_task)
            && message.message_id.as_str().starts_with(self.prefix())
            && self.contains.iter().all(|wanted| text.contains(wanted))
            && !self.lacks.iter().any(|unwanted| text.contains(unwanted))
            && self.ends_with.as_ref().is_none_or(ends)
            && self.has_media_type.iter().all(|wanted| has(wanted))
            && !self.lacks_media_type.iter().any(|unwanted| has(unwanted))
            && self.part.as_ref().is_none_or(|like| message.parts.iter().any(|part| like.matches(part)))
            && self.first_message_part.as_ref().is_none_or(|like| first.parts.iter().any(|part| like.matches(part)))
    }

    fn prefix(&self) -> &str {
        self.message_id_prefix.as_deref().unwrap_or_default()
    }

    /// The longer the prefix of the message id, the earlier the rule is tried.
    pub(crate) fn prefix_length(&self) -> usize {
        self.prefix().len()
    }

    /// Whether this rule, standing first, takes everything that `later` could match. Says yes only when it is sure.
    pub(crate) fn covers(&self, later: &Self) -> bool {
        let within = |own: &[String], others: &[String]| own.iter().all(|one| others.contains(one));
        (self.on.is_empty() || !later.on.is_empty() && later.on.iter().all(|on| self.on.contains(on)))
            && (!self.no_task || later.no_task)
            && later.prefix().starts_with(self.prefix())
            && self.contains.iter().all(|own| later.contains.iter().any(|text| text.contains(own)))
            && self.lacks.iter().all(|own| later.lacks.iter().any(|text| own.contains(text)))
            && (self.ends_with.is_none() || self.ends_with == later.ends_with)
            && within(&self.has_media_type, &later.has_media_type)
            && within(&self.lacks_media_type, &later.lacks_media_type)
            && (self.part.is_none() || self.part == later.part)
            && (self.first_message_part.is_none() || self.first_message_part == later.first_message_part)
    }

    /// Whether two of the conditions exclude each other.
    pub(crate) fn contradicts_itself(&self) -> bool {
        self.lacks.iter().any(|unwanted| self.contains.iter().any(|wanted| wanted.contains(unwanted)))
            || self.lacks_media_type.iter().any(|unwanted| self.has_media_type.contains(unwanted))
    }
}

impl PartLike {
    fn matches(&self, part: &Part) -> bool {
        self.media_type.as_ref().is_none_or(|wanted| media::is(part.media_type(), wanted))
            && self.contains.as_ref().is_none_or(|text| contains(content(part), text.as_bytes()))
    }
}

/// What a part holds. The content behind a URL is not here.
fn content(part: &Part) -> &[u8] {
    match &part.content {
        Content::Text(text) => text.as_bytes(),
        Content::Raw(bytes) => bytes,
        Content::Data(json) => json.text().as_bytes(),
        Content::Url(_) => &[],
    }
}

/// `wanted` is not empty.
fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
