//! Strings that are put together, and where they go: SQL and the shell.

use tree_sitter::Node;

use super::file::{File, is_constant};
use super::tree::{part, parts, within};
use super::{SHELL_FROM_STRINGS, SQL_FROM_STRINGS};
use crate::real::source::Language;

/// How many nodes of a string are looked at.
const MOST: usize = 400;

/// A string that is put together: what of it is fixed, or none when all of it is.
pub(super) fn built(file: &File<'_>, node: Node<'_>) -> Option<String> {
    let mut node = node;
    while matches!(node.kind(), "parenthesized_expression" | "reference_expression") {
        node = parts(node).pop()?;
    }
    match node.kind() {
        "string" | "concatenated_string" | "template_string" => changing(file, node).then(|| fixed(file, node)),
        "binary_operator" | "binary_expression" => {
            let joins = match file.part(node, "operator") {
                "+" => true,
                "%" => file.source.language == Language::Python && is_string(part(node, "left")?),
                _ => false,
            };
            (joins && within(node, MOST).iter().any(|(one, _)| is_string(*one)) && changing(file, node))
                .then(|| fixed(file, node))
        }
        "call" => {
            let format = part(node, "function")?;
            let object = part(format, "object").filter(|one| is_string(*one))?;
            let arguments = part(node, "arguments")?;
            (file.part(format, "attribute") == "format" && changing(file, arguments)).then(|| fixed(file, object))
        }
        "call_expression" if file.callee(node) == "fmt.Sprintf" => {
            let arguments = part(node, "arguments")?;
            let text = fixed(file, arguments);
            // Numbers are no SQL and no command.
            let values = text.contains("%s") || text.contains("%v");
            (values && changing(file, arguments)).then_some(text)
        }
        "macro_invocation" if file.part(node, "macro") == "format" => {
            let text = fixed(file, node);
            let names = within(node, MOST).into_iter().filter(|(one, _)| one.kind() == "identifier").skip(1);
            let names: Vec<&str> = names.map(|(one, _)| file.text(one)).collect();
            let captured = text.split('{').skip(1).filter_map(|rest| rest.split(['}', ':']).next());
            let changes = names.iter().any(|name| !is_constant(name) && !is_placeholder(name))
                || captured.filter(|name| !name.is_empty()).any(|name| {
                    !is_constant(name) && !is_placeholder(name) && !name.contains(|one: char| one.is_ascii_digit())
                });
            changes.then_some(text)
        }
        _ => None,
    }
}

fn is_string(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "string"
            | "concatenated_string"
            | "template_string"
            | "interpreted_string_literal"
            | "raw_string_literal"
            | "string_literal"
    )
}

fn is_placeholder(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("placeholder") || text.contains("'?'") || text.contains("\"?\"") || text.contains("%s")
}

/// Whether something in a string that is put together is not fixed.
fn changing(file: &File<'_>, node: Node<'_>) -> bool {
    let mut quiet_until = 0;
    within(node, MOST).iter().any(|(one, parent)| {
        if one.start_byte() < quiet_until {
            return false;
        }
        match one.kind() {
            "interpolation" | "template_substitution" | "call" | "call_expression"
                if is_placeholder(file.text(*one)) =>
            {
                quiet_until = one.end_byte();
                false
            }
            "attribute" | "member_expression" | "selector_expression" | "identifier" => {
                let text = file.text(*one);
                let named = one.kind() == "identifier"
                    && parent.is_some_and(|up| up.kind() == "keyword_argument" && part(up, "name") == Some(*one));
                let last = text.rsplit('.').next().unwrap_or(text);
                let settled = is_constant(last) || is_placeholder(text) || named;
                if settled {
                    quiet_until = one.end_byte();
                }
                !settled
            }
            _ => false,
        }
    })
}

/// What is fixed in a string, with a `{}` where something is put in.
fn fixed(file: &File<'_>, node: Node<'_>) -> String {
    let mut text = String::new();
    for (one, _) in within(node, MOST) {
        match one.kind() {
            "string_content" | "string_fragment" => text.push_str(file.text(one)),
            "interpreted_string_literal" | "raw_string_literal" => {
                text.push_str(file.text(one).trim_matches(['"', '`']));
            }
            "interpolation" | "template_substitution" => text.push_str("{}"),
            _ => {}
        }
    }
    text
}

