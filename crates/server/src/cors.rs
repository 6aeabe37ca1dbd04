//! Which web pages may call the agent (Cross-Origin Resource Sharing). Only where a flag says so, and only the bindings,
//! the card and its keys; approvals are no page's business.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, header};
use protocol::media;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may remember what a preflight told it.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Reads one value of the flag: an origin as browsers send it, or `*`.
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let authority = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let bare = |authority: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._:[]".contains(letter);
        !authority.is_empty() && authority.chars().all(plain)
    };
    if text == "*" || authority.is_some_and(bare) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("an origin is a scheme, a host and perhaps a port, such as http://localhost:5173, or *".to_owned())
    }
}

/// The layer that answers preflights and marks answers, errors and streams too. `None` without origins.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    let name = HeaderName::from_static;
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::ACCEPT,
            header::AUTHORIZATION,
            header::CACHE_CONTROL,
            header::CONTENT_TYPE,
            header::IF_MODIFIED_SINCE,
            header::IF_NONE_MATCH,
            name("last-event-id"),
            name(media::VERSION_HEADER),
            name(media::EXTENSIONS_HEADER),
        ])
        .expose_headers([
            header::ALLOW,
            header::ETAG,
            header::LAST_MODIFIED,
            header::WWW_AUTHENTICATE,
            name(media::EXTENSIONS_HEADER),
        ])
        .max_age(REMEMBERED);
    Some(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host_and_nothing_more() {
        for fine in ["*", "http://localhost:5173", "https://app.example", "http://[::1]:80"] {
            assert_eq!(origin(fine).as_deref(), Ok(fine));
        }
        assert_eq!(origin("HTTP://x").ok(), None);
        assert_eq!(origin("http://LocalHost:1").as_deref(), Ok("http://localhost:1"));
        for wrong in
            ["", "localhost:5173", "http://", "http://x/", "http://x/y", "http://a@b", "ftp://x", "http://x ", "null"]
        {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
