//! The folder of an environment.
//!
//! ```text
//! current -> builds/2026.10.06-1-5b1c0d9e4f21    what is live
//! builds/2026.10.06-1-5b1c0d9e4f21/              a build, unpacked: its name and the start of its archive's SHA-256
//! deployed.json                                  what went live so far, the newest last
//! rollout.json                                   the roll-out that goes on, from just before the switch to its end
//! lock                                           held by the process that rolls out
//! ```
//!
//! Whenever the process dies, `current` leads to the old build or to the new one, both whole: a build gets its name
//! only when all of it is there, and the link is exchanged in one step. What had a name that begins with a dot was on its
//! way in or out, and is swept away by whoever has the lock next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::archive::{Archive, Refused, Unpacked};
use super::check::Saw;

/// How often another process is asked whether it still has the lock.
const AGAIN: Duration = Duration::from_millis(50);
/// So many entries has `deployed.json`.
const REMEMBERED: usize = 100;

/// A build in an environment: its name and the digest of its archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its name.
    pub name: String,
    /// The SHA-256 of its archive.
    pub sha256: String,
}

impl Build {
    /// The name of its folder.
    fn folder(&self) -> String {
        format!("{}-{}", self.name, &self.sha256[..self.sha256.len().min(12)])
    }

    fn target(&self) -> PathBuf {
        Path::new("builds").join(self.folder())
    }
}

/// A build that went live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployed {
    /// The task that did it.
    pub task: String,
    /// The build.
    #[serde(flatten)]
    pub build: Build,
    /// The build that was live before it.
    pub before: Option<String>,
    /// When, in UTC.
    pub time: String,
    /// Who approved.
    pub approved_by: Vec<String>,
    /// What the checks saw.
    pub checks: Vec<Saw>,
}

/// A roll-out that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// The task.
    pub task: String,
    /// The build that goes live.
    pub to: Build,
    /// Where `current` led before; none when it was not there.
    pub from: Option<PathBuf>,
    /// It is being taken back: after this, `current` leads to where it did.
    pub back: bool,
    /// What the checks saw that speak against it.
    pub checks: Vec<Saw>,
}

/// The folder of an environment.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
    turn: Arc<Mutex<()>>,
}

/// The folder, while this process and this turn have it for themselves.
#[derive(Debug)]
pub struct Held {
    root: PathBuf,
    _lock: File,
    _turn: OwnedMutexGuard<()>,
}

impl Place {
    /// Opens the folder, and makes it if there is none. What a process that died has left half done is swept away,
    /// unless another process is at work there.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root.join("builds"))?;
        let root = fs::canonicalize(root)?;
        let place = Self { root, turn: Arc::default() };
        if place.root.join("current").symlink_metadata().is_ok_and(|data| !data.is_symlink()) {
            let words = "`current` is there and is no link; move it away, and the first roll-out makes the link";
            return Err(io::Error::other(words));
        }
        if let (Ok(turn), Some(lock)) = (place.turn.clone().try_lock_owned(), place.try_lock("start")?) {
            Held { root: place.root.clone(), _lock: lock, _turn: turn }.sweep()?;
        }
        Ok(place)
    }

    /// Waits until this turn has the folder for itself. `busy` is called once if somebody else has it.
    pub async fn hold(&self, owner: &str, busy: impl AsyncFnOnce()) -> io::Result<Held> {
        let mut busy = Some(busy);
        let turn = match self.turn.clone().try_lock_owned() {
            Ok(turn) => turn,
            Err(_) => {
                if let Some(busy) = busy.take() {
                    busy().await;
                }
                self.turn.clone().lock_owned().await
            }
        };
        loop {
            if let Some(lock) = self.try_lock(owner)? {
                let held = Held { root: self.root.clone(), _lock: lock, _turn: turn };
                held.sweep()?;
                return Ok(held);
            }
            if let Some(busy) = busy.take() {
                busy().await;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The lock, if nobody has it. Its file names who had it last. The system lets go of it when the process dies.
    fn try_lock(&self, owner: &str) -> io::Result<Option<File>> {
        let path = self.root.join("lock");
        let mut lock = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(cause)) => return Err(cause),
        }
        lock.set_len(0)?;
        writeln!(lock, "{owner}, process {}", std::process::id())?;
        Ok(Some(lock))
    }

    /// What went live so far, the newest last.
    pub fn deployed(&self) -> io::Result<Vec<Deployed>> {
        Ok(read(&self.root.join("deployed.json"))?.unwrap_or_default())
    }

    /// The build to which the environment can be rolled back: the one of this name, or the one that was live before.
    pub fn earlier(&self, name: Option<&str>) -> io::Result<Option<Build>> {
        let deployed = self.deployed()?;
        let Some(live) = deployed.last().map(|one| &one.build) else { return Ok(None) };
        let fits = |build: &&Build| *build != live && name.is_none_or(|name| name == build.name) && self.has(build);
        Ok(deployed.iter().rev().map(|one| &one.build).find(fits).cloned())
    }

    /// Whether a build's folder is there.
    pub fn has(&self, build: &Build) -> bool {
        self.root.join(build.target()).is_dir()
    }
}

