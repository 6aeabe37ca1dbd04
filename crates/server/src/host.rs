//! What all bindings share: the engine, the door, the cards, and how answers are written.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use protocol::call::{
    Call, ListTaskPushNotificationConfigsResponse, ListTasksPage, ListTasksRequest, SendMessageResponse,
    TaskPushNotificationConfigRequest,
};
use protocol::error::HttpError;
use protocol::rpc::{self, Id};
use protocol::{AgentCard, Error, ErrorKind, StreamResponse, TaskPushNotificationConfig, media, sse};
use serde::Serialize;
use tokio::time::Sleep;

use crate::attempt::Ticket;
use crate::card::Cards;
use crate::door::Door;
use crate::engine::{Answered, Caller, Cursor, Engine, Sent};
use crate::hub::{Heard, Reader};
use crate::store::Page;
use crate::told::{Told, View};

/// One agent as it is served.
pub(crate) struct Host {
    pub engine: Arc<Engine>,
    pub door: Door,
    pub cards: Cards,
    /// The name in the `WWW-Authenticate` header.
    pub realm: String,
    pub body_limit: usize,
    pub arrival: Duration,
    pub keep_alive: Duration,
    pub rest_path: String,
    pub plain_json: bool,
}

/// What a call came to. Each binding writes it in its own way.
pub(crate) enum Answer {
    /// What became of a message. Never a stream.
    Sent { sent: Sent, history: Option<u32>, ticket: Ticket },
    /// A stream, or the one frame that is all of it. A subscription has no ticket.
    Frames { sent: Sent, history: Option<u32>, ticket: Option<Ticket> },
    /// A task.
    Task { task: Told, history: Option<u32> },
    /// A page of tasks; [`shown`] says how the request wants it.
    Page { page: Page, request: ListTasksRequest },
    /// A webhook.
    Config(TaskPushNotificationConfig),
    /// All webhooks of a task.
    Configs(ListTaskPushNotificationConfigsResponse),
    /// A webhook is gone.
    Deleted,
    /// The card that authenticated callers see.
    Card(Box<AgentCard>),
    /// Only somebody who has shown who it is may have it.
    Unauthenticated,
}

/// How a binding over HTTP wraps what it answers.
#[derive(Debug, Clone)]
pub(crate) enum Envelope {
    /// JSON-RPC, with the request's id.
    Rpc(Id<'static>),
    /// HTTP+JSON, with the content type of the answer.
    Bare(&'static str),
}

impl Envelope {
    fn content_type(&self) -> &'static str {
        match self {
            Self::Rpc(_) => media::JSON,
            Self::Bare(content_type) => content_type,
        }
    }

    /// An answer that holds a result.
    fn result(&self, result: &impl Serialize) -> Response<Body> {
        let body = match self {
            Self::Rpc(id) => rpc::result(id, result),
            Self::Bare(_) => serde_json::to_vec(result).map(Bytes::from),
        };
        match body {
            Ok(body) => whole(StatusCode::OK, self.content_type(), body),
            Err(cause) => {
                tracing::error!(%cause, "an answer could not be written");
                self.error(&ErrorKind::Internal.into())
            }
        }
    }

    /// An answer that holds a result which is JSON already, in pieces.
    fn pieces(&self, pieces: &[&str]) -> Response<Body> {
        // What stands around a result is shorter than this.
        let mut body = Vec::with_capacity(100 + pieces.iter().map(|piece| piece.len()).sum::<usize>());
        if let Self::Rpc(id) = self {
            rpc::open(&mut body, id, "result");
        }
        pieces.iter().for_each(|piece| body.extend_from_slice(piece.as_bytes()));
        if let Self::Rpc(_) = self {
            body.push(b'}');
        }
        whole(StatusCode::OK, self.content_type(), body.into())
    }

    /// An answer that holds a task.
    fn task(&self, view: &View<'_>) -> Response<Body> {
        match view.text() {
            Some(text) => self.pieces(&[text]),
            None => self.result(view),
        }
    }

    /// An answer that holds a task as what became of a message.
    fn first(&self, view: View<'_>) -> Response<Body> {
        match view.text() {
            Some(text) => self.pieces(&["{\"task\":", text, "}"]),
            None => self.result(&First(view)),
        }
    }

    /// An answer that holds an error.
    pub fn error(&self, error: &Error) -> Response<Body> {
        match self {
            Self::Rpc(id) => whole(StatusCode::OK, media::JSON, rpc::error(id, error)),
            Self::Bare(content_type) => {
                let status = StatusCode::from_u16(error.kind().http_status());
                let body = serde_json::to_vec(&HttpError(error)).unwrap_or_default();
                whole(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), content_type, body.into())
            }
        }
    }

