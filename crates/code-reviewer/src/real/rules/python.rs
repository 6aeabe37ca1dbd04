//! What the rules look at in Python.

use tree_sitter::Node;

use super::file::{File, words};
use super::text::Names;
use super::tree::{part, parts, within};
use super::{
    ALWAYS_TRUE, AWAIT_FORGOTTEN, BARE_EXCEPT, DEBUGGING_LEFT, EVAL_OF_DATA, MUTABLE_DEFAULT, RESOURCE_NOT_CLOSED,
    SWALLOWED_EXCEPTION, TEST_NAME_WITHOUT_RULE, TLS_UNVERIFIED, TRUNCATED_MONEY,
};

/// How many nodes of a function are looked at.
const MOST: usize = 5000;

pub(super) fn look(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>], futures: &Names) {
    match node.kind() {
        "call" => call(file, node, up),
        "except_clause" => except(file, node),
        "default_parameter" | "typed_default_parameter" => default(file, node),
        "assert_statement" => assert(file, node),
        "boolean_operator" => or_text(file, node),
        "expression_statement" => dropped(file, node, futures),
        "assignment" => opened(file, node, up),
        "function_definition" => name_of_test(file, node),
        _ => {}
    }
}

fn call(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    let callee = file.callee(node);
    let arguments = part(node, "arguments").map(parts).unwrap_or_default();
    let first_opens = arguments.first().is_some_and(|one| one.kind() == "call" && file.callee(*one) == "open");
    match callee {
        "int" if !file.test && arguments.len() == 1 && cuts(file, arguments[0], up) => {
            let whole = up.iter().rev().take(4).find(|one| one.kind() == "binary_operator");
            let after = whole.filter(|one| {
                file.part(**one, "operator") == "-"
                    && part(**one, "left").is_some_and(|left| left.end_byte() >= node.end_byte())
            });
            let before = after.and_then(|one| part(*one, "right"));
            let before =
                before.map(|right| format!(" before `{}` is subtracted", file.quote(right))).unwrap_or_default();
            let finding = format!("`{}` rounds the amount toward zero{before}.", file.quote(node));
            file.say(&TRUNCATED_MONEY, node, finding);
        }
        "breakpoint" | "pdb.set_trace" | "ipdb.set_trace" | "pudb.set_trace" if !file.test => {
            file.say(&DEBUGGING_LEFT, node, format!("`{callee}` stops the program."));
        }
        "print" if !file.test && !file.aside => {
            let shows = arguments.iter().any(|one| {
                one.kind() == "string"
                    && within(*one, 40).iter().any(|(one, _)| {
                        one.kind() == "interpolation" && {
                            let text = file.text(*one);
                            text.ends_with("=}") && !text.contains("==")
                        }
                    })
            });
            let marked = arguments.first().is_some_and(|one| {
                let text = file.text(*one).trim_start_matches('f').trim_matches(['"', '\'']);
                text.starts_with("DEBUG") || text.starts_with(">>>") || text.starts_with("!!!")
            });
            if shows || marked {
                file.say(&DEBUGGING_LEFT, node, format!("`{}` was put in to debug.", file.quote(node)));
            }
        }
        "eval" | "exec" if !file.test => {
            let data = arguments.first().is_some_and(|one| {
                !matches!(one.kind(), "string" | "concatenated_string") || super::strings::built(file, *one).is_some()
            });
            if data {
                file.say(&EVAL_OF_DATA, node, format!("`{callee}` runs text that is not fixed as code."));
            }
        }
        "ssl._create_unverified_context" if !file.test => {
            file.say(&TLS_UNVERIFIED, node, "Certificates are not checked in this context.");
        }
        "json.load" | "yaml.safe_load" | "pickle.load" if !file.test && first_opens => {
            file.say(&RESOURCE_NOT_CLOSED, node, "The file that is opened here is not closed; open it in a `with`.");
        }
        _ => {}
    }
    if !file.test {
        let unverified = arguments.iter().find(|one| {
            one.kind() == "keyword_argument"
                && file.part(**one, "name") == "verify"
                && file.part(**one, "value") == "False"
        });
        if let Some(argument) = unverified {
            file.say(&TLS_UNVERIFIED, *argument, "The certificate of the other side is not checked.");
        }
        let method = part(node, "function").filter(|one| file.part(*one, "attribute") != "close");
        let chained = method.and_then(|one| part(one, "object"));
        if chained.is_some_and(|one| one.kind() == "call" && file.callee(one) == "open") {
            file.say(&RESOURCE_NOT_CLOSED, node, "The file that is opened here is not closed; open it in a `with`.");
        }
    }
}

