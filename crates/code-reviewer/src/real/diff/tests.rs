use super::*;

fn notes(diff: &Diff) -> Vec<String> {
    diff.notes.iter().map(Note::to_string).collect()
}

/// Path, path before, kind, and the numbers of the added lines.
fn files(diff: &Diff) -> Vec<(&str, Option<&str>, Kind, Vec<u32>)> {
    let added = |file: &File| file.hunks.iter().flat_map(|hunk| hunk.added(hunk.new_start)).collect();
    diff.files.iter().map(|file| (file.path.as_str(), file.old_path.as_deref(), file.kind, added(file))).collect()
}

#[test]
fn a_git_diff_of_several_files_is_read_with_renames_modes_new_and_deleted_files() {
    let text = b"diff --git a/one.py b/one.py\nindex 1..2 100644\n--- a/one.py\n+++ b/one.py\n@@ -1,2 +1,3 @@ def f():\n a\n+b\n c\n\
        @@ -10 +11 @@\n-x\n+y\n\
        diff --git a/old name.py b/new name.py\nsimilarity index 90%\nrename from old name.py\nrename to new name.py\n\
        --- a/old name.py\t\n+++ b/new name.py\t\n@@ -1 +1 @@\n-a\n+b\n\
        diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n\
        diff --git a/n.go b/n.go\nnew file mode 100644\nindex 0000000..1\n--- /dev/null\n+++ b/n.go\n@@ -0,0 +1,2 @@\n+a\n+b\n\
        diff --git a/gone.rs b/gone.rs\ndeleted file mode 100644\nindex 1..0000000\n--- a/gone.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
        diff --git \"a/\\303\\244 \\\"q\\\".py\" \"b/\\303\\244 \\\"q\\\".py\"\nindex 1..2 100644\n--- \"a/\\303\\244 \\\"q\\\".py\"\n+++ \"b/\\303\\244 \\\"q\\\".py\"\n@@ -1 +1 @@\n-a\n+b\n";
    let diff = read(text);
    assert_eq!(notes(&diff), Vec::<String>::new());
    let expected = [
        ("one.py", Some("one.py"), Kind::Changed, vec![2, 11]),
        ("new name.py", Some("old name.py"), Kind::Renamed, vec![1]),
        ("run.sh", Some("run.sh"), Kind::Changed, vec![]),
        ("n.go", None, Kind::New, vec![1, 2]),
        ("gone.rs", Some("gone.rs"), Kind::Deleted, vec![]),
        ("ä \"q\".py", Some("ä \"q\".py"), Kind::Changed, vec![1]),
    ];
    assert_eq!(files(&diff), expected);
}

#[test]
fn a_plain_diff_of_two_folders_names_files_without_the_folders() {
    let text = b"diff -ruN pkg-1.0/src/a.py pkg-1.1/src/a.py\n--- pkg-1.0/src/a.py\t2026-01-01 00:00:00\n\
        +++ pkg-1.1/src/a.py\t2026-02-01 00:00:00\n@@ -1 +1 @@\n-a\n+b\nOnly in pkg-1.1: c\n\
        diff -ruN pkg-1.0/n.py pkg-1.1/n.py\n--- pkg-1.0/n.py\t1970-01-01\n+++ pkg-1.1/n.py\t2026\n@@ -0,0 +1 @@\n+b\n\
        Binary files pkg-1.0/logo.png and pkg-1.1/logo.png differ\n\
        --- /tmp/x/v1/q.py\t1\n+++ /tmp/x/v2/q.py\t2\n@@ -1 +1 @@\n--- a\n+++ b\n";
    let diff = read(text);
    assert_eq!(notes(&diff), Vec::<String>::new());
    let expected = [
        ("src/a.py", Some("src/a.py"), Kind::Changed, vec![1]),
        ("n.py", None, Kind::New, vec![1]),
        ("logo.png", Some("logo.png"), Kind::Changed, vec![]),
        ("q.py", Some("q.py"), Kind::Changed, vec![1]),
    ];
    assert_eq!(files(&diff), expected);
    assert!(diff.files[2].is_binary);
    let [line, other] = diff.files[3].hunks[0].lines.as_slice() else { panic!("{diff:?}") };
    assert_eq!((line.text.as_str(), other.text.as_str()), ("-- a\n", "++ b\n"));
}

