//! What a rule says.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use protocol::{Artifact, ArtifactId, Content, Json, Part};
use serde_json::error::Category;
use server::{Chunk, Words};

use super::when::media_type;
use crate::mistake::{Mistake, hint, nearest, one_of};
use crate::step::{Flaw, OF_TASK, PLACEHOLDERS, Step, Verb, names};
use crate::table::{Table, Value};

/// The steps that take a value and are no [`Verb`].
const OTHER_STEPS: [&str; 3] = ["artifact", "log", "sleep_ms"];
const CONTENT: [&str; 5] = ["text", "json", "file", "base64", "url"];

/// The steps of one entry of `say`: one, unless it is a log.
pub(super) fn steps(value: Value<'_>) -> Result<Vec<Step>, Mistake> {
    let known: Vec<&str> = Verb::WORDS.into_iter().chain(OTHER_STEPS).collect();
    if let Some(word) = value.as_text() {
        if let Some(flaw) = Flaw::from_word(word) {
            return Ok(vec![Step::Flaw(flaw)]);
        }
        return match Verb::from_word(word) {
            Some(verb) if verb != Verb::Reply => Ok(vec![Step::Words(verb, Words(None))]),
            _ if known.contains(&word) => Err(value.mistake(format!("`{word}` needs a value: {{ {word} = ... }}"))),
            _ => {
                let known = [known, Flaw::WORDS.to_vec()].concat();
                Err(value.mistake(format!("unknown step `{word}`{}", hint(word, &known))))
            }
        };
    }
    let table = value.table("a list of steps, such as { working = \"...\" } or \"working\"")?;
    let members = table.members().into_iter().map(|(_, member)| member);
    let steps: Vec<Value<'_>> = members.filter(|member| known.contains(&member.name)).collect();
    match steps.as_slice() {
        [step] => one_step(table, *step),
        [first, second, ..] => {
            let words = format!("`{}` and `{}` are two steps; expected one in each {{ }}", first.name, second.name);
            Err(second.mistake(words))
        }
        [] => {
            if let Some((_, flaw)) = table.members().into_iter().find(|(_, member)| Flaw::WORDS.contains(&member.name))
            {
                return Err(flaw.mistake(format!("`{0}` takes no value; expected \"{0}\"", flaw.name)));
            }
            table.only(&known)?;
            Err(value.mistake(format!("an empty step; expected {}", one_of(&known))))
        }
    }
}

fn one_step(table: Table<'_>, step: Value<'_>) -> Result<Vec<Step>, Mistake> {
    match (step.name, Verb::from_word(step.name)) {
        (name, Some(verb)) => {
            table.only(&[name])?;
            Ok(vec![Step::Words(verb, words(step, verb)?)])
        }
        ("artifact", _) => {
            table.only(&["artifact", "name", "parts", "append", "last_chunk"])?;
            let flag = |key| table.get(key).map_or(Ok(false), Value::truth);
            let parts = table.get("parts").ok_or_else(|| step.mistake("an artifact needs `parts = [...]`"))?;
            let mut artifact = Artifact::new(artifact_id(step)?, parts_of(parts, "a list of parts")?);
            artifact.name = name(table)?;
            Ok(vec![Step::Artifact(Chunk { artifact, append: flag("append")?, last_chunk: flag("last_chunk")? })])
        }
        ("log", _) => {
            table.only(&["log", "name", "lines"])?;
            let lines = table.get("lines").ok_or_else(|| step.mistake("a log needs `lines = [...]`"))?;
            let lines = lines.list("a list of texts")?;
            let (id, mut name, last) = (artifact_id(step)?, name(table)?, lines.len() - 1);
            let line = |(at, value): (usize, Value<'_>)| {
                let line = value.any_text()?;
                if line.contains('\n') {
                    return Err(value.mistake("a line of a log holds no line break; it gets one at its end"));
                }
                let mut artifact = Artifact::new(id.clone(), vec![Part::text(format!("{line}\n"))]);
                artifact.name = name.take();
                Ok(Step::Artifact(Chunk { artifact, append: at > 0, last_chunk: at == last }))
            };
            lines.into_iter().enumerate().map(line).collect()
        }
        _ => {
            table.only(&["sleep_ms"])?;
            Ok(vec![sleep(step)?])
        }
    }
}

