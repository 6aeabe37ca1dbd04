//! An agent that works: it counts the words of a text. `docs/agents.md` leads to it from a script.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use protocol::card::{AgentCapabilities, AgentSkill};
use protocol::{AgentCard, Artifact, ArtifactId, Json, Part, media};
use server::{Agent, Chunk, Dedupe, Job, Say, Turn, cli};

struct WordCounter;

impl Agent for WordCounter {
    fn card(&self) -> AgentCard {
        let skill = AgentSkill::new("count", "Count words", "Says how often each word stands in a text.", &["text"]);
        AgentCard {
            capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
            default_output_modes: vec![media::TEXT.to_owned(), media::JSON.to_owned()],
            ..AgentCard::new("word-counter", "Counts the words of a text.", "1.0.0", vec![skill])
        }
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        Box::pin(async move {
            let text = job.message.text();
            if text.ends_with('?') {
                say.reply("Send me a text, and I count its words.").await?;
                return Ok(());
            }
            if !text.contains(' ') {
                say.ask("That is no text yet. Which one?").await?;
                return Ok(());
            }
            say.working("Counting").await?;
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
                *counts.entry(word.to_lowercase()).or_default() += 1;
            }
            let mut artifact = Artifact::new(ArtifactId::new("counts")?, vec![Part::data(Json::of(&counts)?)]);
            artifact.name = Some("counts.json".into());
            say.artifact(Chunk { artifact, append: false, last_chunk: true }).await?;
            say.done(format!("{} words, {} different ones", counts.values().sum::<u32>(), counts.len())).await?;
            Ok(())
        })
    }
}

fn main() -> ExitCode {
    let defaults = cli::Defaults {
        port: 41250,
        token: None,
        dedupe: Dedupe::default(),
        signing_key: None,
        needs_operators: false,
        notice: "word-counter counts what it is sent".to_owned(),
    };
    cli::run(&Arguments::parse().shared, defaults, Arc::new(WordCounter))
}

/// Counts the words of a text.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    shared: cli::Flags,
}
