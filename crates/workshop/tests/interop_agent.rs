//! `workshop interop-agent`: served with the flags of the kit, or told how to build it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::process::Command;

fn interop_agent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workshop"));
    command.args(["interop-agent", "--httpPort", "0", "--grpcPort", "0"]);
    command
}

#[cfg(not(feature = "interop"))]
#[test]
fn a_build_without_it_says_how_to_build_it() {
    let output = interop_agent().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "this build has no interop agent; \
         cargo run -p workshop --features interop -- interop-agent --httpPort 0 --grpcPort 0\n"
    );
}

#[cfg(feature = "interop")]
#[test]
fn its_card_is_where_it_says_and_names_the_kits_paths() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::Stdio;

    let mut child = interop_agent().stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let origin = line.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let mut stream = std::net::TcpStream::connect(origin).unwrap();
    let request = format!("GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {origin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut card = String::new();
    stream.read_to_string(&mut card).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let grpc = line.trim().rsplit(' ').next().unwrap();
    for url in [format!("http://{origin}/jsonrpc"), format!("http://{origin}/rest"), format!("127.0.0.1:{grpc}")] {
        assert!(card.contains(&format!("\"url\":\"{url}\"")), "{url} is not on {card}");
    }
}