/// Whether a text begins as an SQL statement does. As a rule SQL in programs is in capitals; a sentence is not.
fn is_sql(text: &str, any_case: bool) -> bool {
    let upper = text.to_ascii_uppercase();
    let text = if any_case { upper.as_str() } else { text }.trim_start();
    let then = |first: &str, then: &str| text.strip_prefix(first).is_some_and(|rest| rest.contains(then));
    then("SELECT ", " FROM ")
        || then("UPDATE ", " SET ")
        || ["INSERT INTO ", "DELETE FROM ", "DROP TABLE ", "TRUNCATE TABLE "].iter().any(|verb| text.starts_with(verb))
}

/// Looks for SQL and shell commands that are put together.
pub(super) fn look(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    if file.test {
        return;
    }
    let Some(parent) = up.last() else { return };
    match node.kind() {
        "string"
        | "concatenated_string"
        | "template_string"
        | "binary_operator"
        | "binary_expression"
        | "call"
        | "call_expression"
        | "macro_invocation" => {}
        _ => return,
    }
    // The whole of `a + b + c`, not its parts.
    let inner =
        matches!(parent.kind(), "binary_operator" | "binary_expression" | "concatenated_string" | "interpolation");
    if !inner && let Some(text) = built(file, node) {
        let runs = up.iter().rev().nth(1).is_some_and(|call| {
            let callee = file.callee(*call);
            let name = callee.rsplit(['.', ':']).next().unwrap_or_default();
            matches!(
                name,
                "execute"
                    | "executemany"
                    | "executescript"
                    | "query"
                    | "Query"
                    | "QueryRow"
                    | "Exec"
                    | "QueryContext"
                    | "ExecContext"
                    | "QueryRowContext"
                    | "query_as"
                    | "raw"
            )
        });
        if is_sql(&text, runs) {
            file.say(
                &SQL_FROM_STRINGS,
                node,
                "A value is put into the text of an SQL statement; give it as a parameter.",
            );
        }
    }
    if matches!(node.kind(), "call" | "call_expression") && runs_a_shell(file, node) {
        file.say(
            &SHELL_FROM_STRINGS,
            node,
            "A value is put into the text of a shell command; give the program and its arguments as a list.",
        );
    }
}

fn runs_a_shell(file: &File<'_>, call: Node<'_>) -> bool {
    let Some(arguments) = part(call, "arguments").map(parts) else { return false };
    let Some(first) = arguments.first() else { return false };
    let callee = file.callee(call);
    match file.source.language {
        Language::Python => {
            let shell = arguments.iter().any(|one| {
                one.kind() == "keyword_argument"
                    && file.part(*one, "name") == "shell"
                    && file.part(*one, "value") == "True"
            });
            let runs =
                matches!(callee, "os.system" | "os.popen" | "subprocess.getoutput" | "subprocess.getstatusoutput")
                    || callee.starts_with("subprocess.") && shell;
            runs && built(file, *first).is_some()
        }
        Language::TypeScript | Language::Tsx => {
            let runs = matches!(
                callee,
                "exec" | "execSync" | "child_process.exec" | "child_process.execSync" | "cp.exec" | "cp.execSync"
            );
            runs && built(file, *first).is_some()
        }
        Language::Go => {
            let words: Vec<&str> = arguments.iter().map(|one| file.text(*one)).collect();
            let shell = words.windows(2).any(|two| {
                matches!(two[0], r#""sh""# | r#""bash""# | r#""/bin/sh""# | r#""/bin/bash""#)
                    && two[1].starts_with("\"-")
            });
            matches!(callee, "exec.Command" | "exec.CommandContext")
                && shell
                && arguments.last().is_some_and(|last| built(file, *last).is_some())
        }
        Language::Rust => {
            let Some(function) = part(call, "function") else { return false };
            let before = file.part(function, "value");
            let words: String = before.chars().filter(|one| !one.is_whitespace()).take(400).collect();
            file.part(function, "field") == "arg"
                && words.ends_with(r#".arg("-c")"#)
                && ["sh", "bash", "/bin/sh", "/bin/bash"]
                    .iter()
                    .any(|shell| words.contains(&format!(r#"Command::new("{shell}")"#)))
                && built(file, *first).is_some()
        }
    }
}
