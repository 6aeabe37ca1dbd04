use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use capture::{Recorder, transcript};
use client::live::LiveIds;
use client::{Http, Limits};
use planner::record::Record;
use planner::{Operator, Order, Planner};
use protocol::Dial;

use super::{End, words, write};
use crate::agents::{Agents, Source};
use crate::files::Files;
use crate::record::Recording;
use crate::set::Set;

/// `workshop run`.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// The commit to ship.
    #[arg(long, value_name = "C", default_value = "a41d7c3")]
    commit: String,
    /// Where to write the capture.
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Starts agents that work: the test-runner runs the real tests of payments-api, the code-reviewer reads the real
    /// diff of the commit, and the deployer rolls a real build of it out to the folder `staging` beside the capture.
    #[arg(long)]
    real: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self { commit: Order::default().commit, out: "out".into(), real: false }
    }
}

impl Run {
    pub async fn run(&self, files: &Files) -> Result<End, String> {
        let set = Set::read(files, "kit").map_err(words)?;
        let folder = WorkFolder::new(self.real)?;
        let work = folder.agents(&self.out, &self.commit)?;
        let others = &work.agents;
        let diff = folder.diff(&self.commit)?;
        let agents = Agents::start_with(&set, Dial::default(), Source::System, others).await.map_err(words)?;
        let works = |name: &str| others.iter().any(|(other, _)| *other == name);
        let names: Vec<_> = agents.live.iter().map(|live| live.name.as_str()).filter(|name| !works(name)).collect();
        if names.is_empty() {
            println!("Three agents run inside this process.");
        } else {
            println!("{} run inside this process and recite the story {}.", names.join(", "), set.story.name());
        }
        for (name, _) in others {
            let what = match *name {
                code_reviewer::NAME => "the diff of payments-api is",
                test_runner::NAME => "the tests of payments-api are",
                _ => "the build, its checks and the roll-out are",
            };
            println!("{name} works: {what} real.");
        }
        println!();
        let recorder = Recorder::new();
        let http = Http::new(agents.dial.clone(), Limits::default(), Some(Arc::new(Record(recorder.clone()))));
        let lines = Arc::new(Mutex::new(String::new()));
        let written = lines.clone();
        let log = Arc::new(move |line: &str| {
            println!("{line}");
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.push_str(line);
            written.push('\n');
        });
        let mut planner = Planner::new(http, Arc::new(LiveIds), log, Operator::Auto);
        let ended = async {
            for live in &agents.live {
                let token = |_: &str| live.token.map(str::to_owned);
                planner.meet(&format!("http://{}", live.origin), token).await?;
            }
            let mut order = Order { commit: self.commit.clone(), ..Order::default() };
            if let Some(diff) = diff {
                order.diff = diff;
            }
            planner.ship(&order).await
        };
        // What was exchanged is written down however it ended.
        let ended = ended.await;
        agents.stop().await;

        let capture = recorder.capture();
        let log = lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut recording = Recording::from([
            ("run.http".to_owned(), transcript::write(&capture).into_bytes()),
            ("run.log".to_owned(), log.into_bytes()),
        ]);
        if let Some(events) = transcript::events(&capture) {
            recording.insert("run.events.json".to_owned(), events.into_bytes());
        }
        write(&self.out, &recording)?;
        println!();
        println!("The whole exchange stands in {}.", self.out.join("run.http").display());
        let ended = ended.map_err(words)?;
        for line in work.what_is_live(&self.out) {
            println!("{line}");
        }
        println!("Next: `cargo run -- list` shows the scenarios, `cargo run -- serve` keeps the agents up.");
        Ok(if ended.is_live() { End::Done } else { End::Differs })
    }
}

/// Agents that work, and what they need while they do.
#[derive(Default)]
struct Work {
    agents: Vec<crate::agents::Other>,
    #[cfg(feature = "real")]
    staging: Option<crate::real::Staging>,
}

impl Work {
    /// What to look at afterwards, and how.
    #[cfg(feature = "real")]
    fn what_is_live(&self, out: &std::path::Path) -> Vec<String> {
        let Some(staging) = &self.staging else { return Vec::new() };
        let live = out.join("staging/current");
        let Ok(build) = std::fs::read_link(&live) else { return Vec::new() };
        let log = out.join("audit.jsonl");
        vec![
            format!("What is live: {} leads to {}; {} served it.", live.display(), build.display(), staging.url),
            format!("Who allowed it: `cargo run -p deployer -- audit {}`.", log.display()),
        ]
    }

    #[cfg(not(feature = "real"))]
    fn what_is_live(&self, _out: &std::path::Path) -> Vec<String> {
        Vec::new()
    }
}

/// Where agents that work keep what they need. It is gone when this is dropped.
#[cfg(feature = "real")]
struct WorkFolder(Option<tempfile::TempDir>);

#[cfg(feature = "real")]
impl WorkFolder {
    fn new(real: bool) -> Result<Self, String> {
        let folder = real.then(tempfile::tempdir).transpose();
        folder.map(Self).map_err(|cause| format!("no temporary folder: {cause}"))
    }

    fn agents(&self, out: &std::path::Path, commit: &str) -> Result<Work, String> {
        let Some(folder) = &self.0 else { return Ok(Work::default()) };
        let mut work = Work {
            agents: vec![
                (test_runner::NAME, crate::real::test_runner(folder.path())?),
                (code_reviewer::NAME, crate::real::code_reviewer(folder.path())?),
            ],
            staging: None,
        };
        let staging = crate::real::staging(folder.path(), out, commit, &Order::default().build)?;
        work.agents.push((deployer::NAME, staging.agent.clone()));
        work.staging = Some(staging);
        Ok(work)
    }

    /// The diff to ship; none for that of the story.
    fn diff(&self, commit: &str) -> Result<Option<Vec<u8>>, String> {
        match &self.0 {
            Some(folder) => crate::real::diff(folder.path(), commit),
            None => Ok(None),
        }
    }
}

/// A build without agents that work.
#[cfg(not(feature = "real"))]
struct WorkFolder;

#[cfg(not(feature = "real"))]
impl WorkFolder {
    fn new(real: bool) -> Result<Self, String> {
        if real {
            let line = "cargo run -p workshop --features real -- run --real";
            return Err(format!("this build has no agents that work; this one has: {line}"));
        }
        Ok(Self)
    }

    fn agents(&self, _out: &std::path::Path, _commit: &str) -> Result<Work, String> {
        Ok(Work::default())
    }

    fn diff(&self, _commit: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(None)
    }
}
