//! Keys: signing with them, verifying with them, and their form as JSON Web Keys (RFC 7517).

use std::sync::Arc;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use protocol::AgentCard;
use protocol::card::AgentCardSignature;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaKeyPair, KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use ring::{digest, hmac};
use serde_json::{Value, json};

use crate::SignatureError;
use crate::canonical::{Form, value};

/// A key with its name. Its bytes are never shown.
#[derive(Clone)]
pub struct Key {
    pub(crate) id: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Hs256(Arc<hmac::Key>),
    Es256(Arc<EcdsaKeyPair>),
    Public(Arc<Public>),
}

/// A key that verifies only.
enum Public {
    /// A point on a curve, in the form that its algorithm has.
    Point {
        algorithm: &'static str,
        verification: &'static dyn VerificationAlgorithm,
        point: Vec<u8>,
    },
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
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

    fn point(
        id: String,
        algorithm: &'static str,
        verification: &'static dyn VerificationAlgorithm,
        point: Vec<u8>,
    ) -> Self {
        Self { id, kind: Kind::Public(Arc::new(Public::Point { algorithm, verification, point })) }
    }

    /// The same key, named by its thumbprint (RFC 7638), so that the name changes exactly when the key does. A key that
    /// is no ES256 key with its private half keeps its name.
    pub fn named_by_thumbprint(mut self) -> Self {
        if let Some((x, y)) = self.coordinates() {
            let members = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
            self.id = BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, members.as_bytes()));
        }
        self
    }

    /// The public half as a JSON Web Key. `None` for a key that has none: a shared secret, or one that was public from
    /// the beginning.
    pub fn public_jwk(&self) -> Option<Value> {
        let (x, y) = self.coordinates()?;
        Some(json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": self.id, "alg": "ES256", "use": "sig"}))
    }

    fn coordinates(&self) -> Option<(String, String)> {
        let Kind::Es256(pair) = &self.kind else { return None };
        // The first byte says that the point is not compressed.
        let (x, y) = pair.public_key().as_ref().get(1..)?.split_at(32);
        Some((BASE64_URL_SAFE_NO_PAD.encode(x), BASE64_URL_SAFE_NO_PAD.encode(y)))
    }

    /// Reads a JSON Web Key of a kind that is known here: ES256, ES384, EdDSA, RS256, or a shared secret for HS256. A key
    /// without a name is tried for every signature.
    pub(crate) fn of_jwk(jwk: &Value) -> Result<Self, String> {
        let text = |member: &str| jwk[member].as_str().unwrap_or_default();
        let bytes = |member: &str| {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(text(member).trim_end_matches('='));
            bytes.ok().filter(|bytes| !bytes.is_empty()).ok_or_else(|| format!("{member} is no base64url"))
        };
        let id = text("kid").to_owned();
        let kind = (text("kty"), text("crv"));
        let size = match kind {
            ("EC", "P-256") | ("OKP", "Ed25519") => 32,
            ("EC", "P-384") => 48,
            _ => 0,
        };
        let coordinate = |member: &str| {
            let bytes = bytes(member)?;
            if bytes.len() == size { Ok(bytes) } else { Err(format!("{member} is not {size} bytes long")) }
        };
        let point = || Ok::<_, String>([vec![4], coordinate("x")?, coordinate("y")?].concat());
        let key = match kind {
            ("EC", "P-256") => Self::point(id, "ES256", &ECDSA_P256_SHA256_FIXED, point()?),
            ("EC", "P-384") => Self::point(id, "ES384", &ECDSA_P384_SHA384_FIXED, point()?),
            ("OKP", "Ed25519") => Self::point(id, "EdDSA", &ED25519, coordinate("x")?),
            ("RSA", _) => {
                let components = RsaPublicKeyComponents { n: bytes("n")?, e: bytes("e")? };
                Self { id, kind: Kind::Public(Arc::new(Public::Rsa(components))) }
            }
            ("oct", _) => Self::hs256(id, &bytes("k")?),
            (kty, crv) => return Err(format!("the kind {kty} {crv} is not known here").replace("  ", " ")),
        };
        match jwk["alg"].as_str() {
            Some(stated) if stated != key.algorithm() => Err(format!("the algorithm {stated} is not known here")),
            _ => Ok(key),
        }
    }

    /// Whether it is a shared secret: whoever can verify with it can sign with it.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Hs256(_))
    }

    /// The key's name, the `kid` of the header.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of its algorithm in a header.
    pub fn algorithm(&self) -> &'static str {
        match &self.kind {
            Kind::Hs256(_) => "HS256",
            Kind::Es256(_) => "ES256",
            Kind::Public(key) => match key.as_ref() {
                Public::Point { algorithm, .. } => algorithm,
                Public::Rsa(_) => "RS256",
            },
        }
    }

    /// Signs a card. Signatures that it already has are not part of what is signed.
    pub fn sign(&self, card: &AgentCard) -> Result<AgentCardSignature, SignatureError> {
        self.steps(card).map(|steps| steps.signature)
    }

    /// Signs a card and shows each step.
    pub fn steps(&self, card: &AgentCard) -> Result<Steps, SignatureError> {
        self.steps_of(&value(card)?, self.form(), None)
    }

    /// All signatures of a card that this key gives: one over its own form, and, where that differs for this card, one
    /// more over [`Form::WithoutEmpty`], so that the public SDKs verify it too. `jku` says where the public half is.
    pub fn signatures(&self, card: &AgentCard, jku: Option<&str>) -> Result<Vec<AgentCardSignature>, SignatureError> {
        let card = value(card)?;
        let own = self.steps_of(&card, self.form(), jku)?;
        let mut signatures = vec![own.signature];
        if matches!(self.kind, Kind::Es256(_)) && Form::WithoutEmpty.text(&card)? != own.payload {
            signatures.push(self.steps_of(&card, Form::WithoutEmpty, jku)?.signature);
        }
        Ok(signatures)
    }

    /// Which form it signs.
    fn form(&self) -> Form {
        if self.is_secret() { Form::Served } else { Form::Specification }
    }

    fn steps_of(&self, card: &Value, form: Form, jku: Option<&str>) -> Result<Steps, SignatureError> {
        let payload = form.text(card)?;
        let text = |text: &str| serde_json::to_string(text).map_err(|_| SignatureError::NotCanonical);
        let jku = jku.map(text).transpose()?.map(|jku| format!(r#","jku":{jku}"#)).unwrap_or_default();
        let header = format!(r#"{{"alg":"{}","typ":"JOSE","kid":{}{jku}}}"#, self.algorithm(), text(&self.id)?);
        let protected = BASE64_URL_SAFE_NO_PAD.encode(&header);
        let signing_input = format!("{protected}.{}", BASE64_URL_SAFE_NO_PAD.encode(&payload));
        let signature = match &self.kind {
            Kind::Hs256(key) => hmac::sign(key, signing_input.as_bytes()).as_ref().to_vec(),
            Kind::Es256(pair) => {
                let signed = pair.sign(&SystemRandom::new(), signing_input.as_bytes());
                signed.map_err(|_| SignatureError::NotSigned)?.as_ref().to_vec()
            }
            Kind::Public(_) => return Err(SignatureError::NotSigned),
        };
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        let signature = AgentCardSignature { protected, signature, header: None };
        Ok(Steps { payload, header, signing_input, signature })
    }

    pub(crate) fn verifies(&self, signing_input: &[u8], signature: &[u8]) -> bool {
        let point = |verification: &'static dyn VerificationAlgorithm, point: &[u8]| {
            UnparsedPublicKey::new(verification, point).verify(signing_input, signature).is_ok()
        };
        match &self.kind {
            Kind::Hs256(key) => hmac::verify(key, signing_input, signature).is_ok(),
            Kind::Es256(pair) => point(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref()),
            Kind::Public(key) => match key.as_ref() {
                Public::Point { verification, point: bytes, .. } => point(*verification, bytes),
                Public::Rsa(components) => {
                    components.verify(&RSA_PKCS1_2048_8192_SHA256, signing_input, signature).is_ok()
                }
            },
        }
    }
}

/// The DER inside the first private key of a PEM text.
fn der_of_pem(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    BASE64_STANDARD.decode(body.split_ascii_whitespace().collect::<String>()).ok()
}
