//! What all agent binaries share: flags, the health check, logging and signals.

use std::io::{self, IsTerminal, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use protocol::media;
use tokio::net::TcpListener;

use crate::agent::Agent;
use crate::attempt::Dedupe;
use crate::setup::{ANONYMOUS, Credential, Setup};
use crate::store::{Memory, Store};
use crate::tokens::Tokens;

/// The flags of an agent binary.
#[derive(Debug, Clone, clap::Args)]
pub struct Flags {
    /// Where to listen, such as 127.0.0.1:41241. Without it: the agent's own port on 127.0.0.1 and ::1.
    #[arg(long, env = "A2A_LISTEN", value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Where to serve gRPC, such as 127.0.0.1:42241. The card then names it too.
    #[cfg(feature = "grpc")]
    #[arg(long, env = "A2A_GRPC", value_name = "ADDR")]
    pub grpc: Option<SocketAddr>,
    /// Where clients reach gRPC, as a host and a port such as agents.example:443 or as a URL, when that is not the host
    /// of the other bindings with the port of --grpc.
    #[cfg(feature = "grpc")]
    #[arg(long, env = "A2A_GRPC_PUBLIC_URL", value_name = "URL", requires = "grpc", value_parser = grpc_url)]
    pub grpc_public_url: Option<String>,
    /// A host name, beside localhost, under which clients reach this agent. Repeatable.
    #[arg(long, env = "A2A_HOST", value_name = "NAME", value_delimiter = ',')]
    pub host: Vec<String>,
    /// The base of the card's URLs, whatever clients say.
    #[arg(long, env = "A2A_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// An origin whose web pages may call this agent, such as http://localhost:5173, or * for all. Repeatable. Without
    /// it no page may.
    #[arg(long, env = "A2A_CORS", value_name = "ORIGIN", value_delimiter = ',', value_parser = crate::cors::origin)]
    pub cors: Vec<String>,
    /// A pause before each event, in milliseconds, so that a person can watch.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub pace: u64,
    /// Where tasks are kept: memory, sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE. Without it: a file of this
    /// agent's in the user's state directory, if this build has SQLite.
    #[arg(long, env = "A2A_STORE", value_name = "STORE", hide_env_values = true)]
    pub store: Option<StoreChoice>,
    /// How long a task is kept after its last status, such as 90s, 12h or 7d. Without it: for ever.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub keep: Option<Duration>,
    /// How many tasks are kept; the oldest go first.
    #[arg(long, value_name = "NUMBER")]
    pub keep_tasks: Option<u64>,
    /// How many bytes of tasks are kept; the oldest go first.
    #[arg(long, value_name = "BYTES")]
    pub keep_bytes: Option<u64>,
    /// The bearer token that callers must send.
    #[arg(long, env = "A2A_TOKEN", value_name = "T", hide_env_values = true)]
    pub token: Option<String>,
    /// A file of callers with names, each line NAME sha256:HEX with the hash of the bearer token that the caller must
    /// send. They come beside the one of --token; the token that is the agent's own counts no more.
    #[arg(long, env = "A2A_CALLERS", value_name = "FILE")]
    pub callers: Option<PathBuf>,
    /// A file of operators, who may approve and refuse: each line is NAME sha256:HEX with the hash of the operator's own
    /// token. Without it, whoever reaches the agent may approve.
    #[arg(long, env = "A2A_OPERATORS", value_name = "FILE")]
    pub operators: Option<PathBuf>,
    /// A private key (ES256, PKCS#8 as PEM or DER) that signs the card. Its public half is served at
    /// /.well-known/jwks.json. Repeatable.
    #[arg(long = "signing-key", env = "A2A_SIGNING_KEY", value_name = "FILE", value_delimiter = ',')]
    pub signing_keys: Vec<PathBuf>,
    /// Which log lines to write, in the language of RUST_LOG.
    #[arg(long, env = "RUST_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
    /// Asks the agent that listens here whether it is well, and exits with 0 or 1.
    #[arg(long)]
    pub healthcheck: bool,
    /// How long work may go on after Ctrl-C or SIGTERM, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    pub grace: u64,
    /// How long a blocking send waits, in seconds. Without it: as long as the work takes.
    #[arg(long, value_name = "SECONDS")]
    pub blocking_limit: Option<u64>,
    /// How long one turn of the agent may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub turn_limit: u64,
    /// A tenant that the card's interfaces name; requests must then name one. Repeatable.
    #[arg(long = "tenant", env = "A2A_TENANT", value_name = "NAME", value_delimiter = ',', value_parser = tenant)]
    pub tenants: Vec<String>,
    /// An extension that the card declares and clients may activate. Repeatable.
    #[arg(long = "extension", env = "A2A_EXTENSION", value_enum, value_name = "NAME", value_delimiter = ',')]
    pub extensions: Vec<ExtensionChoice>,
    /// Which resent messages join their first attempt. Without it: the agent's own rule.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub dedupe: Option<Dedupe>,
    /// The path of the JSON-RPC binding.
    #[arg(long, value_name = "PATH", default_value = "/a2a/jsonrpc", value_parser = path)]
    pub rpc_path: String,
    /// The path of the HTTP+JSON binding.
    #[arg(long, value_name = "PATH", default_value = "/a2a/rest", value_parser = path)]
    pub rest_path: String,
    /// HTTP+JSON answers are application/json, whatever the request was; for clients that know no other type.
    #[arg(long)]
    pub plain_json: bool,
    /// The largest body taken, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 10 << 20)]
    pub max_body: usize,
    /// Webhooks may lead to this machine and to private networks.
    #[arg(long)]
    pub allow_local_webhooks: bool,
}

/// Where tasks are kept.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreChoice {
    /// In memory, gone with the process.
    Memory,
    /// In a file.
    Sqlite(PathBuf),
    /// In a database that several processes may share. The URL may hold a password.
    Postgres(String),
}

