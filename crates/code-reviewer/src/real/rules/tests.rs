use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

/// A text with all lines changed.
fn whole(path: &str, text: &str, read: impl FnOnce(&Source<'_>) -> Vec<Finding>) -> Vec<Finding> {
    let changed: BTreeSet<u32> = (1..=u32::try_from(text.split('\n').count()).unwrap()).collect();
    let language = Language::of(path).unwrap();
    read(&Source { path, language, text, first_line: 1, whole: true, changed: &changed })
}

fn lines(found: &[Finding]) -> Vec<(&str, u32)> {
    found.iter().map(|one| (&*one.rule, one.line)).collect()
}

/// A block of code of a page: what stands after its fence, and its text.
fn blocks(page: &str) -> Vec<(Vec<&str>, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("```") {
            let text =
                lines.by_ref().take_while(|line| *line != "```").fold(String::new(), |text, line| text + line + "\n");
            blocks.push((words.split(' ').collect(), text));
        }
    }
    blocks
}

fn pages() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|file| (file.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(file).unwrap()))
        .collect()
}

#[test]
fn each_rule_has_a_page_whose_examples_hold() {
    let pages = pages();
    let index = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md")).unwrap();
    let ids: BTreeSet<&str> = all().iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), all().len(), "an id is one rule's");
    assert_eq!(pages.keys().map(String::as_str).collect::<BTreeSet<_>>(), ids);
    let mut wrong = Vec::new();
    for rule in all() {
        let page = &pages[rule.id];
        let mut names: Vec<&str> = rule.languages.iter().map(|one| one.name()).collect();
        names.dedup();
        let names = names.join(", ");
        let severity = rule.severity.word();
        let head = format!("# {}\n\n{}. Severity {severity}; {names}.\n\n{}\n\n", rule.id, rule.title, rule.why);
        assert!(page.starts_with(&head), "{} begins with\n{head}", rule.id);
        assert!(page.contains("## What it finds") && page.contains("## What it leaves out on purpose"), "{}", rule.id);
        assert!(index.contains(&format!("[{0}](rules/{0}.md) | {severity} | {names} |", rule.id)), "{}", rule.id);
        let mut shown: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (words, text) in blocks(page) {
            let (language, kind, rest) = (words[0], words[1], &words[2..]);
            shown.entry(kind).or_default().insert(language);
            let path = match rest.iter().find(|word| word.contains('/')) {
                Some(path) => path,
                None => match language {
                    "python" => "payments/refunds.py",
                    "typescript" => "web/refunds.ts",
                    "go" => "pay/refunds.go",
                    "rust" => "src/refunds.rs",
                    other => panic!("{other} is no language of the rules"),
                },
            };
            let over_all = rule.id == UNTESTED_CHANGE.id;
            let found = whole(path, &text, |one| if over_all { check_change(&[*one]) } else { check(one) });
            let holds = match kind {
                "hit" => lines(&found) == [(rule.id, rest[0].parse().unwrap())],
                "miss" => found.iter().all(|one| one.rule != rule.id),
                other => panic!("{other} is neither hit nor miss"),
            };
            if !holds {
                wrong.push(format!("{} {words:?} {found:?}\n{text}", rule.id));
            }
        }
        let languages: BTreeSet<String> = names.split(", ").map(str::to_lowercase).collect();
        for kind in ["hit", "miss"] {
            assert_eq!(
                shown[kind].iter().map(|one| (*one).to_owned()).collect::<BTreeSet<_>>(),
                languages,
                "{}",
                rule.id
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const MONEY: &str = "def net(amount, fee):\n    return int(amount) - fee\n";

#[test]
fn only_changed_lines_are_spoken_of() {
    let (path, language) = ("a.py", Language::Python);
    for (changed, found) in [(vec![], 0), (vec![1], 0), (vec![2], 1)] {
        let changed = changed.into_iter().collect();
        let source = Source { path, language, text: MONEY, first_line: 1, whole: true, changed: &changed };
        assert_eq!(check(&source).len(), found, "{changed:?}");
    }
}

#[test]
fn a_hunk_is_read_where_it_stands() {
    let hunks = [
        (
            "a.py",
            "    gross = cents(amount)\n    net = int(amount) * 100 - fee(charge)\n    return net\n",
            "truncated-money",
        ),
        ("a.py", "        cents = 1\n        if kind == \"a\" or \"b\":\n            return cents\n", "always-true"),
        ("a.go", "\t}\n\tcents, _ := strconv.Atoi(text)\n\treturn cents\n", "error-ignored"),
        ("a.rs", "    let a = 1;\n    let port: u16 = text.parse().unwrap();\n    port\n}\n", "unwrap-on-input"),
        ("a.ts", "    }\n    if (list.length >= 0) {\n      list.pop();\n", "always-true"),
    ];
    for (path, text, rule) in hunks {
        let changed = [41].into();
        let language = Language::of(path).unwrap();
        let source = Source { path, language, text, first_line: 40, whole: false, changed: &changed };
        assert_eq!(lines(&check(&source)), [(rule, 41)], "{text}");
    }
}

/// What stands before a hunk or behind it is not there: no rule takes that for a fault.
#[test]
fn what_a_hunk_cuts_off_is_not_found_missing() {
    let hunks = [
        // It begins inside a `try`, or ends inside one.
        ("a.py", "        send(message)\n    except OSError:\n        retry(message)\n    return message\n"),
        ("a.py", "        send(message)\n        done(message)\n        log(message)\n"),
        ("a.py", "    try:\n        send(message)\n"),
        ("a.ts", "    send(message);\n  } catch (error) {\n    retry(error);\n  }\n  return message;\n"),
        ("a.ts", "  try {\n    send(message);\n"),
        ("a.go", "\t\treturn err\n\t}\n\tif err := send(message); err != nil {\n\t\treturn err\n"),
        // It ends inside the `except`, the `catch` or the `if`, whose rest handles the error.
        ("a.py", "    try:\n        send(message)\n    except Exception:\n"),
        ("a.py", "    except Exception:\n        # It was sent before.\n        pass\n"),
        ("a.py", "    except:\n        one()\n        two()\n        three()\n"),
        ("a.py", "    try:\n        send(message)\n    except:\n        one()\n"),
        ("a.ts", "    send(message);\n  } catch (error) {\n"),
        ("a.ts", "  try {\n    send(message);\n  } catch (error) {\n    // It was sent before.\n"),
        ("a.go", "\terr := send(message)\n\tif err != nil {\n"),
        // It ends before what it opens is closed.
        ("a.py", "def read(path):\n    file = open(path)\n    text = file.read()\n"),
        ("a.go", "func Read(path string) {\n\tfile, err := os.Open(path)\n\tif err != nil {\n\t\treturn\n\t}\n"),
    ];
    for (path, text) in hunks {
        let changed = (40..60).collect();
        let language = Language::of(path).unwrap();
        let source = Source { path, language, text, first_line: 40, whole: false, changed: &changed };
        assert_eq!(lines(&check(&source)), [], "{text}");
    }
    // What is seen whole is found, in a hunk too.
    let text = "    try:\n        send(message)\n    except Exception:\n        pass\n    return message\n";
    let changed = [42].into();
    let source =
        Source { path: "a.py", language: Language::Python, text, first_line: 40, whole: false, changed: &changed };
    assert_eq!(lines(&check(&source)), [("swallowed-exception", 42)]);
}

#[test]
fn a_todo_that_was_moved_is_not_new() {
    let diff = |old: &str, new: &str| {
        format!(
            "--- a/one.py\n+++ b/one.py\n@@ -8 +8,0 @@\n-{old}\n--- a/two.py\n+++ b/two.py\n@@ -3,0 +4 @@\n+{new}\n"
        )
    };
    let found = |text: String| crate::real::review(text.as_bytes()).findings.len();
    assert_eq!(found(diff("    # TODO: more", "# TODO: more")), 0);
    assert_eq!(found(diff("    # TODO: less", "# TODO: more")), 1);
}

#[test]
fn line_ends_do_not_matter() {
    assert_eq!(lines(&whole("a.py", &MONEY.replace('\n', "\r\n"), check)), [("truncated-money", 2)]);
}

#[test]
fn code_of_tests_is_spared() {
    let text = "fn a(t: &str) -> u16 {\n    t.parse().unwrap()\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {\n        dbg!(x.parse::<u8>().unwrap());\n    }\n}\n";
    assert_eq!(lines(&whole("src/a.rs", text, check)), [("unwrap-on-input", 2)]);
    assert!(whole("tests/a.rs", text, check).is_empty());
}

/// Text that no person wrote ends soon, and without a panic.
#[test]
fn hostile_texts_end() {
    let many = 4000;
    let mut texts = vec![
        "(".repeat(many),
        "[".repeat(many),
        "{".repeat(many),
        "a.".repeat(many),
        "a+".repeat(many),
        "\"".repeat(many),
        "f\"{".repeat(many),
        "`${".repeat(many),
        "if a:\n".repeat(many),
        "not ".repeat(many),
        "#".repeat(many * 10),
        format!("x = \"{}\"", "k".repeat(1 << 20)),
        "\0\u{feff}\r\n\r".repeat(many),
        format!("fn a() {{ {} }}", "unsafe { ".repeat(many)),
        format!("int(amount{})", " * amount".repeat(many)),
        "é".repeat(many),
        "x == x == ".repeat(many),
        format!("db.execute(f\"SELECT {} FROM t\")", "{a}".repeat(many)),
        "try:\n a\nexcept:\n".repeat(many / 4),
    ];
    texts.extend((0..500).map(|depth| " ".repeat(depth) + "if a:\n").reduce(|text, line| text + &line));
    for path in ["a.py", "a.ts", "a.tsx", "a.go", "a.rs"] {
        for text in &texts {
            let start = Instant::now();
            whole(path, text, |one| [check(one), check_change(&[*one])].concat());
            assert!(start.elapsed() < Duration::from_secs(10), "{path}: {}", &text[..text.floor_char_boundary(40)]);
        }
    }
}

/// The diffs of payments-api of which the kit's reviewer tells, made by git from the project.
#[test]
fn the_lines_of_the_story_give_its_findings() {
    let review = |text: &str| -> Vec<(String, u32, &'static str)> {
        let found = crate::real::review(text.as_bytes()).findings;
        found.into_iter().map(|one| (one.file, one.line, one.severity.word())).collect()
    };
    let refunds = "payments/refunds.py".to_owned();
    let rounds_down = include_str!("../../../../../scenarios/payments-api/rounds-down.diff");
    assert_eq!(review(rounds_down), [(refunds.clone(), 42, "high"), (refunds, 57, "low")]);
    let keeps_cents = include_str!("../../../../../scenarios/payments-api/keeps-cents.diff");
    assert_eq!(review(keeps_cents), [("tests/test_refunds.py".to_owned(), 18, "low")]);
}

/// A diff of fifty thousand lines in four languages, with time to spare for a build that is not optimised.
/// `scripts/large-diff.sh` measures one that is.
#[test]
fn a_large_diff_is_read_soon() {
    let functions = [
        (
            "py",
            "def net_N(charge, gross):\n    if gross > charge.left():\n        raise TooMuch(gross)\n    fee = charge.cents * 5 // 100\n    return gross - fee\n",
        ),
        (
            "ts",
            "function netN(charge: Charge, gross: number): number {\n  if (gross > charge.left()) throw new TooMuch(gross);\n  const fee = charge.cents * 5;\n  return gross - fee / 100;\n}\n",
        ),
        (
            "go",
            "func netN(charge *Charge, gross int64) int64 {\n\tif gross > charge.Left() { panic(gross) }\n\tfee := charge.Cents * 5 / 100\n\treturn gross - fee\n}\n",
        ),
        (
            "rs",
            "fn net_N(charge: &Charge, gross: i64) -> i64 {\n    assert!(gross <= charge.left(), \"{gross}\");\n    let fee = charge.cents * 5 / 100;\n    gross - fee\n}\n",
        ),
    ];
    let mut diff = String::new();
    for file in 0..100 {
        let (end, function) = functions[file % 4];
        diff.push_str(&format!("--- /dev/null\n+++ b/src/net_{file}.{end}\n@@ -0,0 +1,500 @@\n"));
        for number in 0..100 {
            function.replace('N', &number.to_string()).lines().for_each(|line| diff.push_str(&format!("+{line}\n")));
        }
    }
    let start = Instant::now();
    let review = crate::real::review(diff.as_bytes());
    println!("{} lines in {:?}", diff.lines().count(), start.elapsed());
    assert_eq!(review.notes, []);
    assert_eq!(lines(&review.findings), [(UNTESTED_CHANGE.id, 1)]);
    assert!(start.elapsed() < Duration::from_secs(30));
}