    /// Writes one frame of a stream.
    fn frame(&self, buffer: &mut Vec<u8>, number: Option<u64>, member: &str, json: impl FnOnce(&mut Vec<u8>)) {
        sse::open(buffer, number);
        match self {
            Self::Rpc(id) => {
                rpc::open(buffer, id, member);
                json(buffer);
                buffer.push(b'}');
            }
            Self::Bare(_) => json(buffer),
        }
        buffer.extend_from_slice(b"\n\n");
    }

    fn result_frame(&self, buffer: &mut Vec<u8>, number: Option<u64>, result: &impl Serialize) {
        self.frame(buffer, number, "result", |buffer| {
            if let Err(cause) = serde_json::to_writer(buffer, result) {
                tracing::error!(%cause, "an answer could not be written");
            }
        });
    }

    fn error_frame(&self, buffer: &mut Vec<u8>, error: &Error) {
        // Writing an error's strings and numbers into memory cannot fail.
        self.frame(buffer, None, "error", |buffer| {
            let _ = match self {
                Self::Rpc(_) => serde_json::to_writer(buffer, error),
                Self::Bare(_) => serde_json::to_writer(buffer, &HttpError(error)),
            };
        });
    }
}

/// An answer whose body is there.
pub(crate) fn whole(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// An answer outside the protocol's table, in the same form.
pub(crate) fn plain_error(status: StatusCode, word: &str, message: &str) -> Response<Body> {
    let body = serde_json::json!({"error": {"code": status.as_u16(), "status": word, "message": message}});
    whole(status, media::JSON, body.to_string().into())
}

fn history_length(wanted: Option<i32>) -> Option<u32> {
    wanted.and_then(|length| u32::try_from(length).ok())
}

impl Host {
    /// The answer to a caller who has not shown who it is.
    pub fn unauthenticated(&self) -> Response<Body> {
        let message = "Send Authorization: Bearer <token>";
        let mut response = plain_error(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", message);
        let challenge = HeaderValue::from_str(&format!("Bearer realm=\"{}\"", self.realm));
        if let Ok(challenge) = challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// Reads a body of at most the limit, of which each piece comes in time.
    pub async fn read(&self, mut body: Body) -> Result<Bytes, Response<Body>> {
        let too_large = || {
            let message = format!("The body is larger than {} bytes", self.body_limit);
            plain_error(StatusCode::PAYLOAD_TOO_LARGE, "INVALID_ARGUMENT", &message)
        };
        let refused = |status, message| plain_error(status, "INVALID_ARGUMENT", message);
        if http_body::Body::size_hint(&body).lower() > self.body_limit as u64 {
            return Err(too_large());
        }
        let (mut first, mut all) = (Bytes::new(), Vec::new());
        loop {
            let Ok(piece) = tokio::time::timeout(self.arrival, body.frame()).await else {
                return Err(refused(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time"));
            };
            let Some(piece) = piece else { break };
            let Ok(piece) = piece else {
                return Err(refused(StatusCode::BAD_REQUEST, "The body did not arrive whole"));
            };
            // What is no data are trailers, of which none is known.
            let Ok(piece) = piece.into_data() else { continue };
            if first.len() + all.len() + piece.len() > self.body_limit {
                return Err(too_large());
            }
            if first.is_empty() && all.is_empty() {
                first = piece;
            } else {
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&piece);
            }
        }
        Ok(if all.is_empty() { first } else { all.into() })
    }

    /// What is wrong with a text of a request that the protocol does not know of: its tenant, a page that is none of
    /// this agent's, a webhook that may not be.
    pub fn wrong(&self, field: &str, text: &str) -> Option<String> {
        match field {
            "tenant" => self.door.wrong_tenant(text),
            _ => self.engine.wrong(field, text),
        }
    }

    /// Does what a call asks and writes the answer as the bindings over HTTP do.
    pub async fn answer(&self, caller: Caller, call: Call, headers: &HeaderMap, envelope: Envelope) -> Response<Body> {
        let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
        match self.carry_out(caller, call, seen).await {
            Ok(answer) => self.write(answer, &envelope),
            Err(error) => envelope.error(&error),
        }
    }

    /// Does what a call asks, one with which nothing is wrong: the one place where operations meet the engine. `seen` is the number of the last event
    /// that a subscriber has seen.
    pub async fn carry_out(&self, caller: Caller, call: Call, seen: Option<u64>) -> Result<Answer, Error> {
        let engine = &self.engine;
        let caller = self.door.within(caller, call.tenant());
        if call.method().streams() && !engine.promises.streaming {
            return Err(ErrorKind::UnsupportedOperation.into());
        }
        Ok(match call {
            Call::SendMessage(request) => {
                let history = history(&request);
                let Answered { sent, ticket } = engine.send(caller, request, false).await?;
                Answer::Sent { sent, history, ticket }
            }
            Call::SendStreamingMessage(request) => {
                let history = history(&request);
                let Answered { sent, ticket } = engine.send(caller, request, true).await?;
                Answer::Frames { sent, history, ticket: Some(ticket) }
            }
            Call::GetTask(request) => {
                let task = engine.get(&caller, &request.id).await?;
                Answer::Task { task, history: history_length(request.history_length) }
            }
            Call::ListTasks(request) => {
                let page = engine.list(&caller, &request).await?;
                Answer::Page { page, request }
            }
            Call::CancelTask(request) => {
                Answer::Task { task: Box::pin(engine.cancel(&caller, &request.id)).await?.into(), history: None }
            }
            Call::SubscribeToTask(request) => {
                let reader = Box::pin(engine.subscribe(&caller, &request, seen)).await?;
                Answer::Frames { sent: Sent::Stream(reader), history: None, ticket: None }
            }
            Call::CreateTaskPushNotificationConfig(config) => {
                Answer::Config(Box::pin(engine.create_config(&caller, config)).await?)
            }
            Call::GetTaskPushNotificationConfig(TaskPushNotificationConfigRequest { task_id, id, .. }) => {
                Answer::Config(engine.get_config(&caller, &task_id, &id).await?)
            }
            Call::ListTaskPushNotificationConfigs(request) => {
                let configs = engine.list_configs(&caller, &request.task_id).await?;
                Answer::Configs(ListTaskPushNotificationConfigsResponse { configs, next_page_token: None })
            }
            Call::DeleteTaskPushNotificationConfig(TaskPushNotificationConfigRequest { task_id, id, .. }) => {
                Box::pin(engine.delete_config(&caller, &task_id, &id)).await?;
                Answer::Deleted
            }
            Call::GetExtendedAgentCard(_) => {
                if !engine.promises.extended_card {
                    return Err(ErrorKind::UnsupportedOperation.into());
                }
                if !self.door.is_locked() {
                    return Ok(Answer::Unauthenticated);
                }
                let card = self.cards.extended(&caller.base_url);
                Answer::Card(card.ok_or(ErrorKind::ExtendedAgentCardNotConfigured)?.into())
            }
        })
    }

    fn write(&self, answer: Answer, envelope: &Envelope) -> Response<Body> {
        match answer {
            Answer::Sent { sent, history, ticket } => {
                let response = match sent {
                    Sent::Message(message) => envelope.result(&SendMessageResponse::Message(message)),
                    Sent::Task(task) => envelope.first(task.view(history, true)),
                    Sent::Stream(_) => envelope.error(&ErrorKind::Internal.into()),
                };
                marking(response, ticket)
            }
            Answer::Frames { sent, history, ticket } => match sent {
                Sent::Stream(reader) => self.stream(reader, history, ticket, envelope),
                Sent::Message(message) => self.one_frame(&StreamResponse::Message(message), ticket, envelope),
                Sent::Task(task) => self.one_frame(&First(task.view(history, true)), ticket, envelope),
            },
            Answer::Task { task, history } => envelope.task(&task.view(history, true)),
            Answer::Page { page, request } => {
                envelope.result(&shown(&page, &page.tasks, &request, &Cursor::after(&page), Told::view))
            }
            Answer::Config(config) => envelope.result(&config),
            Answer::Configs(configs) => envelope.result(&configs),
            Answer::Deleted => envelope.result(&serde_json::Map::new()),
            Answer::Card(card) => envelope.result(&*card),
            Answer::Unauthenticated => self.unauthenticated(),
        }
    }

    fn one_frame(&self, result: &impl Serialize, ticket: Option<Ticket>, envelope: &Envelope) -> Response<Body> {
        let mut buffer = Vec::with_capacity(512);
        envelope.result_frame(&mut buffer, None, result);
        let response = event_stream(Body::from(buffer));
        match ticket {
            Some(ticket) => marking(response, ticket),
            None => response,
        }
    }

    fn stream(
        &self,
        reader: Reader,
        history: Option<u32>,
        ticket: Option<Ticket>,
        envelope: &Envelope,
    ) -> Response<Body> {
        let events =
            Events { reader, history, envelope: envelope.clone(), period: self.keep_alive, quiet: None, ticket };
        event_stream(Body::new(events))
    }
}

/// A page as its request wants it: each task cut by `view`, `next` the token of the page after it.
pub(crate) fn shown<'a, P, T>(
    page: &'a Page,
    tasks: &'a [P],
    request: &ListTasksRequest,
    next: &'a str,
    view: impl Fn(&'a P, Option<u32>, bool) -> T,
) -> ListTasksPage<'a, T> {
    let artifacts = request.include_artifacts.unwrap_or_default();
    let history = history_length(request.history_length);
    ListTasksPage {
        tasks: tasks.iter().map(|task| view(task, history, artifacts)).collect(),
        next_page_token: next,
        page_size: request.page_size.and_then(|size| u32::try_from(size).ok()).unwrap_or(50),
        total_size: page.total,
    }
}

fn history(request: &protocol::call::SendMessageRequest) -> Option<u32> {
    history_length(request.configuration.as_ref().and_then(|configuration| configuration.history_length))
}

/// `{"task": …}`.
struct First<T>(T);

impl<T: Serialize> Serialize for First<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("task", &self.0)])
    }
}

fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media::EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would hold events back otherwise.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The same answer, which tells its ticket when its body is taken to be written.
fn marking(response: Response<Body>, ticket: Ticket) -> Response<Body> {
    response.map(|body| Body::new(Marking { body, ticket }))
}

/// A body that says when it is taken to be written.
struct Marking {
    body: Body,
    ticket: Ticket,
}

impl http_body::Body for Marking {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.ticket.answered();
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How many bytes the events of a short stream are, about.
const FRAMES: usize = 1000;
/// How many bytes of ready events go out in one piece.
const PIECE: usize = 64 << 10;

/// A stream of events as a body. Events that are ready together leave together.
struct Events {
    reader: Reader,
    history: Option<u32>,
    envelope: Envelope,
    period: Duration,
    quiet: Option<Pin<Box<Sleep>>>,
    ticket: Option<Ticket>,
}

impl Events {
    fn write(&self, buffer: &mut Vec<u8>, heard: Heard) {
        match heard {
            Heard::Task(task) => {
                let first = First(task.view(self.history, true));
                self.envelope.result_frame(buffer, Some(self.reader.number()), &first);
            }
            Heard::Event(event) => self.envelope.frame(buffer, Some(event.number), "result", |buffer| {
                buffer.extend_from_slice(event.json());
            }),
            Heard::BrokenOff => self.envelope.error_frame(buffer, &ErrorKind::Internal.into()),
        }
    }
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if let Some(mut ticket) = this.ticket.take() {
            ticket.answered();
        }
        let mut buffer = Vec::new();
        while buffer.len() < PIECE {
            match this.reader.poll_next(context) {
                Poll::Ready(Some(heard)) => {
                    if buffer.capacity() == 0 {
                        buffer.reserve(FRAMES);
                    }
                    this.write(&mut buffer, heard);
                }
                Poll::Ready(None) if buffer.is_empty() => return Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if buffer.is_empty() {
            let period = this.period;
            let quiet = this.quiet.get_or_insert_with(|| Box::pin(tokio::time::sleep(period)));
            if quiet.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            quiet.as_mut().reset(tokio::time::Instant::now() + period);
            // Registers the new time.
            let _ = quiet.as_mut().poll(context);
            buffer.extend_from_slice(sse::KEEP_ALIVE);
        }
        Poll::Ready(Some(Ok(Frame::data(buffer.into()))))
    }
}
