//! Sets of public keys (RFC 7517): what an agent publishes, and what a client trusts.

use serde_json::{Value, json};

use crate::{Key, SignatureError};

/// Where an agent publishes the keys that sign its card.
pub const JWKS_PATH: &str = "/.well-known/jwks.json";

/// The public halves of keys as one set. Secrets and keys that only verify are left out.
pub fn publish(keys: &[Key]) -> Value {
    json!({"keys": keys.iter().filter_map(Key::public_jwk).collect::<Vec<_>>()})
}

/// Reads a set, or a single key. Keys of a kind that is not known here are left out, as RFC 7517 wants it; a text that
/// holds no key at all that could be read is an error.
pub fn read(text: &[u8]) -> Result<Vec<Key>, SignatureError> {
    let no_keys = |why: String| SignatureError::NoKeys(why);
    let set: Value = serde_json::from_slice(text).map_err(|cause| no_keys(cause.to_string()))?;
    let listed = match &set["keys"] {
        Value::Array(keys) => keys.iter().collect(),
        _ if set["kty"].is_string() => vec![&set],
        _ => return Err(no_keys("it has no member keys".to_owned())),
    };
    let (mut keys, mut why) = (Vec::new(), None);
    for jwk in listed {
        match Key::of_jwk(jwk) {
            Ok(key) => keys.push(key),
            Err(not) => why = Some(not),
        }
    }
    if keys.is_empty() { Err(no_keys(why.unwrap_or_else(|| "it is empty".to_owned()))) } else { Ok(keys) }
}
