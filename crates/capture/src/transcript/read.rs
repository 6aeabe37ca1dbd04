//! From text to capture.

use std::collections::BTreeMap;

use super::NO_ANSWER;
use crate::exchange::{Answer, Capture, End, Entry, Exchange, Headers, Request, Response, Stream, StreamItem, Webhook};
use crate::json;

/// A text that is not a transcript.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ReadError {
    /// The number of the line, from 1; one past the last line if the text ends too early.
    pub line: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What can be wrong with a line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Between two exchanges something else stands.
    #[error("expected `### N · title`")]
    NoTitle,
    /// A title's number is not the number of any exchange that is missing.
    #[error("number {0} is used twice or leaves a gap before it")]
    Number(usize),
    /// After a title.
    #[error("expected `METHOD PATH HTTP/1.1`")]
    NoRequest,
    /// In a head.
    #[error("expected `Name: value` or an empty line")]
    NoHeader,
    /// After a request.
    #[error("expected `HTTP/1.1 CODE REASON` or `{NO_ANSWER}: reason`")]
    NoAnswer,
    /// Nothing that could have sent the event is open.
    #[error("an event or note outside a stream")]
    NoStream,
}

/// Reads a transcript. `\r\n` counts as `\n`, and white space at the end of the text is not read.
///
/// A stream counts as open until another is opened or a webhook follows; it ends then.
///
/// # Errors
/// The first line that does not fit, and why.
pub fn read(text: &str) -> Result<Capture, ReadError> {
    let text = text.trim_end();
    let end_of_line = |line| str::strip_suffix(line, '\r').unwrap_or(line);
    let mut reader = Reader {
        lines: text.split('\n').map(end_of_line).collect(),
        at: 0,
        exchanges: BTreeMap::new(),
        webhooks: Vec::new(),
        open: None,
        streams: 0,
    };
    reader.blocks()?;
    reader.finish()
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    /// The index of the next line.
    at: usize,
    /// With the index of their titles.
    exchanges: BTreeMap<usize, (usize, Exchange)>,
    webhooks: Vec<Entry>,
    open: Option<Open>,
    streams: usize,
}

/// The stream to which the next event belongs.
struct Open {
    number: usize,
    /// Exchanges read since its last item: in the stream if another item comes, after it if none does.
    since: Vec<usize>,
}

enum Title<'a> {
    Exchange(usize, &'a str),
    Webhook(usize),
}

impl<'a> Reader<'a> {
    fn blocks(&mut self) -> Result<(), ReadError> {
        while let Some(line) = self.peek() {
            if let Some(title) = title(line) {
                self.at += 1;
                match title {
                    Title::Exchange(number, title) => self.exchange(number, title)?,
                    Title::Webhook(number) => self.webhook(number)?,
                }
            } else if line.starts_with("data:") {
                let mut data = Vec::new();
                while let Some(more) = self.peek().and_then(|line| line.strip_prefix("data:")) {
                    data.push(more.strip_prefix(' ').unwrap_or(more));
                    self.at += 1;
                }
                let data = data.join("\n");
                self.item(StreamItem::Frame { data, at: None })?;
            } else if let Some(note) = note(line) {
                self.at += 1;
                self.item(StreamItem::Note(note.to_owned()))?;
            } else if line.is_empty() {
                self.at += 1;
            } else {
                return self.fail(Problem::NoTitle);
            }
        }
        Ok(())
    }

    fn exchange(&mut self, number: usize, title: &str) -> Result<(), ReadError> {
        let place = self.at - 1;
        if self.exchanges.contains_key(&number) {
            return self.fail_at(place, Problem::Number(number));
        }
        let request = self.request(answer_begins)?;
        let answer = self.answer()?;
        if let Answer::Stream(_) = answer {
            let since = Vec::new();
            self.open = Some(Open { number, since });
        } else if let Some(open) = &mut self.open {
            open.since.push(number);
        }
        let exchange = Exchange { title: title.to_owned(), request, answer, sent: None, answered: None };
        self.exchanges.insert(number, (place, exchange));
        Ok(())
    }

    fn webhook(&mut self, number: usize) -> Result<(), ReadError> {
        if number != self.webhooks.len() + 1 {
            return self.fail_at(self.at - 1, Problem::Number(number));
        }
        self.open = None;
        let request = self.request(|line| title(line).is_some())?;
        let webhook = Webhook { request, at: None };
        self.webhooks.push(Entry::Webhook(webhook));
        Ok(())
    }

    fn request(&mut self, ends: impl Fn(&str) -> bool) -> Result<Request, ReadError> {
        let line = self.peek().and_then(|line| {
            let (method, path) = line.strip_suffix(" HTTP/1.1")?.split_once(' ')?;
            (!method.is_empty()).then(|| (method.to_owned(), path.to_owned()))
        });
        let Some((method, path)) = line else {
            return self.fail(Problem::NoRequest);
        };
        self.at += 1;
        Ok(Request { method, path, headers: self.headers()?, body: self.body(ends) })
    }

