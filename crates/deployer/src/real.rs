//! Real roll-outs: a build from its archive into the folder of an environment, after an operator has allowed it, with
//! checks before and after the switch, and back again when they fail.
//!
//! What was asked for and who has approved is kept with the task: it stands in the metadata of each status message. What
//! has been done to an environment stands in its folder. Between the two, a turn that was broken off is taken up again
//! and ends once, whatever had died.

mod archive;
mod ask;
pub mod audit;
mod check;
mod config;
mod place;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::{Artifact, ArtifactId, Json, Object, Part, Task, TaskState};
use serde::{Deserialize, Serialize};
use server::{Chunk, Fault, Job, Over, Say, Start};

use archive::Refused;
use ask::Unclear;
use audit::{Audit, Told};
use check::{Of, Saw};
pub use config::{Config, Environment, Mistake};
use place::{Build, Deployed, Held, Place, Rollout};

/// The member of a status message's metadata that holds the order.
const ORDER: &str = "deploy";

/// Where the audit log is kept when nobody said otherwise.
pub fn audit_log() -> PathBuf {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
    state.or_else(home).unwrap_or_else(std::env::temp_dir).join("a2a/deployer-audit.jsonl")
}

/// What rolls out.
#[derive(Debug)]
pub struct Rollouts {
    builds: PathBuf,
    environments: Vec<(Environment, Place)>,
    audit: Audit,
}

/// What was asked for, and who has allowed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    /// Back to a build that was live before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    back: bool,
    environment: String,
    #[serde(flatten)]
    build: Build,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_by: Option<String>,
    approvals: u8,
    #[serde(default)]
    approved_by: Vec<String>,
}

impl Order {
    /// The order that a task's last status carries.
    fn of(task: &Task) -> Option<Self> {
        let message = task.status.message.as_ref()?;
        message.parts.iter().find_map(|part| part.metadata.as_ref()?.member(ORDER)?.read().ok())
    }

    fn is_approved(&self) -> bool {
        self.approved_by.len() >= usize::from(self.approvals)
    }

    /// Words with the order beside them.
    fn says(&self, words: impl Into<Arc<str>>) -> Result<Vec<Part>, Fault> {
        let metadata = Object::parse("{}")?.with(ORDER, &Json::of(self)?)?;
        Ok(vec![Part { metadata: Some(metadata), ..Part::text(words) }])
    }

