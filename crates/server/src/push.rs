//! Webhooks (specification 4.3, DECISIONS O15): one ordered queue for each config, out of the task's path.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use protocol::{Clock, ConfigId, Dial, Error, TaskId, TaskPushNotificationConfig, media};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, StatusCode, Url, header};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::store::{Delivery, Store};

/// How often one event is tried before its config is given up.
const TRIES: u32 = 8;
/// How long one try may take.
const TRY_LIMIT: Duration = Duration::from_secs(15);
/// The pause after the first failure; it doubles with each further one, with jitter.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Sends events to webhooks. What there is to send stands in the store; one piece of work for each webhook that has
/// something left takes it from there, oldest first, and ends when nothing is left.
pub(crate) struct Pusher {
    dial: Dial,
    allow_local: bool,
    client: OnceLock<Client>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    workers: Mutex<HashMap<Key, Worker>>,
    /// Wakes whoever waits until nothing is left.
    idle: Notify,
}

type Key = (TaskId, ConfigId);

/// The work on one webhook's queue.
struct Worker {
    /// Something was added while it looked.
    again: bool,
    discard: CancellationToken,
}

/// Whether an address is one of this machine's or of a private network.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_local(v4.into()),
            None => {
                v6.is_loopback()
                    || v6.is_unspecified()
                    || v6.is_multicast()
                    || v6.is_unique_local()
                    || v6.is_unicast_link_local()
            }
        },
    }
}

