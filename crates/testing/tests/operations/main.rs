//! How operations behave: the decisions O1 to O14 and O16 to O19, over all bindings, and the agents that show it.

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

use testing::{Scripted, chunk, scripted};
use tokio::sync::Semaphore;

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
