//! Sections E and F: ids, turns, history and artifacts.

use std::collections::HashSet;

use serde_json::{Value, json};
use testing::{Binding, Webhooks, chunk, id, message, rebuilt, scripted, send, serve, state, texts, to};

use super::obedient;

#[tokio::test]
async fn b46_a_task_is_one_through_three_turns_and_a_context_lists_exactly_its_tasks() {
    let served = serve(obedient(), |_| {}).await;
    for (binding, round) in Binding::ALL.into_iter().cycle().zip(0..10) {
        let context = format!("context-{round}");
        let mut params = send("work ask");
        params["message"]["contextId"] = json!(context);
        let first = id(&served.call(binding, "SendMessage", params.clone()).await.result()["task"]);
        params["message"]["messageId"] = json!(format!("other-{round}"));
        let second = id(&served.call(binding, "SendMessage", params).await.result()["task"]);
        for text in ["work ask", "piece done"] {
            for task in [&first, &second] {
                let mut answer = to(task, text);
                answer["contextId"] = json!(context);
                let answered = served.call(binding, "SendMessage", json!({"message": answer})).await;
                assert_eq!(id(&answered.result()["task"]), *task);
                assert_eq!(answered.result()["task"]["contextId"], json!(context));
            }
        }
        let list = served.call(binding, "ListTasks", json!({"contextId": context})).await;
        let listed: HashSet<_> = list.result()["tasks"].as_array().unwrap().iter().map(id).collect();
        assert_eq!(listed, HashSet::from([first, second]));
    }
}

#[tokio::test]
async fn b47_an_absent_an_empty_and_a_null_id_are_all_none() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        for name in ["taskId", "contextId"] {
            for value in [None, Some(json!("")), Some(Value::Null)] {
                let mut params = send("work done");
                if let Some(value) = value {
                    params["message"][name] = value;
                }
                let answer = served.call(binding, "SendMessage", params).await;
                let task = &answer.result()["task"];
                assert_eq!(state(task), "COMPLETED");
                assert!(task["id"].as_str().is_some_and(|id| !id.is_empty()), "{task}");
                assert!(task["contextId"].as_str().is_some_and(|id| !id.is_empty()), "{task}");
            }
        }
    }
}

#[tokio::test]
async fn b49_a_wrong_context_is_refused_before_anything_is_changed() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        let parked = served.call(binding, "SendMessage", send("work ask")).await.result()["task"].clone();
        let mut wrong = to(&id(&parked), "done");
        wrong["contextId"] = json!("other");
        for method in ["SendMessage", "SendStreamingMessage"] {
            let refused = served.call(binding, method, json!({"message": wrong})).await;
            assert_eq!(refused.fields(), ["message.contextId"]);
            assert_eq!(served.task(&id(&parked)).await, parked);
        }
    }
}

#[tokio::test]
async fn b52_each_kind_of_ended_task_refuses_messages_with_the_same_words() {
    let served = serve(obedient(), |_| {}).await;
    for (binding, status) in [(Binding::Rpc, 200), (Binding::Rest, 400), (Binding::Grpc, 200)] {
        for (text, expected) in [
            ("done", "COMPLETED"),
            ("fail", "FAILED"),
            ("reject", "REJECTED"),
            ("ask", "CANCELED"),
            ("panic", "FAILED"),
        ] {
            let task = id(&served.call(binding, "SendMessage", send(text)).await.result()["task"]);
            if text == "ask" {
                served.call(binding, "CancelTask", json!({"id": task})).await.result();
            }
            assert_eq!(state(&served.task(&task).await), expected);
            for method in ["SendMessage", "SendStreamingMessage"] {
                let refused = served.call(binding, method, json!({"message": to(&task, "more")})).await;
                assert_eq!((refused.status, refused.reason()), (status, "UNSUPPORTED_OPERATION"), "{expected}");
            }
        }
    }
}

