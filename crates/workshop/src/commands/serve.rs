use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use protocol::{Dial, media};
use server::Gate;
use tokio::net::TcpListener;

use super::{End, words};
use crate::agents::{Agents, Source};
use crate::files::Files;
use crate::set::Set;

/// `workshop serve`.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The set whose agents to serve.
    #[arg(long, default_value = "kit")]
    set: String,
    /// Moves all ports: the first agent listens here, the others on the ports after it. 0: each on a free one.
    #[arg(long, value_name = "PORT")]
    first_port: Option<u16>,
    /// Opens a control route, on this machine only, that holds agents back step by step.
    #[arg(long)]
    gated: bool,
}

impl Serve {
    pub async fn run(&self, files: &Files) -> Result<End, String> {
        let mut set = Set::read(files, &self.set).map_err(words)?;
        let mut listeners = Vec::new();
        for (place, agent) in set.agents.iter_mut().enumerate() {
            let own = agent.origin.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0);
            let port = match self.first_port {
                None => own,
                Some(0) => 0,
                Some(first) => {
                    u16::try_from(place).ok().and_then(|place| first.checked_add(place)).ok_or_else(|| {
                        format!("--first-port {first} leaves no port for {}; ports end at {}", agent.name, u16::MAX)
                    })?
                }
            };
            let listener = TcpListener::bind(("127.0.0.1", port)).await;
            let listener = listener.map_err(|cause| match cause.kind() {
                std::io::ErrorKind::AddrInUse => format!("port {port} is taken; --first-port PORT moves the agents"),
                _ => format!("port {port}: {cause}"),
            })?;
            let port = listener.local_addr().map_err(words)?.port();
            agent.origin = format!("localhost:{port}");
            listeners.push(listener);
        }
        let signals = server::cli::Signals::new().map_err(words)?;
        let agents = Agents::on(listeners, &set, Dial::default(), Source::System, &[]).await.map_err(words)?;
        for live in &agents.live {
            let token = live.token.map(|token| format!(", token {token}")).unwrap_or_default();
            println!("{}: http://{}{}{token}", live.name, live.origin, media::CARD_PATH);
        }
        if self.gated {
            let address = control(&agents).await.map_err(words)?;
            println!("gate: http://{address}/AGENT/next, /AGENT/step/N, /AGENT/release (POST)");
        }
        println!("They recite the story {}. Ctrl-C ends them.", set.story.name());
        signals.any().await;
        agents.stop().await;
        Ok(End::Done)
    }
}

/// The gates by the names of their agents.
type Gates = Arc<Vec<(String, Arc<Gate>)>>;

/// Serves the control route and gives its address.
async fn control(agents: &Agents) -> std::io::Result<std::net::SocketAddr> {
    let gates: Gates = Arc::new(agents.live.iter().map(|live| (live.name.clone(), live.gate.clone())).collect());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let on = |gates: &Gates, agent: &str, act: &dyn Fn(&Gate)| match gates.iter().find(|(name, _)| name == agent) {
        Some((_, gate)) => {
            act(gate);
            StatusCode::NO_CONTENT
        }
        None => StatusCode::NOT_FOUND,
    };
    let next =
        move |State(gates): State<Gates>, Path(agent): Path<String>| async move { on(&gates, &agent, &Gate::next) };
    let step = move |State(gates): State<Gates>, Path((agent, count)): Path<(String, usize)>| async move {
        on(&gates, &agent, &|gate| gate.step(count))
    };
    let release =
        move |State(gates): State<Gates>, Path(agent): Path<String>| async move { on(&gates, &agent, &Gate::release) };
    let app = Router::new()
        .route("/{agent}/next", post(next))
        .route("/{agent}/step/{count}", post(step))
        .route("/{agent}/release", post(release))
        .with_state(gates);
    tokio::spawn(async move {
        // Ends with the process.
        let _ = axum::serve(listener, app).await;
    });
    Ok(address)
}