impl Held {
    /// Removes what was on its way in or out. `builds` is this agent's alone; beside it there may be files of others.
    fn sweep(&self) -> io::Result<()> {
        for name in [".current", ".deployed.json", ".rollout.json"] {
            match fs::remove_file(self.root.join(name)) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
                _ => {}
            }
        }
        for entry in fs::read_dir(self.root.join("builds"))? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// The folder of a build.
    pub fn folder(&self, build: &Build) -> PathBuf {
        self.root.join(build.target())
    }

    /// Unpacks a build, unless its folder is there already.
    pub fn unpack(
        &self,
        archive: &Archive,
        build: &Build,
        limit: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Unpacked>, Refused> {
        let folder = self.folder(build);
        if folder.is_dir() {
            return Ok(None);
        }
        let on_its_way = self.root.join("builds").join(format!(".{}", build.folder()));
        let unpacked = archive.unpack(&on_its_way, &build.sha256, limit, stop)?;
        // All of it is on the disk before it has its name.
        rustix::fs::syncfs(File::open(&on_its_way)?).map_err(io::Error::from)?;
        fs::rename(&on_its_way, &folder)?;
        sync(&self.root.join("builds"))?;
        Ok(Some(unpacked))
    }

    /// Removes a build that did not go live, unless it is needed.
    pub fn discard(&self, build: &Build) -> io::Result<()> {
        let is_known = self.deployed()?.iter().any(|one| one.build == *build);
        if is_known || self.current()?.is_some_and(|current| current == build.target()) {
            return Ok(());
        }
        self.remove(&build.folder())
    }

    /// Where `current` leads.
    pub fn current(&self) -> io::Result<Option<PathBuf>> {
        match fs::read_link(self.root.join("current")) {
            Ok(target) => Ok(Some(target)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// Whether this build is live.
    pub fn is_live(&self, build: &Build) -> io::Result<bool> {
        Ok(self.current()?.is_some_and(|current| current == build.target()))
    }

    /// What went live so far.
    pub fn deployed(&self) -> io::Result<Vec<Deployed>> {
        Ok(read(&self.root.join("deployed.json"))?.unwrap_or_default())
    }

    /// The roll-out that goes on, or was broken off.
    pub fn rollout(&self) -> io::Result<Option<Rollout>> {
        read(&self.root.join("rollout.json"))
    }

    /// Writes down a roll-out, then lets `current` lead to its build, or back to where it did. The way back is taken
    /// even when it cannot be written down, because the disk is full.
    pub fn switch(&self, rollout: &Rollout) -> io::Result<()> {
        let written = write(&self.root, "rollout.json", rollout);
        match (rollout.back, &rollout.from) {
            (false, _) => written.and_then(|()| self.lead(&rollout.to.target())),
            (true, Some(from)) => self.lead(from),
            (true, None) => match fs::remove_file(self.root.join("current")) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
                _ => sync(&self.root),
            },
        }
    }

    fn lead(&self, target: &Path) -> io::Result<()> {
        let new = self.root.join(".current");
        match fs::remove_file(&new) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        symlink(target, &new)?;
        fs::rename(new, self.root.join("current"))?;
        sync(&self.root)
    }

    /// The roll-out is at its end, well or not.
    pub fn settle(&self) -> io::Result<()> {
        match fs::remove_file(self.root.join("rollout.json")) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => sync(&self.root),
        }
    }

    /// The roll-out went well: writes down what is live now.
    pub fn went_live(&self, deployed: Deployed) -> io::Result<()> {
        let mut all = self.deployed()?;
        all.push(deployed);
        all.drain(..all.len().saturating_sub(REMEMBERED));
        write(&self.root, "deployed.json", &all)?;
        self.settle()
    }

    /// Removes builds beyond the newest `keep`.
    pub fn prune(&self, keep: usize) -> io::Result<()> {
        let mut kept: Vec<String> = Vec::new();
        for build in self.deployed()?.iter().rev().map(|one| one.build.folder()) {
            if kept.len() < keep && !kept.contains(&build) {
                kept.push(build);
            }
        }
        for entry in fs::read_dir(self.root.join("builds"))? {
            if let Ok(name) = entry?.file_name().into_string()
                && !kept.contains(&name)
            {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Removes the folder of a build. It loses its name first, so that what has a name is whole.
    fn remove(&self, folder: &str) -> io::Result<()> {
        let builds = self.root.join("builds");
        let gone = builds.join(format!(".old-{}", folder.trim_start_matches('.')));
        match fs::rename(builds.join(folder), &gone) {
            Ok(()) => fs::remove_dir_all(gone),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(cause) => Err(cause),
        }
    }
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<Option<T>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(cause),
    };
    let wrong = |cause| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {cause}", path.display()));
    serde_json::from_slice(&text).map(Some).map_err(wrong)
}

/// Writes a file so that it holds the old or the new text, whenever the process dies.
fn write(root: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    let new = root.join(format!(".{name}"));
    let mut file = File::create(&new)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(new, root.join(name))?;
    sync(root)
}

/// Names in the folder are on the disk when this returns.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(name: &str) -> Build {
        Build { name: name.to_owned(), sha256: format!("{name:0<64}") }
    }

    fn deployed(name: &str) -> Deployed {
        Deployed {
            task: format!("task-{name}"),
            build: build(name),
            before: None,
            time: "2026-10-06T09:00:00Z".to_owned(),
            approved_by: vec!["ada".to_owned()],
            checks: Vec::new(),
        }
    }

    fn rollout(held: &Held, name: &str) -> Rollout {
        let from = held.current().unwrap();
        Rollout { task: format!("task-{name}"), to: build(name), from, back: false, checks: Vec::new() }
    }

    fn live(held: &Held, name: &str, keep: usize) {
        fs::create_dir(held.folder(&build(name))).unwrap();
        held.switch(&rollout(held, name)).unwrap();
        held.went_live(deployed(name)).unwrap();
        held.prune(keep).unwrap();
    }

    async fn held(place: &Place) -> Held {
        place.hold("test", async || panic!("somebody has it")).await.unwrap()
    }

    #[tokio::test]
    async fn builds_go_live_back_and_away() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(folder.path()).unwrap();
        let held = held(&place).await;
        assert_eq!(held.current().unwrap(), None);
        for name in ["1", "2", "3", "4"] {
            live(&held, name, 3);
        }
        assert!(held.is_live(&build("4")).unwrap());
        let there = |name: &str| held.folder(&build(name)).is_dir();
        assert_eq!([there("1"), there("2"), there("3"), there("4")], [false, true, true, true]);
        assert_eq!(place.earlier(None).unwrap(), Some(build("3")));
        assert_eq!(place.earlier(Some("2")).unwrap(), Some(build("2")));
        assert_eq!(place.earlier(Some("1")).unwrap(), None);
        assert_eq!(place.earlier(Some("4")).unwrap(), None);
        let mut back = rollout(&held, "3");
        held.switch(&back).unwrap();
        assert_eq!(held.rollout().unwrap().as_ref(), Some(&back));
        assert!(held.is_live(&build("3")).unwrap());
        back.back = true;
        held.switch(&back).unwrap();
        assert!(held.is_live(&build("4")).unwrap());
        held.settle().unwrap();
        assert_eq!(held.rollout().unwrap(), None);
    }

    #[tokio::test]
    async fn the_first_roll_out_is_taken_back_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(folder.path()).unwrap();
        let held = held(&place).await;
        fs::create_dir(held.folder(&build("1"))).unwrap();
        let mut first = rollout(&held, "1");
        held.switch(&first).unwrap();
        held.discard(&build("1")).unwrap();
        assert!(held.folder(&build("1")).is_dir(), "what is live stays");
        first.back = true;
        held.switch(&first).unwrap();
        assert_eq!(held.current().unwrap(), None);
        held.discard(&build("1")).unwrap();
        assert!(!held.folder(&build("1")).exists());
    }

