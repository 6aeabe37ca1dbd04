//! The JSON-RPC binding (specification 9): one URL, one match.

use std::sync::Arc;

use axum::body::Body;
use http::{HeaderValue, Method as Verb, Request, Response, StatusCode, header};
use protocol::rpc::{self, Id, Refusal};
use protocol::{Call, Error, ErrorKind, Method, media};

use crate::door::Activated;
use crate::host::{Envelope, Host, plain_error};

/// Answers one request.
pub(crate) async fn serve(host: Arc<Host>, request: Request<Body>) -> Response<Body> {
    if request.method() != Verb::POST {
        let mut response = plain_error(StatusCode::METHOD_NOT_ALLOWED, "UNIMPLEMENTED", "Send POST");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let (parts, body) = request.into_parts();
    let Ok(mut caller) = host.door.admit(&parts.headers) else { return host.unauthenticated() };
    let body = match host.read(body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let refuse = |id: Id<'_>, error: &Error| Envelope::Rpc(id.into_owned()).error(error);
    if let Some(other) = other_type(&parts.headers, &[media::JSON]) {
        let id = rpc::read(&body).map_or(Id::NULL, |request| request.id.into_owned());
        return refuse(id, &Error::content_type(other));
    }
    let request = match rpc::read(&body) {
        Ok(request) => request,
        Err(Refusal { id, error }) => return refuse(id, &error),
    };
    if let Err(error) = host.door.check_version(&parts.headers, parts.uri.query()) {
        return refuse(request.id, &error);
    }
    let Some(method) = Method::from_name(&request.method) else {
        return refuse(request.id, &ErrorKind::MethodNotFound.into());
    };
    let activated = match host.door.check_extensions(&parts.headers) {
        Ok(activated) => activated,
        Err(error) => return refuse(request.id, &error),
    };
    caller.timestamps = activated.timestamps;
    let call = Call::read_by(method, request.params, &|field, text| host.wrong(field, text));
    let envelope = Envelope::Rpc(request.id.into_owned());
    let mut response = match call {
        Ok(call) => host.answer(caller, call, &parts.headers, envelope).await,
        Err(error) => envelope.error(&error),
    };
    echo(&mut response, activated);
    response
}

/// The content type of the request, when it is none of these. A missing one is taken.
pub(crate) fn other_type<'a>(headers: &'a http::HeaderMap, taken: &[&str]) -> Option<&'a str> {
    let stated = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or("unreadable");
    (!taken.iter().any(|taken| media::is(stated, taken))).then_some(stated)
}

/// Names the extensions that the request activated.
pub(crate) fn echo(response: &mut Response<Body>, activated: Activated) {
    if let Some(active) = activated.header.and_then(|active| HeaderValue::from_str(&active).ok()) {
        response.headers_mut().insert(media::EXTENSIONS_HEADER, active);
    }
}
