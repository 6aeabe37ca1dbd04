//! The same message again: the decision O11.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use server::Dedupe;
use testing::{Binding, id, immediately, scripted, send, serve, state};
use tokio::sync::Semaphore;

use super::{busy, held};

#[tokio::test]
async fn o11_a_resend_of_what_still_runs_joins_it() {
    let (gate, turns) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (hold, count) = (gate.clone(), turns.clone());
    let served = Arc::new(
        serve(
            scripted(move |_, say| {
                let (hold, count) = (hold.clone(), count.clone());
                async move {
                    count.fetch_add(1, Ordering::SeqCst);
                    say.working(()).await?;
                    hold.acquire().await?.forget();
                    say.done("once").await?;
                    Ok(())
                }
            }),
            |_| {},
        )
        .await,
    );
    let params = send("deploy");
    let first = {
        let (served, params) = (served.clone(), params.clone());
        tokio::spawn(async move { served.call(Binding::Rpc, "SendMessage", params).await })
    };
    while turns.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // The other binding, and another configuration.
    let mut joined = params.clone();
    joined["configuration"] = json!({"returnImmediately": true});
    let joined = served.call(Binding::Rest, "SendMessage", joined).await;
    assert_eq!(state(&joined.result()["task"]), "WORKING");
    let mut other = params.clone();
    other["message"]["parts"][0]["text"] = json!("something else");
    let other = served.call(Binding::Rpc, "SendMessage", immediately(other["message"].clone())).await;
    assert_ne!(other.result()["task"]["id"], joined.result()["task"]["id"], "other content is a new message");
    gate.add_permits(2);
    let first = first.await.unwrap();
    assert_eq!(first.result()["task"]["id"], joined.result()["task"]["id"]);
    // Answered: the same message again is a new one.
    gate.add_permits(1);
    let again = served.call(Binding::Rpc, "SendMessage", params).await;
    assert_ne!(again.result()["task"]["id"], first.result()["task"]["id"]);
    assert_eq!(turns.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn o11_a_resend_after_a_broken_connection_gets_the_task_even_when_it_has_ended() {
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(held(gate.clone()), |_| {}).await;
    let params = send("deploy");
    let lost = served.request(Binding::Rpc, "SendMessage", &params, &[]).timeout(Duration::from_millis(80));
    assert!(lost.send().await.unwrap_err().is_timeout());
    // Until the server has heard that the connection is gone; before that, its answer would count as written.
    tokio::time::sleep(Duration::from_millis(100)).await;
    gate.add_permits(1);
    let list = served.call(Binding::Rpc, "ListTasks", json!({})).await;
    let task = id(&list.result()["tasks"][0]);
    served.until(&task, "TASK_STATE_COMPLETED").await;
    let again = served.call(Binding::Rpc, "SendMessage", params).await;
    assert_eq!(id(&again.result()["task"]), task);
    assert_eq!(served.call(Binding::Rpc, "ListTasks", json!({})).await.result()["totalSize"], 1);
}

#[tokio::test]
async fn o11_always_joins_every_resend_and_off_none() {
    for (dedupe, tasks) in [(Dedupe::Always, 1), (Dedupe::Unanswered, 3), (Dedupe::Off, 3)] {
        let served = serve(busy(), |setup| setup.dedupe = dedupe).await;
        let params = send("deploy");
        for binding in Binding::ALL {
            let answer = served.call(binding, "SendMessage", params.clone()).await;
            assert_eq!(state(&answer.result()["task"]), "COMPLETED");
        }
        let list = served.call(Binding::Rpc, "ListTasks", json!({})).await;
        assert_eq!(list.result()["totalSize"], tasks, "{dedupe:?}");
    }
}
