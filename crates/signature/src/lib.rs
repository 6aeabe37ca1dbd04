//! Card signatures (specification 8.4, DECISIONS W14): canonical JSON, JSON Web Signatures, signing and verifying.
//!
//! Two forms stand side by side. HS256 signs the card as it is served: the workshop's captures show it, with a key that
//! everybody may know. ES256 signs the form of specification 8.4.1 and is what an agent in the world would use.
//! Entry points: [`Key`] (with [`Key::sign`] and [`Key::steps`]) and [`verify`].
//!
//! What is left out: where keys come from (`jku`, a JWKS endpoint), and members that [`AgentCard`] does not know. A card
//! by somebody else that was signed with such members does not verify here.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use protocol::AgentCard;
use protocol::card::AgentCardSignature;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use ring::{hmac, signature};
use serde_json::Value;

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
}

/// A key with its name. Its bytes are never shown.
#[derive(Clone)]
pub struct Key {
    id: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Hs256(Arc<hmac::Key>),
    Es256(Arc<EcdsaKeyPair>),
    Es256Public(Arc<[u8]>),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("id", &self.id).field("algorithm", &self.algorithm()).finish_non_exhaustive()
    }
}

/// What is signed and how, step by step: what the workshop's walk-through shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    /// The canonical text of the card without its signatures.
    pub payload: String,
    /// The protected header as JSON.
    pub header: String,
    /// Both as base64url, joined by a dot.
    pub signing_input: String,
    /// The entry of the card's `signatures`.
    pub signature: AgentCardSignature,
}

impl Key {
    /// A shared secret.
    pub fn hs256(id: impl Into<String>, secret: &[u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Self { id: id.into(), kind: Kind::Hs256(Arc::new(key)) }
    }

    /// A private key on the curve P-256, in PKCS#8 as DER or as PEM, such as
    /// `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` writes.
    pub fn es256_pkcs8(id: impl Into<String>, key: &[u8]) -> Result<Self, SignatureError> {
        let from_pem = der_of_pem(key);
        let der = from_pem.as_deref().unwrap_or(key);
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new());
        let pair = pair.map_err(|_| SignatureError::NotAKey)?;
        Ok(Self { id: id.into(), kind: Kind::Es256(Arc::new(pair)) })
    }

    /// A public key on the curve P-256, as an uncompressed point of 65 bytes. It verifies only.
    pub fn es256_public(id: impl Into<String>, point: &[u8]) -> Self {
        Self { id: id.into(), kind: Kind::Es256Public(point.into()) }
    }

    /// The key's name, the `kid` of the header.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of its algorithm in a header.
    pub fn algorithm(&self) -> &'static str {
        match self.kind {
            Kind::Hs256(_) => "HS256",
            Kind::Es256(_) | Kind::Es256Public(_) => "ES256",
        }
    }

    /// Signs a card. Signatures that it already has are not part of what is signed.
    pub fn sign(&self, card: &AgentCard) -> Result<AgentCardSignature, SignatureError> {
        self.steps(card).map(|steps| steps.signature)
    }

    /// Signs a card and shows each step.
    pub fn steps(&self, card: &AgentCard) -> Result<Steps, SignatureError> {
        let payload = self.payload(card)?;
        let id = serde_json::to_string(&self.id).map_err(|_| SignatureError::NotCanonical)?;
        let header = format!(r#"{{"alg":"{}","typ":"JOSE","kid":{id}}}"#, self.algorithm());
        let protected = BASE64_URL_SAFE_NO_PAD.encode(&header);
        let signing_input = format!("{protected}.{}", BASE64_URL_SAFE_NO_PAD.encode(&payload));
        let signature = match &self.kind {
            Kind::Hs256(key) => hmac::sign(key, signing_input.as_bytes()).as_ref().to_vec(),
            Kind::Es256(pair) => {
                let signed = pair.sign(&SystemRandom::new(), signing_input.as_bytes());
                signed.map_err(|_| SignatureError::NotSigned)?.as_ref().to_vec()
            }
            Kind::Es256Public(_) => return Err(SignatureError::NotSigned),
        };
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        let signature = AgentCardSignature { protected, signature, header: None };
        Ok(Steps { payload, header, signing_input, signature })
    }

    fn payload(&self, card: &AgentCard) -> Result<String, SignatureError> {
        match self.kind {
            Kind::Hs256(_) => canonical_as_served(card),
            Kind::Es256(_) | Kind::Es256Public(_) => canonical(card),
        }
    }

    fn verifies(&self, signing_input: &[u8], signature: &[u8]) -> bool {
        let public = |point: &[u8]| {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED as &dyn signature::VerificationAlgorithm, point)
                .verify(signing_input, signature)
                .is_ok()
        };
        match &self.kind {
            Kind::Hs256(key) => hmac::verify(key, signing_input, signature).is_ok(),
            Kind::Es256(pair) => public(pair.public_key().as_ref()),
            Kind::Es256Public(point) => public(point),
        }
    }
}