    #[tokio::test]
    async fn what_was_half_done_is_swept_by_whoever_comes_next_and_not_while_somebody_works() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(folder.path()).unwrap();
        let first = held(&place).await;
        fs::create_dir(folder.path().join("builds/.7-000")).unwrap();
        symlink("builds/7", folder.path().join(".current")).unwrap();
        let other = Place::open(folder.path()).unwrap();
        assert!(folder.path().join("builds/.7-000").exists());
        drop(first);
        drop(held(&other).await);
        assert!(!folder.path().join("builds/.7-000").exists());
        assert!(folder.path().join(".current").symlink_metadata().is_err());
    }

    #[tokio::test]
    async fn one_at_a_time_has_it_within_a_process_and_among_several() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(folder.path()).unwrap();
        let other = Place::open(folder.path()).unwrap();
        let first = held(&place).await;
        for waits in [&place, &other] {
            let told = std::cell::Cell::new(0);
            let hold = waits.hold("second", async || told.set(told.get() + 1));
            assert!(tokio::time::timeout(Duration::from_millis(120), hold).await.is_err());
            assert_eq!(told.get(), 1);
        }
        drop(first);
        held(&other).await;
    }

    #[test]
    fn a_current_that_is_no_link_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("current")).unwrap();
        assert!(Place::open(folder.path()).unwrap_err().to_string().contains("no link"));
    }
}
