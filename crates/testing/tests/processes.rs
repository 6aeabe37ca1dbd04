//! Three agent processes and one planner process over TCP, as a person starts them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use testing::{Program as Agent, program, programs};

fn planner(arguments: &[&str]) -> Output {
    Command::new(programs().join("planner")).args(arguments).output().unwrap()
}

fn ship(agents: &[Agent], more: &[&str]) -> (Option<i32>, String) {
    let mut arguments = vec!["ship", "--token", "deployer=dpl_test_7c1e4b"];
    for agent in agents {
        arguments.extend(["--agent", agent.url.as_str()]);
    }
    arguments.extend(more);
    let output = planner(&arguments);
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

fn three() -> Vec<Agent> {
    ["test-runner", "code-reviewer", "deployer"].into_iter().map(Agent::start).collect()
}

/// A log without what differs from run to run: ids and ports.
fn steady(log: &str, agents: &[Agent]) -> String {
    let mut log = log.to_owned();
    for (agent, port) in agents.iter().zip(["41241", "41242", "41243"]) {
        log = log.replace(&agent.url, &format!("http://localhost:{port}"));
    }
    let words = log.split_inclusive(char::is_whitespace).map(|word| {
        let bare = word.trim_end();
        let id = |text: &str| text.len() >= 8 && text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
        match bare.rsplit_once('/') {
            Some((before, last)) if id(last) => format!("{before}/ID{}", &word[bare.len()..]),
            None if id(bare) => format!("ID{}", &word[bare.len()..]),
            _ => word.to_owned(),
        }
    });
    words.collect()
}

#[test]
fn three_agents_and_a_planner_give_the_log_of_the_capture() {
    let agents = three();
    let (code, log) = ship(&agents, &[]);
    assert_eq!(code, Some(0), "{log}");
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/kit/captures/19-planner.log");
    let expected = std::fs::read_to_string(capture).unwrap();
    assert_eq!(steady(&log, &agents), steady(&expected, &[]));
}

#[test]
fn a_failing_commit_stops_after_the_tests_and_a_risky_diff_at_the_review() {
    let agents = three();
    let (code, log) = ship(&agents, &["--commit", "9f3c2e1"]);
    assert_eq!(code, Some(1));
    assert!(log.ends_with("tests: 1 failed, 11 passed\nstop: 1 test(s) failed\n"), "{log}");
    let diff = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/stories/refunds-rounding.diff");
    let (code, log) = ship(&agents, &["--diff", diff.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(
        log.ends_with("review: 2 findings, 1 blocking\nstop: a high-severity finding blocks the deploy\n"),
        "{log}"
    );
}

#[test]
fn an_agent_ends_within_five_seconds_of_a_signal_with_code_0_even_when_it_is_watched() {
    for signal in ["-TERM", "-INT"] {
        let mut agent = Agent::start("deployer");
        let token = ["--token", "dpl_test_7c1e4b"];
        let sent = planner(&[&["send", agent.url.as_str(), "Deploy build 7 to staging"], &token[..]].concat());
        let text = String::from_utf8(sent.stdout).unwrap();
        let task = text.split_whitespace().nth(1).unwrap().to_owned();
        // Somebody watches the task, so a stream is open.
        let mut watcher = Command::new(programs().join("planner"))
            .args([&["subscribe", agent.url.as_str(), task.as_str()], &token[..]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(watcher.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("TASK_STATE_AUTH_REQUIRED"), "{line}");
        agent.signal(signal);
        assert_eq!(agent.ended(Duration::from_secs(5)), Some(0));
        let _ = out.read_to_string(&mut line);
        let _ = watcher.wait();
    }
}

#[test]
fn a_taken_port_is_named_with_the_flag_that_moves_it() {
    let agent = Agent::start("test-runner");
    let listen = agent.url.replace("http://localhost", "127.0.0.1");
    let state = tempfile::tempdir().unwrap();
    let second = program("test-runner", state.path()).args(["--listen", &listen]).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    let words = String::from_utf8(second.stderr).unwrap();
    assert!(words.contains("is taken; --listen ADDR moves it"), "{words}");
}

#[test]
fn the_health_check_says_whether_an_agent_listens() {
    let mut agent = Agent::start("code-reviewer");
    let listen = agent.url.replace("http://localhost", "127.0.0.1");
    let check = || {
        let mut check = Command::new(programs().join("code-reviewer"));
        check.args(["--listen", &listen, "--healthcheck"]).output().unwrap().status.code()
    };
    assert_eq!(check(), Some(0));
    agent.signal("-TERM");
    agent.ended(Duration::from_secs(5));
    assert_eq!(check(), Some(1));
}

#[test]
fn an_agent_that_does_not_answer_is_named_and_nothing_is_sent() {
    let output = planner(&["ship", "--agent", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("127.0.0.1:9 does not answer"), "{words}");
    assert!(output.stdout.is_empty());
}

#[test]
fn one_call_prints_words_or_json() {
    let agent = Agent::start("code-reviewer");
    let asked = planner(&["send", &agent.url, "What languages can you review?"]);
    assert!(String::from_utf8(asked.stdout).unwrap().starts_with("I review unified diffs in Python"));
    let json = planner(&["send", &agent.url, "What languages can you review?", "--json"]);
    let message: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(message["role"], "ROLE_AGENT");
    let unknown = planner(&["get", &agent.url, "no-such-task"]);
    assert_eq!(unknown.status.code(), Some(1), "the agent answered, with an error");
    assert_eq!(String::from_utf8(unknown.stderr).unwrap(), "error -32001: Task not found\n");
}

#[test]
fn b88_the_secrets_of_a_webhook_are_in_no_log() {
    let state = tempfile::tempdir().unwrap();
    let mut agent = program("test-runner", state.path())
        .args(["--listen", "127.0.0.1:0", "--log", "debug", "--allow-local-webhooks"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split_whitespace().last().unwrap().replace("localhost", "127.0.0.1");
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let receiver = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let config = serde_json::json!({
        "url": format!("http://{}/", receiver.local_addr().unwrap()), "token": "secret-one",
        "authentication": {"scheme": "Bearer", "credentials": "secret-two"},
    });
    let message =
        serde_json::json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Run the tests on main"}]});
    let params = serde_json::json!({"message": message, "configuration": {"taskPushNotificationConfig": config}});
    let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}).to_string();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let (head, length) =
        ("POST /a2a/jsonrpc HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nA2A-Version: 1.0", body.len());
    write!(stream, "{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"result\""), "{answer}");
    // The receiver refuses for good, so that there is something to log.
    let (mut hook, _) = receiver.accept().unwrap();
    let (mut got, mut piece) = (Vec::new(), [0; 4096]);
    while !got.ends_with(b"}}") {
        let read = hook.read(&mut piece).unwrap();
        assert!(read > 0, "the webhook arrives whole");
        got.extend_from_slice(&piece[..read]);
    }
    let got = String::from_utf8(got).unwrap();
    assert!(got.contains("secret-one") && got.contains("Bearer secret-two"), "{got}");
    hook.write_all(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n").unwrap();
    let mut log = BufReader::new(agent.stderr.take().unwrap());
    let mut lines = String::new();
    while !lines.contains("given up") {
        assert!(log.read_line(&mut lines).unwrap() > 0, "{lines}");
    }
    Command::new("kill").args(["-TERM", &agent.id().to_string()]).status().unwrap();
    log.read_to_string(&mut lines).unwrap();
    agent.wait().unwrap();
    assert!(!lines.contains("secret"), "{lines}");
}

/// The body of a `GET` with a Host header of the caller's choice.
fn get(agent: &Agent, path: &str, host: &str) -> String {
    let address = agent.url.replace("http://localhost", "127.0.0.1");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn w13_with_default_flags_the_cards_are_the_captured_ones_byte_for_byte() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/kit/captures/01-agent-cards.http");
    let capture = capture::transcript::read(&std::fs::read_to_string(capture).unwrap()).unwrap();
    for (number, exchange) in capture.exchanges() {
        let (name, host) =
            [("test-runner", "localhost:41241"), ("code-reviewer", "localhost:41242"), ("deployer", "localhost:41243")]
                [number - 1];
        let agent = Agent::start(name);
        let card = get(&agent, &exchange.request.path, host);
        let capture::Answer::Whole(captured) = &exchange.answer else { panic!("a card is no stream") };
        let captured = String::from_utf8(captured.body.clone().unwrap()).unwrap();
        assert_eq!(capture::json::pretty(&card).unwrap(), captured.trim_end(), "{name}");
    }
}

#[test]
fn with_its_flag_an_agent_serves_grpc_too_and_the_planner_calls_it_there() {
    let agent = Agent::start_with("test-runner", &["--grpc", "127.0.0.1:0"]);
    let card = get(&agent, "/.well-known/agent-card.json", "localhost:1");
    let card: serde_json::Value = serde_json::from_str(&card).unwrap();
    let third = &card["supportedInterfaces"][2];
    assert_eq!(third["protocolBinding"], "GRPC");
    assert!(third["url"].as_str().unwrap().starts_with("localhost:"), "{third}");
    let planner = |arguments: &[&str]| {
        let output = Command::new(programs().join("planner")).args(arguments).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), shown)
    };
    let text = "Run the full suite for payments-api";
    let sent = planner(&["send", &agent.url, text, "--stream", "--binding", "GRPC"]);
    assert_eq!(sent.0, Some(0), "{}", sent.1);
    assert!(sent.1.ends_with("TASK_STATE_COMPLETED: 96 passed\n"), "{}", sent.1);
    let listed = planner(&["list", &agent.url, "--binding", "JSONRPC"]);
    assert!(listed.1.contains("96 passed"), "{}", listed.1);
    let missing = planner(&["get", &agent.url, "no-such", "--binding", "GRPC"]);
    assert_eq!((missing.0, &*missing.1), (Some(1), "error 5: Task not found\n"));
}

#[test]
fn w12_behind_a_proxy_the_card_says_where_grpc_is_reached() {
    let flags = ["--grpc", "127.0.0.1:0", "--grpc-public-url", "https://agents.example/"];
    let agent = Agent::start_with("test-runner", &flags);
    let card: serde_json::Value =
        serde_json::from_str(&get(&agent, "/.well-known/agent-card.json", "localhost:1")).unwrap();
    assert_eq!(card["supportedInterfaces"][2]["url"], "https://agents.example");
    for wrong in
        [&["--grpc-public-url", "agents.example:443"][..], &["--grpc", "127.0.0.1:0", "--grpc-public-url", "x"]]
    {
        let refused = Command::new(programs().join("test-runner")).args(wrong).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn w09_the_planner_shows_when_things_were_made_where_the_agent_tells() {
    let names = ["test-runner", "code-reviewer", "deployer"];
    let agents: Vec<_> =
        names.into_iter().map(|name| Agent::start_with(name, &["--extension", "timestamps"])).collect();
    let card = String::from_utf8(planner(&["card", &agents[0].url]).stdout).unwrap();
    assert!(card.contains("  extension https://github.com/a2aproject/a2a-samples/"), "{card}");
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let sent = planner(&["send", &agents[1].url, "What languages can you review?", "--binding", binding]);
        let words = String::from_utf8(sent.stdout).unwrap() + &String::from_utf8(sent.stderr).unwrap();
        assert!(
            words.trim_end().ends_with("Z)") == (binding != "GRPC") && words.contains("(made 20") || binding == "GRPC",
            "{binding}: {words}"
        );
    }
    let sent = planner(&["send", &agents[0].url, "Run the full suite for payments-api", "--stream"]);
    let words = String::from_utf8(sent.stdout).unwrap();
    assert!(words.lines().any(|line| line.contains("(made 20") && line.contains(" = ")), "an artifact: {words}");
    assert!(words.lines().any(|line| line.starts_with("TASK_STATE_") && line.ends_with("Z)")), "a status: {words}");
    let (code, log) = ship(&agents, &[]);
    assert!(code == Some(0) && log.contains(" is TASK_STATE_AUTH_REQUIRED, said at 20"), "{log}");
}
