//! One message, one answer: the decisions O1 to O3, O7 and O16.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use server::Setup;
use testing::{Binding, Slow, chunk, id, immediately, message, scripted, send, serve, state, to};
use tokio::sync::Semaphore;

use super::{busy, held};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_a_blocking_reply_equals_an_immediate_get_even_when_the_store_is_slow() {
    for slow in [false, true] {
        let change = |setup: &mut Setup| {
            if slow {
                setup.store = Arc::new(Slow::new());
            }
        };
        let served = Arc::new(serve(busy(), change).await);
        let sends = (0..16).map(|_| {
            let served = served.clone();
            tokio::spawn(async move {
                for binding in Binding::ALL {
                    for _ in 0..6 {
                        let answer = served.call(binding, "SendMessage", send("go")).await;
                        let task = &answer.result()["task"];
                        assert_eq!(state(task), "COMPLETED");
                        assert_eq!(task["artifacts"].as_array().unwrap().len(), 2);
                        assert_eq!(served.task(&id(task)).await, *task);
                    }
                }
            })
        });
        for send in sends.collect::<Vec<_>>() {
            send.await.unwrap();
        }
    }
}

#[tokio::test]
async fn o01_a_blocking_send_returns_at_both_interrupted_states() {
    for (text, expected) in [("ask", "INPUT_REQUIRED"), ("approve", "AUTH_REQUIRED")] {
        let served = serve(
            scripted(|job, say| async move {
                match job.message.text().as_str() {
                    "ask" => say.ask("which?").await?,
                    _ => say.need_approval("allow it").await?,
                }
                Ok(())
            }),
            |_| {},
        )
        .await;
        for binding in Binding::ALL {
            let answer = served.call(binding, "SendMessage", send(text)).await;
            assert_eq!(state(&answer.result()["task"]), expected);
        }
    }
}

#[tokio::test]
async fn o01_with_a_limit_the_task_comes_as_it_is_and_the_work_goes_on() {
    let gate = Arc::new(Semaphore::new(0));
    let limit = |setup: &mut Setup| setup.limits.blocking = Some(Duration::from_millis(50));
    let served = serve(held(gate.clone()), limit).await;
    for binding in Binding::ALL {
        let answer = served.call(binding, "SendMessage", send("go")).await;
        let task = answer.result()["task"].clone();
        assert_eq!(state(&task), "WORKING");
        gate.add_permits(1);
        served.until(&id(&task), "TASK_STATE_COMPLETED").await;
    }
}

#[tokio::test]
async fn o01_a_client_that_goes_away_never_stops_the_work() {
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(held(gate.clone()), |_| {}).await;
    for (binding, method) in
        [(Binding::Rpc, "SendMessage"), (Binding::Rest, "SendMessage"), (Binding::Rpc, "SendStreamingMessage")]
    {
        let params = send("go");
        let call = served.request(binding, method, &params, &[]).timeout(Duration::from_millis(80));
        match call.send().await {
            Ok(stream) => drop(stream),
            Err(timeout) => assert!(timeout.is_timeout()),
        }
        gate.add_permits(1);
        let list = served.call(Binding::Rpc, "ListTasks", json!({"pageSize": 1})).await;
        let task = id(&list.result()["tasks"][0]);
        served.until(&task, "TASK_STATE_COMPLETED").await;
    }
}

#[tokio::test]
async fn o02_return_immediately_answers_with_the_task_as_it_was_made_or_is() {
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(held(gate.clone()), |_| {}).await;
    for binding in Binding::ALL {
        let answer = served.call(binding, "SendMessage", immediately(message("ask"))).await;
        let task = answer.result()["task"].clone();
        assert_eq!(state(&task), "SUBMITTED");
        gate.add_permits(1);
        served.until(&id(&task), "TASK_STATE_INPUT_REQUIRED").await;
        let answer = served.call(binding, "SendMessage", immediately(to(&id(&task), "go on"))).await;
        assert_eq!(state(&answer.result()["task"]), "WORKING");
        gate.add_permits(1);
        served.until(&id(&task), "TASK_STATE_COMPLETED").await;
    }
}

#[tokio::test]
async fn o03_history_length_trims_every_answer_that_holds_a_task() {
    let served = serve(busy(), |_| {}).await;
    let long = |task: &Value| task.get("history").map(|history| history.as_array().unwrap().len());
    for binding in Binding::ALL {
        let mut params = send("go");
        params["configuration"] = json!({"historyLength": 0});
        let answer = served.call(binding, "SendMessage", params.clone()).await;
        let task = id(&answer.result()["task"]);
        assert_eq!(long(&answer.result()["task"]), None);
        params["message"] = message("again");
        let frames = served.stream(binding, "SendStreamingMessage", params).await.rest().await;
        assert_eq!(long(&frames[0]["task"]), None);
        for (length, expected) in [(None, Some(2)), (Some(0), None), (Some(1), Some(1)), (Some(9), Some(2))] {
            let mut get = json!({"id": task});
            let mut list = json!({"pageSize": 1});
            if let Some(length) = length {
                get["historyLength"] = json!(length);
                list["historyLength"] = json!(length);
            }
            assert_eq!(long(served.call(binding, "GetTask", get).await.result()), expected);
            assert_eq!(long(&served.call(binding, "ListTasks", list).await.result()["tasks"][0]), expected);
        }
        let negative = served.call(binding, "GetTask", json!({"id": task, "historyLength": -1})).await;
        assert_eq!(negative.fields(), ["historyLength"]);
    }
}

#[tokio::test]
async fn o07_a_direct_message_leaves_no_task_behind() {
    let served = serve(
        scripted(|_, say| async move {
            say.reply("hello").await?;
            Ok(())
        }),
        |_| {},
    )
    .await;
    for binding in Binding::ALL {
        for configuration in [json!({}), json!({"returnImmediately": true})] {
            let params = json!({"message": message("hi"), "configuration": configuration});
            let answer = served.call(binding, "SendMessage", params).await;
            let reply = &answer.result()["message"];
            assert_eq!(reply["parts"][0]["text"], "hello");
            assert!(reply["contextId"].is_string());
            assert!(reply.get("taskId").is_none());
        }
        let frames = served.stream(binding, "SendStreamingMessage", send("hi")).await.rest().await;
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0]["message"]["parts"][0]["text"], "hello");
        let list = served.call(binding, "ListTasks", json!({})).await;
        assert_eq!(list.result()["totalSize"], 0);
    }
}

#[tokio::test]
async fn o07_a_direct_message_may_take_its_time_when_the_agent_said_so() {
    let mut agent = scripted(|_, say| async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        say.reply("thought about it").await?;
        Ok(())
    });
    agent.direct = true;
    let served = serve(agent, |_| {}).await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("hi")).await;
    assert_eq!(answer.result()["message"]["parts"][0]["text"], "thought about it");
}

#[tokio::test]
async fn o16_appending_to_an_unknown_artifact_begins_it() {
    let served = serve(
        scripted(|_, say| async move {
            say.artifact(chunk("log", "kept", true, false)).await?;
            say.done(()).await?;
            Ok(())
        }),
        |_| {},
    )
    .await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    assert_eq!(answer.result()["task"]["artifacts"][0]["parts"][0]["text"], "kept");
}
