//! Approvals that nobody gives in time, and approvals whose agent has not yet said a word about them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use server::store::Sql;
use server::{Setup, Start};
use testing::{Apart, Binding, Scripted, scripted, serve, state};
use tokio::sync::Semaphore;

use super::{ANA, approve, asked, deployer, with_operators, words};

fn hurried(limit: Duration) -> Scripted {
    let mut agent = deployer();
    agent.approval_limit = Some(limit);
    agent
}

#[tokio::test]
async fn an_approval_that_nobody_gives_in_time_expires_with_words() {
    let served = serve(hurried(Duration::from_millis(300)), with_operators).await;
    // The second begins to wait while the first does.
    let tasks = [asked(&served, "go").await, asked(&served, "go").await];
    for task in tasks {
        let canceled = served.until(&task, "TASK_STATE_CANCELED").await;
        assert_eq!(words(&canceled), "nobody approved in time");
        assert_eq!(approve(&served, &task, ANA).await, 409);
    }
}

#[tokio::test]
async fn an_approval_in_time_stands_and_one_that_meets_the_expiry_counts_or_does_not() {
    let served = serve(hurried(Duration::from_millis(40)), with_operators).await;
    let (mut approved, mut expired) = (0, 0);
    for round in 0..40 {
        let task = asked(&served, "go").await;
        tokio::time::sleep(Duration::from_millis(round * 2)).await;
        match approve(&served, &task, ANA).await {
            200 => {
                approved += 1;
                served.until(&task, "TASK_STATE_COMPLETED").await;
            }
            409 => {
                expired += 1;
                served.until(&task, "TASK_STATE_CANCELED").await;
            }
            other => panic!("{other}"),
        }
    }
    assert!(approved > 0 && expired > 0, "{approved} approved, {expired} expired");
}

#[tokio::test]
async fn what_expires_while_nobody_serves_expires_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.sqlite");
    let store = async || Arc::new(Sql::sqlite(&file).await.unwrap());
    let kept = store().await;
    let before = Apart::serve(hurried(Duration::from_millis(1500)), move |setup: &mut Setup| {
        with_operators(setup);
        setup.store = kept;
    });
    let before = before.await;
    let task = asked(&before, "go").await;
    before.stop().await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let kept = store().await;
    let after = serve(hurried(Duration::from_millis(1500)), |setup| {
        with_operators(setup);
        setup.store = kept;
    });
    assert_eq!(words(&after.await.until(&task, "TASK_STATE_CANCELED").await), "nobody approved in time");
}

#[tokio::test]
async fn an_approval_is_acknowledged_when_the_agent_s_words_about_it_are_kept() {
    let hold = Arc::new(Semaphore::new(0));
    let held = hold.clone();
    let agent = scripted(move |job, say| {
        let held = held.clone();
        async move {
            match job.start {
                Start::Approval { .. } => {
                    held.acquire().await?.forget();
                    say.working("approved").await?;
                    std::future::pending().await
                }
                _ => say.need_approval("allow it").await?,
            }
            Ok(())
        }
    });
    let served = serve(agent, with_operators).await;
    let task = asked(&served, "go").await;
    let mut answer = Box::pin(approve(&served, &task, ANA));
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut answer).await.is_err(), "nothing is kept yet");
    let get = served.call(Binding::Rpc, "GetTask", json!({"id": task})).await;
    assert_eq!(state(get.result()), "AUTH_REQUIRED");
    hold.add_permits(1);
    assert_eq!(answer.await, 200);
    let get = served.call(Binding::Rpc, "GetTask", json!({"id": task})).await;
    assert_eq!(words(get.result()), "approved");
}
