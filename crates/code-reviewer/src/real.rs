//! Real work: a diff is parsed, put into the files of its base branch where a repository is configured, and read by
//! rules and by the linters that are configured.

mod answer;
pub mod apply;
mod ask;
mod config;
pub mod diff;
pub mod finding;
pub mod form;
mod repository;
pub mod rules;
mod side;
pub mod source;
mod tool;

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use protocol::{Artifact, ArtifactId, Json, Message, Part, media};
use server::{Chunk, Fault, Job, Over, Say};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use ask::{Of, Said};
pub use config::{Config, Mistake, Project, Tool};
use diff::{Diff, Kind, Note};
pub use finding::{Finding, Severity};
pub use form::Review;
use repository::{Repository, is_inside};
use side::NewSide;
pub use source::{Language, Source};

/// The question that the kit's reviewer asks.
const WHICH_BASE: &str = "Which base branch should I compare this diff against?";

/// What reads real diffs.
#[derive(Debug)]
pub struct Reviewer {
    projects: Vec<Project>,
    /// Each project's repository; a bundle is unpacked the first time.
    repositories: Vec<OnceCell<Repository>>,
    tools: Vec<Tool>,
    sarif: bool,
}

/// The base that a diff is compared with.
struct Base {
    /// As the client named it.
    name: String,
    commit: String,
}

impl Reviewer {
    /// A reviewer with these projects and tools; none of them is needed. The error says what to do.
    pub fn new(config: Config) -> Result<Self, Mistake> {
        let Config { projects, tools } = config;
        projects.iter().try_for_each(Project::find)?;
        let names: BTreeSet<_> = projects.iter().map(|project| project.name.to_ascii_lowercase()).collect();
        if names.len() < projects.len() {
            return Err(Mistake("two projects have the same name".to_owned()));
        }
        let repositories = projects.iter().map(|_| OnceCell::new()).collect();
        Ok(Self { projects, repositories, tools, sarif: false })
    }

    /// Clients that accept SARIF get it.
    pub fn with_sarif(self) -> Self {
        Self { sarif: true, ..self }
    }

    /// Whether clients that accept SARIF get it.
    pub fn has_sarif(&self) -> bool {
        self.sarif
    }

    /// What to tell whoever starts it.
    pub fn notice(&self) -> String {
        let rules = match rules::all().len() {
            1 => "1 rule".to_owned(),
            number => format!("{number} rules"),
        };
        let tools: String = self.tools.iter().map(|tool| format!(", {}", tool.name)).collect();
        match self.projects.as_slice() {
            [] => format!("reads real diffs by {rules}{tools}; it has no repository and reads their hunks alone"),
            projects => {
                let names = ask::listed(projects.iter().map(|project| project.name.as_str()));
                format!("reads real diffs of {names} in the files of their base, by {rules}{tools}")
            }
        }
    }

    /// Whether a message gets a direct answer: it only asks something.
    pub fn answers_directly(&self, message: &Message) -> bool {
        message.task_id.is_none() && ask::is_question(message)
    }

    /// Works on one turn.
    pub async fn turn(&self, job: &Job, say: &Say) -> Result<(), Fault> {
        if job.task.is_none() && ask::is_question(&job.message) {
            return Ok(say.reply(answer::answer(&job.message.text())).await?);
        }
        match self.review(job, say).await {
            Err(cause) if cause.is::<Over>() => Ok(()),
            ended => ended,
        }
    }

