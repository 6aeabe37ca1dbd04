//! A planner that is killed at any point of its job and goes on with its journal: one deploy, and the whole log. `KILLS`
//! says how often (6); `scripts/killed-planner.sh` does it 50 times.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use testing::{Program, program};

const TOKEN: &str = "dpl_test_7c1e4b";

struct Agents(Vec<Program>);

impl Agents {
    fn start(pace: &str) -> Self {
        let flags = ["--store", "memory", "--pace", pace];
        Self(["test-runner", "code-reviewer", "deployer"].map(|name| Program::start_with(name, &flags)).into())
    }

    /// A planner that ships a build, with more flags.
    fn planner(&self, state: &Path, more: &[&str]) -> Command {
        let mut planner = program("planner", state);
        planner.args(["--timeout", "60", "ship", "--token", &format!("deployer={TOKEN}")]).args(more);
        planner
    }

    fn begin(&self, state: &Path, journal: &str, build: &str) -> Command {
        let mut planner = self.planner(state, &["--journal", journal, "--build", build]);
        for agent in &self.0 {
            planner.args(["--agent", &agent.url]);
        }
        planner
    }

    /// How many tasks the deployer made of a build.
    async fn deploys(&self, build: &str) -> usize {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageSize": 100}});
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::new();
        let sent = client.post(format!("{}/a2a/jsonrpc", self.0[2].url)).header("A2A-Version", "1.0");
        let sent = sent.header("Authorization", format!("Bearer {TOKEN}")).header("Content-Type", "application/json");
        let page = sent.body(call.to_string()).send().await.unwrap().text().await.unwrap();
        let page: Value = serde_json::from_str(&page).unwrap();
        let tasks = page["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{page}"));
        tasks.iter().filter(|task| task["history"].to_string().contains(&format!("Deploy build {build} "))).count()
    }
}

fn ended(command: &mut Command) -> (String, Option<i32>) {
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (printed, output.status.code())
}

/// The log without what differs between runs: ids of tasks, ports, and lines about what was lost, was found in the middle
/// of its work, or was sent again.
fn plain(log: &str) -> Vec<String> {
    let begins = ["  the reply is lost", "  sends the same message again"];
    let ends = ["is TASK_STATE_SUBMITTED", "is TASK_STATE_WORKING"];
    let extra = |line: &str| {
        begins.iter().any(|begin| line.starts_with(begin))
            || ends.iter().any(|end| line.ends_with(end))
            || line.contains(" has the message: ")
    };
    let lines = log.lines().filter(|line| !extra(line));
    lines
        .map(|line| match (line.strip_prefix("  task "), line.split_once("http://")) {
            (Some(task), _) => format!("  task {}", &task[8..]),
            (None, Some((start, _))) => start.to_owned(),
            (None, None) => line.to_owned(),
        })
        .collect()
}

#[tokio::test]
async fn a_planner_that_was_killed_goes_on_with_the_same_tasks_and_deploys_once() {
    let kills: u64 = std::env::var("KILLS").map_or(6, |kills| kills.parse().expect("KILLS is a whole number"));
    let agents = Agents::start("40");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let since = Instant::now();
    let (whole, code) = ended(&mut agents.begin(folder.path(), &path("whole"), "whole."));
    let (takes, whole) = (since.elapsed(), plain(&whole));
    assert_eq!(code, Some(0), "{whole:?}");
    assert_eq!(whole.len(), 16, "{whole:?}");
    let (mut dice, mut resent, mut early) = (StdRng::seed_from_u64(8), 0, 0);
    for kill in 0..kills {
        let (journal, build) = (path(&kill.to_string()), format!("killed-{kill}."));
        let mut running = agents.begin(folder.path(), &journal, &build).stdout(Stdio::null()).spawn().unwrap();
        tokio::time::sleep(takes.mul_f64(dice.random_range(0.0..1.05))).await;
        running.kill().unwrap();
        running.wait().unwrap();
        let (mut log, mut code) = ended(&mut agents.planner(folder.path(), &["--journal", &journal, "--resume"]));
        if log.contains("no job stands here") || log.contains("No such file") {
            // It was killed before it had begun anything.
            early += 1;
            (log, code) = ended(&mut agents.begin(folder.path(), &journal, &build));
        }
        if code == Some(2) && log.contains("cannot be known") {
            // Killed between writing the deploy down and hearing of it, with no task to be seen: it says so, and does no
            // more until it is told that this deployer knows a message which it has had.
            assert_eq!(agents.deploys(&build).await, 0, "{log}");
            resent += 1;
            let again = ["--journal", &journal, "--resume", "--send-again"];
            (log, code) = ended(&mut agents.planner(folder.path(), &again));
        }
        assert_eq!(code, Some(0), "kill {kill}: {log}");
        assert_eq!(plain(&log), whole, "kill {kill}: {log}");
        assert_eq!(agents.deploys(&build).await, 1, "kill {kill}: {log}");
        // A job that has ended is told again, and nothing is done.
        let (told, code) = ended(&mut agents.planner(folder.path(), &["--journal", &journal, "--resume"]));
        assert_eq!((plain(&told), code), (whole.clone(), Some(0)), "kill {kill}");
        assert_eq!(agents.deploys(&build).await, 1, "kill {kill}: {told}");
    }
    println!("{kills} kills in jobs of {takes:?}: {early} before the first word, {resent} told to send again");
}

#[tokio::test]
async fn a_journal_is_not_written_over_is_used_once_at_a_time_and_holds_no_token() {
    let agents = Agents::start("0");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal");
    let journal = file.to_str().unwrap();
    let (log, code) = ended(&mut agents.planner(folder.path(), &["--journal", journal, "--resume"]));
    assert_eq!(code, Some(2), "{log}");
    let (log, code) = ended(&mut agents.begin(folder.path(), journal, "once."));
    assert_eq!(code, Some(0), "{log}");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains(TOKEN), "{kept}");
    let decided = kept.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decided: Vec<_> = decided.filter_map(|entry| entry.get("decided").cloned()).collect();
    assert_eq!(
        (decided.len(), &decided[0]["by"], &decided[0]["approves"]),
        (1, &json!("auto"), &json!(true)),
        "{kept}"
    );

    let (log, code) = ended(&mut agents.begin(folder.path(), journal, "twice."));
    assert!(code == Some(2) && log.ends_with("a job stands here already; --resume goes on with it\n"), "{log}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept);

    let open = std::fs::File::options().write(true).open(&file).unwrap();
    open.lock().unwrap();
    let (log, code) = ended(&mut agents.planner(folder.path(), &["--journal", journal, "--resume"]));
    assert!(code == Some(2) && log.ends_with("another planner is using this journal\n"), "{log}");
    drop(open);

    // Half a line at the end was acted upon by nobody; a broken line before it is another matter.
    std::fs::write(&file, format!("{kept}{{\"sent\":{{\"st")).unwrap();
    let (log, code) = ended(&mut agents.planner(folder.path(), &["--journal", journal, "--resume"]));
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept);
    std::fs::write(&file, kept.replacen("{\"sent\":", "{\"snet\":", 1)).unwrap();
    let (log, code) = ended(&mut agents.planner(folder.path(), &["--journal", journal, "--resume"]));
    assert!(code == Some(2) && log.contains("journal, line 2: no entry of a journal"), "{log}");
    assert_eq!(agents.deploys("once.").await, 1);
}
