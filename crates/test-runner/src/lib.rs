//! The kit's test-runner: checks out a commit, runs its test suite and streams the log. It makes a task of every
//! message.
//!
//! [`TestRunner`] is the agent; a server runs it. The card stands here and not in a story: it is who the agent is, and
//! stays the same when the agent recites another story or stops reciting.

#[cfg(feature = "real")]
pub mod real;

use std::sync::Arc;

use protocol::card::{AgentCapabilities, AgentProvider, AgentSkill};
use protocol::{AgentCard, media};
use script::Script;
use server::{Agent, Job, Say, Turn};

/// Its name, on the card and in stories.
pub const NAME: &str = "test-runner";
/// The port it listens on by default.
pub const PORT: u16 = 41241;

/// The agent.
#[derive(Debug)]
pub struct TestRunner {
    work: Work,
}

/// Where its answers come from. An agent that works for real never gives a canned one, so it is one or the other.
#[derive(Debug)]
enum Work {
    /// A script, told word for word.
    Recital(Script),
    /// Real suites.
    #[cfg(feature = "real")]
    Real(real::Runner),
}

impl TestRunner {
    /// A test-runner that recites.
    pub fn reciting(script: Script) -> Self {
        Self { work: Work::Recital(script) }
    }

    /// A test-runner that runs real suites.
    #[cfg(feature = "real")]
    pub fn working(runner: real::Runner) -> Self {
        Self { work: Work::Real(runner) }
    }

    /// What to tell whoever starts it.
    pub fn notice(&self) -> String {
        match &self.work {
            Work::Recital(script) => format!("{NAME} recites the story {}; it runs no real tests", script.story()),
            #[cfg(feature = "real")]
            Work::Real(runner) => format!("{NAME} {}", runner.notice()),
        }
    }
}

impl Agent for TestRunner {
    fn card(&self) -> AgentCard {
        card()
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        Box::pin(async move {
            match &self.work {
                Work::Recital(script) => script.tell(&job, &say).await,
                #[cfg(feature = "real")]
                Work::Real(runner) => runner.turn(&job, &say).await,
            }
        })
    }
}

/// Its card, without the interfaces, which the server knows.
pub fn card() -> AgentCard {
    AgentCard {
        name: NAME.into(),
        description: "Checks out a commit, runs its test suite in a clean container, and streams the log.".into(),
        supported_interfaces: Vec::new(),
        provider: Some(AgentProvider { url: "https://ci.example.com".into(), organization: "Platform Team".into() }),
        version: "2.3.0".into(),
        documentation_url: None,
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            ..AgentCapabilities::default()
        },
        security_schemes: Default::default(),
        security_requirements: Vec::new(),
        default_input_modes: vec![media::TEXT.into(), media::JSON.into()],
        default_output_modes: vec![media::TEXT.into(), media::JSON.into()],
        skills: vec![AgentSkill {
            id: "run-tests".into(),
            name: "Run tests".into(),
            description: "Run the test suite of a repository at one commit and report each failure with its log."
                .into(),
            tags: vec!["ci".into(), "tests".into()],
            examples: vec!["Run the unit tests for payments-api at commit 9f3c2e1".into()],
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }],
        signatures: Vec::new(),
        icon_url: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w13_the_card_is_the_kit_s() {
        let expected = concat!(
            r#"{"name":"test-runner","#,
            r#""description":"Checks out a commit, runs its test suite in a clean container, and streams the log.","#,
            r#""supportedInterfaces":[],"#,
            r#""provider":{"url":"https://ci.example.com","organization":"Platform Team"},"version":"2.3.0","#,
            r#""capabilities":{"streaming":true,"pushNotifications":true},"#,
            r#""defaultInputModes":["text/plain","application/json"],"#,
            r#""defaultOutputModes":["text/plain","application/json"],"#,
            r#""skills":[{"id":"run-tests","name":"Run tests","#,
            r#""description":"Run the test suite of a repository at one commit and report each failure with its log.","#,
            r#""tags":["ci","tests"],"examples":["Run the unit tests for payments-api at commit 9f3c2e1"]}]}"#,
        );
        assert_eq!(serde_json::to_string(&card()).unwrap(), expected);
    }

    #[test]
    fn it_says_that_it_recites() {
        let agent = TestRunner::reciting(Script::open(NAME, "payments-api").unwrap());
        assert_eq!(agent.notice(), "test-runner recites the story payments-api; it runs no real tests");
    }
}
