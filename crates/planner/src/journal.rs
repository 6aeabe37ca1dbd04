//! The journal of a job: what is sent and what was answered, kept before it is acted upon, so that a job whose planner
//! was killed goes on with the same tasks.
//!
//! A journal is a file of lines, each a JSON object. An entry counts when its whole line is there and was synced to the
//! disk; half a line at the end is one that nobody has acted upon, and is taken away. A job that goes on does the same
//! again from its beginning: what stands in the journal is taken from there and neither sent nor asked, so the log comes
//! out whole; the first thing that does not stand there happens. A message that stands there as sent, without its answer,
//! is treated as one whose reply was lost (`deliver.rs`). No credential is kept.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use client::Reply;
use protocol::error::RemoteError;
use protocol::{Message, MessageId, Task, TaskId};
use serde::{Deserialize, Serialize};

use crate::{Failure, Planner};

/// One line of a journal: an object whose one member names what it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Entry {
    /// The first one: what the job is, as whoever began it wrote it.
    Job { job: serde_json::Value },
    /// A message is about to be sent.
    Sent { step: String, agent: String, url: String, message: Message },
    /// It was answered with a direct message.
    Said { step: String, message: Arc<Message> },
    /// It was answered with a task, or a task was followed until it looked like this.
    Task { step: String, task: Arc<Task> },
    /// It was refused.
    Refused { step: String, code: i64, message: String },
    /// Somebody decided on an approval, which is about to be carried out.
    Decided { step: String, task: TaskId, question: Option<MessageId>, approves: bool, by: String },
}

impl Entry {
    fn step(&self) -> Option<&str> {
        match self {
            Self::Job { .. } => None,
            Self::Sent { step, .. }
            | Self::Said { step, .. }
            | Self::Task { step, .. }
            | Self::Refused { step, .. }
            | Self::Decided { step, .. } => Some(step),
        }
    }

    /// What a reply is in the journal.
    pub(crate) fn of(step: &str, reply: &Reply) -> Self {
        let step = step.to_owned();
        match reply {
            Reply::Task(task) => Self::Task { step, task: task.clone() },
            Reply::Message(message) => Self::Said { step, message: message.clone() },
            Reply::Error(error) => Self::Refused { step, code: error.code, message: error.message.clone() },
        }
    }
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be opened, read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// Another process has it open.
    #[error("{}: another planner is using this journal", .0.display())]
    InUse(PathBuf),
    /// A job would be begun over one that is there.
    #[error("{}: a job stands here already; --resume goes on with it", .0.display())]
    Taken(PathBuf),
    /// There is no job to go on with.
    #[error("{}: no job stands here that could go on", .0.display())]
    Empty(PathBuf),
    /// A line is no entry.
    #[error("{}, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// An open journal. One process at a time has it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    /// What stood there when it was opened, by step, in order, as far as it has not been taken.
    past: Mutex<HashMap<String, VecDeque<Entry>>>,
}

impl Journal {
    /// Begins a journal with what the job is. A file with a job in it is not written over.
    pub fn begin(path: &Path, job: serde_json::Value) -> Result<Self, JournalError> {
        let (file, entries) = open(path, true)?;
        if !entries.is_empty() {
            return Err(JournalError::Taken(path.to_owned()));
        }
        let journal = Self { path: path.to_owned(), file: Mutex::new(file), past: Mutex::default() };
        journal.keep(&Entry::Job { job })?;
        // The file's name is in its folder, which is to reach the disk too.
        if let Some(folder) = path.parent().filter(|_| cfg!(unix)) {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(|cause| journal.broken(cause))?;
        }
        Ok(journal)
    }

    /// Opens a journal to go on with its job, and says what that is.
    pub fn resume(path: &Path) -> Result<(Self, serde_json::Value), JournalError> {
        let (file, entries) = open(path, false)?;
        let mut entries = entries.into_iter();
        let Some(Entry::Job { job }) = entries.next() else { return Err(JournalError::Empty(path.to_owned())) };
        let mut past: HashMap<String, VecDeque<Entry>> = HashMap::new();
        for entry in entries {
            if let Some(step) = entry.step() {
                past.entry(step.to_owned()).or_default().push_back(entry);
            }
        }
        Ok((Self { path: path.to_owned(), file: Mutex::new(file), past: Mutex::new(past) }, job))
    }

