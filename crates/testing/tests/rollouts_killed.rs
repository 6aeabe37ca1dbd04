//! A deployer that is killed at any point of a roll-out: the environment is at the old or at the new build, and the task
//! ends with the truth. `KILLS` says how often (6); `scripts/killed-deployer.sh` does it 100 times.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deployer::real::audit;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use server::Tokens;
use testing::{Program, immediately, message, state};

const ADA: &str = "token-of-ada";
/// So many files has a build, each with its number.
const FILES: usize = 150;
/// The state of an end is told within this time after the restart.
const LIMIT: Duration = Duration::from_secs(20);

/// An environment with its builds, and the processes that work on it.
struct Bench {
    folder: tempfile::TempDir,
    http: reqwest::Client,
}

impl Bench {
    /// A folder with two builds and a configuration with a check before and a check after the switch.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("builds")).unwrap();
        for number in ["1", "2"] {
            let mut archive = tar::Builder::new(fs::File::create(at("builds").join(format!("{number}.tar"))).unwrap());
            for file in 0..FILES {
                let mut header = tar::Header::new_gnu();
                header.set_mode(0o644);
                header.set_size(number.len() as u64);
                archive.append_data(&mut header, format!("folder-{}/{file}", file % 7), number.as_bytes()).unwrap();
            }
            archive.finish().unwrap();
        }
        let check = |name: &str, when: &str| {
            format!(
                "[[environment.staging.check]]\nname = \"{name}\"\ncommand = [\"sleep\", \"0.02\"]\nwhen = \"{when}\"\n"
            )
        };
        let text = format!(
            "builds = \"builds\"\naudit-log = \"audit.jsonl\"\n[environment.staging]\nfolder = \"staging\"\nkeep = 2\n{}{}",
            check("fit", "before"),
            check("well", "after")
        );
        fs::write(at("deployer.toml"), text).unwrap();
        fs::write(at("operators"), Tokens::line("ada", ADA).unwrap()).unwrap();
        Self { folder, http: testing::client() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self) -> Program {
        let path = |name: &str| self.at(name).display().to_string();
        let store = format!("sqlite:{}", path("tasks.db"));
        let (config, operators) = (path("deployer.toml"), path("operators"));
        Program::start_with("deployer", &["--store", &store, "--config", &config, "--operators", &operators])
    }

    async fn call(&self, agent: &Program, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let call = self.http.post(format!("{}/a2a/jsonrpc", agent.url)).header("a2a-version", "1.0");
        let call = call.bearer_auth(deployer::TOKEN).header("content-type", "application/json");
        let answer = call.body(body.to_string()).send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()["result"].clone()
    }

    /// Asks for a build, which then waits for its approval.
    async fn ask(&self, agent: &Program, build: &str) -> String {
        let params = immediately(message(&format!("Deploy build {build} to staging")));
        let id = self.call(agent, "SendMessage", params).await["task"]["id"].as_str().unwrap().to_owned();
        self.until(agent, &id, |state| state == "AUTH_REQUIRED").await;
        id
    }

    /// Approves. The answer may be lost with the agent.
    async fn approve(&self, url: &str, id: &str) -> Option<u16> {
        let call = self.http.post(format!("{url}/approve/{id}")).bearer_auth(ADA);
        Some(call.header("content-type", "application/json").body("{}").send().await.ok()?.status().as_u16())
    }

