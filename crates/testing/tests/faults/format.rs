//! Section G: message format and bindings.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{StreamResponse, Timestamp, call::SendMessageResponse};
use serde_json::{Value, json};
use testing::{Binding, Served, id, message, send, serve, state, to};

use super::obedient;

/// A body of HTTP+JSON, or a path without one, as JSON is asked for by hand.
async fn rest(served: &Served, verb: &str, path: &str, body: &str) -> testing::Answer {
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    served.http(verb, &format!("/a2a/rest{path}"), &headers, body).await
}

#[tokio::test]
async fn b61_whoever_speaks_an_older_version_is_told_which_one_and_which_field() {
    let served = serve(obedient(), |_| {}).await;
    let old = json!({"message": {
        "kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "done"}]
    }});
    // Such a client sends no version at all.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": old}).to_string();
    let bare = served.http("POST", "/a2a/jsonrpc", &[("content-type", "application/json")], &body).await;
    assert_eq!((bare.body["id"].as_i64(), bare.reason()), (Some(1), "VERSION_NOT_SUPPORTED"));
    let said = &bare.error().unwrap()["data"][0]["metadata"];
    assert_eq!(said, &json!({"requested": "0.3 (no header)", "supported": "1.0"}));
    assert_eq!(served.raw(&body).await.error().unwrap()["code"], -32601, "with the version, the method is what is old");
    for binding in Binding::BOTH {
        let refused = served.call(binding, "SendMessage", old.clone()).await;
        assert_eq!(refused.fields(), ["message.role"], "the kind beside it is only unknown");
    }
}

/// Puts a member that nobody knows into every object.
fn newer(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), newer(value)));
            members.chain([("x-new".to_owned(), json!({"a": [1, {"b": null}]}))]).collect()
        }
        Value::Array(items) => items.iter().map(newer).collect(),
        plain => plain.clone(),
    }
}

#[tokio::test]
async fn b62_members_that_nobody_knows_are_passed_over_in_requests_and_in_answers() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::BOTH {
        let mut params = send("work piece done");
        params["configuration"] = json!({"historyLength": 5});
        let answer = served.call(binding, "SendMessage", newer(&params)).await;
        assert_eq!(state(&answer.result()["task"]), "COMPLETED");
        let read = |value: &Value| serde_json::from_value::<SendMessageResponse>(value.clone()).unwrap();
        // What is the client's own (metadata, data) is not theirs to pass over, so none is in this answer.
        assert_eq!(read(&newer(answer.result())), read(answer.result()));
        for frame in served.stream(binding, "SendStreamingMessage", send("work piece done")).await.rest().await {
            let read = |value: &Value| serde_json::from_value::<StreamResponse>(value.clone()).unwrap();
            assert_eq!(read(&newer(&frame)), read(&frame));
        }
        let mut unknown = send("done");
        unknown["message"]["role"] = json!("ROLE_NEW");
        assert_eq!(
            served.call(binding, "SendMessage", unknown).await.fields(),
            ["message.role"],
            "a word is not a member"
        );
    }
}

#[tokio::test]
async fn b64_a_moment_is_one_of_rfc_3339_in_any_zone_and_leaves_in_utc_with_three_digits() {
    struct Whole;
    impl protocol::Clock for Whole {
        fn now(&self) -> Timestamp {
            "2026-01-01T00:00:00Z".parse().unwrap()
        }
    }
    let served = serve(obedient(), |setup| setup.clock = Arc::new(Whole)).await;
    for binding in Binding::ALL {
        let sent = served.call(binding, "SendMessage", send("done")).await;
        assert_eq!(sent.result()["task"]["status"]["timestamp"], "2026-01-01T00:00:00.000Z");
    }
    for binding in Binding::BOTH {
        let after =
            async |moment: Value| served.call(binding, "ListTasks", json!({"statusTimestampAfter": moment})).await;
        // The same moment, one before and one after it.
        for (moment, count) in [
            ("2026-01-01T00:00:00Z", 3),
            ("2025-12-31T23:59:59.999Z", 3),
            ("2026-01-01T05:29:00%2B05:30", 3),
            ("2026-01-01T05:31:00%2B05:30", 0),
            ("2026-01-01T00:00:00.123456789Z", 0),
        ] {
            let plus = if binding == Binding::Rpc { moment.replace("%2B", "+") } else { moment.to_owned() };
            assert_eq!(after(json!(plus)).await.result()["totalSize"], count, "{moment}");
        }
        for moment in [
            json!(1767225600),
            json!("1767225600"),
            json!("yesterday"),
            json!("2026-01-01"),
            json!("2026-01-01T00:00:00"),
        ] {
            assert_eq!(after(moment.clone()).await.fields(), ["statusTimestampAfter"], "{moment}");
        }
    }
}

