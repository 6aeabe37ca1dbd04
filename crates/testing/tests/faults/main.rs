//! Faults seen in other systems, tried on this one over both bindings: what `docs/faults.md` lists and no other test
//! shows. A test is named after its entry there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod address;
mod blocking;
mod format;
mod life;
mod page;
mod push;
mod subscribe;
mod turn;

use testing::{Scripted, chunk, scripted};

/// Does what the message says, word by word: `work`, `piece`, `ask`, `done`, `fail`, `reject`, `panic`, `wait`.
fn obedient() -> Scripted {
    scripted(|job, say| async move {
        for (number, word) in job.message.text().split(' ').enumerate() {
            match word {
                "work" => say.working(format!("step {number}")).await?,
                "piece" => say.artifact(chunk("log", format!("{number}"), number > 0, false)).await?,
                "ask" => return Ok(say.ask("which?").await?),
                "done" => return Ok(say.done("done").await?),
                "fail" => return Ok(say.failed("it broke").await?),
                "reject" => return Ok(say.rejected("not this").await?),
                "panic" => panic!("as the message says"),
                "wait" => job.stop.cancelled().await,
                _ => {}
            }
        }
        Ok(())
    })
}
