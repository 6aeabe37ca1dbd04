//! The card as it is served: with the interfaces of where the caller reaches the agent, signed, and cached; and the keys
//! that its signatures are verified with.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use protocol::card::AgentInterface;
use protocol::{AgentCard, Timestamps, media};
use serde::Serialize;

use crate::host::whole;
use crate::setup::Setup;

/// So many bases are remembered; the base comes from the caller's Host header, so there may be many.
const REMEMBERED: usize = 64;

/// Writes cards.
pub(crate) struct Cards {
    card: AgentCard,
    extended: Option<AgentCard>,
    signing_keys: Vec<signature::Key>,
    /// The public halves of the keys; none when there are none.
    jwks: Option<Written>,
    rpc_path: String,
    rest_path: String,
    tenants: Vec<String>,
    /// The port of the gRPC binding, where it is served.
    grpc: Option<u16>,
    /// Where it is reached instead.
    grpc_public_url: Option<String>,
    since: String,
    written: Mutex<HashMap<Arc<str>, Written>>,
}

#[derive(Clone)]
struct Written {
    body: Bytes,
    etag: HeaderValue,
}

impl Written {
    fn of(value: &impl Serialize) -> Self {
        let body = Bytes::from(serde_json::to_vec(value).unwrap_or_default());
        let mut hash = DefaultHasher::new();
        body.hash(&mut hash);
        let etag = format!("\"{:016x}\"", hash.finish());
        let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"card\""));
        Self { body, etag }
    }
}

fn jwks(keys: &[signature::Key]) -> Option<Written> {
    let published = keys.iter().any(|key| key.public_jwk().is_some());
    published.then(|| Written::of(&signature::jwks::publish(keys)))
}

/// The agent's own card with the extensions that the server adds.
pub(crate) fn declaring(setup: &Setup, mut card: AgentCard) -> AgentCard {
    if setup.timestamps {
        card.capabilities.extensions.extend(Timestamps::ALL.map(Timestamps::declared));
    }
    card
}

impl Cards {
    pub fn new(setup: &Setup) -> Self {
        Self {
            card: declaring(setup, setup.agent.card()),
            extended: setup.agent.extended_card().map(|card| declaring(setup, card)),
            jwks: jwks(&setup.signing_keys),
            signing_keys: setup.signing_keys.clone(),
            rpc_path: setup.rpc_path.clone(),
            rest_path: setup.rest_path.clone(),
            tenants: setup.tenants.clone(),
            #[cfg(feature = "grpc")]
            grpc: setup.grpc.as_ref().and_then(|listener| Some(listener.local_addr().ok()?.port())),
            #[cfg(feature = "grpc")]
            grpc_public_url: setup.grpc_public_url.clone(),
            #[cfg(not(feature = "grpc"))]
            grpc: None,
            #[cfg(not(feature = "grpc"))]
            grpc_public_url: None,
            since: httpdate::fmt_http_date(SystemTime::now()),
            written: Mutex::default(),
        }
    }

    fn with_interfaces(&self, card: &AgentCard, base_url: &str) -> AgentCard {
        let mut places = vec![
            (format!("{base_url}{}", self.rpc_path), "JSONRPC"),
            (format!("{base_url}{}", self.rest_path), "HTTP+JSON"),
        ];
        // gRPC is dialled by host and port: the host is that of the other two.
        if let Some(port) = self.grpc {
            let base = base_url.parse::<http::Uri>().unwrap_or_default();
            let host = base.host().unwrap_or("localhost");
            let usual = || format!("{host}:{port}");
            places.push((self.grpc_public_url.clone().unwrap_or_else(usual), "GRPC"));
        }
        let of_tenant = |tenant: Option<&String>| {
            let interfaces = places.iter().map(|(url, binding)| AgentInterface {
                url: url.clone(),
                protocol_binding: (*binding).to_owned(),
                tenant: tenant.cloned(),
                protocol_version: media::VERSION.to_owned(),
            });
            interfaces.collect::<Vec<_>>()
        };
        let mut card = card.clone();
        card.supported_interfaces = match self.tenants.as_slice() {
            [] => of_tenant(None),
            tenants => tenants.iter().flat_map(|tenant| of_tenant(Some(tenant))).collect(),
        };
        card
    }

    /// The card that authenticated callers see. It is not signed.
    pub fn extended(&self, base_url: &str) -> Option<AgentCard> {
        Some(self.with_interfaces(self.extended.as_ref()?, base_url))
    }

    fn written(&self, base_url: &Arc<str>) -> Written {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = written.get(base_url) {
            return known.clone();
        }
        let mut card = self.with_interfaces(&self.card, base_url);
        let jku = format!("{base_url}{}", signature::JWKS_PATH);
        let mut signatures = Vec::new();
        for key in &self.signing_keys {
            match key.signatures(&card, key.public_jwk().map(|_| jku.as_str())) {
                Ok(made) => signatures.extend(made),
                Err(cause) => tracing::error!(%cause, "the card could not be signed"),
            }
        }
        card.signatures.extend(signatures);
        let new = Written::of(&card);
        if written.len() < REMEMBERED {
            written.insert(base_url.clone(), new.clone());
        }
        new
    }

    /// Answers a request for the card, 304 when the caller has it.
    pub fn answer(&self, base_url: &Arc<str>, headers: &HeaderMap) -> Response<Body> {
        let mut response = self.cached(self.written(base_url), media::JSON, headers);
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("host"));
        response
    }

    /// Answers a request for the keys, 304 when the caller has them. `None` when there are none.
    pub fn answer_keys(&self, headers: &HeaderMap) -> Option<Response<Body>> {
        Some(self.cached(self.jwks.clone()?, media::JWK_SET, headers))
    }

    fn cached(&self, written: Written, content_type: &'static str, headers: &HeaderMap) -> Response<Body> {
        let Written { body, etag } = written;
        let same = match headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()) {
            Some(known) => {
                known.split(',').map(str::trim).any(|known| known == "*" || known.as_bytes() == etag.as_bytes())
            }
            None => {
                headers.get(header::IF_MODIFIED_SINCE).is_some_and(|value| value.as_bytes() == self.since.as_bytes())
            }
        };
        let mut response = if same {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            whole(StatusCode::OK, content_type, body)
        };
        let answered = response.headers_mut();
        answered.insert(header::ETAG, etag);
        answered.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
        if let Ok(since) = HeaderValue::from_str(&self.since) {
            answered.insert(header::LAST_MODIFIED, since);
        }
        response
    }
}
