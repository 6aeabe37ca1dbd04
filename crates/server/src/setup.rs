//! What a server is made of: an agent, where its tasks are kept, where ids and time come from, and its limits.

use std::sync::Arc;
use std::time::Duration;

use protocol::{Clock, Dial, Ids};

use crate::agent::Agent;
use crate::attempt::Dedupe;
use crate::gate::Gate;
use crate::live::{LiveClock, LiveIds};
use crate::store::{Memory, Principal, Store};
use crate::tokens::Tokens;

/// Everything that [`crate::run()`] needs besides listeners. [`Setup::new`] gives the defaults.
pub struct Setup {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Where tasks are kept. In memory by default.
    pub store: Arc<dyn Store>,
    /// Where ids come from.
    pub ids: Arc<dyn Ids>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Which sockets the origins of webhooks stand for.
    pub dial: Dial,
    /// Holds the agent's events back; a recording's seam.
    pub gate: Option<Arc<Gate>>,
    /// Who may call. Empty, as `callers` too: everybody, as one anonymous principal.
    pub credentials: Vec<Credential>,
    /// Callers with names, beside `credentials`.
    pub callers: Tokens,
    /// Who may approve and refuse. None: whoever reaches the agent, without a name.
    pub operators: Option<Tokens>,
    /// Sign the card, each for itself. None: it is not signed.
    pub signing_keys: Vec<signature::Key>,
    /// The base of the card's URLs, whatever the request's Host says. No slash at the end.
    pub public_url: Option<String>,
    /// Host names, beside `localhost` and loopback addresses, that a request may name.
    pub hosts: Vec<String>,
    /// The tenants of the card's interfaces; each request names one of them, and sees its tasks only. Empty: none.
    pub tenants: Vec<String>,
    /// The agent says when each message and artifact was made, to clients that want to know.
    pub timestamps: bool,
    /// The path of the JSON-RPC binding.
    pub rpc_path: String,
    /// The path of the HTTP+JSON binding.
    pub rest_path: String,
    /// HTTP+JSON answers are `application/json` even where the request had another type or none, for clients of version
    /// 1.0.0, which knew no other.
    pub plain_json: bool,
    /// Where gRPC is served, beside the bindings over HTTP. The card then names its port.
    #[cfg(feature = "grpc")]
    pub grpc: Option<tokio::net::TcpListener>,
    /// What the card says of where gRPC is reached, when that is not the host of the other bindings and the port of the
    /// listener: a host and a port, or a URL.
    #[cfg(feature = "grpc")]
    pub grpc_public_url: Option<String>,
    /// The origins whose pages may read answers, or `*` for all of them. Empty: none.
    pub cors: Vec<String>,
    /// Which resent messages join their first attempt.
    pub dedupe: Dedupe,
    /// Webhooks may lead to this machine and to private networks.
    pub allow_local_webhooks: bool,
    /// Times and sizes.
    pub limits: Limits,
}

/// Times and sizes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long a blocking send waits. None: as long as the turn takes.
    pub blocking: Option<Duration>,
    /// How long a turn may take.
    pub turn: Duration,
    /// How long work may take to stop when told to; then it is dropped.
    pub cancel: Duration,
    /// How long work may go on when the server shuts down.
    pub grace: Duration,
    /// How often a quiet stream carries a comment.
    pub keep_alive: Duration,
    /// A pause before each event of the agent, so that a person can watch.
    pub pace: Duration,
    /// The largest body, in bytes.
    pub body: usize,
    /// How long a client may take to send the head of a request, and each piece of what follows it.
    pub arrival: Duration,
    /// How long an answer waits until the task's webhooks have got everything. Zero: not at all.
    pub push_first: Duration,
    /// How long a task is kept after its last status. None: for ever.
    pub keep: Option<Duration>,
    /// How many tasks are kept. None: all.
    pub keep_tasks: Option<u64>,
    /// How many bytes of tasks, as JSON, are kept. None: all.
    pub keep_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blocking: None,
            turn: Duration::from_secs(3600),
            cancel: Duration::from_secs(2),
            grace: Duration::from_secs(3),
            keep_alive: Duration::from_secs(15),
            pace: Duration::ZERO,
            body: 10 << 20,
            arrival: Duration::from_secs(30),
            push_first: Duration::ZERO,
            keep: None,
            keep_tasks: None,
            keep_bytes: None,
        }
    }
}

/// The principal of whoever has no name: where no credential is asked for, and behind a token that all callers share. An
/// agent is told of no asker then.
pub const ANONYMOUS: &str = "anonymous";

/// A bearer token and whom it stands for.
#[derive(Clone)]
pub struct Credential {
    /// The token.
    pub token: String,
    /// Whose tasks its bearer sees: a name, or [`ANONYMOUS`].
    pub principal: Principal,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("principal", &self.principal).finish_non_exhaustive()
    }
}

impl Setup {
    /// An agent with live ids and time, tasks in memory, no credentials and no signature.
    pub fn new(agent: Arc<dyn Agent>) -> Self {
        Self {
            agent,
            store: Arc::new(Memory::default()),
            ids: Arc::new(LiveIds),
            clock: Arc::new(LiveClock),
            dial: Dial::default(),
            gate: None,
            credentials: Vec::new(),
            callers: Tokens::default(),
            operators: None,
            signing_keys: Vec::new(),
            public_url: None,
            hosts: Vec::new(),
            tenants: Vec::new(),
            timestamps: false,
            rpc_path: "/a2a/jsonrpc".to_owned(),
            rest_path: "/a2a/rest".to_owned(),
            plain_json: false,
            #[cfg(feature = "grpc")]
            grpc: None,
            #[cfg(feature = "grpc")]
            grpc_public_url: None,
            cors: Vec::new(),
            dedupe: Dedupe::default(),
            allow_local_webhooks: false,
            limits: Limits::default(),
        }
    }
}
