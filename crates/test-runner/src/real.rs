//! Real work: a clean working tree of the commit that a message names, the configured suite in it, its log as it is
//! written, and what it came to.

mod ask;
mod checkout;
mod log;
mod process;
mod project;
mod queue;
mod shelf;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::{Artifact, ArtifactId, Json, Part};
use server::{Chunk, Fault, Job, Over, Say};
use tokio::io::AsyncReadExt;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use ask::{Unclear, Wanted};
use checkout::{Missing, Tree};
use log::Cutter;
use process::{Plan, Process};
pub use project::{Mistake, Project, Suite, open};
use queue::Queue;
use shelf::Shelf;
use summary::Summary;

/// How long what was written waits for more, so that a chunk holds more than a line when lines come fast.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long half a line waits for its end.
const HALF_A_LINE: Duration = Duration::from_secs(1);
/// How long the pipe may stay open after the suite has ended and everything it started was killed.
const DRAIN: Duration = Duration::from_millis(500);
/// So much of the end of a log is looked at for the runner's last words.
const LAST_WORDS: usize = 256 << 10;

/// Where runs have their folders when nobody said otherwise.
pub fn work_dir() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".cache"));
    cache.or_else(home).unwrap_or_else(std::env::temp_dir).join("a2a/test-runner")
}

/// What runs real suites.
#[derive(Debug)]
pub struct Runner {
    projects: Vec<Project>,
    /// Where each project's working trees are taken from; a bundle is unpacked the first time.
    repositories: Vec<OnceCell<PathBuf>>,
    shelf: Shelf,
    queue: Arc<Queue>,
    /// Whether a sandbox may be used at all.
    sandboxed: bool,
    /// Whether there is one, which is tried out once.
    sandbox: OnceCell<bool>,
}

impl Runner {
    /// Runs suites of these projects, so many at once. Runs have their folders in `base`. The error says what to do.
    pub fn new(projects: Vec<Project>, base: &Path, jobs: usize) -> Result<Self, Mistake> {
        projects.iter().try_for_each(Project::find)?;
        let names: std::collections::BTreeSet<_> = projects.iter().map(|project| &project.name).collect();
        if names.len() < projects.len() {
            return Err(Mistake("two projects have the same name".to_owned()));
        }
        let opened = Shelf::open(base);
        let (shelf, (folders, processes)) =
            opened.map_err(|cause| Mistake(format!("{}: {cause}; --work-dir names another folder", base.display())))?;
        if folders > 0 {
            tracing::warn!(
                "{folders} runs were left by an agent that died; {processes} processes of theirs were ended"
            );
            for project in projects.iter().filter(|project| !project.path.is_file()) {
                checkout::prune(&project.path);
            }
        }
        let repositories = projects.iter().map(|_| OnceCell::new()).collect();
        Ok(Self { projects, repositories, shelf, queue: Queue::new(jobs), sandboxed: true, sandbox: OnceCell::new() })
    }

    /// Runs suites without `bwrap` even where it is installed.
    pub fn without_sandbox(mut self) -> Self {
        self.sandboxed = false;
        self
    }

