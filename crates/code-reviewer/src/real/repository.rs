//! The repository of a project, which is only read.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::config::Project;

/// git could not be run, or failed. The text is git's own.
#[derive(Debug, thiserror::Error)]
#[error("git: {0}")]
pub struct GitError(String);

impl From<std::io::Error> for GitError {
    fn from(cause: std::io::Error) -> Self {
        Self(cause.to_string())
    }
}

/// A repository.
#[derive(Debug)]
pub struct Repository {
    path: PathBuf,
    /// Where a bundle was unpacked.
    _unpacked: Option<tempfile::TempDir>,
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

async fn output(mut git: Command) -> Result<String, GitError> {
    let output = git.output().await?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(GitError(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Whether a path stays inside a folder, whatever the folder is.
pub fn is_inside(path: &str) -> bool {
    let plain = !path.is_empty()
        && !path.contains(['\n', '\0'])
        && !path.split('/').any(|piece| piece == "." || piece.is_empty());
    plain && Path::new(path).components().all(|piece| matches!(piece, Component::Normal(_)))
}

impl Repository {
    /// The repository of a project. A bundle is unpacked into a temporary folder.
    pub async fn open(project: &Project) -> Result<Self, GitError> {
        if !project.path.is_file() {
            return Ok(Self { path: project.path.clone(), _unpacked: None });
        }
        let bundle = std::path::absolute(&project.path)?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("repository");
        let clone =
            [OsStr::new("clone"), "--quiet".as_ref(), "--mirror".as_ref(), bundle.as_os_str(), path.as_os_str()];
        output(git(folder.path(), clone)).await?;
        Ok(Self { path, _unpacked: Some(folder) })
    }

    /// Its branches.
    pub async fn branches(&self) -> Result<Vec<String>, GitError> {
        let names = output(git(&self.path, ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"])).await?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// The commit of a branch, a tag or a commit's own name. Nothing that looks like an option, a range or a path gets
    /// to git. None: there is none.
    pub async fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-+#".contains(&byte);
        let is_name = name.len() <= 200
            && name.bytes().all(fine)
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && !name.contains("..");
        if !is_name {
            return Ok(None);
        }
        // What only a remote has counts as well.
        for wanted in [format!("{name}^{{commit}}"), format!("refs/remotes/origin/{name}^{{commit}}")] {
            let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
            match output(git(&self.path, arguments)).await {
                Ok(id) if id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => return Ok(Some(id)),
                Err(GitError(words)) if !words.is_empty() => return Err(GitError(words)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The files of a commit, each as text; none where there is no such file. Bytes that are no UTF-8 are shown as
    /// U+FFFD, as they are in diffs.
    pub async fn texts(&self, commit: &str, paths: &[&str]) -> Result<Vec<Option<String>>, GitError> {
        let mut git = git(&self.path, ["cat-file", "--batch"]);
        let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(GitError("it has no pipes".to_owned()));
        };
        let asked: Vec<bool> = paths.iter().map(|path| is_inside(path)).collect();
        let lines: String =
            paths.iter().filter(|path| is_inside(path)).map(|path| format!("{commit}:{path}\n")).collect();
        let writing = async move {
            input.write_all(lines.as_bytes()).await?;
            input.shutdown().await
        };
        let mut bytes = Vec::new();
        let (written, read) = tokio::join!(writing, output.read_to_end(&mut bytes));
        written?;
        read?;
        child.wait().await?;
        let mut rest = bytes.as_slice();
        asked.iter().map(|asked| if *asked { next(&mut rest) } else { Ok(None) }).collect()
    }

    /// A working tree of a commit at a path that is not there yet.
    pub async fn tree(&self, commit: &str, path: PathBuf) -> Result<Tree, GitError> {
        let tree = Tree { repository: self.path.clone(), path };
        let arguments = ["worktree", "add", "--quiet", "--detach", "--force"].map(OsStr::new);
        let arguments = arguments.into_iter().chain([tree.path.as_os_str(), commit.as_ref()]);
        output(git(&self.path, arguments)).await?;
        Ok(tree)
    }
}

/// The next answer of `git cat-file --batch`: a line with the size, the content and a line end; or a line that ends
/// otherwise.
fn next(rest: &mut &[u8]) -> Result<Option<String>, GitError> {
    let cut = || GitError("its answer was cut off".to_owned());
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(cut)?;
    let line = String::from_utf8_lossy(&rest[..end]).into_owned();
    *rest = &rest[end + 1..];
    let mut words = line.split(' ');
    let (Some(_), Some(kind), Some(size), None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    let Ok(size) = size.parse::<usize>() else { return Ok(None) };
    let content = rest.get(..size).ok_or_else(cut)?;
    *rest = rest.get(size + 1..).ok_or_else(cut)?;
    Ok((kind == "blob").then(|| String::from_utf8_lossy(content).into_owned()))
}

/// A working tree. It is gone when this is dropped.
#[derive(Debug)]
pub struct Tree {
    repository: PathBuf,
    path: PathBuf,
}

impl Tree {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.path.exists()
            && let Err(cause) = std::fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%cause, "a working tree is still there: {}", self.path.display());
        }
        let mut git = std::process::Command::new("git");
        git.arg("-C").arg(&self.repository).args(["worktree", "prune", "--expire", "now"]);
        git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !git.status().is_ok_and(|status| status.success()) {
            tracing::warn!("git still remembers a working tree in {}", self.repository.display());
        }
    }
}

#[test]
fn a_path_stays_inside() {
    for inside in ["a", "a/b c.py", "ä/\"q\"", "-x", "..a"] {
        assert!(is_inside(inside), "{inside}");
    }
    for outside in ["", "/a", "../a", "a/../b", "./a", "a//b", "a/", "a\nb", "a/./b"] {
        assert!(!is_inside(outside), "{outside}");
    }
}
