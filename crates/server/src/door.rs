//! The checks at the door, in this order: credential, version, extensions. What is refused here reaches no operation.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, header};
use protocol::{AgentCard, Error, ErrorKind, Timestamps, media};
use subtle::ConstantTimeEq;

use crate::engine::Caller;
use crate::setup::{ANONYMOUS, Credential, Setup};
use crate::store::Principal;
use crate::tokens::Tokens;

/// Knows who may come in, and under which address they came.
pub(crate) struct Door {
    credentials: Vec<Credential>,
    callers: Tokens,
    operators: Option<Tokens>,
    anonymous: Principal,
    public_url: Option<Arc<str>>,
    hosts: Vec<String>,
    /// `http://localhost:PORT` with the bound port.
    fallback: Arc<str>,
    /// The bound port of the bindings over HTTP.
    #[cfg(feature = "grpc")]
    pub port: u16,
    /// The extensions of the card: the URI and whether it is required.
    extensions: Vec<(String, bool)>,
    /// The server's own extension is among them.
    timestamps: bool,
    /// The tenants of the card's interfaces; none when requests name none.
    tenants: Vec<String>,
}

/// What a request activated.
#[derive(Debug, Default)]
pub(crate) struct Activated {
    /// As the answer's header names it.
    pub header: Option<String>,
    /// What the agent makes from now on says when it was made.
    pub timestamps: Option<Timestamps>,
}

/// The caller has not shown who it is.
#[derive(Debug)]
pub(crate) struct Unauthenticated;

/// The token of a request, if it shows exactly one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(shown), None) = (shown.next(), shown.next()) else { return None };
    let (scheme, token) = shown.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

impl Door {
    pub fn new(setup: &Setup, card: &AgentCard, port: u16) -> Self {
        let extensions = card.capabilities.extensions.iter();
        Self {
            credentials: setup.credentials.clone(),
            callers: setup.callers.clone(),
            operators: setup.operators.clone(),
            anonymous: ANONYMOUS.into(),
            public_url: setup.public_url.as_deref().map(|url| url.trim_end_matches('/').into()),
            hosts: setup.hosts.clone(),
            fallback: format!("http://localhost:{port}").into(),
            #[cfg(feature = "grpc")]
            port,
            extensions: extensions.map(|extension| (extension.uri.clone(), extension.required)).collect(),
            timestamps: setup.timestamps,
            tenants: setup.tenants.clone(),
        }
    }

    /// Whether callers must show a credential.
    pub fn is_locked(&self) -> bool {
        !self.credentials.is_empty() || !self.callers.is_empty()
    }

    /// Who calls.
    pub fn admit(&self, headers: &HeaderMap) -> Result<Caller, Unauthenticated> {
        let principal = if !self.is_locked() {
            self.anonymous.clone()
        } else {
            let token = bearer(headers).ok_or(Unauthenticated)?;
            // All are compared, each in constant time, so that the time taken tells nothing.
            let known = self.credentials.iter().fold(None, |known, credential| {
                let same: bool = credential.token.as_bytes().ct_eq(token.as_bytes()).into();
                if same { Some(&credential.principal) } else { known }
            });
            let named = self.callers.holder(token);
            known.cloned().or(named).ok_or(Unauthenticated)?
        };
        Ok(Caller { principal, base_url: self.base_url(headers), timestamps: None })
    }

    /// Which operator asks. None: whoever reaches the agent is one, without a name.
    pub fn operator(&self, headers: &HeaderMap) -> Option<Result<Arc<str>, Unauthenticated>> {
        let operators = self.operators.as_ref()?;
        let holder = bearer(headers).and_then(|token| operators.holder(token));
        Some(holder.ok_or(Unauthenticated))
    }

    /// Whether a request that changes something comes from no web page, or from one of this agent's own. Browsers name
    /// the page's site, and a page cannot change what they say.
    pub fn comes_from_here(&self, headers: &HeaderMap) -> bool {
        let said = |name: &str| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
        let here = self.base_url(headers);
        let bare = |url: &str| url.split_once("://").map(|(_, authority)| authority.to_ascii_lowercase());
        // A proxy before this agent may speak TLS.
        said("origin").all(|origin| bare(origin).is_some() && bare(origin) == bare(&here))
            && said("sec-fetch-site").all(|site| matches!(site, "same-origin" | "none"))
    }

