//! How runs end: nothing of them is left, however they do. `TIMES` says how often; 100 is what is promised.

use std::future::poll_fn;
use std::io::{BufRead, BufReader};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use server::{Agent, Job, Say, Turn};
use test_runner::TestRunner;
use test_runner::real::Runner;
use testing::{Binding, immediately, message, programs, send};
use tokio::sync::Notify;

use super::{Bench, Repository, bench_in, outcome, processes, project};

fn times() -> usize {
    std::env::var("TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(3)
}

/// A suite that starts others, some of which try to get away.
fn family() -> Repository {
    let script = "(trap '' TERM HUP INT; sleep 600) & (setsid sh -c 'trap \"\" TERM HUP; sleep 600; sleep 600' &) & \
                  nohup sleep 600 > /dev/null 2>&1 & echo hangs now; sleep 600\n";
    Repository::new(&[("one", &[("check.sh", script.to_owned())])])
}

const TEXT: &str = "Run the tests of shop at branch one";

#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_the_whole_tree_within_two_seconds() {
    for sandbox in [true, false] {
        let repository = family();
        let bench = bench_in(&repository, "sh check.sh", 600, sandbox).await;
        for _ in 0..times() {
            let answer = bench.served.call(Binding::Rpc, "SendMessage", immediately(message(TEXT))).await;
            let id = testing::id(&answer.result()["task"]);
            while !outcome(&bench.served.task(&id).await).2.contains("hangs now") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(processes(bench.base.path()).len() >= 4);
            let since = std::time::Instant::now();
            let canceled = bench.served.call(Binding::Rpc, "CancelTask", json!({"id": id})).await;
            assert_eq!(testing::state(canceled.result()), "CANCELED");
            assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
            bench.is_clean();
            assert_eq!(repository.worktrees(), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_limit_ends_the_whole_tree() {
    for sandbox in [true, false] {
        let repository = family();
        let bench = bench_in(&repository, "sh check.sh", 1, sandbox).await;
        for _ in 0..times() {
            let task = bench.test("one").await;
            assert_eq!(outcome(&task).1, "The suite took longer than 1 s and was stopped.");
            bench.is_clean();
            assert_eq!(repository.worktrees(), 0);
        }
    }
}

/// A test-runner that panics in the middle of its turn when it is told to.
struct Panics {
    inner: Arc<TestRunner>,
    now: Arc<Notify>,
}

impl Agent for Panics {
    fn card(&self) -> protocol::AgentCard {
        self.inner.card()
    }

    fn turn(self: Arc<Self>, job: Job, say: Say) -> Turn {
        let mut work = Arc::clone(&self.inner).turn(job, say);
        Box::pin(async move {
            let mut now = pin!(self.now.notified());
            poll_fn(|context| {
                assert!(now.as_mut().poll(context).is_pending(), "told to");
                work.as_mut().poll(context)
            })
            .await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_the_whole_tree() {
    for sandbox in [true, false] {
        let repository = family();
        let base = tempfile::tempdir().unwrap();
        let runner = Runner::new(vec![project(&repository, "sh check.sh", 600)], base.path(), 1).unwrap();
        let runner = if sandbox { runner } else { runner.without_sandbox() };
        let now = Arc::new(Notify::new());
        let agent = Panics { inner: Arc::new(TestRunner::working(runner)), now: Arc::clone(&now) };
        let bench = Bench { served: testing::serve(agent, |_| {}).await, base };
        for _ in 0..times() {
            let answer = bench.served.call(Binding::Rpc, "SendMessage", immediately(message(TEXT))).await;
            let id = testing::id(&answer.result()["task"]);
            while !outcome(&bench.served.task(&id).await).2.contains("hangs now") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(processes(bench.base.path()).len() >= 4);
            now.notify_waiters();
            let since = std::time::Instant::now();
            while testing::state(&bench.served.task(&id).await) == "WORKING" {
                assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let task = bench.served.task(&id).await;
            assert_eq!(testing::state(&task), "FAILED");
            assert!(!task.to_string().contains("told to"), "{task}");
            bench.is_clean();
            assert_eq!(repository.worktrees(), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_suite_leaves_running_ends_with_it() {
    for sandbox in [true, false] {
        let script = "setsid sleep 600 & sleep 600 & echo 'Ran 1 tests in 1s'; echo OK\n";
        let repository = Repository::new(&[("one", &[("check.sh", script.to_owned())])]);
        let bench = bench_in(&repository, "sh check.sh", 60, sandbox).await;
        for _ in 0..times() {
            let task = bench.test("one").await;
            assert_eq!(outcome(&task).1, "1 passed");
            bench.is_clean();
        }
    }
}

/// The agent is killed in the middle of a run; what `bwrap` does not end with it, the next start sweeps.
#[tokio::test(flavor = "multi_thread")]
async fn kill_9_of_the_agent_leaves_nothing_after_the_next_start() {
    let repository = family();
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("projects.toml");
    let path = repository.path().display();
    let text = format!(
        "[project.shop]\npath = \"{path}\"\n[[project.shop.suite]]\nname = \"tests\"\ncommand = [\"sh\", \"check.sh\"]\n"
    );
    std::fs::write(&file, text).unwrap();
    let runs = base.path().join("runs");
    let has_bwrap = Command::new("bwrap")
        .args(["--ro-bind", "/", "/", "--unshare-pid", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    let start = |sandbox: bool| {
        let mut agent = Command::new(programs().join("test-runner"));
        agent.args(["--listen", "127.0.0.1:0", "--store", "memory", "--work-dir"]).arg(&runs);
        if !sandbox {
            agent.arg("--no-sandbox");
        }
        let mut agent =
            agent.arg("--projects").arg(&file).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let card = line.split_whitespace().last().unwrap().to_owned();
        (agent, card.replace("/.well-known/agent-card.json", "/a2a/jsonrpc"))
    };
    let http = testing::client();
    for sandbox in (0..times()).flat_map(|_| [true, false]) {
        let (mut agent, url) = start(sandbox);
        let mut params = immediately(message(TEXT));
        params["message"]["messageId"] = json!("m");
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
        let call = http.post(&url).header("a2a-version", "1.0").header("content-type", "application/json");
        call.body(body.to_string()).send().await.unwrap().text().await.unwrap();
        while processes(base.path()).iter().filter(|command| command.contains("sleep 600")).count() < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        agent.kill().unwrap();
        agent.wait().unwrap();
        if sandbox && has_bwrap {
            let since = std::time::Instant::now();
            while !processes(base.path()).is_empty() {
                assert!(since.elapsed() < Duration::from_secs(5), "{:?}", processes(base.path()));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let (mut next, _) = start(sandbox);
        assert_eq!(processes(base.path()), Vec::<String>::new());
        let left = std::fs::read_dir(&runs).unwrap().count();
        assert_eq!(left, 1, "only the folder of the agent that runs is there");
        assert_eq!(repository.worktrees(), 0);
        next.kill().unwrap();
        next.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_many_megabytes_is_cut_where_it_is_seen_and_memory_stays_flat() {
    // 100 MB in lines, and one of 1 MiB, with what is no text in between.
    let script = "head -c 1048576 /dev/zero | tr '\\0' x; echo; printf '\\377\\376 \\033[31mred\\033[0m 10%%\\r 20%%\\r\\n'; \
                  yes 'a line of the log that is as long as lines are' | head -c 100000000; echo; \
                  echo 'Ran 3 tests in 1s'; echo OK\n";
    let repository = Repository::new(&[("one", &[("check.sh", script.to_owned())])]);
    // A process of its own, so that no other test's memory is counted.
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("projects.toml");
    let text = format!(
        "[project.shop]\npath = \"{}\"\n[[project.shop.suite]]\nname = \"tests\"\ncommand = [\"sh\", \"check.sh\"]\n\
         output-limit = {}\n",
        repository.path().display(),
        2 << 20
    );
    std::fs::write(&file, text).unwrap();
    let (projects, runs) = (file.display().to_string(), base.path().join("runs").display().to_string());
    let flags = ["--store", "memory", "--projects", &projects, "--work-dir", &runs];
    let agent = testing::Program::start_with("test-runner", &flags);
    let before = resident(agent.child.id());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send(TEXT)});
    let call = testing::client().post(format!("{}/a2a/jsonrpc", agent.url)).header("a2a-version", "1.0");
    let call = call.header("content-type", "application/json").body(body.to_string());
    let answer = call.send().await.unwrap().text().await.unwrap();
    let task = serde_json::from_str::<serde_json::Value>(&answer).unwrap()["result"]["task"].clone();
    let (state, words, log, _) = outcome(&task);
    assert_eq!((state, words), ("TASK_STATE_COMPLETED", "3 passed"));
    assert!(log.starts_with(&"x".repeat(1 << 20)));
    assert!(log.contains("\n\u{fffd}\u{fffd} \u{1b}[31mred\u{1b}[0m 10%\r 20%\r\n"));
    assert!(log.contains(" bytes of the log are left out here]\n"));
    assert!(log.ends_with("Ran 3 tests in 1s\nOK\n"));
    assert!(log.len() < (2 << 20) + 10_000, "{}", log.len());
    let grown = resident(agent.child.id()).saturating_sub(before);
    assert!(grown < 80 << 20, "{grown} bytes");
}

/// The memory of a process, in bytes, at its largest.
fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}
