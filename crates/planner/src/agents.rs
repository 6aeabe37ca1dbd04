//! Meeting agents: their cards say who has which skill and how they are called.

use client::{Binding, Connection, choose};
use protocol::{AgentCard, Timestamps};

use crate::{Failure, Planner};

/// What the planner speaks in a job: the bindings whose URL has an origin, at which approvals are given.
const SPOKEN: [Binding; 2] = [Binding::JsonRpc, Binding::HttpJson];

/// An agent that the planner has met.
#[derive(Debug)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its card.
    pub card: AgentCard,
    /// How it is called.
    pub connection: Connection,
}

impl Planner {
    /// Reads an agent's card and logs what it can do. The token is sent only when the card asks for a credential.
    pub async fn meet(&mut self, url: &str, token: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
        let fetched = self.cards.card("read the agent card", url).await;
        let card = fetched.map_err(|cause| self.failure(url, cause))?.card.clone();
        let (interface, binding) = choose(&card, &SPOKEN)?;
        let skills: Vec<_> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
        self.say(format!("card {}: skills {}; {} at {}", card.name, skills.join(", "), binding.word(), interface.url));
        let token = if card.security_requirements.is_empty() { None } else { token(&card.name) };
        let (http, calls) = (self.http.clone(), self.calls.clone());
        let connection = Connection::sharing(http, &interface.url, binding, token, calls);
        let timestamps = Timestamps::offered(&card).map(Timestamps::uri);
        let connection = connection.of_tenant(interface.tenant.clone()).activating(timestamps);
        self.agents.push(Agent { name: card.name.clone(), card, connection });
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
