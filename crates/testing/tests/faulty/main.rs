//! The planner behind proxies that drop, lose, repeat, refuse, cut, delay and chop: it ships, or stops and says why, and
//! nothing is deployed twice. `SEEDS` says how many times (60).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod proxy;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::live::LiveIds;
use client::{Http, Limits};
use planner::{Failure, Operator, Order, Planner};
use protocol::Dial;
use serde_json::{Value, json};
use testing::Program;

/// How many run at the same time.
const AT_ONCE: u64 = 8;

fn address(agent: &Program) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], agent.url.rsplit(':').next().unwrap().parse().unwrap()))
}

/// How often a build was deployed, as the deployer itself has it.
async fn deploys(deployer: &str, build: &str) -> usize {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageSize": 100}});
    let (mut found, mut token) = (0, String::new());
    loop {
        let mut call = call.clone();
        call["params"]["pageToken"] = token.into();
        let request = reqwest::Client::new().post(format!("{deployer}/a2a/jsonrpc")).header("A2A-Version", "1.0");
        let bearer = "Bearer dpl_test_7c1e4b";
        let sent = request.header("Authorization", bearer).header("Content-Type", "application/json");
        let page: Value =
            serde_json::from_str(&sent.body(call.to_string()).send().await.unwrap().text().await.unwrap()).unwrap();
        let tasks = page["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{page}"));
        found += tasks.iter().filter(|task| task["history"].to_string().contains(build)).count();
        token = page["result"]["nextPageToken"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            return found;
        }
    }
}

/// Ships once, through a proxy before each agent. True when the build is live.
async fn ship(agents: [SocketAddr; 3], deployer: String, seed: u64, repeats: bool) -> bool {
    let log = Arc::new(Mutex::new(Vec::new()));
    let written = log.clone();
    let say = Arc::new(move |line: &str| written.lock().unwrap().push(line.to_owned()));
    let (idle, look) = (Duration::from_secs(2), Duration::from_secs(5));
    let limits = Limits { idle, answer: Some(look), look, ..Limits::default() };
    let http = Http::new(Dial::default(), limits, None);
    let planner = Planner::new(http, Arc::new(LiveIds), say, Operator::Auto);
    let mut planner = planner.with_patience(Duration::from_secs(5));
    let mut faults = Vec::new();
    let build = format!("seed-{seed}.");
    let mut urls = Vec::new();
    for (number, agent) in agents.into_iter().enumerate() {
        let (url, made) = proxy::before(agent, seed * 3 + number as u64, repeats).await;
        faults.push(made);
        urls.push(url);
    }
    let job = async {
        for url in &urls {
            planner.meet(url, |_| Some("dpl_test_7c1e4b".to_owned())).await?;
        }
        planner.ship(&Order { build: build.clone(), ..Order::default() }).await
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), job).await.expect("it comes to an end");
    let deployed = deploys(&deployer, &build).await;
    let story = || {
        let faults: Vec<_> = faults.iter().map(|made| made.lock().unwrap().clone()).collect();
        format!("seed {seed}: {ended:?}, deployed {deployed} times, {faults:?}\n{}", log.lock().unwrap().join("\n"))
    };
    assert!(deployed <= 1, "{}", story());
    match &ended {
        Ok(ended) => {
            assert!(ended.is_live() && deployed == 1, "{}", story());
            true
        }
        Err(failure @ (Failure::Call { .. } | Failure::Unknowable { .. } | Failure::TooLong { .. })) => {
            let asked_for = log.lock().unwrap().iter().any(|line| line.starts_with("delegate deploy"));
            assert!(asked_for || deployed == 0, "{}", story());
            assert!(!failure.to_string().is_empty());
            false
        }
        Err(_) => panic!("{}", story()),
    }
}

async fn all(dedupe: &str, repeats: bool) {
    let seeds = std::env::var("SEEDS").map_or(60, |seeds| seeds.parse().expect("SEEDS is a whole number"));
    let deployer = ["--store", "memory", "--dedupe", dedupe];
    let programs = [
        Program::start_with("test-runner", &["--store", "memory"]),
        Program::start_with("code-reviewer", &["--store", "memory"]),
        Program::start_with("deployer", &deployer),
    ];
    let agents = [address(&programs[0]), address(&programs[1]), address(&programs[2])];
    let (mut running, mut live) = (tokio::task::JoinSet::new(), 0);
    for seed in 0..seeds {
        if seed >= AT_ONCE {
            live += u64::from(running.join_next().await.unwrap().unwrap());
        }
        running.spawn(ship(agents, programs[2].url.clone(), seed, repeats));
    }
    live += running.join_all().await.into_iter().map(u64::from).sum::<u64>();
    println!("{live} of {seeds} are live");
    assert!(live > 0 && live < seeds, "{live} of {seeds}: what is tried here has to be hard, and no more than that");
}

#[tokio::test(flavor = "multi_thread")]
async fn b53_nothing_is_deployed_twice_by_a_deployer_that_takes_every_message_for_a_new_one() {
    all("off", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b53_nothing_is_deployed_twice_when_a_proxy_repeats_what_it_passes_on() {
    all("always", true).await;
}