    async fn review(&self, job: &Job, say: &Say) -> Result<(), Fault> {
        let forms = Forms::of(job, self.sarif);
        if forms == Forms::default() {
            let words = "None of the forms that the client takes is one of a review: application/json, text/markdown, \
                text/plain";
            let more = if self.sarif { ", application/sarif+json" } else { "" };
            return Ok(say.rejected(format!("{words}{more}.")).await?);
        }
        let said = ask::said(job.task.as_deref(), &job.message);
        let Some(text) = said.diff.clone() else {
            return Ok(say.ask("Which diff should I review? Send it as a text/x-diff part.").await?);
        };
        let diff = blocking(move || diff::read(&text)).await?;
        if diff.files.is_empty() {
            let why: String = diff.notes.iter().take(10).map(|note| format!(" {note}")).collect();
            return Ok(say.failed(format!("There is no diff in what was sent.{why}")).await?);
        }
        let mut notes = diff.notes.clone();
        let at = match ask::project(&self.projects, &said) {
            Of::Project(at) => Some(at),
            Of::Other(name) => {
                if let Some(name) = name.filter(|_| !self.projects.is_empty()) {
                    let there = ask::listed(self.projects.iter().map(|project| project.name.as_str()));
                    let words = "is not configured here, so the hunks were read alone. Configured:";
                    notes.push(Note::of_all(format!("{name} {words} {there}.")));
                }
                None
            }
            Of::Unclear => {
                let names = ask::listed(self.projects.iter().map(|project| project.name.as_str()));
                let question =
                    format!("Which project is this diff of: {names}? Say none to have its hunks read alone.");
                return Ok(say.ask(question).await?);
            }
        };
        let (repository, base) = match at {
            None => (None, None),
            Some(at) => {
                let project = &self.projects[at];
                let opened = self.repositories[at].get_or_try_init(|| Repository::open(project)).await;
                let repository = match opened {
                    Ok(repository) => repository,
                    Err(cause) => {
                        tracing::error!(%cause, project = project.name, "the repository could not be read");
                        return Ok(say
                            .failed(format!("The repository of {} could not be read.", project.name))
                            .await?);
                    }
                };
                match base(repository, project, &said, &diff).await? {
                    Ok(base) => (Some(repository), base),
                    Err(question) => return Ok(say.ask(question).await?),
                }
            }
        };
        let files = match diff.files.len() {
            1 => "1 file".to_owned(),
            number => format!("{number} files"),
        };
        let words = match &base {
            Some(base) => format!("Comparing the diff against {}", base.name),
            None => format!("Reading the changes of {files}"),
        };
        say.working(words).await?;

        let paths: Vec<String> = diff.files.iter().map(|file| file.path.clone()).collect();
        let before = match (repository, &base) {
            (Some(repository), Some(base)) => Some(side::before(repository, &base.commit, &diff).await?),
            _ => None,
        };
        let named = base.as_ref().map(|base| base.name.clone());
        let name = named.clone().unwrap_or_default();
        let stop = job.stop.clone();
        let work = move || {
            let (sides, notes) = side::sides(&diff, before.as_deref(), &name);
            let findings = check(&diff, &sides, &stop);
            (sides, notes, findings)
        };
        let (sides, more, mut findings) = tokio::select! {
            done = blocking(work) => done?,
            () = job.stop.cancelled() => return Ok(()),
        };
        notes.extend(more);
        if !self.tools.is_empty() {
            let tree = repository.zip(base.as_ref());
            let (found, more) = tokio::select! {
                done = self.ask_tools(tree, &sides) => done?,
                () = job.stop.cancelled() => return Ok(()),
            };
            findings.extend(found);
            notes.extend(more);
        }
        let places: Vec<&str> = paths.iter().map(String::as_str).collect();
        finding::order(&mut findings, &places);
        // Where there is no repository, a base that was named is only told back.
        let base = named.or_else(|| ask::after_base(&said.words));
        let review = Review { base, findings, notes };
        for artifact in forms.artifacts(&review)? {
            say.artifact(Chunk { artifact, append: false, last_chunk: true }).await?;
        }
        Ok(say.done(review.count()).await?)
    }

