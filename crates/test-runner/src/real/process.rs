//! A suite as a process: its environment, its limits, the sandbox around it, and its end, with all that it started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

/// The variable by which all processes of a run are known, wherever they went.
pub const MARK: &str = "A2A_TEST_RUN";

/// What a run starts.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// The working tree.
    pub tree: &'a Path,
    /// The folder of the run, which the suite may write to. The tree is inside.
    pub folder: &'a Path,
    /// Variables beside the usual ones.
    pub environment: &'a BTreeMap<String, String>,
    /// Bytes of data for each process.
    pub memory_limit: Option<u64>,
    /// Seconds of a CPU for each process.
    pub cpu_limit: Option<u64>,
    /// Whether the network is there.
    pub network: bool,
    /// Whether `bwrap` stands around it.
    pub sandbox: bool,
}

/// A suite that runs. Dropped, it and all that it started are killed.
#[derive(Debug)]
pub struct Process {
    child: Child,
    group: Option<Pid>,
    mark: String,
}

/// These reach a suite from the agent's own environment; everything else stays out.
const PASSED_ON: [&str; 10] =
    ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOROOT", "VIRTUAL_ENV"];

/// Folders and files of the home folder that no suite needs to see. The sandbox puts nothing in their place.
const SECRETS: [&str; 9] =
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gh", ".config/gcloud", ".local/state"];

/// Sets the limits and becomes the suite. The arguments are not read by the shell, only passed on.
const LIMITS: &str = r#"[ "$1" = - ] || ulimit -t "$1"; [ "$2" = - ] || ulimit -d "$2"; shift 2; exec "$@""#;

/// Whether `bwrap` is there and can make a process namespace here.
pub async fn has_sandbox() -> bool {
    let mut bwrap = Command::new("bwrap");
    bwrap.args([
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-pid",
        "--die-with-parent",
        "true",
    ]);
    bwrap.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    matches!(tokio::time::timeout(Duration::from_secs(5), bwrap.status()).await, Ok(Ok(status)) if status.success())
}

/// Starts a suite. Its output, both kinds in the order in which they are written, comes out of the pipe.
pub fn start(plan: &Plan<'_>) -> io::Result<(Process, pipe::Receiver)> {
    let mut words: Vec<OsString> = Vec::new();
    if plan.sandbox {
        words.extend(sandbox(plan));
    }
    words.extend(["sh", "-c", LIMITS, "sh"].map(OsString::from));
    words.push(plan.cpu_limit.map_or("-".to_owned(), |seconds| seconds.to_string()).into());
    // In units of 1,024 bytes.
    words.push(plan.memory_limit.map_or("-".to_owned(), |bytes| bytes.div_ceil(1024).to_string()).into());
    words.extend(plan.command.iter().map(OsString::from));

    let (reader, writer) = io::pipe()?;
    let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let mark = plan.folder.display().to_string();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(plan.tree).env_clear();
    command.envs(PASSED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
    command.env("CI", "1").env("TERM", "dumb").env("TMPDIR", plan.folder.join("tmp"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUNBUFFERED", "1");
    command.envs(plan.environment).env(MARK, &mark);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0).kill_on_drop(true);
    let child = command.spawn()?;
    // The parent's end of the pipe closes with the command; else the pipe would never end.
    drop(command);
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    Ok((Process { child, group, mark }, reader))
}

/// `bwrap` with its arguments: all is there to be read, the run's folder to be written, and no process of the suite
/// outlives the first one.
fn sandbox(plan: &Plan<'_>) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"].map(Into::into).into();
    let mut add = |more: &[&std::ffi::OsStr]| words.extend(more.iter().map(|word| (*word).to_owned()));
    add(&["--tmpfs".as_ref(), "/tmp".as_ref()]);
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    for secret in home.iter().flat_map(|home| SECRETS.map(|name| home.join(name))).filter(|path| path.is_dir()) {
        add(&["--tmpfs".as_ref(), secret.as_os_str()]);
    }
    // Tools keep what they have built and fetched there.
    let caches = [home.as_ref().map(|home| home.join(".cargo")), std::env::var_os("CARGO_HOME").map(PathBuf::from)];
    for cache in caches.into_iter().flatten().filter(|path| path.is_dir()) {
        add(&["--bind".as_ref(), cache.as_os_str(), cache.as_os_str()]);
    }
    // The programs themselves may be installed there: PREFIX/bin is on the path, or in the command.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = plan.command.first().and_then(|program| Path::new(program).parent().map(Path::to_owned));
    for folder in std::env::split_paths(&path).chain(own).filter(|folder| folder.starts_with("/tmp/")) {
        if let Some(prefix) = folder.parent().filter(|prefix| *prefix != Path::new("/tmp") && prefix.is_dir()) {
            add(&["--ro-bind".as_ref(), prefix.as_os_str(), prefix.as_os_str()]);
        }
    }
    add(&["--bind".as_ref(), plan.folder.as_os_str(), plan.folder.as_os_str()]);
    for flag in ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"] {
        add(&[flag.as_ref()]);
    }
    if !plan.network {
        add(&["--unshare-net".as_ref()]);
    }
    add(&["--chdir".as_ref(), plan.tree.as_os_str(), "--".as_ref()]);
    words
}

impl Process {
    /// Waits for the end of the suite's first process.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks all to end, and kills what has not after a moment.
    pub async fn stop(mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::TERM);
        }
        let _ = tokio::time::timeout(Duration::from_millis(500), self.child.wait()).await;
        // The rest happens as it is dropped.
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let (Some(group), Ok(None)) = (self.group, self.child.try_wait()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        sweep(|mark| mark == self.mark);
    }
}

/// Kills all processes that carry a mark, again until none is left: they may be starting others. Gives how many there
/// were.
pub fn sweep(is_ours: impl Fn(&str) -> bool) -> usize {
    let mut killed = 0;
    for _ in 0..50 {
        let found = marked(&is_ours);
        if found.is_empty() {
            break;
        }
        killed += found.len();
        for id in found {
            let _ = kill_process(id, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    killed
}

/// The processes that carry a mark and still run.
fn marked(is_ours: &impl Fn(&str) -> bool) -> Vec<Pid> {
    let Ok(folders) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = folders.filter_map(|folder| folder.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let prefix = format!("{MARK}=").into_bytes();
    ids.filter(|id| {
        // What has ended and was not waited for has no environment any more.
        let Ok(environment) = fs::read(format!("/proc/{id}/environ")) else { return false };
        let mark = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(&*prefix));
        mark.and_then(|mark| std::str::from_utf8(mark).ok()).is_some_and(is_ours)
    })
    .filter_map(Pid::from_raw)
    .collect()
}

/// How a process ended, in words.
pub fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}
