//! What is looked at before an agent gets work: that its card still says what it said, that a trusted key vouches for it,
//! and that it takes what would be sent and gives what is to be read.

use std::sync::{Arc, PoisonError};

use client::Fetched;
use protocol::{AgentCard, Content, Part, media};
use serde_json::Value;
use signature::Checked;

use crate::agents::{Agent, interface_of};
use crate::deliver::Work;
use crate::{Failure, Planner};

/// How much of a text is shown that was not sent, in characters.
const SHOWN: usize = 80;

impl Planner {
    /// The agent for a piece of work; none when its card says that it cannot take the work, which the log then says. What
    /// the journal has already was looked at when it was sent.
    pub(crate) async fn begin(&self, work: Work<'_>, parts: &[Part]) -> Result<Option<&Agent>, Failure> {
        let agent = self.with_skill(work.skill)?;
        self.say(format!("delegate {} to {}", work.skill, agent.name));
        if self.has_past(work.step) {
            return Ok(Some(agent));
        }
        self.look_again(agent, work.skill).await?;
        let Some(why) = unsuited(agent, work, parts) else {
            if self.webhook.is_some() && !agent.posts() {
                self.say(format!("  {} posts to no webhook, so it is not asked to", agent.name));
            }
            return Ok(Some(agent));
        };
        let parts: Vec<_> = parts.iter().map(in_words).collect();
        self.say(format!("  {} {why}: nothing is sent. It would have been {}", agent.name, parts.join(", ")));
        Ok(None)
    }

    /// Refuses a card for which no trusted key vouches (specification 8.4.3). Without trusted keys any card is taken.
    pub(crate) async fn vouched(&self, agent: &str, fetched: &Fetched) -> Result<(), Failure> {
        let Some(keys) = &self.card_keys else { return Ok(()) };
        let seals = self.http.verify(fetched, Some(keys)).await.map_err(|cause| self.failure(agent, cause))?;
        if seals.iter().any(|seal| seal.checked.result.is_ok()) {
            return Ok(());
        }
        let doubt = |Checked { algorithm, key_id, result, .. }: &Checked| {
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "?".to_owned());
            let doubt = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
            format!("of its signature, {} with the key {}, {doubt}", name(algorithm), name(key_id))
        };
        let doubts: Vec<_> = seals.iter().map(|seal| doubt(&seal.checked)).collect();
        let why = if doubts.is_empty() { "it is not signed".to_owned() } else { doubts.join("; ") };
        Err(Failure::Unvouched { agent: agent.to_owned(), url: fetched.url.clone(), why })
    }

    /// Reads the agent's card again, unless it is still fresh, and compares it with the one that was read before. What
    /// decides where the work goes must be the same; any other change is said once.
    async fn look_again(&self, agent: &Agent, skill: &str) -> Result<(), Failure> {
        let now = match self.cards.card("read the agent card", &agent.url).await {
            Ok(now) => now,
            Err(cause) => {
                self.say(format!("  its card cannot be read again, the job goes on with the one it has: {cause}"));
                return Ok(());
            }
        };
        let before = self.seen(agent, &now);
        if before.json == now.json {
            return Ok(());
        }
        self.vouched(&agent.name, &now).await?;
        if let Some(what) = moved(&agent.card, &now.card, skill) {
            let (agent, made) = (agent.name.clone(), self.book().made.clone());
            return Err(Failure::Changed { agent, what, made });
        }
        let changed = changed(&before.card, &now.card);
        self.say(format!("  its card has changed ({changed}); the job goes on as it began"));
        Ok(())
    }

    /// The card that was seen before, and from now on this one.
    fn seen(&self, agent: &Agent, now: &Arc<Fetched>) -> Arc<Fetched> {
        let mut seen = agent.seen.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut seen, now.clone())
    }
}