/// Whether `int` cuts an amount of money: a bare name, which is no text and no whole number, or a product.
fn cuts(file: &File<'_>, argument: Node<'_>, up: &[Node<'_>]) -> bool {
    if !file.of_money(argument) {
        return false;
    }
    let text = file.text(argument);
    match argument.kind() {
        "identifier" => {
            let function = up.iter().rev().find(|one| one.kind() == "function_definition");
            let parameters = function.map_or("", |one| file.part(*one, "parameters"));
            let text_or_whole =
                ["str", "int", "bytes"].iter().any(|kind| parameters.contains(&format!("{text}: {kind}")));
            let says_so = words(text).iter().any(|word| matches!(word.as_str(), "str" | "text" | "raw" | "string"));
            !text_or_whole && !says_so
        }
        "binary_operator" => {
            let rounds = within(argument, 60).iter().any(|(one, _)| {
                one.kind() == "call"
                    && ["round", "quantize", "to_integral_value", "ceil", "floor"]
                        .contains(&file.callee(*one).rsplit('.').next().unwrap_or_default())
            });
            matches!(file.part(argument, "operator"), "*" | "/") && !rounds
        }
        _ => false,
    }
}

fn except(file: &mut File<'_>, node: Node<'_>) {
    let parts = parts(node);
    let Some((body, caught)) = parts.split_last() else { return };
    if file.test || body.kind() != "block" || !file.ends(node) {
        return;
    }
    let broad = caught.first().is_none_or(|one| {
        let name = file.text(*one).split_whitespace().next().unwrap_or_default();
        matches!(name, "Exception" | "BaseException")
    });
    let statements = super::tree::parts(*body);
    let nothing = statements.iter().all(|one| one.kind() == "pass_statement" || file.text(*one) == "...");
    if broad && nothing && !file.lines(node).contains('#') {
        file.say(
            &SWALLOWED_EXCEPTION,
            node,
            "Every error that comes here is dropped; catch the one that is meant, or tell of it.",
        );
    } else if caught.is_empty() && !within(*body, 500).iter().any(|(one, _)| one.kind() == "raise_statement") {
        file.say(
            &BARE_EXCEPT,
            node,
            "This also catches KeyboardInterrupt and SystemExit; name what is meant, such as Exception.",
        );
    }
}

fn default(file: &mut File<'_>, node: Node<'_>) {
    if file.test || file.source.path.ends_with(".pyi") {
        return;
    }
    let Some(value) = part(node, "value") else { return };
    let mutable = matches!(value.kind(), "list" | "dictionary" | "set")
        || value.kind() == "call" && matches!(file.text(value), "list()" | "dict()" | "set()");
    if mutable {
        file.say(
            &MUTABLE_DEFAULT,
            node,
            format!("All calls share the one `{}`; use None and make a new one inside.", file.quote(value)),
        );
    }
}

fn assert(file: &mut File<'_>, node: Node<'_>) {
    if let [only] = parts(node).as_slice()
        && only.kind() == "tuple"
        && !parts(*only).is_empty()
    {
        file.say(&ALWAYS_TRUE, node, "A tuple with something in it is always true; leave the parentheses out.");
    }
}

/// `kind == "a" or "b"`.
fn or_text(file: &mut File<'_>, node: Node<'_>) {
    let (Some(left), Some(right)) = (part(node, "left"), part(node, "right")) else { return };
    if file.part(node, "operator") == "or"
        && left.kind() == "comparison_operator"
        && right.kind() == "string"
        && file.text(right).len() > 2
    {
        file.say(&ALWAYS_TRUE, node, format!("{} alone is always true; compare with it too.", file.quote(right)));
    }
}

fn dropped(file: &mut File<'_>, node: Node<'_>, futures: &Names) {
    let Some(call) = parts(node).first().copied().filter(|one| one.kind() == "call") else { return };
    let callee = file.callee(call);
    let known = match callee.strip_prefix("self.") {
        Some(method) => futures.methods.contains(method),
        None => futures.free.contains(callee),
    };
    if known {
        file.say(&AWAIT_FORGOTTEN, node, format!("`{callee}` is async and is not awaited, so it never runs."));
    }
}

fn opened(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    let (Some(left), Some(right)) = (part(node, "left"), part(node, "right")) else { return };
    if file.test || left.kind() != "identifier" || right.kind() != "call" || file.callee(right) != "open" {
        return;
    }
    let Some(function) = up.iter().rev().find(|one| one.kind() == "function_definition") else { return };
    let name = file.text(left);
    let nodes = within(*function, MOST);
    let kept = nodes.iter().any(|(one, parent)| {
        one.kind() == "identifier"
            && *one != left
            && file.text(*one) == name
            && parent.is_none_or(|parent| parent.kind() != "attribute" || file.part(parent, "attribute") == "close")
    });
    if file.ends(*function) && !kept && nodes.len() < MOST {
        file.say(&RESOURCE_NOT_CLOSED, node, format!("`{name}` is not closed; open it in a `with`."));
    }
}

/// A test that says that it is about fractions of money, but not how they are rounded.
fn name_of_test(file: &mut File<'_>, node: Node<'_>) {
    let name = words(file.part(node, "name"));
    let has = |among: &[&str]| name.iter().any(|word| among.contains(&word.as_str()));
    if !file.test || name.first().is_none_or(|word| word != "test") {
        return;
    }
    let about =
        has(&["cents", "cent", "penny", "pennies", "fraction", "fractions", "round", "rounds", "rounding", "rounded"]);
    let says = has(&[
        "up",
        "down",
        "half",
        "floor",
        "floors",
        "ceil",
        "ceiling",
        "nearest",
        "even",
        "zero",
        "truncates",
        "truncated",
        "bankers",
        "exact",
        "exactly",
        "away",
    ]);
    if !about || says || !file.begins_changed(node) {
        return;
    }
    let Some(body) = part(node, "body") else { return };
    let nodes = within(body, 400);
    let fraction = nodes.iter().any(|(one, _)| one.kind() == "float" && !file.text(*one).ends_with(".0"));
    if fraction && (file.of_money(node) || nodes.iter().any(|(one, _)| file.of_money(*one))) {
        file.say(&TEST_NAME_WITHOUT_RULE, node, "The test name does not say which rounding rule it checks.");
    }
}
