//! Reading agents' cards (specification 8.2), and keeping them as long as their servers say (8.6.2).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::card::AgentInterface;
use protocol::{AgentCard, media};
use reqwest::Url;
use tokio::time::Instant;

use crate::choose::Binding;
use crate::error::ClientError;
use crate::http::{Answer, Http};

/// A card with the JSON in which it came, which is what its signatures are about.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Where it was read.
    pub url: String,
    /// What it says.
    pub card: AgentCard,
    /// As it came.
    pub json: Vec<u8>,
}

/// Where the card of an agent's URL is: at the URL itself when it names a file, else at the well-known path of its origin.
fn card_url(url: &str) -> Result<String, ClientError> {
    let parsed: Url = url.parse().map_err(|_| ClientError::Url(url.to_owned()))?;
    if parsed.path().ends_with(".json") {
        return Ok(url.to_owned());
    }
    Ok(format!("{}{}", parsed.origin().ascii_serialization(), media::CARD_PATH))
}

fn no_card(url: &str, why: &str, cause: ClientError) -> ClientError {
    ClientError::NoCard { tried: vec![format!("{url} ({why})")], cause: Box::new(cause) }
}

fn read(url: String, answer: Answer) -> Result<Fetched, ClientError> {
    if answer.status != 200 {
        return Err(no_card(&url, &format!("answered {}", answer.status), answer.not_a2a("an agent card")));
    }
    match serde_json::from_slice::<AgentCard>(&answer.body) {
        Ok(mut card) => {
            if card.supported_interfaces.is_empty() {
                card.supported_interfaces.extend(older(&answer.body));
            }
            Ok(Fetched { url, card, json: answer.body })
        }
        Err(cause) => {
            let cause = answer.not_a2a(&format!("an agent card ({cause})"));
            Err(no_card(&url, &cause.to_string(), cause))
        }
    }
}

/// What a card of version 0.3 says instead of interfaces: it is not spoken here, but whoever is told so should read which
/// version it is.
fn older(card: &[u8]) -> Option<AgentInterface> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Older {
        url: String,
        protocol_version: String,
        #[serde(default)]
        preferred_transport: Option<String>,
    }
    let Older { url, protocol_version, preferred_transport } = serde_json::from_slice(card).ok()?;
    let protocol_binding = preferred_transport.unwrap_or_else(|| Binding::JsonRpc.word().to_owned());
    Some(AgentInterface { url, protocol_binding, tenant: None, protocol_version })
}

impl Http {
    /// Reads an agent's card: at the URL itself when it names a file, else at the well-known path of its origin
    /// (specification 8.2). The error is always [`ClientError::NoCard`], or [`ClientError::Url`].
    pub async fn card(&self, title: &str, url: &str) -> Result<AgentCard, ClientError> {
        Ok(self.fetch_card(title, url).await?.card)
    }

    /// Reads an agent's card and keeps the JSON in which it came.
    pub async fn fetch_card(&self, title: &str, url: &str) -> Result<Fetched, ClientError> {
        let url = card_url(url)?;
        let answer = self.ask_for_card(title, &url, None).await?;
        read(url, answer)
    }

    async fn ask_for_card(
        &self,
        title: &str,
        url: &str,
        unless: Option<(&'static str, String)>,
    ) -> Result<Answer, ClientError> {
        let headers: Vec<_> = [("Accept", media::JSON.to_owned())].into_iter().chain(unless).collect();
        let look = Some(self.limits.look);
        let answer = async { self.open_within(look, title, "GET", url, &headers, None).await?.whole().await };
        answer.await.map_err(|cause| no_card(url, &cause.to_string(), cause))
    }
}

/// Cards that were read. One that is still fresh is not asked for again; one that is not is asked for only if it changed.
/// A server that says nothing about caching is asked each time.
#[derive(Debug)]
pub struct Cards {
    http: Http,
    kept: Mutex<HashMap<String, Kept>>,
}

#[derive(Debug, Clone)]
struct Kept {
    fetched: Arc<Fetched>,
    fresh_until: Instant,
    /// The header that asks whether it changed, when the server gave something to compare.
    unless: Option<(&'static str, String)>,
}

impl Cards {
    /// No cards yet.
    pub fn new(http: Http) -> Self {
        Self { http, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent's card, as [`Http::card`] finds it.
    pub async fn card(&self, title: &str, url: &str) -> Result<Arc<Fetched>, ClientError> {
        let url = card_url(url)?;
        let kept = self.kept().get(&url).cloned();
        if let Some(kept) = kept.as_ref().filter(|kept| Instant::now() < kept.fresh_until) {
            return Ok(kept.fetched.clone());
        }
        let unless = kept.as_ref().and_then(|kept| kept.unless.clone());
        let answer = self.http.ask_for_card(title, &url, unless).await?;
        let freshness = Freshness::of(&answer);
        let (fetched, unless) = match kept {
            Some(kept) if answer.status == 304 => (kept.fetched, validator(&answer).or(kept.unless)),
            _ => {
                let unless = validator(&answer);
                (Arc::new(read(url.clone(), answer)?), unless)
            }
        };
        match freshness {
            Freshness::Not => self.kept().remove(&url),
            Freshness::For(time) => {
                let now = Instant::now();
                let fresh_until = now.checked_add(time).unwrap_or(now);
                self.kept().insert(url, Kept { fetched: fetched.clone(), fresh_until, unless })
            }
        };
        Ok(fetched)
    }
}

/// How long an answer may be used again (RFC 9111).
enum Freshness {
    /// It must not be kept.
    Not,
    /// This long; after that it is asked whether it changed.
    For(Duration),
}

impl Freshness {
    fn of(answer: &Answer) -> Self {
        let directives = answer.header("cache-control").unwrap_or_default().to_ascii_lowercase();
        let directives: Vec<&str> = directives.split(',').map(str::trim).collect();
        if directives.contains(&"no-store") {
            return Self::Not;
        }
        let max_age = directives.iter().find_map(|directive| directive.strip_prefix("max-age="));
        let max_age = max_age.filter(|_| !directives.contains(&"no-cache"));
        let seconds = |text: &str| text.trim_matches('"').parse::<u64>().ok();
        let age = answer.header("age").and_then(seconds).unwrap_or_default();
        let left = max_age.and_then(seconds).unwrap_or_default().saturating_sub(age);
        Self::For(Duration::from_secs(left))
    }
}

/// The header that asks for an answer only if it is another one.
fn validator(answer: &Answer) -> Option<(&'static str, String)> {
    let etag = answer.header("etag").map(|etag| ("If-None-Match", etag.to_owned()));
    etag.or_else(|| answer.header("last-modified").map(|since| ("If-Modified-Since", since.to_owned())))
}
