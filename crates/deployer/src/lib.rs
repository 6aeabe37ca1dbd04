//! The kit's deployer: rolls a build out to staging after an operator approved it. It makes a task of every message,
//! wants a bearer token, signs its card, and shows those who have the token a longer one.
//!
//! [`Deployer`] is the agent; a server runs it. The cards stand here and not in a story: they are who the agent is, and
//! stay the same when the agent recites another story or stops reciting.

#[cfg(feature = "real")]
pub mod real;

use std::sync::Arc;
#[cfg(feature = "real")]
use std::time::Duration;

#[cfg(feature = "real")]
use protocol::Task;
use protocol::card::{
    AgentCapabilities, AgentProvider, AgentSkill, HttpAuthSecurityScheme, SecurityRequirement, SecurityScheme,
    StringList,
};
use protocol::{AgentCard, media};
use script::Script;
use server::{Agent, Job, Say, Turn};

/// Its name, on the cards and in stories.
pub const NAME: &str = "deployer";
/// The port it listens on by default.
pub const PORT: u16 = 41243;
/// The bearer token that callers show by default. It is public, for demonstrations only.
pub const TOKEN: &str = "dpl_test_7c1e4b";
/// The HS256 key that signs the card by default. It is public, for demonstrations only.
pub const SIGNING_KEY: &str = "manual-demo-signing-key-not-for-production";
/// The name of that key in signatures.
pub const KEY_ID: &str = "deployer-key-1";

/// The agent.
#[derive(Debug)]
pub struct Deployer {
    work: Work,
}

/// Where its answers come from. An agent that works for real never gives a canned one, so it is one or the other.
#[derive(Debug)]
enum Work {
    /// A script, told word for word.
    Recital(Script),
    /// Real roll-outs.
    #[cfg(feature = "real")]
    Real(real::Rollouts),
}

impl Deployer {
    /// A deployer that recites.
    pub fn reciting(script: Script) -> Self {
        Self { work: Work::Recital(script) }
    }

    /// A deployer that rolls out real builds.
    #[cfg(feature = "real")]
    pub fn working(rollouts: real::Rollouts) -> Self {
        Self { work: Work::Real(rollouts) }
    }

    /// Whether it does what it says, and so needs operators with names.
    pub fn works(&self) -> bool {
        !matches!(self.work, Work::Recital(_))
    }

    /// What to tell whoever starts it.
    pub fn notice(&self) -> String {
        match &self.work {
            Work::Recital(script) => format!("{NAME} recites the story {}; it deploys nothing", script.story()),
            #[cfg(feature = "real")]
            Work::Real(rollouts) => format!("{NAME} {}", rollouts.notice()),
        }
    }
}

impl Agent for Deployer {
    fn card(&self) -> AgentCard {
        card()
    }

    fn extended_card(&self) -> Option<AgentCard> {
        Some(extended_card())
    }

    fn asks_approval(&self) -> bool {
        true
    }

    /// A working one goes on with a roll-out that was broken off; how far it had come stands in the environment's folder.
    #[cfg(feature = "real")]
    fn resumes(&self, _task: &Task) -> bool {
        matches!(self.work, Work::Real(_))
    }

    #[cfg(feature = "real")]
    fn may_decide(&self, task: &Task, operator: &str) -> bool {
        match &self.work {
            Work::Recital(_) => true,
            Work::Real(rollouts) => rollouts.may_decide(task, operator),
        }
    }

    #[cfg(feature = "real")]
    fn turned_away<'a>(&'a self, task: &'a Task, operator: &'a str) -> server::Noted<'a> {
        Box::pin(async move {
            if let Work::Real(rollouts) = &self.work {
                rollouts.turned_away(task, operator).await;
            }
        })
    }

    #[cfg(feature = "real")]
    fn approval_limit(&self, task: &Task) -> Option<Duration> {
        match &self.work {
            Work::Recital(_) => None,
            Work::Real(rollouts) => rollouts.approval_limit(task),
        }
    }

    #[cfg(feature = "real")]
    fn about(&self, task: &Task) -> Vec<(String, String)> {
        match &self.work {
            Work::Recital(_) => Vec::new(),
            Work::Real(rollouts) => rollouts.about(task),
        }
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        Box::pin(async move {
            match &self.work {
                Work::Recital(script) => script.tell(&job, &say).await,
                #[cfg(feature = "real")]
                Work::Real(rollouts) => rollouts.turn(&job, &say).await,
            }
        })
    }
}

