//! The frames of a stream, one after the other.

use protocol::error::RemoteError;
use protocol::{StreamResponse, media, rpc, sse};

use crate::choose::Binding;
use crate::error::ClientError;
use crate::http::{self, Body, Opened, SHOWN, next_piece};

/// One frame.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Its data as it came; from gRPC, the JSON that says the same.
    pub data: String,
    /// What the data says.
    pub response: StreamResponse,
}

/// A stream that is open. Dropping it closes the connection.
#[derive(Debug)]
pub struct Events {
    opened: Opened,
    reader: sse::Reader,
    binding: Binding,
    /// How the stream begins, until its first frame: shown when it turns out to be none.
    beginning: Option<Vec<u8>>,
    over: bool,
}

impl Events {
    pub(crate) fn new(mut opened: Opened, binding: Binding) -> Self {
        if let Some(exchange) = &mut opened.exchange {
            exchange.opened(opened.status, &opened.headers);
        }
        Self { opened, reader: sse::Reader::default(), binding, beginning: Some(Vec::new()), over: false }
    }

    /// The data of the next frame, whatever it says; `None` at the end. A stream that ends inside an event was cut, and
    /// one that ends without any event was none: that is never a success (specification 3.1.2).
    pub async fn next_data(&mut self) -> Result<Option<String>, ClientError> {
        let next = self.read().await;
        match (&next, &mut self.opened.exchange) {
            (Ok(Some(data)), Some(exchange)) => exchange.frame(data),
            (Ok(None), Some(exchange)) => exchange.ended(),
            (Err(error), Some(exchange)) => exchange.failed(&error.to_string()),
            (_, None) => {}
        }
        next
    }

    async fn read(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            if let Some(event) = self.reader.next() {
                self.beginning = None;
                return Ok(Some(event.data));
            }
            if self.over {
                return Ok(None);
            }
            #[allow(clippy::infallible_destructuring_match, reason = "there are two with the feature grpc")]
            let response = match &mut self.opened.body {
                Body::Http(response) => response,
                #[cfg(feature = "grpc")]
                Body::Grpc(messages) => {
                    let data = messages.next().await?;
                    if self.beginning.take().is_some() && data.is_none() {
                        return Err(messages.not_a2a(&"not one event came"));
                    }
                    return Ok(data);
                }
            };
            match next_piece(response, &self.opened.origin, self.opened.idle).await? {
                Some(piece) => {
                    if let Some(beginning) = self.beginning.as_mut().filter(|beginning| beginning.len() < SHOWN) {
                        beginning.extend_from_slice(&piece[..piece.len().min(SHOWN - beginning.len())]);
                    }
                    let origin = || self.opened.origin.clone();
                    let broken =
                        |broken: sse::Broken| ClientError::Broken { origin: origin(), why: broken.to_string() };
                    self.reader.push(&piece).map_err(broken)?;
                }
                None => {
                    self.over = true;
                    if let Some(beginning) = self.beginning.take() {
                        return Err(self.not_a2a(format!("not one event came, {}", http::beginning(&beginning))));
                    }
                    if self.reader.is_cut() {
                        return Err(ClientError::Cut { origin: self.opened.origin.clone() });
                    }
                }
            }
        }
    }

    fn not_a2a(&self, why: String) -> ClientError {
        let (origin, status) = (self.opened.origin.clone(), self.opened.status);
        ClientError::NotA2a { origin, status, content_type: media::EVENT_STREAM.to_owned(), why }
    }

    /// The next frame; `None` at the end. An error frame is [`ClientError::Remote`].
    pub async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        let Some(data) = self.next_data().await? else { return Ok(None) };
        let response = decode(&data, self.binding).map_err(|error| match error {
            Undecodable::Remote(error) => ClientError::Remote(error),
            Undecodable::Nonsense(why) => self.not_a2a(why),
        })?;
        Ok(Some(Frame { data, response }))
    }

    /// Says something about the stream to whoever listens.
    pub fn note(&mut self, text: &str) {
        if let Some(exchange) = &mut self.opened.exchange {
            exchange.note(text);
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(exchange) = &mut self.opened.exchange {
            exchange.ended();
        }
    }
}

enum Undecodable {
    Remote(RemoteError),
    Nonsense(String),
}

fn decode(data: &str, binding: Binding) -> Result<StreamResponse, Undecodable> {
    let nonsense = |cause: &dyn std::fmt::Display| Undecodable::Nonsense(format!("a frame is no event: {cause}"));
    match binding {
        Binding::JsonRpc => match rpc::answer(data.as_bytes()) {
            Ok(rpc::Answer::Result(response)) => Ok(response),
            Ok(rpc::Answer::Error(error)) => Err(Undecodable::Remote(error)),
            Err(cause) => Err(nonsense(&cause)),
        },
        #[cfg(feature = "grpc")]
        Binding::Grpc => serde_json::from_str(data).map_err(|cause| nonsense(&cause)),
        Binding::HttpJson => serde_json::from_str(data).map_err(|cause| match http_error(data.as_bytes()) {
            Some(error) => Undecodable::Remote(error),
            None => nonsense(&cause),
        }),
    }
}

/// The error of an HTTP+JSON body, if it holds one.
pub(crate) fn http_error(body: &[u8]) -> Option<RemoteError> {
    #[derive(serde::Deserialize)]
    struct Body {
        error: RemoteError,
    }
    serde_json::from_slice::<Body>(body).ok().map(|body| body.error)
}
