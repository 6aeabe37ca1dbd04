//! What looks the same in every language: secrets, TODOs, comparisons, names of async functions.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::file::{File, words};
use super::tree::{has_word, part, parts, walk};
use super::{ALWAYS_TRUE, INEXACT_EQUALITY, SECRET_IN_SOURCE, TODO_WITHOUT_ISSUE};
use crate::real::source::Language;

/// Names of async functions of a file: those of the file itself and those of its classes.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub free: BTreeSet<String>,
    pub methods: BTreeSet<String>,
}

/// The async functions of a file, but for names that another function has too.
pub(super) fn futures(file: &File<'_>, root: Node<'_>) -> Names {
    let mut found = Names::default();
    if !file.source.text.contains("async") {
        return found;
    }
    let mut others = BTreeSet::new();
    walk(root, |node, up| {
        let (function, name) = match node.kind() {
            "function_definition" | "function_declaration" | "method_definition" => (node, file.part(node, "name")),
            "variable_declarator" => match part(node, "value").filter(|value| value.kind() == "arrow_function") {
                Some(value) => (value, file.part(node, "name")),
                None => return true,
            },
            _ => return true,
        };
        // An async generator is no future.
        let runs = has_word(function, "async")
            && !has_word(function, "*")
            && !file.text(function).contains("yield")
            && !up.last().is_some_and(|outer| is_made_other(file, *outer));
        let in_class = up.iter().rev().take(3).any(|one| matches!(one.kind(), "class_definition" | "class_body"));
        match (runs, in_class) {
            (true, true) => found.methods.insert(name.to_owned()),
            (true, false) => found.free.insert(name.to_owned()),
            (false, _) => others.insert(name.to_owned()),
        };
        true
    });
    found.free.retain(|name| !others.contains(name));
    found.methods.retain(|name| !others.contains(name));
    found
}

/// Whether a decorator may make something else of what it decorates, such as a function that is not async.
fn is_made_other(file: &File<'_>, outer: Node<'_>) -> bool {
    let harmless = ["@staticmethod", "@classmethod", "@abstractmethod", "@abc.abstractmethod", "@override"];
    outer.kind() == "decorated_definition"
        && parts(outer).iter().any(|one| one.kind() == "decorator" && !harmless.contains(&file.text(*one).trim()))
}

/// Looks at what every language has.
pub(super) fn look(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    match node.kind() {
        "comment" | "line_comment" | "block_comment" => todo(file, node),
        "string" | "interpreted_string_literal" | "raw_string_literal" | "string_literal" | "template_string" => {
            secret(file, node, up);
        }
        "binary_expression" => {
            if let (Some(left), Some(right)) = (part(node, "left"), part(node, "right")) {
                comparison(file, node, left, file.part(node, "operator"), right);
            }
        }
        "comparison_operator" => {
            if let &[left, right] = parts(node).as_slice()
                && let Some(between) = file.source.text.get(left.end_byte()..right.start_byte())
            {
                comparison(file, node, left, between.trim(), right);
            }
        }
        _ => {}
    }
}

fn todo(file: &mut File<'_>, node: Node<'_>) {
    if file.test {
        return;
    }
    for (row, line) in file.text(node).lines().enumerate() {
        // The word stands first: `// TODO: ...`. In a sentence it is spoken of.
        let words = line.trim_start_matches(|letter: char| letter.is_whitespace() || "#/*!-".contains(letter));
        let Some(mark) = ["TODO", "FIXME"].into_iter().find(|mark| words.starts_with(mark)) else { continue };
        let rest = &words[mark.len()..];
        if rest.starts_with('(')
            || rest.starts_with(|one: char| one.is_alphanumeric() || one == '_')
            || names_an_issue(rest)
        {
            continue;
        }
        let line = file.line(node).saturating_add(u32::try_from(row).unwrap_or(u32::MAX));
        file.say_at(&TODO_WITHOUT_ISSUE, line, format!("This {mark} names no issue."));
    }
}

/// Whether there is `#12`, `ABC-12`, or an address.
fn names_an_issue(text: &str) -> bool {
    let number = |rest: &str| rest.starts_with(|one: char| one.is_ascii_digit());
    text.contains("://")
        || text.split('#').skip(1).any(number)
        || text.split(|one: char| !(one.is_alphanumeric() || one == '-')).any(|word| {
            word.split_once('-').is_some_and(|(key, rest)| {
                key.len() > 1 && key.chars().all(|one| one.is_ascii_uppercase() || one.is_ascii_digit()) && number(rest)
            })
        })
}

/// How keys begin that a service gives out, and how many letters come after at least.
const KEYS: [(&str, usize); 12] = [
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 40),
    ("glpat-", 18),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("sk_live_", 20),
    ("rk_live_", 20),
    ("AIza", 35),
];