#[tokio::test]
async fn b65_text_of_every_script_crosses_all_bindings_and_leaves_as_itself() {
    let text = "中文 العربية 👩‍👩‍👧 \u{2028}\u{0}\u{7f}\u{feff}\\ \"é\" e\u{301}";
    let echo = testing::scripted(|job, say| async move { Ok(say.done(job.message.parts.clone()).await?) });
    let served = serve(echo, |_| {}).await;
    for binding in Binding::ALL {
        let sent = served.call(binding, "SendMessage", send(text)).await;
        let task = id(&sent.result()["task"]);
        for read in Binding::ALL {
            let task = served.call(read, "GetTask", json!({"id": task})).await;
            assert_eq!(task.result()["status"]["message"]["parts"][0]["text"], text, "{binding:?} {read:?}");
        }
    }
    for (binding, method) in [(Binding::Rpc, "SendMessage"), (Binding::Rest, "SendStreamingMessage")] {
        let response = served.request(binding, method, &send(text), &[]).send().await.unwrap();
        let raw = response.text().await.unwrap();
        assert!(raw.contains("中文 العربية 👩‍👩‍👧"), "{raw}");
        assert!(!raw.contains("\\u4e2d"), "{raw}");
    }
}

#[tokio::test]
async fn b70_a_verb_is_only_a_literal_end_and_an_unknown_path_is_an_error_in_json() {
    let served = serve(obedient(), |_| {}).await;
    for (verb, path, status, reason) in [
        ("POST", "/tasks/abc:cancel", 404, "TASK_NOT_FOUND"),
        ("POST", "/tasks/abc:cancel/", 404, "TASK_NOT_FOUND"),
        ("POST", "/tasks/a%3Ab:cancel", 404, "TASK_NOT_FOUND"),
        ("GET", "/tasks/abc%3Acancel", 404, "TASK_NOT_FOUND"),
        ("GET", "/tasks/a%2Fb%20c%25", 404, "TASK_NOT_FOUND"),
        ("GET", "/tasks/", 200, ""),
        ("POST", "/tasks/abc%3Acancel", 405, ""),
        ("GET", "/tasks/abc:cancel", 405, ""),
        ("OPTIONS", "/tasks/abc", 405, ""),
        ("POST", "/tasks/:cancel", 404, ""),
        ("POST", "/v1/message:send", 400, ""),
        ("POST", "/v1/v1/message:send", 404, ""),
        ("GET", "/tasks/%ff", 404, ""),
        ("POST", "/message:Send", 404, ""),
        ("GET", "/../rest/nothing", 404, ""),
        ("GET", "", 404, ""),
    ] {
        let answer = rest(&served, verb, path, "").await;
        assert_eq!(answer.status, status, "{verb} {path}: {}", answer.body);
        assert!(answer.body.is_object(), "{verb} {path} is answered in JSON");
        if !reason.is_empty() {
            assert_eq!(answer.reason(), reason, "{verb} {path}");
        }
        if status == 405 {
            assert!(!answer.headers["allow"].is_empty());
        }
    }
    assert_eq!(rest(&served, "HEAD", "/tasks", "").await.status, 200);
}

#[tokio::test]
async fn b71_a_query_is_read_by_its_names_and_a_wrong_value_is_named() {
    let served = serve(obedient(), |_| {}).await;
    let task = served.call(Binding::Rpc, "SendMessage", send("piece ask")).await.result()["task"].clone();
    served.call(Binding::Rpc, "SendMessage", send("done")).await.result();
    let context = task["contextId"].as_str().unwrap();
    for query in [
        format!(
            "contextId={context}&status=TASK_STATE_INPUT_REQUIRED&pageSize=2&includeArtifacts=true&historyLength=0"
        ),
        format!(
            "context_id={context}&status=TASK_STATE_INPUT_REQUIRED&page_size=2&include_artifacts=true&history_length=0&unknown=x"
        ),
    ] {
        let list = rest(&served, "GET", &format!("/tasks?{query}"), "").await;
        assert_eq!((&list.result()["totalSize"], &list.result()["pageSize"]), (&json!(1), &json!(2)), "{query}");
        let found = &list.result()["tasks"][0];
        assert_eq!((id(found), found["artifacts"].as_array().unwrap().len()), (id(&task), 1));
        assert!(found.get("history").is_none());
    }
    for (query, field) in [
        ("status=working", "status"),
        ("status=", "status"),
        ("pageSize=abc", "pageSize"),
        ("pageSize=1e9", "pageSize"),
        ("pageSize=1&pageSize=2", "pageSize"),
        ("pageSize=1&page_size=2", "pageSize"),
        ("includeArtifacts=maybe", "includeArtifacts"),
        ("historyLength=-1", "historyLength"),
    ] {
        let refused = rest(&served, "GET", &format!("/tasks?{query}"), "").await;
        assert_eq!(refused.status, 400, "{query}: {}", refused.body);
        assert_eq!(refused.fields(), [field], "{query}");
    }
}