#[tokio::test]
async fn b55_each_message_of_three_turns_stands_in_the_task_once_and_in_order() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        let mut sent = vec![message("work ask")];
        let task = id(&served.call(binding, "SendMessage", json!({"message": sent[0]})).await.result()["task"]);
        for text in ["work ask", "work done"] {
            sent.push(to(&task, text));
            served.call(binding, "SendMessage", json!({"message": sent.last()})).await.result();
        }
        let task = served.task(&task).await;
        let messages = task["history"].as_array().unwrap().iter().chain([&task["status"]["message"]]);
        let ids: Vec<&Value> = messages.clone().map(|message| &message["messageId"]).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        let own: Vec<&Value> = sent.iter().map(|message| &message["messageId"]).collect();
        assert_eq!(ids.iter().copied().filter(|id| own.contains(id)).collect::<Vec<_>>(), own);
        let texts: Vec<_> = messages.map(|message| message["parts"][0]["text"].as_str().unwrap()).collect();
        let turn = ["step 0", "which?"];
        assert_eq!(texts, [&["work ask"][..], &turn, &["work ask"], &turn, &["work done", "step 0", "done"]].concat());
    }
}

#[tokio::test]
async fn b56_a_negative_history_length_is_refused_wherever_it_stands_and_trimming_takes_nothing_away() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        let whole = served.call(binding, "SendMessage", send("work work done")).await.result()["task"].clone();
        let task = id(&whole);
        let mut negative = send("done");
        negative["configuration"] = json!({"historyLength": -1});
        for (method, params, field) in [
            ("SendMessage", negative, "configuration.historyLength"),
            ("GetTask", json!({"id": task, "historyLength": -1}), "historyLength"),
            ("ListTasks", json!({"historyLength": -1}), "historyLength"),
        ] {
            assert_eq!(served.call(binding, method, params).await.fields(), [field]);
        }
        for length in [0, 1] {
            let short = served.call(binding, "GetTask", json!({"id": task, "historyLength": length})).await;
            let history = short.result().get("history").and_then(Value::as_array).cloned().unwrap_or_default();
            let all = whole["history"].as_array().unwrap();
            assert_eq!(history, all[all.len() - length..], "the newest");
        }
        assert_eq!(served.task(&task).await, whole);
    }
}

#[tokio::test]
async fn b58_ten_pieces_are_the_same_from_frames_from_webhooks_and_from_the_task() {
    for binding in Binding::ALL {
        let (hooks, served) = (Webhooks::new().await, serve(obedient(), |_| {}).await);
        let text = format!("{}done", "piece ".repeat(10));
        let configuration = json!({"taskPushNotificationConfig": {"url": hooks.url}});
        let params = json!({"message": message(&text), "configuration": configuration});
        let frames = served.stream(binding, "SendStreamingMessage", params).await.rest().await;
        let task = served.task(&id(&frames[0]["task"])).await;
        let pieces: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        assert_eq!(texts(&task["artifacts"][0]), pieces);
        assert_eq!(rebuilt(&frames), [&pieces[..]]);
        let told: Vec<Value> = hooks.wait(11).await.into_iter().map(|hook| hook.body).collect();
        assert_eq!(rebuilt(&told), [&pieces[..]]);
        let updates = frames.iter().filter_map(|frame| frame.get("artifactUpdate"));
        let appends: Vec<bool> = updates.map(|update| update["append"] == true).collect();
        assert_eq!(appends, [&[false][..], &[true; 9]].concat(), "only the first begins the artifact");
    }
}

#[tokio::test]
async fn b59_a_replaced_artifact_is_replaced_whole_and_a_piece_after_the_last_is_kept() {
    let served = serve(
        scripted(|_, say| async move {
            for (text, append, last) in [("a", false, false), ("b", true, true), ("c", true, false)] {
                say.artifact(chunk("grown", text, append, last)).await?;
                say.artifact(chunk("replaced", text, false, last)).await?;
            }
            Ok(say.done(()).await?)
        }),
        |_| {},
    )
    .await;
    for binding in Binding::ALL {
        let frames = served.stream(binding, "SendStreamingMessage", send("go")).await.rest().await;
        let task = served.task(&id(&frames[0]["task"])).await;
        let made: Vec<_> = task["artifacts"].as_array().unwrap().iter().map(texts).collect();
        assert_eq!(made, [vec!["a", "b", "c"], vec!["c"]]);
        assert_eq!(rebuilt(&frames), made);
    }
}
