//! A whole agent from a file.

use std::sync::Arc;

use protocol::{AgentCard, Message};
use server::{Agent, Job, Say, Turn};

use crate::about::About;
use crate::mistake::{Mistake, one_of};
use crate::story::{Script, Story};

/// An agent that is data: its card and its words come from a file, and a server runs it as it runs any other.
#[derive(Debug, Clone, PartialEq)]
pub struct Scripted {
    /// Who it is, and how it is served.
    pub about: About,
    /// What it says.
    pub script: Script,
}

impl Scripted {
    /// Takes an agent from a file: the one of this name, or the only one that is there. A configuration changes who
    /// the agent is; without one, it is what its own table says.
    pub fn of(story: &Story, file: &str, name: Option<&str>, configuration: Option<&str>) -> Result<Self, Mistake> {
        let refuse = |words: String| Err(Mistake::of_file(file, words));
        let whole: Vec<&str> = story.agents().filter(|name| story.about(name, None).is_some()).collect();
        let name = match (name, story.agents().collect::<Vec<_>>().as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, all) => match whole.as_slice() {
                [only] => only,
                _ => return refuse(format!("there is more than one agent; expected --agent with {}", one_of(all))),
            },
        };
        let Some(script) = story.agent(name) else {
            let all: Vec<&str> = story.agents().collect();
            return refuse(format!("there is no agent {name}; expected {}", one_of(&all)));
        };
        if !whole.contains(&name) {
            return refuse(format!(
                "{name} has no card, only rules; expected [{name}] with description, version and [[{name}.skill]]"
            ));
        }
        let Some(about) = story.about(name, configuration) else {
            let word = configuration.unwrap_or_default();
            let known: Vec<&str> = story.configurations(name).collect();
            return refuse(format!("{name} has no configuration {word}; expected {}", one_of(&known)));
        };
        Ok(Self { about: about.clone(), script })
    }

    /// What to tell whoever starts it.
    pub fn notice(&self) -> String {
        format!("{} says what {} tells it to", self.about.card.name, self.script.story())
    }
}

impl Agent for Scripted {
    fn card(&self) -> AgentCard {
        self.about.card.clone()
    }

    fn extended_card(&self) -> Option<AgentCard> {
        self.about.extended_card.clone()
    }

    fn answers_directly(&self, message: &Message) -> bool {
        self.script.answers_directly(message)
    }

    fn asks_approval(&self) -> bool {
        self.script.asks_approval()
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        Box::pin(async move { self.script.tell(&job, &say).await })
    }
}
