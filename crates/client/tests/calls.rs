//! The client against servers that say exactly these bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::live::LiveIds;
use client::{
    Binding, ClientError, Connection, Decision, Exchange, Headers, Http, Limits, Reply, Sent, Tap, Wanted, choose,
};
use protocol::call::SendMessageRequest;
use protocol::{AgentCard, Call, Dial, Ids, Message, MessageId, Method, Part, Role, StreamResponse, TaskId, TaskState};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What a server does with one request.
#[derive(Clone)]
enum Does {
    /// Says these bytes, then closes.
    Says(Vec<u8>),
    /// Says these bytes, then waits for the client to close.
    Holds(Vec<u8>),
    /// Says these bytes again and again, so many milliseconds apart.
    Repeats(Vec<u8>, Vec<u8>, u64),
}

/// A server that does one thing for each connection, in order, and the last one for all further ones.
struct Server {
    at: SocketAddr,
    /// What was asked, as it came.
    asked: Arc<Mutex<Vec<String>>>,
    /// Tells of each connection that a client closed.
    closed: mpsc::UnboundedReceiver<()>,
}

async fn serve(does: impl Into<Vec<Does>>) -> Server {
    let does = does.into();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (at, asked) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let (tell, closed) = mpsc::unbounded_channel();
    let written = asked.clone();
    tokio::spawn(async move {
        for count in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            let does = does[count.min(does.len() - 1)].clone();
            tokio::spawn(play(stream, does, written.clone(), tell.clone()));
        }
    });
    Server { at, asked, closed }
}

async fn play(mut stream: TcpStream, does: Does, asked: Arc<Mutex<Vec<String>>>, tell: mpsc::UnboundedSender<()>) {
    let Some(request) = request(&mut stream).await else { return };
    asked.lock().unwrap().push(request);
    match does {
        Does::Says(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Does::Holds(bytes) => {
            stream.write_all(&bytes).await.unwrap();
            let _ = stream.read(&mut [0; 1]).await;
            let _ = tell.send(());
        }
        Does::Repeats(first, again, pause) => {
            let _ = stream.write_all(&first).await;
            while stream.write_all(&again).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
    }
}

/// One request, head and body.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => text.push_str(std::str::from_utf8(&piece[..read]).unwrap()),
        }
    }
}

/// A whole answer.
fn answer(status: &str, content_type: &str, body: &str) -> Does {
    let typed = if content_type.is_empty() { String::new() } else { format!("content-type: {content_type}\r\n") };
    let length = body.len();
    Does::Says(
        format!("HTTP/1.1 {status}\r\n{typed}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes(),
    )
}

fn json(body: &str) -> Does {
    answer("200 OK", "application/json", body)
}

const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A stream whose bytes come in these pieces.
fn pieces(pieces: &[&[u8]]) -> Vec<u8> {
    let chunks = pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| chunk(piece));
    [STREAM_HEAD.to_vec(), chunks.collect::<Vec<_>>().concat()].concat()
}

fn stream(text: &str) -> Does {
    Does::Says([pieces(&[text.as_bytes()]), b"0\r\n\r\n".to_vec()].concat())
}

const WORKING: &str = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#;

fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

fn frame(what: &str) -> String {
    format!("data: {}\n\n", result(what))
}

fn http() -> Http {
    Http::new(Dial::default(), Limits::default(), None)
}

fn limited(answer: Option<Duration>, idle: Duration) -> Http {
    Http::new(Dial::default(), Limits { answer, idle, ..Limits::default() }, None)
}

impl Server {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    fn rpc(&self) -> Connection {
        Connection::new(http(), self.url("/rpc"), Binding::JsonRpc, None)
    }

    fn rest(&self) -> Connection {
        Connection::new(http(), self.url("/rest"), Binding::HttpJson, None)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The first line and the body of the last request.
    fn last(&self) -> (String, String) {
        let asked = self.asked();
        let (head, body) = asked.last().unwrap().split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned(), body.to_owned())
    }

    /// The headers of the last request that the client means to send: without what the transport adds.
    fn headers(&self) -> Vec<String> {
        let asked = self.asked();
        let head = asked.last().unwrap().split_once("\r\n\r\n").unwrap().0.to_owned();
        let lines = head.lines().skip(1).filter(|line| *line != "accept: */*" && !line.starts_with("content-length"));
        lines.map(str::to_owned).collect()
    }
}

