//! Attempts to send a message, so that the same message sent again joins its first attempt (DECISIONS O11).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::HashMap;
use protocol::{Error, Message, MessageId};
use tokio::sync::Notify;

use crate::engine::Engine;
use crate::slot::Slot;
use crate::store::Principal;

/// Which resends join.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Dedupe {
    /// Those whose first attempt has not been answered: it still runs, or its connection broke.
    #[default]
    Unanswered,
    /// All, as long as the task is kept.
    Always,
    /// None.
    Off,
}

/// How long an attempt whose connection broke stays joinable after its task ended.
const JOINABLE: Duration = Duration::from_secs(600);

/// What became of an attempt.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// A direct message.
    Message(Arc<Message>),
    /// A turn of a task.
    Turn(Arc<Slot>, u32),
    /// It was refused.
    Error(Error),
}

/// One attempt to send one message.
#[derive(Debug)]
pub(crate) struct Attempt {
    key: (Principal, MessageId),
    /// The message as it was sent.
    pub message: Arc<Message>,
    outcome: Mutex<Option<Outcome>>,
    known: Notify,
    marks: AtomicU8,
}

/// Its answer was written.
const ANSWERED: u8 = 1;
/// Its connection broke before that.
const BROKEN: u8 = 2;
/// Nothing more will come of it: the direct message is there, or the task has ended.
const OVER: u8 = 4;

impl Attempt {
    pub fn new(owner: &Principal, message: &Arc<Message>) -> Arc<Self> {
        Arc::new(Self {
            key: (owner.clone(), message.message_id.clone()),
            message: message.clone(),
            outcome: Mutex::default(),
            known: Notify::new(),
            marks: AtomicU8::new(0),
        })
    }

    /// Says what became of it. Only the first word counts.
    pub fn becomes(&self, outcome: Outcome) {
        let mut known = lock(&self.outcome);
        if known.is_none() {
            *known = Some(outcome);
            drop(known);
            self.known.notify_waiters();
        }
    }

    /// What became of it, if that is known.
    pub fn outcome(&self) -> Option<Outcome> {
        lock(&self.outcome).clone()
    }

    /// Waits until it is known what became of it.
    pub async fn known(&self) -> Outcome {
        loop {
            let woken = self.known.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            woken.await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The attempts that a resend may still join.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    dedupe: Dedupe,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: HashMap<(Principal, MessageId), Arc<Attempt>>,
    /// Attempts whose task has ended without their being answered, oldest first.
    leaving: VecDeque<(Instant, Arc<Attempt>)>,
}

impl Attempts {
    pub fn new(dedupe: Dedupe) -> Self {
        Self { dedupe, inner: Mutex::default() }
    }

    /// The attempt that this one is a resend of. Otherwise this one is open from now on.
    pub fn join(&self, attempt: &Arc<Attempt>) -> Option<Arc<Attempt>> {
        if self.dedupe == Dedupe::Off {
            return None;
        }
        let mut inner = lock(&self.inner);
        while let Some((since, old)) = inner.leaving.front() {
            if since.elapsed() < JOINABLE {
                break;
            }
            let old = old.clone();
            inner.leaving.pop_front();
            inner.close(&old);
        }
        match inner.open.get(&attempt.key) {
            Some(first) if first.message == attempt.message => Some(first.clone()),
            // The same id with other content is a new message; the older one keeps the name.
            Some(_) => None,
            None => {
                inner.open.insert(attempt.key.clone(), attempt.clone());
                None
            }
        }
    }

    /// Whether resends join long after their first attempt was answered: the store then remembers it.
    pub fn remembers(&self) -> bool {
        self.dedupe == Dedupe::Always
    }

    /// The attempt's answer was written.
    fn answered(&self, attempt: &Arc<Attempt>) {
        attempt.marks.fetch_or(ANSWERED, Ordering::AcqRel);
        let refused = matches!(attempt.outcome(), Some(Outcome::Error(_)));
        if self.dedupe == Dedupe::Unanswered || (refused && self.dedupe == Dedupe::Always) {
            lock(&self.inner).close(attempt);
        }
    }

    /// Nothing more will come of the attempt.
    pub fn over(&self, attempt: &Arc<Attempt>) {
        self.mark(attempt, OVER);
    }

    /// An attempt that is over and whose connection broke is joinable for a while more. So is every direct message when
    /// all resends join; what came to a task, the store remembers.
    fn mark(&self, attempt: &Arc<Attempt>, mark: u8) {
        let before = attempt.marks.fetch_or(mark, Ordering::AcqRel);
        let is_new = |wanted: u8| before & wanted != wanted && (before | mark) & wanted == wanted;
        match self.dedupe {
            Dedupe::Unanswered if is_new(BROKEN | OVER) && before & ANSWERED == 0 => {
                lock(&self.inner).leaving.push_back((Instant::now(), attempt.clone()));
            }
            Dedupe::Always if is_new(OVER) => match attempt.outcome() {
                Some(Outcome::Turn(..) | Outcome::Error(_)) => lock(&self.inner).close(attempt),
                _ => lock(&self.inner).leaving.push_back((Instant::now(), attempt.clone())),
            },
            _ => {}
        }
    }
}

/// An answer on its way. Dropped without a word, its connection broke.
pub(crate) struct Ticket {
    engine: Arc<Engine>,
    pub attempt: Arc<Attempt>,
    answered: bool,
}

impl Ticket {
    pub fn new(engine: Arc<Engine>, attempt: Arc<Attempt>) -> Self {
        Self { engine, attempt, answered: false }
    }

    /// The answer is taken to be written.
    pub fn answered(&mut self) {
        if !std::mem::replace(&mut self.answered, true) {
            self.engine.attempts.answered(&self.attempt);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.answered {
            self.engine.attempts.mark(&self.attempt, BROKEN);
        }
    }
}

impl Inner {
    fn close(&mut self, attempt: &Arc<Attempt>) {
        if self.open.get(&attempt.key).is_some_and(|open| Arc::ptr_eq(open, attempt)) {
            self.open.remove(&attempt.key);
        }
    }
}