impl std::fmt::Debug for StoreChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(_) => f.write_str("postgres"),
        }
    }
}

impl std::str::FromStr for StoreChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(text.to_owned())),
            _ => Err("a store is memory, sqlite:PATH or postgres://…".to_owned()),
        }
    }
}

impl StoreChoice {
    /// The file of an agent in the user's state directory; memory when this build has no SQLite or there is no such
    /// directory.
    fn usual(agent: &str) -> Self {
        let folder = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let home = || std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
        match folder.or_else(home) {
            Some(folder) if cfg!(feature = "sqlite") => {
                Self::Sqlite(folder.join("a2a").join(format!("{}.sqlite", file_name(agent))))
            }
            _ => Self::Memory,
        }
    }

    /// Opens the store of an agent. The error is for the person who started it: what is wrong, and what to do.
    pub async fn open(&self, agent: &str) -> Result<Arc<dyn Store>, String> {
        let _ = agent;
        match self {
            Self::Memory => Ok(Arc::new(Memory::default())),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => match crate::store::Sql::sqlite(path).await {
                Ok(store) => Ok(Arc::new(store)),
                Err(cause) => Err(cause.to_string()),
            },
            #[cfg(not(feature = "sqlite"))]
            Self::Sqlite(_) => Err("this build keeps no tasks in files; build it with --features sqlite".to_owned()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => match crate::store::Sql::postgres(url, agent).await {
                Ok(store) => Ok(Arc::new(store)),
                Err(cause) => Err(cause.to_string()),
            },
            #[cfg(not(feature = "postgres"))]
            Self::Postgres(_) => {
                Err("this build keeps no tasks in PostgreSQL; build it with --features postgres".to_owned())
            }
        }
    }
}

/// An agent's name as a file may be called.
fn file_name(agent: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    agent.chars().map(plain).collect()
}

/// A time as a person writes it.
fn span(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => 0,
    };
    let number: Option<u64> = digits.parse().ok();
    let seconds = number.and_then(|number| number.checked_mul(unit)).filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| "a time is a number with s, m, h or d, such as 7d".to_owned())
}

/// An extension that the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExtensionChoice {
    /// When each message and artifact was made.
    Timestamps,
}

fn path(text: &str) -> Result<String, String> {
    let trimmed = text.trim_end_matches('/');
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/-_.~".contains(letter);
    if trimmed.starts_with('/') && trimmed.chars().all(plain) {
        Ok(trimmed.to_owned())
    } else {
        Err("a path begins with / and holds letters, digits, -, _, . and ~".to_owned())
    }
}

