//! The frames of a stream, one after the other.

use protocol::error::RemoteError;
use protocol::{StreamResponse, rpc, sse};

use crate::choose::Binding;
use crate::error::ClientError;
use crate::http::{Opened, next_piece};

/// One frame.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Its data as it came.
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
    over: bool,
}

impl Events {
    pub(crate) fn new(mut opened: Opened, binding: Binding) -> Self {
        if let Some(exchange) = &mut opened.exchange {
            exchange.opened(opened.status, &opened.headers);
        }
        Self { opened, reader: sse::Reader::default(), binding, over: false }
    }

    /// The data of the next frame, whatever it says; `None` at the end. A stream that ends inside an event was cut.
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
                return Ok(Some(event.data));
            }
            if self.over {
                return Ok(None);
            }
            let origin = &self.opened.origin;
            match next_piece(&mut self.opened.response, origin, self.opened.idle).await? {
                Some(piece) => self
                    .reader
                    .push(&piece)
                    .map_err(|broken| ClientError::Broken { origin: origin.clone(), why: broken.to_string() })?,
                None if self.reader.is_cut() => return Err(ClientError::Cut { origin: origin.clone() }),
                None => self.over = true,
            }
        }
    }

    /// The next frame; `None` at the end. An error frame is [`ClientError::Remote`].
    pub async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        let Some(data) = self.next_data().await? else { return Ok(None) };
        let response = decode(&data, self.binding).map_err(|error| match error {
            Undecodable::Remote(error) => ClientError::Remote(error),
            Undecodable::Nonsense(why) => ClientError::NotA2a {
                origin: self.opened.origin.clone(),
                status: self.opened.status,
                content_type: "text/event-stream".to_owned(),
                why,
            },
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
