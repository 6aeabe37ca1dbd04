//! Each target on its corpus, and then on mutations of it: some thousand, the same in every run, or as many as come in
//! `FUZZ_SECONDS`, others in every run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fuzz::{TARGETS, Target};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How many inputs a run without a time tries.
const MUTATIONS: u64 = 4000;

/// What bytes alone would hardly ever come to.
const WORDS: [&str; 58] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "0",
    "-1",
    "1e9",
    "\\u0000",
    "\\ud800",
    "\\\\",
    "é",
    "\u{2028}",
    "\"data\":",
    "\"text\":",
    "\"raw\":",
    "\"url\":",
    "\"metadata\":",
    "\"parts\":",
    "\"role\":",
    "\"message\":",
    "\"messageId\":",
    "\"message_id\":",
    "\"taskId\":",
    "\"id\":",
    "\"method\":",
    "\"params\":",
    "\"jsonrpc\":\"2.0\"",
    "\"result\":",
    "\"error\":",
    "\"status\":",
    "\"TASK_STATE_WORKING\"",
    "\"ROLE_USER\"",
    "\"ROLE_AGENT\"",
    "\"\"",
    "data: ",
    "data:\n",
    "\r\n",
    "\n\n",
    "id: 7\n",
    ": \n",
    "\u{feff}",
    "T24:60:60.999Z",
    "+23:59",
    "@@ -1 +1 @@\n",
    "@@ -0,0 +1,2 @@\n",
    "--- a/a.py\n+++ b/a.py\n",
    "diff --git a/a.py b/a.py\n",
    "\n+",
    "\n-",
    "\n ",
    "\\ No newline at end of file\n",
    "rename from a\nrename to b\n",
    "Binary files a and b differ\n",
];

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// A few changes to an input.
fn mutated(corpus: &[Vec<u8>], dice: &mut StdRng) -> Vec<u8> {
    let mut input = corpus[dice.random_range(0..corpus.len())].clone();
    for _ in 0..dice.random_range(1..6) {
        let from = dice.random_range(0..=input.len());
        let to = dice.random_range(from..=input.len().min(from + 24));
        match dice.random_range(0..6) {
            0 if from < input.len() => input[from] = dice.random(),
            1 => drop(input.drain(from..to)),
            2 => {
                let word = WORDS[dice.random_range(0..WORDS.len())];
                input.splice(from..from, word.bytes());
            }
            3 => {
                let word = WORDS[dice.random_range(0..WORDS.len())];
                input.splice(from..to, word.bytes());
            }
            4 => {
                let twice = input[from..to].to_vec();
                input.splice(from..from, twice);
            }
            _ => {
                let other = &corpus[dice.random_range(0..corpus.len())];
                let at = dice.random_range(0..=other.len());
                input.splice(from.., other[at..].iter().copied());
            }
        }
    }
    input.truncate(64 << 10);
    input
}

fn run(name: &str, target: Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let finding = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("finding-{name}"));
        std::fs::write(&finding, input).unwrap();
        panic!("{name} does not hold for {} ({})", input.escape_ascii(), finding.display());
    }
}

fn short(name: &str) {
    let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).unwrap();
    let until = std::env::var("FUZZ_SECONDS").ok().map(|seconds| {
        let seconds = seconds.parse().expect("FUZZ_SECONDS is a whole number");
        Instant::now() + Duration::from_secs(seconds)
    });
    let corpus = corpus(name);
    assert!(corpus.len() > 5, "{name} has a corpus");
    corpus.iter().for_each(|input| run(name, target, input));
    let mut dice = StdRng::seed_from_u64(if until.is_some() { rand::random() } else { 1 });
    let mut count = 0u64;
    while until.map_or(count < MUTATIONS, |until| Instant::now() < until) {
        run(name, target, &mutated(&corpus, &mut dice));
        count += 1;
    }
    println!("{name}: {} inputs of the corpus and {count} mutations", corpus.len());
}

#[test]
fn a_diff_holds() {
    short("diff");
}

#[test]
fn the_envelope_holds() {
    short("envelope");
}

#[test]
fn a_part_holds() {
    short("part");
}

#[test]
fn the_rules_hold() {
    short("rules");
}

#[test]
fn the_reader_of_sse_holds() {
    short("sse");
}

#[test]
fn a_timestamp_holds() {
    short("timestamp");
}

/// A corpus, of which a person reads nothing, is no place to put everything in.
#[test]
fn the_corpus_is_small() {
    let files: Vec<Vec<u8>> = TARGETS.into_iter().flat_map(|(name, _)| corpus(name)).collect();
    assert!(files.len() < 600, "{}", files.len());
    assert!(files.iter().map(Vec::len).sum::<usize>() < 256 << 10);
}
