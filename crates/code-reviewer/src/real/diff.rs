//! Unified diffs, git's and plain ones, as files, hunks and lines.
//!
//! The crate diffy reads headers, quoted names and hunks: it is kept up, knows all of git's extended headers, reads
//! bytes that are no UTF-8, and needs no other crate but a hash map. What it does not do is to go on: one wrong hunk
//! costs the whole file. So the text is cut here first, by the line counts of each hunk's header, and diffy is given
//! one header or one hunk at a time. A piece that it does not take becomes a [`Note`], and the others are read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use diffy::patch_set::{FileOperation, ParseOptions, PatchSet};
use serde::Serialize;

/// All of a diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// The files, in the order of the diff.
    pub files: Vec<File>,
    /// What could not be read.
    pub notes: Vec<Note>,
}

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path after the change; of a deleted file, its path before.
    pub path: String,
    /// Its path before the change; none when the change makes it.
    pub old_path: Option<String>,
    /// What is done to it.
    pub kind: Kind,
    /// Whether its content is no text. Then it has no hunks.
    pub is_binary: bool,
    /// The hunks that could be read.
    pub hunks: Vec<Hunk>,
    /// How many hunks there are, those included that could not be read.
    pub hunks_in_all: usize,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It stays, with other content or another mode.
    Changed,
    /// It is made.
    New,
    /// It is gone.
    Deleted,
    /// It gets another name.
    Renamed,
    /// It is a copy of another.
    Copied,
}

/// A hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Its number in its file, from 1.
    pub number: usize,
    /// The number of its first line in the old file; 0 when the file is new.
    pub old_start: u32,
    /// The number of its first line in the new file; 0 when the file is gone.
    pub new_start: u32,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// On which side it stands.
    pub side: Side,
    /// Its text with its line end. Bytes that are no UTF-8 are shown as U+FFFD.
    pub text: String,
}

/// On which side of a change a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// On both.
    Both,
    /// Only before the change.
    Old,
    /// Only after the change.
    New,
}

/// Something that the reader of a review must know beside the findings, such as a hunk that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The file that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of the hunk that it is about, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunk: Option<usize>,
    /// What there is to know, as a sentence.
    pub note: String,
}

impl Diff {
    /// The lines that it takes away, without the spaces around them.
    pub fn gone(&self) -> BTreeSet<&str> {
        let lines = self.files.iter().flat_map(|file| &file.hunks).flat_map(|hunk| &hunk.lines);
        lines.filter(|line| line.side == Side::Old).map(|line| line.text.trim()).collect()
    }
}

impl Note {
    /// A note about the whole review.
    pub fn of_all(note: impl Into<String>) -> Self {
        Self { file: None, hunk: None, note: note.into() }
    }

    /// A note about a file, or a hunk of it.
    pub fn of(file: &str, hunk: Option<usize>, note: impl Into<String>) -> Self {
        Self { file: Some(file.to_owned()), hunk, note: note.into() }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.hunk) {
            (Some(file), Some(hunk)) => write!(f, "{file}, hunk {hunk}: {}", self.note),
            (Some(file), None) => write!(f, "{file}: {}", self.note),
            (None, _) => f.write_str(&self.note),
        }
    }
}

impl Hunk {
    /// The lines before the change.
    pub fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.side != Side::New).map(|line| line.text.as_str())
    }

    /// The lines after the change.
    pub fn new_side(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.side != Side::Old)
    }

    /// The numbers of the lines that it adds, when its first line in the new file has this number.
    pub fn added(&self, first: u32) -> impl Iterator<Item = u32> {
        let numbered = (first..).zip(self.new_side());
        numbered.filter(|(_, line)| line.side == Side::New).map(|(number, _)| number)
    }
}

/// Whether a text holds a diff: a line that begins one.
pub fn is_in(text: &[u8]) -> bool {
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    (0..lines.len()).any(|at| begins_file(&lines, at))
}