    /// Whether operators have names.
    pub fn has_operators(&self) -> bool {
        self.operators.is_some()
    }

    /// Where the caller reaches this agent (DECISIONS W12).
    pub fn base_url(&self, headers: &HeaderMap) -> Arc<str> {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        match host.filter(|host| self.is_allowed(host)) {
            Some(host) if self.fallback.strip_prefix("http://") == Some(host) => self.fallback.clone(),
            Some(host) => format!("http://{host}").into(),
            None => self.fallback.clone(),
        }
    }

    fn is_allowed(&self, authority: &str) -> bool {
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, Some(port)),
            _ => (authority, None),
        };
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return false;
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let loopback = bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        loopback
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }

    /// Whether the version asked for is spoken here (DECISIONS W8). A header wins over a query parameter.
    pub fn check_version(&self, headers: &HeaderMap, query: Option<&str>) -> Result<(), Error> {
        let header = headers.get(media::VERSION_HEADER).map(|value| value.to_str().unwrap_or_default().trim());
        let in_query = || {
            let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
            let version = pairs.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(media::VERSION_HEADER));
            version.map(|(_, version)| version.into_owned())
        };
        let asked = match header {
            Some(header) => Some(header.to_owned()),
            None => in_query(),
        };
        let asked = asked.filter(|asked| !asked.is_empty());
        let spoken = |asked: &str| {
            let patch = asked.strip_prefix(media::VERSION);
            patch.is_some_and(|patch| {
                patch.is_empty()
                    || patch
                        .strip_prefix('.')
                        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            })
        };
        match asked {
            Some(asked) if spoken(&asked) => Ok(()),
            asked => Err(Error::from(ErrorKind::VersionNotSupported)
                .with("requested", asked.unwrap_or_else(|| "0.3 (no header)".to_owned()))
                .with("supported", media::VERSION)),
        }
    }

    /// The declared extensions that the request activates (DECISIONS W9).
    pub fn check_extensions(&self, headers: &HeaderMap) -> Result<Activated, Error> {
        if self.extensions.is_empty() {
            return Ok(Activated::default());
        }
        let values = headers.get_all(media::EXTENSIONS_HEADER).iter().filter_map(|value| value.to_str().ok());
        let named: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        let missing = self.extensions.iter().find(|(uri, required)| *required && !named.contains(&uri.as_str()));
        if let Some((uri, _)) = missing {
            return Err(Error::from(ErrorKind::ExtensionSupportRequired).with("extension", uri.clone()));
        }
        let declared = self.extensions.iter().map(|(uri, _)| uri.as_str());
        let mut active: Vec<&str> = declared.filter(|uri| named.contains(uri)).collect();
        let timestamps = Timestamps::ALL.into_iter().find(|name| self.timestamps && active.contains(&name.uri()));
        // One extension under two names: one of them is used.
        active.retain(|uri| {
            let name = Timestamps::ALL.into_iter().find(|name| self.timestamps && name.uri() == *uri);
            name.is_none() || name == timestamps
        });
        Ok(Activated { header: Some(active.join(", ")).filter(|active| !active.is_empty()), timestamps })
    }

    /// What is wrong with the tenant that a request names; the text is empty when it names none (DECISIONS W10).
    pub fn wrong_tenant(&self, tenant: &str) -> Option<String> {
        match tenant {
            "" if self.tenants.is_empty() => None,
            "" => Some("tenant is required".to_owned()),
            _ if self.tenants.iter().any(|known| known == tenant) => None,
            _ => Some(format!("this agent has no tenant {tenant}")),
        }
    }

    /// The same caller within a tenant: what it makes there is seen there only.
    pub fn within(&self, caller: Caller, tenant: Option<&str>) -> Caller {
        match tenant {
            None => caller,
            Some(tenant) => Caller { principal: format!("{}@{tenant}", caller.principal).into(), ..caller },
        }
    }
}
