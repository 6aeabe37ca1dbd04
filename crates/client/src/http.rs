//! One HTTP exchange: dialled through the map, told to the tap, bounded in time and size.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::{Dial, media};
use reqwest::{Client, Method, Url, header};

use crate::error::ClientError;
use crate::tap::{Exchange, Headers, Sent, Tap};

/// Time limits of a client.
#[derive(Debug, Clone)]
pub struct Limits {
    /// For connecting.
    pub connect: Duration,
    /// For the answer to a message to begin. None: as long as it takes, as a blocking send may wait for hours.
    pub answer: Option<Duration>,
    /// For any other answer of an agent to begin: those need no more than a look.
    pub look: Duration,
    /// For the next bytes of a body or a stream. Keep-alives count as bytes.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            answer: None,
            look: Duration::from_secs(30),
            idle: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// The limit for the answer of an operation to begin.
    pub(crate) fn of(&self, method: protocol::Method) -> Option<Duration> {
        match method {
            protocol::Method::SendMessage | protocol::Method::SendStreamingMessage => self.answer,
            _ => Some(self.look),
        }
    }
}

/// How much of a body is shown that is no A2A, in characters.
pub(crate) const SHOWN: usize = 80;

/// The largest answer that is read whole, in bytes.
pub(crate) const LARGEST: usize = 64 << 20;

/// Makes HTTP exchanges. Cheap to clone.
#[derive(Clone)]
pub struct Http {
    client: Client,
    /// What gRPC goes over: HTTP/2, whoever answers.
    #[cfg(feature = "grpc")]
    pub(crate) http2: Client,
    pub(crate) dial: Dial,
    pub(crate) limits: Limits,
    tap: Option<Arc<dyn Tap>>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("dial", &self.dial).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Who answered: host and port.
    pub origin: String,
    /// The HTTP status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, whose name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The content type; empty when there is none.
    pub fn content_type(&self) -> &str {
        self.header("content-type").unwrap_or_default()
    }

    /// The error for an answer that is not what was expected.
    pub fn not_a2a(&self, expected: &str) -> ClientError {
        let content_type = if self.content_type().is_empty() { "-" } else { self.content_type() };
        ClientError::NotA2a {
            origin: self.origin.clone(),
            status: self.status,
            content_type: content_type.to_owned(),
            why: format!("{expected} was expected, {}", beginning(&self.body)),
        }
    }
}

/// How a body begins, in words.
pub(crate) fn beginning(body: &[u8]) -> String {
    if body.is_empty() {
        return "its body is empty".to_owned();
    }
    let start: String = String::from_utf8_lossy(body).chars().take(SHOWN).collect();
    format!("it begins with {start:?}")
}

/// An answer whose head is there.
pub struct Opened {
    pub(crate) origin: String,
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: Body,
    pub(crate) exchange: Option<Box<dyn Exchange>>,
    pub(crate) idle: Duration,
}

/// Where the rest of an answer comes from.
pub(crate) enum Body {
    Http(reqwest::Response),
    #[cfg(feature = "grpc")]
    Grpc(crate::grpc::Messages),
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("origin", &self.origin).field("status", &self.status).finish_non_exhaustive()
    }
}

impl Opened {
    /// Whether a stream of events follows.
    pub fn is_event_stream(&self) -> bool {
        #[cfg(feature = "grpc")]
        if let Body::Grpc(messages) = &self.body {
            return messages.method.streams();
        }
        let stated = self.headers.iter().find(|(name, _)| name == "content-type");
        stated.is_some_and(|(_, value)| media::is(value, media::EVENT_STREAM))
    }

    /// Reads the body to its end.
    pub async fn whole(mut self) -> Result<Answer, ClientError> {
        match self.read().await {
            Ok(body) => {
                if let Some(exchange) = &mut self.exchange {
                    exchange.answered(self.status, &self.headers, &body);
                }
                Ok(Answer { origin: self.origin, status: self.status, headers: self.headers, body })
            }
            Err(error) => {
                if let Some(exchange) = &mut self.exchange {
                    exchange.failed(&error.to_string());
                }
                Err(error)
            }
        }
    }

    async fn read(&mut self) -> Result<Vec<u8>, ClientError> {
        #[allow(clippy::infallible_destructuring_match, reason = "there are two with the feature grpc")]
        let response = match &mut self.body {
            Body::Http(response) => response,
            #[cfg(feature = "grpc")]
            Body::Grpc(messages) => return messages.one().await,
        };
        let mut body = Vec::new();
        while let Some(piece) = next_piece(response, &self.origin, self.idle).await? {
            body.extend_from_slice(&piece);
            if body.len() > LARGEST {
                let why = format!("the answer is larger than {LARGEST} bytes");
                return Err(ClientError::Broken { origin: self.origin.clone(), why });
            }
        }
        Ok(body)
    }
}

