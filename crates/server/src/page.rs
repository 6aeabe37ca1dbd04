//! The operators' page, `GET /operator`: what waits for an approval, and two buttons. One file each of HTML, script and
//! style, all of them this agent's own, so that the policy below can forbid everything else.
//!
//! The page has no right of its own. It makes the calls of [`crate::operators`] with the token that an operator types,
//! which it keeps in memory: with no cookie, a page of another site has nothing that the browser would add for it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use crate::host::{Host, whole};

const HTML: &str = include_str!("page/page.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");
const ICON: &str = include_str!("page/icon.svg");

/// Nothing is loaded, run or called but what comes from this agent; no page frames this one, no text becomes code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'none'; frame-ancestors 'none'; base-uri 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The page and what belongs to it. `named` says whether operators have names, and so tokens.
pub(crate) fn routes(named: bool) -> Router<Arc<Host>> {
    let page = HTML.replace("{operators}", if named { "named" } else { "nobody" });
    let page = Bytes::from(page);
    let own = |text: &'static str| Bytes::from_static(text.as_bytes());
    Router::new()
        .route("/operator", get(async move || shown("text/html; charset=utf-8", page)))
        .route("/operator/page.js", get(async move || shown("text/javascript; charset=utf-8", own(SCRIPT))))
        .route("/operator/page.css", get(async move || shown("text/css; charset=utf-8", own(STYLE))))
        .route("/operator/icon.svg", get(async move || shown("image/svg+xml", own(ICON))))
}

fn shown(content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = whole(StatusCode::OK, content_type, body);
    let headers = response.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
    say(header::CONTENT_SECURITY_POLICY, POLICY);
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(header::REFERRER_POLICY, "no-referrer");
    say(header::CACHE_CONTROL, "no-store");
    say(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    response
}
