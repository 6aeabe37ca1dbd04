//! SQLite: one file for one agent, written by one process.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::MigrateError;
use sqlx::{AnyConnection, Connection};

use super::{Pools, Sql, migrate, sql};
use crate::store::StoreError;

/// How many connections read beside the one that writes.
const READERS: u32 = 4;
/// How long a call waits for a connection before it fails.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(10);

/// Why a file cannot be the store. The text names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CannotOpen {
    /// Another process has it.
    #[error("{}: another agent keeps its tasks here; stop it, or name another file with --store sqlite:PATH", .0.display())]
    InUse(PathBuf),
    /// A newer version of this program wrote it.
    #[error("{}: a newer version of this agent wrote this file; use that one, or another file with --store sqlite:PATH", .0.display())]
    Newer(PathBuf),
    /// It is no store.
    #[error("{}: {cause}; is it a database of this agent's? --store sqlite:PATH names another file, --store memory none", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        cause: String,
    },
    /// The system refuses.
    #[error("{}: {cause}; --store sqlite:PATH names another file, --store memory none", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
}

/// The file that was opened. One that is moved away while the agent runs is still written to, and nobody would find it
/// at the next start.
#[derive(Debug)]
pub(super) struct OneFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// Nobody else opens the file while this is held.
    _lock: File,
}

impl OneFile {
    /// An error that names the file, when it is not where it was opened any more.
    pub(super) fn is_in_its_place(&self) -> Result<(), StoreError> {
        let why = match std::fs::metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == (self.device, self.inode) => return Ok(()),
            Ok(_) => "another file stands in its place".to_owned(),
            Err(cause) => cause.to_string(),
        };
        let path = self.path.display();
        Err(StoreError::failed(format!(
            "{path}: {why}; tasks are kept again when the file is back, or after a restart"
        )))
    }
}

impl Sql {
    /// Opens a file, or makes it with the folders above it. Commits survive `kill -9`, not the loss of power.
    pub async fn sqlite(path: &Path) -> Result<Self, CannotOpen> {
        let system = |cause| CannotOpen::System { path: path.to_owned(), cause };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(system)?;
        }
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push("-lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(system)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CannotOpen::InUse(path.to_owned())),
            Err(TryLockError::Error(cause)) => return Err(system(cause)),
        }
        // So that what the system refuses is said in its words.
        let opened = File::options().create(true).truncate(false).read(true).write(true).open(path).map_err(system)?;
        let opened = opened.metadata().map_err(system)?;
        // Seen from wherever the process goes later.
        let place = std::path::absolute(path).map_err(system)?;
        let file = OneFile { path: place, device: opened.dev(), inode: opened.ino(), _lock: lock };

        sqlx::any::install_default_drivers();
        let not_a_store = |cause: String| CannotOpen::NotAStore { path: path.to_owned(), cause };
        let url = url(path).ok_or_else(|| not_a_store("the path cannot be written as a URL".to_owned()))?;
        let cause = |cause: sqlx::Error| not_a_store(plain(&cause));
        let connect: AnyConnectOptions = url.parse().map_err(cause)?;
        // Not one of a pool's: a pool tries again for a while what fails here at once.
        let mut first = AnyConnection::connect_with(&connect).await.map_err(cause)?;
        set(&mut first).await.map_err(cause)?;
        match migrate(&mut first, "TEXT").await {
            Ok(()) => {}
            Err(MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_)) => {
                return Err(CannotOpen::Newer(path.to_owned()));
            }
            Err(MigrateError::Execute(failed)) => return Err(cause(failed)),
            Err(failed) => return Err(not_a_store(failed.to_string())),
        }
        let options = AnyPoolOptions::new()
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(ACQUIRE_LIMIT)
            .after_connect(|connection, _| Box::pin(set(connection)));
        let write = options.clone().max_connections(1).min_connections(1);
        let write = write.connect_with(connect.clone()).await.map_err(cause)?;
        let read = options.max_connections(READERS).connect_with(connect).await.map_err(cause)?;
        first.close().await.map_err(cause)?;
        Ok(Self {
            pools: RwLock::new(Pools { write, read }),
            #[cfg(feature = "postgres")]
            shared: None,
            file: Some(file),
        })
    }
}

async fn set(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    for setting in [
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = NORMAL",
        "PRAGMA busy_timeout = 5000",
        "PRAGMA foreign_keys = OFF",
    ] {
        sql!(setting).execute(&mut *connection).await?;
    }
    Ok(())
}

/// What SQLite says, without what sqlx adds.
fn plain(cause: &sqlx::Error) -> String {
    match cause {
        sqlx::Error::Database(cause) => cause.message().to_owned(),
        cause => cause.to_string(),
    }
}

/// The path as a URL of SQLite's, which percent-decodes it.
fn url(path: &Path) -> Option<String> {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');
    let path = std::path::absolute(path).ok()?;
    Some(format!("sqlite://{}?mode=rw", percent_encoding::utf8_percent_encode(path.to_str()?, KEPT)))
}
