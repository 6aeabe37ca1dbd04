//! The three agents inside this process.

use std::io;
use std::sync::Arc;

use protocol::{Clock, Dial, Ids};
use server::live::{LiveClock, LiveIds};
use server::{Agent, Credential, Dedupe, Gate, Setup};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::seeded::{SeededIds, SteppingClock};
use crate::set::Set;

/// The agents of a set, while they run. Dropping the value ends them.
pub struct Agents {
    /// The agents, in the order of the set.
    pub live: Vec<Live>,
    /// Where their origins lead.
    pub dial: Dial,
}

/// One agent that runs.
pub struct Live {
    /// Its name.
    pub name: String,
    /// Where clients find it: host and port.
    pub origin: String,
    /// The token that it wants, if any.
    pub token: Option<&'static str>,
    /// Holds its turns back.
    pub gate: Arc<Gate>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<io::Result<()>>,
}

impl Live {
    /// The URL of its JSON-RPC binding.
    pub fn rpc_url(&self) -> String {
        format!("http://{}/a2a/jsonrpc", self.origin)
    }

    /// The URL of its HTTP+JSON binding.
    pub fn rest_url(&self) -> String {
        format!("http://{}/a2a/rest", self.origin)
    }

    /// Ends it and waits until it has ended.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.serving).await;
    }
}

/// Where ids and stamps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The set's seeds.
    Seeded,
    /// The system.
    System,
}

/// An agent of this name that takes the place of the one that recites.
pub type Other = (&'static str, Arc<dyn Agent>);

/// One kind of agent, made from a script.
struct Kind {
    agent: Arc<dyn Agent>,
    token: Option<&'static str>,
    dedupe: Dedupe,
    signing_key: Option<signature::Key>,
}

fn kind(name: &str, script: script::Script) -> Kind {
    let open = |agent| Kind { agent, token: None, dedupe: Dedupe::Unanswered, signing_key: None };
    match name {
        test_runner::NAME => open(Arc::new(test_runner::TestRunner::reciting(script))),
        code_reviewer::NAME => open(Arc::new(code_reviewer::CodeReviewer::reciting(script))),
        _ => Kind {
            agent: Arc::new(deployer::Deployer::reciting(script)),
            token: Some(deployer::TOKEN),
            dedupe: Dedupe::Always,
            signing_key: Some(deployer::signing_key()),
        },
    }
}

impl Agents {
    /// Starts the agents of a set, each on a free port that its origin leads to. The error is that of a socket, or of
    /// a story that does not have one of the agents.
    pub async fn start(set: &Set, dial: Dial, source: Source) -> io::Result<Self> {
        Self::start_with(set, dial, source, &[]).await
    }

    /// The same, with other agents in the place of those that recite.
    pub async fn start_with(set: &Set, dial: Dial, source: Source, others: &[Other]) -> io::Result<Self> {
        let mut sockets = Vec::new();
        for _ in &set.agents {
            sockets.push(TcpListener::bind(("127.0.0.1", 0)).await?);
        }
        Self::on(sockets, set, dial, source, others).await
    }

    /// Starts the agents of a set on these listeners.
    pub async fn on(
        listeners: Vec<TcpListener>,
        set: &Set,
        mut dial: Dial,
        source: Source,
        others: &[Other],
    ) -> io::Result<Self> {
        for (listener, agent) in listeners.iter().zip(&set.agents) {
            dial.set(&agent.origin, listener.local_addr()?);
        }
        let mut live = Vec::new();
        for (listener, agent) in listeners.into_iter().zip(&set.agents) {
            let script = set.story.agent(&agent.name);
            let script =
                script.ok_or_else(|| io::Error::other(format!("the story does not tell of {}", agent.name)))?;
            let Kind { agent: recites, token, dedupe, signing_key } = kind(&agent.name, script);
            let other = others.iter().find(|(name, _)| *name == agent.name);
            let value = other.map_or(recites, |(_, works)| works.clone());
            let gate = Arc::<Gate>::default();
            let mut setup = Setup::new(value);
            let (ids, clock): (Arc<dyn Ids>, Arc<dyn Clock>) = match source {
                Source::Seeded => {
                    (Arc::new(SeededIds::new(agent.seed)), Arc::new(SteppingClock::new(set.clock, set.tick)))
                }
                Source::System => (Arc::new(LiveIds), Arc::new(LiveClock)),
            };
            (setup.ids, setup.clock) = (ids, clock);
            setup.dial = dial.clone();
            setup.gate = Some(gate.clone());
            setup.credentials = token
                .map(|token| Credential { token: token.to_owned(), principal: server::ANONYMOUS.into() })
                .into_iter()
                .collect();
            setup.signing_keys.extend(signing_key);
            setup.dedupe = dedupe;
            setup.allow_local_webhooks = true;
            let (stop, stopped) = oneshot::channel();
            let serving = tokio::spawn(server::run(vec![listener], setup, async {
                let _ = stopped.await;
            }));
            let (name, origin) = (agent.name.clone(), agent.origin.clone());
            live.push(Live { name, origin, token, gate, stop: Some(stop), serving });
        }
        Ok(Self { live, dial })
    }

    /// The agent of a name.
    pub fn get(&self, name: &str) -> Option<&Live> {
        self.live.iter().find(|live| live.name == name)
    }

    /// Ends all of them.
    pub async fn stop(self) {
        for live in self.live {
            live.stop().await;
        }
    }
}
