//! Varies the last line of a git commit until its id begins as wanted.
//!
//! ```text
//! $ git cat-file commit HEAD | cargo run --release -p testing --example commit-nonce -- 9f3c2e1
//! ```
//!
//! Reads a commit, gives it a last line `Nonce: …`, and writes the commit whose id begins with the given digits. Seven
//! digits are 2^28 tries in the middle: a minute or two.

use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use sha1::{Digest, Sha1};

/// How many digits a nonce has. 2^48 of them are enough.
const DIGITS: usize = 12;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default().to_lowercase();
    if wanted.is_empty() || wanted.len() > 10 || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        eprintln!("usage: commit-nonce DIGITS < COMMIT    (at most ten hexadecimal digits)");
        return ExitCode::from(2);
    }
    let mut commit = String::new();
    if let Err(cause) = std::io::stdin().read_to_string(&mut commit) {
        eprintln!("the commit: {cause}");
        return ExitCode::FAILURE;
    }
    let start = format!("{}\n\nNonce: ", commit.trim_end());
    let nonce = search(&start, &wanted);
    let written = std::io::stdout().write_all(format!("{start}{nonce}\n").as_bytes());
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tries nonces on all cores until one fits.
fn search(start: &str, wanted: &str) -> String {
    let mut begun = Sha1::new();
    begun.update(format!("commit {}\0", start.len() + DIGITS + 1));
    begun.update(start);
    let (bits, shift) = (u64::from_str_radix(wanted, 16).unwrap_or_default(), 64 - 4 * wanted.len());
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let found = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores)
            .map(|first| {
                let (begun, found) = (&begun, &found);
                scope.spawn(move || {
                    let mut number = first;
                    while !found.load(Ordering::Relaxed) {
                        let nonce = format!("{number:0DIGITS$x}");
                        let id = begun.clone().chain_update(&nonce).chain_update("\n").finalize();
                        let head = id.iter().take(8).fold(0u64, |head, byte| head << 8 | u64::from(*byte));
                        if head >> shift == bits {
                            found.store(true, Ordering::Relaxed);
                            return Some(nonce);
                        }
                        number += cores;
                    }
                    None
                })
            })
            .collect();
        threads.into_iter().find_map(|thread| thread.join().ok().flatten()).unwrap_or_default()
    })
}