/// Reads a diff.
pub fn read(text: &[u8]) -> Diff {
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let mut diff = Diff::default();
    let mut at = 0;
    let mut file: Option<File> = None;
    while at < lines.len() {
        if begins_file(&lines, at) {
            diff.files.extend(file.take());
            let header = header(&lines, at);
            match open(&lines[at..header.end], &header) {
                Ok(opened) => file = Some(opened),
                Err(why) => {
                    // The hunks that follow belong to a file without a name.
                    let shown = shown(lines[at]);
                    diff.notes.push(Note::of_all(format!("The header \"{shown}\" cannot be read: {why}.")));
                }
            }
            at = header.end;
        } else if lines[at].starts_with(b"@@ ") {
            let cut = cut(&lines, at);
            let number = file.as_ref().map_or(0, |file| file.hunks_in_all) + 1;
            match (&mut file, hunk(&lines[cut.body.clone()], number, cut.wrong)) {
                (Some(file), _) if file.is_binary => {
                    file.hunks_in_all = number;
                    diff.notes.push(Note::of(&file.path, Some(number), "The file is binary, and has no lines."));
                }
                (Some(file), read) => {
                    file.hunks_in_all = number;
                    match read.and_then(|hunk| follows(file.hunks.last(), &hunk).map(|()| hunk)) {
                        Ok(hunk) => file.hunks.push(hunk),
                        Err(why) => diff.notes.push(Note::of(&file.path, Some(number), why)),
                    }
                }
                (None, _) => {
                    let shown = shown(lines[at]);
                    diff.notes.push(Note::of_all(format!("The hunk \"{shown}\" belongs to no file.")));
                }
            }
            at = cut.body.end.max(at + 1);
        } else {
            at += 1;
        }
    }
    diff.files.extend(file);
    for file in &mut diff.files {
        // Without git's headers, only the hunk tells.
        if file.kind == Kind::Changed
            && let [only] = file.hunks.as_slice()
        {
            if only.old_start == 0 && only.old().next().is_none() {
                file.kind = Kind::New;
                file.old_path = None;
            } else if only.new_start == 0 && only.new_side().next().is_none() {
                file.kind = Kind::Deleted;
            }
        }
    }
    diff
}

/// A line as a note shows it.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end().chars().take(120).collect()
}

/// Whether a file's part of the diff begins here.
fn begins_file(lines: &[&[u8]], at: usize) -> bool {
    let line = lines[at];
    line.starts_with(b"diff --git ")
        || line.starts_with(b"diff --cc ")
        || line.starts_with(b"diff --combined ")
        || is_pair(lines, at)
        || is_binary_line(line)
}

/// The two lines that name a file before and after the change.
fn is_pair(lines: &[&[u8]], at: usize) -> bool {
    lines[at].starts_with(b"--- ") && lines.get(at + 1).is_some_and(|next| next.starts_with(b"+++ "))
}

fn is_binary_line(line: &[u8]) -> bool {
    line.starts_with(b"Binary files ") && line.trim_ascii_end().ends_with(b" differ")
}

/// The head of a file's part: where it ends, and whether the file is binary.
struct Header {
    end: usize,
    is_binary: bool,
}

fn header(lines: &[&[u8]], at: usize) -> Header {
    const EXTENDED: [&[u8]; 11] = [
        b"old mode ",
        b"new mode ",
        b"deleted file mode ",
        b"new file mode ",
        b"copy from ",
        b"copy to ",
        b"rename from ",
        b"rename to ",
        b"similarity index ",
        b"dissimilarity index ",
        b"index ",
    ];
    let mut end = at;
    if !is_pair(lines, at) {
        end += 1;
        if is_binary_line(lines[at]) {
            return Header { end, is_binary: true };
        }
        while end < lines.len() && EXTENDED.iter().any(|name| lines[end].starts_with(name)) {
            end += 1;
        }
        if end < lines.len() && (is_binary_line(lines[end]) || lines[end].starts_with(b"GIT binary patch")) {
            return Header { end: end + 1, is_binary: true };
        }
        if end == lines.len() || !is_pair(lines, end) {
            return Header { end, is_binary: false };
        }
    }
    Header { end: end + 2, is_binary: false }
}

