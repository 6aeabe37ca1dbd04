//! A set of scenarios: which agents there are, and in which order the scenarios run.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use protocol::Timestamp;
use serde::Deserialize;
use toml::Spanned;

use crate::files::Files;
use crate::mistake::{Mistake, Source, hint};
use crate::scenario::{self, Known, Scenario};

/// A set.
#[derive(Debug, Clone)]
pub struct Set {
    /// Its name: that of its folder.
    pub name: String,
    /// What it is.
    pub about: String,
    /// The story that its agents recite, read.
    pub story: script::Story,
    /// Where the agents' clocks begin.
    pub clock: Timestamp,
    /// How far each stamp moves them, in milliseconds.
    pub tick: i64,
    /// Where webhooks are received: host and port.
    pub webhook: Option<String>,
    /// The agents.
    pub agents: Vec<AgentOf>,
    /// The scenarios in the order in which they run.
    pub scenarios: Vec<Scenario>,
}

/// An agent of a set.
#[derive(Debug, Clone)]
pub struct AgentOf {
    /// Its name: test-runner, code-reviewer or deployer.
    pub name: String,
    /// Where clients find it: host and port, as they stand in the recording.
    pub origin: String,
    /// Where its ids come from.
    pub seed: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetText {
    about: String,
    story: Spanned<String>,
    clock: Spanned<String>,
    tick_ms: NonZeroU32,
    webhook: Option<Spanned<String>>,
    order: Vec<Spanned<String>>,
    agents: BTreeMap<Spanned<String>, AgentText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentText {
    origin: Spanned<String>,
    seed: u32,
}

/// The agents that a set may have.
const AGENTS: [&str; 3] = ["test-runner", "code-reviewer", "deployer"];

impl Set {
    /// Reads a set with all its scenarios and its story. The error is the first mistake.
    pub fn read(files: &Files, name: &str) -> Result<Self, Mistake> {
        let file = files.shown(&format!("{name}/set.toml"));
        let text = text(files, &format!("{name}/set.toml")).ok_or_else(|| Mistake {
            file: file.clone(),
            line: 1,
            words: format!("there is no set {name}{}", near(name, &files.sets())),
        })?;
        let source = Source { file: &file, text: &text };
        let set: SetText = source.read(source.table()?)?;
        let clock = set.clock.get_ref().parse();
        let clock = clock
            .map_err(|wrong: protocol::time::NotATimestamp| source.mistake(set.clock.span(), wrong.to_string()))?;
        let story = story(files, &source, &set.story)?;
        let mut origins = BTreeSet::new();
        let webhook = set.webhook.map(|webhook| origin(&source, webhook, &mut origins)).transpose()?;
        let mut agents = Vec::new();
        // In the order of the file.
        let mut written: Vec<_> = set.agents.into_iter().collect();
        written.sort_by_key(|(agent, _)| agent.span().start);
        for (agent, text) in written {
            let name = agent.get_ref();
            if !AGENTS.contains(&name.as_str()) {
                let words = format!("there is no agent {name}{}", hint(name, &AGENTS));
                return Err(source.mistake(agent.span(), words));
            }
            if story.agent(name).is_none() {
                let words = format!("the story {} does not tell of {name}", set.story.get_ref());
                return Err(source.mistake(agent.span(), words));
            }
            let origin = origin(&source, text.origin, &mut origins)?;
            agents.push(AgentOf { name: agent.into_inner(), origin, seed: text.seed });
        }
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        let mut known = Known::new(&names, webhook.is_some());
        let mut scenarios: Vec<Scenario> = Vec::new();
        for wanted in set.order {
            let path = format!("{name}/{}.toml", wanted.get_ref());
            let shown = files.shown(&path);
            let Some(text) = self::text(files, &path) else {
                let there = files.names(name);
                let there: Vec<&str> = there.iter().filter_map(|file| file.strip_suffix(".toml")).collect();
                let words = format!("there is no file {shown}{}", hint(wanted.get_ref(), &there));
                return Err(source.mistake(wanted.span(), words));
            };
            if scenarios.iter().any(|scenario| scenario.name == *wanted.get_ref()) {
                return Err(source.mistake(wanted.span(), format!("{} stands here twice", wanted.get_ref())));
            }
            let source = Source { file: &shown, text: &text };
            scenarios.push(scenario::read(wanted.get_ref(), source, &mut known)?);
        }
        Ok(Self {
            name: name.to_owned(),
            about: set.about,
            story,
            clock,
            tick: set.tick_ms.get().into(),
            webhook,
            agents,
            scenarios,
        })
    }

    /// Finds scenarios by their names or numbers. The error names the nearest ones.
    pub fn find(&self, wanted: &str) -> Result<usize, String> {
        let is = |name: &str| name == wanted || name.split('-').next() == Some(wanted);
        let found = self.scenarios.iter().position(|scenario| is(&scenario.name));
        let names: Vec<_> = self.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
        found.ok_or_else(|| format!("the set {} has no scenario {wanted}{}", self.name, near(wanted, &names)))
    }
}

/// Host and port, which nobody else in the set has.
fn origin(source: &Source<'_>, origin: Spanned<String>, others: &mut BTreeSet<String>) -> Result<String, Mistake> {
    let fits = origin.get_ref().rsplit_once(':').is_some_and(|(host, port)| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
        !host.is_empty() && host.chars().all(letter) && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    if !fits {
        return Err(source.mistake(origin.span(), "host and port are expected, such as \"localhost:41241\""));
    }
    if !others.insert(origin.get_ref().to_ascii_lowercase()) {
        return Err(source.mistake(origin.span(), format!("{} is somebody else's already", origin.get_ref())));
    }
    Ok(origin.into_inner())
}

fn text(files: &Files, path: &str) -> Option<String> {
    String::from_utf8(files.read(path)?.into_owned()).ok()
}

/// The story: one of the same source, else one that is built in.
fn story(files: &Files, source: &Source<'_>, name: &Spanned<String>) -> Result<script::Story, Mistake> {
    let path = format!("stories/{}.toml", name.get_ref());
    let wrong = |mistake: String| source.mistake(name.span(), mistake);
    match text(files, &path) {
        Some(text) => script::Story::parse(&files.shown(&path), &text).map_err(|mistake| wrong(mistake.to_string())),
        None => script::Story::open(name.get_ref()).map_err(|mistake| wrong(mistake.to_string())),
    }
}

/// `; the nearest are …`, when there are any.
fn near(wanted: &str, names: &[String]) -> String {
    let mut names: Vec<_> = names.iter().collect();
    names.sort_by(|a, b| strsim::jaro_winkler(b, wanted).total_cmp(&strsim::jaro_winkler(a, wanted)));
    let nearest: Vec<_> = names.into_iter().take(3).map(String::as_str).collect();
    if nearest.is_empty() { String::new() } else { format!("; the nearest are {}", nearest.join(", ")) }
}
