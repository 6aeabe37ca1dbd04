//! Meeting agents: their cards say who has which skill and how they are called.

use std::sync::{Arc, Mutex};

use client::{Binding, Connection, Fetched, NoInterface, choose};
use protocol::card::AgentInterface;
use protocol::{AgentCard, Timestamps};

use crate::deliver::patiently;
use crate::{Failure, Planner};

/// What the planner speaks in a job: the bindings whose URL has an origin, at which approvals are given.
const SPOKEN: [Binding; 2] = [Binding::JsonRpc, Binding::HttpJson];

/// An agent that the planner has met.
#[derive(Debug)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its card, as it was when they met.
    pub card: AgentCard,
    /// How it is called.
    pub connection: Connection,
    /// The URL that led to its card.
    pub(crate) url: String,
    /// Its card, as it was read last.
    pub(crate) seen: Mutex<Arc<Fetched>>,
    /// Whether it is sent a token.
    known_by_token: bool,
}

impl Agent {
    /// What the planner does to follow a task there, and the word for how it goes.
    pub(crate) fn is_followed_by(&self) -> (&'static str, &'static str) {
        if self.streams() { ("subscribes", "stream") } else { ("polls", "polling") }
    }

    /// Whether its card says that it posts to webhooks.
    pub(crate) fn posts(&self) -> bool {
        self.card.capabilities.push_notifications == Some(true)
    }

    /// Whether its card says that it can stream.
    pub(crate) fn streams(&self) -> bool {
        self.card.capabilities.streaming == Some(true)
    }
}

/// The interface of a card that the planner calls (specification 8.3.2).
pub(crate) fn interface_of(card: &AgentCard) -> Result<(&AgentInterface, Binding), NoInterface> {
    choose(card, &SPOKEN)
}

impl Planner {
    /// Reads an agent's card and logs what it can do. The token is sent only when the card asks for a credential. With
    /// trusted keys the card must be signed by one of them.
    pub async fn meet(&mut self, url: &str, token: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
        let fetched = patiently(|| self.cards.card("read the agent card", url)).await;
        let fetched = fetched.map_err(|cause| self.failure(url, cause))?;
        let card = fetched.card.clone();
        self.vouched(&card.name, &fetched).await?;
        let (interface, binding) = interface_of(&card)?;
        let skills: Vec<_> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
        self.say(format!("card {}: skills {}; {} at {}", card.name, skills.join(", "), binding.word(), interface.url));
        let token = if card.security_requirements.is_empty() { None } else { token(&card.name) };
        let known_by_token = token.is_some();
        // A token is given to a name, and a card may say any name.
        if known_by_token && self.agents.iter().any(|met| met.known_by_token && met.name == card.name) {
            return Err(Failure::Namesake { agent: card.name });
        }
        let (http, calls) = (self.http.clone(), self.calls.clone());
        let connection = Connection::sharing(http, &interface.url, binding, token, calls);
        let timestamps = Timestamps::offered(&card).map(Timestamps::uri);
        let connection = connection.of_tenant(interface.tenant.clone()).activating(timestamps);
        let (name, url, seen) = (card.name.clone(), url.to_owned(), Mutex::new(fetched));
        self.agents.push(Agent { name, card, connection, url, seen, known_by_token });
        Ok(())
    }

    /// The agent with a skill: the one met last, when several have it.
    pub(crate) fn with_skill(&self, skill: &str) -> Result<&Agent, Failure> {
        let has = |agent: &&Agent| agent.card.skills.iter().any(|known| known.id == skill);
        self.agents.iter().rev().find(has).ok_or_else(|| {
            let there = self.agents.iter().flat_map(|agent| &agent.card.skills);
            let there: Vec<_> = there.map(|known| known.id.as_str()).collect();
            Failure::NoSkill { skill: skill.to_owned(), there: there.join(", ") }
        })
    }
}
