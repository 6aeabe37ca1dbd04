//! A gate before each event of an agent: the seam through which a recording holds an agent at a place of its choice.
//! Real agents have none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Holds agents back. One gate serves one agent.
#[derive(Debug, Default)]
pub struct Gate {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// The next turn that starts is gated.
    next: bool,
    /// The turn that was gated last.
    gated: Option<Arc<Pass>>,
    /// Turns that have begun and not ended.
    running: usize,
}

/// What one gated turn may still do and has done.
#[derive(Debug, Default)]
struct Pass {
    counts: Mutex<Counts>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    permits: usize,
    open: bool,
    applied: usize,
}

/// One turn at the gate.
#[derive(Debug)]
pub struct AtGate {
    gate: Arc<Gate>,
    pass: Option<Arc<Pass>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    /// Gates the next turn that starts.
    pub fn next(&self) {
        lock(&self.inner).next = true;
    }

    /// Lets the gated turn say `count` more events.
    pub fn step(&self, count: usize) {
        if let Some(pass) = self.gated() {
            lock(&pass.counts).permits += count;
            pass.changed.notify_waiters();
        }
    }

    /// Lets the gated turn go on freely.
    pub fn release(&self) {
        if let Some(pass) = self.gated() {
            lock(&pass.counts).open = true;
            pass.changed.notify_waiters();
        }
    }

    /// Waits until the gated turn has said `count` events in all.
    pub async fn wait(&self, count: usize) {
        if let Some(pass) = self.gated() {
            until(&pass.changed, || lock(&pass.counts).applied >= count).await;
        }
    }

    /// Waits until no turn runs.
    pub async fn idle(&self) {
        until(&self.changed, || lock(&self.inner).running == 0).await;
    }

    fn gated(&self) -> Option<Arc<Pass>> {
        lock(&self.inner).gated.clone()
    }

    pub(crate) fn begin(self: &Arc<Self>) -> AtGate {
        let mut inner = lock(&self.inner);
        inner.running += 1;
        let pass = std::mem::take(&mut inner.next).then(Arc::<Pass>::default);
        if pass.is_some() {
            inner.gated.clone_from(&pass);
        }
        drop(inner);
        AtGate { gate: self.clone(), pass }
    }
}

/// Waits until something holds, looking again whenever it may have changed.
async fn until(changed: &Notify, holds: impl Fn() -> bool) {
    loop {
        let woken = changed.notified();
        tokio::pin!(woken);
        woken.as_mut().enable();
        if holds() {
            return;
        }
        woken.await;
    }
}

impl AtGate {
    /// Waits for a permit, or for the order to stop.
    pub(crate) async fn pass(&self, stop: &CancellationToken) {
        let Some(pass) = &self.pass else { return };
        let taken = || {
            let mut counts = lock(&pass.counts);
            let may = counts.open || counts.permits > 0;
            if may && !counts.open {
                counts.permits -= 1;
            }
            may
        };
        tokio::select! {
            () = until(&pass.changed, taken) => {}
            () = stop.cancelled() => {}
        }
    }

    /// An event was kept and told.
    pub(crate) fn applied(&self) {
        if let Some(pass) = &self.pass {
            lock(&pass.counts).applied += 1;
            pass.changed.notify_waiters();
        }
    }
}

impl Drop for AtGate {
    fn drop(&mut self) {
        lock(&self.gate.inner).running -= 1;
        self.gate.changed.notify_waiters();
    }
}
