//! Calls over gRPC: one message there, and one or many back.
//!
//! They go over the same kind of client as the others, so they are dialled, secured and limited alike. A quiet stream is
//! no reason to give up: the other side has to answer the pings of HTTP/2 in time instead.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::grpc::{Raw, answer, status};
use bytes::{BufMut, Bytes, BytesMut};
use http_body::Frame;
use protocol::{Call, Method, media};
use reqwest::{Client, ClientBuilder, StatusCode, Url, header};
use tonic::codec::Streaming;
use tonic::{Code, Status};

use crate::error::ClientError;
use crate::http::{Body, Http, LARGEST, Limits, Opened, first_cause, headers_of};

/// How often the other side of an open call is asked whether it is still there.
const PING: Duration = Duration::from_secs(15);

/// What gRPC goes over.
pub(crate) fn client(builder: ClientBuilder, limits: &Limits) -> reqwest::Result<Client> {
    builder.http2_prior_knowledge().http2_keep_alive_interval(PING).http2_keep_alive_timeout(limits.idle).build()
}

/// The messages of an answer.
pub(crate) struct Messages {
    pub(crate) method: Method,
    messages: Streaming<Bytes>,
    origin: String,
}

/// Where a card's `host:port` is called. A card may also name a scheme; without one, nothing is encrypted.
fn target(url: &str, method: Method) -> Result<Url, ClientError> {
    let (scheme, rest) = match url.split_once("://") {
        Some(("http" | "grpc", rest)) => ("http", rest),
        Some(("https" | "grpcs", rest)) => ("https", rest),
        Some(_) => return Err(ClientError::Url(url.to_owned())),
        None => ("http", url),
    };
    let target = format!("{scheme}://{rest}{}", ::grpc::path(method)).parse::<Url>();
    target.map_err(|_| ClientError::Url(url.to_owned()))
}

/// Makes a call and waits for the head of its answer. An error of the protocol may already be there.
pub(crate) async fn open(
    http: &Http,
    url: &str,
    call: &Call,
    version: bool,
    token: Option<&str>,
    extensions: Option<&str>,
) -> Result<Opened, ClientError> {
    let method = call.method();
    let bad_url = || ClientError::Url(url.to_owned());
    let mut target = target(url, method)?;
    let (host, port) = (target.host_str().ok_or_else(bad_url)?, target.port_or_known_default().ok_or_else(bad_url)?);
    let origin = format!("{host}:{port}");
    if let Some(socket) = http.dial.get(&origin) {
        let moved = target.set_ip_host(socket.ip()).and_then(|()| target.set_port(Some(socket.port())));
        moved.map_err(|()| bad_url())?;
    }
    let mut request = http.http2.post(target).header(header::CONTENT_TYPE, "application/grpc").header("te", "trailers");
    if version {
        request = request.header(media::VERSION_HEADER, media::VERSION);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(extensions) = extensions {
        request = request.header(media::EXTENSIONS_HEADER, extensions);
    }
    let message = ::grpc::call::write(call).map_err(|cause| ClientError::Request(cause.to_string()))?;
    let response = http.send(request.body(framed(&message)?), &origin, http.limits.of(method)).await?;
    let (status, headers) = (response.status(), headers_of(&response));
    let opened = |body| Opened {
        origin: origin.clone(),
        status: status.as_u16(),
        headers,
        body,
        exchange: None,
        idle: http.limits.idle,
    };
    let stated = response.headers().get(header::CONTENT_TYPE).map(|stated| stated.as_bytes()).unwrap_or_default();
    if status != StatusCode::OK || !stated.starts_with(b"application/grpc") {
        let answer = opened(Body::Http(response)).whole().await?;
        return Err(answer.not_a2a("a gRPC answer"));
    }
    // An answer without a message has its status where others have their headers.
    let early = Status::from_header_map(response.headers());
    if let Some(status) = early.as_ref().filter(|status| status.code() != Code::Ok) {
        return Err(failed(status));
    }
    let body = http::Response::from(response).into_body();
    let messages = match early {
        Some(_) => Streaming::new_empty(Raw, body),
        None => {
            let body = Complete { body, complete: false, origin: origin.clone() };
            Streaming::new_response(Raw, body, status, None, Some(LARGEST))
        }
    };
    Ok(opened(Body::Grpc(Messages { method, messages, origin: origin.clone() })))
}

/// A message behind its length, not compressed.
fn framed(message: &Bytes) -> Result<Bytes, ClientError> {
    let length = u32::try_from(message.len()).map_err(|_| ClientError::Request("it is too large".to_owned()))?;
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(length);
    framed.put_slice(message);
    Ok(framed.freeze())
}

/// What broke on the way stands behind the status that tonic makes of it; the rest is the agent's own word.
fn failed(status: &Status) -> ClientError {
    let cause = std::error::Error::source(status).and_then(|cause| cause.downcast_ref::<ClientError>());
    cause.cloned().unwrap_or_else(|| ClientError::Remote(status::remote(status)))
}

impl Messages {
    /// The next message as JSON; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, ClientError> {
        let Some(message) = self.messages.message().await.map_err(|status| failed(&status))? else { return Ok(None) };
        let read = answer::read(self.method, message).map_err(|cause| self.not_a2a(&cause))?;
        serde_json::to_string(&read).map(Some).map_err(|cause| self.not_a2a(&cause))
    }

    /// The one message as JSON.
    pub(crate) async fn one(&mut self) -> Result<Vec<u8>, ClientError> {
        let one = self.next().await?.ok_or_else(|| self.not_a2a(&"no message came"))?;
        // The status comes after the message.
        self.next().await?;
        Ok(one.into_bytes())
    }

    pub(crate) fn not_a2a(&self, why: &dyn std::fmt::Display) -> ClientError {
        ClientError::NotA2a {
            origin: self.origin.clone(),
            status: 200,
            content_type: "application/grpc".to_owned(),
            why: why.to_string(),
        }
    }
}

/// A body that knows whether it came to its end: what ends without a status was cut.
struct Complete {
    body: reqwest::Body,
    complete: bool,
    origin: String,
}

impl http_body::Body for Complete {
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let origin = || self.origin.clone();
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                self.complete |= frame.is_trailers();
                Some(Ok(frame))
            }
            Some(Err(cause)) => Some(Err(ClientError::Broken { origin: origin(), why: first_cause(&cause) })),
            None if self.complete => None,
            None => Some(Err(ClientError::Cut { origin: origin() })),
        })
    }
}
