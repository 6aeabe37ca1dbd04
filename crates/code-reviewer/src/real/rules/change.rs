//! What is seen only in the whole change: code that got no test.

use tree_sitter::Node;

use super::UNTESTED_CHANGE;
use super::file::{self, File};
use super::tree::{has_word, parse, part, walk};
use crate::real::finding::Finding;
use crate::real::source::{Language, Source};

/// How many lines a new function has at least that wants a test.
const LINES: usize = 5;

/// At most one finding, at the first place that wants a test, in a change that has none: to say it once is enough.
pub(super) fn check(files: &[Source<'_>]) -> Vec<Finding> {
    if files.iter().any(changes_tests) {
        return Vec::new();
    }
    let mut places = files.iter().filter(|source| !source.changed.is_empty()).filter_map(untested);
    let Some(mut first) = places.next() else { return Vec::new() };
    match places.count() {
        0 => {}
        1 => first.finding.push_str(" Another file wants one too."),
        more => first.finding.push_str(&format!(" {more} other files want one too.")),
    }
    vec![first]
}

fn changes_tests(source: &Source<'_>) -> bool {
    if source.changed.is_empty() {
        return false;
    }
    let inside = || {
        let at = source.text.find("#[cfg(test)]")?;
        let row = u32::try_from(source.text.get(..at)?.matches('\n').count()).ok()?;
        source.changed.range(source.first_line.checked_add(row)?..).next()
    };
    file::is_test(source.path) || source.language == Language::Rust && inside().is_some()
}

fn untested(source: &Source<'_>) -> Option<Finding> {
    let tree = parse(source)?;
    let mut file = File::new(source);
    if file.aside || source.path.ends_with(".pyi") || source.path.ends_with(".d.ts") {
        return None;
    }
    walk(tree.root_node(), |node, up| {
        if !file.found.is_empty() || !file.touches(node) {
            return false;
        }
        let kind = node.kind();
        let branches =
            matches!(kind, "if_statement" | "elif_clause" | "if_expression" | "case_clause" | "expression_case");
        let function = matches!(
            kind,
            "function_definition"
                | "function_declaration"
                | "method_definition"
                | "method_declaration"
                | "function_item"
        );
        if branches && file.begins_changed(node) {
            if let Some(at) =
                up.iter().rposition(|one| is_function(one.kind())).filter(|at| is_public(&file, up[*at], &up[..*at]))
            {
                let body = part(node, "consequence").or_else(|| part(node, "body"));
                let new = body.is_some_and(|body| file.all_changed(body));
                let name = file.part(up[at], "name");
                let finding = match new {
                    true => "The new branch has no test.".to_owned(),
                    false => format!("No test of the change covers the other condition in `{name}`."),
                };
                file.say(&UNTESTED_CHANGE, node, finding);
            }
        } else if function
            && file.all_changed(node)
            && file.text(node).lines().count() >= LINES
            && is_public(&file, node, up)
        {
            let finding = format!("The new function `{}` has no test.", file.part(node, "name"));
            file.say(&UNTESTED_CHANGE, node, finding);
        }
        true
    });
    file.found.pop()
}

fn is_function(kind: &str) -> bool {
    matches!(
        kind,
        "function_definition" | "function_declaration" | "method_definition" | "method_declaration" | "function_item"
    )
}

fn is_public(file: &File<'_>, function: Node<'_>, up: &[Node<'_>]) -> bool {
    let name = file.part(function, "name");
    match file.source.language {
        Language::Python => {
            !name.starts_with('_')
                && !up.iter().any(|one| {
                    is_function(one.kind())
                        || one.kind() == "class_definition" && file.part(*one, "name").starts_with('_')
                })
        }
        Language::TypeScript | Language::Tsx => {
            up.iter().any(|one| one.kind() == "export_statement")
                && !name.starts_with(['_', '#'])
                && !has_word(function, "private")
        }
        Language::Go => name.starts_with(char::is_uppercase),
        Language::Rust => {
            let text = file.text(function);
            text.starts_with("pub ") && !up.iter().any(|one| is_function(one.kind()))
        }
    }
}