    /// "deploy" or "rollback".
    fn action(&self) -> &'static str {
        if self.back { "rollback" } else { "deploy" }
    }

    /// An entry of the audit log about it.
    fn told(&self, event: &str, task: &str, by: Option<&str>, words: Option<String>) -> Told {
        Told {
            event: event.to_owned(),
            task: Some(task.to_owned()),
            environment: Some(self.environment.clone()),
            build: Some(self.build.name.clone()),
            sha256: Some(self.build.sha256.clone()),
            by: by.map(str::to_owned),
            words,
        }
    }
}

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
    /// Rolls out builds of a folder to these environments. The error says what to do.
    pub fn new(builds: &Path, environments: Vec<Environment>, audit_log: &Path) -> Result<Self, Mistake> {
        if let Err(cause) = archive::list(builds) {
            return Err(Mistake(format!("{}: {cause}; --builds names the folder with the archives", builds.display())));
        }
        let audit = Audit::open(audit_log)
            .map_err(|cause| Mistake(format!("{}: {cause}; --audit-log names another file", audit_log.display())))?;
        let mut opened: Vec<(Environment, Place)> = Vec::new();
        for environment in environments {
            let (name, folder) = (&environment.name, environment.folder.display());
            if opened.iter().any(|(other, _)| other.name == *name) {
                return Err(Mistake(format!("two environments have the name {name}")));
            }
            let place = Place::open(&environment.folder)
                .map_err(|cause| Mistake(format!("environment {name}: {folder}: {cause}")))?;
            opened.push((environment, place));
        }
        Ok(Self { builds: builds.to_owned(), environments: opened, audit })
    }

    /// What to tell whoever starts it.
    pub fn notice(&self) -> String {
        let names = ask::listed(self.environments.iter().map(|(one, _)| one.name.as_str()));
        let folder = self.builds.display();
        format!("rolls the builds in {folder} out to {names}, each after an operator has approved it")
    }

    fn environment(&self, name: &str) -> Option<&(Environment, Place)> {
        self.environments.iter().find(|(one, _)| one.name == name)
    }

    /// Whether an operator may decide about the task: one of the environment's approvers, who has not approved it yet
    /// and has not asked for it.
    pub fn may_decide(&self, task: &Task, operator: &str) -> bool {
        let Some(order) = Order::of(task) else { return false };
        let Some((environment, _)) = self.environment(&order.environment) else { return false };
        let may = environment.approvers.is_empty() || environment.approvers.iter().any(|one| one == operator);
        may && order.asked_by.as_deref() != Some(operator) && !order.approved_by.iter().any(|one| one == operator)
    }

    /// How long the task waits for an approval.
    pub fn approval_limit(&self, task: &Task) -> Option<Duration> {
        let order = Order::of(task)?;
        Some(self.environment(&order.environment)?.0.approval_limit)
    }

    /// What an operator should know about the task.
    pub fn about(&self, task: &Task) -> Vec<(String, String)> {
        let Some(order) = Order::of(task) else { return Vec::new() };
        let mut about = vec![
            ("action".to_owned(), order.action().to_owned()),
            ("build".to_owned(), order.build.name),
            ("environment".to_owned(), order.environment),
            ("sha256".to_owned(), order.build.sha256),
        ];
        about.extend(order.asked_by.map(|by| ("asked by".to_owned(), by)));
        if !order.approved_by.is_empty() {
            about.push(("approved by".to_owned(), order.approved_by.join(", ")));
        }
        about
    }

    /// Works on one turn.
    pub async fn turn(&self, job: &Job, say: &Say) -> Result<(), Fault> {
        match self.take(job, say).await {
            Err(cause) if cause.is::<Over>() => Ok(()),
            ended => ended,
        }
    }

    async fn take(&self, job: &Job, say: &Say) -> Result<(), Fault> {
        let order = job.task.as_deref().and_then(Order::of);
        let state = job.task.as_ref().map(|task| task.status.state);
        match (&job.start, order) {
            // A message to a task that waits for an approval is never one, whatever it says.
            (Start::Message | Start::Answer, Some(order)) if state == Some(TaskState::AuthRequired) => {
                self.want_approval(job, say, order).await
            }
            (Start::Approval { by }, Some(order)) => self.approved(job, say, order, by.as_deref()).await,
            (Start::Refusal { by, reason }, Some(order)) => {
                let by = by.as_deref();
                let words = match (by, reason) {
                    (Some(by), Some(reason)) => format!("Refused by {by}: {reason}"),
                    (Some(by), None) => format!("Refused by {by}."),
                    (None, Some(reason)) => format!("An operator refused this {}: {reason}", order.action()),
                    (None, None) => format!("An operator refused this {}.", order.action()),
                };
                self.note(say, &order, "refused", by, reason.clone()).await?;
                Ok(say.rejected(order.says(words)?).await?)
            }
            (Start::Expiry, Some(order)) => {
                self.note(say, &order, "expired", None, None).await?;
                let words = format!("Nobody approved this {} in time.", order.action());
                Ok(say.canceled(order.says(words)?).await?)
            }
            (Start::Restart, Some(order)) if order.is_approved() => {
                self.note(say, &order, "resumed", None, None).await?;
                self.roll_out(job, say, &order).await
            }
            (Start::Restart, Some(order)) => self.want_approval(job, say, order).await,
            _ => self.consider(job, say).await,
        }
    }

    /// Reads what is wanted, and asks for an approval if it may be done at all.
    async fn consider(&self, job: &Job, say: &Say) -> Result<(), Fault> {
        let asker = job.asker.as_deref();
        let archives = match archive::list(&self.builds) {
            Ok(archives) => archives,
            Err(cause) => {
                tracing::error!(%cause, "the folder with the builds cannot be read");
                return Ok(say.failed("The builds cannot be read.").await?);
            }
        };
        let names: Vec<&str> = archives.iter().map(|archive| archive.name.as_str()).collect();
        let environments: Vec<&str> = self.environments.iter().map(|(one, _)| one.name.as_str()).collect();
        let said = ask::said(job.task.as_deref(), &job.message);
        let wanted = match ask::read(&environments, &names, &said) {
            Ok(wanted) => wanted,
            Err(Unclear::Ask(question)) => return Ok(say.ask(question).await?),
            Err(Unclear::Unknown(words)) => return Ok(say.failed(words).await?),
            Err(Unclear::Outside(words)) => return Ok(say.rejected(words).await?),
        };
        let Some((environment, place)) = self.environment(&wanted.environment) else {
            return Ok(say.failed("The environment is not configured here.").await?);
        };
        if let Some(words) = self.against(environment, asker) {
            self.audit.add(Told {
                event: "rejected".to_owned(),
                task: Some(say.task_id().await?.to_string()),
                environment: Some(environment.name.clone()),
                build: wanted.build,
                by: asker.map(str::to_owned),
                words: Some(words.clone()),
                ..Told::default()
            })?;
            return Ok(say.rejected(words).await?);
        }
        let build = if wanted.back {
            match place.earlier(wanted.build.as_deref())? {
                Some(build) => build,
                None => {
                    let which = wanted.build.map_or("no earlier build".to_owned(), |name| format!("no build {name}"));
                    let words = format!("There is {which} on {} to go back to.", environment.name);
                    return Ok(say.failed(words).await?);
                }
            }
        } else {
            let archive = match (&wanted.build, &archives[..]) {
                (Some(name), _) => archives.iter().find(|archive| archive.name == *name).cloned(),
                (None, [only]) => Some(only.clone()),
                (None, []) => return Ok(say.failed("There are no builds.").await?),
                (None, _) => {
                    let newest = ask::listed(names.iter().rev().copied().collect::<Vec<_>>().into_iter());
                    let words = format!("Which build should I deploy to {}: {newest}?", environment.name);
                    return Ok(say.ask(words).await?);
                }
            };
            let Some(archive) = archive else { return Ok(say.failed("The build is gone.").await?) };
            let name = archive.name.clone();
            match blocking(move || archive.digest()).await? {
                Ok(sha256) => Build { name, sha256 },
                Err(refused) => return Ok(say.failed(cannot(&name, &refused)).await?),
            }
        };
        let order = Order {
            back: wanted.back,
            environment: environment.name.clone(),
            build,
            asked_by: asker.map(str::to_owned),
            approvals: environment.approvals,
            approved_by: Vec::new(),
        };
        let words = match order.back {
            false => format!("Preparing build {} for {}", order.build.name, order.environment),
            true => format!("Preparing to take {} back to build {}", order.environment, order.build.name),
        };
        say.working(order.says(words)?).await?;
        self.note(say, &order, "asked", asker, None).await?;
        self.want_approval(job, say, order).await
    }

    /// What the environment's policy has against a roll-out by this caller, now.
    fn against(&self, environment: &Environment, asker: Option<&str>) -> Option<String> {
        if let Some(words) = &environment.refuse {
            return Some(words.clone());
        }
        if !environment.askers.is_empty()
            && !asker.is_some_and(|asker| environment.askers.iter().any(|one| one == asker))
        {
            return Some(format!(
                "Only some callers may ask for roll-outs to {}; this is none of them.",
                environment.name
            ));
        }
        self.in_quiet_hours(environment)
    }

    fn in_quiet_hours(&self, environment: &Environment) -> Option<String> {
        let hours = environment.is_quiet(jiff::Timestamp::now())?;
        Some(format!("Nothing is rolled out to {} in its quiet hours: {hours}.", environment.name))
    }

    async fn want_approval(&self, job: &Job, say: &Say, order: Order) -> Result<(), Fault> {
        let place = format!("{}/approve/{}", job.base_url, say.task_id().await?);
        let words = match &order.approved_by[..] {
            [] => format!("An operator must approve this {} at {place}", order.action()),
            by => format!("Approved by {}. Another operator must approve this {} at {place}", and(by), order.action()),
        };
        Ok(say.need_approval(order.says(words)?).await?)
    }

    async fn approved(&self, job: &Job, say: &Say, mut order: Order, by: Option<&str>) -> Result<(), Fault> {
        let by = by.unwrap_or("an operator");
        if order.approved_by.iter().any(|one| one == by) {
            return self.want_approval(job, say, order).await;
        }
        order.approved_by.push(by.to_owned());
        self.note(say, &order, "approved", Some(by), None).await?;
        if !order.is_approved() {
            return self.want_approval(job, say, order).await;
        }
        self.roll_out(job, say, &order).await
    }

    /// Writes into the audit log. Nothing is done that cannot be written there.
    async fn note(
        &self,
        say: &Say,
        order: &Order,
        event: &str,
        by: Option<&str>,
        words: Option<String>,
    ) -> Result<(), Fault> {
        let told = order.told(event, say.task_id().await?.as_str(), by, words);
        let audit = self.audit.clone();
        Ok(blocking(move || audit.add(told)).await??)
    }

    /// Rolls out, or goes on with a roll-out that was broken off.
    async fn roll_out(&self, job: &Job, say: &Say, order: &Order) -> Result<(), Fault> {
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

/// Runs what waits for the disk on a thread that may wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

/// What the client hears of a build that cannot be had.
fn cannot(build: &str, refused: &Refused) -> String {
    format!("Build {build} cannot be deployed: {refused}.")
}

/// Names as a sentence holds them.
fn and(names: &[String]) -> String {
    names.join(" and ")
}
