//! A file's hunks put into its text.

use std::collections::{BTreeMap, BTreeSet};

use super::diff::{File, Hunk, Side};

/// How far from where it should be a hunk is looked for, in lines.
const NEAR: usize = 2000;

/// A file after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its text.
    pub text: String,
    /// The numbers of the added lines in it.
    pub changed: BTreeSet<u32>,
    /// What the diff calls those of them whose numbers it got wrong, because the file has become longer or shorter
    /// before them since.
    pub called: BTreeMap<u32, u32>,
}

/// Applies a file's hunks to the text before the change. The error is the numbers of the hunks whose old lines are not
/// there.
pub fn apply(before: &str, file: &File) -> Result<Applied, Vec<usize>> {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let mut applied =
        Applied { text: String::with_capacity(before.len()), changed: BTreeSet::new(), called: BTreeMap::new() };
    let mut missing = Vec::new();
    // How many lines of the old text are done, how many of the new one are written, and how far off the last hunk was.
    let (mut done, mut written, mut off) = (0, 0, 0);
    for hunk in &file.hunks {
        let wanted: Vec<&str> = hunk.old().collect();
        let Some(at) = find(&old, &wanted, place(hunk, wanted.len()), done, off) else {
            missing.push(hunk.number);
            continue;
        };
        off = at as i64 - place(hunk, wanted.len()) as i64;
        for line in &old[done..at] {
            applied.text.push_str(line);
        }
        written += at - done;
        done = at + wanted.len();
        let mut called = hunk.new_start;
        for line in hunk.new_side() {
            if written > 0 && !applied.text.ends_with('\n') {
                applied.text.push('\n');
            }
            applied.text.push_str(&line.text);
            written += 1;
            if line.side == Side::New {
                let number = u32::try_from(written).unwrap_or(u32::MAX);
                applied.changed.insert(number);
                if number != called {
                    applied.called.insert(number, called);
                }
            }
            called = called.saturating_add(1);
        }
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    for line in &old[done..] {
        applied.text.push_str(line);
    }
    Ok(applied)
}

/// The index of a hunk's first old line. One without old lines stands behind the line that it names.
fn place(hunk: &Hunk, length: usize) -> usize {
    let start = hunk.old_start as usize;
    if length == 0 { start } else { start.saturating_sub(1) }
}

/// Where the lines are: where they should be, else the nearest place.
fn find(old: &[&str], wanted: &[&str], place: usize, done: usize, off: i64) -> Option<usize> {
    let bare = |line: &str| line.trim_end_matches(['\r', '\n']).len();
    let same = |one: &str, two: &str| one[..bare(one)] == two[..bare(two)];
    let last = old.len().checked_sub(wanted.len()).filter(|last| *last >= done)?;
    let fits = |at: &usize| wanted.iter().zip(&old[*at..]).all(|(one, two)| same(one, two));
    let place = usize::try_from(place as i64 + off).unwrap_or_default();
    if wanted.is_empty() {
        return (done..=last).contains(&place).then_some(place);
    }
    let near = (0..=NEAR).flat_map(|far| [place.checked_sub(far), place.checked_add(far)]).flatten();
    near.filter(|at| (done..=last).contains(at)).find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::diff;

    fn applied(before: &str, hunks: &str) -> Result<Applied, Vec<usize>> {
        let diff = diff::read(format!("--- a/x.py\n+++ b/x.py\n{hunks}").as_bytes());
        assert_eq!(diff.notes, []);
        apply(before, &diff.files[0])
    }

    #[test]
    fn hunks_are_put_where_their_old_lines_are() {
        let two = "@@ -1,2 +1,3 @@\n a\n+new\n b\n@@ -5 +6,2 @@\n-e\n+E\n+F\n";
        let whole = applied("a\nb\nc\nd\ne\nf\n", two).unwrap();
        assert_eq!(whole.text, "a\nnew\nb\nc\nd\nE\nF\nf\n");
        assert_eq!((whole.changed, whole.called), (BTreeSet::from([2, 6, 7]), BTreeMap::new()));
        let moved = applied("0\n1\na\nb\nc\nd\ne\nf\n", two).unwrap();
        assert_eq!(moved.text, "0\n1\na\nnew\nb\nc\nd\nE\nF\nf\n");
        assert_eq!(moved.changed, BTreeSet::from([4, 8, 9]));
        assert_eq!(moved.called, BTreeMap::from([(4, 2), (8, 6), (9, 7)]));
        assert_eq!(applied("a\r\nb\r\nc\r\nd\r\ne\r\n", two).unwrap().text, "a\nnew\nb\nc\r\nd\r\nE\nF\n");
    }

    #[test]
    fn hunks_that_fit_nowhere_are_named() {
        let two = "@@ -1,2 +1,3 @@\n a\n+new\n b\n@@ -5 +6,2 @@\n-e\n+E\n+F\n";
        assert_eq!(applied("a\nb\nc\nd\nX\n", two), Err(vec![2]));
        assert_eq!(applied("", two), Err(vec![1, 2]));
        assert_eq!(applied("a\n", "@@ -9,0 +10 @@\n+b\n"), Err(vec![1]));
        assert_eq!(applied("a", "@@ -1,0 +2 @@\n+b\n").unwrap().text, "a\nb\n");
        assert_eq!(applied("", "@@ -0,0 +1 @@\n+b\n").unwrap().text, "b\n");
    }
}
