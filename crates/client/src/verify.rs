//! Which of a card's signatures hold (specification 8.4.3), with the keys that the client trusts, or those that the
//! card's own origin publishes.

use std::collections::HashMap;

use reqwest::Url;
use serde_json::Value;
use signature::{Checked, Key, check, jwks};

use crate::card::Fetched;
use crate::error::ClientError;
use crate::http::Http;

/// One signature of a card, with where its key came from.
#[derive(Debug, Clone)]
pub struct Seal {
    /// What it says and whether it holds.
    pub checked: Checked,
    /// Where its key came from, or why there is none.
    pub source: Source,
}

/// Where the key of a signature comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The keys that the caller trusts; no others were looked for.
    Trusted,
    /// Read at this URL, which is of the card's own origin.
    Read(String),
    /// The signature names this URL, which is of another origin and was not asked.
    OtherOrigin(String),
    /// The signature names this URL, and no keys could be read there.
    Unreadable {
        /// The URL.
        url: String,
        /// What happened.
        why: String,
    },
    /// The signature does not say where its key is.
    Nowhere,
}

impl Http {
    /// Looks at each signature of a card, in the card's order. With `trusted` keys only these count. Without, each
    /// signature's `jku` is followed when it is of the card's own origin, and the public keys there count: that shows
    /// that the card is whole, and as trustworthy as the connection.
    pub async fn verify(&self, fetched: &Fetched, trusted: Option<&[Key]>) -> Result<Vec<Seal>, ClientError> {
        let json: Value = serde_json::from_slice(&fetched.json)
            .map_err(|cause| ClientError::Request(format!("the card of {} is no JSON: {cause}", fetched.url)))?;
        if let Some(trusted) = trusted {
            let checked = check(&json, trusted);
            return Ok(checked.into_iter().map(|checked| Seal { checked, source: Source::Trusted }).collect());
        }
        let mut read: HashMap<String, Result<Vec<Key>, String>> = HashMap::new();
        let mut seals = Vec::new();
        for (at, unchecked) in check(&json, &[]).into_iter().enumerate() {
            let Some(jku) = unchecked.jku.clone() else {
                seals.push(Seal { checked: unchecked, source: Source::Nowhere });
                continue;
            };
            if !same_origin(&jku, &fetched.url) {
                seals.push(Seal { checked: unchecked, source: Source::OtherOrigin(jku) });
                continue;
            }
            if !read.contains_key(&jku) {
                read.insert(jku.clone(), self.public_keys(&jku).await);
            }
            seals.push(match &read[&jku] {
                Ok(keys) => {
                    let checked = check(&json, keys).into_iter().nth(at).unwrap_or(unchecked);
                    Seal { checked, source: Source::Read(jku) }
                }
                Err(why) => Seal { checked: unchecked, source: Source::Unreadable { url: jku, why: why.clone() } },
            });
        }
        Ok(seals)
    }

    /// Reads the keys that a URL publishes. A shared secret that everybody can read proves nothing and is left out.
    pub async fn public_keys(&self, url: &str) -> Result<Vec<Key>, String> {
        let headers = [("Accept", format!("{}, {}", protocol::media::JWK_SET, protocol::media::JSON))];
        let opened = self.open_within(Some(self.limits.look), "read the keys of a card", "GET", url, &headers, None);
        let answer = async { opened.await?.whole().await };
        let answer = answer.await.map_err(|cause| cause.to_string())?;
        if answer.status != 200 {
            return Err(format!("{} answered {}", answer.origin, answer.status));
        }
        let keys = jwks::read(&answer.body).map_err(|cause| cause.to_string())?;
        Ok(keys.into_iter().filter(|key| !key.is_secret()).collect())
    }
}

fn same_origin(one: &str, other: &str) -> bool {
    match (one.parse::<Url>(), other.parse::<Url>()) {
        (Ok(one), Ok(other)) => one.origin().is_tuple() && one.origin() == other.origin(),
        _ => false,
    }
}
