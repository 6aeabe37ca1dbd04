//! The kit's code-reviewer: compares a diff with its base branch and returns findings. It answers a question with a
//! message, and makes a task of everything else.
//!
//! [`CodeReviewer`] is the agent; a server runs it. The card stands here and not in a story: it is who the agent is,
//! and stays the same when the agent recites another story or stops reciting.

#[cfg(feature = "real")]
pub mod real;

use std::sync::Arc;

use protocol::card::{AgentCapabilities, AgentProvider, AgentSkill};
use protocol::{AgentCard, Message, media};
use script::Script;
use server::{Agent, Job, Say, Turn};

/// Its name, on the card and in stories.
pub const NAME: &str = "code-reviewer";
/// The port it listens on by default.
pub const PORT: u16 = 41242;

/// The agent.
#[derive(Debug)]
pub struct CodeReviewer {
    work: Work,
}

/// Where its answers come from. An agent that works for real never gives a canned one, so it is one or the other.
#[derive(Debug)]
enum Work {
    /// A script, told word for word.
    Recital(Script),
    /// Real diffs.
    #[cfg(feature = "real")]
    Real(real::Reviewer),
}

impl CodeReviewer {
    /// A code-reviewer that recites.
    pub fn reciting(script: Script) -> Self {
        Self { work: Work::Recital(script) }
    }

    /// A code-reviewer that reads real diffs.
    #[cfg(feature = "real")]
    pub fn working(reviewer: real::Reviewer) -> Self {
        Self { work: Work::Real(reviewer) }
    }

    /// What to tell whoever starts it.
    pub fn notice(&self) -> String {
        match &self.work {
            Work::Recital(script) => format!("{NAME} recites the story {}; it reads no real diffs", script.story()),
            #[cfg(feature = "real")]
            Work::Real(reviewer) => format!("{NAME} {}", reviewer.notice()),
        }
    }
}

impl Agent for CodeReviewer {
    fn card(&self) -> AgentCard {
        match &self.work {
            Work::Recital(_) => card(),
            #[cfg(feature = "real")]
            Work::Real(reviewer) if reviewer.has_sarif() => card_with_sarif(),
            #[cfg(feature = "real")]
            Work::Real(_) => card(),
        }
    }

    fn answers_directly(&self, message: &Message) -> bool {
        match &self.work {
            Work::Recital(script) => script.answers_directly(message),
            #[cfg(feature = "real")]
            Work::Real(reviewer) => reviewer.answers_directly(message),
        }
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        Box::pin(async move {
            match &self.work {
                Work::Recital(script) => script.tell(&job, &say).await,
                #[cfg(feature = "real")]
                Work::Real(reviewer) => reviewer.turn(&job, &say).await,
            }
        })
    }
}

/// Its card, without the interfaces, which the server knows.
pub fn card() -> AgentCard {
    AgentCard {
        name: NAME.into(),
        description: "Reviews a unified diff against a base branch and returns findings with file and line.".into(),
        supported_interfaces: Vec::new(),
        provider: Some(AgentProvider {
            url: "https://review.example.com".into(),
            organization: "Developer Tools".into(),
        }),
        version: "0.9.4".into(),
        documentation_url: None,
        capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
        security_schemes: Default::default(),
        security_requirements: Vec::new(),
        default_input_modes: vec![media::TEXT.into(), media::DIFF.into()],
        default_output_modes: vec![media::TEXT.into(), media::JSON.into()],
        skills: vec![
            AgentSkill {
                id: "review-diff".into(),
                name: "Review a diff".into(),
                description: "Compare a diff with its base branch and report risky changes.".into(),
                tags: vec!["review".into(), "diff".into()],
                examples: vec!["Review this diff of payments-api".into()],
                input_modes: vec![media::DIFF.into(), media::TEXT.into()],
                output_modes: Vec::new(),
                security_requirements: Vec::new(),
            },
            AgentSkill {
                id: "answer-question".into(),
                name: "Answer a review question".into(),
                description: "Answer a short question about what this reviewer checks.".into(),
                tags: vec!["review".into(), "faq".into()],
                examples: Vec::new(),
                input_modes: Vec::new(),
                output_modes: Vec::new(),
                security_requirements: Vec::new(),
            },
        ],
        signatures: Vec::new(),
        icon_url: None,
    }
}

/// Its card when clients that accept SARIF get it: its first skill names the form.
#[cfg(feature = "real")]
fn card_with_sarif() -> AgentCard {
    let mut card = card();
    let modes = [media::TEXT, media::JSON, real::form::SARIF].map(Into::into).to_vec();
    card.skills.iter_mut().take(1).for_each(|skill| skill.output_modes.clone_from(&modes));
    card
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w13_the_card_is_the_kit_s() {
        let expected = concat!(
            r#"{"name":"code-reviewer","#,
            r#""description":"Reviews a unified diff against a base branch and returns findings with file and line.","#,
            r#""supportedInterfaces":[],"#,
            r#""provider":{"url":"https://review.example.com","organization":"Developer Tools"},"version":"0.9.4","#,
            r#""capabilities":{"streaming":true},"defaultInputModes":["text/plain","text/x-diff"],"#,
            r#""defaultOutputModes":["text/plain","application/json"],"#,
            r#""skills":[{"id":"review-diff","name":"Review a diff","#,
            r#""description":"Compare a diff with its base branch and report risky changes.","#,
            r#""tags":["review","diff"],"examples":["Review this diff of payments-api"],"#,
            r#""inputModes":["text/x-diff","text/plain"]},"#,
            r#"{"id":"answer-question","name":"Answer a review question","#,
            r#""description":"Answer a short question about what this reviewer checks.","tags":["review","faq"]}]}"#,
        );
        assert_eq!(serde_json::to_string(&card()).unwrap(), expected);
    }

    #[test]
    fn it_says_that_it_recites() {
        let agent = CodeReviewer::reciting(Script::open(NAME, "payments-api").unwrap());
        assert_eq!(agent.notice(), "code-reviewer recites the story payments-api; it reads no real diffs");
    }
}
