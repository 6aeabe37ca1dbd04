//! JSON text laid out anew without being understood: members keep their order, numbers their digits.
//!
//! Strings get the shortest standard escapes, so `\u00e9` becomes `é` and a line feed stays `\n`. Half of a
//! surrogate pair cannot be a character: a string that holds one keeps its escapes.

use serde::de::IgnoredAny;

/// Deeper text counts as not being JSON, so that indenting cannot make a small body huge.
const DEEPEST: usize = 128;

/// Over several lines, indented by two spaces; `{}` and `[]` stay on one line. `None` if `text` is not JSON.
pub fn pretty(text: &str) -> Option<String> {
    is_json(text).then(|| lay_out(text, Layout::Indented))
}

/// On one line with the separators `, ` and `: `. `None` if `text` is not JSON.
pub fn line(text: &str) -> Option<String> {
    is_json(text).then(|| lay_out(text, Layout::OneLine))
}

pub(crate) fn is_json(text: &str) -> bool {
    let mut depth = 0usize;
    let shallow = tokens(text).all(|token| {
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth <= DEEPEST
    });
    shallow && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Indented,
    OneLine,
}

/// `text` must be JSON; other text comes out as some other text.
pub(crate) fn lay_out(text: &str, layout: Layout) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0usize;
    let break_line = |out: &mut String, depth: usize| {
        if layout == Layout::Indented {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    let mut tokens = tokens(text).peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if let Some(close) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    out.push_str(close);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push_str(token);
            }
            "," if layout == Layout::OneLine => out.push_str(", "),
            "," => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            string if string.starts_with('"') => out.push_str(&short_escapes(string)),
            word => out.push_str(word),
        }
    }
    out
}

fn short_escapes(token: &str) -> String {
    serde_json::from_str::<String>(token)
        .and_then(|text| serde_json::to_string(&text))
        .unwrap_or_else(|_| token.to_owned())
}

/// Brackets, commas, colons, whole strings with their quotes, and the words and numbers between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let length = match rest.as_bytes().first()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_length(rest),
            _ => rest.find(|c: char| "{}[],:\" \t\n\r".contains(c)).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

/// `text` begins with a quote; the other one is looked for, past the escaped ones.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let inside = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    inside.map_or(text.len(), |at| at + 2)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// JSON values of every kind, a few levels deep.
    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((".{0,4}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn members_keep_their_order_and_numbers_their_digits() {
        let text = r#"{"b":1.10,"a":[123456789012345678901234567890,-0.0e+5],"e":{},"n":[ ]}"#;
        let expected = "{\n  \"b\": 1.10,\n  \"a\": [\n    123456789012345678901234567890,\n    -0.0e+5\n  ],\n  \"e\": {},\n  \"n\": []\n}";
        assert_eq!(pretty(text).as_deref(), Some(expected));
        let expected = r#"{"b": 1.10, "a": [123456789012345678901234567890, -0.0e+5], "e": {}, "n": []}"#;
        assert_eq!(line(text).as_deref(), Some(expected));
    }

    #[test]
    fn strings_get_the_shortest_escapes() {
        assert_eq!(
            line(r#""caf\u00e9 \ud83d\ude00 \u000a \/ \u0001 \\\" {,:""#).as_deref(),
            Some(r#""café 😀 \n / \u0001 \\\" {,:""#)
        );
    }

    #[test]
    fn half_a_surrogate_pair_keeps_its_escape() {
        assert_eq!(line(r#"["\ud83d\u00e9"]"#).as_deref(), Some(r#"["\ud83d\u00e9"]"#));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "{]", "[1,]", "01", "\"a", "nul", "{} {}", "\u{a0}1"] {
            assert_eq!(pretty(text), None, "{text}");
        }
    }

    #[test]
    fn very_deep_json_is_refused_before_it_is_indented() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(pretty(&nested(DEEPEST)).is_some());
        assert!(pretty(&nested(DEEPEST + 1)).is_none());
        assert!(pretty(&nested(1_000_000)).is_none());
    }

    proptest! {
        #[test]
        fn a_new_layout_keeps_the_meaning(value in any_json()) {
            let compact = value.to_string();
            prop_assert_eq!(pretty(&compact).unwrap(), serde_json::to_string_pretty(&value).unwrap());
            let one_line = line(&compact).unwrap();
            prop_assert!(!one_line.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Value>(&one_line).unwrap(), value);
            prop_assert_eq!(line(&pretty(&compact).unwrap()).unwrap(), one_line);
        }

        #[test]
        fn a_new_layout_keeps_every_digit(number in r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?") {
            prop_assert_eq!(pretty(&format!("[{number}]")).unwrap(), format!("[\n  {number}\n]"));
        }

        #[test]
        fn any_text_is_taken_without_a_panic(text in r#"[\[\]{},:"\\a1é \n]{0,40}"#) {
            lay_out(&text, Layout::Indented);
            pretty(&text);
        }
    }
}
