//! A PostgreSQL of the tests' own: Debian's programs, a temporary folder, a unix socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::skip;

/// A server that runs until this is dropped, or until the test's process is gone.
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    /// Whom it runs as: it refuses to be root.
    user: Option<(u32, u32)>,
    databases: AtomicU32,
    /// Stops it and clears up when its standard input ends.
    keeper: Child,
}

impl Postgres {
    /// The server that all tests of one process share. None, said aloud, where the programs are missing.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// A server for one test, which may stop it. None, said aloud, where the programs are missing.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skip("PostgreSQL is not here; Debian's package is postgresql");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("a2a-postgres-").tempdir().unwrap().keep();
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let user = is_root.then(|| user("postgres").expect("Debian's package makes the user postgres"));
        if let Some((uid, gid)) = user {
            chown(&folder, Some(uid), Some(gid)).unwrap();
        }
        let mut keeper = Command::new("sh");
        if let Some((uid, gid)) = user {
            keeper.uid(uid).gid(gid);
        }
        let script = r#"
            cd "$2" || exit 1
            "$1/initdb" -D data -A trust -U a2a -E UTF8 --locale=C --no-sync >initdb.log 2>&1 || exit 1
            cat >>data/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '$2'
max_connections = 300
fsync = off
END
            "$1/pg_ctl" -D data -w -l log start >/dev/null || exit 1
            echo ready
            cat >/dev/null
            "$1/pg_ctl" -D data -w -m immediate stop >/dev/null 2>&1
            rm -rf "$2"
        "#;
        keeper.args(["-c", script, "sh"]).arg(&programs).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = keeper.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said = || {
            let logs = ["initdb.log", "log"].map(|log| std::fs::read_to_string(folder.join(log)).unwrap_or_default());
            logs.concat()
        };
        assert_eq!(line, "ready\n", "PostgreSQL does not start: {}", said());
        Some(Self { programs, folder, user, databases: AtomicU32::new(0), keeper })
    }

    /// A new database. Gives its name.
    pub fn database(&self) -> String {
        let name = format!("t{}", self.databases.fetch_add(1, Ordering::SeqCst));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Where a database is.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://a2a@localhost/{database}?host={}", self.folder.display())
    }

    /// The socket that it listens on.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Runs statements. Gives what they select, a row a line.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "a2a", "-d", database, "-h"]);
        let output = psql.arg(&self.folder).args(["-c", statements]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}: {said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Holds advisory lock 7 until this is dropped; a window that a trigger opens.
    pub fn hold(&self, database: &str) -> Held {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-U", "a2a", "-d", database, "-h"]).arg(&self.folder);
        let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(psql.stdin.as_ref().unwrap(), "SELECT 'held' FROM pg_advisory_lock(7);").unwrap();
        let mut line = String::new();
        BufReader::new(psql.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Held(psql)
    }

    /// Stops it as a crash would.
    pub fn stop(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Starts it after [`Postgres::stop`].
    pub fn start_again(&self) {
        self.control(&["-l", "log", "start"]);
    }

    /// Lets nobody in as this role without a password, and gives it one.
    pub fn guard(&self, role: &str, password: &str) {
        self.sql("postgres", &format!("CREATE ROLE {role} LOGIN PASSWORD '{password}'"));
        let rules = self.folder.join("data/pg_hba.conf");
        let text = std::fs::read_to_string(&rules).unwrap();
        std::fs::write(&rules, format!("local all {role} scram-sha-256\n{text}")).unwrap();
        self.sql("postgres", "SELECT pg_reload_conf()");
    }

    fn control(&self, arguments: &[&str]) {
        let mut control = Command::new(self.programs.join("pg_ctl"));
        if let Some((uid, gid)) = self.user {
            control.uid(uid).gid(gid);
        }
        control.current_dir(&self.folder).args(["-D", "data", "-w"]).args(arguments).stdout(Stdio::null());
        assert!(control.status().unwrap().success(), "pg_ctl {arguments:?}");
    }
}

/// Somebody who holds a lock.
pub struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The folder of the newest version's programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let debian = versions.map(|version| version.path()).max_by_key(|path| number(path)).map(|path| path.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = debian.into_iter().chain(std::env::split_paths(&path));
    folders.into_iter().find(|folder| ["initdb", "pg_ctl", "psql"].iter().all(|program| folder.join(program).is_file()))
}

/// The numbers of a user and its group.
fn user(name: &str) -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
