//! Section H: the addresses that a card names.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use testing::program;

#[test]
fn b76_an_agent_that_listens_everywhere_names_no_such_address_and_says_what_others_will_read() {
    let state = tempfile::tempdir().unwrap();
    let start = |more: &[&str]| {
        let mut agent = program("test-runner", state.path());
        agent.args(["--listen", "0.0.0.0:0", "--store", "memory", "--log", "warn"]).args(more);
        let mut agent = agent.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(agent.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
        let mut said = String::new();
        agent.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!ready.contains("0.0.0.0"), "{ready}");
        (ready, said)
    };
    let (ready, said) = start(&[]);
    assert!(ready.contains("http://localhost:"), "{ready}");
    assert!(said.contains("--host NAME or --public-url URL mends it"), "{said}");
    for mended in [["--host", "reviewer"], ["--public-url", "https://agents.example/x"]] {
        assert_eq!(start(&mended).1, "", "{mended:?}");
    }
    assert!(
        start(&["--public-url", "https://agents.example/x/"]).0.contains(": https://agents.example/x/.well-known/")
    );
}
