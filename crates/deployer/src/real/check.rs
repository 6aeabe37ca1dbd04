//! Checks: whether a build is fit to be switched to, and whether an environment is well.

use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::{Client, Url};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::process::Command;

/// How often a check is tried when nobody said otherwise.
const ATTEMPTS: u32 = 3;
/// The pause between tries.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a try may take.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// So much of an answer is searched for a text, and so much of what a command writes is kept.
const READ: u64 = 64 << 10;
/// The variables that a command gets from the agent's environment.
const PASSED_ON: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// A check.
#[derive(Debug, Clone)]
pub struct Check {
    /// Its name, for the report.
    pub name: String,
    kind: Kind,
    /// Whether it is made before the switch.
    pub before: bool,
    /// Whether it is made after the switch.
    pub after: bool,
    attempts: u32,
    interval: Duration,
    time_limit: Duration,
}

#[derive(Debug, Clone)]
enum Kind {
    /// A GET has to be answered with this status, and with this text somewhere in the first 64 KiB.
    Http { url: Url, status: u16, text: Option<String> },
    /// Somebody has to listen there.
    Tcp(String),
    /// A program has to end with exit code 0. It runs in the build's folder.
    Command(Vec<String>),
}

/// A check as a file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CheckTable {
    name: String,
    http: Option<String>,
    status: Option<u16>,
    text: Option<String>,
    tcp: Option<String>,
    command: Option<Vec<String>>,
    when: Option<When>,
    attempts: Option<u32>,
    /// Seconds.
    interval: Option<f64>,
    /// Seconds.
    time_limit: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum When {
    Before,
    After,
    Both,
}

impl CheckTable {
    /// Reads it. The error names the check.
    pub fn check(self) -> Result<Check, String> {
        let name = self.name;
        let wrong = |words: &str| Err(format!("check {name}: {words}"));
        let is_http = self.http.is_some();
        let kind = match (self.http, self.tcp, self.command) {
            (Some(url), None, None) => match url.parse::<Url>() {
                Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
                    Kind::Http { url, status: self.status.unwrap_or(200), text: self.text.clone() }
                }
                _ => return wrong("http must be an http or https URL"),
            },
            (None, Some(address), None) if address.rsplit_once(':').is_some_and(|(_, port)| is_port(port)) => {
                Kind::Tcp(address)
            }
            (None, Some(_), None) => return wrong("tcp must be HOST:PORT"),
            (None, None, Some(command)) if command.first().is_some_and(|program| !program.is_empty()) => {
                Kind::Command(command)
            }
            _ => return wrong("it needs one of http, tcp and command"),
        };
        if !is_http && (self.status.is_some() || self.text.is_some()) {
            return wrong("status and text belong to http");
        }
        // A command looks at the build, a connection at the environment.
        let usual = if matches!(kind, Kind::Command(_)) { When::Before } else { When::After };
        let when = self.when.unwrap_or(usual);
        let seconds = |given: Option<f64>, usual: Duration| match given {
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            None => Some(usual),
        };
        let (Some(interval), Some(time_limit)) =
            (seconds(self.interval, INTERVAL), seconds(self.time_limit, TIME_LIMIT).filter(|limit| !limit.is_zero()))
        else {
            return wrong("interval and time-limit are seconds");
        };
        let attempts = self.attempts.unwrap_or(ATTEMPTS);
        if attempts == 0 {
            return wrong("attempts must be 1 or more");
        }
        let (before, after) = (when != When::After, when != When::Before);
        Ok(Check { name, kind, before, after, attempts, interval, time_limit })
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// What a check saw, as the report holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Saw {
    /// The check.
    pub name: String,
    /// `before` or `after` the switch.
    pub when: String,
    /// Whether all is well.
    pub passing: bool,
    /// What was seen the last time.
    pub saw: String,
    /// How often it was tried.
    pub attempts: u32,
}

/// What is checked.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    /// The folder of the build.
    pub folder: &'a Path,
    /// The environment's name.
    pub environment: &'a str,
    /// The build's name.
    pub build: &'a str,
    /// `before` or `after`.
    pub when: &'static str,
}

