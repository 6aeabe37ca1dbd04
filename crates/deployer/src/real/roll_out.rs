//! The way of a build that was approved: unpacked, checked, switched to, checked again; and the way back.

use std::sync::Arc;

use protocol::{Artifact, ArtifactId, Json, Part};
use serde::Serialize;
use server::{Chunk, Fault, Job, Say};

use super::archive::{self, Refused};
use super::check::{Of, Saw};
use super::config::Environment;
use super::order::Order;
use super::place::{Build, Deployed, Held, Rollout};
use super::{Rollouts, and, blocking, cannot};

/// `deploy-report.json`: the captures' members first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    environment: &'a str,
    build: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    health_checks: String,
    action: &'static str,
    sha256: &'a str,
    /// The build that was live before.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<&'a str>,
    approved_by: &'a [String],
    /// The checks failed, and the environment is as it was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rolled_back: bool,
    checks: &'a [Saw],
}

impl Rollouts {
    /// Rolls out, or goes on with a roll-out that was broken off.
    pub(super) async fn roll_out(&self, job: &Job, say: &Say, order: &Order) -> Result<(), Fault> {
        let Some((environment, place)) = self.environment(&order.environment) else {
            return Ok(say.failed(format!("Environment {} is not configured any more.", order.environment)).await?);
        };
        let back_or_out = if order.back {
            format!("Taking {} back", order.environment)
        } else {
            format!("Rolling out to {}", order.environment)
        };
        say.working(order.says(format!("Approved by {}. {back_or_out}", and(&order.approved_by)))?).await?;
        let task = say.task_id().await?.to_string();
        let busy = async || {
            if let Ok(words) = order.says(format!("Waiting: another roll-out to {} goes on", order.environment)) {
                let _ = say.working(words).await;
            }
        };
        let held = tokio::select! {
            held = place.hold(&task, busy) => Arc::new(held?),
            () = job.stop.cancelled() => return Ok(()),
        };
        let deployed = held.deployed()?;
        let is_last = deployed.last().is_some_and(|one| one.task == task);
        if let Some(done) = deployed.into_iter().rev().find(|one| one.task == task)
            && (!is_last || held.is_live(&done.build)?)
        {
            // It died between writing down what is live and the end of the roll-out's own journal.
            if held.rollout()?.is_some_and(|rollout| rollout.task == task) {
                held.settle()?;
            }
            return self.tell_deployed(say, order, environment, &done).await;
        }
        let broken_off = held.rollout()?;
        if let Some(rollout) = &broken_off
            && rollout.task != task
        {
            // Its task takes it up again from the start, if it is still there.
            self.take_back(&held, rollout.clone())?;
            held.settle()?;
            self.note(say, order, "rolled-back", None, Some(format!("what task {} had left", rollout.task))).await?;
        }
        let own = broken_off.filter(|rollout| rollout.task == task);
        if let Some(rollout) = own.as_ref().filter(|rollout| rollout.back) {
            return self.end_back(say, order, environment, &held, rollout.clone()).await;
        }
        if let Some(words) = self.in_quiet_hours(environment).filter(|_| own.is_none()) {
            self.note(say, order, "rejected", None, Some(words.clone())).await?;
            return Ok(say.rejected(words).await?);
        }
        self.note(say, order, "begun", None, None).await?;
        let ended = tokio::select! {
            ended = self.exchange(say, order, environment, &held, own, job) => ended,
            () = job.stop.cancelled() => Ok(()),
        };
        if job.stop.is_cancelled() {
            self.note(say, order, "stopped", None, None).await?;
        }
        ended
    }

