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
mod order;
mod place;
mod roll_out;

use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{Task, TaskState};
use server::{Fault, Job, Over, Say, Start};

use archive::Refused;
use ask::Unclear;
use audit::{Audit, Told};
pub use config::{Config, Environment, Mistake};
use order::Order;
use place::{Build, Place};

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

    /// Writes into the audit log who tried to decide what is not theirs.
    pub async fn turned_away(&self, task: &Task, operator: &str) {
        let Some(order) = Order::of(task) else { return };
        let told = order.told("turned-away", task.id.as_str(), Some(operator), None);
        let audit = self.audit.clone();
        if let Err(cause) = blocking(move || audit.add(told)).await.and_then(|added| Ok(added?)) {
            tracing::error!(%cause, operator, "who was turned away could not be written into the audit log");
        }
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