/// The key that signs the card by default.
pub fn signing_key() -> signature::Key {
    signature::Key::hs256(KEY_ID, SIGNING_KEY.as_bytes())
}

/// Its card, without the interfaces and the signature, which the server adds.
pub fn card() -> AgentCard {
    const BEARER: &str = "bearer";
    AgentCard {
        name: NAME.into(),
        description: "Deploys a tagged build to staging after an operator approves it.".into(),
        supported_interfaces: Vec::new(),
        provider: Some(AgentProvider {
            url: "https://deploy.example.com".into(),
            organization: "Platform Team".into(),
        }),
        version: "1.4.1".into(),
        documentation_url: None,
        capabilities: AgentCapabilities {
            streaming: Some(true),
            extended_agent_card: Some(true),
            ..AgentCapabilities::default()
        },
        security_schemes: [(
            BEARER.to_owned(),
            SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
                description: Some("A token issued by the platform team.".into()),
                scheme: "Bearer".into(),
                bearer_format: None,
            }),
        )]
        .into(),
        security_requirements: vec![SecurityRequirement {
            schemes: [(BEARER.to_owned(), StringList::default())].into(),
        }],
        default_input_modes: vec![media::TEXT.into()],
        default_output_modes: vec![media::TEXT.into(), media::JSON.into()],
        skills: vec![AgentSkill {
            id: "deploy".into(),
            name: "Deploy a build".into(),
            description: "Deploy one tagged build to staging, with operator approval.".into(),
            tags: vec!["deploy".into(), "staging".into()],
            examples: vec!["Deploy build 2026.10.06-1 to staging".into()],
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }],
        signatures: Vec::new(),
        icon_url: None,
    }
}

/// The card that callers with a token see: one skill more, and no signature.
pub fn extended_card() -> AgentCard {
    let mut card = card();
    card.skills.push(AgentSkill {
        id: "rollback".into(),
        name: "Roll back a deploy".into(),
        description: "Return staging to the previous build. Shown only to authenticated callers.".into(),
        tags: vec!["deploy".into(), "rollback".into()],
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    });
    card
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = concat!(
        r#"{"name":"deployer","description":"Deploys a tagged build to staging after an operator approves it.","#,
        r#""supportedInterfaces":[],"#,
        r#""provider":{"url":"https://deploy.example.com","organization":"Platform Team"},"version":"1.4.1","#,
        r#""capabilities":{"streaming":true,"extendedAgentCard":true},"#,
        r#""securitySchemes":{"bearer":{"httpAuthSecurityScheme":"#,
        r#"{"description":"A token issued by the platform team.","scheme":"Bearer"}}},"#,
        r#""securityRequirements":[{"schemes":{"bearer":{"list":[]}}}],"#,
        r#""defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain","application/json"],"#,
        r#""skills":[{"id":"deploy","name":"Deploy a build","#,
        r#""description":"Deploy one tagged build to staging, with operator approval.","#,
        r#""tags":["deploy","staging"],"examples":["Deploy build 2026.10.06-1 to staging"]}"#,
    );

    #[test]
    fn w13_the_card_is_the_kit_s() {
        assert_eq!(serde_json::to_string(&card()).unwrap(), format!("{CARD}]}}"));
    }

    #[test]
    fn w13_the_extended_card_has_the_rollback_too() {
        let rollback = concat!(
            r#"{"id":"rollback","name":"Roll back a deploy","#,
            r#""description":"Return staging to the previous build. Shown only to authenticated callers.","#,
            r#""tags":["deploy","rollback"]}"#,
        );
        assert_eq!(serde_json::to_string(&extended_card()).unwrap(), format!("{CARD},{rollback}]}}"));
    }

    #[test]
    fn it_says_that_it_recites() {
        let agent = Deployer::reciting(Script::open(NAME, "payments-api").unwrap());
        assert_eq!(agent.notice(), "deployer recites the story payments-api; it deploys nothing");
    }
}
