//! Who hears of a task's events.
//!
//! Each live task has one [`Log`]. The task's owner writes; readers follow at their own pace and never cost the writer
//! more than a wake. An event becomes bytes once, when the first reader or webhook needs it. The log ends with the
//! task; a reader that still holds it reads to the end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use protocol::{Change, StreamResponse, Task, TaskState};

/// How many events a log holds for readers who are behind or come back.
const HELD: usize = 1024;

/// Something that happened to a task. Streams and webhooks show it unless it is a message of the client's.
#[derive(Debug)]
pub struct Event {
    /// Its number within the task, from 1, without a gap. The `id:` of its frame.
    pub number: u64,
    /// The turn it belongs to, from 1.
    pub turn: u32,
    /// What happened.
    pub change: Change,
    json: OnceLock<Bytes>,
    #[cfg(feature = "grpc")]
    message: OnceLock<Result<Bytes, ::grpc::TooDeep>>,
}

impl Event {
    /// Something that is about to happen.
    pub fn new(number: u64, turn: u32, change: Change) -> Self {
        Self {
            number,
            turn,
            change,
            json: OnceLock::new(),
            #[cfg(feature = "grpc")]
            message: OnceLock::new(),
        }
    }

    /// The state it sets, if it is a status update.
    pub fn state(&self) -> Option<TaskState> {
        match &self.change {
            Change::Status(update) => Some(update.status.state),
            Change::Message(_) | Change::Artifact(_) => None,
        }
    }

    /// Whether streams and webhooks show it.
    pub fn is_shown(&self) -> bool {
        !matches!(self.change, Change::Message(_))
    }

    /// The event as a frame holds it.
    pub fn response(&self) -> StreamResponse {
        (&self.change).into()
    }

    /// The event as compact JSON, written once.
    pub fn json(&self) -> &Bytes {
        self.json.get_or_init(|| serde_json::to_vec(&self.response()).unwrap_or_default().into())
    }

    /// The event as a message of gRPC, written once.
    #[cfg(feature = "grpc")]
    pub fn message(&self) -> &Result<Bytes, ::grpc::TooDeep> {
        self.message.get_or_init(|| ::grpc::answer::event(&self.response()))
    }
}

/// The events of one task.
#[derive(Debug, Default)]
pub struct Log(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<Arc<Event>>,
    /// The number of the newest event.
    last: u64,
    /// Nothing more will come.
    closed: bool,
    /// How often all readers were ended: the server shut down, or could not tell what came next.
    cuts: u32,
    /// Readers whose response has not left yet. What is said meanwhile never counts as falling behind.
    waiting_to_start: usize,
    wakers: Vec<(u64, Waker)>,
    /// How many readers there were, and how many there are.
    readers: u64,
    reading: usize,
}

impl Log {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log of a task whose newest event so far has this number.
    pub fn after(number: u64) -> Self {
        Self(Mutex::new(Inner { last: number, ..Inner::default() }))
    }

    /// Tells an event, which has the next number. Only the task's owner calls this, after the event was kept.
    pub fn tell(&self, event: Arc<Event>) {
        let mut inner = self.inner();
        debug_assert_eq!(event.number, inner.last + 1, "events are numbered without a gap");
        inner.last = event.number;
        inner.closed |= event.state().is_some_and(TaskState::is_terminal);
        inner.events.push_back(event);
        if inner.waiting_to_start == 0 {
            while inner.events.len() > HELD {
                inner.events.pop_front();
            }
        }
        inner.wake();
    }

    /// Events up to this number are missing here: whoever reads has fallen behind and must come back for a snapshot.
    pub fn skip_to(&self, number: u64) {
        let mut inner = self.inner();
        inner.events.clear();
        inner.last = number;
        inner.wake();
    }

    /// Ends every reader without a terminal event: the server shuts down, or the store is lost.
    pub fn cut(&self) {
        let mut inner = self.inner();
        inner.cuts += 1;
        inner.wake();
    }

