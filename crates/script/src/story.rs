//! A story, and the script that one agent takes from it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use protocol::Message;
use server::{Fault, Job, Say};

use crate::about::About;
use crate::mistake::{Mistake, one_of};
use crate::rule::{Heard, Rule};
use crate::step::{Next, Step, Telling, Verb};
use crate::{read, stories};

/// The agents of one file: what each says, and perhaps who it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    name: Arc<str>,
    agents: BTreeMap<String, Entry>,
}

/// What a file says of one agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// None when the agent knows that itself and only recites.
    pub about: Option<About>,
    pub configurations: BTreeMap<String, About>,
    pub rules: Arc<[Rule]>,
}

impl Story {
    /// Reads a story. `file_name` gives the story its name and stands in front of a mistake; no file is opened.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, Mistake> {
        let agents = read::agents(file_name, text)?;
        let stem = Path::new(file_name).file_stem().and_then(|stem| stem.to_str());
        Ok(Self { name: stem.unwrap_or(file_name).into(), agents })
    }

    /// Opens the embedded story of this name, or else the file.
    pub fn open(name_or_file: &str) -> Result<Self, Mistake> {
        match stories::embedded(name_or_file) {
            Some(text) => Self::parse(name_or_file, text),
            None => {
                let expected = format!("expected a file or `{}`", stories::DEFAULT);
                let unread = |error| Mistake::of_file(name_or_file, format!("cannot be read: {error}; {expected}"));
                Self::parse(name_or_file, &std::fs::read_to_string(name_or_file).map_err(unread)?)
            }
        }
    }

    /// The file's name without its folder and ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The agents that the story tells of, by name.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }

    /// Who an agent is, plainly or in one of its configurations. None when the file does not say.
    pub fn about(&self, name: &str, configuration: Option<&str>) -> Option<&About> {
        let entry = self.agents.get(name)?;
        match configuration {
            Some(configuration) => entry.configurations.get(configuration),
            None => entry.about.as_ref(),
        }
    }

    /// The configurations of an agent, by name.
    pub fn configurations(&self, name: &str) -> impl Iterator<Item = &str> {
        self.agents.get(name).into_iter().flat_map(|entry| entry.configurations.keys()).map(String::as_str)
    }

    /// What one agent says.
    pub fn agent(&self, name: &str) -> Option<Script> {
        let rules = self.agents.get(name)?.rules.clone();
        Some(Script { story: self.name.clone(), rules })
    }
}

/// What one agent says, and when. A handle; clones share the rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    story: Arc<str>,
    rules: Arc<[Rule]>,
}

impl Script {
    /// What a `--story` flag means: the embedded story of this name, or else a file, and in it the part of one agent.
    pub fn open(agent: &str, name_or_file: &str) -> Result<Self, Mistake> {
        if name_or_file == "none" {
            let words = format!("this {agent} can only recite; expected a file or `{}`", stories::DEFAULT);
            return Err(Mistake::of_file("--story none", words));
        }
        let story = Story::open(name_or_file)?;
        story.agent(agent).ok_or_else(|| {
            let told: Vec<&str> = story.agents().collect();
            let words = format!("the story has no rules for {agent}, only for {}", one_of(&told));
            Mistake::of_file(name_or_file, words)
        })
    }

    /// The name of the story that this script comes from.
    pub fn story(&self) -> &str {
        &self.story
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The first rule that matches.
    pub fn choose(&self, heard: &Heard<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches(heard))
    }

    /// Whether this message, which belongs to no task, gets a direct message instead of a task.
    pub fn answers_directly(&self, message: &Message) -> bool {
        self.choose(&Heard::first(message)).is_some_and(Rule::replies)
    }

    /// Whether it ever needs an approval.
    pub fn asks_approval(&self) -> bool {
        let mut steps = self.rules.iter().flat_map(Rule::steps);
        steps.any(|step| matches!(step, Step::Words(Verb::NeedApproval, _)))
    }

    /// Tells one turn. When no rule matches, the task fails and says so. The error is that the turn could not be told
    /// to its end, because it was stopped or the store failed.
    pub async fn tell(&self, job: &Job, say: &Say) -> Result<(), Fault> {
        let heard = Heard::of(job);
        let Some(rule) = self.choose(&heard) else {
            let words = format!("The story has no rule for this {}.", heard.on().word());
            return Ok(say.failed(words).await?);
        };
        let mut telling = Telling::default();
        for step in rule.steps() {
            if telling.say(step, job, say).await? == Next::Return {
                break;
            }
        }
        Ok(())
    }
}