    /// Runs the tools over the files that are whole. Gives what they found on changed lines, and what there is to know.
    async fn ask_tools(
        &self,
        tree: Option<(&Repository, &Base)>,
        sides: &[NewSide],
    ) -> Result<(Vec<Finding>, Vec<Note>), Fault> {
        let (mut findings, mut notes) = (Vec::new(), Vec::new());
        let wanted = |tool: &&Tool| sides.iter().any(|side| tool.reads(&side.path));
        let tools: Vec<&Tool> = self.tools.iter().filter(wanted).collect();
        if tools.is_empty() {
            return Ok((findings, notes));
        }
        let Some((repository, base)) = tree else {
            notes.extend(tools.iter().map(|tool| {
                Note::of_all(format!("{} was not asked: it reads whole files, and there is no base.", tool.name))
            }));
            return Ok((findings, notes));
        };
        let folder = tempfile::tempdir()?;
        let tree = repository.tree(&base.commit, fs::canonicalize(folder.path())?.join("tree")).await?;
        for tool in tools {
            let (own, parts): (Vec<&NewSide>, Vec<&NewSide>) = sides
                .iter()
                .filter(|side| tool.reads(&side.path))
                .partition(|side| side.whole && is_inside(&side.path));
            let unread: BTreeSet<&str> = parts.iter().map(|side| side.path.as_str()).collect();
            notes.extend(
                unread.into_iter().map(|path| {
                    Note::of(path, None, format!("{} was not asked about it: it is not whole.", tool.name))
                }),
            );
            let mut written = Vec::new();
            for side in own {
                match write(tree.path(), &side.path, &side.text) {
                    Ok(()) => written.push(side),
                    Err(cause) => {
                        tracing::warn!(%cause, "a changed file could not be written for {}", tool.name);
                        let words = format!("{} was not asked about it: {cause}.", tool.name);
                        notes.push(Note::of(&side.path, None, words));
                    }
                }
            }
            let own = written;
            if own.is_empty() {
                continue;
            }
            let paths: Vec<&str> = own.iter().map(|side| side.path.as_str()).collect();
            let report = folder.path().join(format!("{}.sarif", tool.name));
            match tool::run(tool, tree.path(), &paths, &report).await {
                Ok(found) => findings.extend(found.into_iter().filter_map(|mut one| {
                    let side = own.iter().find(|side| side.path == one.file && side.changed.contains(&one.line))?;
                    one.line = side.called(one.line);
                    Some(one)
                })),
                Err(why) => notes.push(Note::of_all(why)),
            }
        }
        // Removing many files takes a while.
        blocking(move || drop((tree, folder))).await?;
        Ok((findings, notes))
    }
}

/// Writes a file into a working tree, through no link that the tree has.
fn write(tree: &std::path::Path, path: &str, text: &str) -> std::io::Result<()> {
    let mut place = tree.to_owned();
    for piece in path.split('/') {
        if fs::symlink_metadata(&place).is_ok_and(|data| data.is_symlink()) {
            return Err(std::io::Error::other("a link of the base is in its way"));
        }
        place.push(piece);
    }
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    if fs::symlink_metadata(&place).is_ok_and(|data| data.is_symlink()) {
        fs::remove_file(&place)?;
    }
    fs::write(place, text)
}

/// The base of a diff: none when it does not matter. The inner error is a question to the client, in the words of the
/// story, with the branches as data for whoever lets a person choose.
async fn base(
    repository: &Repository,
    project: &Project,
    said: &Said,
    diff: &Diff,
) -> Result<Result<Option<Base>, Vec<Part>>, Fault> {
    let branches = repository.branches().await?;
    let question = |words: String| {
        let there = serde_json::json!({"branches": &branches});
        Ok::<_, Fault>(Err(vec![Part::text(words), Part::data(Json::of(&there)?)]))
    };
    let name = match ask::base(said, &branches, Some(&project.name)) {
        Some(name) => name,
        None => match branches.as_slice() {
            [] => return Ok(Ok(None)),
            [only] => only.clone(),
            // A diff that only makes files is the same against each.
            _ if diff.files.iter().all(|file| file.kind == Kind::New || file.hunks.is_empty()) => return Ok(Ok(None)),
            _ => return question(WHICH_BASE.to_owned()),
        },
    };
    match repository.commit(&name).await? {
        Some(commit) => Ok(Ok(Some(Base { name, commit }))),
        None => {
            let name: String = name.chars().take(80).collect();
            question(format!("{} has no branch {name}. {WHICH_BASE}", project.name))
        }
    }
}

