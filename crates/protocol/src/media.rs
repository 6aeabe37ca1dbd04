//! Media types and header names, each in one place.

/// JSON: the JSON-RPC binding, and the default of a data part.
pub const JSON: &str = "application/json";
/// A2A's own JSON: the HTTP+JSON binding and webhooks (specification 11.1).
pub const A2A_JSON: &str = "application/a2a+json";
/// A set of public keys (RFC 7517).
pub const JWK_SET: &str = "application/jwk-set+json";
/// A stream of server-sent events.
pub const EVENT_STREAM: &str = "text/event-stream";
/// The default of a text part.
pub const TEXT: &str = "text/plain";
/// A unified diff.
pub const DIFF: &str = "text/x-diff";
/// The default of a raw or URL part.
pub const BYTES: &str = "application/octet-stream";

/// The header that says which version of the protocol a request speaks (specification 3.6).
pub const VERSION_HEADER: &str = "a2a-version";
/// The header that names the extensions a request uses (specification 4.6).
pub const EXTENSIONS_HEADER: &str = "a2a-extensions";
/// The header that carries a push config's token, as the kit and the specification's examples name it.
pub const TOKEN_HEADER: &str = "x-a2a-notification-token";
/// The other name of the same header, which several SDKs read.
pub const TOKEN_HEADER_SHORT: &str = "a2a-notification-token";
/// The version that this workspace speaks.
pub const VERSION: &str = "1.0";
/// Where an agent's card is found (specification 8.2).
pub const CARD_PATH: &str = "/.well-known/agent-card.json";

/// Whether a content type names this media type, whatever its parameters and the case of its letters.
pub fn is(content_type: &str, media_type: &str) -> bool {
    let bare = content_type.split(';').next().unwrap_or_default().trim();
    bare.eq_ignore_ascii_case(media_type)
}
