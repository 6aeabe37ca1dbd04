//! An agent from a closure, and a server around it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use protocol::AgentCard;
use server::{Agent, Fault, Job, Say, Setup, Turn};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// An agent whose turns are a closure.
pub struct Scripted {
    /// Its card; may be changed before it is served.
    pub card: AgentCard,
    /// The card that authenticated callers see.
    pub extended: Option<AgentCard>,
    /// What [`Agent::answers_directly`] says.
    pub direct: bool,
    /// What [`Agent::resumes`] says.
    pub resumes: bool,
    /// What [`Agent::may_decide`] says.
    pub may_decide: fn(&protocol::Task, &str) -> bool,
    /// What [`Agent::approval_limit`] says.
    pub approval_limit: Option<Duration>,
    /// What [`Agent::about`] says.
    pub about: Vec<(String, String)>,
    /// What [`Agent::asks_approval`] says.
    pub asks_approval: bool,
    turn: Box<dyn Fn(Job, Say) -> Turn + Send + Sync>,
}

impl Agent for Scripted {
    fn card(&self) -> AgentCard {
        self.card.clone()
    }

    fn extended_card(&self) -> Option<AgentCard> {
        self.extended.clone()
    }

    fn answers_directly(&self, _: &protocol::Message) -> bool {
        self.direct
    }

    fn resumes(&self, _: &protocol::Task) -> bool {
        self.resumes
    }

    fn may_decide(&self, task: &protocol::Task, operator: &str) -> bool {
        (self.may_decide)(task, operator)
    }

    fn approval_limit(&self, _: &protocol::Task) -> Option<Duration> {
        self.approval_limit
    }

    fn asks_approval(&self) -> bool {
        self.asks_approval
    }

    fn about(&self, _: &protocol::Task) -> Vec<(String, String)> {
        self.about.clone()
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        (self.turn)(job, say)
    }
}

/// The card of a scripted agent: streaming and push are on.
pub fn card() -> AgentCard {
    serde_json::from_value(serde_json::json!({
        "name": "scripted", "description": "Plays a test.", "version": "1", "supportedInterfaces": [],
        "capabilities": {"streaming": true, "pushNotifications": true},
        "defaultInputModes": ["text/plain", "application/json", "application/octet-stream"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "play", "name": "Play", "description": "Plays.", "tags": ["test"]}]
    }))
    .unwrap()
}

/// An agent from a closure.
pub fn scripted<F, Fut>(turn: F) -> Scripted
where
    F: Fn(Job, Say) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Fault>> + Send + 'static,
{
    let turn = Box::new(move |job, say| {
        let turn: Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>> = Box::pin(turn(job, say));
        turn
    });
    Scripted {
        card: card(),
        extended: None,
        direct: false,
        resumes: false,
        may_decide: |_, _| true,
        approval_limit: None,
        about: Vec::new(),
        asks_approval: false,
        turn,
    }
}

/// A server that runs. Dropping it ends it.
pub struct Served {
    /// Where it listens: `http://127.0.0.1:PORT`.
    pub url: String,
    /// What calls it; the connections are kept from call to call.
    pub(crate) http: reqwest::Client,
    /// A connection to where it serves gRPC.
    pub grpc: tonic::transport::Channel,
    /// Where it serves gRPC: `127.0.0.1:PORT`.
    pub grpc_address: String,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
}

/// A server with threads of its own, which can be killed: nothing of it goes on after that, and nothing is tidied up.
pub struct Apart {
    served: Option<Served>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Apart {
    /// Serves as [`serve`] does.
    pub async fn serve(agent: impl Agent, change: impl FnOnce(&mut Setup) + Send + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let served = runtime.spawn(serve(agent, change)).await.unwrap();
        Self { served: Some(served), runtime: Some(runtime) }
    }

    /// Tells it to stop and waits until it has.
    pub async fn stop(mut self) {
        self.served.take().unwrap().stop().await;
    }

    /// Kills it, as `kill -9` would.
    pub fn kill(mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

impl std::ops::Deref for Apart {
    type Target = Served;

    fn deref(&self) -> &Served {
        self.served.as_ref().unwrap()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Served {
    /// Tells it to stop and waits until it has.
    pub async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.serving).await.unwrap().unwrap();
    }
}

/// Serves an agent on free ports, over all bindings. `change` may change the setup first; webhooks may be local.
pub async fn serve(agent: impl Agent, change: impl FnOnce(&mut Setup)) -> Served {
    let mut setup = Setup::new(Arc::new(agent));
    setup.allow_local_webhooks = true;
    change(&mut setup);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let grpc = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let grpc_address = grpc.local_addr().unwrap().to_string();
    setup.grpc = Some(grpc);
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(server::run(vec![listener], setup, async {
        let _ = stopped.await;
    }));
    let grpc = tonic::transport::Endpoint::from_shared(format!("http://{grpc_address}")).unwrap().connect_lazy();
    Served { url, http: crate::talk::client(), grpc, grpc_address, stop: Some(stop), serving }
}
