//! What operators do outside A2A: what waits for an approval, and what they decide (DECISIONS O19).

use protocol::{TaskId, Timestamp, media};
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::error::ClientError;
use crate::http::{Answer, Http};

/// What waits at an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    /// The operator whose token was shown; none where operators have no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// What waits, longest first.
    pub approvals: Vec<Waiting>,
}

/// A task that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The task.
    pub task_id: TaskId,
    /// The words with which it waits.
    #[serde(default)]
    pub text: Option<String>,
    /// Since when.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Who asked, where the agent knows names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// What an operator should know, such as the build and the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<Known>,
    /// Whether this operator may decide it. Where operators have no names, everybody may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_decide: Option<bool>,
}

/// A fact about a task that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// What it is, such as `build`.
    pub name: String,
    /// Such as `2026.10.06-1`.
    pub value: String,
}

/// What an operator decides.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Decision<'a> {
    /// Why it is refused. None: it is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// The moment since which the task waited when the operator saw it; it counts for no other wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The agent did not take a decision, or did not tell what waits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct NotTaken {
    /// The HTTP status: 401 when no operator has the token, 403 when this one may not, 404 when there is no such task,
    /// 409 when it waits no more.
    pub status: u16,
    /// The agent's words, or the status.
    pub words: String,
}

impl NotTaken {
    fn of(answer: &Answer) -> Self {
        #[derive(Deserialize)]
        struct Said {
            error: Words,
        }
        #[derive(Deserialize)]
        struct Words {
            message: String,
        }
        let said: Option<Said> = serde_json::from_slice(&answer.body).ok();
        let words = said.map_or_else(|| format!("status {}", answer.status), |said| said.error.message);
        Self { status: answer.status, words }
    }
}

/// The headers of a call with this token.
fn headers(token: Option<&str>) -> Vec<(&'static str, String)> {
    token.map(|token| ("Authorization", format!("Bearer {token}"))).into_iter().collect()
}

/// A path at the origin of an agent, and nowhere else.
fn at_origin(agent_url: &str, path: &[&str]) -> Result<String, ClientError> {
    let bad_url = || ClientError::Url(agent_url.to_owned());
    let mut url: Url = agent_url.parse().map_err(|_| bad_url())?;
    url.path_segments_mut().map_err(|()| bad_url())?.clear().extend(path);
    url.set_query(None);
    url.set_fragment(None);
    Ok(url.into())
}

impl Http {
    /// What waits for an approval at the origin of an agent.
    pub async fn approvals(
        &self,
        title: &str,
        agent_url: &str,
        token: Option<&str>,
    ) -> Result<Result<Approvals, NotTaken>, ClientError> {
        let url = at_origin(agent_url, &["approvals"])?;
        let limit = Some(self.limits.look);
        let answer = self.open_within(limit, title, "GET", &url, &headers(token), None).await?.whole().await?;
        match answer.status {
            200 => match serde_json::from_slice(&answer.body) {
                Ok(approvals) => Ok(Ok(approvals)),
                Err(_) => Err(answer.not_a2a("a list of approvals")),
            },
            401 | 403 | 404 => Ok(Err(NotTaken::of(&answer))),
            _ => Err(answer.not_a2a("a list of approvals")),
        }
    }

    /// Approves a task as somebody without a name. True when the agent took it.
    pub async fn approve(&self, title: &str, agent_url: &str, task: &TaskId) -> Result<bool, ClientError> {
        Ok(self.decide(title, agent_url, task, &Decision::default(), None).await?.is_ok())
    }

    /// Approves or refuses what a task asks for, at the origin of the agent and nowhere else.
    pub async fn decide(
        &self,
        title: &str,
        agent_url: &str,
        task: &TaskId,
        decision: &Decision<'_>,
        token: Option<&str>,
    ) -> Result<Result<(), NotTaken>, ClientError> {
        let act = if decision.reason.is_some() { "refuse" } else { "approve" };
        let url = at_origin(agent_url, &[act, task.as_str()])?;
        let mut all = vec![("Content-Type", media::JSON.to_owned())];
        all.extend(headers(token));
        let body = serde_json::to_vec(decision).map_err(|_| ClientError::Url(url.clone()))?;
        let limit = Some(self.limits.look);
        let answer = self.open_within(limit, title, "POST", &url, &all, Some(body)).await?.whole().await?;
        match answer.status {
            200 => Ok(Ok(())),
            408 | 429 | 500.. => Err(answer.not_a2a("an answer to a decision")),
            _ => Ok(Err(NotTaken::of(&answer))),
        }
    }
}
