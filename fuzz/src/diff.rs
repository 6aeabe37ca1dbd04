//! What must hold for whatever bytes come as a diff.

use std::collections::BTreeSet;

use code_reviewer::real::apply::apply;
use code_reviewer::real::diff::{Diff, File, Hunk, Side, is_in, read};
use code_reviewer::real::review;

/// The line up to which the oracle makes files: more would only take longer.
const FURTHEST: u32 = 5000;

/// A diff: its hunks come in order and are what they were when they are written and read again, they apply to a file
/// that holds their old lines, and the review speaks only of lines that the diff adds.
pub fn diff(text: &[u8]) {
    let diff = read(text);
    assert!(diff.files.is_empty() || is_in(text));
    for file in &diff.files {
        in_order(file);
        again(file);
        applies(file);
    }
    reviewed(text, &diff);
}

fn in_order(file: &File) {
    assert!(!file.is_binary || file.hunks.is_empty(), "{file:?}");
    let (mut number, mut old, mut new) = (0, 0, 0);
    for hunk in &file.hunks {
        assert!(hunk.number > number && hunk.number <= file.hunks_in_all, "{file:?}");
        assert!(hunk.old_start >= old && hunk.new_start >= new, "{file:?}");
        number = hunk.number;
        old = hunk.old_start.checked_add(length(hunk.old().count())).unwrap();
        new = hunk.new_start.checked_add(length(hunk.new_side().count())).unwrap();
        for line in &hunk.lines {
            assert!(!line.text.trim_end_matches('\n').contains('\n'), "{line:?}");
        }
    }
}

fn length(lines: usize) -> u32 {
    u32::try_from(lines).unwrap()
}

/// The hunks, written and read.
fn again(file: &File) {
    let mut text = "--- a/a.py\n+++ b/a.py\n".to_owned();
    for hunk in &file.hunks {
        let (old, new) = (hunk.old().count(), hunk.new_side().count());
        text.push_str(&format!("@@ -{},{old} +{},{new} @@\n", hunk.old_start, hunk.new_start));
        for line in &hunk.lines {
            text.push(match line.side {
                Side::Both => ' ',
                Side::Old => '-',
                Side::New => '+',
            });
            text.push_str(&line.text);
            if !line.text.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    let read = read(text.as_bytes());
    assert_eq!(read.notes, [], "{text}");
    let [read] = read.files.as_slice() else { panic!("{text}") };
    let same = |one: &Hunk, two: &Hunk| {
        (one.old_start, one.new_start, &one.lines) == (two.old_start, two.new_start, &two.lines)
    };
    assert!(
        read.hunks.len() == file.hunks.len() && read.hunks.iter().zip(&file.hunks).all(|(one, two)| same(one, two))
    );
}

/// The hunks in a file that has their old lines where they say, and others everywhere else.
fn applies(file: &File) {
    let far = |hunk: &Hunk| hunk.old_start > FURTHEST || hunk.old_start == 0 && hunk.old().next().is_some();
    let cut = |hunk: &Hunk| hunk.lines.iter().any(|line| !line.text.ends_with('\n'));
    if file.hunks.iter().any(|hunk| far(hunk) || cut(hunk)) {
        return;
    }
    let mut before: Vec<String> = Vec::new();
    let fill = |before: &mut Vec<String>, until: u32| {
        while length(before.len()) < until {
            before.push(format!("the file's own line {}\n", before.len()));
        }
    };
    for hunk in &file.hunks {
        let has_old = hunk.old().next().is_some();
        fill(&mut before, if has_old { hunk.old_start - 1 } else { hunk.old_start });
        before.extend(hunk.old().map(str::to_owned));
    }
    let end = length(before.len()) + 3;
    fill(&mut before, end);
    let applied = apply(&before.concat(), file).unwrap_or_else(|missing| panic!("{missing:?} {file:?}"));
    let after: Vec<&str> = applied.text.split_inclusive('\n').collect();
    let added = file.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.side == Side::New);
    let found = applied.changed.iter().map(|number| after[*number as usize - 1]);
    assert!(found.eq(added.map(|line| line.text.as_str())), "{applied:?} {file:?}");
    let called: BTreeSet<u32> =
        applied.changed.iter().map(|number| applied.called.get(number).copied().unwrap_or(*number)).collect();
    assert_eq!(called, added_by(file));
}

fn added_by(file: &File) -> BTreeSet<u32> {
    file.hunks.iter().flat_map(|hunk| hunk.added(hunk.new_start)).collect()
}

fn reviewed(text: &[u8], diff: &Diff) {
    let found = review(text);
    for one in &found.findings {
        let added = |file: &File| file.path == one.file && added_by(file).contains(&one.line);
        assert!(diff.files.iter().any(added), "{one:?} {diff:?}");
    }
    for note in found.notes.iter().filter_map(|note| note.file.as_ref()) {
        assert!(diff.files.iter().any(|file| file.path == *note), "{note:?}");
    }
    assert_eq!(review(text), found);
    // Each form of a review can be written.
    let forms = [found.summary(), found.text(), found.markdown(), found.sarif().to_string()];
    assert!(forms.iter().all(|form| !form.is_empty()));
    serde_json::to_string(&found).unwrap();
}
