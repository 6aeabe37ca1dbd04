//! Which of a card's signatures hold, and why the others do not.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use protocol::AgentCard;
use serde_json::Value;

use crate::Key;
use crate::canonical::{Form, value};

/// One signature of a card, looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The algorithm that its header names.
    pub algorithm: Option<String>,
    /// The name of the key.
    pub key_id: Option<String>,
    /// Where the signer says that the key can be read.
    pub jku: Option<String>,
    /// The form of the card that it holds for, or why it does not hold.
    pub result: Result<Form, Doubt>,
}

/// Why a signature does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The protected header or the signature is not what RFC 7515 says.
    #[error("it cannot be read")]
    Unreadable,
    /// The header demands something (`crit`) that is not known here, so the signature must be refused.
    #[error("its header demands what is not known here")]
    Critical,
    /// The header does not say which key.
    #[error("it names no key")]
    Nameless,
    /// None of the keys has this name.
    #[error("no key of that name is known")]
    UnknownKey,
    /// The key of this name is for another algorithm. The algorithm is the key's, never the header's choice.
    #[error("the key of that name is for another algorithm")]
    OtherAlgorithm,
    /// The key did not make this signature over this card.
    #[error("the card was changed, or another key signed it")]
    Different,
}

/// What a protected header says.
struct Header(Value);

impl Header {
    fn read(protected: &str) -> Option<Self> {
        let json = BASE64_URL_SAFE_NO_PAD.decode(protected).ok()?;
        let header: Value = serde_json::from_slice(&json).ok()?;
        header.is_object().then_some(Self(header))
    }

    fn text(&self, member: &str) -> Option<String> {
        self.0[member].as_str().map(str::to_owned)
    }
}

/// Looks at each signature of a card, in the card's order. The card is the JSON that was received, so that members which
/// this workspace does not know count as well. Empty when the card has no signatures.
pub fn check(card: &Value, keys: &[Key]) -> Vec<Checked> {
    let entries = card["signatures"].as_array();
    entries.into_iter().flatten().map(|entry| check_one(card, entry, keys)).collect()
}

fn check_one(card: &Value, entry: &Value, keys: &[Key]) -> Checked {
    let protected = entry["protected"].as_str().unwrap_or_default();
    let Some(header) = Header::read(protected) else {
        return Checked { algorithm: None, key_id: None, jku: None, result: Err(Doubt::Unreadable) };
    };
    let (algorithm, key_id, jku) = (header.text("alg"), header.text("kid"), header.text("jku"));
    let holds = || {
        let signature = BASE64_URL_SAFE_NO_PAD.decode(entry["signature"].as_str().unwrap_or_default());
        let signature = signature.map_err(|_| Doubt::Unreadable)?;
        if header.0.get("crit").is_some() {
            return Err(Doubt::Critical);
        }
        let name = key_id.as_deref().ok_or(Doubt::Nameless)?;
        let named: Vec<&Key> = keys.iter().filter(|key| key.id.is_empty() || key.id == name).collect();
        let fits = |key: &&&Key| Some(key.algorithm()) == algorithm.as_deref();
        let mut doubt = if named.is_empty() { Doubt::UnknownKey } else { Doubt::OtherAlgorithm };
        for key in named.iter().filter(fits) {
            doubt = Doubt::Different;
            for form in Form::ALL {
                let Ok(payload) = form.text(card) else { continue };
                let signing_input = format!("{protected}.{}", BASE64_URL_SAFE_NO_PAD.encode(payload));
                if key.verifies(signing_input.as_bytes(), &signature) {
                    return Ok(form);
                }
            }
        }
        Err(doubt)
    };
    let result = holds();
    Checked { algorithm, key_id, jku, result }
}

/// Whether one of a card's signatures was made with one of these keys over this card. A card without signatures, or
/// with none of a known key, does not verify.
pub fn verify(card: &AgentCard, keys: &[Key]) -> bool {
    value(card).is_ok_and(|card| check(&card, keys).iter().any(|checked| checked.result.is_ok()))
}
