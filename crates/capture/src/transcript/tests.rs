use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::exchange::*;
use crate::json;
use crate::json::tests::any_json;
use crate::recorder::Recorder;

const APPROVAL: &str = r#"### 1 · watch a task
POST /tasks HTTP/1.1
Host: localhost:8080
Content-Type: application/json
A2A-Version: 1.0
Accept: text/event-stream

{
  "id": 1
}

HTTP/1.1 200 OK
Content-Type: text/event-stream

data: {"state": "waiting"}

# The stream stays open.

### 2 · approve it
POST /approve/1 HTTP/1.1
Host: localhost:8080
Content-Type: application/json

{}

HTTP/1.1 200 OK
Content-Type: application/json

{
  "approved": true
}

data: {"state": "done"}

### 3 · watch a finished task
GET /tasks/1 HTTP/1.1
Host: localhost:8080

HTTP/1.1 401 Unauthorized
Content-Type: application/json
WWW-Authenticate: Bearer

{
  "error": "who are you?"
}

### webhook 1 · received by the client
POST /hook HTTP/1.1
Content-Type: application/json
Authorization: Bearer hook
X-A2A-Notification-Token: token

{
  "state": "done"
}
"#;

fn headers(pairs: &[(&str, &str)]) -> Headers {
    let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    pairs.iter().map(own).collect()
}

fn post(path: &str, body: &str) -> Request {
    Request {
        method: "POST".into(),
        path: path.into(),
        headers: headers(&[("host", "localhost:8080")]),
        body: (!body.is_empty()).then(|| body.into()),
    }
}

fn frame(data: &str) -> StreamItem {
    let (data, at) = (data.to_owned(), None);
    StreamItem::Frame { data, at }
}

fn answers(capture: &Capture) -> Vec<&Answer> {
    capture.exchanges().map(|(_, e)| &e.answer).collect()
}

fn problem(text: &str) -> (usize, Problem) {
    let error = read(text).unwrap_err();
    (error.line, error.problem)
}

/// An exchange whose response has the given body.
fn answered(body: &str) -> String {
    format!("### 1 · t\nGET / HTTP/1.1\nHost: h\n\nHTTP/1.1 200 OK\nContent-Type: text/plain\n\n{body}")
}

