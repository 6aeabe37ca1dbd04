//! Plans as data: which skills a job needs in which order, what is said to them, what is read from their artifacts, and
//! when the job stops. `docs/plans.md` tells how they are written; `plans/ship.toml` is the kit's.
//!
//! A plan is checked before anything is sent: every name that it uses is known where it is used, and every value stands in
//! the shape of its skill's data.

mod run;
mod shape;
mod text;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use toml::Spanned;

use crate::answers::Asked;
pub use run::{Finished, Inputs};
use shape::Shape;
use text::{Condition, Reading, Template};

/// A plan that was checked.
#[derive(Debug, Clone)]
pub struct Plan {
    inputs: Vec<String>,
    /// The shape of the artifacts of each skill.
    shapes: BTreeMap<String, BTreeMap<String, Shape>>,
    steps: Vec<Step>,
}

/// One piece of work.
#[derive(Debug, Clone)]
struct Step {
    name: String,
    skill: String,
    repeatable: bool,
    long: bool,
    after: Vec<String>,
    send: Vec<Piece>,
    answers: Vec<(Asked, Template)>,
    goes_on: bool,
    incomplete: String,
    unreadable: String,
    values: Vec<(String, Reading)>,
    say: Vec<Line>,
    stop: Vec<Line>,
}

/// A part of a message.
#[derive(Debug, Clone)]
enum Piece {
    Text(Template),
    File { input: String, name: String, media: String },
}

/// A text, and when it is said.
#[derive(Debug, Clone)]
struct Line {
    when: Option<Condition>,
    text: Template,
}

