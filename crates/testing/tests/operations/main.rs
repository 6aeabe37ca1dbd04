//! How operations behave: the decisions O1 to O14 and O16 to O19, over both bindings, and the agents that show it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod access;
mod cancel;
mod failure;
mod list;
mod resend;
mod send;
mod stream;
mod turn;

use std::sync::Arc;

use protocol::{Artifact, ArtifactId, Part};
use serde_json::{Value, json};
use server::Chunk;
use testing::{Binding, Scripted, Served, message, scripted};
use tokio::sync::Semaphore;

fn chunk(id: &str, text: impl Into<String>, append: bool, last_chunk: bool) -> Chunk {
    let artifact = Artifact::new(ArtifactId::new(id).unwrap(), vec![Part::text(text.into())]);
    Chunk { artifact, append, last_chunk }
}

/// Works, makes two artifacts, and is done.
fn busy() -> Scripted {
    scripted(|_, say| async move {
        say.working("at it").await?;
        say.artifact(chunk("a1", "one", false, true)).await?;
        say.artifact(chunk("a2", "two", false, true)).await?;
        say.done("finished").await?;
        Ok(())
    })
}

/// Works until it is let go, then is done. Says `asked` when it is asked with that text.
fn held(gate: Arc<Semaphore>) -> Scripted {
    scripted(move |job, say| {
        let gate = gate.clone();
        async move {
            say.working(job.message.text()).await?;
            let permit = gate.acquire().await?;
            permit.forget();
            match job.message.text().as_str() {
                "ask" => say.ask("which?").await?,
                text => say.done(text).await?,
            }
            Ok(())
        }
    })
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap().trim_start_matches("TASK_STATE_")
}

fn id(task: &Value) -> String {
    task["id"].as_str().unwrap().to_owned()
}

fn immediately(message: Value) -> Value {
    json!({"message": message, "configuration": {"returnImmediately": true}})
}

fn to(task: &str, text: &str) -> Value {
    let mut message = message(text);
    message["taskId"] = json!(task);
    message
}

async fn started(served: &Served, text: &str) -> String {
    let answer = served.call(Binding::Rpc, "SendMessage", immediately(message(text))).await;
    id(&answer.result()["task"])
}

fn frame_state(frame: &Value) -> &str {
    let status = frame.get("task").or_else(|| frame.get("statusUpdate"));
    status.map_or("artifact", |status| status["status"]["state"].as_str().unwrap().trim_start_matches("TASK_STATE_"))
}
