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
}

impl Default for Run {
    fn default() -> Self {
        Self { commit: Order::default().commit, out: "out".into() }
    }
}

impl Run {
    pub async fn run(&self, files: &Files) -> Result<End, String> {
        let set = Set::read(files, "kit").map_err(words)?;
        let agents = Agents::start(&set, Dial::default(), Source::System).await.map_err(words)?;
        let names: Vec<_> = agents.live.iter().map(|live| live.name.as_str()).collect();
        println!("{} run inside this process and recite the story {}.", names.join(", "), set.story.name());
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
            let order = Order { commit: self.commit.clone(), ..Order::default() };
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
        println!("Next: `cargo run -- list` shows the scenarios, `cargo run -- serve` keeps the agents up.");
        Ok(if ended.is_live() { End::Done } else { End::Differs })
    }
}