fn task_id() -> TaskId {
    TaskId::new("t").unwrap()
}

fn hello() -> SendMessageRequest {
    SendMessageRequest::new(Message::new(MessageId::new("m").unwrap(), Role::User, vec![Part::text("hello")]))
}

fn call(method: Method, params: &str) -> Call {
    Call::read(method, Some(serde_json::from_str::<&RawValue>(params).unwrap())).unwrap()
}

fn state(response: &StreamResponse) -> Option<TaskState> {
    match response {
        StreamResponse::Task(task) => Some(task.status.state),
        StreamResponse::StatusUpdate(update) => Some(update.status.state),
        _ => None,
    }
}

#[tokio::test]
async fn the_headers_of_a_jsonrpc_call_leave_in_the_order_of_the_captures() {
    let server = serve([json(&result(WORKING))]).await;
    let host = format!("host: {}", server.at);
    let agent = Connection::new(http(), server.url("/rpc"), Binding::JsonRpc, Some("s3cret".to_owned()));
    agent.get("", &task_id(), None).await.unwrap();
    let expected =
        [host.as_str(), "content-type: application/json", "a2a-version: 1.0", "authorization: Bearer s3cret"];
    assert_eq!(server.headers(), expected);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}"#;
    assert_eq!(server.last(), ("POST /rpc".to_owned(), body.to_owned()));

    let _ = agent.subscribe("", &task_id()).await;
    assert_eq!(server.headers(), [&expected[..], &["accept: text/event-stream"]].concat());

    let wanted = Wanted { version: false, token: false };
    agent.open_rpc("", "message/send", &serde_json::json!([1]), false, wanted).await.unwrap();
    assert_eq!(server.headers(), expected[..2]);
    assert_eq!(server.last().1, r#"{"jsonrpc":"2.0","id":3,"method":"message/send","params":[1]}"#);
}

#[tokio::test]
async fn the_headers_of_an_http_json_call_leave_in_the_order_of_the_captures() {
    let server = serve([json(WORKING)]).await;
    let host = format!("host: {}", server.at);
    let agent = Connection::new(http(), server.url("/rest/"), Binding::HttpJson, Some("s3cret".to_owned()));
    agent.get("", &task_id(), Some(0)).await.unwrap();
    let expected = [host.as_str(), "a2a-version: 1.0", "authorization: Bearer s3cret"];
    assert_eq!(server.headers(), expected);
    assert_eq!(server.last().0, "GET /rest/tasks/t?historyLength=0");
    agent.cancel("", &task_id()).await.unwrap();
    assert_eq!(server.headers(), [&expected[..], &["content-type: application/a2a+json"]].concat());
    let _ = agent.subscribe("", &task_id()).await;
    assert_eq!(server.headers(), [&expected[..], &["accept: text/event-stream"]].concat());
}

