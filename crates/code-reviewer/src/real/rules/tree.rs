//! Trees of source text, and the walk over them.
//!
//! No function here calls itself and none asks a node for its parent, which is looked for from the root: text that
//! nests deeply costs neither the stack nor the square of its depth.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use crate::real::source::{Language, Source};

/// How deep the rules look. What nests deeper was written by no person.
const DEEPEST: usize = 400;

/// The tree of a text; none when it cannot be had at a cost in proportion to its length, in bytes.
pub(super) fn parse(source: &Source<'_>) -> Option<Tree> {
    let grammar = match source.language {
        Language::Python => tree_sitter_python::LANGUAGE,
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
        Language::Go => tree_sitter_go::LANGUAGE,
        Language::Rust => tree_sitter_rust::LANGUAGE,
    };
    let mut parser = Parser::new();
    parser.set_language(&grammar.into()).ok()?;
    let text = source.text.as_bytes();
    // The parser calls back after every so many steps, which are counted rather than timed: a slow machine finds what a
    // fast one does.
    let mut left = 1000 + text.len() / 4;
    let mut patience = |_: &ParseState| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut patience);
    parser.parse_with_options(&mut |at, _| text.get(at..).unwrap_or_default(), None, Some(options))
}

/// Goes through a tree from its root, parents first. `enter` gets a node and what it stands in, the innermost last, and
/// says whether to go into it.
pub(super) fn walk<'t>(root: Node<'t>, mut enter: impl FnMut(Node<'t>, &[Node<'t>]) -> bool) {
    let mut cursor = root.walk();
    let mut up: Vec<Node<'t>> = Vec::new();
    loop {
        let node = cursor.node();
        if enter(node, &up) && up.len() < DEEPEST && cursor.goto_first_child() {
            up.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if up.pop().is_none() {
                return;
            }
            cursor.goto_parent();
        }
    }
}

/// The nodes in a node, itself first, each with the one it stands in. At most `most`.
pub(super) fn within<'t>(root: Node<'t>, most: usize) -> Vec<(Node<'t>, Option<Node<'t>>)> {
    let mut nodes = Vec::new();
    walk(root, |node, up| {
        if nodes.len() < most {
            nodes.push((node, up.last().copied()));
        }
        nodes.len() < most
    });
    nodes
}

/// The named children but for comments. At most 64: no rule asks for more.
pub(super) fn parts<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    let children = node.named_children(&mut cursor);
    children.filter(|one| !one.kind().ends_with("comment")).take(64).collect()
}

/// The child with a role.
pub(super) fn part<'t>(node: Node<'t>, role: &str) -> Option<Node<'t>> {
    node.child_by_field_name(role)
}

/// Whether one of the first children is this word, such as `async`.
pub(super) fn has_word(node: Node<'_>, word: &str) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).take(8).any(|one| one.kind() == word)
}
