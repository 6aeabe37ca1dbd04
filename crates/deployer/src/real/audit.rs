//! The audit log: who asked for what, who allowed it, and what came of it.
//!
//! One line of JSON an entry, in a file that is only ever added to. Each entry holds the hash of the line before it, so
//! that a line which was changed, taken out or put in later shows: `deployer audit --verify FILE`. What was cut off at
//! the end shows to whoever has noted the last hash: `--head HASH`.
//!
//! ```json
//! {"entry":{"number":2,"time":"2026-10-06T09:00:01Z","event":"approved","task":"ecf2…","by":"ada","before":"5b1c…"},"hash":"90f3…"}
//! ```

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::archive::hex;

/// What stands in the place of a hash before the first entry.
const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// No entry is longer, in bytes.
const LONGEST: u64 = 64 << 10;

/// What an entry tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What happened, in a word: `asked`, `approved`, `refused`, `turned-away`, `expired`, `rejected`, `begun`, `switched`,
    /// `deployed`, `rolled-back`, `failed`, `stopped`, `resumed`, `cut`.
    pub event: String,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// The SHA-256 of the build's archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Who did it: the operator, or the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// More, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 1.
    pub number: u64,
    /// When it was written, in UTC.
    pub time: String,
    /// What it tells.
    #[serde(flatten)]
    pub told: Told,
    /// The hash of the line before it.
    pub before: String,
}

impl fmt::Display for Entry {
    /// One line for a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = &self.told;
        write!(f, "{} {}", self.time, told.event)?;
        let members =
            [("build", &told.build), ("environment", &told.environment), ("by", &told.by), ("task", &told.task)];
        for (name, value) in members {
            if let Some(value) = value {
                write!(f, " {name}={}", value.escape_debug())?;
            }
        }
        match &told.words {
            Some(words) => write!(f, ": {}", words.escape_debug()),
            None => Ok(()),
        }
    }
}

/// A line: an entry as its bytes are hashed, and the hash.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    entry: &'a RawValue,
    hash: &'a str,
}

/// The log of this agent. Several processes may add to one file.
#[derive(Debug, Clone)]
pub struct Audit {
    path: PathBuf,
}

impl Audit {
    /// Opens the log, and makes its file if there is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let audit = Self { path: path.to_owned() };
        audit.locked()?;
        Ok(audit)
    }

    /// The file, held so that nobody else adds to it.
    fn locked(&self) -> io::Result<File> {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)?;
        file.lock()?;
        Ok(file)
    }

    /// Adds an entry. When this returns, the entry is on the disk.
    pub fn add(&self, told: Told) -> io::Result<()> {
        let mut file = self.locked()?;
        let (last, whole) = last(&mut file)?;
        if !whole {
            // The end of a line that was being written when its process died; nobody was told of it.
            let length = file.stream_position()?;
            file.set_len(length)?;
        }
        let mut last = last;
        let mut text = String::new();
        if !whole {
            last = push(&mut text, last, Told { event: "cut".to_owned(), ..Told::default() })?;
        }
        push(&mut text, last, told)?;
        // One write, so that a full disk or a kill leaves at most one torn line.
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }
}

/// Writes the next line after one of this number and hash. Gives its own.
fn push(text: &mut String, (number, before): (u64, String), told: Told) -> io::Result<(u64, String)> {
    let entry = Entry { number: number + 1, time: jiff::Timestamp::now().to_string(), told, before };
    let entry = serde_json::value::to_raw_value(&entry)?;
    let hash = hex(digest(&SHA256, entry.get().as_bytes()).as_ref());
    text.push_str(&serde_json::to_string(&Line { entry: &entry, hash: &hash })?);
    text.push('\n');
    Ok((number + 1, hash))
}

/// The number and hash of the last whole line, and whether the file ends with it. The file then stands at its end.
fn last(file: &mut File) -> io::Result<((u64, String), bool)> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(2 * LONGEST);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let Some(newline) = end.iter().rposition(|byte| *byte == b'\n') else {
        file.seek(SeekFrom::Start(0))?;
        return match from {
            0 => Ok(((0, FIRST.to_owned()), end.is_empty())),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the audit log ends in no line")),
        };
    };
    let start = end[..newline].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let read = std::str::from_utf8(&end[start..newline]).ok().and_then(|line| read(line).ok());
    let (entry, hash) = read.ok_or_else(|| {
        let words = "the audit log's last line is no entry; `deployer audit --verify` tells more";
        io::Error::new(io::ErrorKind::InvalidData, words)
    })?;
    file.seek(SeekFrom::Start(from + newline as u64 + 1))?;
    Ok(((entry.number, hash), newline + 1 == end.len()))
}

/// Reads a line, and checks that its hash is that of its entry.
fn read(line: &str) -> Result<(Entry, String), String> {
    let line: Line<'_> = serde_json::from_str(line).map_err(|_| "it is no entry".to_owned())?;
    if hex(digest(&SHA256, line.entry.get().as_bytes()).as_ref()) != line.hash {
        return Err("its hash is not that of its entry: it was changed".to_owned());
    }
    let entry = serde_json::from_str(line.entry.get()).map_err(|_| "it is no entry".to_owned())?;
    Ok((entry, line.hash.to_owned()))
}

/// Why a log cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A line is wrong.
    #[error("line {line}: {why}")]
    Line {
        /// Which one, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The hash that somebody has noted is in none of its lines.
    #[error("no line has the hash {0}: lines were taken away from the end, or it is another log's")]
    Head(String),
}

/// What a whole log comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// How many entries it has.
    pub entries: u64,
    /// The hash of the last line; note it to see later that nothing was taken away.
    pub head: String,
    /// Its last line is torn: a process died while it wrote it. The next entry takes its place.
    pub torn: bool,
}

