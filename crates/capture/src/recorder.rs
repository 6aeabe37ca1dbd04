//! A capture in the making.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::exchange::{
    Answer, Capture, End, Entry, Exchange, Headers, Request, Response, Stream, StreamItem, Webhook, reason,
};

/// Takes down exchanges as they happen. Clones write to the same capture, so several tasks may share one.
///
/// Exchanges are numbered in the order in which they are begun. One that is begun while a stream is open is noted
/// in that stream, at the place which it has reached; of several open streams, in the one that was opened last.
#[derive(Clone, Default)]
pub struct Recorder {
    book: Arc<Mutex<Book>>,
    clock: Option<Arc<dyn Fn() -> Duration + Send + Sync>>,
}

#[derive(Default)]
struct Book {
    capture: Capture,
    begun: usize,
    /// Where the open streams stand in the capture, in the order in which they were opened.
    open: Vec<usize>,
    ended: usize,
}

impl Recorder {
    /// A recorder that keeps no times.
    pub fn new() -> Self {
        Self::default()
    }

    /// A recorder that keeps the time of everything: `clock` tells how long ago the caller's start was. It is asked
    /// while the capture is locked, so it must not call the recorder.
    pub fn with_clock(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { clock: Some(Arc::new(clock)), ..Self::default() }
    }

    /// Takes down a request as it leaves. The exchange has no answer until the ticket tells of one.
    pub fn begin(&self, title: impl Into<String>, request: Request) -> Ticket {
        let mut book = self.lock();
        book.begun += 1;
        let number = book.begun;
        if let Some(stream) = book.open.last().copied().and_then(|at| book.stream(at)) {
            stream.items.push(StreamItem::Exchange(number));
        }
        book.capture.entries.push(Entry::Exchange(Exchange {
            title: title.into(),
            request,
            answer: Answer::NoAnswer(String::new()),
            sent: self.now(),
            answered: None,
        }));
        Ticket { recorder: self.clone(), number, place: book.capture.entries.len() - 1 }
    }

    /// Takes down a request that the client received.
    pub fn webhook(&self, request: Request) {
        let mut book = self.lock();
        let at = self.now();
        let webhook = Entry::Webhook(Webhook { request, at });
        book.capture.entries.push(webhook);
    }

    /// Everything so far.
    pub fn capture(&self) -> Capture {
        self.lock().capture.clone()
    }

    fn now(&self) -> Option<Duration> {
        self.clock.as_ref().map(|clock| clock())
    }

