//! The adapter from the client's tap to a capture.

use capture::{Recorder, Request, Response, Ticket};
use client::{Exchange, Headers, Sent, Tap};

/// Writes down every exchange that it hears of.
#[derive(Debug, Clone)]
pub struct Record(pub Recorder);

impl Tap for Record {
    fn begin(&self, sent: Sent<'_>) -> Box<dyn Exchange> {
        let request = Request {
            method: sent.method.to_owned(),
            path: sent.path.to_owned(),
            headers: sent.headers.clone(),
            body: sent.body.map(<[u8]>::to_vec),
        };
        Box::new(Recorded(self.0.begin(sent.title, request)))
    }
}

struct Recorded(Ticket);

impl Exchange for Recorded {
    fn answered(&mut self, status: u16, headers: &Headers, body: &[u8]) {
        self.0.answer(Response::new(status, headers.clone(), body.to_vec()));
    }

    fn opened(&mut self, status: u16, headers: &Headers) {
        self.0.open_stream(status, headers.clone());
    }

    fn frame(&mut self, data: &str) {
        self.0.frame(data);
    }

    fn note(&mut self, text: &str) {
        self.0.note(text);
    }

    fn ended(&mut self) {
        self.0.end();
    }

    fn failed(&mut self, why: &str) {
        self.0.failed(why);
    }
}
