//! A working deployer over the wire: builds from archives, operators with names, the way there and back (docs/deployer.md).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::{Path, PathBuf};

use deployer::Deployer;
use deployer::real::{Config, Rollouts, audit};
use serde_json::{Value, json};
use server::{Dedupe, Setup, Tokens};
use tar::{EntryType, Header};
use testing::{Binding, Served, id, send, serve, state};

const ADA: &str = "token-of-ada";
const BOB: &str = "token-of-bob";

/// A deployer with an environment in a folder of its own.
struct Works {
    served: Served,
    folder: tempfile::TempDir,
}

/// How often clients ask at once; 100 is what is promised.
fn times() -> usize {
    std::env::var("TIMES").map_or(10, |times| times.parse().expect("TIMES is a whole number"))
}

impl Works {
    async fn with(environment: &str, pack: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("builds")).unwrap();
        pack(&at("builds"));
        let text = format!("builds = \"builds\"\n[environment.staging]\nfolder = \"staging\"\n{environment}");
        fs::write(at("deployer.toml"), text).unwrap();
        let served = Self::serve(folder.path()).await;
        Self { served, folder }
    }

    /// Serves a deployer over the configuration in a folder.
    async fn serve(folder: &Path) -> Served {
        let config = Config::open(&folder.join("deployer.toml")).unwrap();
        let log = folder.join("audit.jsonl");
        let rollouts = Rollouts::new(&config.builds.unwrap(), config.environments, &log).unwrap();
        let operators = [("ada", ADA), ("bob", BOB)].map(|(name, token)| Tokens::line(name, token).unwrap());
        serve(Deployer::working(rollouts), |setup: &mut Setup| {
            setup.operators = Some(Tokens::read(&operators.join("\n")).unwrap());
            setup.dedupe = Dedupe::Always;
        })
        .await
    }

    fn live(&self) -> Option<String> {
        fs::read_to_string(self.folder.path().join("staging/current/version")).ok()
    }

    async fn ask(&self, text: &str) -> Value {
        ask(&self.served, text).await
    }

    async fn post(&self, path: &str, token: &str, body: &Value) -> u16 {
        post(&self.served, path, token, body).await
    }

    /// Asks, lets ada approve, and waits for this end.
    async fn approved(&self, text: &str, end: &str) -> Value {
        approved(&self.served, text, end).await
    }

    fn audited(&self) -> Vec<String> {
        let mut events = Vec::new();
        audit::verify(&self.folder.path().join("audit.jsonl"), None, |entry| {
            events.push(serde_json::to_value(entry).unwrap()["event"].as_str().unwrap().to_owned());
        })
        .unwrap();
        events
    }
}

async fn ask(served: &Served, text: &str) -> Value {
    served.call(Binding::Rpc, "SendMessage", send(text)).await.result()["task"].clone()
}

async fn post(served: &Served, path: &str, token: &str, body: &Value) -> u16 {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    served.http("POST", path, &headers, &body.to_string()).await.status
}

async fn approved(served: &Served, text: &str, end: &str) -> Value {
    let task = ask(served, text).await;
    assert_eq!(state(&task), "AUTH_REQUIRED", "{task}");
    let task = id(&task);
    assert_eq!(post(served, &format!("/approve/{task}"), ADA, &json!({})).await, 200);
    served.until(&task, end).await
}

fn words(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap()
}

fn report(task: &Value) -> &Value {
    &task["artifacts"][0]["parts"][0]["data"]
}

/// Writes an archive with one file, which holds the build's name.
fn build(builds: &Path, name: &str) {
    let mut archive = tar::Builder::new(fs::File::create(builds.join(format!("{name}.tar"))).unwrap());
    add(&mut archive, "version", EntryType::Regular, name, "");
    archive.finish().unwrap();
}

/// Adds an entry as it is said, without the care that the library takes of paths.
fn add(archive: &mut tar::Builder<fs::File>, path: &str, kind: EntryType, content: &str, link: &str) {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_gnu_mut().unwrap().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_cksum();
    archive.append(&header, content.as_bytes()).unwrap();
}