    /// What to tell whoever starts it.
    pub fn notice(&self) -> String {
        let projects = ask::listed(self.projects.iter().map(|project| project.name.as_str()));
        let has_bwrap = std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("bwrap").is_file()));
        let how = match (self.sandboxed, has_bwrap) {
            (true, true) => "inside bwrap",
            (true, false) => "without a sandbox, as bwrap is not installed",
            (false, _) => "without a sandbox",
        };
        format!("runs the real tests of {projects}, {how}")
    }

    async fn has_sandbox(&self) -> bool {
        self.sandboxed && *self.sandbox.get_or_init(process::has_sandbox).await
    }

    /// Works on one turn.
    pub async fn turn(&self, job: &Job, say: &Say) -> Result<(), Fault> {
        let said = ask::said(job.task.as_deref(), &job.message);
        let wanted = match ask::read(&self.projects, &said) {
            Ok(wanted) => wanted,
            Err(Unclear::Ask(question)) => return Ok(say.ask(question).await?),
            Err(Unclear::Unknown(words)) => return Ok(say.failed(words).await?),
        };
        let mut place = self.queue.enter();
        let mut moves = place.moves();
        let mut told = 0;
        loop {
            let ahead = place.ahead();
            if ahead == 0 {
                break;
            }
            // Only a task that has not begun waits as SUBMITTED; one that was asked something is WORKING already.
            if ahead != told && job.task.is_none() {
                told = ahead;
                let runs = if ahead == 1 { "1 run is".to_owned() } else { format!("{ahead} runs are") };
                say.queued(format!("Waiting: {runs} before this one.")).await?;
            }
            tokio::select! {
                () = job.stop.cancelled() => return Ok(()),
                _ = moves.changed() => {}
            }
        }
        let end = self.test(job, say, &wanted).await;
        // The next one may begin before anybody hears that this one has ended.
        drop(place);
        match end {
            Ok(End::Done(words)) => Ok(say.done(words).await?),
            Ok(End::Failed(words)) => Ok(say.failed(words).await?),
            Ok(End::Stopped) => Ok(()),
            Err(cause) if cause.is::<Over>() => Ok(()),
            Err(cause) => Err(cause),
        }
    }

    async fn test(&self, job: &Job, say: &Say, wanted: &Wanted<'_>) -> Result<End, Fault> {
        let project = wanted.project;
        let at = self.projects.iter().position(|one| one.name == project.name).unwrap_or_default();
        let unpacked = self.repositories[at].get_or_try_init(|| checkout::repository(project, self.shelf.path())).await;
        let repository = match unpacked {
            Ok(repository) => repository,
            Err(cause) => {
                tracing::error!(%cause, project = project.name, "the repository could not be read");
                return Ok(End::Failed(format!("The repository of {} could not be read.", project.name)));
            }
        };
        let name = wanted.commit.as_deref().unwrap_or("the newest commit");
        let shown: String = name.chars().take(80).collect();
        let commit = match checkout::resolve(repository, wanted.commit.as_deref()).await {
            Ok(commit) => commit,
            Err(Missing::Commit) => {
                return Ok(End::Failed(format!("Commit {shown} does not exist in {}.", project.name)));
            }
            Err(cause) => return Err(cause.into()),
        };
        say.working(format!("Checking out {shown} and starting the suite")).await?;
        let folder = self.shelf.run()?;
        let tree = tokio::select! {
            tree = Tree::add(repository, &commit, folder.path().join("tree")) => tree?,
            () = job.stop.cancelled() => return Ok(End::Stopped),
        };
        let ended = self.run(job, say, wanted, &tree, folder.path()).await;
        tree.remove().await;
        drop(folder);
        ended
    }

    async fn run(
        &self,
        job: &Job,
        say: &Say,
        Wanted { project, suite, .. }: &Wanted<'_>,
        tree: &Tree,
        folder: &Path,
    ) -> Result<End, Fault> {
        let command = if suite.command.is_empty() { project::detect(tree.path()) } else { Some(suite.command.clone()) };
        let Some(mut command) = command else {
            let words =
                format!("No suite is configured for {}, and its files do not tell how it is tested.", project.name);
            return Ok(End::Failed(words));
        };
        let mut report = suite.report.as_ref().map(|report| tree.path().join(report));
        let place = folder.join("report.xml");
        for word in &mut command {
            if word.contains("{report}") {
                *word = word.replace("{report}", &place.display().to_string());
                report = report.or_else(|| Some(place.clone()));
            }
        }
        let plan = Plan {
            command: &command,
            tree: tree.path(),
            folder,
            environment: &suite.environment,
            memory_limit: suite.memory_limit,
            cpu_limit: suite.cpu_limit,
            network: suite.network,
            sandbox: self.has_sandbox().await,
        };
        let (mut process, output) = match process::start(&plan) {
            Ok(started) => started,
            Err(cause) => {
                return Ok(End::Failed(format!("The suite could not be started: {}: {cause}", command[0])));
            }
        };
        let mut log = Log { say, output, cutter: Cutter::new(suite.output_limit), begun: false, last: Vec::new() };
        let until = Instant::now() + suite.time_limit;
        let status = tokio::select! {
            status = log.follow(&mut process) => status?,
            () = job.stop.cancelled() => {
                process.stop().await;
                return Ok(End::Stopped);
            }
            () = tokio::time::sleep_until(until) => {
                process.stop().await;
                log.end().await?;
                let seconds = suite.time_limit.as_secs();
                return Ok(End::Failed(format!("The suite took longer than {seconds} s and was stopped.")));
            }
        };
        // What the suite has left running goes now, and with it the pipe's other ends.
        drop(process);
        log.drain().await?;
        let last = log.end().await?;
        let summary = match report.as_deref().filter(|report| report.is_file()).map(Summary::of_report) {
            Some(Ok(summary)) => Some(summary),
            Some(Err(cause)) => {
                tracing::warn!(%cause, project = project.name, "the report could not be read");
                Summary::of_log(&last)
            }
            None => Summary::of_log(&last),
        };
        let how = process::words(status);
        match summary {
            None => Ok(End::Failed(format!("The suite ended with {how} and without a report."))),
            Some(summary) => {
                let words = summary.words();
                say.artifact(chunk("summary", Some("summary.json"), data(&summary)?, false, true)?).await?;
                if summary.failed == 0 && !status.success() {
                    return Ok(End::Failed(format!("The suite ended with {how} although no test failed: {words}")));
                }
                Ok(End::Done(words))
            }
        }
    }
}

