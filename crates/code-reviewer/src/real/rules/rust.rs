//! What the rules look at in Rust.

use tree_sitter::Node;

use super::file::File;
use super::tree::{part, parts, within};
use super::{
    DEBUGGING_LEFT, LOCK_ACROSS_AWAIT, TLS_UNVERIFIED, TRUNCATED_MONEY, UNSAFE_WITHOUT_REASON, UNWRAP_ON_INPUT,
};

/// Whether an item is code of tests by an attribute before it.
pub(super) fn is_test(file: &File<'_>, node: Node<'_>) -> bool {
    if !matches!(node.kind(), "mod_item" | "function_item") {
        return false;
    }
    let before = file.source.text.get(..node.start_byte()).unwrap_or_default();
    let lines = before.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(20);
    let attributes = lines.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    attributes.filter(|line| line.starts_with("#[")).any(|line| {
        line.contains("cfg(test")
            || line.contains("cfg(all(test")
            || line.trim_end_matches("()]").ends_with("test")
            || line.contains("test]")
            || line.contains("test(")
    })
}

pub(super) fn look(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    match node.kind() {
        "unsafe_block" => unsound(file, node),
        "impl_item" if file.text(node).starts_with("unsafe") => unsound(file, node),
        _ if file.test => {}
        "macro_invocation" if file.part(node, "macro") == "dbg" => {
            file.say(&DEBUGGING_LEFT, node, "`dbg!` was put in to debug.");
        }
        "call_expression" => call(file, node),
        "type_cast_expression" => cast(file, node, up),
        "let_declaration" => lock(file, node, up),
        _ => {}
    }
}

fn call(file: &mut File<'_>, node: Node<'_>) {
    let Some(function) = part(node, "function").filter(|one| one.kind() == "field_expression") else { return };
    match file.part(function, "field") {
        "danger_accept_invalid_certs" | "danger_accept_invalid_hostnames"
            if part(node, "arguments").is_some_and(|one| file.text(one) == "(true)") =>
        {
            file.say(&TLS_UNVERIFIED, node, "The certificate of the other side is not checked.");
        }
        "unwrap" if !file.aside => {
            let Some(call) = part(function, "value").filter(|one| one.kind() == "call_expression") else { return };
            if reads_input(file, call) {
                // The chain may have several lines; what is wrong is the last.
                let line = part(function, "field").map_or(file.line(node), |one| file.line(one));
                file.say_at(
                    &UNWRAP_ON_INPUT,
                    line,
                    format!(
                        "`{}` can be an error for what comes from outside; unwrap ends the program then.",
                        file.quote(call)
                    ),
                );
            }
        }
        _ => {}
    }
}

/// Whether a call turns what comes from outside into a value, and fails for some of it.
fn reads_input(file: &File<'_>, call: Node<'_>) -> bool {
    let Some(function) = part(call, "function") else { return false };
    let arguments = part(call, "arguments").map(parts).unwrap_or_default();
    let fixed = |node: Node<'_>| {
        within(node, 40).iter().any(|(one, _)| one.kind().ends_with("literal") || one.kind() == "macro_invocation")
            || super::file::is_constant(file.text(node))
    };
    let mut callee = function;
    if callee.kind() == "generic_function"
        && let Some(inner) = part(callee, "function")
    {
        callee = inner;
    }
    match callee.kind() {
        "field_expression" => {
            let value = part(callee, "value");
            file.part(callee, "field") == "parse" && arguments.is_empty() && value.is_some_and(|one| !fixed(one))
        }
        "scoped_identifier" => {
            let path = file.text(callee);
            let reads = [
                "serde_json::from_str",
                "serde_json::from_slice",
                "serde_json::from_reader",
                "str::from_utf8",
                "String::from_utf8",
                "toml::from_str",
            ];
            reads.iter().any(|known| path.ends_with(known)) && arguments.first().is_some_and(|one| !fixed(*one))
        }
        _ => false,
    }
}

fn cast(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    let whole = matches!(file.part(node, "type"), "i64" | "u64" | "i32" | "u32" | "i128" | "u128" | "usize" | "isize");
    let Some(value) = part(node, "value").filter(|_| whole) else { return };
    let function = up.iter().rev().find(|one| one.kind() == "function_item");
    let parameters = function.map_or("", |one| file.part(*one, "parameters"));
    let nodes = within(value, 60);
    let fraction = nodes.iter().any(|(one, _)| {
        one.kind() == "float_literal"
            || one.kind() == "identifier" && parameters.contains(&format!("{}: f", file.text(*one)))
    });
    let rounds = nodes.iter().any(|(one, _)| {
        one.kind() == "field_identifier"
            && matches!(file.text(*one), "round" | "ceil" | "floor" | "trunc" | "round_ties_even")
    });
    if fraction && !rounds && file.of_money(value) {
        file.say(&TRUNCATED_MONEY, node, format!("`{}` cuts off a part of the amount.", file.quote(node)));
    }
}

/// A guard of `std::sync` in a block that waits before the guard goes. A lock of an async runtime is awaited itself.
fn lock(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    let (Some(pattern), Some(block)) = (part(node, "pattern"), up.last()) else { return };
    let value: String = file.part(node, "value").chars().filter(|one| !one.is_whitespace()).take(200).collect();
    let held = [".lock()", ".read()", ".write()"].iter().any(|take| {
        let (unwrap, expect) = (format!("{take}.unwrap()"), format!("{take}.expect("));
        value.ends_with(&unwrap)
            || value.find(&expect).is_some_and(|at| !value[at + expect.len()..].contains(").") && value.ends_with(')'))
    });
    let name = file.text(pattern).trim_start_matches("mut ").trim();
    if !held || name == "_" || block.kind() != "block" {
        return;
    }
    let drops = format!("drop({name})");
    let mut inner_until = 0;
    for (one, _) in within(*block, 5000) {
        if one.start_byte() < node.end_byte() || one.start_byte() < inner_until {
            continue;
        }
        match one.kind() {
            "call_expression" if file.text(one) == drops => return,
            // What these hold runs at another time.
            "async_block" | "closure_expression" | "function_item" => inner_until = one.end_byte(),
            "await_expression" => {
                file.say(
                    &LOCK_ACROSS_AWAIT,
                    node,
                    format!("`{name}` is held while line {} waits; drop it before.", file.line(one)),
                );
                return;
            }
            _ => {}
        }
    }
}

fn unsound(file: &mut File<'_>, node: Node<'_>) {
    // To say it once for a file is enough.
    if file.test || !file.source.whole || file.found.iter().any(|one| one.rule == UNSAFE_WITHOUT_REASON.id) {
        return;
    }
    let start = file.source.text.get(..node.start_byte()).unwrap_or_default();
    let above = start.lines().rev().take(12).any(|line| {
        let line = line.to_ascii_lowercase();
        line.contains("safety") || line.contains("sound")
    });
    let inside = file.text(node).lines().take(4).any(|line| line.to_ascii_lowercase().contains("safety"));
    if !above && !inside {
        file.say(&UNSAFE_WITHOUT_REASON, node, "A `SAFETY:` comment should say why this is sound.");
    }
}