#[tokio::test]
async fn a_build_goes_live_after_an_operator_has_allowed_it_and_back_again() {
    let check = "url = \"http://staging\"\n[[environment.staging.check]]\nname = \"version\"\ncommand = [\"test\", \"-s\", \"version\"]";
    let works = Works::with(check, |builds| ["1", "2"].iter().for_each(|name| build(builds, name))).await;
    let done = works.approved("Deploy build 1 to staging", "TASK_STATE_COMPLETED").await;
    assert_eq!((words(&done), works.live().as_deref()), ("Build 1 is live on staging", Some("1")));
    let report = report(&done);
    assert_eq!(report["healthChecks"], "1 of 1 passing");
    assert_eq!(report["approvedBy"], json!(["ada"]));
    assert_eq!(report["url"], "http://staging");
    works.approved("Deploy build 2 to staging", "TASK_STATE_COMPLETED").await;
    assert_eq!(works.live().as_deref(), Some("2"));
    works.approved("Roll staging back", "TASK_STATE_COMPLETED").await;
    assert_eq!(works.live().as_deref(), Some("1"));
    let one = ["asked", "approved", "begun", "switched", "deployed"];
    assert_eq!(works.audited(), one.repeat(3));
}

#[tokio::test]
async fn what_is_refused_or_fails_its_checks_changes_nothing() {
    let check = "[[environment.staging.check]]\nname = \"one\"\ncommand = [\"grep\", \"-q\", \"1\", \"version\"]\nattempts = 1\nwhen = \"after\"";
    let works = Works::with(check, |builds| ["1", "2"].iter().for_each(|name| build(builds, name))).await;
    works.approved("Deploy build 1 to staging", "TASK_STATE_COMPLETED").await;
    let task = id(&works.ask("Deploy build 2 to staging").await);
    assert_eq!(works.post(&format!("/refuse/{task}"), BOB, &json!({"reason": "not today"})).await, 200);
    assert_eq!(words(&works.served.until(&task, "TASK_STATE_REJECTED").await), "Refused by bob: not today");
    let failed = works.approved("Deploy build 2 to staging", "TASK_STATE_FAILED").await;
    assert!(words(&failed).starts_with("Build 2 failed its checks. Build 1 is live on staging. one saw: "), "{failed}");
    assert_eq!(report(&failed)["rolledBack"], true);
    assert_eq!(works.live().as_deref(), Some("1"));
    assert_eq!(fs::read_dir(works.folder.path().join("staging/builds")).unwrap().count(), 1);
}

#[tokio::test]
async fn two_approvals_are_two_operators() {
    let works = Works::with("approvals = 2", |builds| build(builds, "1")).await;
    let task = id(&works.ask("Deploy build 1 to staging").await);
    let path = format!("/approve/{task}");
    assert_eq!(works.post(&path, ADA, &json!({})).await, 200);
    assert_eq!(works.post(&path, ADA, &json!({})).await, 403);
    assert_eq!(works.live(), None);
    assert_eq!(works.post(&path, BOB, &json!({})).await, 200);
    let done = works.served.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(report(&done)["approvedBy"], json!(["ada", "bob"]));
}

#[tokio::test]
async fn roll_outs_that_are_asked_for_at_once_come_one_after_the_other() {
    let works = Works::with("", |builds| ["1", "2"].iter().for_each(|name| build(builds, name))).await;
    // One deployer, then two that share the folder as two processes would.
    let second = Works::serve(works.folder.path()).await;
    for other in [&works.served, &second] {
        for _ in 0..times() {
            let (one, two) = tokio::join!(
                approved(&works.served, "Deploy build 1 to staging", "TASK_STATE_COMPLETED"),
                approved(other, "Deploy build 2 to staging", "TASK_STATE_COMPLETED"),
            );
            assert_eq!((report(&one)["build"].as_str(), report(&two)["build"].as_str()), (Some("1"), Some("2")));
            // Who came last found the other one's build there.
            let (before_one, before_two) = (&report(&one)["before"], &report(&two)["before"]);
            let live = works.live();
            assert!(
                (before_one == "2" && live.as_deref() == Some("1"))
                    || (before_two == "1" && live.as_deref() == Some("2")),
                "{one} {two}"
            );
        }
    }
    let events = works.audited();
    let within = events.iter().filter(|event| matches!(event.as_str(), "begun" | "switched" | "deployed"));
    let within: Vec<&str> = within.map(String::as_str).collect();
    assert_eq!(within, ["begun", "switched", "deployed"].repeat(4 * times()));
}

