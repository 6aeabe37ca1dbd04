//! From capture to text.

use std::borrow::Cow;

use super::NO_ANSWER;
use crate::exchange::{Answer, Capture, Exchange, Headers, Request, Stream, StreamItem};
use crate::json::{self, Layout};

/// Request headers that are kept, beside `Host`, in the order in which they were sent.
const REQUEST: &[&str] = &["Content-Type", "A2A-Version", "A2A-Extensions", "Authorization", "Accept"];
/// Response headers that are kept, in this order.
const RESPONSE: &[&str] = &["Content-Type", "WWW-Authenticate"];
/// Headers of webhooks that are kept, in this order.
const WEBHOOK: &[&str] = &["Content-Type", "Authorization", "X-A2A-Notification-Token"];

/// The capture as a transcript. Line breaks in titles, notes and heads become blanks; foreign bytes become `U+FFFD`.
pub fn write(capture: &Capture) -> String {
    let exchanges: Vec<&Exchange> = capture.exchanges().map(|(_, exchange)| exchange).collect();
    let mut text = Text::default();
    let mut written = vec![false; exchanges.len()];
    // Streams whose items are being written, the innermost last.
    let mut open: Vec<(usize, std::slice::Iter<'_, StreamItem>)> = Vec::new();
    for top in 1..=exchanges.len() {
        let mut next = Some(top);
        while next.is_some() || !open.is_empty() {
            if let Some(number) = next.take().filter(|number| !written[number - 1]) {
                written[number - 1] = true;
                if let Some(stream) = text.exchange(number, exchanges[number - 1]) {
                    open.push((number, stream.items.iter()));
                }
            }
            let Some((owner, items)) = open.last_mut() else {
                break;
            };
            match items.next() {
                Some(StreamItem::Frame { data, .. }) => text.frame(data),
                Some(StreamItem::Note(note)) => text.part(&format!("# {}", one_line(note))),
                Some(StreamItem::Exchange(number)) => {
                    next = Some(*number).filter(|n| n > owner && *n <= exchanges.len());
                }
                None => {
                    open.pop();
                }
            }
        }
    }
    for (number, webhook) in capture.webhooks() {
        text.line(&format!("### webhook {number} · received by the client"));
        let headers = in_listed_order(&webhook.request.headers, WEBHOOK);
        text.request(&webhook.request, headers);
    }
    text.finish()
}

/// The events of the capture's streams as a JSON array with one object a stream: `exchange` (its number), `title`
/// and `events`. The stream that ended first comes first, those still open come last. `None` if there was no stream.
///
/// Data that is not JSON is told as a string.
pub fn events(capture: &Capture) -> Option<String> {
    let mut streams: Vec<_> = capture
        .exchanges()
        .filter_map(|(number, exchange)| match &exchange.answer {
            Answer::Stream(stream) => Some((number, &exchange.title, stream)),
            _ => None,
        })
        .collect();
    streams.sort_by_key(|(.., stream)| stream.end.map_or(usize::MAX, |end| end.order));
    let told: Vec<String> = streams
        .into_iter()
        .map(|(number, title, stream)| {
            let title = serde_json::Value::from(title.as_str());
            let events: Vec<_> = stream.items.iter().filter_map(event).collect();
            let events = events.join(",");
            format!(r#"{{"exchange":{number},"title":{title},"events":[{events}]}}"#)
        })
        .collect();
    let array = format!("[{}]", told.join(","));
    (!told.is_empty()).then(|| json::lay_out(&array, Layout::Indented) + "\n")
}

fn event(item: &StreamItem) -> Option<Cow<'_, str>> {
    match item {
        StreamItem::Frame { data, .. } if json::is_json(data) => Some(data.into()),
        StreamItem::Frame { data, .. } => Some(serde_json::Value::from(data.as_str()).to_string().into()),
        _ => None,
    }
}

type Kept<'a> = Vec<(&'static str, &'a str)>;

fn in_listed_order<'a>(headers: &'a Headers, names: &[&'static str]) -> Kept<'a> {
    let one = |name: &&'static str| in_sent_order(headers, &[name]);
    names.iter().flat_map(one).collect()
}

fn in_sent_order<'a>(headers: &'a Headers, names: &[&'static str]) -> Kept<'a> {
    let spelled = |sent: &str| names.iter().find(|name| name.eq_ignore_ascii_case(sent));
    let kept = |(name, value): &'a (String, String)| Some((*spelled(name)?, value.as_str()));
    headers.iter().filter_map(kept).collect()
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn part(&mut self, lines: &str) {
        self.line(lines);
        self.line("");
    }

    /// Gives back the stream if there is one: its items are still to be written.
    fn exchange<'a>(&mut self, number: usize, exchange: &'a Exchange) -> Option<&'a Stream> {
        self.line(&format!("### {number} · {}", one_line(&exchange.title)));
        let mut headers = in_listed_order(&exchange.request.headers, &["Host"]);
        headers.extend(in_sent_order(&exchange.request.headers, REQUEST));
        self.request(&exchange.request, headers);
        match &exchange.answer {
            Answer::Whole(answer) => {
                self.head(answer.status, &answer.reason, &answer.headers);
                self.body(answer.body.as_deref());
            }
            Answer::Stream(stream) => {
                self.head(stream.status, &stream.reason, &stream.headers);
                return Some(stream);
            }
            Answer::NoAnswer(reason) if reason.is_empty() => self.part(NO_ANSWER),
            Answer::NoAnswer(reason) => self.part(&format!("{NO_ANSWER}: {}", one_line(reason))),
        }
        None
    }

    fn request(&mut self, request: &Request, headers: Kept<'_>) {
        let [method, path] = [&request.method, &request.path].map(|word| one_line(word));
        self.line(&format!("{method} {path} HTTP/1.1"));
        self.headers(headers);
        self.body(request.body.as_deref());
    }

    fn head(&mut self, status: u16, reason: &str, headers: &Headers) {
        let line = format!("HTTP/1.1 {status:03} {}", one_line(reason));
        self.line(line.trim_end());
        self.headers(in_listed_order(headers, RESPONSE));
    }

    fn headers(&mut self, headers: Kept<'_>) {
        for (name, value) in headers {
            self.line(&format!("{name}: {}", one_line(value)));
        }
        self.line("");
    }

    fn body(&mut self, body: Option<&[u8]>) {
        if let Some(bytes) = body.filter(|bytes| !bytes.is_empty()) {
            let text = String::from_utf8_lossy(bytes);
            self.part(&json::pretty(&text).map_or(text, Cow::Owned));
        }
    }

    fn frame(&mut self, data: &str) {
        let data = json::line(data).map_or(Cow::Borrowed(data), Cow::Owned);
        for line in data.split('\n') {
            self.line(&format!("data: {line}"));
        }
        self.line("");
    }

    fn finish(self) -> String {
        self.0.trim_end().to_owned() + "\n"
    }
}

fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ").into() } else { text.into() }
}
