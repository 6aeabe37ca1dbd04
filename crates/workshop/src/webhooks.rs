//! Receives webhooks and writes them down.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::routing::any;
use capture::{Recorder, Request};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A receiver. It belongs to one set; each scenario hands it a recorder.
pub(crate) struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    serving: tokio::task::JoinHandle<()>,
}

struct Shared {
    recorder: Mutex<Option<Recorder>>,
    received: watch::Sender<usize>,
}

impl Receiver {
    /// Starts a receiver on a free port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { recorder: Mutex::default(), received: watch::Sender::new(0) });
        let app = Router::new().fallback(any(take)).with_state(shared.clone());
        let serving = tokio::spawn(async move {
            // Ends with the set.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { address, shared, serving })
    }

    /// Writes what comes from now on into this recorder, and counts from nothing.
    pub fn record(&self, recorder: Recorder) {
        *self.shared.recorder.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorder);
        self.shared.received.send_replace(0);
    }

    /// Waits until so many webhooks have come.
    pub async fn wait(&self, count: usize) {
        let _ = self.shared.received.subscribe().wait_for(|received| *received >= count).await;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) {
    // The order in which a capture shows them.
    let names = ["Content-Type", "Authorization", "X-A2A-Notification-Token"];
    let shown = names.iter().filter_map(|name| {
        let value = headers.get(*name)?.to_str().ok()?;
        Some(((*name).to_owned(), value.to_owned()))
    });
    let request = Request {
        method: method.to_string(),
        path: uri.to_string(),
        headers: shown.collect(),
        body: Some(body.to_vec()),
    };
    if let Some(recorder) = &*shared.recorder.lock().unwrap_or_else(PoisonError::into_inner) {
        recorder.webhook(request);
    }
    shared.received.send_modify(|received| *received += 1);
}