/// So many milliseconds, or a time between two.
fn sleep(value: Value<'_>) -> Result<Step, Mistake> {
    if !value.is_list() {
        let time = Duration::from_millis(value.number()?);
        return Ok(Step::Sleep { least: time, most: time });
    }
    let wrong = || value.mistake("`sleep_ms` must be a whole number, or [least, most] with the smaller one first");
    let times = value.list("a whole number, or [least, most]")?;
    let [least, most] = times.as_slice() else { return Err(wrong()) };
    let (least, most) = (Duration::from_millis(least.number()?), Duration::from_millis(most.number()?));
    if least > most { Err(wrong()) } else { Ok(Step::Sleep { least, most }) }
}

fn artifact_id(value: Value<'_>) -> Result<ArtifactId, Mistake> {
    ArtifactId::new(value.text()?).map_err(|error| value.mistake(error.to_string()))
}

fn name(table: Table<'_>) -> Result<Option<Arc<str>>, Mistake> {
    Ok(table.get("name").map(Value::text).transpose()?.map(Into::into))
}

fn words(value: Value<'_>, verb: Verb) -> Result<Words, Mistake> {
    let parts = match value.as_text() {
        Some(_) => vec![Part::text(value.text()?)],
        None => parts_of(value, "a text or a list of parts")?,
    };
    for text in parts.iter().filter_map(Part::as_text) {
        placeholders(value, text)?;
    }
    if verb == Verb::Reply && names(&parts, &OF_TASK) {
        return Err(value.mistake(format!("a reply belongs to no task, and so has no {}", one_of(&OF_TASK))));
    }
    Ok(Words(Some(parts)))
}

/// Refuses `{aprove_url}`. Other words in braces are text.
fn placeholders(value: Value<'_>, text: &str) -> Result<(), Mistake> {
    let bare = PLACEHOLDERS.map(|known| known.trim_matches(['{', '}']));
    let braced = text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(word, _)| word);
    for word in braced.filter(|word| !bare.contains(word)) {
        if let Some(near) = nearest(word, &bare) {
            return Err(value.mistake(format!("unknown placeholder `{{{word}}}`; did you mean `{{{near}}}`?")));
        }
    }
    Ok(())
}

fn parts_of(value: Value<'_>, expected: &str) -> Result<Vec<Part>, Mistake> {
    value.list(expected)?.into_iter().map(part).collect()
}

fn part(value: Value<'_>) -> Result<Part, Mistake> {
    let table = value.table("a list of parts, such as { text = \"...\" }")?;
    table.only(&[CONTENT.as_slice(), &["media_type", "filename"]].concat())?;
    let members = table.members().into_iter().map(|(_, member)| member);
    let contents: Vec<Value<'_>> = members.filter(|member| CONTENT.contains(&member.name)).collect();
    let [content] = contents.as_slice() else {
        return Err(value.mistake(format!("a part has exactly one of {}", one_of(&CONTENT))));
    };
    let mut part: Part = match content.name {
        "text" => Part::text(content.text()?),
        "json" => Part::data(json(*content)?),
        "file" => Content::Raw(content.any_text()?.as_bytes().to_vec().into()).into(),
        "base64" => Content::Raw(base64(*content)?.into()).into(),
        _ => Content::Url(content.text()?.into()).into(),
    };
    if let Some(stated) = table.get("media_type") {
        part.media_type = Some(media_type(stated)?.into());
    }
    part.filename = table.get("filename").map(Value::text).transpose()?.map(Into::into);
    Ok(part)
}

fn base64(value: Value<'_>) -> Result<Vec<u8>, Mistake> {
    BASE64_STANDARD.decode(value.any_text()?).map_err(|error| value.mistake(format!("this is no base64: {error}")))
}

fn json(value: Value<'_>) -> Result<Json, Mistake> {
    let text = value.any_text()?;
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text)
        && error.classify() != Category::Data
    {
        // TOML drops a line break that follows the opening quotes.
        let dropped = ["'''", "\"\"\""].iter().find_map(|quotes| value.written().strip_prefix(quotes));
        let dropped = dropped.is_some_and(|rest| rest.starts_with(['\n', '\r']));
        let line = value.line() + usize::from(dropped) + error.line().saturating_sub(1);
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        return Err(value.source.mistake(line, format!("this is no JSON: {words}")));
    }
    Json::parse(text).map_err(|error| value.mistake(format!("this JSON cannot be sent: {error}")))
}
