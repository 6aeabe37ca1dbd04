//! Serves an agent on its listeners until it is told to stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::{any, get, post};
use http::{HeaderMap, Request};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use protocol::{ErrorKind, media};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::card::Cards;
use crate::door::Door;
use crate::engine::{Engine, Promises};
use crate::host::{Envelope, Host};
use crate::setup::Setup;
use crate::{approvals, card, cors, jsonrpc, operators, page, rest};

/// How long connections may take to close after the work has stopped.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Serves until `shutdown` is done, gRPC too where the setup has a listener for it. Then nothing new is taken, work is told to stop and given its grace, streams end,
/// and the call returns within the grace and a second more. The error is that of a listener that cannot say where it
/// listens.
pub async fn run(
    listeners: Vec<TcpListener>,
    #[cfg_attr(not(feature = "grpc"), allow(unused_mut, reason = "the listener of gRPC is taken out of it"))]
    mut setup: Setup,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let port = listeners.first().map(TcpListener::local_addr).transpose()?.map_or(0, |address| address.port());
    let host = Arc::new(host(&setup, port));
    host.engine.take_up().await.map_err(io::Error::other)?;
    let app = router(host.clone(), &setup);
    let closing = CancellationToken::new();
    let mut beside = JoinSet::new();
    beside.spawn(host.engine.clone().retain());
    beside.spawn(host.engine.clone().live_together());
    beside.spawn(host.engine.clone().expire());
    let mut accepting = JoinSet::new();
    for listener in listeners {
        let (app, arrival) = (app.clone(), host.arrival);
        let serve = move |stream, closing| connection(stream, app.clone(), arrival, closing);
        accepting.spawn(accept(listener, closing.clone(), serve));
    }
    #[cfg(feature = "grpc")]
    if let Some(listener) = setup.grpc.take() {
        accepting.spawn(crate::grpc::listen(listener, host.clone(), closing.clone()));
    }
    shutdown.await;
    closing.cancel();
    host.engine.shut_down(setup.limits.grace).await;
    beside.shutdown().await;
    host.engine.leave().await;
    let _ = tokio::time::timeout(CLOSE_LIMIT, async { while accepting.join_next().await.is_some() {} }).await;
    Ok(())
}

fn host(setup: &Setup, port: u16) -> Host {
    let card = card::declaring(setup, setup.agent.card());
    let capabilities = &card.capabilities;
    let promises = Promises {
        streaming: capabilities.streaming.unwrap_or_default(),
        push: capabilities.push_notifications.unwrap_or_default(),
        extended_card: capabilities.extended_agent_card.unwrap_or_default(),
        input_modes: card.default_input_modes.clone(),
    };
    Host {
        engine: Engine::new(setup, promises),
        door: Door::new(setup, &card, port),
        cards: Cards::new(setup),
        realm: card.name,
        body_limit: setup.limits.body,
        arrival: setup.limits.arrival,
        keep_alive: setup.limits.keep_alive,
        rest_path: setup.rest_path.clone(),
        plain_json: setup.plain_json,
    }
}

fn router(host: Arc<Host>, setup: &Setup) -> Router {
    let rpc = |State(host): State<Arc<Host>>, request: Request<Body>| jsonrpc::serve(host, request);
    let rest = |State(host): State<Arc<Host>>, request: Request<Body>| rest::serve(host, request);
    let card = |State(host): State<Arc<Host>>, headers: HeaderMap| async move {
        host.cards.answer(&host.door.base_url(&headers), &headers)
    };
    let keys = |State(host): State<Arc<Host>>, headers: HeaderMap| async move {
        let nothing = || Envelope::Bare(media::JSON).error(&ErrorKind::MethodNotFound.into());
        host.cards.answer_keys(&headers).unwrap_or_else(nothing)
    };
    let approve = |State(host): State<Arc<Host>>, Path(id): Path<String>, request: Request<Body>| async move {
        approvals::approve(host, &id, request).await
    };
    let refuse = |State(host): State<Arc<Host>>, Path(id): Path<String>, request: Request<Body>| async move {
        operators::decide(host, &id, request, operators::Act::Refuse).await
    };
    let approvals =
        |State(host): State<Arc<Host>>, headers: HeaderMap| async move { approvals::list(host, &headers).await };
    let failed = |State(host): State<Arc<Host>>, headers: HeaderMap| async move {
        approvals::failed_webhooks(host, &headers).await
    };
    let nothing = || async { Envelope::Bare(media::JSON).error(&ErrorKind::MethodNotFound.into()) };
    let open = Router::new()
        .route(&setup.rpc_path, any(rpc))
        .route(&format!("{}/", setup.rpc_path.trim_end_matches('/')), any(rpc))
        .route(&format!("{}/{{*path}}", setup.rest_path), any(rest))
        .route(media::CARD_PATH, get(card))
        .route(signature::JWKS_PATH, get(keys))
        .fallback(nothing);
    let open = match cors::layer(&setup.cors) {
        Some(layer) => open.layer(layer),
        None => open,
    };
    let own = open
        .route("/approve/{id}", post(approve))
        .route("/refuse/{id}", post(refuse))
        .route("/approvals", get(approvals))
        .route("/push/failed", get(failed));
    let named = setup.operators.is_some();
    let own = if named || setup.agent.asks_approval() { own.merge(page::routes(named)) } else { own };
    own.with_state(host)
}

/// Takes connections until told to stop, then lets them finish.
pub(crate) async fn accept<F, Served>(listener: TcpListener, closing: CancellationToken, serve: F)
where
    F: Fn(TcpStream, CancellationToken) -> Served,
    Served: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, closing.clone()));
                }
                Err(cause) => {
                    // Out of file descriptors, most likely; the next one may go.
                    tracing::warn!(%cause, "a connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, app: Router, arrival: Duration, closing: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(arrival)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    tokio::pin!(served);
    let done = tokio::select! {
        done = served.as_mut() => done,
        () = closing.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(cause) = done {
        tracing::debug!(%cause, "a connection ended early");
    }
}