#[tokio::test]
async fn every_operation_has_its_verb_path_and_body_over_http_json() {
    let server = serve([json("{}")]).await;
    let message =
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"n":12345678901234567890123.0}}]}}"#;
    let config = r#"{"taskId":"t","url":"http://h/"}"#;
    let cases = [
        (Method::SendMessage, message, "POST /rest/message:send", message),
        (Method::SendStreamingMessage, message, "POST /rest/message:stream", message),
        (Method::GetTask, r#"{"id":"a/b?","historyLength":2}"#, "GET /rest/tasks/a%2Fb%3F?historyLength=2", ""),
        (
            Method::ListTasks,
            r#"{"contextId":"c d","status":"TASK_STATE_WORKING","pageSize":2,"includeArtifacts":true}"#,
            "GET /rest/tasks?contextId=c%20d&status=TASK_STATE_WORKING&pageSize=2&includeArtifacts=true",
            "",
        ),
        (Method::ListTasks, r#"{"tenant":"t/1"}"#, "GET /rest/t%2F1/tasks", ""),
        (Method::CancelTask, r#"{"id":"t"}"#, "POST /rest/tasks/t:cancel", "{}"),
        (
            Method::CancelTask,
            r#"{"id":"t","metadata":{"why":1.50}}"#,
            "POST /rest/tasks/t:cancel",
            r#"{"metadata":{"why":1.50}}"#,
        ),
        (Method::SubscribeToTask, r#"{"id":"t"}"#, "POST /rest/tasks/t:subscribe", ""),
        (
            Method::CreateTaskPushNotificationConfig,
            config,
            "POST /rest/tasks/t/pushNotificationConfigs",
            r#"{"taskId":"t","url":"http://h/"}"#,
        ),
        (
            Method::GetTaskPushNotificationConfig,
            r#"{"taskId":"t","id":"k"}"#,
            "GET /rest/tasks/t/pushNotificationConfigs/k",
            "",
        ),
        (
            Method::ListTaskPushNotificationConfigs,
            r#"{"taskId":"t","pageSize":3}"#,
            "GET /rest/tasks/t/pushNotificationConfigs?pageSize=3",
            "",
        ),
        (
            Method::DeleteTaskPushNotificationConfig,
            r#"{"taskId":"t","id":"k"}"#,
            "DELETE /rest/tasks/t/pushNotificationConfigs/k",
            "",
        ),
        (Method::GetExtendedAgentCard, "{}", "GET /rest/extendedAgentCard", ""),
    ];
    for (method, params, line, body) in cases {
        server.rest().open("", &call(method, params)).await.unwrap();
        assert_eq!(server.last(), (line.to_owned(), body.to_owned()), "{params}");
    }
}

#[tokio::test]
async fn an_origin_in_the_map_is_dialled_elsewhere_and_still_named_in_the_host_header() {
    let server = serve([json(&result(WORKING))]).await;
    let mut dial = Dial::default();
    dial.set("localhost:41241", server.at);
    let http = Http::new(dial, Limits::default(), None);
    let agent = Connection::new(http.clone(), "http://localhost:41241/a2a/jsonrpc", Binding::JsonRpc, None);
    agent.get("", &task_id(), None).await.unwrap();
    assert_eq!(server.headers()[0], "host: localhost:41241");
    assert_eq!(server.last().0, "POST /a2a/jsonrpc");
    let _ = http.card("", "http://LOCALHOST:41241/").await;
    assert_eq!(server.last().0, "GET /.well-known/agent-card.json");
}

#[tokio::test]
async fn a_reply_is_read_error_first_then_message_then_task_then_the_bare_task() {
    let message = r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}"#;
    let refused = r#"{"code":-32004,"message":"no"}"#;
    let cases = [
        (format!(r#"{{"error":{refused},"result":{{"task":{WORKING}}}}}"#), "error"),
        (result(&format!(r#"{{"task":{WORKING},"message":{message}}}"#)), "message"),
        (result(&format!(r#"{{"message":null,"task":{WORKING}}}"#)), "task"),
        (result(WORKING), "task"),
    ];
    for (body, expected) in cases {
        let server = serve([json(&body)]).await;
        let said = match server.rpc().send("", hello()).await.unwrap() {
            Reply::Error(error) => {
                assert_eq!((error.code, error.message.as_str()), (-32004, "no"));
                "error"
            }
            Reply::Message(_) => "message",
            Reply::Task(_) => "task",
        };
        assert_eq!(said, expected, "{body}");
    }
    let server = serve([json(&format!(r#"{{"task":{WORKING}}}"#))]).await;
    assert!(matches!(server.rest().send("", hello()).await.unwrap(), Reply::Task(_)));
    let refused = r#"{"error":{"code":404,"status":"NOT_FOUND","message":"Task not found","details":[]}}"#;
    let server = serve([answer("404 Not Found", "application/a2a+json", refused)]).await;
    assert!(matches!(server.rest().send("", hello()).await.unwrap(), Reply::Error(error) if error.code == 404));
}

#[tokio::test]
async fn an_answer_that_is_no_a2a_shows_its_status_its_type_and_how_it_begins() {
    let html = format!("<html>{}</html>", "Bad Gateway ".repeat(100));
    let cases = [
        (answer("502 Bad Gateway", "text/html", &html), "502 text/html", r#"begins with "<html>Bad Gateway"#),
        (answer("401 Unauthorized", "application/json", r#"{"error":"who are you"}"#), "401 application/json", "who"),
        (answer("401 Unauthorized", "", ""), "401 -", "its body is empty"),
        (answer("200 OK", "application/json", "not json"), "200 application/json", "not json"),
        (json(&result(r#"{"id":7}"#)), "200 application/json", "a message or a task ("),
        (json(r#"{"jsonrpc":"2.0","id":1}"#), "200 application/json", "a JSON-RPC answer was expected"),
        (answer("307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/", "text/plain", "there"), "307", "there"),
        (answer("200 OK", "application/json", "\u{feff}\u{1f980}{"), "200", "\u{1f980}"),
    ];
    for (does, status, start) in cases {
        let server = serve([does]).await;
        let error = server.rpc().send("", hello()).await.unwrap_err();
        assert!(matches!(error, ClientError::NotA2a { .. }), "{error:?}");
        let words = error.to_string();
        assert!(words.contains(status) && words.contains(start), "{words}");
        assert!(words.starts_with(&server.at.to_string()) && words.len() < 400, "{words}");
    }
    let refused = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Task not found"}}"#;
    let server = serve([answer("401 Unauthorized", "application/json", refused)]).await;
    let error = server.rpc().get("", &task_id(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::Remote(error) if error.code == -32001), "an error of the protocol stays one");
}

const CARD: &str = r#"{"name":"a","description":"","version":"1","supportedInterfaces":[],"capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#;

#[tokio::test]
async fn a_card_is_read_at_the_url_given_or_at_its_origin_and_every_url_tried_is_named() {
    let well_known = "GET /.well-known/agent-card.json";
    let paths = [
        ("", well_known),
        ("/", well_known),
        ("/agents/deployer", well_known),
        ("/agents/deployer/?x=1", well_known),
        ("/agents/deployer/card.json", "GET /agents/deployer/card.json"),
        ("/agents/card.json?v=2", "GET /agents/card.json?v=2"),
    ];
    for (path, asked) in paths {
        let server = serve([json(CARD)]).await;
        assert_eq!(http().card("", &server.url(path)).await.unwrap().name, "a");
        assert_eq!(server.last().0, asked);
        assert_eq!(server.headers(), [format!("host: {}", server.at), "accept: application/json".to_owned()]);
    }
    let refusals = [
        (answer("404 Not Found", "text/plain", "no"), "(answered 404)"),
        (answer("200 OK", "text/html", "<html>"), "200 text/html"),
        (json("[]"), "an agent card ("),
        (Does::Says(Vec::new()), "the connection broke"),
    ];
    for (does, why) in refusals {
        let server = serve([does]).await;
        let words = http().card("", &server.url("/x")).await.unwrap_err().to_string();
        let url = server.url("/.well-known/agent-card.json");
        assert!(words.starts_with(&format!("no agent card; tried {url} (")) && words.contains(why), "{words}");
    }
}

#[test]
fn the_first_interface_that_is_spoken_is_chosen_and_else_all_that_is_offered_is_named() {
    let with = |interfaces: &[(&str, &str)]| {
        let mut card: AgentCard = serde_json::from_str(CARD).unwrap();
        let interfaces: Vec<_> = interfaces
            .iter()
            .map(|(binding, version)| {
                serde_json::json!({"url": "http://h/", "protocolBinding": binding, "protocolVersion": version})
            })
            .collect();
        card.supported_interfaces = serde_json::from_value(interfaces.into()).unwrap();
        card
    };
    let both = [Binding::JsonRpc, Binding::HttpJson];
    let card = with(&[("GRPC", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "1.0"), ("JSONRPC", "1.0.1")]);
    assert_eq!(choose(&card, &both).unwrap().1, Binding::HttpJson, "the card's order decides");
    let (interface, binding) = choose(&card, &[Binding::JsonRpc]).unwrap();
    assert_eq!((interface.protocol_version.as_str(), binding), ("1.0.1", Binding::JsonRpc));
    let words = choose(&with(&[("GRPC", "1.0"), ("JSONRPC", "0.3")]), &both).unwrap_err().to_string();
    let expected =
        "a offers GRPC 1.0 at http://h/, JSONRPC 0.3 at http://h/; JSONRPC or HTTP+JSON of version 1.0 was expected";
    assert_eq!(words, expected);
    assert!(choose(&with(&[]), &both).unwrap_err().to_string().starts_with("a offers no interface at all;"));
}

#[tokio::test]
async fn b61_an_agent_that_speaks_an_older_version_is_named_with_it() {
    let old = r#"{"name":"a","description":"d","version":"1","protocolVersion":"0.3.0","url":"http://h/rpc",
        "preferredTransport":"JSONRPC","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#;
    let without = old.replace("\"preferredTransport\":\"JSONRPC\",", "");
    for card in [old, &without] {
        let server = serve([json(card)]).await;
        let card = http().card("", &server.url("/")).await.unwrap();
        let words = choose(&card, &[Binding::JsonRpc]).unwrap_err().to_string();
        assert_eq!(words, "a offers JSONRPC 0.3.0 at http://h/rpc; JSONRPC of version 1.0 was expected");
    }
}

#[tokio::test]
async fn a_whole_answer_on_a_streaming_call_is_the_error_it_holds_and_never_an_empty_stream() {
    let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no"}}"#;
    for content_type in ["application/json", ""] {
        let server = serve([answer("200 OK", content_type, refused)]).await;
        let error = server.rpc().subscribe("", &task_id()).await.unwrap_err();
        assert!(matches!(error, ClientError::Remote(error) if error.code == -32004));
    }
    for whole in [result(WORKING), "<html>".to_owned(), String::new()] {
        let server = serve([json(&whole)]).await;
        let error = server.rpc().stream("", hello()).await.unwrap_err();
        assert!(matches!(error, ClientError::NotA2a { .. }), "{error}");
    }
    // The same JSON without any event around it, called a stream.
    for text in [refused.to_owned(), format!("{refused}\n\n"), ": only a comment\n\n".to_owned(), String::new()] {
        let server = serve([answer("200 OK", "text/event-stream", &text)]).await;
        let mut events = server.rpc().subscribe("", &task_id()).await.unwrap();
        let words = events.next().await.unwrap_err().to_string();
        assert!(words.contains("not one event came"), "{words}");
        assert!(events.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_error_frame_is_the_error_and_nonsense_is_said_to_be_none() {
    let refused = r#"data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}"#;
    let server =
        serve([stream(&format!("{}{refused}\n\ndata: nonsense\n\n", frame(&format!(r#"{{"task":{WORKING}}}"#))))]);
    let mut events = server.await.rpc().stream("", hello()).await.unwrap();
    assert_eq!(state(&events.next().await.unwrap().unwrap().response), Some(TaskState::Working));
    assert!(matches!(events.next().await.unwrap_err(), ClientError::Remote(error) if error.code == -32603));
    let words = events.next().await.unwrap_err().to_string();
    assert!(words.contains("a frame is no event"), "{words}");
    assert!(events.next().await.unwrap().is_none());

    let refused = r#"data: {"error":{"code":500,"status":"INTERNAL","message":"Internal error"}}"#;
    let server = serve([stream(&format!("data: {{\"task\":{WORKING}}}\n\n{refused}\n\n"))]).await;
    let mut events = server.rest().stream("", hello()).await.unwrap();
    assert_eq!(state(&events.next().await.unwrap().unwrap().response), Some(TaskState::Working));
    assert!(matches!(events.next().await.unwrap_err(), ClientError::Remote(error) if error.code == 500));
}

#[tokio::test]
async fn a_stream_that_is_cut_says_so_whether_inside_an_event_or_inside_the_transfer() {
    let first = frame(&format!(r#"{{"task":{WORKING}}}"#));
    let server = serve([stream(&format!("{first}data: {{\"json"))]).await;
    let mut events = server.rpc().stream("", hello()).await.unwrap();
    assert!(events.next().await.unwrap().is_some());
    assert!(matches!(events.next().await.unwrap_err(), ClientError::Cut { .. }));

    let server = serve([Does::Says(pieces(&[first.as_bytes()]))]).await;
    let mut events = server.rpc().stream("", hello()).await.unwrap();
    assert!(events.next().await.unwrap().is_some());
    assert!(matches!(events.next().await.unwrap_err(), ClientError::Broken { .. }));
}

/// A stream with everything that the framing allows: a byte order mark, comments, ids, names of events, empty data,
/// data over several lines, no blank after the colon, and characters of two, three and four bytes.
fn corpus(line_end: &str) -> (String, Vec<String>) {
    let event = r#"{"id":"ž你🦀"}"#;
    let text = format!(
        "\u{feff}: hi\n\nid: 7\nevent: message\ndata: {event}\n\n: ping\n\ndata:\n\nretry: 1\ndata:{{\ndata: \"id\":2\ndata: }}\n\nid: 8\n: x\n\ndata: 3\n\n"
    );
    (text.replace('\n', line_end), vec![event.to_owned(), "{\n\"id\":2\n}".to_owned(), "3".to_owned()])
}

async fn data_of(http: &Http, pieces_of: &[&[u8]]) -> Vec<String> {
    let server = serve([Does::Says([pieces(pieces_of), b"0\r\n\r\n".to_vec()].concat())]).await;
    let agent = Connection::new(http.clone(), server.url("/"), Binding::JsonRpc, None);
    let mut events = agent.stream("", hello()).await.unwrap();
    let mut data = Vec::new();
    while let Some(one) = events.next_data().await.unwrap() {
        data.push(one);
    }
    data
}

#[tokio::test]
async fn a_stream_reads_the_same_wherever_its_bytes_are_cut() {
    let http = http();
    for line_end in ["\n", "\r\n", "\r"] {
        let (text, expected) = corpus(line_end);
        let bytes = text.as_bytes();
        for at in 0..=bytes.len() {
            assert_eq!(data_of(&http, &[&bytes[..at], &bytes[at..]]).await, expected, "{line_end:?} cut at {at}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(data_of(&http, &single).await, expected, "{line_end:?} byte by byte");
    }
}

#[tokio::test]
async fn b28_a_frame_of_a_mebibyte_comes_whole_whatever_the_line_ends_and_the_chunks() {
    let data = "ž🦀".repeat((1 << 20) / 6);
    for line_end in ["\n", "\r\n", "\r"] {
        let text = format!("data: {data}{line_end}data: end{line_end}{line_end}");
        for size in [997, 65_537, text.len()] {
            let chunks: Vec<_> = text.as_bytes().chunks(size).collect();
            let read = data_of(&http(), &chunks).await;
            assert!(read == [format!("{data}\nend")], "{line_end:?} in chunks of {size}");
        }
    }
}

#[tokio::test]
async fn an_event_without_end_is_not_read_for_ever() {
    let server = serve([Does::Repeats(STREAM_HEAD.to_vec(), chunk(&[b'x'; 1 << 20]), 0)]).await;
    let mut events = server.rpc().stream("", hello()).await.unwrap();
    let words = events.next().await.unwrap_err().to_string();
    assert!(words.contains("larger than 16777216 bytes"), "{words}");
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let first = frame(&format!(r#"{{"task":{WORKING}}}"#));
    let mut server = serve([Does::Holds(pieces(&[first.as_bytes()]))]).await;
    let mut events = server.rpc().stream("", hello()).await.unwrap();
    events.next().await.unwrap().unwrap();
    assert!(server.closed.try_recv().is_err(), "it is open while it is held");
    drop(events);
    tokio::time::timeout(Duration::from_secs(5), server.closed.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn each_time_limit_says_which_one_it_was() {
    let short = Duration::from_millis(100);
    let silent = serve([Does::Holds(Vec::new())]).await;
    let agent = Connection::new(limited(Some(short), short), silent.url("/"), Binding::JsonRpc, None);
    let words = agent.send("", hello()).await.unwrap_err().to_string();
    assert_eq!(words, format!("{}: the answer took longer than 0.1 s", silent.at));

    let quiet = serve([Does::Holds(pieces(&[frame(&format!(r#"{{"task":{WORKING}}}"#)).as_bytes()]))]).await;
    let agent = Connection::new(limited(None, short), quiet.url("/"), Binding::JsonRpc, None);
    let mut events = agent.stream("", hello()).await.unwrap();
    events.next().await.unwrap().unwrap();
    let words = events.next().await.unwrap_err().to_string();
    assert_eq!(words, format!("{}: the next bytes took longer than 0.1 s", quiet.at));

    let half = serve([Does::Holds(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec())]).await;
    let agent = Connection::new(limited(None, short), half.url("/"), Binding::JsonRpc, None);
    assert!(matches!(agent.send("", hello()).await.unwrap_err(), ClientError::TooSlow { what: "the next bytes", .. }));
}

#[tokio::test]
async fn a_look_has_a_limit_of_its_own_and_a_message_has_none() {
    let limits = Limits { look: Duration::from_millis(100), ..Limits::default() };
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let http = Http::new(Dial::default(), limits.clone(), None);
        let silent = serve(std::iter::repeat_with(|| Does::Holds(Vec::new())).take(5).collect::<Vec<_>>()).await;
        let agent = Connection::new(http.clone(), silent.url("/"), binding, None);
        let expected = format!("{}: the answer took longer than 0.1 s", silent.at);
        assert_eq!(agent.get("", &task_id(), None).await.unwrap_err().to_string(), expected);
        assert_eq!(agent.subscribe("", &task_id()).await.unwrap_err().to_string(), expected);
        assert!(http.card("", &silent.url("/")).await.unwrap_err().to_string().contains(&expected));
        assert_eq!(http.approve("", &silent.url("/"), &task_id()).await.unwrap_err().to_string(), expected);
        let waits = tokio::time::timeout(Duration::from_millis(400), agent.send("", hello()));
        assert!(waits.await.is_err(), "a message may take as long as its work");
    }
}

#[tokio::test]
async fn a_keep_alive_counts_as_a_sign_of_life_and_is_no_event() {
    let server = serve([Does::Repeats(STREAM_HEAD.to_vec(), chunk(b": keep-alive\n\n"), 20)]).await;
    let agent = Connection::new(limited(None, Duration::from_millis(200)), server.url("/"), Binding::JsonRpc, None);
    let mut events = agent.stream("", hello()).await.unwrap();
    let next = tokio::time::timeout(Duration::from_millis(500), events.next()).await;
    assert!(next.is_err(), "neither an event nor the idle limit: {next:?}");
}

/// Writes down what it is told, a word or a few each.
#[derive(Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

struct Noted(Arc<Mutex<Vec<String>>>);

impl Noted {
    fn say(&self, word: String) {
        self.0.lock().unwrap().push(word);
    }
}

impl Tap for Notes {
    fn begin(&self, sent: Sent<'_>) -> Box<dyn Exchange> {
        let noted = Noted(self.0.clone());
        let names: Vec<_> = sent.headers.iter().map(|(name, _)| name.as_str()).collect();
        noted.say(format!("{}: {} {} {}", sent.title, sent.method, sent.path, names.join(" ")));
        Box::new(noted)
    }
}

impl Exchange for Noted {
    fn answered(&mut self, status: u16, _: &Headers, body: &[u8]) {
        self.say(format!("{status} {}", String::from_utf8_lossy(body)));
    }

    fn opened(&mut self, status: u16, headers: &Headers) {
        self.say(format!("{status} {}", headers.iter().find(|(name, _)| name == "content-type").unwrap().1));
    }

    fn frame(&mut self, data: &str) {
        self.say(format!("frame {data}"));
    }

    fn note(&mut self, text: &str) {
        self.say(format!("note {text}"));
    }

    fn ended(&mut self) {
        self.say("ended".to_owned());
    }

    fn failed(&mut self, why: &str) {
        self.say(format!("failed {why}"));
    }
}

fn tapped(server: &Server, binding: Binding) -> (Connection, Arc<Mutex<Vec<String>>>) {
    let notes = Notes::default();
    let told = notes.0.clone();
    let limits = Limits { idle: Duration::from_millis(100), ..Limits::default() };
    let http = Http::new(Dial::default(), limits, Some(Arc::new(notes)));
    (Connection::new(http, server.url("/"), binding, Some("t".to_owned())), told)
}

#[tokio::test]
async fn a_tap_hears_of_each_exchange_as_it_happens() {
    let server = serve([json(&result(WORKING)), stream("data: 1\n\ndata: 2\n\n"), Does::Says(Vec::new())]).await;
    let (agent, told) = tapped(&server, Binding::JsonRpc);
    agent.get("read it", &task_id(), None).await.unwrap();
    let mut events = agent.subscribe("watch it", &task_id()).await.unwrap();
    events.next_data().await.unwrap();
    events.note("half way");
    events.next_data().await.unwrap();
    drop(events);
    agent.get("again", &task_id(), None).await.unwrap_err();
    let told = told.lock().unwrap().clone();
    let plain = "Host Content-Type A2A-Version Authorization";
    assert_eq!(
        told[..8],
        [
            format!("read it: POST / {plain}"),
            format!("200 {}", result(WORKING)),
            format!("watch it: POST / {plain} Accept"),
            "200 text/event-stream".to_owned(),
            "frame 1".to_owned(),
            "note half way".to_owned(),
            "frame 2".to_owned(),
            "ended".to_owned(),
        ]
    );
    assert_eq!(told[8], format!("again: POST / {plain}"));
    assert!(told[9].starts_with("failed ") && told[9].contains("the connection broke"), "{}", told[9]);
}

#[tokio::test]
async fn a_subscription_whose_verb_is_refused_is_asked_for_with_the_other_one() {
    let first = format!("data: {{\"task\":{WORKING}}}\n\n");
    let server = serve([answer("405 Method Not Allowed", "text/plain", "GET only"), stream(&first)]).await;
    let (agent, told) = tapped(&server, Binding::HttpJson);
    let mut events = agent.subscribe("watch", &task_id()).await.unwrap();
    assert_eq!(state(&events.next().await.unwrap().unwrap().response), Some(TaskState::Working));
    let told = told.lock().unwrap().clone();
    assert_eq!(told[1], "405 GET only");
    assert!(told[0].starts_with("watch: POST /tasks/t:subscribe "), "{}", told[0]);
    assert!(told[2].starts_with("watch: GET /tasks/t:subscribe "), "{}", told[2]);
}

#[tokio::test]
async fn an_approval_goes_to_the_origin_of_the_agent_and_nowhere_else() {
    let server = serve([json("{}"), json("{}"), answer("404 Not Found", "", "")]).await;
    assert!(http().approve("", &server.url("/agents/d/rpc?x=1"), &task_id()).await.unwrap());
    assert_eq!(server.last(), ("POST /approve/t".to_owned(), "{}".to_owned()));
    assert_eq!(server.headers(), [format!("host: {}", server.at), "content-type: application/json".to_owned()]);
    let refuses = Decision { reason: Some("no"), since: Some("2026-10-06T09:00:00Z".parse().unwrap()) };
    http().decide("", &server.url("/rpc"), &task_id(), &refuses, Some("s3cret")).await.unwrap().unwrap();
    let body = r#"{"reason":"no","since":"2026-10-06T09:00:00.000Z"}"#;
    assert_eq!(server.last(), ("POST /refuse/t".to_owned(), body.to_owned()));
    assert_eq!(server.headers()[2], "authorization: Bearer s3cret");
    let odd = TaskId::new("../admin?x#y").unwrap();
    assert!(!http().approve("", &server.url("/rpc"), &odd).await.unwrap());
    assert_eq!(server.last().0, "POST /approve/..%2Fadmin%3Fx%23y", "an id is one segment of the path");
}

#[tokio::test]
async fn a_redirect_is_not_followed_so_a_token_goes_nowhere_else() {
    let thief = serve([json(&result(WORKING))]).await;
    let status = format!("307 Temporary Redirect\r\nlocation: {}", thief.url("/"));
    let server = serve([answer(&status, "text/plain", "")]).await;
    let agent = Connection::new(http(), server.url("/"), Binding::JsonRpc, Some("s3cret".to_owned()));
    agent.send("", hello()).await.unwrap_err();
    assert!(thief.asked().is_empty());
}

#[tokio::test]
async fn what_cannot_be_sent_is_said_before_anything_leaves() {
    for url in ["", "localhost", "http://", "not a url", "mailto:a@b"] {
        let agent = Connection::new(http(), url, Binding::JsonRpc, None);
        let error = agent.send("", hello()).await.unwrap_err();
        assert!(matches!(error, ClientError::Url(_)), "{url}: {error:?}");
        assert!(http().card("", url).await.is_err());
    }
    let server = serve([json("{}")]).await;
    let agent = Connection::new(http(), server.url("/"), Binding::JsonRpc, Some("two\nlines".to_owned()));
    let error = agent.send("", hello()).await.unwrap_err();
    assert!(matches!(error, ClientError::Request(_)), "{error:?}");
    assert!(!error.to_string().contains("two"), "a credential is not shown: {error}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_named() {
    let gone = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
    let agent = Connection::new(http(), format!("http://{gone}/"), Binding::JsonRpc, None);
    let error = agent.send("", hello()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().starts_with(&format!("{gone} does not answer: ")), "{error}");
}

#[test]
fn live_ids_are_random_uuids_of_version_4() {
    let (one, other) = (LiveIds.next(), LiveIds.next());
    assert_ne!(one, other);
    assert_eq!((one.len(), one.as_bytes()[14], one.matches('-').count()), (36, b'4', 4));
}
