//! The new sides of a diff's files: whole where the repository gives the rest, else hunk by hunk.

use std::collections::{BTreeMap, BTreeSet};

use super::apply::apply;
use super::diff::{Diff, File, Hunk, Kind, Note};
use super::repository::{GitError, Repository};
use super::source::{Language, Source};

/// The new side of a file or of one of its hunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSide {
    /// The file's path after the change.
    pub path: String,
    /// The text.
    pub text: String,
    /// The number of its first line.
    pub first_line: u32,
    /// Whether it is the whole file.
    pub whole: bool,
    /// The numbers of the added lines.
    pub changed: BTreeSet<u32>,
    /// What the diff calls those whose numbers are others there.
    called: BTreeMap<u32, u32>,
}

impl NewSide {
    /// What rules read; none where they do not know the language.
    pub fn source(&self) -> Option<Source<'_>> {
        Some(Source {
            path: &self.path,
            language: Language::of(&self.path)?,
            text: &self.text,
            first_line: self.first_line,
            whole: self.whole,
            changed: &self.changed,
        })
    }

    /// The number of an added line as the diff has it.
    pub fn called(&self, line: u32) -> u32 {
        self.called.get(&line).copied().unwrap_or(line)
    }

    fn of_hunk(file: &File, hunk: &Hunk, whole: bool) -> Self {
        Self {
            path: file.path.clone(),
            text: hunk.new_side().map(|line| line.text.as_str()).collect(),
            first_line: hunk.new_start,
            whole,
            changed: hunk.added(hunk.new_start).collect(),
            called: BTreeMap::new(),
        }
    }
}

/// The texts of a diff's files before the change, in their order; none where a file is not there.
pub async fn before(repository: &Repository, commit: &str, diff: &Diff) -> Result<Vec<Option<String>>, GitError> {
    let path = |file: &File| file.old_path.clone().unwrap_or_else(|| file.path.clone());
    let paths: Vec<String> = diff.files.iter().map(path).collect();
    // What is not read as text is not fetched either.
    let wanted = |(file, path): (&File, &String)| if file.hunks.is_empty() { String::new() } else { path.clone() };
    let wanted: Vec<String> = diff.files.iter().zip(&paths).map(wanted).collect();
    repository.texts(commit, &wanted.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// The new sides of a diff, and what there is to know about them. `before` holds the files of the base, whose name is
/// for the notes.
pub fn sides(diff: &Diff, before: Option<&[Option<String>]>, base: &str) -> (Vec<NewSide>, Vec<Note>) {
    let (mut sides, mut notes) = (Vec::new(), Vec::new());
    for (at, file) in diff.files.iter().enumerate() {
        if file.is_binary {
            notes.push(Note::of(&file.path, None, "It is binary and was not read."));
            continue;
        }
        let before = before.map(|texts| texts.get(at).and_then(Option::as_deref));
        let whole = match (file.kind, before) {
            (_, _) if file.hunks.is_empty() => continue,
            (Kind::New, before) => {
                if before.flatten().is_some() {
                    notes.push(Note::of(&file.path, None, format!("The diff makes it, and it is in {base} already.")));
                }
                None
            }
            (_, None) => None,
            (_, Some(None)) => {
                let old = file.old_path.as_deref().unwrap_or(&file.path);
                let words = format!("The diff does not apply: {old} is not in {base}. The hunks were read alone.");
                notes.push(Note::of(&file.path, None, words));
                None
            }
            (_, Some(Some(text))) => match apply(text, file) {
                Ok(applied) => Some(applied),
                Err(missing) => {
                    let words = || format!("It does not apply to {base}: its old lines are not there.");
                    notes.extend(missing.into_iter().map(|hunk| Note::of(&file.path, Some(hunk), words())));
                    None
                }
            },
        };
        if file.kind == Kind::Deleted {
            continue;
        }
        match whole {
            Some(applied) => sides.push(NewSide {
                path: file.path.clone(),
                text: applied.text,
                first_line: 1,
                whole: true,
                changed: applied.changed,
                called: applied.called,
            }),
            None => {
                let is_whole = file.kind == Kind::New && file.hunks.len() == 1 && file.hunks_in_all == 1;
                sides.extend(file.hunks.iter().map(|hunk| NewSide::of_hunk(file, hunk, is_whole)));
            }
        }
    }
    (sides, notes)
}
