//! What the policy of an environment allows, over the wire: who may ask, when, and for what; and what becomes of a
//! roll-out whose archive has changed or that is canceled half way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use deployer::Deployer;
use deployer::real::{Config, Rollouts, audit};
use serde_json::{Value, json};
use server::{Setup, Tokens};
use testing::{Binding, Served, immediately, message, send, serve, state};

const ADA: &str = "token-of-ada";
/// Two callers.
const CAROL: &str = "token-of-carol";
const TRAIN: &str = "token-of-the-train";

/// A deployer with callers and an operator with names.
struct Works {
    served: Served,
    folder: tempfile::TempDir,
}

impl Works {
    /// One whose environments these tables are; it has the builds 1 and 2.
    async fn with(environments: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("builds")).unwrap();
        fs::write(at("deployer.toml"), format!("builds = \"builds\"\n{environments}")).unwrap();
        let config = Config::open(&at("deployer.toml")).unwrap();
        let rollouts = Rollouts::new(&config.builds.unwrap(), config.environments, &at("audit.jsonl"));
        let tokens = |of: &[(&str, &str)]| {
            let lines: Vec<String> = of.iter().map(|(name, token)| Tokens::line(name, token).unwrap()).collect();
            Tokens::read(&lines.join("\n")).unwrap()
        };
        let served = serve(Deployer::working(rollouts.unwrap()), |setup: &mut Setup| {
            setup.operators = Some(tokens(&[("ada", ADA)]));
            setup.callers = tokens(&[("carol", CAROL), ("train", TRAIN)]);
        });
        let works = Self { served: served.await, folder };
        works.pack("1", "1");
        works.pack("2", "2");
        works
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes the archive of a build.
    fn pack(&self, name: &str, content: &str) {
        let mut archive = tar::Builder::new(fs::File::create(self.at("builds").join(format!("{name}.tar"))).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, "version", content.as_bytes()).unwrap();
        archive.finish().unwrap();
    }

    async fn call(&self, token: &str, method: &str, params: Value) -> Value {
        let bearer = format!("Bearer {token}");
        let answer = self.served.call_with(Binding::Rpc, method, params, &[("authorization", &bearer)]).await;
        answer.result().clone()
    }

    async fn ask(&self, token: &str, text: &str) -> Value {
        self.call(token, "SendMessage", send(text)).await["task"].clone()
    }

    async fn approve(&self, task: &Value) -> u16 {
        let path = format!("/approve/{}", task["id"].as_str().unwrap());
        let bearer = format!("Bearer {ADA}");
        self.served.http("POST", &path, &[("authorization", &bearer)], "").await.status
    }

