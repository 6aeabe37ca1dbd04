//! The gRPC binding (specification 10): one service in front of the same operations. Health and reflection stand
//! beside it.
//!
//! tonic frames the messages and knows compression, trailers and statuses; a message is read into a call after its
//! caller has passed the door, as on the other bindings.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::grpc::{Raw, TooDeep, answer, status};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::any;
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use protocol::task::TaskView;
use protocol::{Error, ErrorKind, Method, Task};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};
use tonic_health::ServingStatus;
use tonic_reflection::server::Builder;
use tower::service_fn;

use crate::attempt::Ticket;
use crate::engine::{Caller, Cursor, Sent};
use crate::host::{Answer, Host, shown};
use crate::hub::{Heard, Reader};
use crate::jsonrpc::echo;
use crate::run::accept;
use crate::told::Told;

/// How many calls one connection may have open: whoever follows many tasks can still make another call.
const STREAMS: u32 = 1000;

/// Serves on a listener until told to stop, then lets what is underway finish.
pub(crate) async fn listen(listener: TcpListener, host: Arc<Host>, closing: CancellationToken) {
    let (health, service) = tonic_health::server::health_reporter();
    health.set_service_status(::grpc::SERVICE, ServingStatus::Serving).await;
    let (arrival, period) = (host.arrival, host.keep_alive);
    let routes = |State(host): State<Arc<Host>>, Path(name): Path<String>, request: Request<Body>| async move {
        serve(host, &name, request).await
    };
    let mut app = Router::new()
        .route(&format!("/{}/{{name}}", ::grpc::SERVICE), any(routes))
        .route_service("/grpc.health.v1.Health/{name}", service)
        .fallback(|| async { refusal(&ErrorKind::MethodNotFound.into()) });
    // Old tools ask for reflection under its first name.
    let described = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(::grpc::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    match (described().build_v1(), described().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => {
            app = app
                .route_service("/grpc.reflection.v1.ServerReflection/{name}", v1)
                .route_service("/grpc.reflection.v1alpha.ServerReflection/{name}", v1alpha);
        }
        (Err(cause), _) | (_, Err(cause)) => tracing::error!(%cause, "there is no reflection"),
    }
    let app = app.layer(axum::middleware::map_request(only_grpc)).with_state(host);
    let accepting =
        accept(listener, closing.clone(), |stream, closing| connection(stream, app.clone(), arrival, period, closing));
    let leaving = async {
        closing.cancelled().await;
        for service in ["", ::grpc::SERVICE] {
            health.set_service_status(service, ServingStatus::NotServing).await;
        }
    };
    tokio::join!(accepting, leaving);
}

/// A client that is quiet is asked whether it is still there as often as a stream of the other bindings would carry a
/// comment.
async fn connection(stream: TcpStream, app: Router, arrival: Duration, period: Duration, closing: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let begun = tokio::select! {
        () = closing.cancelled() => return,
        begun = tokio::time::timeout(arrival, begin(stream)) => begun,
    };
    // Whoever has not said by now what it speaks is not waited for.
    let Ok(Ok(stream)) = begun else { return };
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(period)
        .keep_alive_timeout(arrival)
        .max_concurrent_streams(STREAMS)
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

/// Reads as much as shows whether this is HTTP/2. hyper would wait for it without an end, and has the last word on it,
/// so what was read stands before what comes.
async fn begin(stream: TcpStream) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let (mut from, to) = stream.into_split();
    let mut begun = Vec::with_capacity(PREFACE.len());
    while begun.len() < PREFACE.len() && PREFACE.starts_with(&begun) {
        let missing = (PREFACE.len() - begun.len()) as u64;
        if (&mut from).take(missing).read_buf(&mut begun).await? == 0 {
            break;
        }
    }
    Ok(tokio::io::join(io::Cursor::new(begun).chain(from), to))
}

/// Turns away whoever speaks something else.
async fn only_grpc(request: Request<Body>) -> Result<Request<Body>, StatusCode> {
    let stated = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    match stated.strip_prefix(b"application/grpc") {
        Some([] | [b'+' | b';', ..]) => Ok(request),
        _ => Err(StatusCode::UNSUPPORTED_MEDIA_TYPE),
    }
}

fn refusal(error: &Error) -> Response<Body> {
    status::of(error).into_http()
}

fn unauthenticated() -> Status {
    Status::unauthenticated("Send authorization: Bearer <token>")
}

/// Answers one call.
async fn serve(host: Arc<Host>, name: &str, mut request: Request<Body>) -> Response<Body> {
    // Approval links and cards lead to the other bindings, under the name that this caller used.
    let authority = request.uri().authority().map(|authority| format!("{}:{}", authority.host(), host.door.port));
    if let Some(authority) = authority.and_then(|authority| HeaderValue::from_str(&authority).ok()) {
        request.headers_mut().insert(header::HOST, authority);
    }
    let headers = request.headers();
    let Ok(mut caller) = host.door.admit(headers) else { return unauthenticated().into_http() };
    if let Err(error) = host.door.check_version(headers, None) {
        return refusal(&error);
    }
    let Some(method) = Method::from_name(name) else { return refusal(&ErrorKind::MethodNotFound.into()) };
    let activated = match host.door.check_extensions(headers) {
        Ok(activated) => activated,
        Err(error) => return refusal(&error),
    };
    caller.timestamps = activated.timestamps;
    let limit = host.body_limit;
    let called = service_fn(move |request: tonic::Request<Streaming<Bytes>>| {
        let (host, caller) = (host.clone(), caller.clone());
        async move { call(&host, caller, method, request.into_inner()).await.map(tonic::Response::new) }
    });
    let mut framed = tonic::server::Grpc::new(Raw).max_decoding_message_size(limit);
    let mut response = framed.streaming(called, request).await.map(Body::new);
    echo(&mut response, activated);
    response
}

/// An operation has one request, and every answer is a stream here: most are a stream of one.
async fn call(host: &Host, caller: Caller, method: Method, mut requests: Streaming<Bytes>) -> Result<Frames, Status> {
    let refused = |error: Error| status::of(&error);
    let request = tokio::time::timeout(host.arrival, requests.message()).await;
    let late = |_| Status::deadline_exceeded("The message did not arrive in time");
    let request = request.map_err(late)?.map_err(|cause| match cause.code() {
        Code::OutOfRange => Status::resource_exhausted(format!("The message is larger than {} bytes", host.body_limit)),
        _ => refused(ErrorKind::Parse.into()),
    })?;
    let call = ::grpc::call::read_by(method, request.unwrap_or_default(), &|field, text| host.wrong(field, text))
        .map_err(refused)?;
    Ok(match host.carry_out(caller, call, None).await.map_err(refused)? {
        Answer::Sent { sent, history, ticket } => match sent {
            Sent::Message(message) => Frames::one(answer::sent_message(&message).map_err(too_deep)?, Some(ticket)),
            Sent::Task(task) => {
                Frames::one(answer::sent_task(&read(&task)?.view(history, true)).map_err(too_deep)?, Some(ticket))
            }
            Sent::Stream(_) => return Err(refused(ErrorKind::Internal.into())),
        },
        Answer::Frames { sent, history, ticket } => match sent {
            Sent::Message(message) => {
                Frames::one(answer::event(&protocol::StreamResponse::Message(message)).map_err(too_deep)?, ticket)
            }
            Sent::Task(task) => {
                Frames::one(answer::first(&read(&task)?.view(history, true)).map_err(too_deep)?, ticket)
            }
            Sent::Stream(reader) => Frames { one: None, reader: Some(reader), history, ticket },
        },
        Answer::Task { task, history } => {
            Frames::one(answer::task(&read(&task)?.view(history, true)).map_err(too_deep)?, None)
        }
        Answer::Page { page, request } => {
            let tasks = page.tasks.iter().map(read).collect::<Result<Vec<_>, _>>()?;
            Frames::one(
                answer::tasks(&shown(&page, &tasks, &request, &Cursor::after(&page), view_of)).map_err(too_deep)?,
                None,
            )
        }
        Answer::Config(config) => Frames::one(answer::config(&config), None),
        Answer::Configs(configs) => Frames::one(answer::configs(&configs), None),
        Answer::Deleted => Frames::one(answer::deleted(), None),
        Answer::Card(card) => Frames::one(answer::card(&card), None),
        Answer::Unauthenticated => return Err(unauthenticated()),
    })
}

/// What an agent said cannot be read on this binding.
fn too_deep(cause: TooDeep) -> Status {
    tracing::warn!(%cause, "an answer is refused");
    status::of(&cause.into())
}

fn read(task: &Told) -> Result<Arc<Task>, Status> {
    task.task().map_err(|cause| {
        tracing::error!(%cause, "a task that is kept is none");
        status::of(&ErrorKind::Internal.into())
    })
}

fn view_of(task: &Arc<Task>, history: Option<u32>, artifacts: bool) -> TaskView<'_> {
    task.view(history, artifacts)
}

/// The messages of an answer.
struct Frames {
    one: Option<Bytes>,
    reader: Option<Reader>,
    history: Option<u32>,
    /// Told when the answer is taken to be written.
    ticket: Option<Ticket>,
}

impl Frames {
    fn one(message: Bytes, ticket: Option<Ticket>) -> Self {
        Self { one: Some(message), reader: None, history: None, ticket }
    }
}

impl Stream for Frames {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(mut ticket) = self.ticket.take() {
            ticket.answered();
        }
        if let Some(message) = self.one.take() {
            return Poll::Ready(Some(Ok(message)));
        }
        let history = self.history;
        let Some(reader) = &mut self.reader else { return Poll::Ready(None) };
        reader.poll_next(context).map(|heard| {
            heard.map(|heard| match heard {
                Heard::Task(task) => answer::first(&task.view(history, true)).map_err(too_deep),
                Heard::Event(event) => event.message().clone().map_err(too_deep),
                Heard::BrokenOff => Err(status::of(&ErrorKind::Internal.into())),
            })
        })
    }
}