impl Check {
    /// Makes the check until it passes or was tried often enough.
    pub async fn make(&self, of: Of<'_>) -> Saw {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let tried = match tokio::time::timeout(self.time_limit, self.once(of)).await {
                Ok(tried) => tried,
                Err(_) => Err(format!("nothing within {} s", self.time_limit.as_secs_f64())),
            };
            if tried.is_ok() || attempts >= self.attempts {
                let passing = tried.is_ok();
                let saw = tried.unwrap_or_else(|words| words);
                return Saw { name: self.name.clone(), when: of.when.to_owned(), passing, saw, attempts };
            }
            tokio::time::sleep(self.interval).await;
        }
    }

    /// Tries once; gives what was seen.
    async fn once(&self, of: Of<'_>) -> Result<String, String> {
        match &self.kind {
            Kind::Http { url, status, text } => http(url, *status, text.as_deref()).await,
            Kind::Tcp(address) => tcp(address).await,
            Kind::Command(words) => command(words, of).await,
        }
    }
}

async fn http(url: &Url, status: u16, text: Option<&str>) -> Result<String, String> {
    // Fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A client of its own: what a connection of the last build's answers is no news of this one.
    let client = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
    let client = client.map_err(|cause| cause.to_string())?;
    let mut answer = client.get(url.clone()).send().await.map_err(|cause| no_answer(&cause))?;
    let seen = answer.status().as_u16();
    if seen != status {
        return Err(format!("status {seen} instead of {status}"));
    }
    let Some(text) = text else { return Ok(format!("status {seen}")) };
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|cause| no_answer(&cause))? {
        body.extend_from_slice(&piece);
        if body.len() as u64 > READ {
            break;
        }
    }
    if String::from_utf8_lossy(&body).contains(text) {
        Ok(format!("status {seen} and the text {text:?}"))
    } else {
        Err(format!("status {seen} without the text {text:?}"))
    }
}

/// Why there was no answer: the last of its causes says it best. URLs may hold what only their owners should read.
fn no_answer(cause: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = cause;
    while let Some(source) = last.source() {
        last = source;
    }
    format!("no answer: {last}")
}

async fn tcp(address: &str) -> Result<String, String> {
    let resolve = address.to_owned();
    let found = tokio::task::spawn_blocking(move || resolve.to_socket_addrs()).await;
    let found = found.map_err(|cause| cause.to_string())?.map_err(|cause| format!("no such host: {cause}"))?;
    let mut why = "no such host".to_owned();
    for socket in found {
        match TcpStream::connect(socket).await {
            Ok(_) => return Ok("somebody listens".to_owned()),
            Err(cause) => why = format!("nobody listens: {cause}"),
        }
    }
    Err(why)
}

/// Ends a command and all that it has started, when it is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn command(words: &[String], of: Of<'_>) -> Result<String, String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(of.folder).env_clear();
    command.envs(PASSED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
    command.env("BUILD", of.build).env("ENVIRONMENT", of.environment).env("WHEN", of.when);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(|cause| format!("it could not be started: {cause}"))?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let output = async { tokio::join!(last_words(out), last_words(err)) };
    let ended = async {
        let status = child.wait().await;
        // What it has left running would keep the pipes open.
        drop(group);
        status
    };
    let (status, (out, err)) = tokio::join!(ended, output);
    let status = status.map_err(|cause| cause.to_string())?;
    let last = if err.is_empty() { out } else { err };
    let words = match status.code() {
        Some(code) => format!("exit code {code}"),
        None => "it was killed".to_owned(),
    };
    let words = if last.is_empty() { words } else { format!("{words}: {last}") };
    if status.success() { Ok(words) } else { Err(words) }
}

