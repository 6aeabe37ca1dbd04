//! Doing what a plan says.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use protocol::{Content, Part, Task, TaskState};
use serde_json::Value;

use super::text::{Scalar, Scope};
use super::{Line, Piece, Plan, Step};
use crate::answers::Answer;
use crate::delegate::Outcome;
use crate::deliver::Work;
use crate::{Failure, Planner, beside};

/// What is given to a plan, by name.
pub type Inputs = BTreeMap<String, Vec<u8>>;

/// How a plan ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// All steps are done; the last one's task came to this state, or to no task.
    Done(Option<TaskState>),
    /// A rule stopped it; the log says which.
    Stopped,
}

/// How a step ended.
enum Stepped {
    Done(Option<TaskState>, Scope),
    Stopped,
}

impl Planner {
    /// Does what a plan says, with the agents it has met. Nothing is begun unless somebody has each skill and each input is
    /// there. Steps that are after the same ones run side by side.
    pub async fn run(&self, plan: &Plan, inputs: &Inputs) -> Result<Finished, Failure> {
        let named = |name: &&String| format!("the plan's {name}");
        let missing = plan.inputs.iter().find(|name| !inputs.contains_key(*name));
        let unknown = inputs.keys().find(|name| !plan.inputs.contains(name));
        if let Some(wrong) = missing.as_ref().map(named).map(|input| format!("{input} is not given")) {
            return Err(Failure::Inputs(wrong));
        }
        if let Some(wrong) = unknown.map(|input| format!("the plan has no {input}")) {
            return Err(Failure::Inputs(wrong));
        }
        for step in &plan.steps {
            self.with_skill(&step.skill)?;
        }
        let text = |bytes: &Vec<u8>| Scalar::Text(String::from_utf8_lossy(bytes).into_owned());
        let mut scope: Scope = inputs.iter().map(|(name, bytes)| (name.clone(), text(bytes))).collect();
        let (mut done, mut last): (Vec<&str>, _) = (Vec::new(), None);
        loop {
            let ready = |step: &&Step| {
                let before = step.after.iter().all(|before| done.contains(&before.as_str()));
                before && !done.contains(&step.name.as_str())
            };
            let ready: Vec<&Step> = plan.steps.iter().filter(ready).collect();
            let ended = match ready.as_slice() {
                [] => return Ok(Finished::Done(last)),
                [alone] => vec![self.step(plan, alone, inputs, &scope).await],
                // What is said of each of them is said with its name.
                several => {
                    let runs =
                        several.iter().map(|step| beside(step.name.clone(), self.step(plan, step, inputs, &scope)));
                    join_all(runs).await
                }
            };
            let mut stopped = false;
            for (step, ended) in ready.iter().zip(ended) {
                match ended? {
                    Stepped::Stopped => stopped = true,
                    Stepped::Done(state, values) => {
                        last = state;
                        let values = values.into_iter();
                        scope.extend(values.map(|(name, value)| (format!("{}.{name}", step.name), value)));
                    }
                }
                done.push(&step.name);
            }
            if stopped {
                return Ok(Finished::Stopped);
            }
        }
    }

    async fn step(&self, plan: &Plan, step: &Step, inputs: &Inputs, scope: &Scope) -> Result<Stepped, Failure> {
        let stop = |why: &str| {
            self.say(format!("stop: {why}"));
            Ok(Stepped::Stopped)
        };
        let part = |piece: &Piece| match piece {
            Piece::Text(text) => Part::text(text.fill(scope)),
            Piece::File { input, name, media } => {
                Part::raw(inputs.get(input).cloned().unwrap_or_default(), name.as_str(), media.as_str())
            }
        };
        let reads_data = plan.shapes.get(&step.skill).is_some_and(|shapes| !shapes.is_empty());
        let answers = step.answers.iter();
        let answers = answers.map(|(asked, text)| Answer { asked: asked.clone(), text: text.fill(scope) });
        let work = Work {
            step: &step.name,
            skill: &step.skill,
            repeatable: step.repeatable,
            reads_data,
            long: step.long,
            answers: &answers.collect::<Vec<_>>(),
        };
        let outcome = self.delegate_work(work, step.send.iter().map(part).collect()).await?;
        let task = match &outcome {
            Outcome::Task(task) => Some(task),
            Outcome::Message(_) | Outcome::Nothing => None,
        };
        let state = task.map(|task| task.status.state);
        let completed = task.filter(|task| task.status.state == TaskState::Completed);
        let mut values = Scope::new();
        match completed {
            Some(task) => match read(plan, step, task) {
                Ok(read) => values = read,
                Err(why) => return stop(&format!("{}: {why}", step.unreadable)),
            },
            None if step.goes_on => {}
            None => return stop(&step.incomplete),
        }
        values.insert("state".to_owned(), Scalar::Text(state.map_or("no task", TaskState::word).to_owned()));
        let known: Scope = scope.iter().chain(&values).map(|(name, value)| (name.clone(), value.clone())).collect();
        let said = |lines: &[Line]| {
            let line = lines.iter().find(|line| line.when.as_ref().is_none_or(|when| when.holds(&known)));
            line.map(|line| line.text.fill(&known))
        };
        if let Some(line) = said(&step.say) {
            self.say(line);
        }
        match said(&step.stop) {
            Some(why) => stop(&why),
            None => Ok(Stepped::Done(state, values)),
        }
    }
}

/// The values of a step, out of its task. Every artifact of the skill's shape must be there and have it. The error says
/// what is missing or wrong.
fn read(plan: &Plan, step: &Step, task: &Task) -> Result<Scope, String> {
    let mut found = BTreeMap::new();
    for (artifact, shape) in plan.shapes.get(&step.skill).into_iter().flatten() {
        let data = data(task, artifact)?;
        shape.check(&data, "").map_err(|why| format!("the data of the artifact {artifact}: {why}"))?;
        found.insert(artifact.as_str(), data);
    }
    let values = step.values.iter();
    let read = values.filter_map(|(name, value)| Some((name.clone(), value.of(found.get(value.artifact.as_str())?))));
    Ok(read.collect())
}

/// The first data part of an artifact.
fn data(task: &Task, name: &str) -> Result<Value, String> {
    let artifact = task.artifacts.iter().find(|made| made.artifact_id.as_str() == name);
    let artifact = artifact.ok_or_else(|| format!("there is no artifact {name}"))?;
    let data = artifact.parts.iter().find_map(|part| match &part.content {
        Content::Data(json) => Some(json),
        _ => None,
    });
    let data = data.ok_or_else(|| format!("the artifact {name} has no data"))?;
    data.read().map_err(|cause| format!("the data of the artifact {name}: {cause}"))
}