/// What is wrong with a plan, line by line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(|(line, why)| format!("line {line}: {why}")).collect::<Vec<_>>().join("\n"))]
pub struct PlanError(pub Vec<(usize, String)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    inputs: Vec<String>,
    #[serde(default)]
    skills: BTreeMap<String, BTreeMap<String, BTreeMap<String, Spanned<toml::Value>>>>,
    steps: Vec<WrittenStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    name: Spanned<String>,
    skill: String,
    #[serde(default)]
    repeatable: bool,
    #[serde(default)]
    long: bool,
    after: Option<Vec<Spanned<String>>>,
    send: Vec<Spanned<WrittenPiece>>,
    #[serde(default)]
    answers: Vec<Spanned<WrittenAnswer>>,
    #[serde(default)]
    goes_on: bool,
    incomplete: Option<String>,
    unreadable: Option<String>,
    #[serde(default)]
    values: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    say: Vec<WrittenLine>,
    #[serde(default)]
    stop: Vec<WrittenLine>,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum WrittenPiece {
    Text { text: String },
    File { file: String, name: String, media: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAnswer {
    asks: Option<String>,
    data: Option<String>,
    text: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLine {
    when: Option<Spanned<String>>,
    text: Spanned<String>,
}

/// Collects what is wrong, with the line of each place.
struct Checks<'a> {
    source: &'a str,
    wrong: Vec<(usize, String)>,
}

impl Checks<'_> {
    fn line(&self, at: usize) -> usize {
        self.source[..at.min(self.source.len())].matches('\n').count() + 1
    }

    fn wrong(&mut self, at: usize, why: String) {
        let line = self.line(at);
        self.wrong.push((line, why));
    }

    fn all(mut self) -> PlanError {
        self.wrong.sort();
        self.wrong.dedup();
        PlanError(self.wrong)
    }

    /// Notes an error and goes on without the value.
    fn take<T>(&mut self, at: usize, read: Result<T, String>) -> Option<T> {
        read.map_err(|why| self.wrong(at, why)).ok()
    }

    fn names<'n>(&mut self, at: usize, used: impl IntoIterator<Item = &'n str>, known: &HashSet<String>) {
        for name in used.into_iter().filter(|name| !known.contains(*name)) {
            let mut there: Vec<_> = known.iter().map(String::as_str).collect();
            there.sort_unstable();
            self.wrong(at, format!("{name:?} is not known here; known: {}", there.join(", ")));
        }
    }

    fn answers(&mut self, written: Vec<Spanned<WrittenAnswer>>, known: &HashSet<String>) -> Vec<(Asked, Template)> {
        let mut answers: Vec<(Asked, Template)> = Vec::new();
        for answer in written {
            let at = answer.span().start;
            let WrittenAnswer { asks, data, text } = answer.into_inner();
            let asked = match (asks, data) {
                (Some(words), None) if !words.trim().is_empty() => Ok(Asked::Words(words)),
                (None, Some(name)) if !name.is_empty() => Ok(Asked::Member(name)),
                _ => Err("an answer says either which words are asked, or which member of data".to_owned()),
            };
            let asked = asked.and_then(|asked| {
                let twice = answers.iter().any(|(known, _)| *known == asked);
                if twice { Err("there is an answer to this already".to_owned()) } else { Ok(asked) }
            });
            let asked = self.take(at, asked);
            let at = text.span().start;
            if let Some(text) = self.take(at, Template::parse(text.get_ref())) {
                self.names(at, text.names(), known);
                answers.extend(asked.map(|asked| (asked, text)));
            }
        }
        answers
    }

    fn lines(&mut self, written: Vec<WrittenLine>, known: &HashSet<String>) -> Vec<Line> {
        let mut lines = Vec::new();
        for line in written {
            let when = line.when.and_then(|when| {
                let condition = self.take(when.span().start, Condition::parse(when.get_ref()))?;
                self.names(when.span().start, [condition.name.as_str()], known);
                Some(condition)
            });
            let at = line.text.span().start;
            if let Some(text) = self.take(at, Template::parse(line.text.get_ref())) {
                self.names(at, text.names(), known);
                lines.push(Line { when, text });
            }
        }
        lines
    }
}

impl Plan {
    /// Reads a plan and checks it. The error names every line that is wrong.
    pub fn read(source: &str) -> Result<Self, PlanError> {
        let mut checks = Checks { source, wrong: Vec::new() };
        let written: Written = toml::from_str(source).map_err(|cause| {
            let at = cause.span().map_or(0, |span| span.start);
            PlanError(vec![(checks.line(at), cause.message().to_owned())])
        })?;
        let mut shapes: BTreeMap<String, BTreeMap<String, Shape>> = BTreeMap::new();
        for (skill, artifacts) in written.skills {
            for (artifact, members) in artifacts {
                let members = members.into_iter().filter_map(|(name, shape)| {
                    let shape = checks.take(shape.span().start, Shape::of(shape.get_ref()))?;
                    Some((name, shape))
                });
                shapes.entry(skill.clone()).or_default().insert(artifact, Shape::Object(members.collect()));
            }
        }
        // Everything else would be wrong on their account.
        if !checks.wrong.is_empty() {
            return Err(checks.all());
        }
        let inputs = written.inputs;
        let mut steps: Vec<Step> = Vec::new();
        // What each step leaves behind for those that come after it, under its full names.
        let mut left: HashMap<String, HashSet<String>> = HashMap::new();
        for step in written.steps {
            let at = step.name.span().start;
            let name = step.name.into_inner();
            if left.contains_key(&name) {
                checks.wrong(at, format!("there are two steps {name}"));
            }
            let after = step.after.unwrap_or_else(|| {
                let before = steps.last().map(|step: &Step| Spanned::new(at..at, step.name.clone()));
                before.into_iter().collect()
            });
            let mut known: HashSet<String> = inputs.iter().cloned().collect();
            for before in &after {
                match left.get(before.get_ref()) {
                    Some(names) => known.extend(names.iter().cloned()),
                    None => {
                        checks.wrong(before.span().start, format!("no step {} comes before this one", before.get_ref()))
                    }
                }
            }
            let mut send = Vec::new();
            if step.send.is_empty() {
                checks.wrong(at, format!("the step {name} sends nothing"));
            }
            for piece in step.send {
                let at = piece.span().start;
                match piece.into_inner() {
                    WrittenPiece::Text { text } => {
                        if let Some(text) = checks.take(at, Template::parse(&text)) {
                            checks.names(at, text.names(), &known);
                            send.push(Piece::Text(text));
                        }
                    }
                    WrittenPiece::File { file, name, media } => {
                        checks.names(at, [file.as_str()], &inputs.iter().cloned().collect());
                        send.push(Piece::File { input: file, name, media });
                    }
                }
            }
            let answers = checks.answers(step.answers, &known);
            let mut values = Vec::new();
            let shape = shapes.get(&step.skill);
            for (value, written) in step.values {
                let at = written.span().start;
                let Some(reading) = checks.take(at, Reading::parse(written.get_ref())) else { continue };
                let artifact = shape.and_then(|shapes| shapes.get(&reading.artifact));
                let fits = match artifact {
                    Some(shape) => reading.check(shape),
                    None => Err(format!("the skill {} has no shape of an artifact {}", step.skill, reading.artifact)),
                };
                if checks.take(at, fits).is_some() {
                    values.push((value, reading));
                }
            }
            let own = values.iter().map(|(value, _)| value.as_str()).chain(["state"]);
            let own: Vec<String> = own.map(str::to_owned).collect();
            let mut leaves: HashSet<String> = known.difference(&inputs.iter().cloned().collect()).cloned().collect();
            leaves.extend(own.iter().map(|value| format!("{name}.{value}")));
            left.insert(name.clone(), leaves);
            known.extend(own);
            steps.push(Step {
                skill: step.skill,
                repeatable: step.repeatable,
                long: step.long,
                after: after.into_iter().map(Spanned::into_inner).collect(),
                send,
                answers,
                goes_on: step.goes_on,
                incomplete: step.incomplete.unwrap_or_else(|| format!("the step {name} did not complete")),
                unreadable: step.unreadable.unwrap_or_else(|| format!("the step {name} has no data that can be read")),
                values,
                say: checks.lines(step.say, &known),
                stop: checks.lines(step.stop, &known),
                name,
            });
        }
        if steps.is_empty() && checks.wrong.is_empty() {
            checks.wrong(0, "the plan has no steps".to_owned());
        }
        if checks.wrong.is_empty() { Ok(Self { inputs, shapes, steps }) } else { Err(checks.all()) }
    }

    /// What has to be given to it.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }
}