/// What clients of gRPC dial: a host and a port, or the URL of a host.
#[cfg(feature = "grpc")]
fn grpc_url(text: &str) -> Result<String, String> {
    let trimmed = text.trim_end_matches('/');
    let uri: Option<http::Uri> = trimmed.parse().ok();
    let fits = uri.is_some_and(|uri| match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) => {
            uri.path() == "/" && uri.query().is_none() && !authority.as_str().contains('@')
        }
        (None, Some(authority)) => authority.port_u16().is_some() && !authority.as_str().contains('@'),
        _ => false,
    });
    if fits {
        Ok(trimmed.to_owned())
    } else {
        Err("this is a host and a port, such as agents.example:443, or the URL of a host".to_owned())
    }
}

fn tenant(text: &str) -> Result<String, String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~".contains(letter);
    // The paths of HTTP+JSON begin with one of these when they name no tenant.
    let is_taken = matches!(text, "tasks" | "extendedAgentCard");
    if text.is_empty() || !text.chars().all(plain) {
        Err("a tenant holds letters, digits, -, _, . and ~".to_owned())
    } else if is_taken {
        Err(format!("{text} begins paths that name no tenant"))
    } else {
        Ok(text.to_owned())
    }
}

/// What one agent has of its own.
#[derive(Debug, Clone)]
pub struct Defaults {
    /// The port it listens on.
    pub port: u16,
    /// The token that callers must send unless a flag names another one.
    pub token: Option<&'static str>,
    /// Which resent messages join their first attempt.
    pub dedupe: Dedupe,
    /// Signs the card, beside the keys that flags name.
    pub signing_key: Option<signature::Key>,
    /// It does not start without operators: what it does after an approval is real.
    pub needs_operators: bool,
    /// One line that says what the agent does, written when it starts.
    pub notice: String,
}

/// Runs an agent binary: 0 when it was stopped as asked or is well, 1 when the health check fails, 2 when it could not
/// run. It says where its card is, in one line on standard output, and ends on Ctrl-C and SIGTERM.
pub fn run(flags: &Flags, defaults: Defaults, agent: Arc<dyn Agent>) -> ExitCode {
    let own = SocketAddr::from((Ipv4Addr::LOCALHOST, defaults.port));
    if flags.healthcheck {
        return healthcheck(flags.listen.unwrap_or(own));
    }
    let files = flags.signing_keys.iter().filter(|file| !file.as_os_str().is_empty());
    let keys: Result<Vec<_>, String> = files.map(|file| signing_key(file)).collect();
    let keys = match keys {
        Ok(keys) => keys,
        Err(why) => return cannot(&why),
    };
    logging(&flags.log);
    if defaults.needs_operators && flags.operators.is_none() {
        return cannot(
            "this agent does what it asks approval for, so it needs operators: --operators FILE, with a line \
             NAME sha256:HEX for each",
        );
    }
    let (callers, operators) = match (tokens("--callers", &flags.callers), tokens("--operators", &flags.operators)) {
        (Ok(callers), Ok(operators)) => (callers, operators),
        (Err(why), _) | (_, Err(why)) => return cannot(&why),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => return cannot(&format!("the runtime did not start: {cause}")),
    };
    runtime.block_on(async {
        let notice = defaults.notice.clone();
        let mut setup = setup(flags, defaults, agent);
        setup.signing_keys.extend(keys);
        setup.callers = callers.unwrap_or_default();
        setup.operators = operators;
        #[cfg(feature = "grpc")]
        if let Some(address) = flags.grpc {
            match TcpListener::bind(address).await {
                Ok(listener) => setup.grpc = Some(listener),
                Err(cause) => return cannot(&format!("cannot serve gRPC on {address}: {cause}")),
            }
        }
        serve(flags, &notice, setup, own).await
    })
}