/// The last line that is written, without its control characters.
async fn last_words(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 8 << 10]);
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..length]);
        if kept.len() as u64 > 2 * READ {
            kept.drain(..kept.len() - READ as usize);
        }
    }
    let text = String::from_utf8_lossy(&kept);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|one| !one.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    fn check(table: &str) -> Check {
        let table: CheckTable = toml::from_str(&format!("name = \"it\"\ninterval = 0.01\n{table}")).unwrap();
        table.check().unwrap()
    }

    async fn saw(table: &str) -> Saw {
        let folder = tempfile::tempdir().unwrap();
        let of = Of { folder: folder.path(), environment: "staging", build: "7", when: "after" };
        check(table).make(of).await
    }

    /// Answers each connection with the next of these, the last one again and again.
    async fn answers(answers: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let mut number = 0;
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut head = [0; 1024];
                let _ = socket.read(&mut head).await;
                let body = answers[number.min(answers.len() - 1)];
                number += 1;
                let _ = socket.write_all(body.as_bytes()).await;
            }
        });
        address
    }

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nall ok\n";
    const DOWN: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    const MOVED: &str = "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

    #[tokio::test]
    async fn an_http_check_wants_the_status_and_the_text() {
        let address = answers(&[OK]).await;
        let seen = saw(&format!("http = \"http://{address}/\"\ntext = \"all ok\"")).await;
        assert_eq!((seen.passing, seen.attempts, &*seen.saw), (true, 1, "status 200 and the text \"all ok\""));
        let seen = saw(&format!("http = \"http://{address}/\"\ntext = \"fine\"")).await;
        assert_eq!((seen.passing, seen.attempts, &*seen.saw), (false, 3, "status 200 without the text \"fine\""));
        let seen = saw(&format!("http = \"http://{}/\"", answers(&[MOVED]).await)).await;
        assert_eq!(seen.saw, "status 302 instead of 200");
        let seen = saw(&format!("http = \"http://{}/\"\nstatus = 302", answers(&[MOVED]).await)).await;
        assert!(seen.passing);
    }

    #[tokio::test]
    async fn what_comes_up_late_is_waited_for() {
        let address = answers(&[DOWN, DOWN, OK]).await;
        let seen = saw(&format!("http = \"http://{address}/\"")).await;
        assert_eq!((seen.passing, seen.attempts), (true, 3));
    }

    #[tokio::test]
    async fn nobody_there_and_nothing_said_are_told_apart() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let seen = saw(&format!("tcp = \"{closed}\"\nattempts = 1")).await;
        assert!(!seen.passing && seen.saw.starts_with("nobody listens: "), "{seen:?}");
        let seen = saw(&format!("http = \"http://{closed}/\"\nattempts = 1")).await;
        assert!(!seen.passing && seen.saw.starts_with("no answer: ") && !seen.saw.contains("http"), "{seen:?}");
        let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = mute.local_addr().unwrap();
        let seen = saw(&format!("http = \"http://{address}/\"\nattempts = 1\ntime-limit = 0.1")).await;
        assert_eq!(seen.saw, "nothing within 0.1 s");
        assert!(saw(&format!("tcp = \"{address}\"")).await.passing);
    }

    #[tokio::test]
    async fn a_command_is_told_what_it_looks_at_and_its_last_words_are_kept() {
        let words = r#"command = ["sh", "-c", "echo one; echo $ENVIRONMENT $BUILD $WHEN $CARGO; exit 0"]"#;
        let seen = saw(words).await;
        assert_eq!((seen.passing, &*seen.saw), (true, "exit code 0: staging 7 after"));
        let seen = saw(r#"command = ["sh", "-c", "echo out; echo no schema >&2; exit 3"]"#).await;
        assert_eq!((seen.passing, &*seen.saw), (false, "exit code 3: no schema"));
        let seen = saw(r#"command = ["./not-there"]"#).await;
        assert!(seen.saw.starts_with("it could not be started: "), "{seen:?}");
    }

    #[tokio::test]
    async fn nothing_that_a_command_started_outlives_it() {
        let folder = tempfile::tempdir().unwrap();
        let of = Of { folder: folder.path(), environment: "staging", build: "7", when: "after" };
        for words in ["sleep 60 & echo $! > pid; exit 0", "sleep 60 & echo $! > pid; wait"] {
            let table = format!("command = [\"sh\", \"-c\", \"{words}\"]\nattempts = 1\ntime-limit = 0.5");
            check(&table).make(of).await;
            let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
            let is_gone = || match std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) {
                Ok(stat) => stat.contains(") Z "),
                Err(_) => true,
            };
            for _ in 0..200 {
                if is_gone() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(is_gone(), "{words}");
        }
    }
}