#[test]
fn binary_files_are_named_and_not_read() {
    let text = b"diff --git a/a.png b/a.png\nindex 1..2 100644\nBinary files a/a.png and b/a.png differ\n\
        diff --git a/b.png b/b.png\nnew file mode 100644\nindex 0000000..2\nGIT binary patch\nliteral 4\nLc$`bD00000\n\nliteral 0\nHc$@<O00001\n\n\
        diff --git a/c.py b/c.py\nindex 1..2 100644\n--- a/c.py\n+++ b/c.py\n@@ -1 +1 @@\n-a\n+b\n";
    let diff = read(text);
    assert_eq!(notes(&diff), Vec::<String>::new());
    let binary: Vec<_> = diff.files.iter().map(|file| (file.path.as_str(), file.is_binary)).collect();
    assert_eq!(binary, [("a.png", true), ("b.png", true), ("c.py", false)]);
    assert_eq!(diff.files[1].kind, Kind::New);
    let diff = read(b"Binary files a/a.png and b/a.png differ\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!(notes(&diff), ["a.png, hunk 1: The file is binary, and has no lines."]);
    assert_eq!(diff.files[0].hunks, []);
}

#[test]
fn a_wrong_hunk_is_said_with_file_and_number_and_the_others_are_read() {
    let text = b"--- a/one.py\n+++ b/one.py\n@@ -1,9 +1,9 @@\n-a\n+b\n@@ -40,1 +40,1 @@\n-a\n+b\n@@ -50,1 +50,1 @@\n-a\n+b\n+c\n\
        @@ -60 what @@\n-a\n+b\n@@ -70 +71 @@\n-a\n+b\n@@ -3 +3 @@\n-a\n+b\n\
        --- a/two.py\n+++ b/two.py\n@@ -1,5 +1,5 @@\n-a\n+b\n\
        --- a/three.py\n+++ b/three.py\n@@ -1 +1 @@\n-a\n+b\n";
    let diff = read(text);
    let expected = [
        "one.py, hunk 1: Its header says 9 old and 9 new lines, and it has 1 and 1.",
        "one.py, hunk 3: It has 1 more lines than its header says.",
        "one.py, hunk 4: Its header cannot be read.",
        "one.py, hunk 6: It does not stand behind the hunk before it.",
        "two.py, hunk 1: Its header says 5 old and 5 new lines, and it has 1 and 1.",
    ];
    assert_eq!(notes(&diff), expected);
    assert_eq!(files(&diff)[0].3, [40, 71]);
    assert_eq!(files(&diff)[2], ("three.py", Some("three.py"), Kind::Changed, vec![1]));
    assert_eq!(diff.files[0].hunks_in_all, 6);
}

#[test]
fn a_hunk_does_not_take_the_names_of_the_next_file() {
    for wrong in ["-1,2 +1", "-1 +1,2", "-1,2 +1,2", "-1,3 +1,3"] {
        let text =
            format!("--- a/a.py\n+++ b/a.py\n@@ {wrong} @@\n-a\n+b\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-a\n+b\n");
        let diff = read(text.as_bytes());
        assert_eq!(diff.notes.len(), 1, "{wrong}: {diff:?}");
        assert_eq!(files(&diff)[1], ("b.py", Some("b.py"), Kind::Changed, vec![1]), "{wrong}");
    }
}

#[test]
fn the_hand_made_diffs_of_the_kit_are_wrong_and_said_to_be() {
    let text = b"--- a/payments/refunds.py\n+++ b/payments/refunds.py\n@@ -40,2 +40,4 @@ def partial_refund(charge, amount):\n\
        -    net = amount - fee(charge)\n+    net = int(amount) - fee(charge)\n";
    let diff = read(text);
    let words = "payments/refunds.py, hunk 1: Its header says 2 old and 4 new lines, and it has 1 and 1.";
    assert_eq!(notes(&diff), [words]);
}

#[test]
fn line_ends_stay_as_they_are_and_the_last_one_may_be_missing() {
    let text = b"diff --git a/a.py b/a.py\r\n--- a/a.py\r\n+++ b/a.py\r\n@@ -1,3 +1,4 @@\r\n a\r\n\r\n-c\n\
        \\ Kein Zeilenumbruch am Dateiende.\n+b\n+c\r\n\\ No newline at end of file\n";
    let diff = read(text);
    assert_eq!(notes(&diff), Vec::<String>::new());
    let lines: Vec<_> = diff.files[0].hunks[0].lines.iter().map(|line| (line.side, line.text.as_str())).collect();
    let expected =
        [(Side::Both, "a\r\n"), (Side::Both, "\r\n"), (Side::Old, "c"), (Side::New, "b\n"), (Side::New, "c\r")];
    assert_eq!(lines, expected);
    let cut = read(b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b");
    assert_eq!((cut.notes.len(), cut.files[0].hunks[0].lines[1].text.as_str()), (0, "b\n"));
}

#[test]
fn what_stands_around_diffs_is_no_part_of_them() {
    let text = b"From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n a.py | 2 +-\n\n\
        diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n-- \n2.47.3\n\n\
        commit 9f3c2e1\nAuthor: Ada\n\n    Words\n\ndiff --git a/b.py b/b.py\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-a\n+b\n```\n+ that is all\n";
    let diff = read(text);
    assert_eq!(notes(&diff), Vec::<String>::new());
    assert_eq!(files(&diff).len(), 2);
    assert!(is_in(text));
    for text in ["Review this, please.", "--- \nno", "@@ -1 +1 @@\n-a\n+b\n"] {
        assert!(!is_in(text.as_bytes()), "{text}");
    }
    assert_eq!(notes(&read(b"@@ -1 +1 @@\n-a\n+b\n")), ["The hunk \"@@ -1 +1 @@\" belongs to no file."]);
    let merge = notes(&read(b"diff --cc a.py\nindex 1,2..3\n--- a/a.py\n+++ b/a.py\n@@@ -1,2 -1,2 +1,2 @@@\n  a\n"));
    assert_eq!(merge, ["The header \"diff --cc a.py\" cannot be read: it is of a merge, which has two old sides."]);
}

#[test]
fn bytes_that_are_no_text_break_nothing() {
    let diff = read(b"--- a/\xff.py\n+++ b/\xff.py\n@@ -1 +1 @@\n-\xfe\n+\xfd\n");
    assert_eq!(diff.files[0].path, "\u{fffd}.py");
    assert_eq!(diff.files[0].hunks[0].lines[1].text, "\u{fffd}\n");
}