/// Reads the head of a file's part. The error says what is wrong with it.
fn open(lines: &[&[u8]], header: &Header) -> Result<File, Cow<'static, str>> {
    let first = lines[0];
    if first.starts_with(b"diff --cc ") || first.starts_with(b"diff --combined ") {
        return Err("it is of a merge, which has two old sides".into());
    }
    let file = |path: String, old_path: Option<String>, kind| File {
        path,
        old_path,
        kind,
        is_binary: header.is_binary,
        hunks: Vec::new(),
        hunks_in_all: 0,
    };
    if is_binary_line(first) {
        let text = String::from_utf8_lossy(first);
        let names = text.trim_end().trim_start_matches("Binary files ").trim_end_matches(" differ");
        let (old, new) = names.split_once(" and ").ok_or("it names no file")?;
        let (old, new) = stripped(old, new);
        return Ok(file(new.to_owned(), Some(old.to_owned()), Kind::Changed));
    }
    let is_git = first.starts_with(b"diff --git ");
    // Without the line ends of Windows, and without what says that it is binary, which is known.
    let mut text = Vec::new();
    for line in lines.iter().filter(|line| !is_binary_line(line) && !line.starts_with(b"GIT binary patch")) {
        text.extend_from_slice(line.trim_ascii_end());
        text.push(b'\n');
    }
    let options = if is_git { ParseOptions::gitdiff() } else { ParseOptions::unidiff() };
    let patch = PatchSet::parse_bytes(&text, options).next().ok_or("it names no file")?;
    // Its last words tell; those before say only that it is an error.
    let words = |cause: &str| cause.rsplit(": ").next().unwrap_or(cause).to_owned();
    let patch = patch.map_err(|cause| Cow::Owned(words(&cause.to_string())))?;
    let name = |bytes: &Cow<'_, [u8]>| String::from_utf8_lossy(bytes).into_owned();
    let bare = |path: &Cow<'_, [u8]>| {
        let path = name(path);
        let letters = ["a/", "b/", "i/", "w/", "c/", "o/"];
        let rest = letters.iter().find_map(|prefix| path.strip_prefix(prefix)).map(str::to_owned);
        rest.unwrap_or(path)
    };
    Ok(match patch.operation() {
        FileOperation::Create(path) => file(bare(path), None, Kind::New),
        FileOperation::Delete(path) => file(bare(path), Some(bare(path)), Kind::Deleted),
        FileOperation::Modify { original, modified } => {
            let (old, new) = (name(original), name(modified));
            let (old, new) = stripped(&old, &new);
            file(new.to_owned(), Some(old.to_owned()), Kind::Changed)
        }
        FileOperation::Rename { from, to } => file(name(to), Some(name(from)), Kind::Renamed),
        FileOperation::Copy { from, to } => file(name(to), Some(name(from)), Kind::Copied),
    })
}

/// Two names of a file without the folders in front that tell the sides apart: git's `a/` and `b/`, or those that two
/// folders have that were compared.
fn stripped<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    if old == new {
        return (old, new);
    }
    match (old.split_once('/'), new.split_once('/')) {
        (Some((old_top, old_rest)), Some((new_top, new_rest)))
            if old_rest == new_rest || matches!((old_top, new_top), ("a", "b") | ("i" | "c" | "o", "w" | "i")) =>
        {
            (old_rest, new_rest)
        }
        _ => {
            // Folders of any depth: what both end with, from a slash on.
            let same = old.bytes().rev().zip(new.bytes().rev()).take_while(|(one, two)| one == two).count();
            match old[floor(old, old.len() - same)..].find('/') {
                Some(slash) if !old.starts_with("/dev/null") => {
                    let rest = old.len() - floor(old, old.len() - same) - slash - 1;
                    (&old[old.len() - rest..], &new[new.len() - rest..])
                }
                _ => (old, new),
            }
        }
    }
}

/// The next place in a text at which a character begins.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Where a hunk's lines are, header included, and why they cannot be right.
struct Cut {
    body: Range<usize>,
    wrong: Option<String>,
}

/// The numbers of a hunk's header: start and length of the old side, then of the new.
fn numbers(line: &[u8]) -> Option<[u32; 4]> {
    let text = std::str::from_utf8(line.get(3..)?.split(|byte| *byte == b'@').next()?).ok()?;
    let mut sides = text.trim().split(' ');
    let mut side = |sign: char| {
        let text = sides.next()?.strip_prefix(sign)?;
        let (start, length) = text.split_once(',').unwrap_or((text, "1"));
        let (start, length) = (start.parse::<u32>().ok()?, length.parse::<u32>().ok()?);
        start.checked_add(length)?;
        Some((start, length))
    };
    let ((old, old_length), (new, new_length)) = (side('-')?, side('+')?);
    Some([old, old_length, new, new_length])
}