#[tokio::test]
async fn b73_pages_hold_each_task_that_does_not_change_once_while_others_do() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        let context = format!("of {binding:?}");
        let mut made = Vec::new();
        for _ in 0..7 {
            let mut params = send("ask");
            params["message"]["contextId"] = json!(context);
            made.push(id(&served.call(Binding::Rpc, "SendMessage", params).await.result()["task"]));
        }
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let page = json!({"contextId": context, "pageSize": 2, "pageToken": token});
            let page = served.call(binding, "ListTasks", page).await.result().clone();
            assert_eq!(page["totalSize"], 7);
            seen.extend(page["tasks"].as_array().unwrap().iter().map(id));
            token = page["nextPageToken"].as_str().unwrap().to_owned();
            if token.is_empty() {
                break;
            }
            // The oldest is at the end of the list and comes to its beginning, again and again.
            served.call(Binding::Rpc, "SendMessage", json!({"message": to(&made[0], "ask")})).await.result();
        }
        let steady: HashSet<_> = seen.iter().filter(|task| **task != made[0]).collect();
        assert_eq!(steady, made[1..].iter().collect(), "{binding:?}");
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len(), "none comes twice");

        let first = served.call(binding, "ListTasks", json!({"contextId": context, "pageSize": 3})).await;
        let token = first.result()["nextPageToken"].clone();
        // A token is a place among all tasks, so under another filter it goes on from there.
        let other = json!({"contextId": context, "status": "TASK_STATE_WORKING", "pageToken": token});
        assert_eq!(served.call(binding, "ListTasks", other).await.result()["tasks"], json!([]));
        for junk in ["junk", "%00", "0", "AAAA"] {
            let refused = served.call(binding, "ListTasks", json!({"pageToken": junk})).await;
            assert_eq!(refused.fields(), ["pageToken"], "{junk}");
        }
    }
}

#[tokio::test]
async fn b74_what_a_message_must_have_is_checked_at_the_door_and_what_it_may_leave_out_is_not() {
    let served = serve(obedient(), |_| {}).await;
    for binding in Binding::ALL {
        let with = |name: &str, value: Value| {
            let mut message = message("done");
            message[name] = value;
            json!({"message": message})
        };
        let mut nameless = message("done");
        nameless.as_object_mut().unwrap().remove("messageId");
        for (params, field, sayable) in [
            (with("parts", json!([])), "message.parts", true),
            (with("parts", json!([{}])), "message.parts[0]", true),
            (with("parts", json!([{"text": "a", "data": {}}])), "message.parts[0]", false),
            (with("parts", json!([{"raw": "@@"}])), "message.parts[0].raw", false),
            (json!({"message": nameless}), "message.messageId", true),
            (with("messageId", json!("")), "message.messageId", true),
            (with("role", json!("ROLE_AGENT")), "message.role", true),
            (with("role", json!("ROLE_UNSPECIFIED")), "message.role", true),
            (with("role", json!(2)), "message.role", true),
            (with("role", json!(9)), "message.role", true),
            (with("role", json!("user")), "message.role", false),
        ] {
            if sayable || binding != Binding::Grpc {
                let refused = served.call(binding, "SendMessage", params).await;
                assert_eq!(refused.fields(), [field], "{binding:?} {}", refused.body);
            }
        }
        let before = served.call(binding, "ListTasks", json!({})).await.result()["totalSize"].as_u64().unwrap();
        for params in [
            with("parts", json!([{"text": ""}, {"text": "done"}])),
            with("parts", json!([{"data": null}, {"text": "done"}])),
            with("role", json!(1)),
        ] {
            assert_eq!(state(&served.call(binding, "SendMessage", params).await.result()["task"]), "COMPLETED");
        }
        let after = served.call(binding, "ListTasks", json!({})).await.result()["totalSize"].as_u64().unwrap();
        assert_eq!(after, before + 3, "nothing of what was refused");
    }
}