    /// Whether anybody reads.
    pub fn is_read(&self) -> bool {
        self.inner().reading > 0
    }
}

impl Inner {
    fn wake(&mut self) {
        self.wakers.drain(..).for_each(|(_, waker)| waker.wake());
    }
}

/// When a stream closes (DECISIONS O5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The stream of a send: with its own turn, at a terminal state or INPUT_REQUIRED. AUTH_REQUIRED keeps it open.
    WithTurn(u32),
    /// A subscription: with the task.
    WithTask,
}

impl Ends {
    /// Whether a stream of this kind closes after an event.
    pub fn at(self, turn: u32, state: TaskState) -> bool {
        match self {
            _ if state.is_terminal() => true,
            Self::WithTurn(own) => turn >= own && state == TaskState::InputRequired,
            Self::WithTask => false,
        }
    }
}

/// What a reader hears.
#[derive(Debug, Clone)]
pub enum Heard {
    /// The task as it was when the reader came: the first frame.
    Task(Arc<Task>),
    /// An event.
    Event(Arc<Event>),
    /// Events are missing, because the reader was too slow, the server shuts down or its store is lost. The reader must
    /// come back for a snapshot, or for what follows the last event.
    BrokenOff,
}

/// Follows one task.
#[derive(Debug)]
pub struct Reader {
    log: Arc<Log>,
    name: u64,
    /// The number of the last event heard.
    at: u64,
    ends: Ends,
    first: Option<Arc<Task>>,
    started: bool,
    over: bool,
    /// How often readers had been ended before this one came.
    cuts: u32,
}

impl Reader {
    /// Attaches to a log. The caller holds the task's lock, so that nothing is lost or heard twice between the
    /// snapshot and the first event.
    pub fn attach(log: &Arc<Log>, snapshot: Arc<Task>, ends: Ends) -> Self {
        let mut inner = log.inner();
        inner.readers += 1;
        inner.reading += 1;
        inner.waiting_to_start += 1;
        let (name, at, cuts) = (inner.readers, inner.last, inner.cuts);
        drop(inner);
        Self { log: log.clone(), name, at, ends, first: Some(snapshot), started: false, over: false, cuts }
    }

    /// Goes on after an event that the reader has seen, instead of with a snapshot. False when events after it are no
    /// longer held; the snapshot then comes first.
    pub fn resume_after(&mut self, number: u64) -> bool {
        let inner = self.log.inner();
        let oldest = inner.events.front().map_or(inner.last + 1, |event| event.number);
        let held = number <= inner.last && number + 1 >= oldest;
        if held {
            self.at = number;
            self.first = None;
        }
        held
    }

    /// The number of the last event heard, or of the last one before the snapshot.
    pub fn number(&self) -> u64 {
        self.at
    }

    /// What comes next; `None` after the end.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Heard>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut inner = self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut self.started, true) {
            inner.waiting_to_start -= 1;
        }
        if let Some(task) = self.first.take() {
            return Poll::Ready(Some(Heard::Task(task)));
        }
        while self.at < inner.last {
            let oldest = inner.events.front().map_or(inner.last + 1, |event| event.number);
            let next = (self.at + 1).checked_sub(oldest).and_then(|place| inner.events.get(place as usize)).cloned();
            let Some(event) = next else {
                self.over = true;
                return Poll::Ready(Some(Heard::BrokenOff));
            };
            self.at = event.number;
            if event.is_shown() {
                self.over = event.state().is_some_and(|state| self.ends.at(event.turn, state));
                return Poll::Ready(Some(Heard::Event(event)));
            }
        }
        if inner.closed {
            self.over = true;
            return Poll::Ready(None);
        }
        if inner.cuts > self.cuts {
            self.over = true;
            return Poll::Ready(Some(Heard::BrokenOff));
        }
        match inner.wakers.iter_mut().find(|(name, _)| *name == self.name) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => inner.wakers.push((self.name, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.log.inner();
        inner.reading -= 1;
        if !self.started {
            inner.waiting_to_start -= 1;
        }
        inner.wakers.retain(|(name, _)| *name != self.name);
    }
}

