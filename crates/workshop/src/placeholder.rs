//! Names in braces inside a text, and what is put in their place.

/// The placeholder that is a fresh id.
pub(crate) const NEW_ID: &str = "new_id";

/// Whether a word can be a name: small letters, digits and `_`.
pub(crate) fn is_name(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The names in a text, `{name}`, each with the place of its brace. Other braces are no names.
pub(crate) fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(at, _)| {
        let (name, _) = text[at + 1..].split_once('}')?;
        is_name(name).then_some((at, name))
    })
}

/// Puts values in the place of names. The error is the first name that has none.
pub(crate) fn fill(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> Result<String, &str> {
    let mut filled = String::with_capacity(text.len());
    let mut done = 0;
    for (at, name) in names(text) {
        filled.push_str(&text[done..at]);
        filled.push_str(&value(name).ok_or(name)?);
        done = at + name.len() + 2;
    }
    filled.push_str(&text[done..]);
    Ok(filled)
}

/// Like [`fill`], for names that stand inside the strings of a JSON text.
pub(crate) fn fill_json(json: &str, mut value: impl FnMut(&str) -> Option<String>) -> Result<String, &str> {
    fill(json, |name| {
        let quoted = serde_json::Value::String(value(name)?).to_string();
        Some(quoted[1..quoted.len() - 1].to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_and_other_braces_are_left_alone() {
        let filled = fill(r#"{"a": "{one}-{two}", "b": {}, "c": "{Not}"}"#, |name| Some(name.to_uppercase()));
        assert_eq!(filled.unwrap(), r#"{"a": "ONE-TWO", "b": {}, "c": "{Not}"}"#);
        assert_eq!(fill("{one} {two}", |name| (name == "one").then(String::new)), Err("two"));
    }

    #[test]
    fn a_value_with_quotes_and_line_breaks_stays_one_json_string() {
        let filled = fill_json(r#""{said}""#, |_| Some("a \"b\"\n".to_owned())).unwrap();
        assert_eq!(serde_json::from_str::<String>(&filled).unwrap(), "a \"b\"\n");
    }
}
