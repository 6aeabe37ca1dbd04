//! What a rule looks at.

use crate::mistake::{Mistake, hint};
use crate::rule::{On, PartLike, When};
use crate::table::{Table, Value};

/// Reads the conditions of a rule.
pub(super) fn when(table: Table<'_>, replies: bool) -> Result<When, Mistake> {
    let texts = |key| -> Result<Vec<String>, Mistake> {
        let values = table.get(key).map_or(Ok(Vec::new()), Value::texts)?;
        values.into_iter().map(|value| Ok(value.text()?.to_owned())).collect()
    };
    let types = |key| -> Result<Vec<String>, Mistake> {
        let values = table.get(key).map_or(Ok(Vec::new()), Value::texts)?;
        values.into_iter().map(media_type).collect()
    };
    let mut when = When {
        on: table.get("on").map_or(Ok(Vec::new()), on)?,
        message_id_prefix: table.get("message_id_prefix").map(Value::text).transpose()?.map(str::to_owned),
        contains: texts("contains")?,
        lacks: texts("lacks")?,
        ends_with: table.get("ends_with").map(Value::text).transpose()?.map(str::to_owned),
        has_media_type: types("has_media_type")?,
        lacks_media_type: types("lacks_media_type")?,
        part: table.get("part").map(part_like).transpose()?,
        first_message_part: table.get("first_message_part").map(part_like).transpose()?,
        no_task: false,
    };
    let looks_at_nothing = when == When::default();
    match table.get("otherwise") {
        Some(value) if !value.truth()? => return Err(value.mistake("`otherwise` is true or left out")),
        Some(value) if !looks_at_nothing => {
            return Err(value.mistake("`otherwise` stands alone; leave it out, or the conditions beside it"));
        }
        None if looks_at_nothing => {
            let words = "this rule looks at nothing; expected a condition, or `otherwise = true` to match everything";
            return Err(table.mistake(words));
        }
        _ => {}
    }
    if when.contradicts_itself() {
        return Err(table.mistake("this rule can never match: it wants and excludes the same"));
    }
    if replies {
        if !when.on.is_empty() && !when.on.contains(&On::Message) {
            let words = "this rule can never match: a `reply` is possible only on \"message\"";
            return Err(table.mistake(words));
        }
        (when.on, when.no_task) = (vec![On::Message], true);
    }
    Ok(when)
}

fn on(value: Value<'_>) -> Result<Vec<On>, Mistake> {
    let word = |value: Value<'_>| {
        let word = value.text()?;
        let unknown = || value.mistake(format!("no turn starts with `{word}`{}", hint(word, &On::WORDS)));
        On::from_word(word).ok_or_else(unknown)
    };
    value.texts()?.into_iter().map(word).collect()
}

fn part_like(value: Value<'_>) -> Result<PartLike, Mistake> {
    let table = value.table("such as { media_type = \"text/x-diff\", contains = \"...\" }")?;
    table.only(&["media_type", "contains"])?;
    let like = PartLike {
        media_type: table.get("media_type").map(media_type).transpose()?,
        contains: table.get("contains").map(Value::text).transpose()?.map(str::to_owned),
    };
    if like.media_type.is_none() && like.contains.is_none() {
        return Err(value.mistake(format!("`{}` looks at nothing; expected `media_type` or `contains`", value.name)));
    }
    Ok(like)
}

pub(super) fn media_type(value: Value<'_>) -> Result<String, Mistake> {
    let text = value.text()?;
    let word = |word: &str| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "!#$&-^_.+".contains(letter);
        !word.is_empty() && word.chars().all(letter)
    };
    match text.split_once('/') {
        Some((kind, form)) if word(kind) && word(form) => Ok(text.to_owned()),
        _ => Err(value.mistake(format!("`{text}` is no media type; expected one such as `text/plain`"))),
    }
}
