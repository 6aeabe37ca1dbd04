//! What comes to a task that is there: the decisions O4, O8 and O9.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use server::Start;
use testing::{Binding, frame_state, id, immediately, scripted, send, serve, state, to};
use tokio::sync::Semaphore;

use super::{busy, held};

#[tokio::test]
async fn o04_a_status_message_enters_the_history_when_the_next_status_or_an_answer_comes() {
    let served = serve(
        scripted(|job, say| async move {
            if job.start == Start::Message {
                say.working("one").await?;
                say.ask("two?").await?;
            } else {
                say.done("four").await?;
            }
            Ok(())
        }),
        |_| {},
    )
    .await;
    let texts = |task: &Value| -> Vec<String> {
        let history = task["history"].as_array().unwrap();
        history.iter().map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
    };
    let answer = served.call(Binding::Rpc, "SendMessage", send("zero")).await;
    let task = answer.result()["task"].clone();
    assert_eq!(texts(&task), ["zero", "one"]);
    let answer = served.call(Binding::Rpc, "SendMessage", json!({"message": to(&id(&task), "three")})).await;
    assert_eq!(texts(&answer.result()["task"]), ["zero", "one", "two?", "three"]);
    assert_eq!(answer.result()["task"]["status"]["message"]["parts"][0]["text"], "four");
}

#[tokio::test]
async fn o08_a_message_to_an_ended_task_is_refused_after_its_context_was_checked() {
    let served = serve(busy(), |_| {}).await;
    let done = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let task = done.result()["task"].clone();
    for binding in Binding::ALL {
        let refused = served.call(binding, "SendMessage", json!({"message": to(&id(&task), "more")})).await;
        assert_eq!(refused.reason(), "UNSUPPORTED_OPERATION");
        let mut elsewhere = to(&id(&task), "more");
        elsewhere["contextId"] = json!("elsewhere");
        let refused = served.call(binding, "SendMessage", json!({"message": elsewhere})).await;
        assert_eq!(refused.fields(), ["message.contextId"]);
        let refused = served.call(binding, "SendMessage", json!({"message": to("nowhere", "more")})).await;
        assert_eq!(refused.reason(), "TASK_NOT_FOUND");
    }
    assert_eq!(served.task(&id(&task)).await, task);
}

#[tokio::test]
async fn o09_a_message_to_a_running_task_waits_and_starts_the_next_turn() {
    let gate = Arc::new(Semaphore::new(0));
    let served = Arc::new(serve(held(gate.clone()), |_| {}).await);
    let task = served.started("ask").await;
    served.until(&task, "TASK_STATE_WORKING").await;
    // Its stream does not end at the first turn's question, but at its own.
    let second = json!({"message": to(&task, "ask")});
    let mut second = served.stream(Binding::Rest, "SendStreamingMessage", second).await;
    assert_eq!(frame_state(&second.next().await.unwrap()), "WORKING");
    assert_eq!(served.task(&task).await["history"].as_array().unwrap().len(), 1, "what waits is not in the history");
    let (waiting, third) = (served.clone(), json!({"message": to(&task, "third")}));
    let third = tokio::spawn(async move { waiting.call(Binding::Rpc, "SendMessage", third).await });
    gate.add_permits(3);
    assert_eq!(state(&third.await.unwrap().result()["task"]), "COMPLETED");
    let states: Vec<_> = second.rest().await.iter().map(|frame| frame_state(frame).to_owned()).collect();
    assert_eq!(states, ["INPUT_REQUIRED", "WORKING", "WORKING", "INPUT_REQUIRED"]);
}

#[tokio::test]
async fn o09_what_waits_when_the_task_ends_is_refused_or_enters_the_history() {
    let gate = Arc::new(Semaphore::new(0));
    let served = Arc::new(serve(held(gate.clone()), |_| {}).await);
    let task = served.started("done").await;
    served.until(&task, "TASK_STATE_WORKING").await;
    let told = served.call(Binding::Rpc, "SendMessage", immediately(to(&task, "told"))).await;
    assert_eq!(state(&told.result()["task"]), "WORKING");
    let (waiting, params) = (served.clone(), json!({"message": to(&task, "blocked")}));
    let blocked = tokio::spawn(async move { waiting.call(Binding::Rpc, "SendMessage", params).await });
    let streamed = json!({"message": to(&task, "streamed")});
    let mut streamed = served.stream(Binding::Rpc, "SendStreamingMessage", streamed).await;
    assert_eq!(frame_state(&streamed.next().await.unwrap()), "WORKING");
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.add_permits(1);
    assert_eq!(frame_state(&streamed.rest().await.pop().unwrap()), "COMPLETED", "it follows to the end all the same");
    assert_eq!(blocked.await.unwrap().reason(), "UNSUPPORTED_OPERATION");
    let ended = served.until(&task, "TASK_STATE_COMPLETED").await;
    let history = ended["history"].to_string();
    assert!(history.contains("told"), "{history}");
    assert!(!history.contains("blocked") && !history.contains("streamed"), "{history}");
}