pub(crate) async fn next_piece(
    response: &mut reqwest::Response,
    origin: &str,
    idle: Duration,
) -> Result<Option<Bytes>, ClientError> {
    let origin = || origin.to_owned();
    match tokio::time::timeout(idle, response.chunk()).await {
        Ok(Ok(piece)) => Ok(piece),
        Ok(Err(cause)) => Err(ClientError::Broken { origin: origin(), why: first_cause(&cause) }),
        Err(_) => Err(ClientError::TooSlow { origin: origin(), what: "the next bytes", limit: idle }),
    }
}

/// Names in lower case, in the order in which they came.
pub(crate) fn headers_of(response: &reqwest::Response) -> Headers {
    let headers = response.headers().iter();
    headers.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())).collect()
}

/// The innermost cause, which says most in the fewest words.
pub(crate) fn first_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

impl Http {
    /// A client. It follows no redirects and uses no proxy, so what it sends goes where it says.
    pub fn new(dial: Dial, limits: Limits, tap: Option<Arc<dyn Tap>>) -> Self {
        // Fails when a provider is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .connect_timeout(limits.connect)
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .tcp_nodelay(true)
        };
        Self {
            client: builder().http1_only().build().unwrap_or_default(),
            #[cfg(feature = "grpc")]
            http2: crate::grpc::client(builder(), &limits).unwrap_or_default(),
            dial,
            limits,
            tap,
        }
    }

    /// Sends a request and waits for the head of its answer, as long as it takes. `headers` are sent in this order, after
    /// `Host`.
    pub async fn open(
        &self,
        title: &str,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Opened, ClientError> {
        self.open_within(None, title, method, url, headers, body).await
    }

    /// The same, with a limit to the waiting.
    pub(crate) async fn open_within(
        &self,
        limit: Option<Duration>,
        title: &str,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Opened, ClientError> {
        let bad_url = || ClientError::Url(url.to_owned());
        let mut target: Url = url.parse().map_err(|_| bad_url())?;
        let (Some(host), Some(port)) = (target.host_str(), target.port_or_known_default()) else {
            return Err(bad_url());
        };
        let origin = format!("{host}:{port}");
        let authority = target.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let query = target.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("{}{query}", target.path());
        let mut told: Headers = vec![("Host".to_owned(), authority.clone())];
        told.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let mut exchange = self
            .tap
            .as_ref()
            .map(|tap| tap.begin(Sent { title, method, path: &path, headers: &told, body: body.as_deref() }));
        if let Some(socket) = self.dial.get(&origin) {
            let moved = target.set_ip_host(socket.ip()).and_then(|()| target.set_port(Some(socket.port())));
            moved.map_err(|()| bad_url())?;
        }
        let verb = Method::from_bytes(method.as_bytes()).map_err(|_| bad_url())?;
        let mut request = self.client.request(verb, target).header(header::HOST, authority);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let sent = self.send(request, &origin, limit).await;
        match sent {
            Ok(response) => {
                let status = response.status().as_u16();
                let (headers, body) = (headers_of(&response), Body::Http(response));
                Ok(Opened { origin, status, headers, body, exchange, idle: self.limits.idle })
            }
            Err(error) => {
                if let Some(exchange) = &mut exchange {
                    exchange.failed(&error.to_string());
                }
                Err(error)
            }
        }
    }

    pub(crate) async fn send(
        &self,
        request: reqwest::RequestBuilder,
        origin: &str,
        limit: Option<Duration>,
    ) -> Result<reqwest::Response, ClientError> {
        let origin = origin.to_owned();
        let sent = match limit {
            None => request.send().await,
            Some(limit) => match tokio::time::timeout(limit, request.send()).await {
                Ok(sent) => sent,
                Err(_) => return Err(ClientError::TooSlow { origin, what: "the answer", limit }),
            },
        };
        sent.map_err(|cause| {
            let why = first_cause(&cause);
            if cause.is_builder() {
                ClientError::Request(why)
            } else if cause.is_connect() && cause.is_timeout() {
                ClientError::TooSlow { origin, what: "connecting", limit: self.limits.connect }
            } else if cause.is_connect() {
                ClientError::Unreachable { origin, why }
            } else {
                ClientError::Broken { origin, why }
            }
        })
    }
}