/// Reads a file of names and tokens. One that others can read is no failure, as it holds hashes only, but is said.
fn tokens(flag: &str, file: &Option<PathBuf>) -> Result<Option<Tokens>, String> {
    let Some(file) = file else { return Ok(None) };
    let tokens = Tokens::open(file).map_err(|why| format!("{flag} {why}"))?;
    #[cfg(unix)]
    if let Ok(about) = std::fs::metadata(file) {
        use std::os::unix::fs::PermissionsExt;
        if about.permissions().mode() & 0o077 != 0 {
            let shown = file.display();
            tracing::warn!("{flag} {shown}: others than its owner can read this file; `chmod 600 {shown}` mends it");
        }
    }
    Ok(Some(tokens))
}

/// Makes a token for a name: the token goes to standard error, once, and the line for the file of `--operators` or
/// `--callers` to standard output, so that `… >> FILE` adds it.
pub fn new_token(name: &str) -> ExitCode {
    let token = Tokens::fresh();
    let line = match Tokens::line(name, &token) {
        Ok(line) => line,
        Err(why) => return cannot(&why),
    };
    eprintln!("The token of {name}, shown this once: {token}");
    println!("{line}");
    ExitCode::SUCCESS
}

/// Reads a key that signs the card. Its name is its thumbprint. The error says what to do.
fn signing_key(file: &Path) -> Result<signature::Key, String> {
    let shown = file.display();
    let bytes = std::fs::read(file).map_err(|cause| format!("--signing-key {shown}: {cause}; {}", make_key(file)))?;
    let key = signature::Key::es256_pkcs8("", &bytes).map(signature::Key::named_by_thumbprint);
    key.map_err(|cause| {
        let has = |label: &str| String::from_utf8_lossy(&bytes).contains(label);
        let remedy = if has("BEGIN EC PRIVATE KEY") || has("BEGIN ENCRYPTED PRIVATE KEY") {
            format!("`openssl pkcs8 -topk8 -nocrypt -in {shown} -out pkcs8.pem` writes it as one")
        } else {
            make_key(file)
        };
        format!("--signing-key {shown}: {cause}; {remedy}")
    })
}

fn make_key(file: &Path) -> String {
    let file = file.display();
    format!("`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {file}` makes a new one")
}

async fn serve(flags: &Flags, notice: &str, mut setup: Setup, own: SocketAddr) -> ExitCode {
    let listeners = match listen(flags.listen, own).await {
        Ok(listeners) => listeners,
        Err((address, cause)) if cause.kind() == io::ErrorKind::AddrInUse => {
            return cannot(&format!("port {} is taken; --listen ADDR moves it", address.port()));
        }
        Err((address, cause)) => return cannot(&format!("cannot listen on {address}: {cause}")),
    };
    let name = setup.agent.card().name;
    let choice = flags.store.clone().unwrap_or_else(|| StoreChoice::usual(&name));
    let store = match choice.open(&name).await {
        Ok(store) => store,
        Err(why) => return cannot(&why),
    };
    tracing::info!("tasks are kept in {choice:?}");
    let signals = match Signals::new() {
        Ok(signals) => signals,
        Err(cause) => return cannot(&format!("signals cannot be caught: {cause}")),
    };
    let port = listeners[0].local_addr().map_or(own.port(), |address| address.port());
    let base = flags.public_url.clone().unwrap_or_else(|| format!("http://localhost:{port}"));
    if flags.listen.is_some_and(|address| address.ip().is_unspecified())
        && flags.public_url.is_none()
        && flags.host.is_empty()
    {
        tracing::warn!(
            "other machines will read localhost in this agent's card; --host NAME or --public-url URL mends it"
        );
    }
    setup.store = store;
    tracing::info!("{notice}");
    println!("{} is ready: {}{}", setup.agent.card().name, base.trim_end_matches('/'), media::CARD_PATH);
    let served = crate::run(listeners, setup, signals.any()).await;
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => cannot(&format!("{cause}")),
    }
}

