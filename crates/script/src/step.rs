//! What is said, and how a step is said to a live task.

use std::time::Duration;

use protocol::{Content, Part, TaskId};
use server::{Chunk, Job, Over, Say, Words};

/// One step of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A direct reply or a status, with its words.
    Words(Verb, Words),
    /// A piece of an artifact.
    Artifact(Chunk),
    /// Silence.
    Sleep(Duration),
}

/// What is done by saying words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Answers with a direct message.
    Reply,
    /// The task waits for its turn.
    Queued,
    /// The task is being worked on.
    Working,
    /// The client must answer.
    Ask,
    /// An operator must approve.
    NeedApproval,
    /// The task ended well.
    Done,
    /// The task ended with an error.
    Failed,
    /// The agent will not do it.
    Rejected,
    /// The task was given up.
    Canceled,
}

impl Verb {
    pub(crate) const WORDS: [&str; 9] =
        ["reply", "queued", "working", "ask", "need_approval", "done", "failed", "rejected", "canceled"];

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [
            Self::Reply,
            Self::Queued,
            Self::Working,
            Self::Ask,
            Self::NeedApproval,
            Self::Done,
            Self::Failed,
            Self::Rejected,
            Self::Canceled,
        ];
        Self::WORDS.iter().zip(all).find(|(known, _)| **known == word).map(|(_, verb)| verb)
    }

    /// The word that a story uses.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Whether nothing can be said after it in this turn.
    pub fn ends_turn(self) -> bool {
        !matches!(self, Self::Queued | Self::Working)
    }

    /// Whether it ends the turn and leaves the task open, so that another turn will follow.
    pub fn waits(self) -> bool {
        matches!(self, Self::Ask | Self::NeedApproval)
    }
}

pub(crate) const PLACEHOLDERS: [&str; 2] = ["{task_id}", "{approve_url}"];

impl Step {
    /// Says the step.
    pub(crate) async fn say(&self, job: &Job, say: &Say) -> Result<(), Over> {
        let (verb, words) = match self {
            Self::Sleep(time) => {
                pause(*time, job).await;
                return Ok(());
            }
            Self::Artifact(chunk) => return say.artifact(chunk.clone()).await,
            Self::Words(verb, words) => (verb, filled(words, job, say).await?),
        };
        match verb {
            Verb::Reply => say.reply(words).await,
            Verb::Queued => say.queued(words).await,
            Verb::Working => say.working(words).await,
            Verb::Ask => say.ask(words).await,
            Verb::NeedApproval => say.need_approval(words).await,
            Verb::Done => say.done(words).await,
            Verb::Failed => say.failed(words).await,
            Verb::Rejected => say.rejected(words).await,
            Verb::Canceled => say.canceled(words).await,
        }
    }
}

/// Waits, but not after the work was told to stop.
async fn pause(time: Duration, job: &Job) {
    tokio::select! {
        () = job.stop.cancelled() => {}
        () = tokio::time::sleep(time) => {}
    }
}

/// Whether a text names the task it is said to.
pub(crate) fn has_placeholder(parts: &[Part]) -> bool {
    let mut texts = parts.iter().filter_map(Part::as_text);
    texts.any(|text| PLACEHOLDERS.iter().any(|placeholder| text.contains(placeholder)))
}

/// The words with what they say about the task. Only words that name it cost anything.
async fn filled(words: &Words, job: &Job, say: &Say) -> Result<Words, Over> {
    match &words.0 {
        Some(parts) if has_placeholder(parts) => {
            let task_id = say.task_id().await?;
            Ok(Words(Some(parts.iter().map(|part| fill(part, &task_id, &job.base_url)).collect())))
        }
        _ => Ok(words.clone()),
    }
}

fn fill(part: &Part, task_id: &TaskId, base_url: &str) -> Part {
    let Some(text) = part.as_text() else { return part.clone() };
    let text = text.replace("{approve_url}", &format!("{base_url}/approve/{{task_id}}"));
    let text = text.replace("{task_id}", task_id.as_str());
    Part { content: Content::Text(text.into()), ..part.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_name_the_task_and_where_it_is_approved() {
        let part = Part::text("{task_id}: open {approve_url}");
        let filled = fill(&part, &TaskId::new("t-1").unwrap(), "http://localhost:41243");
        assert_eq!(filled.as_text(), Some("t-1: open http://localhost:41243/approve/t-1"));
    }
}
