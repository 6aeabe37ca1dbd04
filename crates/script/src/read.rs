//! From TOML to rules. Every way in which a story can be refused stands here.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use protocol::{Artifact, ArtifactId, Content, Json, Part};
use serde_json::error::Category;
use server::{Chunk, Words};
use toml::de::DeTable;

use crate::mistake::{Mistake, hint, nearest, one_of};
use crate::rule::{On, PartLike, Rule, When};
use crate::step::{PLACEHOLDERS, Step, Verb, has_placeholder};
use crate::table::{Source, Table, Value};

/// The keys of a rule, in the order in which the documentation explains them.
const RULE: [&str; 10] = [
    "on",
    "contains",
    "lacks",
    "ends_with",
    "has_media_type",
    "lacks_media_type",
    "part",
    "first_message_part",
    "otherwise",
    "say",
];
/// The steps that are no [`Verb`].
const OTHER_STEPS: [&str; 3] = ["artifact", "log", "sleep_ms"];
const CONTENT: [&str; 4] = ["text", "json", "file", "url"];

/// Reads the rules of every agent of a file.
pub(crate) fn agents(file: &str, text: &str) -> Result<BTreeMap<String, Arc<[Rule]>>, Mistake> {
    let source = Source { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        let line = source.line(error.span().map_or(0, |span| span.start));
        source.mistake(line, format!("this is no TOML: {}", error.message()))
    })?;
    let agents = Table::whole(source, &root).members();
    if agents.is_empty() {
        return Err(source.mistake(1, "no agent; expected rules such as [[test-runner.rule]]"));
    }
    agents.into_iter().map(|(_, agent)| Ok((agent.name.to_owned(), rules(agent)?.into()))).collect()
}

/// A rule whose steps still know their lines.
struct Draft {
    line: usize,
    when: When,
    said: Vec<Said>,
}

struct Said {
    step: Step,
    line: usize,
}

impl Draft {
    fn rule(self) -> Rule {
        Rule { line: self.line, when: self.when, steps: self.said.into_iter().map(|said| said.step).collect() }
    }

    /// Whether the last step leaves the task open.
    fn waits(&self) -> bool {
        matches!(self.said.last(), Some(Said { step: Step::Words(verb, _), .. }) if verb.waits())
    }
}

fn rules(agent: Value<'_>) -> Result<Vec<Rule>, Mistake> {
    let name = agent.name;
    let table = agent.table(&format!("an agent with its rules, such as [[{name}.rule]]"))?;
    table.only(&["rule"])?;
    let expected = || agent.mistake(format!("{name} has no rules; expected [[{name}.rule]]"));
    let drafts = table.get("rule").ok_or_else(expected)?.list(&format!("rules, each under [[{name}.rule]]"))?;
    let drafts: Vec<Draft> = drafts.into_iter().map(draft).collect::<Result<_, _>>()?;
    let carried = carried(&drafts);
    for (at, draft) in drafts.iter().enumerate() {
        flow(agent.source, draft, carried.clone())?;
        if let Some(first) = drafts[..at].iter().find(|first| first.when.covers(&draft.when)) {
            let words = format!("this rule can never match: the one in line {} takes all of it", first.line);
            return Err(agent.source.mistake(draft.line, words));
        }
    }
    Ok(drafts.into_iter().map(Draft::rule).collect())
}

fn draft(value: Value<'_>) -> Result<Draft, Mistake> {
    let table = value.table("a rule, such as [[agent.rule]]")?;
    table.only(&RULE)?;
    let say = table.get("say").ok_or_else(|| value.mistake("this rule says nothing; expected `say = [...]`"))?;
    let mut said = Vec::new();
    for entry in say.list("a list of steps")? {
        said.extend(steps(entry)?.into_iter().map(|step| Said { step, line: entry.line() }));
    }
    let when = when(table, said.iter().any(|said| matches!(said.step, Step::Words(Verb::Reply, _))))?;
    Ok(Draft { line: value.line(), when, said })
}

// ---- what a rule looks at

fn when(table: Table<'_>, replies: bool) -> Result<When, Mistake> {
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

fn media_type(value: Value<'_>) -> Result<String, Mistake> {
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

// ---- what it says

/// The steps of one entry of `say`: one, unless it is a log.
fn steps(value: Value<'_>) -> Result<Vec<Step>, Mistake> {
    let known: Vec<&str> = Verb::WORDS.into_iter().chain(OTHER_STEPS).collect();
    if let Some(word) = value.as_text() {
        return match Verb::from_word(word) {
            Some(verb) if verb != Verb::Reply => Ok(vec![Step::Words(verb, Words(None))]),
            _ if known.contains(&word) => Err(value.mistake(format!("`{word}` needs a value: {{ {word} = ... }}"))),
            _ => Err(value.mistake(format!("unknown step `{word}`{}", hint(word, &known)))),
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
            Ok(vec![Step::Sleep(Duration::from_millis(step.number()?))])
        }
    }
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
    if verb == Verb::Reply && has_placeholder(&parts) {
        return Err(value.mistake(format!("a reply belongs to no task, and so has no {}", one_of(&PLACEHOLDERS))));
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
        _ => Content::Url(content.text()?.into()).into(),
    };
    if let Some(stated) = table.get("media_type") {
        part.media_type = Some(media_type(stated)?.into());
    }
    part.filename = table.get("filename").map(Value::text).transpose()?.map(Into::into);
    Ok(part)
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

// ---- whether it can be said in this order

/// The artifacts that a turn may find begun, because a rule that ends in a wait began them.
fn carried(drafts: &[Draft]) -> HashSet<ArtifactId> {
    let steps = drafts.iter().filter(|draft| draft.waits()).flat_map(|draft| &draft.said);
    let begun = steps.filter_map(|said| match &said.step {
        Step::Artifact(chunk) if !chunk.append => Some(chunk.artifact.artifact_id.clone()),
        _ => None,
    });
    begun.collect()
}

fn flow(source: Source<'_>, draft: &Draft, mut begun: HashSet<ArtifactId>) -> Result<(), Mistake> {
    let mut closed = HashSet::new();
    let (mut end, mut spoken): (Option<Verb>, bool) = (None, false);
    let mut last_line = draft.line;
    for Said { step, line } in &draft.said {
        let refuse = |words: String| Err(source.mistake(*line, words));
        last_line = *line;
        if let Some(end) = end {
            return refuse(format!("`{}` ends the turn; nothing can be said after it", end.word()));
        }
        match step {
            Step::Words(Verb::Reply, _) if spoken => {
                return refuse("a `reply` stands alone; a task that was begun ends with `done`".to_owned());
            }
            Step::Words(verb, _) => end = verb.ends_turn().then_some(*verb),
            Step::Artifact(Chunk { artifact, append, last_chunk }) => {
                let id = &artifact.artifact_id;
                if closed.contains(id) {
                    return refuse(format!("the last chunk of the artifact `{id}` was already said"));
                }
                if *append && !begun.contains(id) {
                    return refuse(format!("the artifact `{id}` was not begun; its first piece has no `append`"));
                }
                begun.insert(id.clone());
                if *last_chunk {
                    closed.insert(id.clone());
                }
            }
            Step::Sleep(_) => continue,
        }
        spoken = true;
    }
    if end.is_some() {
        return Ok(());
    }
    let ends = |word: &&str| Verb::from_word(word).is_some_and(Verb::ends_turn);
    let ends: Vec<&str> = Verb::WORDS.into_iter().filter(ends).collect();
    Err(source.mistake(last_line, format!("the turn does not end here; expected {} last", one_of(&ends))))
}
