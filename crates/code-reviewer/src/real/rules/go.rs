//! What the rules look at in Go.

use tree_sitter::Node;

use super::file::File;
use super::tree::{part, parts, within};
use super::{DEBUGGING_LEFT, ERROR_IGNORED, RESOURCE_NOT_CLOSED, SWALLOWED_EXCEPTION, TLS_UNVERIFIED, TRUNCATED_MONEY};

/// How many nodes of a function are looked at.
const MOST: usize = 5000;

/// Functions of the standard library that give a value and an error.
const FALLIBLE: [&str; 25] = [
    "strconv.Atoi",
    "strconv.ParseInt",
    "strconv.ParseUint",
    "strconv.ParseFloat",
    "strconv.ParseBool",
    "json.Marshal",
    "os.Open",
    "os.Create",
    "os.OpenFile",
    "os.ReadFile",
    "os.ReadDir",
    "os.Stat",
    "io.ReadAll",
    "ioutil.ReadAll",
    "ioutil.ReadFile",
    "http.Get",
    "http.Post",
    "http.NewRequest",
    "http.NewRequestWithContext",
    "url.Parse",
    "time.Parse",
    "sql.Open",
    "net.Dial",
    "net.Listen",
    "hex.DecodeString",
];
/// Those that give an error alone.
const ERRORS: [&str; 8] =
    ["json.Unmarshal", "os.WriteFile", "os.Mkdir", "os.MkdirAll", "os.Rename", "os.Chmod", "xml.Unmarshal", "os.Chdir"];

pub(super) fn look(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    if file.test {
        return;
    }
    match node.kind() {
        "short_var_declaration" | "assignment_statement" => {
            dropped(file, node);
            opened(file, node, up);
        }
        "expression_statement" => {
            let call = parts(node).first().copied().filter(|one| one.kind() == "call_expression");
            if let Some(callee) = call.map(|one| file.callee(one)).filter(|callee| ERRORS.contains(callee)) {
                file.say(&ERROR_IGNORED, node, format!("The error of `{callee}` is not looked at."));
            }
        }
        "if_statement" => {
            let empty = part(node, "consequence").is_some_and(|one| {
                let text = file.text(one);
                text.starts_with('{') && text.ends_with('}') && text[1..text.len() - 1].trim().is_empty()
            });
            if empty && file.part(node, "condition") == "err != nil" && part(node, "alternative").is_none() {
                file.say(&SWALLOWED_EXCEPTION, node, "The error is dropped; return it, or tell of it.");
            }
        }
        "keyed_element" => {
            let text: String = file.text(node).split_whitespace().collect();
            if text == "InsecureSkipVerify:true" {
                file.say(&TLS_UNVERIFIED, node, "The certificate of the other side is not checked.");
            }
        }
        "call_expression" => call(file, node, up),
        _ => {}
    }
}

fn call(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    let callee = file.callee(node);
    match callee {
        "spew.Dump" => file.say(&DEBUGGING_LEFT, node, "`spew.Dump` was put in to debug."),
        "fmt.Println" | "fmt.Printf" | "println" | "log.Println" | "log.Printf" if !file.aside => {
            let first = part(node, "arguments").and_then(|one| parts(one).first().copied());
            let text = first.map_or("", |one| file.text(one)).trim_start_matches(['"', '`']);
            if ["DEBUG", "here\"", ">>>", "!!!", "XXX"].iter().any(|mark| text.starts_with(mark)) {
                file.say(&DEBUGGING_LEFT, node, format!("`{}` was put in to debug.", file.quote(node)));
            }
        }
        "int" | "int64" | "int32" | "uint64" | "uint" | "uint32" => {
            let Some(value) = part(node, "arguments").and_then(|one| parts(one).first().copied()) else { return };
            let function =
                up.iter().rev().find(|one| matches!(one.kind(), "function_declaration" | "method_declaration"));
            let parameters = function.map_or("", |one| file.part(*one, "parameters"));
            let nodes = within(value, 60);
            let fraction = nodes.iter().any(|(one, _)| {
                one.kind() == "float_literal"
                    || one.kind() == "identifier" && parameters.contains(&format!("{} float", file.text(*one)))
            });
            let rounds =
                nodes.iter().any(|(one, _)| one.kind() == "call_expression" && file.callee(*one).starts_with("math."));
            if fraction && !rounds && file.of_money(value) {
                file.say(&TRUNCATED_MONEY, node, format!("`{}` cuts off a part of the amount.", file.quote(node)));
            }
        }
        _ => {}
    }
}

fn dropped(file: &mut File<'_>, node: Node<'_>) {
    let (Some(left), Some(right)) = (part(node, "left").map(parts), part(node, "right").map(parts)) else { return };
    if let ([value, error], [call]) = (left.as_slice(), right.as_slice())
        && call.kind() == "call_expression"
        && file.text(*error) == "_"
        && file.text(*value) != "_"
        && FALLIBLE.contains(&file.callee(*call))
    {
        file.say(&ERROR_IGNORED, node, format!("The error of `{}` is not looked at.", file.callee(*call)));
    }
}

fn opened(file: &mut File<'_>, node: Node<'_>, up: &[Node<'_>]) {
    let (Some(left), Some(right)) = (part(node, "left").map(parts), part(node, "right").map(parts)) else { return };
    let (Some(left), Some(call)) = (left.first().copied(), right.first().copied()) else { return };
    let opens = matches!(file.callee(call), "os.Open" | "os.Create" | "os.OpenFile" | "http.Get" | "http.Post");
    let function = up
        .iter()
        .rev()
        .find(|one| matches!(one.kind(), "function_declaration" | "method_declaration" | "func_literal"));
    let Some(function) = function.filter(|_| opens && left.kind() == "identifier" && file.text(left) != "_") else {
        return;
    };
    let name = file.text(left);
    let nodes = within(*function, MOST);
    let kept = nodes.iter().any(|(one, parent)| {
        one.kind() == "identifier"
            && *one != left
            && file.text(*one) == name
            && parent
                .is_none_or(|parent| parent.kind() != "selector_expression" || file.part(parent, "field") == "Close")
    });
    let text = file.text(*function);
    let body = text.contains(&format!("{name}.Body.Close")) || text.contains(&format!("return {name}.Body"));
    if file.ends(*function) && !kept && !body && nodes.len() < MOST {
        file.say(&RESOURCE_NOT_CLOSED, node, format!("`{name}` is not closed; `defer` it."));
    }
}