    /// Waits until the task is in a state and says this.
    async fn until(&self, token: &str, task: &Value, is: &str, says: &str) -> Value {
        for _ in 0..2000 {
            let task = self.call(token, "GetTask", json!({"id": task["id"]})).await;
            if state(&task) == is && words(&task).contains(says) {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{is} {says} never came: {}", self.call(token, "GetTask", json!({"id": task["id"]})).await);
    }

    fn live(&self, environment: &str) -> Option<String> {
        fs::read_to_string(self.at(environment).join("current/version")).ok()
    }

    fn audited(&self) -> Vec<String> {
        let mut events = Vec::new();
        audit::verify(&self.at("audit.jsonl"), None, |entry| {
            let entry = serde_json::to_value(entry).unwrap();
            events.push(format!("{} {}", entry["event"].as_str().unwrap(), entry["by"].as_str().unwrap_or("-")));
        })
        .unwrap();
        events
    }
}

fn words(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

/// The kit's words.
const PRODUCTION: &str = "Production deploys are outside this agent's policy. Use the release train.";

#[tokio::test]
async fn a_production_that_is_not_configured_is_refused_with_the_kit_s_words() {
    let works = Works::with("[environment.staging]\nfolder = \"staging\"").await;
    for text in ["Deploy build 1 to production", "Roll production back", "deploy 1 to prod"] {
        let task = works.ask(CAROL, text).await;
        assert_eq!((state(&task), words(&task)), ("REJECTED", PRODUCTION), "{text}");
    }
    assert!(!works.at("production").exists());
}

#[tokio::test]
async fn a_refusal_is_data_and_says_what_it_is_told_to() {
    let production = format!("[environment.production]\nfolder = \"production\"\nrefuse = \"{PRODUCTION}\"");
    let works = Works::with(&format!("[environment.staging]\nfolder = \"staging\"\n{production}")).await;
    for text in ["Deploy build 1 to production", "Roll production back"] {
        let task = works.ask(CAROL, text).await;
        assert_eq!((state(&task), words(&task)), ("REJECTED", PRODUCTION), "{text}");
        assert_eq!(works.approve(&task).await, 409);
    }
    assert_eq!(works.audited(), ["rejected carol", "rejected carol"]);
    assert_eq!(works.live("production"), None);
}

#[tokio::test]
async fn who_may_ask_is_data() {
    let works = Works::with("[environment.production]\nfolder = \"production\"\naskers = [\"train\"]").await;
    let refused = works.ask(CAROL, "Deploy build 1 to production").await;
    let says = "Only some callers may ask for roll-outs to production; this is none of them.";
    assert_eq!((state(&refused), words(&refused)), ("REJECTED", says));
    let asked = works.ask(TRAIN, "Deploy build 1 to production").await;
    assert_eq!(state(&asked), "AUTH_REQUIRED");
    assert_eq!(works.approve(&asked).await, 200);
    let done = works.until(TRAIN, &asked, "COMPLETED", "Build 1 is live on production").await;
    assert_eq!(done["artifacts"][0]["parts"][0]["data"]["askedBy"], "train");
    assert_eq!(works.live("production").as_deref(), Some("1"));
    let events = ["rejected carol", "asked train", "approved ada", "begun -", "switched -", "deployed -"];
    assert_eq!(works.audited(), events);
}

#[tokio::test]
async fn nothing_is_rolled_out_in_quiet_hours() {
    let always = "quiet-hours = [\"Mon Tue Wed Thu Fri Sat Sun\"]";
    let works = Works::with(&format!("[environment.staging]\nfolder = \"staging\"\n{always}")).await;
    for text in ["Deploy build 1 to staging", "Roll staging back"] {
        let task = works.ask(CAROL, text).await;
        let says = "Nothing is rolled out to staging in its quiet hours: Mon Tue Wed Thu Fri Sat Sun UTC.";
        assert_eq!((state(&task), words(&task)), ("REJECTED", says), "{text}");
    }
    assert_eq!(works.live("staging"), None);
}

#[tokio::test]
async fn an_archive_that_changes_after_it_was_asked_for_is_not_rolled_out() {
    let works = Works::with("[environment.staging]\nfolder = \"staging\"").await;
    let first = works.ask(CAROL, "Deploy build 1 to staging").await;
    assert_eq!(works.approve(&first).await, 200);
    works.until(CAROL, &first, "COMPLETED", "is live").await;
    let task = works.ask(CAROL, "Deploy build 2 to staging").await;
    works.pack("2", "another");
    assert_eq!(works.approve(&task).await, 200);
    let says = "Build 2 cannot be deployed: the archive is not the one that was approved: it has changed.";
    works.until(CAROL, &task, "FAILED", says).await;
    assert_eq!(works.live("staging").as_deref(), Some("1"));
    let gone = works.ask(CAROL, "Deploy build 2 to staging").await;
    fs::remove_file(works.at("builds/2.tar")).unwrap();
    assert_eq!(works.approve(&gone).await, 200);
    works.until(CAROL, &gone, "FAILED", "Build 2 cannot be deployed: it is gone.").await;
    assert_eq!(works.live("staging").as_deref(), Some("1"));
    assert_eq!(fs::read_dir(works.at("staging/builds")).unwrap().count(), 1, "nothing half unpacked is left");
}

#[tokio::test]
async fn a_roll_out_that_is_canceled_half_way_is_taken_back() {
    let slow = |when: &str| {
        // Build 1 passes at once.
        let command = "[\"sh\", \"-c\", \"grep -q 1 version || sleep 30\"]";
        format!(
            "[environment.staging]\nfolder = \"staging\"\n[[environment.staging.check]]\nname = \"slow\"\ncommand = {command}\nwhen = \"{when}\"\ntime-limit = 60"
        )
    };
    for (when, says) in [("before", "Unpacked build 2"), ("after", "Build 2 is in its place. Checking staging")] {
        let works = Works::with(&slow(when)).await;
        let first = works.ask(CAROL, "Deploy build 1 to staging").await;
        assert_eq!(works.approve(&first).await, 200);
        works.until(CAROL, &first, "COMPLETED", "is live").await;
        let params = immediately(message("Deploy build 2 to staging"));
        let task = works.call(CAROL, "SendMessage", params).await["task"].clone();
        let task = works.until(CAROL, &task, "AUTH_REQUIRED", "").await;
        assert_eq!(works.approve(&task).await, 200);
        works.until(CAROL, &task, "WORKING", says).await;
        if when == "after" {
            assert_eq!(works.live("staging").as_deref(), Some("2"));
        }
        let canceled = works.call(CAROL, "CancelTask", json!({"id": task["id"]})).await;
        assert_eq!(state(&canceled), "CANCELED", "{when}");
        assert_eq!(works.live("staging").as_deref(), Some("1"), "{when}");
        assert_eq!(fs::read_dir(works.at("staging/builds")).unwrap().count(), 1, "{when}");
        assert_eq!(works.audited().last().map(String::as_str), Some("stopped -"), "{when}");
        // The environment is free again.
        let again = works.ask(CAROL, "Deploy build 1 to staging").await;
        assert_eq!(works.approve(&again).await, 200);
        works.until(CAROL, &again, "COMPLETED", "is live").await;
    }
}
