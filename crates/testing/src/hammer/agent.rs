//! The agent under the hammer: it plays the plan in each message.

use std::sync::Arc;

use server::{Chunk, Fault, Job, Say, Start};

use super::plan::{Plan, Step};
use crate::agent::{Scripted, scripted};

/// What a panic of the agent's says when it was planned.
pub const PLANNED: &str = "as planned";

/// The agent.
pub fn agent() -> Scripted {
    let mut agent = scripted(play);
    agent.card.name = "hammer-agent".to_owned();
    agent.card.description = "Does what each message plans.".to_owned();
    agent
}

/// Keeps the planned panics out of the log. Others are reported as ever.
pub fn hide_planned_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&PLANNED) {
            usual(panic);
        }
    }));
}

async fn play(job: Job, say: Say) -> Result<(), Fault> {
    let plan = Arc::new(Plan::read(&job.message.text()).ok_or("this is no plan")?);
    let approved = matches!(job.start, Start::Approval { .. });
    let asked = plan.steps.iter().position(|step| *step == Step::Approval);
    let first = asked.filter(|_| approved).map_or(0, |place| place + 1);
    for (number, step) in plan.steps.iter().enumerate().skip(first) {
        match *step {
            Step::Working => say.working(format!("{}.{number}", plan.name)).await?,
            Step::New(artifact) | Step::Append(artifact) => {
                let artifact = plan.piece(number, artifact).ok_or("a piece without an id")?;
                say.artifact(Chunk { artifact, append: matches!(step, Step::Append(_)), last_chunk: false }).await?;
            }
            Step::Pause(_) => tokio::time::sleep(step.pause()).await,
            Step::Yield => tokio::task::yield_now().await,
            Step::Ask => return Ok(say.ask("which?").await?),
            Step::Approval => return Ok(say.need_approval("allow it").await?),
            Step::Done => return Ok(say.done("done").await?),
            Step::Failed => return Ok(say.failed("it did not work").await?),
            Step::Rejected => return Ok(say.rejected("not this").await?),
            Step::Return => return Ok(()),
            Step::Fault => return Err("a planned fault".into()),
            Step::Panic => std::panic::panic_any(PLANNED),
            Step::Heed => job.stop.cancelled().await,
            Step::Ignore => std::future::pending().await,
            Step::Reply => return Ok(say.reply(format!("{} says hello", plan.name)).await?),
        }
    }
    Ok(())
}
