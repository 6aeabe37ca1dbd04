//! The agent that the public interop kit calls: it does what an [`Instruction`] says, and an instruction may say to call
//! another agent with another instruction. So a message goes around a ring of agents, each of which is server and client,
//! and every one that it passed leaves a word in the answer.
//!
//! Entry point: [`Interop`], served by `workshop interop-agent`. What is left out: everything that the kit does not ask
//! for. There are no artifacts and no direct replies.

mod call;
mod instruction;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use client::Http;
use protocol::card::{AgentCapabilities, AgentSkill};
use protocol::{AgentCard, Dial, media};
use server::{Agent, Fault, Job, Say, Setup, Turn};

pub use instruction::{Behavior, CallAgent, Instruction, PushNotification, Response, Series, Step};

/// What ends the text of a task that is held, and tells whoever subscribed to it that nothing more comes.
pub const FINISHED: &str = "task-finished";
/// How often a task that is held says that it still works.
const HELD: usize = 5;
/// How long an answer waits for the webhooks of its task: the kit looks for them as soon as it has the answer.
const WEBHOOKS: Duration = Duration::from_secs(10);

/// The agent.
#[derive(Debug)]
pub struct Interop {
    http: Http,
    /// Between two words of a task that is held.
    pause: Duration,
}

/// What following an instruction comes to: what every agent on the way said.
type Followed<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>, Fault>> + Send + 'a>>;

impl Interop {
    /// An agent whose held tasks say every `pause` that they still work; the kit wants two seconds.
    pub fn new(pause: Duration) -> Self {
        Self { http: Http::new(Dial::default(), client::Limits::default(), None), pause }
    }

    /// Changes how a server serves it to what the kit wants: its paths, webhooks on this machine, and an answer only
    /// when they have got everything.
    pub fn set(setup: &mut Setup) {
        setup.rpc_path = "/jsonrpc".to_owned();
        setup.rest_path = "/rest".to_owned();
        setup.allow_local_webhooks = true;
        setup.limits.push_first = WEBHOOKS;
    }

    fn follow<'a>(&'a self, instruction: &'a Instruction) -> Followed<'a> {
        Box::pin(async move {
            match &instruction.step {
                Some(Step::ReturnResponse(response)) => Ok(vec![response.response.clone()]),
                Some(Step::Steps(series)) => {
                    let mut said = Vec::new();
                    for step in &series.instructions {
                        said.extend(self.follow(step).await?);
                    }
                    Ok(said)
                }
                Some(Step::CallAgent(call)) => self.call(call).await,
                None => Err("an instruction says nothing".into()),
            }
        })
    }

    /// Says a text, and that it still works, as often as it takes a client to go, come back and cancel.
    async fn hold(&self, text: &str, job: &Job, say: &Say) -> Result<(), Fault> {
        let text = format!("{text}\n{FINISHED}");
        say.working(text.as_str()).await?;
        for _ in 0..HELD {
            tokio::select! {
                () = tokio::time::sleep(self.pause) => say.working(()).await?,
                () = job.stop.cancelled() => return Ok(()),
            }
        }
        say.done(text).await?;
        Ok(())
    }
}

impl Agent for Interop {
    fn card(&self) -> AgentCard {
        let skill = AgentSkill::new("follow", "Follow", "Follows an instruction of the interop kit.", &["interop"]);
        AgentCard {
            capabilities: AgentCapabilities {
                streaming: Some(true),
                push_notifications: Some(true),
                ..AgentCapabilities::default()
            },
            default_input_modes: vec![media::TEXT.to_owned(), instruction::MEDIA_TYPE.to_owned()],
            ..AgentCard::new("Interop agent", "Passes instructions on and tells what came back.", "1.0.0", vec![skill])
        }
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        Box::pin(async move {
            let Some(instruction) = Instruction::of(&job.message) else {
                say.failed("The message holds no instruction").await?;
                return Ok(());
            };
            say.working(()).await?;
            let said = tokio::select! {
                said = self.follow(&instruction) => said?,
                () = job.stop.cancelled() => return Ok(()),
            };
            let text = said.join("\n");
            if instruction.holds() {
                self.hold(&text, &job, &say).await
            } else {
                say.done(text).await?;
                Ok(())
            }
        })
    }
}
