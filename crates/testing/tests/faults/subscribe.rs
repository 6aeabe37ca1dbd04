//! Section B: subscribe and re-subscribe.

use std::sync::Arc;

use serde_json::{Value, json};
use testing::{Binding, Scripted, chunk, frame_state, rebuilt, scripted, serve, texts};
use tokio::sync::Semaphore;

/// Says a piece for each permit, so many, and is done.
fn in_steps(gate: &Arc<Semaphore>, pieces: usize) -> Scripted {
    let gate = gate.clone();
    scripted(move |_, say| {
        let gate = gate.clone();
        async move {
            for number in 0..pieces {
                gate.acquire().await?.forget();
                say.artifact(chunk("log", format!("{number} "), number > 0, number + 1 == pieces)).await?;
            }
            Ok(say.done(()).await?)
        }
    })
}

#[tokio::test]
async fn b13_a_reader_that_was_cut_off_rebuilds_the_whole_artifact() {
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(in_steps(&gate, 20), |_| {}).await;
    for binding in Binding::ALL {
        let mut stream = served.stream(binding, "SendStreamingMessage", testing::send("go")).await;
        let task = testing::id(&stream.next().await.unwrap()["task"]);
        gate.add_permits(5);
        for _ in 0..5 {
            stream.next().await.unwrap();
        }
        drop(stream);
        // Said while nobody listens.
        gate.add_permits(6);
        while texts(&served.task(&task).await["artifacts"][0]).len() < 11 {
            tokio::task::yield_now().await;
        }
        let mut again = served.stream(binding, "SubscribeToTask", json!({"id": task})).await;
        let mut frames = vec![again.next().await.unwrap()];
        assert_eq!(texts(&frames[0]["task"]["artifacts"][0]).len(), 11, "the first frame holds everything so far");
        gate.add_permits(9);
        frames.extend(again.rest().await);
        let whole = served.task(&task).await;
        assert_eq!(rebuilt(&frames), [texts(&whole["artifacts"][0])]);
        assert_eq!(texts(&whole["artifacts"][0]).len(), 20);
    }
}

#[tokio::test]
async fn b19_two_subscriptions_show_the_same_events_and_no_status_twice() {
    let gate = Arc::new(Semaphore::new(0));
    let hold = gate.clone();
    let agent = scripted(move |_, say| {
        let hold = hold.clone();
        async move {
            for step in 0..4 {
                hold.acquire().await?.forget();
                say.working(format!("step {step}")).await?;
            }
            Ok(say.done(()).await?)
        }
    });
    let served = serve(agent, |_| {}).await;
    for binding in Binding::ALL {
        let task = served.started("go").await;
        gate.add_permits(1);
        served.until(&task, "TASK_STATE_WORKING").await;
        let mut both = Vec::new();
        for _ in 0..2 {
            both.push(served.stream(binding, "SubscribeToTask", json!({"id": task})).await);
        }
        gate.add_permits(3);
        let (second, first) = (both.pop().unwrap().rest().await, both.pop().unwrap().rest().await);
        assert_eq!(first, second);
        assert_eq!(frame_state(&first[0]), "WORKING");
        let statuses: Vec<&Value> = first[1..].iter().map(|frame| &frame["statusUpdate"]["status"]).collect();
        assert_eq!(statuses.len(), 4, "the snapshot is no transition: {statuses:?}");
        let snapshot = &first[0]["task"]["status"];
        assert!(!statuses.contains(&snapshot));
        assert!(statuses.windows(2).all(|two| two[0] != two[1]), "{statuses:?}");
    }
}
