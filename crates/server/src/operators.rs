//! Approvals by operators with names: who may decide, and what a decision comes to. A decision is acknowledged when it is
//! kept, and counts once.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use protocol::{TaskId, Timestamp, media};
use serde::Deserialize;

use crate::agent::Start;
use crate::approvals::{internal, json};
use crate::engine::{Decision, Verdict};
use crate::host::{Host, plain_error};
use crate::store::Record;

/// What an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Approve,
    Refuse,
}

impl Act {
    fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Refuse => "refuse",
        }
    }
}

/// The largest body of a decision, in bytes.
const BODY_LIMIT: u64 = 8 << 10;
/// The longest reason, in characters.
const REASON_LIMIT: usize = 1000;

/// What a decision says beside its path.
#[derive(Debug, Default, Deserialize)]
struct Said {
    /// Why it is refused.
    reason: Option<String>,
    /// The moment since which the task waits, as it was listed: what the operator saw is what is decided.
    since: Option<Timestamp>,
}

/// `POST /approve/<task id>` and `POST /refuse/<task id>`.
pub(crate) async fn decide(host: Arc<Host>, id: &str, request: Request<Body>, act: Act) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let operator = match host.door.operator(&parts.headers) {
        Some(Ok(operator)) => operator,
        Some(Err(_)) => {
            tracing::warn!(task = ?id, "a stranger tried to {}: no operator has that token, or none was shown", act.word());
            return host.unauthenticated();
        }
        // Without operators there is nobody who could refuse.
        None => return plain_error(StatusCode::NOT_FOUND, "NOT_FOUND", "This agent has no operators"),
    };
    if !host.door.comes_from_here(&parts.headers) {
        tracing::warn!(task = ?id, operator = &*operator, "another site's page tried to {}", act.word());
        return from_elsewhere();
    }
    let said = match read(&host, &parts.headers, body).await {
        Ok(said) => said,
        Err(refused) => return refused,
    };
    let by = Some(operator.to_string());
    let start = match act {
        Act::Approve => Start::Approval { by },
        Act::Refuse => match reason(said.reason) {
            Ok(reason) => Start::Refusal { by, reason: Some(reason) },
            Err(why) => return plain_error(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", &why),
        },
    };
    let verdict = match TaskId::new(id) {
        Ok(id) => host.engine.decide(&id, Decision { start, by: Some(operator.clone()), since: said.since }).await,
        Err(_) => Ok(Verdict::Unknown),
    };
    match verdict {
        Ok(Verdict::Counts) => {
            tracing::info!(task = ?id, operator = &*operator, "{} counts", act.word());
            let approved = act == Act::Approve;
            json(StatusCode::OK, &serde_json::json!({"approved": approved, "taskId": id, "by": &*operator}))
        }
        Ok(Verdict::MayNot) => {
            tracing::warn!(task = ?id, operator = &*operator, "tried to {} what this operator may not decide", act.word());
            plain_error(StatusCode::FORBIDDEN, "PERMISSION_DENIED", &format!("{operator} may not decide this"))
        }
        Ok(Verdict::NotWaiting) => {
            tracing::info!(task = ?id, operator = &*operator, "{} came when the task does not wait for it", act.word());
            let message = "The task does not wait for this decision, or not any more";
            plain_error(StatusCode::CONFLICT, "FAILED_PRECONDITION", message)
        }
        Ok(Verdict::Unknown) => plain_error(StatusCode::NOT_FOUND, "NOT_FOUND", "There is no such task"),
        Err(_) => internal(),
    }
}

/// The answer to a page of another site, and to the agent's own under a host name that it does not know.
pub(crate) fn from_elsewhere() -> Response<Body> {
    let words = "Another site's page may not do this. If it is this agent's own, the agent does not know the name that \
                 its address has: --host or --public-url tells it";
    plain_error(StatusCode::FORBIDDEN, "PERMISSION_DENIED", words)
}

/// `GET /approvals`: what waits for an operator, longest first.
pub(crate) async fn list(host: Arc<Host>, headers: &HeaderMap) -> Response<Body> {
    let Some(Ok(operator)) = host.door.operator(headers) else {
        tracing::warn!("a stranger asked for the approvals");
        return host.unauthenticated();
    };
    let Ok(waiting) = host.engine.awaiting_approval().await else { return internal() };
    let approvals: Vec<_> = waiting.iter().map(|record| shown(&host, record, &operator)).collect();
    json(StatusCode::OK, &serde_json::json!({"operator": &*operator, "approvals": approvals}))
}

fn shown(host: &Host, Record { task, owner, .. }: &Record, operator: &str) -> serde_json::Value {
    let about = host.engine.about(task).into_iter();
    let about: Vec<_> = about.map(|(name, value)| serde_json::json!({"name": name, "value": value})).collect();
    serde_json::json!({
        "taskId": task.id,
        "text": task.status.message.as_ref().map(|message| message.text()),
        "since": task.status.timestamp,
        "asker": host.engine.asker(owner).as_deref(),
        "about": about,
        "mayDecide": host.engine.may_decide(task, operator),
    })
}

/// Reads what a decision says: nothing, JSON, or a form.
async fn read(host: &Host, headers: &HeaderMap, body: Body) -> Result<Said, Response<Body>> {
    let refused = |status, message: &str| plain_error(status, "INVALID_ARGUMENT", message);
    let too_large = || refused(StatusCode::PAYLOAD_TOO_LARGE, &format!("A decision takes at most {BODY_LIMIT} bytes"));
    if http_body::Body::size_hint(&body).lower() > BODY_LIMIT {
        return Err(too_large());
    }
    let body: Bytes = host.read(body).await?;
    if body.len() as u64 > BODY_LIMIT {
        return Err(too_large());
    }
    if body.trim_ascii().is_empty() {
        return Ok(Said::default());
    }
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or(media::JSON);
    if protocol::media::is(content_type, media::JSON) {
        // serde would read an array as a struct.
        let said = Some(&body).filter(|body| body.trim_ascii_start().starts_with(b"{"));
        let said = said.and_then(|body| serde_json::from_slice(body).ok());
        said.ok_or_else(|| refused(StatusCode::BAD_REQUEST, "The body is {\"reason\": TEXT, \"since\": TIME}"))
    } else if protocol::media::is(content_type, "application/x-www-form-urlencoded") {
        let mut said = Said::default();
        for (name, value) in form_urlencoded::parse(&body) {
            match &*name {
                "reason" => said.reason = Some(value.into_owned()),
                "since" => {
                    let since = value.parse().map_err(|_| refused(StatusCode::BAD_REQUEST, "since is a time"))?;
                    said.since = Some(since);
                }
                _ => {}
            }
        }
        Ok(said)
    } else {
        Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "A decision is JSON or a form"))
    }
}

/// A reason as one line of text. Whoever is refused is told why.
fn reason(said: Option<String>) -> Result<String, String> {
    let said = said.unwrap_or_default();
    let line = said.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = line.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        Err("A refusal needs a reason".to_owned())
    } else if line.chars().count() > REASON_LIMIT {
        Err(format!("A reason has at most {REASON_LIMIT} characters"))
    } else {
        Ok(line)
    }
}
