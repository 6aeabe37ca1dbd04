//! The programs as a person starts them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The folder that this test was built in.
fn built() -> PathBuf {
    // A test is target/PROFILE/deps/NAME.
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().to_owned()
}

fn build(arguments: &[&str]) {
    let folder = built();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--target-dir"]).arg(folder.parent().unwrap()).args(arguments);
    // What cargo says to a test about its package: a build script that asks (ring's does) would run again, and
    // everything above it be compiled again, here and after the next command.
    let told = std::env::vars().map(|(name, _)| name);
    for name in told.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
        build.env_remove(name);
    }
    if folder.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success(), "cargo build {arguments:?}");
}

/// The folder of the programs, built if they are not.
pub fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let packages = ["planner", "test-runner", "code-reviewer", "deployer"];
        let packages: Vec<&str> = packages.iter().flat_map(|package| ["--package", *package]).collect();
        // With what the tests are built with: nothing is built twice.
        build(&[&packages[..], &["--features", "test-runner/postgres"]].concat());
        built()
    })
}

/// The bench, built if it is not, with what the tests are built with.
pub fn workshop() -> PathBuf {
    build(&["--package", "workshop", "--features", "workshop/interop,workshop/real"]);
    built().join("workshop")
}

/// An example of this package's, built if it is not.
pub fn example(name: &str) -> PathBuf {
    build(&["--package", "testing", "--example", name]);
    built().join("examples").join(name)
}

/// A program with a state directory of its own, so that tests share no file with each other or with a person.
pub fn program(name: &str, state: &Path) -> Command {
    let mut command = Command::new(programs().join(name));
    command.env("XDG_STATE_HOME", state).env_remove("A2A_STORE");
    command
}

/// An agent process on a free port. Dropping it kills it.
pub struct Program {
    /// The process.
    pub child: Child,
    /// Where it listens: `http://localhost:PORT`.
    pub url: String,
    _state: tempfile::TempDir,
}

impl Program {
    /// Starts an agent with its default flags.
    pub fn start(name: &str) -> Self {
        Self::start_with(name, &[])
    }

    /// Starts an agent with more flags and waits until it says that it is ready.
    pub fn start_with(name: &str, more: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut child = program(name, state.path())
            .args(["--listen", "127.0.0.1:0", "--log", "warn"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let card = line.split_whitespace().last().unwrap_or_default().to_owned();
        assert!(line.starts_with(&format!("{name} is ready: http://localhost:")), "{line}");
        let url = card.strip_suffix("/.well-known/agent-card.json").unwrap().to_owned();
        Self { child, url, _state: state }
    }

    /// Sends it a signal, such as `-TERM`.
    pub fn signal(&self, signal: &str) {
        let killed = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// Waits for its end, at most so long.
    pub fn ended(&mut self, limit: Duration) -> Option<i32> {
        let since = Instant::now();
        while since.elapsed() < limit {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Skips a test whose outside tool is missing: says so past the capture of test output, and panics where nothing may be
/// left out (`REQUIRE_ALL=1`).
pub fn skip(why: &str) {
    use std::io::Write;
    assert!(std::env::var_os("REQUIRE_ALL").is_none_or(|all| all != "1"), "{why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
