//! Approvals by operators with names (docs/approvals.md).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod commands;
mod decide;
mod expiry;
mod hostile;
mod page;

use serde_json::{Value, json};
use server::{Setup, Start, Tokens};
use testing::{Answer, Binding, Scripted, Served, id, scripted, send, state};

/// The tokens of this file's operators. Bob may decide nothing.
const ANA: &str = "token-of-ana";
const EVE: &str = "token-of-eve";
const BOB: &str = "token-of-bob";

/// Needs as many approvals as the first message says, says who gave them, and rejects with what a refusal says.
fn deployer() -> Scripted {
    let mut agent = scripted(|job, say| async move {
        let wanted: usize = job.first_message().text().trim_start_matches("approvals: ").parse().unwrap_or(1);
        let asker = job.asker.as_deref().unwrap_or("somebody").to_owned();
        let history = job.task.iter().flat_map(|task| &task.history);
        let before = history.filter(|message| message.text().contains(" approved")).count();
        match job.start {
            Start::Approval { by } => {
                let by = by.unwrap_or_else(|| "nobody".to_owned());
                say.working(format!("{by} approved")).await?;
                if before + 1 < wanted {
                    say.need_approval(format!("{by} has approved, one more is needed")).await?;
                } else {
                    say.done(format!("live, asked by {asker}, approved by {by}")).await?;
                }
            }
            Start::Refusal { by, reason } => say.rejected(format!("{by:?} refused: {reason:?}")).await?,
            Start::Expiry => say.canceled("nobody approved in time").await?,
            _ => say.need_approval("Deploy <b>build 7</b>?").await?,
        }
        Ok(())
    });
    agent.may_decide = |task, operator| {
        let approved = format!("{operator} approved");
        operator != "bob" && !task.history.iter().any(|message| message.text() == approved)
    };
    agent.about = vec![("build".to_owned(), "7".to_owned()), ("environment".to_owned(), "<i>staging</i>".to_owned())];
    agent
}

fn with_operators(setup: &mut Setup) {
    let lines = [("ana", ANA), ("eve", EVE), ("bob", BOB)].map(|(name, token)| Tokens::line(name, token).unwrap());
    setup.operators = Some(Tokens::read(&lines.join("\n")).unwrap());
}

/// A task that waits for an approval.
async fn asked(served: &Served, text: &str) -> String {
    let answer = served.call(Binding::Rpc, "SendMessage", send(text)).await;
    assert_eq!(state(&answer.result()["task"]), "AUTH_REQUIRED");
    id(&answer.result()["task"])
}

async fn post(served: &Served, path: &str, token: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    served.http("POST", path, &headers, &body.to_string()).await
}

async fn approve(served: &Served, task: &str, token: &str) -> u16 {
    post(served, &format!("/approve/{task}"), token, &json!({})).await.status
}

fn words(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap()
}