#[tokio::test]
async fn the_same_message_again_is_the_same_roll_out() {
    let works = Works::with("", |builds| build(builds, "1")).await;
    let message = send("Deploy build 1 to staging");
    let first = works.served.call(Binding::Rpc, "SendMessage", message.clone()).await.result()["task"].clone();
    let task = id(&first);
    assert_eq!(works.post(&format!("/approve/{task}"), ADA, &json!({})).await, 200);
    works.served.until(&task, "TASK_STATE_COMPLETED").await;
    for binding in [Binding::Rpc, Binding::Rest] {
        let again = works.served.call(binding, "SendMessage", message.clone()).await.result()["task"].clone();
        assert_eq!((id(&again), state(&again)), (task.clone(), "COMPLETED"));
    }
    // An approval that comes twice is one.
    assert_ne!(works.post(&format!("/approve/{task}"), BOB, &json!({})).await, 200);
    assert_eq!(works.audited(), ["asked", "approved", "begun", "switched", "deployed"]);
}

#[tokio::test]
async fn a_hostile_archive_is_refused_and_nothing_is_written_outside() {
    use EntryType::{Block, Char, Fifo, GNUSparse, Link, Regular, Symlink};
    let outside = tempfile::tempdir().unwrap();
    let absolute = outside.path().join("x").to_string_lossy().into_owned();
    let entries: Vec<Vec<(&str, EntryType, &str)>> = vec![
        vec![("../x", Regular, "")],
        vec![("../../x", Regular, "")],
        vec![("a/../../x", Regular, "")],
        vec![("a/../x", Regular, "")],
        vec![("..", Regular, "")],
        vec![("../", EntryType::Directory, "")],
        vec![(".", Regular, "")],
        vec![("", Regular, "")],
        vec![(&absolute, Regular, "")],
        vec![("/x", Regular, "")],
        vec![("//x", Regular, "")],
        vec![("a", Symlink, "/etc")],
        vec![("a", Symlink, "/etc"), ("a/x", Regular, "")],
        vec![("a", Symlink, ".."), ("a/x", Regular, "")],
        vec![("a", Symlink, "../..")],
        vec![("a", Symlink, "b/../../x")],
        vec![("a", Symlink, "b"), ("b", Symlink, "..")],
        vec![("a", Symlink, "a")],
        vec![("a", Symlink, "nowhere")],
        vec![("a", Symlink, "")],
        vec![("a", Symlink, &absolute)],
        vec![("a", Link, "/etc/passwd")],
        vec![("a", Link, "../x")],
        vec![("a", Link, "nothing")],
        vec![("a", Link, &absolute)],
        vec![("a", Symlink, "/etc"), ("b", Link, "a/passwd")],
        vec![("a", Char, "")],
        vec![("a", Block, "")],
        vec![("a", Fifo, "")],
        vec![("a", GNUSparse, "")],
        vec![("a", Regular, ""), ("a", Regular, "")],
        vec![("a", Regular, ""), ("a/x", Regular, "")],
        vec![("version", Regular, ""), ("version", Symlink, "/etc/passwd")],
        vec![],
    ];
    let count = entries.len();
    let works = Works::with("", |builds| {
        for (number, entries) in entries.iter().enumerate() {
            let path = builds.join(format!("bad-{number}.tar"));
            let mut archive = tar::Builder::new(fs::File::create(path).unwrap());
            if !entries.is_empty() {
                add(&mut archive, "version", Regular, "bad", "");
            }
            for (path, kind, link) in entries {
                add(&mut archive, path, *kind, if kind.is_file() { "bad" } else { "" }, link);
            }
            archive.finish().unwrap();
        }
        fs::write(builds.join("cut.tar"), [0x75; 700]).unwrap();
        fs::write(builds.join("gz.tar.gz"), [0x1f, 0x8b, 8, 0, 1, 2, 3]).unwrap();
        fs::write(builds.join("zst.tar.zst"), [0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]).unwrap();
        build(builds, "good");
        fs::write(builds.join("good.tar.sha256"), "0".repeat(64)).unwrap();
    })
    .await;
    let before = everything(works.folder.path());
    let names = (0..count).map(|number| format!("bad-{number}")).chain(["cut", "gz", "zst"].map(str::to_owned));
    for name in names {
        let failed = works.approved(&format!("Deploy build {name} to staging"), "TASK_STATE_FAILED").await;
        assert!(words(&failed).starts_with(&format!("Build {name} cannot be deployed: ")), "{failed}");
    }
    let other = works.ask("Deploy build good to staging").await;
    assert!(state(&other) == "FAILED" && words(&other).contains("SHA-256"), "{other}");
    let ours = |path: &PathBuf| !path.ends_with("audit.jsonl") && !path.ends_with("staging/lock");
    let after: Vec<PathBuf> = everything(works.folder.path()).into_iter().filter(ours).collect();
    assert_eq!(after, before.into_iter().filter(ours).collect::<Vec<_>>());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(works.live(), None);
}

/// All paths below a folder.
fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(everything(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}
