//! What `docs/agents.md` shows is what is there: its files, its commands and what they print.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

const PAGE: &str = include_str!("../../../docs/agents.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of the page in one language.
fn blocks(language: &str) -> impl Iterator<Item = &str> {
    let begin = format!("```{language}\n");
    let ends = move |block: &'static str| block.split_once("\n```").map(|(block, _)| block);
    let mut blocks: Vec<&str> = Vec::new();
    let mut rest = PAGE;
    while let Some((_, after)) = rest.split_once(&begin) {
        blocks.push(ends(after).unwrap());
        rest = after;
    }
    blocks.into_iter()
}

/// The folder of the programs, built if they are not.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        // This test is target/PROFILE/deps/NAME.
        let test = std::env::current_exe().unwrap();
        let folder = test.parent().unwrap().parent().unwrap().to_owned();
        let targets: [&[&str]; 3] = [
            &["--package", "planner"],
            // With the features that the tests are built with: this replaces the program that other tests run.
            &["--package", "workshop", "--features", "workshop/interop,workshop/real"],
            &["--package", "server", "--example", "word-counter"],
        ];
        for target in targets {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--target-dir"]).arg(folder.parent().unwrap()).args(target);
            assert!(build.status().unwrap().success(), "{target:?} is built");
        }
        folder
    })
}

/// An agent process on a free port. Dropping it kills it.
struct Agent {
    child: Child,
    origin: String,
}

impl Agent {
    fn start(mut command: Command) -> Self {
        command.args(["--listen", "127.0.0.1:0", "--log", "off"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let origin = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Self { child, origin }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words of a command line; quoted ones in one piece.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('"').enumerate();
    let words = quoted.flat_map(|(at, piece)| match at % 2 {
        0 => piece.split_whitespace().map(str::to_owned).collect(),
        _ => vec![piece.to_owned()],
    });
    words.collect()
}

/// Task ids are other ones each time.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').map(|word| if is_id(word) { "ID" } else { word }).collect();
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The commands of the page that call an agent, each with what it prints.
fn calls() -> Vec<(Vec<String>, String)> {
    let block = blocks("console").find(|block| block.contains("-p planner")).unwrap();
    let calls = block.split("$ cargo run -q -p planner -- ").skip(1);
    calls
        .map(|call| {
            let (command, output) = call.split_once('\n').unwrap();
            (words(command), without_ids(output))
        })
        .collect()
}

fn answers_as_the_page_says(agent: &Agent) {
    let calls = calls();
    assert_eq!(calls.len(), 4);
    for (arguments, expected) in calls {
        let arguments = arguments.iter().map(|word| word.replace("localhost:41250", &agent.origin));
        let output = Command::new(programs().join("planner")).args(arguments).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(without_ids(&printed), expected, "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_files_of_the_page_are_those_of_the_repository() {
    let shown: Vec<&str> = blocks("toml").chain(blocks("rust")).collect();
    assert_eq!(shown.len(), 3);
    for block in shown {
        let (first, text) = block.split_once('\n').unwrap();
        let path = first.trim_start_matches(['#', '/']).trim().strip_prefix("file: ").unwrap();
        let file = std::fs::read_to_string(root().join(path)).unwrap();
        // A script begins with a comment of its own, which the page does not need.
        let file = if path.ends_with(".toml") { file.split_once("\n\n").unwrap().1 } else { &file };
        assert_eq!(text.trim_end(), file.trim_end(), "{path}");
    }
}

#[test]
fn the_script_answers_as_the_page_says() {
    let mut command = Command::new(programs().join("workshop"));
    command.arg("agent").arg(root().join("scenarios/agents/word-counter.toml"));
    answers_as_the_page_says(&Agent::start(command));
}

#[test]
fn the_agent_in_rust_answers_as_the_page_says() {
    answers_as_the_page_says(&Agent::start(Command::new(programs().join("examples/word-counter"))));
}

#[test]
fn the_agent_in_rust_counts() {
    let agent = Agent::start(Command::new(programs().join("examples/word-counter")));
    let url = format!("http://{}", agent.origin);
    let output = Command::new(programs().join("planner")).args(["send", &url, "One, two; one"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("3 words, 2 different ones") && printed.contains(r#"{"one":2,"two":1}"#), "{printed}");
}

#[test]
fn the_mistake_of_the_page_is_the_one_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let script = std::fs::read_to_string(root().join("scenarios/agents/word-counter.toml")).unwrap();
    let without_end: Vec<&str> = script.lines().filter(|line| !line.contains("{ done")).collect();
    std::fs::write(folder.path().join("mine.toml"), without_end.join("\n")).unwrap();
    let mut command = Command::new(programs().join("workshop"));
    let output = command.args(["agent", "mine.toml", "--check"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    let block = blocks("console").find(|block| block.contains("--check")).unwrap();
    assert_eq!(block.split_once('\n').unwrap().1, told.trim_end());
}