/// Resolves names, refusing what leads into this machine or a private network.
struct Guarded {
    allow_local: bool,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_local = self.allow_local;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|found| allow_local || !is_local(found.ip())).collect();
            if allowed.is_empty() {
                return Err("the name leads to no public address".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// What to do after a try.
enum Tried {
    Delivered,
    Again(String),
    Final(String),
}

impl Pusher {
    pub fn new(dial: Dial, allow_local: bool, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let (client, workers, idle) = Default::default();
        Self { dial, allow_local, client, store, clock, workers, idle }
    }

    /// Whether a config may be taken.
    pub fn check(&self, config: &TaskPushNotificationConfig, field: &str) -> Result<(), Error> {
        let refused = |description| Err(Error::invalid(format!("{field}url"), description));
        self.wrong(&config.url).map_or(Ok(()), refused)
    }

    /// Why a URL may not be a webhook's: by syntax and literal address only, names are resolved when sending.
    pub fn wrong(&self, url: &str) -> Option<&'static str> {
        let Ok(url) = url.parse::<Url>() else { return Some("url must be an absolute URL") };
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Some("url must be an http or https URL");
        }
        let is_local = !self.allow_local && names_local(&url);
        is_local.then_some("url must not lead to this machine or a private network")
    }

    /// There is something to send.
    pub fn wake(self: &Arc<Self>, task: &TaskId, config: &ConfigId) {
        let key = (task.clone(), config.clone());
        let discard = {
            let mut workers = self.workers();
            if let Some(worker) = workers.get_mut(&key) {
                worker.again = true;
                return;
            }
            let discard = CancellationToken::new();
            workers.insert(key.clone(), Worker { again: false, discard: discard.clone() });
            discard
        };
        let pusher = self.clone();
        tokio::spawn(async move { pusher.work(key, discard).await });
    }

    /// What was queued is not sent. What is queued from now on is.
    pub fn discard(&self, task: &TaskId, config: &ConfigId) {
        if let Some(worker) = self.workers().get_mut(&(task.clone(), config.clone())) {
            worker.again = true;
            std::mem::take(&mut worker.discard).cancel();
        }
    }

    /// Waits until a task's webhooks have got everything.
    pub async fn idle(&self, task: &TaskId) {
        loop {
            let woken = self.idle.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if !self.workers().keys().any(|(own, _)| own == task) {
                return;
            }
            woken.await;
        }
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<Key, Worker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what a webhook has not got, until nothing is left.
    async fn work(self: Arc<Self>, key: Key, mut discard: CancellationToken) {
        let (task, config) = &key;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.send_next(task, config, &discard).await {
                Ok(true) => pause = FIRST_PAUSE,
                Ok(false) => {
                    let mut workers = self.workers();
                    match workers.get_mut(&key) {
                        Some(worker) if worker.again => {
                            worker.again = false;
                            discard = worker.discard.clone();
                        }
                        _ => {
                            workers.remove(&key);
                            drop(workers);
                            self.idle.notify_waiters();
                            return;
                        }
                    }
                }
                Err(cause) => {
                    tracing::warn!(%task, ?config, %cause, "webhooks wait for the store");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Sends the oldest event that a webhook has not got. False when nothing is left for now.
    async fn send_next(
        &self,
        task: &TaskId,
        id: &ConfigId,
        discard: &CancellationToken,
    ) -> Result<bool, crate::store::StoreError> {
        if let Some(shared) = self.store.shared()
            && !shared.claim_queue(task, id).await?
        {
            return Ok(false);
        }
        let Some(delivery) = self.store.next_delivery(task, id).await? else {
            return match self.store.shared() {
                // Another process may have added something in between.
                Some(shared) => Ok(!shared.release_queue(task, id).await?),
                None => Ok(false),
            };
        };
        let delivered = tokio::select! {
            delivered = self.deliver(&delivery) => delivered,
            () = discard.cancelled() => return Ok(false),
        };
        match delivered {
            Ok(()) => self.store.delivered(task, id, delivery.number).await?,
            Err(why) => {
                tracing::warn!(%task, config = ?id, url = %shown(&delivery.config.url), "webhook given up: {why}");
                self.store.give_up(task, id, &why, self.clock.now()).await?;
            }
        }
        Ok(true)
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<(), String> {
        let config = &delivery.config;
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=TRIES {
            match self.post(config, &delivery.json).await {
                Tried::Delivered => return Ok(()),
                Tried::Final(why) => return Err(why),
                Tried::Again(why) if attempt == TRIES => return Err(format!("{why}, {TRIES} times")),
                Tried::Again(why) => {
                    tracing::debug!(config = ?config.id, attempt, "webhook will be tried again: {why}");
                    tokio::time::sleep(pause.mul_f64(0.5 + rand::random::<f64>() / 2.0)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        Ok(())
    }

    async fn post(&self, config: &TaskPushNotificationConfig, json: &Bytes) -> Tried {
        let Ok(mut url) = config.url.parse::<Url>() else { return Tried::Final("the URL is none".to_owned()) };
        let origin = match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            _ => return Tried::Final("the URL names no host".to_owned()),
        };
        if !self.allow_local && names_local(&url) {
            return Tried::Final("the URL leads to this machine or a private network".to_owned());
        }
        let mut host = None;
        if let Some(socket) = self.dial.get(&origin) {
            host = Some(origin);
            let moved = url.set_ip_host(socket.ip()).and_then(|()| url.set_port(Some(socket.port())));
            if moved.is_err() {
                return Tried::Final("the URL cannot be dialled".to_owned());
            }
        }
        let mut request = self.client().post(url).header(header::CONTENT_TYPE, media::A2A_JSON).body(json.clone());
        if let Some(authentication) = &config.authentication
            && let Some(credentials) = &authentication.credentials
        {
            request = request.header(header::AUTHORIZATION, format!("{} {credentials}", authentication.scheme));
        }
        if let Some(token) = &config.token {
            request = request.header(media::TOKEN_HEADER, token).header(media::TOKEN_HEADER_SHORT, token);
        }
        if let Some(host) = host {
            request = request.header(header::HOST, host);
        }
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Tried::Delivered,
            Ok(answer) => {
                let status = answer.status();
                let again = status.is_server_error()
                    || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
                let why = format!("the receiver answered {status}");
                if again { Tried::Again(why) } else { Tried::Final(why) }
            }
            // The URL may hold what only its owner should read.
            Err(cause) => Tried::Again(format!("{}", cause.without_url())),
        }
    }

    fn client(&self) -> &Client {
        self.client.get_or_init(|| {
            // Fails when a provider is there already, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
            Client::builder()
                .dns_resolver(Arc::new(Guarded { allow_local: self.allow_local }))
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .timeout(TRY_LIMIT)
                .build()
                .unwrap_or_default()
        })
    }
}

/// A webhook's address as operators and logs may see it: without a name, a password and a query.
pub(crate) fn shown(url: &str) -> String {
    let Ok(mut url) = url.parse::<Url>() else { return "(no URL)".to_owned() };
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Whether the URL's host is a literal local address, or a name that always means this machine.
fn names_local(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return true };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => is_local(address),
        Err(_) => {
            let name = bare.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}