    /// Unpacks, checks, switches and checks again.
    async fn exchange(
        &self,
        say: &Say,
        order: &Order,
        environment: &Environment,
        held: &Arc<Held>,
        own: Option<Rollout>,
        job: &Job,
    ) -> Result<(), Fault> {
        let build = &order.build;
        if let Err(refused) = self.unpack(say, order, environment, held, job).await? {
            let words = cannot(&build.name, &refused);
            if let Refused::Io(cause) = &refused {
                tracing::error!(%cause, build = build.name, "the build could not be unpacked");
            }
            self.note(say, order, "failed", None, Some(words.clone())).await?;
            return Ok(say.failed(words).await?);
        }
        let task = say.task_id().await?.to_string();
        let new = Rollout { task, to: build.clone(), from: None, back: false, checks: Vec::new() };
        // Where `current` led before is only known before the switch: after a restart it stands in the journal.
        let is_switched = own.is_some();
        let rollout = match own {
            Some(own) => own,
            None => Rollout { from: held.current()?, ..new },
        };
        let mut unfinished =
            Unfinished { rollouts: self, held: held.clone(), rollout: Some(rollout), switched: is_switched };
        let mut checks = check(environment, build, held, "before").await;
        let is_fit = checks.iter().all(|saw| saw.passing);
        if is_fit {
            unfinished.switch()?;
            self.note(say, order, "switched", None, None).await?;
            if environment.checks.iter().any(|check| check.after) {
                say.working(
                    order.says(format!("Build {} is in its place. Checking {}", build.name, environment.name))?,
                )
                .await?;
            }
            checks.extend(check(environment, build, held, "after").await);
        }
        if !checks.iter().all(|saw| saw.passing) {
            let Some(mut rollout) = unfinished.rollout.take() else { return Ok(()) };
            rollout.checks = checks;
            return self.end_back(say, order, environment, held, rollout).await;
        }
        let before = held.deployed()?.last().map(|one| one.build.name.clone());
        let done = Deployed {
            task: say.task_id().await?.to_string(),
            build: build.clone(),
            before,
            time: jiff::Timestamp::now().to_string(),
            approved_by: order.approved_by.clone(),
            checks,
        };
        held.went_live(done.clone())?;
        unfinished.rollout = None;
        let (keeper, keep) = (held.clone(), environment.keep);
        if let Err(cause) = blocking(move || keeper.prune(keep)).await? {
            tracing::warn!(%cause, environment = environment.name, "builds that are not needed are still there");
        }
        self.tell_deployed(say, order, environment, &done).await
    }