/// Whether one of a card's signatures was made with one of these keys over this card. A card without signatures, or
/// with none of a known key, does not verify.
pub fn verify(card: &AgentCard, keys: &[Key]) -> bool {
    card.signatures.iter().any(|entry| {
        let header = BASE64_URL_SAFE_NO_PAD.decode(&entry.protected).ok();
        let header: Option<Value> = header.and_then(|header| serde_json::from_slice(&header).ok());
        let Some(header) = header else { return false };
        let Ok(signature) = BASE64_URL_SAFE_NO_PAD.decode(&entry.signature) else { return false };
        // The algorithm is the key's, never the header's choice.
        let fits = |key: &&Key| header["alg"] == key.algorithm() && header["kid"] == key.id();
        keys.iter().filter(fits).any(|key| {
            let Ok(payload) = key.payload(card) else { return false };
            let signing_input = format!("{}.{}", entry.protected, BASE64_URL_SAFE_NO_PAD.encode(payload));
            key.verifies(signing_input.as_bytes(), &signature)
        })
    })
}

/// The canonical text of a card without its signatures, with all its members as they are served (RFC 8785).
pub fn canonical_as_served(card: &AgentCard) -> Result<String, SignatureError> {
    write(without_signatures(card)?)
}

/// The canonical text of a card in the form of specification 8.4.1: members at their default are left out unless they
/// are required or were set, then RFC 8785.
pub fn canonical(card: &AgentCard) -> Result<String, SignatureError> {
    let mut value = without_signatures(card)?;
    drop_defaults(&mut value);
    write(value)
}

/// The DER inside the first private key of a PEM text.
fn der_of_pem(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    BASE64_STANDARD.decode(body.split_ascii_whitespace().collect::<String>()).ok()
}

fn without_signatures(card: &AgentCard) -> Result<Value, SignatureError> {
    let mut value = serde_json::to_value(card).map_err(|_| SignatureError::NotCanonical)?;
    if let Some(members) = value.as_object_mut() {
        members.remove("signatures");
    }
    Ok(value)
}

/// Leaves out what the card's own types write although it stands at its default and is not REQUIRED in the proto.
/// Each place is named: what looks the same inside an extension's `params` is the extension's own.
fn drop_defaults(card: &mut Value) {
    drop_empty_scopes(card);
    for skill in items(card, "skills") {
        drop_empty_scopes(skill);
    }
    for scheme in members(card, "securitySchemes") {
        for flow in ["implicit", "password"] {
            drop_empty(scheme.pointer_mut(&format!("/oauth2SecurityScheme/flows/{flow}")), "scopes");
        }
    }
    if let Some(capabilities) = card.get_mut("capabilities") {
        for extension in items(capabilities, "extensions") {
            drop_empty(Some(extension), "uri");
        }
    }
}

fn drop_empty_scopes(owner: &mut Value) {
    for requirement in items(owner, "securityRequirements") {
        for scheme in members(requirement, "schemes") {
            drop_empty(Some(scheme), "list");
        }
        drop_empty(Some(requirement), "schemes");
    }
}

fn items<'a>(owner: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    owner.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn members<'a>(owner: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    owner.get_mut(name).and_then(Value::as_object_mut).into_iter().flat_map(serde_json::Map::values_mut)
}

fn drop_empty(owner: Option<&mut Value>, name: &str) {
    let Some(owner) = owner.and_then(Value::as_object_mut) else { return };
    let empty = match owner.get(name) {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        _ => false,
    };
    if empty {
        owner.remove(name);
    }
}

