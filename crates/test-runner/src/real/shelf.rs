//! The folder in which runs have theirs, and what an agent that died has left there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::process;

/// The folder of one agent, held for as long as it runs.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    /// Nobody sweeps the folder while this is held.
    _lock: File,
    next: AtomicU64,
}

/// The folder of one run. It is gone when this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Shelf {
    /// Makes a folder in `base` for this agent. Gives what agents that died have left there and was swept: folders and
    /// processes.
    pub fn open(base: &Path) -> io::Result<(Self, (usize, usize))> {
        fs::create_dir_all(base)?;
        let base = fs::canonicalize(base)?;
        let swept = sweep(&base);
        let name = (0..).map(|number: u32| base.join(format!("{}-{number}", std::process::id())));
        for folder in name {
            match fs::create_dir(&folder) {
                Ok(()) => {
                    let lock = File::create(folder.join("lock"))?;
                    lock.try_lock()?;
                    return Ok((Self { folder, _lock: lock, next: AtomicU64::new(1) }, swept));
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(cause),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where things of this agent's are kept that are no run's.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// A new folder for a run.
    pub fn run(&self) -> io::Result<Folder> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("run-{number}"));
        fs::create_dir(&folder)?;
        let folder = Folder(folder);
        fs::create_dir(folder.path().join("tmp"))?;
        Ok(folder)
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Folder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(cause) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%cause, "the folder of a run is still there: {}", self.0.display());
        }
    }
}

/// Removes what agents that died have left: their processes first, then their folders.
fn sweep(base: &Path) -> (usize, usize) {
    let (mut folders, mut processes) = (0, 0);
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let folder = entry.path();
        let is_dead = match File::open(folder.join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            // It was made a moment ago, or died before it had its lock.
            Err(_) => entry
                .metadata()
                .and_then(|data| data.modified())
                .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > std::time::Duration::from_secs(60))),
        };
        if folder.is_dir() && is_dead {
            processes += process::sweep(|mark| Path::new(mark).starts_with(&folder));
            if fs::remove_dir_all(&folder).is_ok() {
                folders += 1;
            }
        }
    }
    (folders, processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_held_stays_and_one_that_was_left_is_swept() {
        let base = tempfile::tempdir().unwrap();
        let (first, swept) = Shelf::open(base.path()).unwrap();
        assert_eq!(swept, (0, 0));
        let run = first.run().unwrap();
        let (second, swept) = Shelf::open(base.path()).unwrap();
        assert_eq!(swept, (0, 0));
        assert!(run.path().is_dir());
        drop(run);
        drop((first, second));
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
        let left = base.path().join("77-0");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("lock"), "").unwrap();
        let (_third, swept) = Shelf::open(base.path()).unwrap();
        assert_eq!(swept, (1, 0));
        assert!(!left.exists());
    }
}