    fn broken(&self, cause: std::io::Error) -> JournalError {
        JournalError::File { path: self.path.clone(), cause }
    }

    /// Writes an entry down and waits until the disk has it.
    pub(crate) fn keep(&self, entry: &Entry) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(entry).map_err(|cause| self.broken(cause.into()))?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).and_then(|()| file.sync_data()).map_err(|cause| self.broken(cause))
    }

    /// Whether something of a step stood there that has not been taken.
    pub(crate) fn has_past(&self, step: &str) -> bool {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        past.get(step).is_some_and(|entries| !entries.is_empty())
    }

    /// Takes the next entry of a step out of the past, if there is one that is wanted.
    pub(crate) fn past(&self, step: &str, wanted: impl FnOnce(&Entry) -> bool) -> Option<Entry> {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = past.get_mut(step)?;
        wanted(entries.front()?).then(|| entries.pop_front()).flatten()
    }
}

/// Opens and locks a journal, reads what stands there, and leaves the file at the end of its last whole line.
fn open(path: &Path, create: bool) -> Result<(File, Vec<Entry>), JournalError> {
    let broken = |cause| JournalError::File { path: path.to_owned(), cause };
    let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path);
    let mut file = file.map_err(broken)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(JournalError::InUse(path.to_owned())),
        Err(TryLockError::Error(cause)) => return Err(broken(cause)),
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(broken)?;
    let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(broken)?;
    let lines = content[..whole].split_inclusive(|byte| *byte == b'\n').enumerate();
    let entries = lines.map(|(at, line)| {
        let wrong = |cause: serde_json::Error| JournalError::Line {
            path: path.to_owned(),
            line: at + 1,
            why: format!("no entry of a journal ({cause})"),
        };
        serde_json::from_slice(line).map_err(wrong)
    });
    Ok((file, entries.collect::<Result<_, _>>()?))
}

impl Planner {
    /// The same planner, which keeps what it sends and hears in a journal, and takes from there what stood in it.
    pub fn with_journal(self, journal: Journal) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// Keeps an entry, if there is a journal. Nothing is acted upon that could not be kept.
    pub(crate) fn keep(&self, entry: &Entry) -> Result<(), Failure> {
        self.journal.as_ref().map_or(Ok(()), |journal| Ok(journal.keep(entry)?))
    }

    /// Whether the journal has something of a step that has not been told again.
    pub(crate) fn has_past(&self, step: &str) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.has_past(step))
    }

    /// The next entry of a step that stood in the journal, if it is one that is wanted.
    pub(crate) fn past(&self, step: &str, wanted: impl FnOnce(&Entry) -> bool) -> Option<Entry> {
        self.journal.as_ref()?.past(step, wanted)
    }

    /// The task as the journal says that it was seen next.
    pub(crate) fn past_task(&self, step: &str) -> Option<Arc<Task>> {
        match self.past(step, |entry| matches!(entry, Entry::Task { .. }))? {
            Entry::Task { task, .. } => Some(task),
            _ => None,
        }
    }

    /// The answer to a message that stands in the journal.
    pub(crate) fn past_reply(&self, step: &str) -> Option<Reply> {
        let reply = |entry: &Entry| matches!(entry, Entry::Task { .. } | Entry::Said { .. } | Entry::Refused { .. });
        match self.past(step, reply)? {
            Entry::Task { task, .. } => Some(Reply::Task(task)),
            Entry::Said { message, .. } => Some(Reply::Message(message)),
            Entry::Refused { code, message, .. } => Some(Reply::Error(RemoteError { code, message, data: None })),
            Entry::Job { .. } | Entry::Sent { .. } | Entry::Decided { .. } => None,
        }
    }
}