fn write(value: Value) -> Result<String, SignatureError> {
    serde_json_canonicalizer::to_string(&value).map_err(|_| SignatureError::NotCanonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> AgentCard {
        serde_json::from_value(serde_json::json!({
            "name": "deployer", "description": "Deploys.", "version": "1.0.0",
            "supportedInterfaces": [{"url": "http://localhost:1/a2a/jsonrpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": false},
            "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
            "defaultInputModes": [], "defaultOutputModes": ["text/plain"], "skills": []
        }))
        .unwrap()
    }

    fn es256() -> Key {
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        Key::es256_pkcs8("k1", der.as_ref()).unwrap()
    }

    #[test]
    fn w14_hs256_keeps_what_is_served_and_es256_drops_what_is_at_its_default() {
        assert!(canonical_as_served(&card()).unwrap().contains(r#""bearer":{"list":[]}"#));
        let form = canonical(&card()).unwrap();
        assert!(form.contains(r#""bearer":{}"#));
        assert!(form.contains(r#""defaultInputModes":[]"#), "a required member stays");
        assert!(form.contains(r#""streaming":false"#), "an optional member that was set stays");
        assert!(form.starts_with(r#"{"capabilities":"#), "members are sorted");
    }

    #[test]
    fn the_form_of_the_specification_drops_defaults_where_the_proto_has_them_and_nowhere_else() {
        let mut value = serde_json::to_value(card()).unwrap();
        value["skills"] = serde_json::json!([{
            "id": "s", "name": "s", "description": "", "tags": [], "securityRequirements": [{"schemes": {}}]
        }]);
        value["capabilities"]["extensions"] =
            serde_json::json!([{"uri": "", "required": false, "params": {"list": [], "scopes": {}, "uri": ""}}]);
        let flow = serde_json::json!({"scopes": {}});
        value["securitySchemes"] = serde_json::json!({
            "old": {"oauth2SecurityScheme": {"flows": {"implicit": flow}}},
            "new": {"oauth2SecurityScheme": {"flows": {"clientCredentials": flow}}},
        });
        let form = canonical(&serde_json::from_str(&value.to_string()).unwrap()).unwrap();
        for kept in [
            r#""extensions":[{"params":{"list":[],"scopes":{},"uri":""}}]"#,
            r#""clientCredentials":{"scopes":{}}"#,
            r#""implicit":{}"#,
            r#""skills":[{"description":"","id":"s","name":"s","securityRequirements":[{}],"tags":[]}]"#,
        ] {
            assert!(form.contains(kept), "{kept} in {form}");
        }
    }

    #[test]
    fn canonical_json_sorts_by_utf16_code_units_and_writes_numbers_as_ecmascript_does() {
        let mut extended = card();
        let params = r#"{"\ufb33": 1, "\ud83d\ude00": 2, "\u20ac": 3, "1": 4, "\r": 5, "n": [1e30, 4.50, 2e-3, 1e-27, 333333333.33333329, -0.0], "t": "\u000f\n\"\\\u00e9"}"#;
        let extension = format!(r#"{{"extensions": [{{"uri": "u", "params": {params}}}]}}"#);
        extended.capabilities = serde_json::from_str(&extension).unwrap();
        let expected = concat!(
            r#""params":{"\r":5,"1":4,"n":[1e+30,4.5,0.002,1e-27,333333333.3333333,0],"#,
            "\"t\":\"\\u000f\\n\\\"\\\\\u{e9}\",\"\u{20ac}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}"
        );
        for text in [canonical_as_served(&extended).unwrap(), canonical(&extended).unwrap()] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn w14_the_deployers_card_has_the_signature_that_the_kit_published() {
        let walkthrough = include_str!("../../../scenarios/kit/captures/17-signed-card.txt");
        let payload = walkthrough.lines().nth(1).unwrap();
        let card: AgentCard = serde_json::from_str(payload).unwrap();
        let key = Key::hs256("deployer-key-1", b"manual-demo-signing-key-not-for-production");
        let steps = key.steps(&card).unwrap();
        assert_eq!(steps.payload, payload);
        assert_eq!(steps.header, r#"{"alg":"HS256","typ":"JOSE","kid":"deployer-key-1"}"#);
        assert_eq!(walkthrough.lines().nth(7).unwrap(), steps.signing_input);
        assert_eq!(steps.signature.signature, "yPk834ji_dOVmxElhzV3yTYBT9NVp8Bx1j5K0LQmOww");

        let mut signed = card.clone();
        signed.signatures = vec![steps.signature, es256().sign(&card).unwrap()];
        assert!(verify(&signed, &[key]), "one of two signatures is of a known key");
        let form = canonical(&card).unwrap();
        assert_eq!(form, payload.replace(r#""bearer":{"list":[]}"#, r#""bearer":{}"#));
    }

    #[test]
    fn a_key_is_read_from_pem_as_from_der_and_only_on_its_curve() {
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let text = BASE64_STANDARD.encode(der.as_ref());
        let (first, rest) = text.split_at(64);
        let pem = format!("-----BEGIN PRIVATE KEY-----\r\n{first}\r\n{rest}\r\n-----END PRIVATE KEY-----\r\n");
        let (from_der, from_pem) = (Key::es256_pkcs8("k", der.as_ref()), Key::es256_pkcs8("k", pem.as_bytes()));
        let mut signed = card();
        signed.signatures.push(from_pem.unwrap().sign(&card()).unwrap());
        let from_der = from_der.unwrap();
        assert!(verify(&signed, std::slice::from_ref(&from_der)));
        let Kind::Es256(pair) = &from_der.kind else { unreachable!() };
        assert!(verify(&signed, &[Key::es256_public("k", pair.public_key().as_ref())]));

        let other = &ring::signature::ECDSA_P384_SHA384_FIXED_SIGNING;
        let other = EcdsaKeyPair::generate_pkcs8(other, &SystemRandom::new()).unwrap();
        for wrong in [other.as_ref(), b"", b"-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----"] {
            assert!(matches!(Key::es256_pkcs8("k", wrong), Err(SignatureError::NotAKey)));
        }
    }

    #[test]
    fn a_key_never_shows_its_bytes() {
        let shown = format!("{:?}", Key::hs256("k1", b"secret"));
        assert_eq!(shown, r#"Key { id: "k1", algorithm: "HS256", .. }"#);
    }

    #[test]
    fn a_signed_card_verifies_and_a_changed_one_does_not() {
        for key in [Key::hs256("k1", b"secret"), es256()] {
            let mut signed = card();
            signed.signatures.push(key.sign(&card()).unwrap());
            assert!(verify(&signed, std::slice::from_ref(&key)));
            assert!(!verify(&signed, &[Key::hs256("other", b"secret")]), "an unknown key does not count");
            assert!(!verify(&card(), std::slice::from_ref(&key)), "no signature is no proof");
            signed.description.push_str(" To production.");
            assert!(!verify(&signed, &[key]));
        }
    }

    #[test]
    fn the_header_cannot_choose_the_algorithm() {
        let key = es256();
        let mut forged = card();
        let Kind::Es256(pair) = &key.kind else { unreachable!() };
        forged.signatures.push(Key::hs256("k1", pair.public_key().as_ref()).sign(&card()).unwrap());
        assert!(!verify(&forged, &[key]));

        // Signed with the right key, under a header that names another algorithm.
        let (key, secret) = (Key::hs256("k1", b"secret"), hmac::Key::new(hmac::HMAC_SHA256, b"secret"));
        let signed_under = |header: &str| {
            let protected = BASE64_URL_SAFE_NO_PAD.encode(header);
            let payload = BASE64_URL_SAFE_NO_PAD.encode(canonical_as_served(&card()).unwrap());
            let signature = hmac::sign(&secret, format!("{protected}.{payload}").as_bytes());
            let mut signed = card();
            let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
            signed.signatures.push(AgentCardSignature { protected, signature, header: None });
            verify(&signed, std::slice::from_ref(&key))
        };
        assert!(signed_under(r#"{"alg":"HS256","kid":"k1"}"#));
        for header in [r#"{"alg":"none","kid":"k1"}"#, r#"{"kid":"k1"}"#, r#"{"alg":"HS256"}"#, "[]", "no json"] {
            assert!(!signed_under(header), "{header}");
        }
    }
}
