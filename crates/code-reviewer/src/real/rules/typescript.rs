//! What the rules look at in TypeScript and JavaScript.

use tree_sitter::Node;

use super::file::File;
use super::text::Names;
use super::tree::{has_word, part, parts};
use super::{
    ALWAYS_TRUE, AWAIT_FORGOTTEN, DEBUGGING_LEFT, EVAL_OF_DATA, SWALLOWED_EXCEPTION, TLS_UNVERIFIED, TRUNCATED_MONEY,
};

pub(super) fn look(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>], futures: &Names) {
    match node.kind() {
        "call_expression" => call(file, node),
        "new_expression" if !file.test && file.part(node, "constructor") == "Function" => {
            let last = part(node, "arguments").and_then(|one| parts(one).pop());
            if last.is_some_and(|one| one.kind() != "string") {
                file.say(&EVAL_OF_DATA, node, "`new Function` makes code of text that is not fixed.");
            }
        }
        "catch_clause" if !file.test => {
            // One whose end is not seen may go on.
            let empty = part(node, "body").is_some_and(|one| {
                one.kind() == "statement_block" && one.named_child_count() == 0 && file.text(one).ends_with('}')
            });
            if empty {
                file.say(
                    &SWALLOWED_EXCEPTION,
                    node,
                    "Every error that comes here is dropped; handle it, or tell of it.",
                );
            }
        }
        "debugger_statement" if !file.test => file.say(&DEBUGGING_LEFT, node, "`debugger` stops the program."),
        "pair"
            if !file.test && file.part(node, "key") == "rejectUnauthorized" && file.part(node, "value") == "false" =>
        {
            file.say(&TLS_UNVERIFIED, node, "The certificate of the other side is not checked.");
        }
        "expression_statement" => dropped(file, node, up, futures),
        "binary_expression" if file.part(node, "operator") == "||" => {
            let compares = part(node, "left").is_some_and(|left| matches!(file.part(left, "operator"), "==" | "==="));
            let text = part(node, "right").filter(|right| right.kind() == "string" && file.text(*right).len() > 2);
            let tested = up.last().is_some_and(|one| one.kind() == "parenthesized_expression");
            if let Some(text) = text.filter(|_| compares && tested) {
                file.say(
                    &ALWAYS_TRUE,
                    node,
                    format!("{} alone is always true; compare with it too.", file.quote(text)),
                );
            }
        }
        _ => {}
    }
}

fn call(file: &mut File<'_>, node: Node<'_>) {
    let callee = file.callee(node);
    let first = part(node, "arguments").and_then(|one| parts(one).first().copied());
    if file.test {
        return;
    }
    match callee {
        "eval" if first.is_some_and(|one| one.kind() != "string") => {
            file.say(&EVAL_OF_DATA, node, "`eval` runs text that is not fixed as code.");
        }
        "console.log" | "console.debug" if !file.aside => {
            let text = first.map_or("", |one| file.text(one)).trim_start_matches(['"', '\'', '`']);
            if ["DEBUG", "debug", "here", ">>>", "!!!", "XXX"].iter().any(|mark| text.starts_with(mark)) {
                file.say(&DEBUGGING_LEFT, node, format!("`{}` was put in to debug.", file.quote(node)));
            }
        }
        "parseInt" | "Number.parseInt" | "Math.trunc" | "Math.floor" => {
            let product = first
                .filter(|one| one.kind() == "binary_expression" && matches!(file.part(*one, "operator"), "*" | "/"));
            if product.is_some_and(|one| file.of_money(one)) {
                file.say(&TRUNCATED_MONEY, node, format!("`{}` cuts off a part of the amount.", file.quote(node)));
            }
        }
        _ => {}
    }
}

fn dropped(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>], futures: &Names) {
    let Some(call) = parts(node).first().copied().filter(|one| one.kind() == "call_expression") else { return };
    let callee = file.callee(call);
    let known = match callee.strip_prefix("this.") {
        Some(method) => futures.methods.contains(method),
        None => futures.free.contains(callee),
    };
    let functions = ["function_declaration", "method_definition", "arrow_function", "function_expression"];
    let inside = up.iter().rev().find(|one| functions.contains(&one.kind()));
    if known && inside.is_some_and(|one| has_word(*one, "async")) {
        file.say(
            &AWAIT_FORGOTTEN,
            node,
            format!("`{callee}` is async and nobody waits for it; await it, or say `void`."),
        );
    }
}