    /// Puts the build's folder where it belongs.
    async fn unpack(
        &self,
        say: &Say,
        order: &Order,
        environment: &Environment,
        held: &Arc<Held>,
        job: &Job,
    ) -> Result<Result<(), Refused>, Fault> {
        let build = order.build.clone();
        if held.folder(&build).is_dir() {
            return Ok(Ok(()));
        }
        let found = archive::list(&self.builds)?.into_iter().find(|archive| archive.name == build.name);
        let Some(archive) = found.filter(|_| !order.back) else {
            return Ok(Err(Refused::Content("it is gone".to_owned())));
        };
        let (keeper, limit, stop) = (held.clone(), environment.unpacked_limit, job.stop.clone());
        // The folder stays held until this has ended, even if nobody waits for it any more.
        let unpacked = blocking(move || keeper.unpack(&archive, &build, limit, &|| stop.is_cancelled())).await?;
        match unpacked {
            Ok(Some(unpacked)) => {
                let (files, bytes) = (unpacked.files, unpacked.bytes);
                let words = format!("Unpacked build {}: {files} files, {bytes} bytes", order.build.name);
                say.working(order.says(words)?).await?;
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(refused) => Ok(Err(refused)),
        }
    }

    /// Lets `current` lead to where it did before a roll-out.
    fn take_back(&self, held: &Held, mut rollout: Rollout) -> std::io::Result<()> {
        rollout.back = true;
        held.switch(&rollout)?;
        held.discard(&rollout.to)
    }

    /// Takes a roll-out back whose checks failed, and ends the task with what they saw.
    async fn end_back(
        &self,
        say: &Say,
        order: &Order,
        environment: &Environment,
        held: &Arc<Held>,
        rollout: Rollout,
    ) -> Result<(), Fault> {
        let was_live = held.is_live(&order.build)? && rollout.from.is_some();
        self.take_back(held, rollout.clone())?;
        let failing: Vec<String> = rollout
            .checks
            .iter()
            .filter(|saw| !saw.passing)
            .map(|saw| format!("{} saw: {}", saw.name, saw.saw))
            .collect();
        let failing = failing.join("; ");
        let stays = match held.deployed()?.last() {
            Some(live) if rollout.from.is_some() => {
                format!("Build {} is live on {}", live.build.name, environment.name)
            }
            _ => format!("Nothing of this agent's is live on {}", environment.name),
        };
        let name = &order.build.name;
        let words = format!("Build {name} failed its checks. {stays}. {failing}");
        let event = if was_live { "rolled-back" } else { "failed" };
        self.note(say, order, event, None, Some(failing)).await?;
        let before = held.deployed()?.last().map(|one| one.build.name.clone());
        self.report(say, order, environment, before.as_deref(), true, &rollout.checks).await?;
        say.failed(order.says(words)?).await?;
        // Only now: a process that died before this line finds here what it has to say.
        Ok(held.settle()?)
    }

    async fn tell_deployed(
        &self,
        say: &Say,
        order: &Order,
        environment: &Environment,
        done: &Deployed,
    ) -> Result<(), Fault> {
        self.note(say, order, "deployed", None, None).await?;
        self.report(say, order, environment, done.before.as_deref(), false, &done.checks).await?;
        let words = format!("Build {} is live on {}", order.build.name, order.environment);
        Ok(say.done(order.says(words)?).await?)
    }

    async fn report(
        &self,
        say: &Say,
        order: &Order,
        environment: &Environment,
        before: Option<&str>,
        rolled_back: bool,
        checks: &[Saw],
    ) -> Result<(), Fault> {
        let passing = checks.iter().filter(|saw| saw.passing).count();
        let health_checks = match checks.len() {
            0 => "none configured".to_owned(),
            all => format!("{passing} of {all} passing"),
        };
        let report = Report {
            environment: &order.environment,
            build: &order.build.name,
            url: environment.url.as_deref(),
            health_checks,
            action: order.action(),
            sha256: &order.build.sha256,
            before,
            asked_by: order.asked_by.as_deref(),
            approved_by: &order.approved_by,
            rolled_back,
            checks,
        };
        let mut artifact = Artifact::new(ArtifactId::new("deploy-report")?, vec![Part::data(Json::of(&report)?)]);
        artifact.name = Some("deploy-report.json".into());
        Ok(say.artifact(Chunk { artifact, append: false, last_chunk: true }).await?)
    }
}

/// A roll-out between its beginning and its end. When the turn is dropped in between, canceled or because the agent shuts
/// down, it is taken back.
struct Unfinished<'a> {
    rollouts: &'a Rollouts,
    held: Arc<Held>,
    rollout: Option<Rollout>,
    switched: bool,
}

impl Unfinished<'_> {
    fn switch(&mut self) -> std::io::Result<()> {
        self.switched = true;
        match &self.rollout {
            Some(rollout) => self.held.switch(rollout),
            None => Ok(()),
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Some(rollout) = self.rollout.take() else { return };
        let taken = if self.switched {
            self.rollouts.take_back(&self.held, rollout).and_then(|()| self.held.settle())
        } else {
            self.held.discard(&rollout.to)
        };
        if let Err(cause) = taken {
            tracing::error!(%cause, "a roll-out that was stopped could not be taken back");
        }
    }
}

/// Makes the checks of an environment that belong before or after the switch.
async fn check(environment: &Environment, build: &Build, held: &Held, when: &'static str) -> Vec<Saw> {
    let folder = held.folder(build);
    let mut seen = Vec::new();
    for one in environment.checks.iter().filter(|one| if when == "before" { one.before } else { one.after }) {
        seen.push(one.make(Of { folder: &folder, environment: &environment.name, build: &build.name, when }).await);
    }
    seen
}
