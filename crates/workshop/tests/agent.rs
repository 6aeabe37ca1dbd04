//! `workshop agent`: what it says of a file, and that it serves one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn workshop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workshop"));
    command.arg("agent").args(arguments);
    command
}

fn checked(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = workshop(arguments).arg("--check").output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// Ends the process with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_file_in_scenarios_agents_can_work() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/agents");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let (code, stdout, stderr) = checked(&[path.to_str().unwrap()]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    }
}

#[test]
fn an_agent_that_is_built_in_goes_by_its_name() {
    assert_eq!(checked(&["hello"]), (Some(0), "hello: hello 1.0.0, rules: 1\n".to_owned(), String::new()));
    assert_eq!(checked(&["conformance", "--configuration", "nocap"]).0, Some(0));
}

#[test]
fn a_mistake_is_told_with_file_line_and_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    let hello = include_str!("../../../scenarios/agents/hello.toml");
    std::fs::write(&file, hello.replace("reply", "repl")).unwrap();
    let file = file.to_str().unwrap();
    let words = "unknown key `repl`; did you mean `reply`?";
    let line = 1 + hello.lines().position(|line| line.contains("reply")).unwrap();
    assert_eq!(checked(&[file]), (Some(2), String::new(), format!("{file}:{line}: {words}\n")));
}

#[test]
fn a_file_that_is_not_there_says_which_agents_are_built_in() {
    let (code, _, stderr) = checked(&["no-such-agent"]);
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("no-such-agent: cannot be read: "), "{stderr}");
    assert!(stderr.trim_end().ends_with("; expected a file or `conformance`, `hello` or `word-counter`"), "{stderr}");
}

#[test]
fn it_serves_the_card_and_takes_the_flags_of_an_agent() {
    let mut command = workshop(&["hello", "--listen", "127.0.0.1:0", "--rpc-path", "/here"]);
    let mut running = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("hello is ready: http://localhost:").unwrap();
    let port: u16 = url.split('/').next().unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let path = protocol::media::CARD_PATH;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(&format!("\"url\":\"http://localhost:{port}/here\"")), "{answer}");
}
