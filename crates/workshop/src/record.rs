//! Runs a set from its beginning and gives the files that it records.

use std::collections::{BTreeMap, HashMap};
use std::future::{Future, pending};
use std::io;

use protocol::Dial;

use crate::agents::{Agents, Source};
use crate::set::Set;
use crate::steps::Client;
use crate::webhooks::Receiver;

/// The files of a recording, by name.
pub type Recording = BTreeMap<String, Vec<u8>>;

/// Why a scenario could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum NotRecorded {
    /// A socket failed.
    #[error("the agents could not be started: {0}")]
    Io(#[from] io::Error),
    /// It was told to stop.
    #[error("stopped at {scenario}, step {step}")]
    Stopped {
        /// The scenario.
        scenario: String,
        /// The step that had not ended, from 1.
        step: usize,
    },
    /// A step did not do what the file says.
    #[error("{scenario}, step {step}: {why}")]
    Step {
        /// The scenario.
        scenario: String,
        /// The step, from 1.
        step: usize,
        /// What happened.
        why: String,
    },
}

/// Records scenarios of a set, by their places in its order. What comes before them runs too, and is thrown away,
/// because ids, stamps and tasks carry over.
pub async fn record(set: &Set, wanted: &[usize]) -> Result<Recording, NotRecorded> {
    record_until(pending(), set, wanted).await
}

/// Records until it is told to stop: a scenario can wait for what never comes.
pub async fn record_until(
    stop: impl Future<Output = ()>,
    set: &Set,
    wanted: &[usize],
) -> Result<Recording, NotRecorded> {
    tokio::pin!(stop);
    let mut dial = Dial::default();
    let receiver = Receiver::start().await?;
    if let Some(webhook) = &set.webhook {
        dial.set(webhook, receiver.address);
    }
    let agents = Agents::start(set, dial, Source::Seeded).await?;
    let mut recording = Recording::new();
    let mut names = HashMap::new();
    let last = wanted.iter().max().map_or(0, |last| last + 1);
    for (place, scenario) in set.scenarios.iter().take(last).enumerate() {
        let mut client = Client::new(scenario, &agents, &receiver, &mut names);
        for (step, what) in (1..).zip(&scenario.steps) {
            let scenario = || scenario.name.clone();
            tokio::select! {
                biased;
                done = client.step(what) => {
                    done.map_err(|why| NotRecorded::Step { scenario: scenario(), step, why })?;
                }
                () = &mut stop => return Err(NotRecorded::Stopped { scenario: scenario(), step }),
            }
        }
        if wanted.contains(&place) {
            recording.extend(client.files());
        }
    }
    agents.stop().await;
    Ok(recording)
}
