//! How operations behave: the decisions O1 to O14 and O16 to O19, over both bindings.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use protocol::{Artifact, ArtifactId, Part};
use serde_json::{Value, json};
use server::store::Memory;
use server::{Chunk, Credential, Dedupe, Setup, Start};
use testing::{Binding, Scripted, Served, Slow, message, scripted, send, serve};
use tokio::sync::{Notify, Semaphore};

fn chunk(id: &str, text: impl Into<String>, append: bool, last_chunk: bool) -> Chunk {
    let artifact = Artifact::new(ArtifactId::new(id).unwrap(), vec![Part::text(text.into())]);
    Chunk { artifact, append, last_chunk }
}

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

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap().trim_start_matches("TASK_STATE_")
}

fn id(task: &Value) -> String {
    task["id"].as_str().unwrap().to_owned()
}

fn immediately(message: Value) -> Value {
    json!({"message": message, "configuration": {"returnImmediately": true}})
}

fn to(task: &str, text: &str) -> Value {
    let mut message = message(text);
    message["taskId"] = json!(task);
    message
}

async fn started(served: &Served, text: &str) -> String {
    let answer = served.call(Binding::Rpc, "SendMessage", immediately(message(text))).await;
    id(&answer.result()["task"])
}

fn frame_state(frame: &Value) -> &str {
    let status = frame.get("task").or_else(|| frame.get("statusUpdate"));
    status.map_or("artifact", |status| status["status"]["state"].as_str().unwrap().trim_start_matches("TASK_STATE_"))
}

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
                for binding in Binding::BOTH {
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
        for binding in Binding::BOTH {
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
    for binding in Binding::BOTH {
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
    for binding in Binding::BOTH {
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
    for binding in Binding::BOTH {
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
async fn o05_a_send_stream_begins_with_the_task_and_ends_with_its_turn() {
    let served = serve(busy(), |_| {}).await;
    for binding in Binding::BOTH {
        let frames = served.stream(binding, "SendStreamingMessage", send("go")).await.rest().await;
        let states: Vec<_> = frames.iter().map(frame_state).collect();
        assert_eq!(states, ["SUBMITTED", "WORKING", "artifact", "artifact", "COMPLETED"]);
        let (task, context) = (&frames[0]["task"]["id"], &frames[0]["task"]["contextId"]);
        for frame in &frames[1..] {
            let update = frame.as_object().unwrap().values().next().unwrap();
            assert_eq!((&update["taskId"], &update["contextId"]), (task, context));
        }
    }
}

#[tokio::test]
async fn o05_input_required_ends_a_send_stream_but_not_a_subscription() {
    let gate = Arc::new(Semaphore::new(1));
    let served = serve(held(gate.clone()), |_| {}).await;
    for binding in Binding::BOTH {
        let frames = served.stream(binding, "SendStreamingMessage", send("ask")).await.rest().await;
        assert_eq!(frames.iter().map(frame_state).collect::<Vec<_>>(), ["SUBMITTED", "WORKING", "INPUT_REQUIRED"]);
        let task = id(&frames[0]["task"]);
        let mut watch = served.stream(binding, "SubscribeToTask", json!({"id": task})).await;
        assert_eq!(frame_state(&watch.next().await.unwrap()), "INPUT_REQUIRED");
        gate.add_permits(3);
        for text in ["ask", "go on"] {
            served.call(binding, "SendMessage", json!({"message": to(&task, text)})).await;
        }
        let states: Vec<_> = watch.rest().await.iter().map(|frame| frame_state(frame).to_owned()).collect();
        assert_eq!(states, ["WORKING", "WORKING", "INPUT_REQUIRED", "WORKING", "WORKING", "COMPLETED"]);
    }
}

#[tokio::test]
async fn o05_auth_required_keeps_a_send_stream_open() {
    let served = serve(
        scripted(|job, say| async move {
            match job.start {
                Start::Approval { .. } => say.done("live").await?,
                _ => say.need_approval("allow it").await?,
            }
            Ok(())
        }),
        |_| {},
    )
    .await;
    let mut stream = served.stream(Binding::Rpc, "SendStreamingMessage", send("deploy")).await;
    let task = id(&stream.next().await.unwrap()["task"]);
    assert_eq!(frame_state(&stream.next().await.unwrap()), "AUTH_REQUIRED");
    // Sent the moment the frame is seen.
    let approved = served.http("POST", &format!("/approve/{task}"), &[], "{}").await;
    assert_eq!((approved.status, &approved.body["approved"]), (200, &json!(true)));
    assert_eq!(stream.rest().await.iter().map(frame_state).collect::<Vec<_>>(), ["COMPLETED"]);
}

#[tokio::test]
async fn o05_a_reader_that_comes_back_gets_what_it_missed_and_no_snapshot() {
    let gate = Arc::new(Semaphore::new(0));
    let steps = gate.clone();
    let served = serve(
        scripted(move |_, say| {
            let steps = steps.clone();
            async move {
                for number in 0..6 {
                    steps.acquire().await?.forget();
                    say.artifact(chunk("log", format!("{number}"), number > 0, number == 5)).await?;
                }
                say.done(()).await?;
                Ok(())
            }
        }),
        |_| {},
    )
    .await;
    let task = started(&served, "go").await;
    let mut first = served.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
    assert_eq!(frame_state(&first.next().await.unwrap()), "SUBMITTED");
    gate.add_permits(2);
    first.next().await.unwrap();
    first.next().await.unwrap();
    let seen = first.last_id.unwrap().to_string();
    drop(first);
    gate.add_permits(2);
    for binding in Binding::BOTH {
        let headers = [("last-event-id", seen.as_str())];
        let params = json!({"id": task});
        let again = served.try_stream(binding, "SubscribeToTask", params, &headers).await;
        let mut again = again.unwrap_or_else(|answer| panic!("{}", answer.body));
        for expected in ["2", "3"] {
            let frame = again.next().await.unwrap();
            assert_eq!(frame["artifactUpdate"]["artifact"]["parts"][0]["text"], expected);
        }
    }
    gate.add_permits(2);
    served.until(&task, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn o05_a_quiet_stream_carries_comments() {
    let gate = Arc::new(Semaphore::new(0));
    let often = |setup: &mut Setup| setup.limits.keep_alive = Duration::from_millis(10);
    let served = serve(held(gate.clone()), often).await;
    let params = send("go");
    let mut response = served.request(Binding::Rpc, "SendStreamingMessage", &params, &[]).send().await.unwrap();
    let mut heard = String::new();
    while heard.matches(": keep-alive").count() < 2 {
        heard += &String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap());
    }
    gate.add_permits(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o05_nothing_is_lost_between_the_snapshot_and_the_first_event() {
    let served = serve(
        scripted(|_, say| async move {
            for number in 0..40 {
                say.artifact(chunk("log", format!("{number} "), number > 0, false)).await?;
                tokio::task::yield_now().await;
            }
            say.done(()).await?;
            Ok(())
        }),
        |setup| setup.store = Arc::new(Slow::new()),
    )
    .await;
    let text = |artifact: &Value| -> String {
        let parts = artifact["parts"].as_array().into_iter().flatten();
        parts.map(|part| part["text"].as_str().unwrap()).collect()
    };
    let expected: String = (0..40).map(|number| format!("{number} ")).collect();
    for _ in 0..20 {
        let task = started(&served, "go").await;
        let params = json!({"id": task});
        let stream = match served.try_stream(Binding::Rpc, "SubscribeToTask", params, &[]).await {
            Ok(stream) => stream,
            Err(_) => continue,
        };
        let mut rebuilt = String::new();
        for frame in stream.rest().await {
            if let Some(task) = frame.get("task") {
                rebuilt = text(&task["artifacts"][0]);
            } else if let Some(update) = frame.get("artifactUpdate") {
                rebuilt += &text(&update["artifact"]);
            }
        }
        assert_eq!(rebuilt, expected);
    }
}

#[tokio::test]
async fn o05_what_is_said_before_the_response_leaves_never_counts_as_falling_behind() {
    let served = serve(
        scripted(|_, say| async move {
            for number in 0..10_000 {
                say.artifact(chunk("log", "x", number > 0, false)).await?;
            }
            say.done(()).await?;
            Ok(())
        }),
        |_| {},
    )
    .await;
    let frames = served.stream(Binding::Rpc, "SendStreamingMessage", send("go")).await.rest().await;
    assert_eq!(frames.len(), 10_002);
    assert_eq!(frame_state(frames.last().unwrap()), "COMPLETED");
}

#[tokio::test]
async fn o05_a_reader_that_falls_behind_is_told_and_nobody_else_is_slowed() {
    let (go, chunks) = (Arc::new(Notify::new()), 8_000);
    let start = go.clone();
    let served = serve(
        scripted(move |_, say| {
            let start = start.clone();
            async move {
                say.working(()).await?;
                start.notified().await;
                let text = "x".repeat(2_000);
                for number in 0..chunks {
                    say.artifact(chunk("log", text.clone(), number > 0, false)).await?;
                    tokio::task::yield_now().await;
                }
                say.done(()).await?;
                Ok(())
            }
        }),
        |_| {},
    )
    .await;
    let task = started(&served, "go").await;
    let mut slow = served.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
    slow.next().await.unwrap();
    go.notify_one();
    let ended = served.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(ended["artifacts"][0]["parts"].as_array().unwrap().len(), chunks);
    let frames = slow.rest().await;
    assert!(frames.len() < chunks, "it was cut off");
    assert_eq!(frames.last().unwrap()["error"]["code"], -32603);
}

#[tokio::test]
async fn o06_an_error_before_the_first_frame_is_a_plain_answer() {
    let served = serve(busy(), |_| {}).await;
    let done = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let task = id(&done.result()["task"]);
    for (binding, status) in [(Binding::Rpc, 200), (Binding::Rest, 400)] {
        let params = json!({"id": task});
        let refused = served.try_stream(binding, "SubscribeToTask", params, &[]).await.err().unwrap();
        assert_eq!((refused.status, refused.reason()), (status, "UNSUPPORTED_OPERATION"));
        let refused = served.try_stream(binding, "SendStreamingMessage", json!({}), &[]).await.err().unwrap();
        assert_eq!(refused.fields(), ["message"]);
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
    for binding in Binding::BOTH {
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
async fn o08_a_message_to_an_ended_task_is_refused_after_its_context_was_checked() {
    let served = serve(busy(), |_| {}).await;
    let done = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let task = done.result()["task"].clone();
    for binding in Binding::BOTH {
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
    let task = started(&served, "ask").await;
    served.until(&task, "TASK_STATE_WORKING").await;
    let (waiting, second) = (served.clone(), json!({"message": to(&task, "second")}));
    let second = tokio::spawn(async move { waiting.call(Binding::Rpc, "SendMessage", second).await });
    // A second reader of the same turn: its stream does not end at the first turn's question.
    let stream = served.stream(Binding::Rest, "SendStreamingMessage", json!({"message": to(&task, "third")})).await;
    assert_eq!(served.task(&task).await["history"].as_array().unwrap().len(), 1, "what waits is not in the history");
    gate.add_permits(2);
    let answer = second.await.unwrap();
    // Its turn ends the task, so the one behind it has nothing to say to.
    assert_eq!(state(&answer.result()["task"]), "COMPLETED");
    let states: Vec<_> = stream.rest().await.iter().map(|frame| frame_state(frame).to_owned()).collect();
    assert_eq!(states.first().unwrap(), "WORKING");
    assert!(states.contains(&"INPUT_REQUIRED".to_owned()), "{states:?}");
    assert_eq!(states.last().unwrap(), "COMPLETED");
    let history = served.task(&task).await["history"].to_string();
    assert!(history.contains("second") && !history.contains("third"), "{history}");
}

#[tokio::test]
async fn o09_what_waits_when_the_task_ends_is_refused_or_enters_the_history() {
    let gate = Arc::new(Semaphore::new(0));
    let served = Arc::new(serve(held(gate.clone()), |_| {}).await);
    let task = started(&served, "done").await;
    served.until(&task, "TASK_STATE_WORKING").await;
    let told = served.call(Binding::Rpc, "SendMessage", immediately(to(&task, "told"))).await;
    assert_eq!(state(&told.result()["task"]), "WORKING");
    let (waiting, params) = (served.clone(), json!({"message": to(&task, "blocked")}));
    let blocked = tokio::spawn(async move { waiting.call(Binding::Rpc, "SendMessage", params).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.add_permits(1);
    assert_eq!(blocked.await.unwrap().reason(), "UNSUPPORTED_OPERATION");
    let ended = served.until(&task, "TASK_STATE_COMPLETED").await;
    let history = ended["history"].to_string();
    assert!(history.contains("told") && !history.contains("blocked"), "{history}");
}

#[tokio::test]
async fn o10_cancel_ends_work_that_heeds_it_ignores_it_or_waits() {
    let served = serve(
        scripted(|job, say| async move {
            match job.message.text().as_str() {
                "heeds" => {
                    say.artifact(chunk("a", "made", false, true)).await?;
                    job.stop.cancelled().await;
                }
                "ignores" => {
                    say.working(()).await?;
                    std::future::pending::<()>().await;
                }
                "goes on" => {
                    say.working(()).await?;
                    job.stop.cancelled().await;
                    assert!(say.done("too late").await.is_err());
                }
                "parked" => say.ask("which?").await?,
                _ => say.need_approval("allow").await?,
            }
            Ok(())
        }),
        |setup| setup.limits.cancel = Duration::from_millis(50),
    )
    .await;
    for binding in Binding::BOTH {
        for text in ["heeds", "ignores", "goes on", "parked", "approval"] {
            let mut stream = served.stream(Binding::Rpc, "SendStreamingMessage", send(text)).await;
            let task = id(&stream.next().await.unwrap()["task"]);
            stream.next().await.unwrap();
            let watch = served.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
            let canceled = served.call(binding, "CancelTask", json!({"id": task})).await;
            assert_eq!(state(canceled.result()), "CANCELED", "{text}");
            assert_eq!(served.task(&task).await, *canceled.result());
            assert_eq!(canceled.result().get("artifacts").is_some(), text == "heeds", "artifacts stay");
            let last = watch.rest().await.pop().unwrap();
            assert_eq!(frame_state(&last), "CANCELED");
            let again = served.call(binding, "CancelTask", json!({"id": task})).await;
            assert_eq!(again.reason(), "TASK_NOT_CANCELABLE");
        }
    }
}

#[tokio::test]
async fn o10_what_was_being_kept_when_the_work_was_dropped_is_told() {
    let saying = Arc::new(Notify::new());
    let begun = saying.clone();
    let mut slow = Slow::new();
    slow.pause = Duration::from_millis(150);
    let served = serve(
        scripted(move |_, say| {
            let begun = begun.clone();
            async move {
                say.working(()).await?;
                begun.notify_one();
                say.artifact(chunk("a", "made", false, true)).await?;
                std::future::pending::<()>().await;
                Ok(())
            }
        }),
        |setup| {
            setup.store = Arc::new(slow);
            setup.limits.cancel = Duration::from_millis(20);
        },
    )
    .await;
    let task = started(&served, "go").await;
    let watch = served.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
    saying.notified().await;
    let _ = served.call(Binding::Rpc, "CancelTask", json!({"id": task})).await;
    let ended = served.until(&task, "TASK_STATE_CANCELED").await;
    let told = watch.rest().await.iter().any(|frame| frame_state(frame) == "artifact");
    assert_eq!(told, ended.get("artifacts").is_some(), "told if and only if it was kept");
    assert!(told, "what was being kept was kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o10_cancels_that_race_each_other_and_the_end_agree_on_one_end() {
    let served = Arc::new(
        serve(
            scripted(|_, say| async move {
                say.working(()).await?;
                tokio::time::sleep(Duration::from_micros(u64::from(rand_micros()))).await;
                say.done(()).await?;
                Ok(())
            }),
            |setup| setup.store = Arc::new(Slow::new()),
        )
        .await,
    );
    for _ in 0..40 {
        let task = started(&served, "go").await;
        let cancels: Vec<_> = (0..4)
            .map(|_| {
                let (served, params) = (served.clone(), json!({"id": task}));
                tokio::spawn(async move { served.call(Binding::Rpc, "CancelTask", params).await })
            })
            .collect();
        let mut canceled = 0;
        for cancel in cancels {
            let answer = cancel.await.unwrap();
            match answer.error() {
                None => {
                    assert_eq!(state(answer.result()), "CANCELED");
                    canceled += 1;
                }
                Some(_) => assert_eq!(answer.reason(), "TASK_NOT_CANCELABLE"),
            }
        }
        let ended = served.task(&task).await;
        assert_eq!(state(&ended), if canceled > 0 { "CANCELED" } else { "COMPLETED" });
    }
}

fn rand_micros() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    u16::try_from(NEXT.fetch_add(617, Ordering::Relaxed) % 3000).unwrap()
}

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
    for (dedupe, tasks) in [(Dedupe::Always, 1), (Dedupe::Unanswered, 2), (Dedupe::Off, 2)] {
        let served = serve(busy(), |setup| setup.dedupe = dedupe).await;
        let params = send("deploy");
        for binding in Binding::BOTH {
            let answer = served.call(binding, "SendMessage", params.clone()).await;
            assert_eq!(state(&answer.result()["task"]), "COMPLETED");
        }
        let list = served.call(Binding::Rpc, "ListTasks", json!({})).await;
        assert_eq!(list.result()["totalSize"], tasks, "{dedupe:?}");
    }
}

#[tokio::test]
async fn o12_whatever_an_agent_does_its_task_ends() {
    let served = serve(
        scripted(|job, say| {
            let text = job.message.text();
            assert!(text != "panics at once", "before there is a future");
            async move {
                match text.as_str() {
                    "panics" => panic!("in the middle"),
                    "panics later" => {
                        say.working(()).await?;
                        tokio::task::yield_now().await;
                        panic!("after a while");
                    }
                    "fails" => return Err("secret cause at /etc/passwd".into()),
                    "says nothing" => {}
                    "stops half way" => say.working("half").await?,
                    _ => {
                        say.working(()).await?;
                        std::future::pending::<()>().await;
                    }
                }
                Ok(())
            }
        }),
        |setup| {
            setup.limits.turn = Duration::from_millis(100);
            setup.limits.cancel = Duration::from_millis(20);
        },
    )
    .await;
    let texts = ["panics at once", "panics", "panics later", "fails", "says nothing", "stops half way", "never ends"];
    for text in texts {
        for binding in Binding::BOTH {
            let answer = served.call(binding, "SendMessage", send(text)).await;
            let task = &answer.result()["task"];
            assert_eq!(state(task), "FAILED", "{text}");
            let words = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
            assert!(words.starts_with("The agent"), "{words}");
            assert!(!answer.body.to_string().contains("secret"));
            let frames = served.stream(binding, "SendStreamingMessage", send(text)).await.rest().await;
            assert_eq!(frame_state(frames.last().unwrap()), "FAILED", "{text}");
        }
    }
}

#[tokio::test]
async fn o12_a_store_that_fails_is_an_internal_error_and_nothing_is_told_that_was_not_kept() {
    let slow = Slow::default();
    let fails = slow.fails.clone();
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(held(gate.clone()), |setup| setup.store = Arc::new(slow)).await;
    let task = started(&served, "go").await;
    served.until(&task, "TASK_STATE_WORKING").await;
    fails.store(true, Ordering::SeqCst);
    for (binding, status) in [(Binding::Rpc, 200), (Binding::Rest, 500)] {
        let refused = served.call(binding, "SendMessage", send("go")).await;
        assert_eq!(refused.status, status);
        assert_eq!(refused.error().unwrap()["message"], "Internal error");
        assert!(!refused.body.to_string().contains("made to fail"));
    }
    fails.store(false, Ordering::SeqCst);
    gate.add_permits(2);
    served.until(&task, "TASK_STATE_COMPLETED").await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    assert_eq!(state(&answer.result()["task"]), "COMPLETED", "it works again without a restart");
}

#[tokio::test]
async fn o12_a_task_whose_end_could_not_be_kept_ends_when_the_store_is_back() {
    let slow = Slow::default();
    let fails = slow.fails.clone();
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(held(gate.clone()), |setup| {
        setup.store = Arc::new(slow);
        setup.limits.cancel = Duration::from_millis(50);
    })
    .await;
    let (ends, canceled) = (started(&served, "ends").await, started(&served, "canceled").await);
    for task in [&ends, &canceled] {
        served.until(task, "TASK_STATE_WORKING").await;
    }
    fails.store(true, Ordering::SeqCst);
    gate.add_permits(1);
    let refused = served.call(Binding::Rpc, "CancelTask", json!({"id": canceled})).await;
    assert_eq!(refused.error().unwrap()["code"], -32603);
    tokio::time::sleep(Duration::from_millis(100)).await;
    fails.store(false, Ordering::SeqCst);
    served.until(&ends, "TASK_STATE_FAILED").await;
    served.until(&canceled, "TASK_STATE_CANCELED").await;
}

#[tokio::test]
async fn o13_a_parked_task_read_back_from_its_store_can_be_watched_and_answered() {
    let store = Arc::new(Memory::default());
    let agent = || {
        scripted(|job, say| async move {
            match job.start {
                Start::Answer => say.done("thanks").await?,
                _ => say.ask("which?").await?,
            }
            Ok(())
        })
    };
    let first = serve(agent(), |setup| setup.store = store.clone()).await;
    let answer = first.call(Binding::Rpc, "SendMessage", send("go")).await;
    let task = id(&answer.result()["task"]);
    first.stop().await;
    let second = serve(agent(), |setup| setup.store = store.clone()).await;
    let mut watch = second.stream(Binding::Rpc, "SubscribeToTask", json!({"id": task})).await;
    assert_eq!(frame_state(&watch.next().await.unwrap()), "INPUT_REQUIRED");
    let answer = second.call(Binding::Rpc, "SendMessage", json!({"message": to(&task, "this")})).await;
    assert_eq!(state(&answer.result()["task"]), "COMPLETED");
    assert_eq!(frame_state(&watch.rest().await.pop().unwrap()), "COMPLETED");
}

#[tokio::test]
async fn o14_pages_lose_and_repeat_nothing_even_when_stamps_are_equal() {
    struct Still;
    impl protocol::Clock for Still {
        fn now(&self) -> protocol::Timestamp {
            protocol::Timestamp::from_millis(1_000)
        }
    }
    let served = serve(busy(), |setup| setup.clock = Arc::new(Still)).await;
    for _ in 0..7 {
        served.call(Binding::Rpc, "SendMessage", send("go")).await;
    }
    for binding in Binding::BOTH {
        let (mut ids, mut token) = (Vec::new(), String::new());
        loop {
            let mut params = json!({"pageSize": 2});
            if !token.is_empty() {
                params["pageToken"] = json!(token);
            }
            let answer = served.call(binding, "ListTasks", params).await;
            let page = answer.result();
            assert_eq!(page["totalSize"], 7);
            for task in page["tasks"].as_array().unwrap() {
                assert!(task.get("artifacts").is_none(), "artifacts come only when asked for");
                ids.push(id(task));
            }
            token = page["nextPageToken"].as_str().unwrap().to_owned();
            if token.is_empty() {
                break;
            }
        }
        let mut sorted = ids.clone();
        sorted.sort();
        sorted.reverse();
        sorted.dedup();
        assert_eq!(ids, sorted, "by id, descending, each once");
        assert_eq!(ids.len(), 7);
        let whole = served.call(binding, "ListTasks", json!({"includeArtifacts": true})).await;
        assert_eq!(whole.result()["tasks"][0]["artifacts"].as_array().unwrap().len(), 2);
        assert_eq!(whole.result()["pageSize"], 50);
    }
}

#[tokio::test]
async fn o14_filters_filter_and_bad_ones_are_named() {
    let served = serve(busy(), |_| {}).await;
    let first = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let context = first.result()["task"]["contextId"].clone();
    served.call(Binding::Rpc, "SendMessage", send("go")).await;
    for binding in Binding::BOTH {
        let count = async |params| served.call(binding, "ListTasks", params).await.result()["totalSize"].clone();
        assert_eq!(count(json!({"contextId": context})).await, 1);
        assert_eq!(count(json!({"status": "TASK_STATE_COMPLETED"})).await, 2);
        assert_eq!(count(json!({"status": "TASK_STATE_WORKING"})).await, 0);
        assert_eq!(count(json!({"statusTimestampAfter": "2020-01-01T00:00:00Z"})).await, 2);
        assert_eq!(count(json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"})).await, 0);
        for (name, value) in [
            ("pageSize", json!(0)),
            ("pageSize", json!(101)),
            ("status", json!("working")),
            ("pageToken", json!("junk")),
            ("statusTimestampAfter", json!("yesterday")),
        ] {
            let refused = served.call(binding, "ListTasks", json!({name: value})).await;
            assert_eq!(refused.fields(), [name], "{value}");
        }
    }
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

#[tokio::test]
async fn o17_another_callers_task_is_not_found() {
    let credential = |name: &str| Credential { token: format!("t-{name}"), principal: name.into() };
    let both = |setup: &mut Setup| setup.credentials = vec![credential("ada"), credential("bob")];
    let served = serve(
        scripted(|_, say| async move {
            say.ask("which?").await?;
            Ok(())
        }),
        both,
    )
    .await;
    let as_ada = [("authorization", "Bearer t-ada")];
    let as_bob = [("authorization", "bearer t-bob")];
    let made = served.call_with(Binding::Rpc, "SendMessage", send("go"), &as_ada).await;
    let task = id(&made.result()["task"]);
    for binding in Binding::BOTH {
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            let hidden = served.call_with(binding, method, json!({"id": task}), &as_bob).await;
            assert_eq!(hidden.reason(), "TASK_NOT_FOUND", "{method}");
        }
        let hidden = served.call_with(binding, "SendMessage", json!({"message": to(&task, "x")}), &as_bob).await;
        assert_eq!(hidden.reason(), "TASK_NOT_FOUND");
        let config = json!({"taskId": task, "url": "http://localhost:1/"});
        let hidden = served.call_with(binding, "CreateTaskPushNotificationConfig", config, &as_bob).await;
        assert_eq!(hidden.reason(), "TASK_NOT_FOUND");
        let list = served.call_with(binding, "ListTasks", json!({}), &as_bob).await;
        assert_eq!(list.result()["totalSize"], 0);
        assert_eq!(served.call_with(binding, "GetTask", json!({"id": task}), &as_ada).await.status, 200);
    }
}

#[tokio::test]
async fn o18_the_extended_card_needs_its_capability_its_setting_and_a_credential() {
    let locked = |setup: &mut Setup| {
        setup.credentials = vec![Credential { token: "t".into(), principal: "ada".into() }];
    };
    let token = [("authorization", "Bearer t")];
    let agent = |declared: bool, set: bool| {
        let mut agent = busy();
        agent.card.capabilities.extended_agent_card = Some(declared);
        agent.extended = set.then(|| agent.card.clone());
        agent
    };
    for binding in Binding::BOTH {
        let get = async |served: &Served, headers: &[(&str, &str)]| {
            served.call_with(binding, "GetExtendedAgentCard", json!({}), headers).await
        };
        let served = serve(agent(false, true), locked).await;
        assert_eq!(get(&served, &token).await.reason(), "UNSUPPORTED_OPERATION");
        let served = serve(agent(true, false), locked).await;
        assert_eq!(get(&served, &token).await.reason(), "EXTENDED_AGENT_CARD_NOT_CONFIGURED");
        let served = serve(agent(true, true), locked).await;
        assert_eq!(get(&served, &token).await.result()["name"], "scripted");
        assert_eq!(get(&served, &[]).await.status, 401);
        let open = serve(agent(true, true), |_| {}).await;
        assert_eq!(get(&open, &[]).await.status, 401, "never without a credential");
    }
}

#[tokio::test]
async fn o19_an_approval_counts_once_and_only_for_a_task_that_waits_for_it() {
    let served = serve(
        scripted(|job, say| async move {
            match job.start {
                Start::Approval { .. } => say.done("live").await?,
                _ => say.need_approval(format!("allow it at {}", job.base_url)).await?,
            }
            Ok(())
        }),
        |_| {},
    )
    .await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("go")).await;
    let task = id(&answer.result()["task"]);
    let approvals = served.http("GET", "/approvals", &[], "").await.body;
    let text = format!("allow it at {}", served.url);
    assert_eq!(approvals["approvals"][0]["taskId"], json!(task));
    assert_eq!(approvals["approvals"][0]["text"], json!(text));
    assert!(approvals["approvals"][0]["since"].is_string());
    // A message is never an approval: the agent asks again.
    let asked = served.call(Binding::Rpc, "SendMessage", json!({"message": to(&task, "I approve")})).await;
    assert_eq!(state(&asked.result()["task"]), "AUTH_REQUIRED");
    let approve = async |id: &str| served.http("POST", &format!("/approve/{id}"), &[], "{}").await;
    let first = approve(&task).await;
    assert_eq!((first.status, first.body), (200, json!({"approved": true, "taskId": task})));
    served.until(&task, "TASK_STATE_COMPLETED").await;
    for id in [task.as_str(), "unknown"] {
        let refused = approve(id).await;
        assert_eq!((refused.status, refused.body), (404, json!({"approved": false})));
    }
    assert_eq!(served.http("GET", "/approvals", &[], "").await.body, json!({"approvals": []}));
}

#[tokio::test]
async fn a_server_that_stops_tells_its_work_to_and_ends_its_streams() {
    let served = serve(
        scripted(|job, say| async move {
            say.working(()).await?;
            match job.message.text().as_str() {
                "heeds" => job.stop.cancelled().await,
                _ => std::future::pending().await,
            }
            Ok(())
        }),
        |setup| setup.limits.grace = Duration::from_millis(200),
    )
    .await;
    let heeding = served.stream(Binding::Rpc, "SendStreamingMessage", send("heeds")).await;
    let ignoring = served.stream(Binding::Rpc, "SendStreamingMessage", send("ignores")).await;
    let stopped = tokio::time::timeout(Duration::from_secs(3), served.stop());
    let (heeded, ignored, stopped) = tokio::join!(heeding.rest(), ignoring.rest(), stopped);
    stopped.expect("it stops within its grace and a second more");
    assert_eq!(frame_state(heeded.last().unwrap()), "FAILED", "work that was stopped says so");
    assert_eq!(frame_state(ignored.last().unwrap()), "WORKING");
}
