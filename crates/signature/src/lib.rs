//! Card signatures (specification 8.4, DECISIONS W14): canonical JSON, JSON Web Signatures and Keys, signing and
//! verifying.
//!
//! Two ways of signing stand side by side. HS256 signs the card as it is served: the workshop's captures show it, with a
//! key that everybody may know. ES256 signs the form of specification 8.4.1 and is what an agent in the world would use.
//! Entry points: [`Key`] (with [`Key::signatures`] and [`Key::steps`]), [`check`] and [`verify()`], and [`jwks`] for keys
//! that are published.
//!
//! What is left out: fetching keys (`client`) and serving them (`server`).

mod canonical;
pub mod jwks;
mod key;
mod verify;

pub use canonical::{Form, canonical, canonical_as_served};
pub use jwks::JWKS_PATH;
pub use key::{Key, Steps};
pub use verify::{Checked, Doubt, check, verify};

/// Why a card could not be signed or a key not be read.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The bytes are no PKCS#8 key on the curve P-256.
    #[error("not a PKCS#8 private key on the curve P-256")]
    NotAKey,
    /// The card could not be written as canonical JSON.
    #[error("the card cannot be written as canonical JSON")]
    NotCanonical,
    /// The signature could not be made.
    #[error("the signature could not be made")]
    NotSigned,
    /// The text is no set of public keys.
    #[error("no JSON Web Key that could be read: {0}")]
    NoKeys(String),
}

#[cfg(test)]
mod tests;