/// Cuts a hunk out of the text by the line counts of its header. Where they are wrong, it ends before what cannot
/// belong to it.
fn cut(lines: &[&[u8]], at: usize) -> Cut {
    let counts = numbers(lines[at]).map(|[_, old, _, new]| (old, new));
    let (mut old, mut new) = (0, 0);
    let mut end = at + 1;
    while end < lines.len() && counts != Some((old, new)) {
        match lines[end].first() {
            Some(b' ' | b'\n' | b'\r') => (old, new) = (old + 1, new + 1),
            Some(b'-') => old += 1,
            Some(b'+') => new += 1,
            Some(b'\\') => {}
            _ => break,
        }
        end += 1;
    }
    while end < lines.len() && lines[end].starts_with(b"\\") {
        end += 1;
    }
    // With one or two lines too many, the names of the next file were taken for lines; its first hunk does not stand
    // behind this one.
    let goes_back = |next: usize| {
        let [next, this] = [lines.get(next).and_then(|line| numbers(line)), numbers(lines[at])];
        next.zip(this).is_some_and(|(next, this)| next[0] < this[0].saturating_add(this[1]))
    };
    let took_name = (end > at + 1 && is_pair(lines, end - 1))
        || (end > at + 2
            && is_pair(lines, end - 2)
            && lines.get(end).is_some_and(|line| line.starts_with(b"@@ "))
            && goes_back(end));
    let is_whole = counts == Some((old, new)) && !took_name;
    if !is_whole {
        // The next file's names look like a line that goes and one that comes.
        if let Some(next) = (at + 1..end).find(|line| begins_file(lines, *line)) {
            end = next;
        }
        while end > at + 1 && lines[end - 1].trim_ascii().is_empty() {
            end -= 1;
        }
        (old, new) = (0, 0);
        for line in &lines[at + 1..end] {
            let first = line.first().copied().unwrap_or(b' ');
            old += u32::from(!matches!(first, b'+' | b'\\'));
            new += u32::from(!matches!(first, b'-' | b'\\'));
        }
    }
    let wrong = match counts {
        None => Some("Its header cannot be read.".to_owned()),
        Some((says_old, says_new)) if !is_whole => {
            Some(format!("Its header says {says_old} old and {says_new} new lines, and it has {old} and {new}."))
        }
        Some(_) => {
            let more = surplus(lines, end);
            end += more;
            let words = || format!("It has {more} more lines than its header says.");
            (more > 0).then(words)
        }
    };
    Cut { body: at..end, wrong }
}

/// How many lines behind a hunk that is complete look as if they belonged to it.
fn surplus(lines: &[&[u8]], from: usize) -> usize {
    let is_signature = |line: &[u8]| matches!(line.trim_ascii_end(), b"--" | b"---");
    let belongs = |at: &usize| {
        let line = lines[*at];
        matches!(line.first(), Some(b' ' | b'+' | b'-' | b'\\')) && !is_signature(line) && !begins_file(lines, *at)
    };
    (from..lines.len()).take_while(belongs).count()
}

/// Reads a hunk that was cut out.
fn hunk(lines: &[&[u8]], number: usize, wrong: Option<String>) -> Result<Hunk, String> {
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.len()).sum());
    for line in lines {
        match line.first() {
            // In whatever language diff speaks.
            Some(b'\\') => text.extend_from_slice(b"\\ No newline at end of file\n"),
            // An empty line that lost its space on the way.
            Some(b'\r') => {
                text.push(b' ');
                text.extend_from_slice(line);
            }
            _ => text.extend_from_slice(line),
        }
    }
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    let patch = diffy::Patch::from_bytes(&text).map_err(|cause| {
        let words = cause.to_string();
        format!("It cannot be read: {}.", words.rsplit(": ").next().unwrap_or(&words))
    })?;
    let [hunk] = patch.hunks() else { return Err("It cannot be read.".to_owned()) };
    let start = |range: diffy::HunkRange| u32::try_from(range.start()).map_err(|_| "It is too far down.".to_owned());
    let lines = hunk.lines().iter().map(|line| {
        let (side, text) = match line {
            diffy::Line::Context(text) => (Side::Both, text),
            diffy::Line::Delete(text) => (Side::Old, text),
            diffy::Line::Insert(text) => (Side::New, text),
        };
        Line { side, text: String::from_utf8_lossy(text).into_owned() }
    });
    let lines = lines.collect();
    Ok(Hunk { number, old_start: start(hunk.old_range())?, new_start: start(hunk.new_range())?, lines })
}

/// Whether a hunk stands behind the one before it.
fn follows(before: Option<&Hunk>, hunk: &Hunk) -> Result<(), String> {
    let Some(before) = before else { return Ok(()) };
    let length = |lines: usize| u32::try_from(lines).unwrap_or(u32::MAX);
    let old = before.old_start.saturating_add(length(before.old().count()));
    let new = before.new_start.saturating_add(length(before.new_side().count()));
    if hunk.old_start < old || hunk.new_start < new {
        return Err("It does not stand behind the hunk before it.".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