#[test]
fn a_transcript_that_is_read_is_written_as_it_was() {
    let capture = read(APPROVAL).unwrap();
    assert_eq!(write(&capture), APPROVAL);
    let Answer::Stream(stream) = answers(&capture)[0] else { panic!("no stream") };
    let expected = [
        frame(r#"{"state": "waiting"}"#),
        StreamItem::Note("The stream stays open.".into()),
        StreamItem::Exchange(2),
        frame(r#"{"state": "done"}"#),
    ];
    assert_eq!(stream.items, expected);
    assert_eq!(capture.webhooks().count(), 1);
}

#[test]
fn windows_line_ends_are_read_as_line_feeds() {
    let windows = APPROVAL.replace('\n', "\r\n");
    assert_eq!(read(&windows), read(APPROVAL));
}

#[test]
fn headers_are_picked_ordered_and_spelled() {
    let recorder = Recorder::new();
    let mut request = post("/", "");
    request.headers = headers(&[
        ("user-agent", "x"),
        ("authorization", "Bearer t"),
        ("a2a-version", "1.0"),
        ("content-length", "2"),
        ("HOST", "h"),
    ]);
    let sent = headers(&[("date", "now"), ("www-authenticate", "Bearer"), ("content-type", "text/plain")]);
    let ticket = recorder.begin("t", request);
    ticket.answer(Response::new(401, sent, b"no".to_vec()));
    let expected = "### 1 · t\nPOST / HTTP/1.1\nHost: h\nAuthorization: Bearer t\nA2A-Version: 1.0\n\n\
        HTTP/1.1 401 Unauthorized\nContent-Type: text/plain\nWWW-Authenticate: Bearer\n\nno\n";
    assert_eq!(write(&recorder.capture()), expected);
}

#[test]
fn a_body_that_is_not_json_is_written_and_read_as_it_is() {
    let recorder = Recorder::new();
    let body = "{\"broken\": \n\n\n  text ";
    recorder.begin("t", post("/", body)).failed("reset");
    let text = write(&recorder.capture());
    assert!(text.ends_with(&format!("\n\n{body}\n\n# no answer: reset\n")));
    let capture = read(&text).unwrap();
    let (_, exchange) = capture.exchanges().next().unwrap();
    assert_eq!(exchange.request.body.as_deref(), Some(body.as_bytes()));
    assert_eq!(exchange.answer, Answer::NoAnswer("reset".into()));
}

#[test]
fn an_exchange_after_the_last_event_of_a_stream_stands_after_the_stream() {
    let cut = APPROVAL.replace("data: {\"state\": \"done\"}\n\n", "");
    let Answer::Stream(stream) = answers(&read(&cut).unwrap())[0].clone() else { panic!("no stream") };
    assert_eq!(stream.items.len(), 2);
}

#[test]
fn events_are_told_in_the_order_in_which_the_streams_ended() {
    let recorder = Recorder::new();
    let [first, second] = ["first", "second"].map(|title| recorder.begin(title, post("/", "")));
    first.open_stream(200, Headers::new());
    second.open_stream(200, Headers::new());
    first.frame(r#"{"n":1.0}"#);
    second.frame("not JSON");
    second.end();
    first.end();
    let expected = r#"[
  {
    "exchange": 2,
    "title": "second",
    "events": [
      "not JSON"
    ]
  },
  {
    "exchange": 1,
    "title": "first",
    "events": [
      {
        "n": 1.0
      }
    ]
  }
]
"#;
    assert_eq!(events(&recorder.capture()).as_deref(), Some(expected));
}

#[test]
fn a_capture_without_streams_has_no_events() {
    assert_eq!(events(&read(&answered("{}")).unwrap()), None);
}

#[test]
fn an_exchange_keeps_its_number_where_the_text_is_not_in_order_of_numbers() {
    let recorder = Recorder::new();
    let stream = recorder.begin("stream", post("/", ""));
    let other = recorder.begin("other", post("/", ""));
    let sse = headers(&[("Content-Type", "text/event-stream")]);
    stream.open_stream(200, sse);
    let nested = recorder.begin("nested", post("/", ""));
    stream.frame("{}");
    for ticket in [other, nested] {
        ticket.failed("x");
    }
    let text = write(&recorder.capture());
    let numbers: Vec<_> = text.lines().filter(|line| line.starts_with("### ")).collect();
    assert_eq!(numbers, ["### 1 · stream", "### 3 · nested", "### 2 · other"]);
    assert_eq!(write(&read(&text).unwrap()), text);
}

#[test]
fn an_event_of_several_lines_is_read_back_whole() {
    let text = answered("x").replace("text/plain", "text/event-stream");
    let text = text.replace("\nx", "\ndata: one\ndata:  two\n");
    let Answer::Stream(stream) = answers(&read(&text).unwrap())[0].clone() else { panic!("no stream") };
    assert_eq!(stream.items, [frame("one\n two")]);
    assert_eq!(write(&read(&text).unwrap()), text);
}

#[test]
fn an_empty_text_is_an_empty_capture() {
    assert_eq!(read(" \n"), Ok(Capture::default()));
    assert_eq!(write(&Capture::default()), "\n");
}

#[test]
fn errors_name_the_line() {
    assert_eq!(problem("hello"), (1, Problem::NoTitle));
    assert_eq!(problem("### 1 · t\nGET /"), (2, Problem::NoRequest));
    assert_eq!(problem("### 1 · t\nGET / HTTP/1.1\nHost"), (3, Problem::NoHeader));
    assert_eq!(problem("### 1 · t\nGET / HTTP/1.1\n\n{}\n\n### 2 · t"), (6, Problem::NoAnswer));
    let twice = answered("{}\n\n") + &answered("{}");
    assert_eq!(problem(&twice), (10, Problem::Number(1)));
    assert_eq!(problem(&answered("").replace('1', "2").replace("2.2", "1.1")), (1, Problem::Number(2)));
    assert_eq!(problem(&answered("{}\n\n# a note")), (10, Problem::NoStream));
    assert_eq!(read("hello").unwrap_err().to_string(), "line 1: expected `### N · title`");
}

#[test]
fn a_capture_whose_streams_hold_each_other_is_written_once() {
    let mut capture = read(APPROVAL).unwrap();
    for entry in &mut capture.entries {
        if let Entry::Exchange(exchange) = entry {
            exchange.answer = Answer::Stream(Stream {
                status: 200,
                reason: String::new(),
                headers: Headers::new(),
                items: [0, 1, 2, 3, 4, 2].map(StreamItem::Exchange).to_vec(),
                end: None,
            });
        }
    }
    assert_eq!(write(&capture).matches("### ").count(), 4);
}

/// A body or an event: JSON as the transcript lays it out.
fn json_text(layout: fn(&str) -> Option<String>) -> impl Strategy<Value = String> {
    any_json().prop_map(move |value| layout(&value.to_string()).unwrap())
}

fn body() -> impl Strategy<Value = Option<Vec<u8>>> {
    let text = prop_oneof![json_text(json::pretty), "[a-z{][a-z{\" \n]{0,20}[a-z{]"];
    option::of(text.prop_map(String::into_bytes))
}

fn exchange(answer: impl Strategy<Value = Answer>) -> impl Strategy<Value = Exchange> {
    ("[ -~é·]{0,12}", "/[!-~]{0,8}", "[!-~]{1,8}", body(), answer).prop_map(|(title, path, value, body, answer)| {
        Exchange {
            title,
            request: Request { body, headers: headers(&[("Host", "h"), ("Authorization", &value)]), ..post(&path, "") },
            answer,
            sent: None,
            answered: None,
        }
    })
}

fn plain() -> impl Strategy<Value = Exchange> {
    let whole = (200..600u16, body()).prop_map(|(status, body)| {
        let mut response = Response::new(status, headers(&[("Content-Type", "x/y")]), Vec::new());
        response.body = body;
        Answer::Whole(response)
    });
    let reason = "[a-z]([a-z ]{0,8}[a-z])?";
    exchange(prop_oneof![4 => whole, 1 => reason.prop_map(Answer::NoAnswer)])
}

/// An exchange with a stream, and what is asked while it is open, each with the event that follows it.
fn streaming() -> impl Strategy<Value = Vec<Exchange>> {
    let item = prop_oneof![
        json_text(json::line).prop_map(|data| frame(&data)),
        "[a-z#]([a-z# ]{0,8}[a-z])?".prop_map(StreamItem::Note),
    ];
    let steps = vec((option::of(plain()), item), 0..5);
    let opening = exchange(Just(Answer::NoAnswer(String::new())));
    (opening, steps).prop_map(|(mut opening, steps)| {
        let (mut items, mut nested) = (Vec::new(), Vec::new());
        for (asked, item) in steps {
            if let Some(asked) = asked {
                nested.push(asked);
                items.push(StreamItem::Exchange(nested.len()));
            }
            items.push(item);
        }
        opening.answer = Answer::Stream(Stream {
            status: 200,
            reason: "OK".into(),
            headers: headers(&[("Content-Type", "text/event-stream")]),
            items,
            end: None,
        });
        nested.insert(0, opening);
        nested
    })
}

/// Captures of which the transcript can tell everything.
fn capture() -> impl Strategy<Value = Capture> {
    let group = prop_oneof![plain().prop_map(|exchange| vec![exchange]), streaming()];
    (vec(group, 0..4), vec(("/[a-z]{0,8}", body()), 0..3)).prop_map(|(groups, hooks)| {
        let mut entries = Vec::new();
        let mut ended = 0;
        for group in groups {
            let before = entries.len();
            for mut exchange in group {
                if let Answer::Stream(stream) = &mut exchange.answer {
                    let (order, at) = (ended, None);
                    stream.end = Some(End { order, at });
                    ended += 1;
                    for item in &mut stream.items {
                        if let StreamItem::Exchange(number) = item {
                            *number += before + 1;
                        }
                    }
                }
                entries.push(Entry::Exchange(exchange));
            }
        }
        for (path, body) in hooks {
            let headers = headers(&[("Content-Type", "x/y")]);
            let request = Request { headers, body, ..post(&path, "") };
            entries.push(Entry::Webhook(Webhook { request, at: None }));
        }
        Capture { entries }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_was_written_is_read_back(capture in capture()) {
        let text = write(&capture);
        prop_assert_eq!(read(&text).unwrap(), capture, "{}", text);
    }

    #[test]
    fn any_lines_are_read_without_a_panic(lines in vec(prop::sample::select(APPROVAL.lines().collect::<Vec<_>>()), 0..30)) {
        if let Ok(capture) = read(&lines.join("\n")) {
            let text = write(&capture);
            events(&capture);
            let _ = read(&text);
        }
    }

    #[test]
    fn a_hostile_body_is_written_and_read_without_a_panic(lines in vec(prop::sample::select(APPROVAL.lines().collect::<Vec<_>>()), 0..8), bytes in vec(any::<u8>(), 0..20)) {
        let recorder = Recorder::new();
        let mut body = lines.join("\n").into_bytes();
        body.extend(bytes);
        let mut request = post("/a\r\n\r\nb", "");
        request.body = Some(body.clone());
        let ticket = recorder.begin("a\n### 2 · b", request);
        ticket.answer(Response::new(200, headers(&[("content-type", "a\r\nb")]), body));
        let _ = read(&write(&recorder.capture()));
    }
}