    async fn until(&self, agent: &Program, id: &str, is_it: impl Fn(&str) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let task = self.call(agent, "GetTask", json!({"id": id})).await;
            if is_it(state(&task)) {
                return task;
            }
            assert!(since.elapsed() < LIMIT, "{task}");
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    /// The build that `current` leads to, all of it.
    fn live(&self) -> Option<String> {
        let current = self.at("staging/current");
        fs::read_link(&current).ok()?;
        Some(whole(&fs::canonicalize(current).unwrap()))
    }

    /// Once unpacked a build stays. Without it, the whole way is to be gone.
    fn forget_what_is_not_live(&self) {
        let live = fs::canonicalize(self.at("staging/current")).ok();
        for build in fs::read_dir(self.at("staging/builds")).unwrap().map(|entry| entry.unwrap().path()) {
            if live != fs::canonicalize(&build).ok() {
                fs::remove_dir_all(build).unwrap();
            }
        }
    }

    /// Nothing is half done.
    fn is_settled(&self) {
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(self.at(folder)).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let mut here = names("staging");
        here.sort();
        here.retain(|name| !["builds", "current", "deployed.json", "lock"].contains(&name.as_str()));
        assert_eq!(here, Vec::<String>::new());
        for build in names("staging/builds") {
            assert!(!build.starts_with('.'), "{build}");
            whole(&self.at("staging/builds").join(build));
        }
        audit::verify(&self.at("audit.jsonl"), None, |_| ()).unwrap();
    }

    /// What went live for a task, and which build last did.
    fn deployed(&self, task: &str) -> (usize, String) {
        let all: Value = serde_json::from_slice(&fs::read(self.at("staging/deployed.json")).unwrap()).unwrap();
        let all = all.as_array().unwrap();
        let own = all.iter().filter(|one| one["task"] == task).count();
        (own, all.last().unwrap()["name"].as_str().unwrap().to_owned())
    }
}

/// The number that all files of a build hold.
fn whole(build: &Path) -> String {
    let number = fs::read_to_string(build.join("folder-0/0")).unwrap();
    for file in 0..FILES {
        let path = build.join(format!("folder-{}/{file}", file % 7));
        assert_eq!(fs::read_to_string(&path).unwrap(), number, "{}", path.display());
    }
    number
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_environment_is_at_the_old_or_the_new_build_wherever_the_deployer_is_killed() {
    let kills: u64 = std::env::var("KILLS").map_or(6, |kills| kills.parse().expect("KILLS is a whole number"));
    let bench = Bench::new();
    let mut agent = bench.start();
    let mut takes = LIMIT;
    for build in ["2", "1", "2", "1"] {
        bench.forget_what_is_not_live();
        let task = bench.ask(&agent, build).await;
        let since = Instant::now();
        assert_eq!(bench.approve(&agent.url, &task).await, Some(200));
        bench.until(&agent, &task, |state| state == "COMPLETED").await;
        takes = takes.min(since.elapsed());
    }
    bench.is_settled();
    let (mut dice, mut ends) = (StdRng::seed_from_u64(7), [0; 4]);
    let mut live = "1".to_owned();
    for kill in 0..kills {
        let wanted = if live == "1" { "2" } else { "1" };
        bench.forget_what_is_not_live();
        let task = bench.ask(&agent, wanted).await;
        let url = agent.url.clone();
        let wait = takes.mul_f64(dice.random_range(0.0..1.2));
        let (answered, ()) = tokio::join!(bench.approve(&url, &task), async {
            tokio::time::sleep(wait).await;
            agent.child.kill().unwrap();
        });
        agent.child.wait().unwrap();
        // Before anybody has tidied up, the link leads to a whole build.
        let at_once = bench.live().unwrap();
        assert!(at_once == live || at_once == wanted, "kill {kill}: {at_once}");

        agent = bench.start();
        let ended = |state: &str| matches!(state, "COMPLETED" | "FAILED" | "AUTH_REQUIRED");
        let mut end = bench.until(&agent, &task, ended).await;
        let waits = state(&end) == "AUTH_REQUIRED";
        if waits {
            assert_ne!(answered, Some(200), "kill {kill}: an approval that was acknowledged is kept");
            assert_eq!(bench.approve(&agent.url, &task).await, Some(200));
            end = bench.until(&agent, &task, |state| matches!(state, "COMPLETED" | "FAILED")).await;
        }
        bench.is_settled();
        let (own, last) = bench.deployed(&task);
        let now = bench.live().unwrap();
        assert_eq!(now, last, "kill {kill}");
        match state(&end) {
            "COMPLETED" => assert_eq!((now.as_str(), own), (wanted, 1), "kill {kill}: {end}"),
            _ => assert_eq!((now.as_str(), own), (live.as_str(), 0), "kill {kill}: {end}"),
        }
        let at = match (waits, state(&end), at_once == live) {
            (true, ..) => 0,
            (_, "COMPLETED", true) => 1,
            (_, "COMPLETED", false) => 2,
            _ => 3,
        };
        ends[at] += 1;
        live = now;
    }
    println!(
        "{kills} kills within {takes:?} of roll-out: {} before the approval was kept, {} before the switch, {} after it, {} failed",
        ends[0], ends[1], ends[2], ends[3]
    );
}