    fn answer(&mut self) -> Result<Answer, ReadError> {
        let line = self.peek().unwrap_or_default();
        if let Some(reason) = no_answer(line) {
            self.at += 1;
            return Ok(Answer::NoAnswer(reason.to_owned()));
        }
        let Some((status, reason)) = status(line) else {
            return self.fail(Problem::NoAnswer);
        };
        self.at += 1;
        let reason = reason.to_owned();
        let headers = self.headers()?;
        if is_event_stream(&headers) {
            let end = End { order: self.streams, at: None };
            self.streams += 1;
            return Ok(Answer::Stream(Stream { status, reason, headers, items: Vec::new(), end: Some(end) }));
        }
        let in_stream = self.open.is_some();
        let body =
            self.body(|line| title(line).is_some() || in_stream && (line.starts_with("data:") || note(line).is_some()));
        Ok(Answer::Whole(Response { status, reason, headers, body }))
    }

    /// Takes the empty line after them too.
    fn headers(&mut self) -> Result<Headers, ReadError> {
        let mut headers = Headers::new();
        while let Some(line) = self.peek() {
            if line.is_empty() {
                self.at += 1;
                break;
            }
            let Some((name, value)) = line.split_once(':') else {
                return self.fail(Problem::NoHeader);
            };
            let value = value.strip_prefix(' ').unwrap_or(value);
            headers.push((name.to_owned(), value.to_owned()));
            self.at += 1;
        }
        Ok(headers)
    }

    /// JSON ends at the first empty line, other text at the one before a line that `ends` it. Takes that empty line.
    fn body(&mut self, ends: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
        let lines = self.lines.get(self.at..)?;
        if lines.first().is_none_or(|line| ends(line)) {
            return None;
        }
        let upto = |end: Option<usize>| end.unwrap_or(lines.len());
        let mut end = upto(lines.iter().position(|line| line.is_empty()));
        let mut body = lines[..end].join("\n");
        if !json::is_json(&body) {
            let last = |pair: &[&str]| pair[0].is_empty() && ends(pair[1]);
            end = upto(lines.windows(2).position(last));
            body = lines[..end].join("\n");
        }
        self.at += end + 1;
        Some(body.into_bytes())
    }

    fn item(&mut self, item: StreamItem) -> Result<(), ReadError> {
        if let Some(open) = &mut self.open
            && let Some((_, exchange)) = self.exchanges.get_mut(&open.number)
            && let Answer::Stream(stream) = &mut exchange.answer
        {
            let nested = open.since.drain(..).map(StreamItem::Exchange);
            stream.items.extend(nested.chain([item]));
            return Ok(());
        }
        self.fail_at(self.at - 1, Problem::NoStream)
    }

    fn finish(self) -> Result<Capture, ReadError> {
        let mut entries = Vec::with_capacity(self.exchanges.len() + self.webhooks.len());
        for (expected, (number, (place, exchange))) in (1..).zip(self.exchanges) {
            if number != expected {
                let (line, problem) = (place + 1, Problem::Number(number));
                return Err(ReadError { line, problem });
            }
            entries.push(Entry::Exchange(exchange));
        }
        entries.extend(self.webhooks);
        Ok(Capture { entries })
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn fail<T>(&self, problem: Problem) -> Result<T, ReadError> {
        self.fail_at(self.at, problem)
    }

    fn fail_at<T>(&self, index: usize, problem: Problem) -> Result<T, ReadError> {
        let line = index + 1;
        Err(ReadError { line, problem })
    }
}

fn title(line: &str) -> Option<Title<'_>> {
    let (number, title) = line.strip_prefix("### ")?.split_once(" · ")?;
    match number.strip_prefix("webhook ") {
        Some(number) => Some(Title::Webhook(number.parse().ok()?)),
        None => Some(Title::Exchange(number.parse().ok()?, title)),
    }
}

fn note(line: &str) -> Option<&str> {
    line.strip_prefix("# ").or_else(|| (line == "#").then_some(""))
}

fn no_answer(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(NO_ANSWER)?;
    rest.strip_prefix(": ").or_else(|| rest.is_empty().then_some(""))
}

fn status(line: &str) -> Option<(u16, &str)> {
    let rest = line.strip_prefix("HTTP/1.1 ")?;
    let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let three_digits = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    Some((code.parse().ok().filter(|_| three_digits)?, reason))
}

/// A title ends a request that has no answer, so that the answer is missed there and not further on.
fn answer_begins(line: &str) -> bool {
    status(line).is_some() || no_answer(line).is_some() || title(line).is_some()
}

fn is_event_stream(headers: &Headers) -> bool {
    headers.iter().any(|(name, value)| {
        let media_type = value.split(';').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("Content-Type") && media_type.eq_ignore_ascii_case("text/event-stream")
    })
}
