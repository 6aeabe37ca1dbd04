//! What is said, and how a step is said to a live task.

use std::time::Duration;

use protocol::{Content, Part, TaskId};
use server::{Chunk, Fault, Job, Over, Say, Words};

/// One step of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A direct reply or a status, with its words.
    Words(Verb, Words),
    /// A piece of an artifact.
    Artifact(Chunk),
    /// Silence, for a time between the two.
    Sleep {
        /// At least so long.
        least: Duration,
        /// At most so long.
        most: Duration,
    },
    /// Something that no good agent does.
    Flaw(Flaw),
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

/// What an agent can do wrong. A story has it so that clients, servers and readers can see what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The agent's code panics.
    Panic,
    /// The agent's code returns an error.
    Error,
    /// The turn returns and has neither ended the task nor asked for anything.
    ReturnWithoutEnd,
    /// The turn goes on until somebody ends it.
    NeverEnd,
    /// From here on the turn does not heed that it is to stop.
    IgnoreCancel,
}

impl Flaw {
    pub(crate) const WORDS: [&str; 5] = ["panic", "error", "return_without_end", "never_end", "ignore_cancel"];

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Panic, Self::Error, Self::ReturnWithoutEnd, Self::NeverEnd, Self::IgnoreCancel];
        Self::WORDS.iter().zip(all).find(|(known, _)| **known == word).map(|(_, flaw)| flaw)
    }

    /// The word that a story uses.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Whether nothing can be said after it in this turn.
    pub fn ends_turn(self) -> bool {
        self != Self::IgnoreCancel
    }
}

/// The placeholders that only a task can fill.
pub(crate) const OF_TASK: [&str; 2] = ["{task_id}", "{approve_url}"];
/// All placeholders.
pub(crate) const PLACEHOLDERS: [&str; 3] = ["{task_id}", "{approve_url}", "{text}"];

/// How a turn goes that is being told.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    /// It does not heed that it is to stop.
    deaf: bool,
}

/// Whether the turn goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    Return,
}

impl Telling {
    /// Says a step.
    pub async fn say(&mut self, step: &Step, job: &Job, say: &Say) -> Result<Next, Fault> {
        let said = match step {
            Step::Sleep { least, most } => {
                let time = if least == most { *least } else { rand::random_range(*least..=*most) };
                self.pause(tokio::time::sleep(time), job).await;
                Ok(())
            }
            Step::Artifact(chunk) => say.artifact(chunk.clone()).await,
            Step::Words(verb, words) => speak(*verb, words, job, say).await,
            Step::Flaw(Flaw::Panic) => panic!("the script says `panic`"),
            Step::Flaw(Flaw::Error) => return Err("the script says `error`".into()),
            Step::Flaw(Flaw::ReturnWithoutEnd) => return Ok(Next::Return),
            Step::Flaw(Flaw::NeverEnd) => {
                self.pause(std::future::pending(), job).await;
                Err(Over::Stopped)
            }
            Step::Flaw(Flaw::IgnoreCancel) => {
                self.deaf = true;
                Ok(())
            }
        };
        match said {
            Err(Over::Stopped) if self.deaf => Ok(Next::GoOn),
            said => Ok(said.map(|()| Next::GoOn)?),
        }
    }

    /// Waits, but not after the work was told to stop, unless it does not heed that.
    async fn pause(&self, time: impl Future<Output = ()>, job: &Job) {
        if self.deaf {
            return time.await;
        }
        tokio::select! {
            () = job.stop.cancelled() => {}
            () = time => {}
        }
    }
}

/// Says words.
pub(crate) async fn speak(verb: Verb, words: &Words, job: &Job, say: &Say) -> Result<(), Over> {
    let words = filled(words, job, say).await?;
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

/// Whether a text has one of these placeholders.
pub(crate) fn names(parts: &[Part], placeholders: &[&str]) -> bool {
    let mut texts = parts.iter().filter_map(Part::as_text);
    texts.any(|text| placeholders.iter().any(|placeholder| text.contains(placeholder)))
}

/// The words with what they say about the task and the message. Only words that do so cost anything.
async fn filled(words: &Words, job: &Job, say: &Say) -> Result<Words, Over> {
    let Some(parts) = words.0.as_ref().filter(|parts| names(parts, &PLACEHOLDERS)) else { return Ok(words.clone()) };
    let task_id = if names(parts, &OF_TASK) { Some(say.task_id().await?) } else { None };
    let filling = Filling { task_id: task_id.as_ref(), base_url: &job.base_url, text: &job.message.text() };
    Ok(Words(Some(parts.iter().map(|part| filling.fill(part)).collect())))
}

/// What stands where the placeholders are.
struct Filling<'a> {
    task_id: Option<&'a TaskId>,
    base_url: &'a str,
    text: &'a str,
}

impl Filling<'_> {
    fn fill(&self, part: &Part) -> Part {
        let Some(text) = part.as_text() else { return part.clone() };
        let task_id = self.task_id.map(TaskId::as_str).unwrap_or_default();
        // What a client wrote is put in last, so that nothing in it is taken for a placeholder.
        let approve_url = format!("{}/approve/{task_id}", self.base_url);
        let filled =
            text.replace("{approve_url}", &approve_url).replace("{task_id}", task_id).replace("{text}", self.text);
        Part { content: Content::Text(filled.into()), ..part.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_name_the_task_and_where_it_is_approved() {
        let part = Part::text("{task_id}: open {approve_url}");
        let task_id = TaskId::new("t-1").unwrap();
        let filling = Filling { task_id: Some(&task_id), base_url: "http://localhost:41243", text: "" };
        assert_eq!(filling.fill(&part).as_text(), Some("t-1: open http://localhost:41243/approve/t-1"));
    }

    #[test]
    fn what_a_client_wrote_is_no_placeholder() {
        let filling =
            Filling { task_id: None, base_url: "http://localhost:41243", text: "{task_id} {approve_url} {text}" };
        assert_eq!(
            filling.fill(&Part::text("You said: {text}")).as_text(),
            Some("You said: {task_id} {approve_url} {text}")
        );
    }
}