/// What of a new card would send work elsewhere than the old one.
fn moved(before: &AgentCard, now: &AgentCard, skill: &str) -> Option<String> {
    if before.name != now.name {
        return Some(format!("its name is {} now", now.name));
    }
    if !now.skills.iter().any(|known| known.id == skill) {
        return Some(format!("it has no skill {skill} any more"));
    }
    match (interface_of(before), interface_of(now)) {
        (Ok((before, _)), Ok((now, _))) if before == now => None,
        (_, Ok((now, binding))) => Some(format!("it is called by {} at {} now", binding.word(), now.url)),
        (_, Err(none)) => Some(none.to_string()),
    }
}

/// The members in which two cards differ.
fn changed(before: &AgentCard, now: &AgentCard) -> String {
    let members = |card: &AgentCard| match serde_json::to_value(card) {
        Ok(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    let (before, now) = (members(before), members(now));
    let mut names: Vec<&str> = before.keys().chain(now.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| before.get(*name) != now.get(*name));
    if names.is_empty() { "in nothing that the planner knows".to_owned() } else { names.join(", ") }
}

/// Why an agent, as its card has it, is not the one for this work.
fn unsuited(agent: &Agent, work: Work<'_>, parts: &[Part]) -> Option<String> {
    let skill = agent.card.skills.iter().find(|known| known.id == work.skill)?;
    let of = |own: &Vec<String>, all: &Vec<String>| if own.is_empty() { all.clone() } else { own.clone() };
    let takes = of(&skill.input_modes, &agent.card.default_input_modes);
    let gives = of(&skill.output_modes, &agent.card.default_output_modes);
    if let Some(part) = parts.iter().find(|part| !fits(part.media_type(), &takes)) {
        return Some(format!("takes {} for {}, and no {}", takes.join(", "), work.skill, part.media_type()));
    }
    let reads = work.reads_data && !fits(media::JSON, &gives);
    reads.then(|| format!("gives {} for {}, and no {} to be read", gives.join(", "), work.skill, media::JSON))
}

/// Whether a media type is one of those that a card names; a card that names none takes any. `text/*` and `*/*` are
/// ranges, and a word alone is that of an older card, such as `text`.
fn fits(media_type: &str, modes: &[String]) -> bool {
    let bare = |text: &str| text.split(';').next().unwrap_or_default().trim().to_owned();
    let media_type = bare(media_type);
    let kind = media_type.split('/').next().unwrap_or_default();
    let fits = |mode: &String| {
        let mode = bare(mode);
        let range = mode.strip_suffix("/*").unwrap_or(&mode);
        media::is(&mode, &media_type) || range == "*" || (!range.contains('/') && range.eq_ignore_ascii_case(kind))
    };
    modes.is_empty() || modes.iter().any(fits)
}

/// A part that was not sent.
fn in_words(part: &Part) -> String {
    let media_type = part.media_type();
    let start = |text: &str| text.chars().take(SHOWN).collect::<String>();
    match &part.content {
        Content::Text(text) => format!("{media_type} {:?}", start(text)),
        Content::Data(json) => format!("{media_type} {}", start(json.text())),
        Content::Url(url) => format!("{media_type} at {url}"),
        Content::Raw(bytes) => {
            format!("{media_type} {} ({} bytes)", part.filename.as_deref().unwrap_or("file"), bytes.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_media_type_fits_what_a_card_names_whatever_its_parameters_and_case() {
        let modes = |modes: &[&str]| modes.iter().map(|mode| (*mode).to_owned()).collect::<Vec<_>>();
        for takes in [&["text/plain"][..], &["a/b", "Text/Plain; charset=utf-8"], &["text/*"], &["*/*"], &["text"], &[]]
        {
            assert!(fits("text/plain", &modes(takes)), "{takes:?}");
        }
        for takes in [&["text/x-diff"][..], &["application/*"], &["plain"], &["te/*"], &[""]] {
            assert!(!fits("text/plain", &modes(takes)), "{takes:?}");
        }
    }
}
