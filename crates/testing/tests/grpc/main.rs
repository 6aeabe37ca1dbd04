//! gRPC beside the other two bindings: the same errors, the same door, what only this binding has, and our own client.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod client_side;
mod deep;
mod errors;
mod service;

use server::{Credential, Setup};
use testing::{Scripted, scripted};

/// Is done with what it was sent; asks when it is told to.
fn echo() -> Scripted {
    scripted(|job, say| async move {
        match job.message.text().as_str() {
            "ask" => say.ask("which?").await?,
            "panic" => panic!("as it was told"),
            "wait" => {
                say.working("waiting").await?;
                std::future::pending::<()>().await;
            }
            _ => {
                say.working("at it").await?;
                say.done(job.message.parts.clone()).await?;
            }
        }
        Ok(())
    })
}

/// Only who shows the token `right` may call.
fn locked(setup: &mut Setup) {
    setup.credentials = vec![Credential { token: "right".into(), principal: "ada".into() }];
}