fn setup(flags: &Flags, defaults: Defaults, agent: Arc<dyn Agent>) -> Setup {
    let mut setup = Setup::new(agent);
    let own = defaults.token.filter(|_| flags.callers.is_none());
    let token = flags.token.clone().or(own.map(str::to_owned));
    setup.credentials = token.into_iter().map(|token| Credential { token, principal: ANONYMOUS.into() }).collect();
    setup.signing_keys.extend(defaults.signing_key);
    setup.public_url.clone_from(&flags.public_url);
    #[cfg(feature = "grpc")]
    setup.grpc_public_url.clone_from(&flags.grpc_public_url);
    setup.hosts.clone_from(&flags.host);
    setup.tenants.clone_from(&flags.tenants);
    setup.timestamps = flags.extensions.contains(&ExtensionChoice::Timestamps);
    setup.rpc_path.clone_from(&flags.rpc_path);
    setup.rest_path.clone_from(&flags.rest_path);
    setup.plain_json = flags.plain_json;
    setup.cors.clone_from(&flags.cors);
    setup.dedupe = flags.dedupe.unwrap_or(defaults.dedupe);
    setup.allow_local_webhooks = flags.allow_local_webhooks;
    setup.limits.blocking = flags.blocking_limit.map(Duration::from_secs);
    setup.limits.turn = Duration::from_secs(flags.turn_limit);
    setup.limits.grace = Duration::from_secs(flags.grace);
    setup.limits.pace = Duration::from_millis(flags.pace);
    setup.limits.body = flags.max_body;
    setup.limits.keep = flags.keep;
    setup.limits.keep_tasks = flags.keep_tasks;
    setup.limits.keep_bytes = flags.keep_bytes;
    setup
}

/// Listens where the flag says, else on the agent's own port on 127.0.0.1, and on ::1 where that is there and free.
async fn listen(flag: Option<SocketAddr>, own: SocketAddr) -> Result<Vec<TcpListener>, (SocketAddr, io::Error)> {
    let first = flag.unwrap_or(own);
    let mut listeners = vec![TcpListener::bind(first).await.map_err(|cause| (first, cause))?];
    if flag.is_none()
        && let Ok(second) = TcpListener::bind((Ipv6Addr::LOCALHOST, own.port())).await
    {
        listeners.push(second);
    }
    Ok(listeners)
}

/// Writes log lines to standard error.
pub fn logging(filter: &str) {
    let filter = tracing_subscriber::EnvFilter::try_new(filter).unwrap_or_else(|_| "info".into());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .try_init();
}

fn cannot(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(2)
}

/// Reads the card of whoever listens at an address.
fn healthcheck(address: SocketAddr) -> ExitCode {
    let ask = || -> io::Result<bool> {
        let ip = match address.ip() {
            IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let limit = Duration::from_secs(2);
        let mut stream = std::net::TcpStream::connect_timeout(&(ip, address.port()).into(), limit)?;
        stream.set_read_timeout(Some(limit))?;
        write!(stream, "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", media::CARD_PATH)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    match ask() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("{address} does not answer with a card");
            ExitCode::FAILURE
        }
        Err(cause) => {
            eprintln!("{address}: {cause}");
            ExitCode::FAILURE
        }
    }
}

/// Ctrl-C and SIGTERM.
pub struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Catches the signals from now on. The error is the system's.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    /// Waits for either. A second Ctrl-C ends the process at once.
    pub async fn any(mut self) {
        #[cfg(unix)]
        let terminate = self.terminate.recv();
        #[cfg(not(unix))]
        let terminate = std::future::pending::<Option<()>>();
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate => {}
        }
        tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(130);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "grpc")]
    #[test]
    fn where_grpc_is_reached_is_a_host_and_a_port_or_the_url_of_a_host() {
        for fine in ["agents.example:443", "[::1]:9", "https://agents.example", "http://agents.example:8080"] {
            assert_eq!(grpc_url(fine).as_deref(), Ok(fine));
        }
        assert_eq!(grpc_url("https://agents.example/").as_deref(), Ok("https://agents.example"));
        for wrong in
            ["", "agents.example", "https://", "https://h/path", "https://h?x", "grpc:x", "u@h:1", "h:x", "ftp://h"]
        {
            assert!(grpc_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn w10_a_tenant_is_one_plain_segment_that_no_other_path_begins_with() {
        for fine in ["acme", "a-b_c.d~1"] {
            assert_eq!(tenant(fine).as_deref(), Ok(fine));
        }
        for wrong in ["", "a/b", "a b", "message:send", "tasks", "extendedAgentCard", "ž"] {
            assert!(tenant(wrong).is_err(), "{wrong}");
        }
    }
}
