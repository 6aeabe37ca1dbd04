//! What an operator asks outside A2A: approvals (DECISIONS O19), and webhooks that get nothing more (O15).
//!
//! Where operators have names, `operators` answers for approvals instead.

use std::sync::Arc;

use axum::body::Body;
use http::{HeaderMap, Request, Response, StatusCode};
use protocol::{TaskId, media};

use crate::agent::Start;
use crate::engine::{Decision, Verdict};
use crate::host::{Host, plain_error, whole};
use crate::operators;

/// `POST /approve/<task id>`.
pub(crate) async fn approve(host: Arc<Host>, id: &str, request: Request<Body>) -> Response<Body> {
    if host.door.has_operators() {
        return operators::decide(host, id, request, operators::Act::Approve).await;
    }
    if !host.door.comes_from_here(request.headers()) {
        tracing::warn!(task = ?id, "another site's page tried to approve");
        return operators::from_elsewhere();
    }
    let verdict = match TaskId::new(id) {
        Ok(id) => host.engine.decide(&id, Decision::of(Start::Approval { by: None })).await,
        Err(_) => Ok(Verdict::Unknown),
    };
    match verdict {
        Ok(Verdict::Counts) => json(StatusCode::OK, &serde_json::json!({"approved": true, "taskId": id})),
        Ok(_) => json(StatusCode::NOT_FOUND, &serde_json::json!({"approved": false})),
        Err(_) => internal(),
    }
}

/// `GET /approvals`: what waits, and since when.
pub(crate) async fn list(host: Arc<Host>, headers: &HeaderMap) -> Response<Body> {
    if host.door.has_operators() {
        return operators::list(host, headers).await;
    }
    let Ok(waiting) = host.engine.awaiting_approval().await else { return internal() };
    let approvals: Vec<_> = waiting
        .iter()
        .map(|record| {
            let status = &record.task.status;
            let text = status.message.as_ref().map(|message| message.text());
            serde_json::json!({"taskId": record.task.id, "text": text, "since": status.timestamp})
        })
        .collect();
    json(StatusCode::OK, &serde_json::json!({"approvals": approvals}))
}

/// `GET /push/failed`: the webhooks that get nothing more, why, and since when. Their addresses are shown without what
/// may be secret in them.
pub(crate) async fn failed_webhooks(host: Arc<Host>, headers: &HeaderMap) -> Response<Body> {
    if host.door.admit(headers).is_err() {
        return host.unauthenticated();
    }
    let Ok(given_up) = host.engine.given_up().await else { return internal() };
    let failed: Vec<_> = given_up
        .iter()
        .map(|hook| {
            let url = crate::push::shown(&hook.config.url);
            serde_json::json!({
                "taskId": hook.task, "id": hook.config.id, "url": url, "why": hook.why, "since": hook.since,
            })
        })
        .collect();
    json(StatusCode::OK, &serde_json::json!({"failed": failed}))
}

pub(crate) fn internal() -> Response<Body> {
    plain_error(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "Internal error")
}

pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Response<Body> {
    whole(status, media::JSON, body.to_string().into())
}