/// What the rules find, on changed lines and with the numbers of the diff.
fn check(diff: &Diff, sides: &[NewSide], stop: &CancellationToken) -> Vec<Finding> {
    let mut findings = Vec::new();
    let gone = LazyCell::new(|| diff.gone());
    let mut sources = Vec::new();
    for side in sides {
        if stop.is_cancelled() {
            return Vec::new();
        }
        if let Some(source) = side.source() {
            let mut found = rules::check(&source);
            if found.iter().any(|one| rules::is_about_words(&one.rule)) {
                // Words that only stand elsewhere now are not new.
                let lines: Vec<&str> = side.text.lines().map(str::trim).collect();
                let text = |line: u32| lines.get(line.checked_sub(side.first_line)? as usize);
                found.retain(|one| {
                    !rules::is_about_words(&one.rule) || text(one.line).is_none_or(|text| !gone.contains(text))
                });
            }
            let found = found.into_iter();
            findings.extend(found.filter(|one| side.changed.contains(&one.line)).map(|mut one| {
                one.line = side.called(one.line);
                one
            }));
            sources.push(source);
        }
    }
    findings.extend(rules::check_change(&sources).into_iter().filter_map(|mut one| {
        let side = sides.iter().find(|side| side.path == one.file && side.changed.contains(&one.line))?;
        one.line = side.called(one.line);
        Some(one)
    }));
    findings
}

/// Reviews a diff by its hunks alone.
pub fn review(text: &[u8]) -> Review {
    let diff = diff::read(text);
    let (sides, more) = side::sides(&diff, None, "");
    let mut findings = check(&diff, &sides, &CancellationToken::new());
    let places: Vec<&str> = diff.files.iter().map(|file| file.path.as_str()).collect();
    finding::order(&mut findings, &places);
    let mut notes = diff.notes.clone();
    notes.extend(more);
    Review { base: None, findings, notes }
}

/// In which forms a client takes a review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Forms {
    json: bool,
    sarif: bool,
    markdown: bool,
    text: bool,
}

impl Forms {
    fn of(job: &Job, sarif: bool) -> Self {
        let names = |form: &str| job.accepted_output_modes.iter().any(|mode| media::is(mode, form));
        let json = job.accepts(media::JSON);
        let sarif = sarif && names(form::SARIF);
        // Words alone are for those who take nothing else.
        let markdown = !json && !sarif && names(form::MARKDOWN);
        let text = !json && !sarif && !markdown && job.accepts(media::TEXT);
        Self { json, sarif, markdown, text }
    }

    fn artifacts(self, review: &Review) -> Result<Vec<Artifact>, Fault> {
        let named = |id: &str, name: &str, parts| -> Result<Artifact, Fault> {
            let mut artifact = Artifact::new(ArtifactId::new(id)?, parts);
            artifact.name = Some(name.into());
            Ok(artifact)
        };
        let mut artifacts = Vec::new();
        if self.json {
            let parts = vec![Part::text(review.summary()), Part::data(Json::of(review)?)];
            artifacts.push(named("review", "review.json", parts)?);
        }
        if self.sarif {
            let mut part = Part::data(Json::of(&review.sarif())?);
            part.media_type = Some(Arc::from(form::SARIF));
            artifacts.push(named("review-sarif", "review.sarif", vec![part])?);
        }
        if self.markdown {
            let mut part = Part::text(review.markdown());
            part.media_type = Some(Arc::from(form::MARKDOWN));
            artifacts.push(named("review", "review.md", vec![part])?);
        }
        if self.text {
            artifacts.push(named("review", "review.txt", vec![Part::text(review.text())])?);
        }
        Ok(artifacts)
    }
}

/// Runs what takes a while on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    Ok(tokio::task::spawn_blocking(work).await?)
}
