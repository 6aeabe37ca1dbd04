//! The JSON of tasks, messages and frames, as tests write and read it.

use protocol::{Artifact, ArtifactId, Part};
use serde_json::{Value, json};
use server::Chunk;

use crate::agent::Served;
use crate::talk::{Binding, message};

/// A piece of an artifact: one text.
pub fn chunk(id: &str, text: impl Into<String>, append: bool, last_chunk: bool) -> Chunk {
    let artifact = Artifact::new(ArtifactId::new(id).unwrap(), vec![Part::text(text.into())]);
    Chunk { artifact, append, last_chunk }
}

/// The state of a task, without `TASK_STATE_`.
pub fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap().trim_start_matches("TASK_STATE_")
}

/// The id of a task.
pub fn id(task: &Value) -> String {
    task["id"].as_str().unwrap().to_owned()
}

/// The params of a send that does not wait.
pub fn immediately(message: Value) -> Value {
    json!({"message": message, "configuration": {"returnImmediately": true}})
}

/// A message to a task.
pub fn to(task: &str, text: &str) -> Value {
    let mut message = message(text);
    message["taskId"] = json!(task);
    message
}

/// The state that a frame tells, without `TASK_STATE_`, or `artifact`.
pub fn frame_state(frame: &Value) -> &str {
    let status = frame.get("task").or_else(|| frame.get("statusUpdate"));
    status.map_or("artifact", state)
}

/// The texts of an artifact.
pub fn texts(artifact: &Value) -> Vec<String> {
    let parts = artifact["parts"].as_array().into_iter().flatten();
    parts.map(|part| part["text"].as_str().unwrap().to_owned()).collect()
}

/// The texts of each artifact that the frames of a stream make, in the order in which the artifacts were begun.
pub fn rebuilt(frames: &[Value]) -> Vec<Vec<String>> {
    let mut made: Vec<(Value, Vec<String>)> = Vec::new();
    for frame in frames {
        if let Some(task) = frame.get("task") {
            let artifacts = task["artifacts"].as_array().into_iter().flatten();
            made = artifacts.map(|artifact| (artifact["artifactId"].clone(), texts(artifact))).collect();
        } else if let Some(update) = frame.get("artifactUpdate") {
            let artifact = &update["artifact"];
            let known = made.iter_mut().find(|(id, _)| *id == artifact["artifactId"]);
            match known {
                Some((_, there)) if update["append"] == true => there.extend(texts(artifact)),
                Some((_, there)) => *there = texts(artifact),
                None => made.push((artifact["artifactId"].clone(), texts(artifact))),
            }
        }
    }
    made.into_iter().map(|(_, texts)| texts).collect()
}

impl Served {
    /// Begins a task without waiting for it. Gives its id.
    pub async fn started(&self, text: &str) -> String {
        let answer = self.call(Binding::Rpc, "SendMessage", immediately(message(text))).await;
        id(&answer.result()["task"])
    }
}