/// How a run ended.
enum End {
    /// Its tests were run.
    Done(String),
    /// They were not, or not to the end.
    Failed(String),
    /// Somebody stopped it.
    Stopped,
}

fn data(summary: &Summary) -> Result<Part, Fault> {
    Ok(Part::data(Json::of(summary)?))
}

fn chunk(id: &str, name: Option<&str>, part: Part, append: bool, last_chunk: bool) -> Result<Chunk, Fault> {
    let mut artifact = Artifact::new(ArtifactId::new(id)?, vec![part]);
    artifact.name = name.map(Into::into);
    Ok(Chunk { artifact, append, last_chunk })
}

/// The log of a run on its way into the task.
struct Log<'a> {
    say: &'a Say,
    output: tokio::net::unix::pipe::Receiver,
    cutter: Cutter,
    begun: bool,
    /// The end of what was written.
    last: Vec<u8>,
}

impl Log<'_> {
    /// Tells what is written until the suite has ended.
    async fn follow(&mut self, process: &mut Process) -> Result<std::process::ExitStatus, Fault> {
        let mut buffer = vec![0; 32 << 10];
        // When lines that wait are told, and when half a line is told as well.
        let (mut due, mut half): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            let flush = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                read = self.output.read(&mut buffer) => {
                    let length = read?;
                    if length == 0 {
                        return Ok(process.ended().await?);
                    }
                    self.take(&buffer[..length]).await?;
                    let soon = Instant::now() + TOGETHER;
                    (due, half) = if self.cutter.is_empty() {
                        (None, None)
                    } else {
                        (Some(due.map_or(soon, |due| due.min(soon))), half.or(Some(soon + HALF_A_LINE)))
                    };
                }
                () = flush => {
                    let late = half.is_some_and(|half| half <= Instant::now());
                    let piece = self.cutter.lines().or_else(|| if late { self.cutter.all() } else { None });
                    if let Some(text) = piece {
                        self.tell(text, false).await?;
                        half = (!self.cutter.is_empty()).then(|| Instant::now() + HALF_A_LINE);
                    } else if late {
                        // Half a character.
                        half = None;
                    }
                    due = half;
                }
                status = process.ended() => return Ok(status?),
            }
        }
    }

    /// Tells what is still in the pipe.
    async fn drain(&mut self) -> Result<(), Fault> {
        let mut buffer = vec![0; 32 << 10];
        let until = Instant::now() + DRAIN;
        loop {
            match tokio::time::timeout_at(until, self.output.read(&mut buffer)).await {
                Ok(Ok(0)) | Err(_) => return Ok(()),
                Ok(Ok(length)) => self.take(&buffer[..length]).await?,
                Ok(Err(cause)) => return Err(cause.into()),
            }
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.last.extend_from_slice(bytes);
        if self.last.len() > 2 * LAST_WORDS {
            self.last.drain(..self.last.len() - LAST_WORDS);
        }
        match self.cutter.take(bytes) {
            Some(text) => self.tell(text, false).await,
            None => Ok(()),
        }
    }

    /// Tells the end of the log. Gives its last words.
    async fn end(mut self) -> Result<String, Fault> {
        let rest = std::mem::replace(&mut self.cutter, Cutter::new(0)).end();
        if rest.is_some() || self.begun {
            self.tell(rest.unwrap_or_default(), true).await?;
        }
        Ok(String::from_utf8_lossy(&self.last).into_owned())
    }

    async fn tell(&mut self, text: String, is_last: bool) -> Result<(), Fault> {
        let name = if self.begun { None } else { Some("test-log.txt") };
        let piece = chunk("test-log", name, Part::text(text), self.begun, is_last)?;
        self.begun = true;
        Ok(self.say.artifact(piece).await?)
    }
}
