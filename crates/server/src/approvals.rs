//! Approvals from outside A2A (DECISIONS O19).

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};
use protocol::{TaskId, media};

use crate::agent::Start;
use crate::host::{Host, plain_error, whole};

/// `POST /approve/<task id>`.
pub(crate) async fn approve(host: Arc<Host>, id: &str) -> Response<Body> {
    let approved = match TaskId::new(id) {
        Ok(id) => host.engine.approve(&id, Start::Approval { by: None }).await,
        Err(_) => Ok(false),
    };
    match approved {
        Ok(true) => json(StatusCode::OK, &serde_json::json!({"approved": true, "taskId": id})),
        Ok(false) => json(StatusCode::NOT_FOUND, &serde_json::json!({"approved": false})),
        Err(_) => plain_error(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "Internal error"),
    }
}

/// `GET /approvals`: what waits, and since when.
pub(crate) async fn list(host: Arc<Host>) -> Response<Body> {
    let waiting = host.engine.waiting_for_approval().await;
    let approvals: Vec<_> = waiting
        .iter()
        .map(|task| {
            let text = task.status.message.as_ref().map(|message| message.text());
            serde_json::json!({"taskId": task.id, "text": text, "since": task.status.timestamp})
        })
        .collect();
    json(StatusCode::OK, &serde_json::json!({"approvals": approvals}))
}

fn json(status: StatusCode, body: &serde_json::Value) -> Response<Body> {
    whole(status, media::JSON, body.to_string().into())
}