#[cfg(test)]
mod tests {
    use protocol::{ContextId, Message, MessageId, Part, Role, TaskId, TaskStatus, TaskStatusUpdateEvent, Timestamp};

    use super::*;

    fn task() -> Arc<Task> {
        let message = Message::new(MessageId::new("m").unwrap(), Role::User, vec![Part::text("go")]);
        let (id, context) = (TaskId::new("t").unwrap(), ContextId::new("c").unwrap());
        Arc::new(Task::submitted(id, context, Arc::new(message), Timestamp::from_millis(0)))
    }

    fn tell(log: &Log, state: TaskState) {
        let change = Change::Status(TaskStatusUpdateEvent {
            task_id: TaskId::new("t").unwrap(),
            context_id: ContextId::new("c").unwrap(),
            status: TaskStatus { state, message: None, timestamp: None },
            metadata: None,
        });
        let number = log.inner().last + 1;
        log.tell(Arc::new(Event::new(number, 1, change)));
    }

    fn hear(reader: &mut Reader) -> Poll<Option<Heard>> {
        reader.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn o05_what_is_told_before_a_reader_starts_never_counts_as_falling_behind() {
        let log = Arc::<Log>::default();
        let mut early = Reader::attach(&log, task(), Ends::WithTask);
        let mut started = Reader::attach(&log, task(), Ends::WithTask);
        assert!(matches!(hear(&mut started), Poll::Ready(Some(Heard::Task(_)))));
        let many = HELD as u64 * 3;
        for _ in 0..many {
            tell(&log, TaskState::Working);
        }
        assert!(matches!(hear(&mut early), Poll::Ready(Some(Heard::Task(_)))));
        for number in 1..=many {
            let Poll::Ready(Some(Heard::Event(event))) = hear(&mut early) else { panic!("{number} is missing") };
            assert_eq!(event.number, number);
        }
        assert!(hear(&mut early).is_pending());
        // From now on everybody has started, and the log holds what it holds.
        for _ in 0..many {
            tell(&log, TaskState::Working);
        }
        assert!(matches!(hear(&mut early), Poll::Ready(Some(Heard::BrokenOff))));
        assert!(matches!(hear(&mut early), Poll::Ready(None)), "it is over for this one");
    }

    #[test]
    fn o05_each_kind_of_stream_ends_where_it_should() {
        use TaskState::{AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Working};
        let table = [
            (Submitted, false, false),
            (Working, false, false),
            (InputRequired, true, false),
            (AuthRequired, false, false),
            (Completed, true, true),
            (Failed, true, true),
            (Canceled, true, true),
            (Rejected, true, true),
        ];
        for (state, send, subscription) in table {
            assert_eq!(Ends::WithTurn(2).at(2, state), send, "{state}");
            assert_eq!(Ends::WithTask.at(2, state), subscription, "{state}");
            assert_eq!(Ends::WithTurn(2).at(1, state), subscription, "an earlier turn: {state}");
        }
    }

    #[test]
    fn a_reader_that_comes_back_goes_on_after_what_it_has_seen_if_that_is_held() {
        let log = Arc::<Log>::default();
        for _ in 0..5 {
            tell(&log, TaskState::Working);
        }
        let mut back = Reader::attach(&log, task(), Ends::WithTask);
        assert!(back.resume_after(3));
        let Poll::Ready(Some(Heard::Event(event))) = hear(&mut back) else { panic!("event 4 is held") };
        assert_eq!(event.number, 4);
        let mut unknown = Reader::attach(&log, task(), Ends::WithTask);
        assert!(!unknown.resume_after(99), "a number that was never told");
        assert!(matches!(hear(&mut unknown), Poll::Ready(Some(Heard::Task(_)))));
    }
}
