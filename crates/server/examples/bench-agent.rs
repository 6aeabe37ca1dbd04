//! The agent of the side-by-side benchmark (`docs/performance.md`): `cargo run --release -p server --example
//! bench-agent -- PORT`. A text that ends with `?` gets a message; `hold N` works for N seconds; everything else is a
//! task with one artifact.

use std::sync::Arc;
use std::time::Duration;

use protocol::card::{AgentCapabilities, AgentSkill};
use protocol::{AgentCard, Artifact, ArtifactId, Part};
use server::{Agent, Chunk, Job, Say, Setup, Turn};

struct Bench;

fn chunk(text: String) -> Result<Chunk, protocol::id::EmptyId> {
    let artifact = Artifact::new(ArtifactId::new("a1")?, vec![Part::text(text)]);
    Ok(Chunk { artifact, append: false, last_chunk: true })
}

impl Agent for Bench {
    fn card(&self) -> AgentCard {
        AgentCard {
            name: "bench".to_owned(),
            description: "Echoes, for the benchmark.".to_owned(),
            supported_interfaces: Vec::new(),
            provider: None,
            version: "1.0.0".to_owned(),
            documentation_url: None,
            capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
            security_schemes: Default::default(),
            security_requirements: Vec::new(),
            default_input_modes: vec!["text/plain".to_owned()],
            default_output_modes: vec!["text/plain".to_owned()],
            skills: vec![AgentSkill {
                id: "echo".to_owned(),
                name: "Echo".to_owned(),
                description: "Says what it hears.".to_owned(),
                tags: vec!["bench".to_owned()],
                examples: Vec::new(),
                input_modes: Vec::new(),
                output_modes: Vec::new(),
                security_requirements: Vec::new(),
            }],
            signatures: Vec::new(),
            icon_url: None,
        }
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        Box::pin(async move {
            let text = job.message.parts.first().and_then(Part::as_text).unwrap_or_default();
            let echo = format!("echo: {text}");
            if text.ends_with('?') {
                say.reply(echo).await?;
                return Ok(());
            }
            if let Some(seconds) = text.strip_prefix("hold ").and_then(|seconds| seconds.parse().ok()) {
                say.working(()).await?;
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
                say.artifact(chunk(format!("emit {}", since.as_nanos()))?).await?;
                tokio::time::sleep(Duration::from_secs(3)).await;
                say.done(()).await?;
                return Ok(());
            }
            say.artifact(chunk(echo)?).await?;
            say.done(()).await?;
            Ok(())
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: bench-agent PORT")?.parse()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let end = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    server::run(vec![listener], Setup::new(Arc::new(Bench)), end).await?;
    Ok(())
}
