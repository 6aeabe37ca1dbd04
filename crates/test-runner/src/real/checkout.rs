//! A clean working tree of one commit, made by git outside the project's own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::project::Project;

/// Why there is no working tree.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// The project holds no such commit.
    #[error("there is no such commit")]
    Commit,
    /// git could not be run, or failed. The text is git's own.
    #[error("git: {0}")]
    Git(String),
}

/// A working tree of one commit. It is gone when this is dropped.
#[derive(Debug)]
pub struct Tree {
    repository: PathBuf,
    path: PathBuf,
}

/// git with nothing of the caller's: no hooks, no prompts, no configuration of the machine's, no pager.
fn git(repository: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(["-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"]);
    git.args(["-c", "advice.detachedHead=false"]).args(arguments);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND"] {
        git.env_remove(name);
    }
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    git.stdin(Stdio::null()).kill_on_drop(true);
    git
}

async fn output(mut git: Command) -> Result<String, Missing> {
    let output = git.output().await.map_err(|cause| Missing::Git(cause.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(Missing::Git(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// The repository to take working trees from. A bundle is unpacked into the folder first.
pub async fn repository(project: &Project, folder: &Path) -> Result<PathBuf, Missing> {
    if !project.path.is_file() {
        return Ok(project.path.clone());
    }
    let bundle = std::path::absolute(&project.path).map_err(|cause| Missing::Git(cause.to_string()))?;
    let unpacked = folder.join(&project.name);
    let new = folder.join(format!("{}.new", project.name));
    let clone = [OsStr::new("clone"), "--quiet".as_ref(), "--mirror".as_ref(), bundle.as_os_str(), new.as_os_str()];
    output(git(folder, clone)).await?;
    std::fs::rename(&new, &unpacked).map_err(|cause| Missing::Git(cause.to_string()))?;
    Ok(unpacked)
}

/// Finds a commit by what a message called it. Nothing that looks like an option, a range or a path gets to git.
pub async fn resolve(repository: &Path, said: Option<&str>) -> Result<String, Missing> {
    let said = said.unwrap_or("HEAD");
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-+#".contains(&byte);
    let is_name = said.len() <= 200
        && said.bytes().all(fine)
        && said.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !said.contains("..");
    if !is_name {
        return Err(Missing::Commit);
    }
    let wanted = format!("{said}^{{commit}}");
    let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
    match output(git(repository, arguments)).await {
        Ok(id) if id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(id),
        Err(Missing::Git(text)) if !text.is_empty() => Err(Missing::Git(text)),
        _ => {
            // A branch that is known from a remote only.
            let wanted = format!("refs/remotes/origin/{said}^{{commit}}");
            let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
            output(git(repository, arguments)).await.map_err(|_| Missing::Commit)
        }
    }
}

impl Tree {
    /// Makes the working tree of a commit at a path that is not there yet.
    pub async fn add(repository: &Path, commit: &str, path: PathBuf) -> Result<Self, Missing> {
        let tree = Self { repository: repository.to_owned(), path };
        let arguments = ["worktree", "add", "--quiet", "--detach", "--force"].map(OsStr::new);
        let arguments = arguments.into_iter().chain([tree.path.as_os_str(), commit.as_ref()]);
        output(git(repository, arguments)).await?;
        Ok(tree)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes it away, as dropping it does, without holding up anybody.
    pub async fn remove(self) {
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.path.exists()
            && let Err(cause) = std::fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%cause, "a working tree is still there: {}", self.path.display());
        }
        prune(&self.repository);
    }
}

/// Forgets working trees whose folders are gone.
pub fn prune(repository: &Path) {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(repository).args(["worktree", "prune", "--expire", "now"]);
    git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !git.status().is_ok_and(|status| status.success()) {
        tracing::warn!("git still remembers a working tree in {}", repository.display());
    }
}