/// Reads a log from start to end and checks each line; hands on each entry. `head` is a hash that one of the lines must
/// have.
pub fn verify(path: &Path, head: Option<&str>, mut each: impl FnMut(&Entry)) -> Result<Whole, Broken> {
    let mut lines = BufReader::new(File::open(path)?);
    let mut whole = Whole { entries: 0, head: FIRST.to_owned(), torn: false };
    let mut found = head.is_none_or(|head| head == FIRST);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut lines).take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let number = whole.entries + 1;
        let wrong = |why: &str| Broken::Line { line: number, why: why.to_owned() };
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            if lines.fill_buf()?.is_empty() {
                whole.torn = true;
                break;
            }
            return Err(wrong("it is too long for an entry"));
        }
        let text = std::str::from_utf8(&line).map_err(|_| wrong("it is no text"))?;
        let (entry, hash) = read(text).map_err(|why| wrong(&why))?;
        if entry.number != number {
            let why = format!("it is entry {}, not {number}: lines were taken out, put in or moved", entry.number);
            return Err(wrong(&why));
        }
        if entry.before != whole.head {
            return Err(wrong("it does not follow the line before it: one of the two was changed"));
        }
        each(&entry);
        found |= head == Some(hash.as_str());
        whole.entries = number;
        whole.head = hash;
    }
    match head {
        Some(head) if !found => Err(Broken::Head(head.to_owned())),
        _ => Ok(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(event: &str) -> Told {
        Told { event: event.to_owned(), by: Some("ada".to_owned()), ..Told::default() }
    }

    fn log(entries: usize) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/audit.jsonl");
        let audit = Audit::open(&path).unwrap();
        for number in 0..entries {
            audit.add(told(&format!("event-{number}"))).unwrap();
        }
        (folder, path)
    }

    fn verified(path: &Path) -> Result<Whole, String> {
        verify(path, None, |_| {}).map_err(|broken| broken.to_string())
    }

    #[test]
    fn what_was_written_is_read_in_its_order() {
        let (_folder, path) = log(3);
        let mut events = Vec::new();
        let whole = verify(&path, None, |entry| events.push(entry.told.event.clone())).unwrap();
        assert_eq!((whole.entries, whole.torn), (3, false));
        assert_eq!(events, ["event-0", "event-1", "event-2"]);
        verify(&path, Some(&whole.head), |_| {}).unwrap();
    }

    #[test]
    fn a_line_that_was_changed_taken_out_put_in_or_moved_shows() {
        let (_folder, path) = log(4);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let is_broken = |lines: &[&str], words: &str| {
            fs::write(&path, lines.join("\n") + "\n").unwrap();
            let broken = verified(&path).unwrap_err();
            assert!(broken.contains(words), "{broken}");
        };
        let changed = lines[1].replace("ada", "eve");
        is_broken(&[lines[0], &changed, lines[2], lines[3]], "line 2: its hash is not that of its entry");
        let hash = hex(digest(&SHA256, &serde_json::to_vec(&entry_of(&changed)).unwrap()).as_ref());
        let forged = changed.split_once(r#"},"hash""#).map(|(entry, _)| format!(r#"{entry}}},"hash":"{hash}"}}"#));
        is_broken(&[lines[0], &forged.unwrap(), lines[2], lines[3]], "line 3: it does not follow the line before it");
        is_broken(&[lines[0], lines[2], lines[3]], "line 2: it is entry 3, not 2");
        is_broken(&[lines[0], lines[1], lines[1], lines[2]], "line 3: it is entry 2, not 3");
        is_broken(&[lines[1], lines[0]], "line 1: it is entry 2");
        is_broken(&[lines[0], "{}"], "line 2: it is no entry");
    }

    fn entry_of(line: &str) -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["entry"].clone()
    }

    #[test]
    fn what_was_cut_off_shows_to_whoever_noted_the_last_hash() {
        let (_folder, path) = log(3);
        let head = verified(&path).unwrap().head;
        let text = fs::read_to_string(&path).unwrap();
        let shorter: Vec<&str> = text.lines().take(2).collect();
        fs::write(&path, shorter.join("\n") + "\n").unwrap();
        assert_eq!(verified(&path).unwrap().entries, 2);
        let broken = verify(&path, Some(&head), |_| {}).unwrap_err();
        assert!(matches!(broken, Broken::Head(_)), "{broken}");
    }

    #[test]
    fn a_torn_last_line_gives_way_to_the_next_entry_and_is_told_of() {
        let (_folder, path) = log(2);
        let mut text = fs::read(&path).unwrap();
        text.extend_from_slice(br#"{"entry":{"num"#);
        fs::write(&path, &text).unwrap();
        assert!(verified(&path).unwrap().torn);
        Audit::open(&path).unwrap().add(told("after")).unwrap();
        let mut events = Vec::new();
        let whole = verify(&path, None, |entry| events.push(entry.told.event.clone())).unwrap();
        assert!(!whole.torn);
        assert_eq!(events, ["event-0", "event-1", "cut", "after"]);
        // The very first line may be the torn one.
        fs::write(&path, "{").unwrap();
        Audit::open(&path).unwrap().add(told("first")).unwrap();
        assert_eq!(verified(&path).unwrap().entries, 2);
    }

    #[test]
    fn two_that_add_at_once_make_one_chain() {
        let (_folder, path) = log(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let audit = Audit::open(&path).unwrap();
                    (0..25).for_each(|_| audit.add(told("together")).unwrap());
                });
            }
        });
        assert_eq!(verified(&path).unwrap().entries, 100);
    }
}