fn secret(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    if file.test || node.end_byte() - node.start_byte() > 20_000 {
        return;
    }
    let literal = file.text(node);
    let text = literal.trim_start_matches(['b', 'r', 'f', 'u', '#']).trim_matches(['"', '\'', '`', '#']);
    let key = KEYS.iter().any(|(begin, more)| {
        text.strip_prefix(begin).is_some_and(|rest| {
            rest.len() >= *more
                && rest.chars().all(|one| one.is_ascii_alphanumeric() || "_-".contains(one))
                && is_random(rest)
        })
    });
    // With what belongs between the two lines: a program that reads keys names their first line.
    let private = text.trim_start().starts_with("-----BEGIN ")
        && text.lines().next().is_some_and(|line| line.contains("PRIVATE KEY-----"))
        && text.len() > 200;
    if key || private {
        file.say(
            &SECRET_IN_SOURCE,
            node,
            "A key stands in the source; take it from where secrets are kept, and revoke it.",
        );
        return;
    }
    let Some(parent) = up.last() else { return };
    let name = match parent.kind() {
        "assignment" => file.part(*parent, "left"),
        "variable_declarator" | "const_item" | "static_item" | "keyword_argument" => file.part(*parent, "name"),
        "let_declaration" => file.part(*parent, "pattern"),
        "pair" => file.part(*parent, "key"),
        "expression_list" => match up.iter().rev().nth(1).map(|one| (one.kind(), *one)) {
            Some(("short_var_declaration" | "assignment_statement", one)) => file.part(one, "left"),
            Some(("const_spec" | "var_spec", one)) => file.part(one, "name"),
            _ => return,
        },
        _ => return,
    };
    let name = words(name.rsplit('.').next().unwrap_or(name).trim_matches(['"', '\'', ']'])).join("_");
    let last = [
        "password",
        "passwd",
        "secret",
        "secret_key",
        "api_key",
        "apikey",
        "access_token",
        "auth_token",
        "private_key",
    ];
    if last.iter().any(|word| name == *word || name.ends_with(&format!("_{word}"))) && is_random(text) {
        file.say(
            &SECRET_IN_SOURCE,
            node,
            format!("`{name}` has its value in the source; take it from where secrets are kept, and change it."),
        );
    }
}

/// Whether a text looks as if dice had written it: long enough, letters and digits mixed, few of them twice.
fn is_random(text: &str) -> bool {
    let different: BTreeSet<char> = text.chars().collect();
    let kind = |of: fn(&char) -> bool| usize::from(text.chars().any(|one| of(&one)));
    let kinds = kind(char::is_ascii_digit) + kind(char::is_ascii_lowercase) + kind(char::is_ascii_uppercase);
    (12..=200).contains(&text.len())
        && different.len() >= 10
        && text.chars().all(|one| one.is_ascii_graphic() && !"{}<>$%()[] ".contains(one))
        && text.chars().filter(char::is_ascii_digit).count() >= 2
        && kinds >= 2
        && !text.to_ascii_lowercase().contains("example")
        && !text.contains("://")
}

/// A comparison that is decided before the program runs, and one with a fraction that cannot be met.
fn comparison(file: &mut File<'_>, node: Node<'_>, left: Node<'_>, operator: &str, right: Node<'_>) {
    if file.test || !matches!(operator, "==" | "===" | "!=" | "!==" | "<" | "<=" | ">" | ">=" | "is" | "is not") {
        return;
    }
    let (one, two) = (file.text(left), file.text(right));
    // `x != x` asks whether x is no number, and is left alone.
    if one == two && !matches!(operator, "!=" | "!==") && is_plain(left) {
        let always = matches!(operator, "==" | "===" | "<=" | ">=" | "is");
        file.say(&ALWAYS_TRUE, node, format!("Both sides are `{}`, so this is always {always}.", file.quote(left)));
        return;
    }
    let is_length = match file.source.language {
        Language::Python | Language::Go => one.starts_with("len(") && part(left, "function").is_some(),
        Language::TypeScript | Language::Tsx => {
            left.kind() == "member_expression" && file.part(left, "property") == "length"
        }
        Language::Rust => left.kind() == "call_expression" && one.ends_with(".len()"),
    };
    if is_length && two == "0" && matches!(operator, ">=" | "<") {
        let always = operator == ">=";
        file.say(&ALWAYS_TRUE, node, format!("A length is never below 0, so this is always {always}."));
        return;
    }
    if matches!(operator, "is" | "is not") && matches!(right.kind(), "string" | "integer" | "float" | "tuple" | "list")
    {
        file.say(
            &ALWAYS_TRUE,
            node,
            format!(
                "`{operator}` asks whether it is the same object as {}, not whether it is equal.",
                file.quote(right)
            ),
        );
        return;
    }
    let inexact = [left, right]
        .into_iter()
        .find(|side| matches!(side.kind(), "float" | "number" | "float_literal") && is_inexact(file.text(*side)));
    if let Some(fraction) = inexact.filter(|_| matches!(operator, "==" | "===" | "!=" | "!==")) {
        file.say(
            &INEXACT_EQUALITY,
            node,
            format!("{} has no exact binary value; compare with a tolerance, or whole numbers.", file.text(fraction)),
        );
    }
}

/// A name or members of it: to read it twice gives the same.
fn is_plain(node: Node<'_>) -> bool {
    matches!(node.kind(), "identifier" | "attribute" | "member_expression" | "selector_expression" | "field_expression")
        && !super::tree::within(node, 30).iter().any(|(one, _)| one.kind().starts_with("call"))
}

/// Whether a number with a point has no exact binary value: 0.1, but not 0.5.
fn is_inexact(number: &str) -> bool {
    let digits: String = number.chars().filter(|one| *one != '_').collect();
    let Some((_, fraction)) = digits.trim_end_matches("f64").trim_end_matches("f32").split_once('.') else {
        return false;
    };
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() || fraction.len() > 30 || !fraction.chars().all(|one| one.is_ascii_digit()) {
        return false;
    }
    // It is exact when it ends after as many halvings as it has digits.
    let places = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    fraction.parse::<u128>().is_ok_and(|value| !value.is_multiple_of(5u128.saturating_pow(places)))
}