    /// A clock that panicked left the book as it was, so the lock's poison says nothing.
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Book {
    fn exchange(&mut self, place: usize) -> Option<&mut Exchange> {
        match self.capture.entries.get_mut(place)? {
            Entry::Exchange(exchange) => Some(exchange),
            Entry::Webhook(_) => None,
        }
    }

    fn stream(&mut self, place: usize) -> Option<&mut Stream> {
        match &mut self.exchange(place)?.answer {
            Answer::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// The stream at this place, if it has not ended yet.
    fn open_stream(&mut self, place: usize) -> Option<&mut Stream> {
        self.stream(place).filter(|stream| stream.end.is_none())
    }

    fn end(&mut self, place: usize, recorder: &Recorder) {
        let order = self.ended;
        if let Some(stream) = self.open_stream(place) {
            let at = recorder.now();
            stream.end = Some(End { order, at });
            self.ended += 1;
            self.open.retain(|open| *open != place);
        }
    }
}

/// One exchange that has begun; tells the recorder what becomes of it.
///
/// The first answer counts, and nothing is added to a stream that has ended: calls out of turn do nothing. A ticket
/// that is dropped ends its stream, as a client does that stops reading.
#[derive(Debug)]
pub struct Ticket {
    recorder: Recorder,
    number: usize,
    place: usize,
}

impl Ticket {
    /// The exchange's number in the capture, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The whole answer arrived.
    pub fn answer(&self, response: Response) {
        self.settle(&mut self.recorder.lock(), Answer::Whole(response));
    }

    /// The head of an event stream arrived.
    pub fn open_stream(&self, status: u16, headers: Headers) {
        let stream =
            Answer::Stream(Stream { status, reason: reason(status).to_owned(), headers, items: Vec::new(), end: None });
        let mut book = self.recorder.lock();
        if self.settle(&mut book, stream) {
            book.open.push(self.place);
        }
    }

    /// An event arrived on the stream; `data` is its data as received.
    pub fn frame(&self, data: impl Into<String>) {
        let data = data.into();
        let mut book = self.recorder.lock();
        let at = self.recorder.now();
        if let Some(stream) = book.open_stream(self.place) {
            stream.items.push(StreamItem::Frame { data, at });
        }
    }

    /// A remark for the reader, at the place that the stream has reached.
    pub fn note(&self, text: impl Into<String>) {
        if let Some(stream) = self.recorder.lock().open_stream(self.place) {
            stream.items.push(StreamItem::Note(text.into()));
        }
    }

    /// The stream ended, whichever side closed it. Exchanges begun from now on are no longer noted in it.
    pub fn end(&self) {
        self.recorder.lock().end(self.place, &self.recorder);
    }

    /// No answer will come, or the stream broke off: then the reason becomes a note in it and it ends.
    pub fn failed(&self, reason: impl Into<String>) {
        let reason = reason.into();
        let mut book = self.recorder.lock();
        if let Some(stream) = book.open_stream(self.place) {
            stream.items.push(StreamItem::Note(reason));
            book.end(self.place, &self.recorder);
        } else {
            self.settle(&mut book, Answer::NoAnswer(reason));
        }
    }

    /// Whether this was the first answer.
    fn settle(&self, book: &mut Book, answer: Answer) -> bool {
        let waiting =
            |exchange: &&mut Exchange| matches!(&exchange.answer, Answer::NoAnswer(reason) if reason.is_empty());
        let Some(exchange) = book.exchange(self.place).filter(waiting) else {
            return false;
        };
        exchange.answer = answer;
        exchange.answered = self.recorder.now();
        true
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn get(path: &str) -> Request {
        Request { method: "GET".into(), path: path.into(), ..Request::default() }
    }

    fn items(recorder: &Recorder, number: usize) -> Vec<StreamItem> {
        let capture = recorder.capture();
        let (_, exchange) = capture.exchanges().nth(number - 1).unwrap();
        match &exchange.answer {
            Answer::Stream(stream) => stream.items.clone(),
            other => panic!("no stream: {other:?}"),
        }
    }

    fn frame(data: &str) -> StreamItem {
        let (data, at) = (data.to_owned(), None);
        StreamItem::Frame { data, at }
    }

    #[test]
    fn an_exchange_begun_while_a_stream_is_open_is_noted_at_the_place_reached() {
        let recorder = Recorder::new();
        let stream = recorder.begin("stream", get("/"));
        stream.open_stream(200, Headers::new());
        stream.frame("1");
        let nested = recorder.begin("nested", get("/"));
        stream.frame("2");
        nested.answer(Response::new(200, Headers::new(), Vec::new()));
        stream.end();
        recorder.begin("later", get("/")).failed("refused");
        let expected = [frame("1"), StreamItem::Exchange(2), frame("2")];
        assert_eq!(items(&recorder, 1), expected);
        assert_eq!(recorder.capture().exchanges().count(), 3);
    }

    #[test]
    fn of_several_open_streams_the_last_one_opened_holds_the_new_exchange() {
        let recorder = Recorder::new();
        let [first, second] = ["first", "second"].map(|title| recorder.begin(title, get("/")));
        second.open_stream(200, Headers::new());
        first.open_stream(200, Headers::new());
        recorder.begin("third", get("/"));
        first.end();
        recorder.begin("fourth", get("/"));
        assert_eq!(items(&recorder, 1), [StreamItem::Exchange(3)]);
        assert_eq!(items(&recorder, 2), [StreamItem::Exchange(4)]);
    }

    #[test]
    fn a_dropped_ticket_ends_its_stream() {
        let recorder = Recorder::new();
        let stream = recorder.begin("stream", get("/"));
        stream.open_stream(200, Headers::new());
        drop(stream);
        recorder.begin("later", get("/"));
        assert_eq!(items(&recorder, 1), []);
    }

    #[test]
    fn a_broken_stream_keeps_its_events_and_says_why() {
        let recorder = Recorder::new();
        let stream = recorder.begin("stream", get("/"));
        stream.open_stream(200, Headers::new());
        stream.frame("1");
        stream.failed("connection reset");
        stream.frame("2");
        stream.answer(Response::new(200, Headers::new(), Vec::new()));
        let expected = [frame("1"), StreamItem::Note("connection reset".into())];
        assert_eq!(items(&recorder, 1), expected);
    }

    #[test]
    fn times_come_from_the_clock_that_was_handed_in() {
        let ticks = AtomicU64::new(0);
        let recorder = Recorder::with_clock(move || Duration::from_millis(ticks.fetch_add(1, Ordering::Relaxed)));
        let ticket = recorder.begin("stream", get("/"));
        ticket.open_stream(200, Headers::new());
        ticket.frame("1");
        ticket.end();
        let capture = recorder.capture();
        let (_, exchange) = capture.exchanges().next().unwrap();
        let Answer::Stream(stream) = &exchange.answer else { panic!("no stream") };
        let StreamItem::Frame { at, .. } = &stream.items[0] else { panic!("no frame") };
        let end = stream.end.unwrap();
        assert_eq!(end.order, 0);
        let told = [exchange.sent, exchange.answered, *at, end.at];
        assert_eq!(told, [0, 1, 2, 3].map(|ms| Some(Duration::from_millis(ms))));
    }

    #[test]
    fn several_tasks_may_share_one_recorder() {
        let recorder = Recorder::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let ticket = recorder.begin("stream", get("/"));
                        ticket.open_stream(200, Headers::new());
                        ticket.frame("1");
                    }
                });
            }
        });
        let capture = recorder.capture();
        let mut orders: Vec<_> = capture
            .exchanges()
            .map(|(_, exchange)| match &exchange.answer {
                Answer::Stream(stream) => stream.end.unwrap().order,
                other => panic!("no stream: {other:?}"),
            })
            .collect();
        orders.sort_unstable();
        assert_eq!(orders, (0..100).collect::<Vec<_>>());
    }
}
