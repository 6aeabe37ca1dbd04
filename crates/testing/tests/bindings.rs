//! What stands on the wire: the decisions W1 to W13, over all bindings to which they apply.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use protocol::card::AgentExtension;
use serde_json::{Value, json};
use server::{Credential, Setup};
use testing::{Binding, Scripted, Served, message, scripted, send, serve};

fn echo() -> Scripted {
    scripted(|job, say| async move {
        say.done(job.message.parts.clone()).await?;
        Ok(())
    })
}

async fn served() -> Served {
    serve(echo(), |_| {}).await
}

#[tokio::test]
async fn w01_the_paths_are_the_kits_take_a_slash_and_can_be_moved() {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}).to_string();
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let served = served().await;
    for path in ["/a2a/jsonrpc", "/a2a/jsonrpc/"] {
        assert_eq!(served.http("POST", path, &headers, &body).await.result()["totalSize"], 0);
    }
    let moved = |setup: &mut Setup| {
        (setup.rpc_path, setup.rest_path) = ("/rpc".to_owned(), "/v1/rest".to_owned());
    };
    let served = serve(echo(), moved).await;
    for path in ["/rpc", "/rpc/"] {
        assert_eq!(served.http("POST", path, &headers, &body).await.result()["totalSize"], 0);
    }
    assert_eq!(served.http("GET", "/v1/rest/tasks", &headers, "").await.result()["totalSize"], 0);
    let card = served.http("GET", "/.well-known/agent-card.json", &[], "").await.body;
    assert!(card["supportedInterfaces"][0]["url"].as_str().unwrap().ends_with("/rpc"));
    assert!(card["supportedInterfaces"][1]["url"].as_str().unwrap().ends_with("/v1/rest"));
}

#[tokio::test]
async fn w02_the_http_status_says_what_is_not_the_methods_business() {
    let served = serve(echo(), |setup| {
        setup.credentials = vec![Credential { token: "right".into(), principal: "ada".into() }];
        setup.limits.body = 2_000;
    })
    .await;
    let right = [("authorization", "Bearer right")];
    for binding in Binding::BOTH {
        for wrong in [vec![], vec![("authorization", "Bearer wrong")], vec![("authorization", "Basic right")]] {
            let refused = served
                .call_with(binding, "NoSuchTask".replace("NoSuch", "Get").as_str(), json!({"id": "x"}), &wrong)
                .await;
            assert_eq!((refused.status, refused.content_type()), (401, "application/json"));
            assert_eq!(refused.headers["www-authenticate"], "Bearer realm=\"scripted\"");
            assert_eq!(refused.body["error"]["message"], "Send Authorization: Bearer <token>");
        }
        let large = served.call_with(binding, "SendMessage", send(&"x".repeat(3_000)), &right).await;
        assert_eq!(large.status, 413);
        let fine = served.call_with(binding, "SendMessage", send("x"), &right).await;
        assert_eq!(fine.status, 200, "the server goes on");
    }
    let put = served.http("PUT", "/a2a/jsonrpc", &right, "{}").await;
    assert_eq!((put.status, put.headers["allow"].to_str().unwrap()), (405, "POST"));
    let put = served.http("PUT", "/a2a/rest/tasks/x:subscribe", &right, "").await;
    assert_eq!((put.status, put.headers["allow"].to_str().unwrap()), (405, "GET, POST"));
    let unknown = served.call_with(Binding::Rpc, "GetTask", json!({"id": "x"}), &right).await;
    assert_eq!((unknown.status, unknown.error().unwrap()["code"].as_i64()), (200, Some(-32001)));
    assert_eq!(served.http("GET", "/nowhere", &right, "").await.body["error"]["status"], "NOT_FOUND");
}

#[tokio::test]
async fn w03_content_types_are_read_loosely_and_mirrored() {
    let served = served().await;
    let send = |binding, content_type: &'static str| {
        let served = &served;
        async move { served.call_with(binding, "SendMessage", send("x"), &[("content-type", content_type)]).await }
    };
    for taken in ["application/json; charset=utf-8", "APPLICATION/JSON"] {
        assert_eq!(send(Binding::Rpc, taken).await.content_type(), "application/json");
        assert_eq!(send(Binding::Rest, taken).await.content_type(), "application/json");
    }
    assert_eq!(send(Binding::Rest, "application/a2a+json").await.content_type(), "application/a2a+json");
    let refused = send(Binding::Rpc, "text/plain").await;
    assert_eq!((refused.status, refused.reason()), (200, "CONTENT_TYPE_NOT_SUPPORTED"));
    let refused = send(Binding::Rest, "text/plain").await;
    assert_eq!(refused.status, 415);
    assert!(refused.body["error"].get("details").is_none());
    let version = [("a2a-version", "1.0")];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}).to_string();
    assert_eq!(served.http("POST", "/a2a/jsonrpc", &version, &body).await.result()["totalSize"], 5);
    let error = served.call(Binding::Rest, "GetTask", json!({"id": "x"})).await;
    assert_eq!((error.status, error.content_type()), (404, "application/a2a+json"));
    let error =
        served.call_with(Binding::Rest, "SendMessage", json!({}), &[("content-type", "application/json")]).await;
    assert_eq!((error.status, error.content_type()), (400, "application/json"), "errors are mirrored too");
    for binding in Binding::BOTH {
        let plain = [("content-type", "application/json")];
        let stream = served.request(binding, "SendStreamingMessage", &self::send("x"), &plain).send().await.unwrap();
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
    }
    let image =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"url": "x", "mediaType": "image/png"}]}});
    for (binding, status) in [(Binding::Rpc, 200), (Binding::Rest, 400), (Binding::Grpc, 200)] {
        let refused = served.call(binding, "SendMessage", image.clone()).await;
        assert_eq!((refused.status, refused.reason()), (status, "CONTENT_TYPE_NOT_SUPPORTED"));
    }
}

#[tokio::test]
async fn w03_plain_json_where_it_is_wanted_is_the_type_of_every_answer_over_http_json() {
    let served = serve(echo(), |setup| setup.plain_json = true).await;
    for content_type in ["application/a2a+json", "application/json"] {
        let sent = served.call_with(Binding::Rest, "SendMessage", send("x"), &[("content-type", content_type)]).await;
        assert_eq!((sent.status, sent.content_type()), (200, "application/json"));
    }
    for path in ["/tasks", "/tasks/x", "/nowhere"] {
        let read = served.http("GET", &format!("/a2a/rest{path}"), &[("a2a-version", "1.0")], "").await;
        assert_eq!(read.content_type(), "application/json", "{path}");
    }
}

#[tokio::test]
async fn w04_the_envelope_is_checked_and_the_id_echoed_as_it_came() {
    let served = served().await;
    let call = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ListTasks"}}"#);
    for (id, echoed) in
        [("7", json!(7)), ("\"7\"", json!("7")), ("1152921504606846976", json!(1u64 << 60)), ("null", Value::Null)]
    {
        let answer = served.raw(&call(id)).await;
        assert_eq!(answer.body["id"], echoed);
        assert_eq!(answer.result()["totalSize"], 0);
    }
    let absent = served.raw(r#"{"jsonrpc":"2.0","method":"ListTasks"}"#).await;
    assert_eq!(absent.body["id"], Value::Null);
    for body in [
        &*call("1.5"),
        &call("true"),
        &call("{}"),
        "[]",
        &format!("[{}]", call("1")),
        "\"x\"",
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"method":"ListTasks"}"#,
    ] {
        let refused = served.raw(body).await;
        assert_eq!((refused.status, refused.body["error"]["code"].as_i64()), (200, Some(-32600)), "{body}");
        assert!(refused.body.get("result").is_none());
    }
    for body in ["{", "", "{\"jsonrpc\":\"2.0\"} x", "\u{feff}{}"] {
        assert_eq!(served.raw(body).await.body["error"]["code"], -32700, "{body}");
    }
    let params = served.raw(r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[1]}"#).await;
    assert_eq!(params.body["error"]["code"], -32602);
    let unknown = served.raw(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#).await;
    assert_eq!(unknown.body["error"], json!({"code": -32601, "message": "Method not found"}));
}

#[tokio::test]
async fn w04_over_http_json_the_body_is_the_request_and_may_be_left_out_where_nothing_is_required() {
    let served = served().await;
    let headers = [("content-type", "application/a2a+json"), ("a2a-version", "1.0")];
    let post = async |path: &str, body: &str| served.http("POST", &format!("/a2a/rest{path}"), &headers, body).await;
    for body in ["{", "\u{feff}{}", "{} x", "{\"message\": tru}"] {
        let refused = post("/message:send", body).await;
        assert_eq!(
            (refused.status, &refused.body["error"]["message"]),
            (400, &json!("Invalid JSON payload")),
            "{body}"
        );
        assert!(refused.body["error"].get("details").is_none());
    }
    for (body, field) in [("", "message"), ("{}", "message"), (" \n", "message"), ("[]", "params"), ("7", "params")] {
        assert_eq!(post("/message:send", body).await.fields(), [field], "{body}");
    }
    for body in ["", "{}", "{\"id\": \"x\"}"] {
        assert_eq!(post("/tasks/x:cancel", body).await.reason(), "TASK_NOT_FOUND", "{body}");
    }
}

#[tokio::test]
async fn w04_a_delete_answers_an_empty_object_and_only_that() {
    let served = serve(
        scripted(|_, say| async move {
            say.ask("which?").await?;
            Ok(())
        }),
        |_| {},
    )
    .await;
    let made = served.call(Binding::Rpc, "SendMessage", send("x")).await;
    let id = made.result()["task"]["id"].clone();
    for binding in Binding::ALL {
        let deleted = served.call(binding, "DeleteTaskPushNotificationConfig", json!({"taskId": id, "id": "c"})).await;
        assert_eq!((deleted.status, deleted.result()), (200, &json!({})), "{binding:?}");
        let members: Vec<_> = deleted.body.as_object().unwrap().keys().cloned().collect();
        let expected: &[&str] = if binding == Binding::Rpc { &["jsonrpc", "id", "result"] } else { &[] };
        assert_eq!(members, expected);
    }
}

#[tokio::test]
async fn w05_client_data_comes_back_member_for_member_and_digit_for_digit() {
    let served = served().await;
    let data = r#"{"z": 1.0, "a": 12345678901234567890123, "n": null, "e": [], "nested": {"b": "{{x}}", "a": 1e400}}"#;
    let compact = r#"{"z":1.0,"a":12345678901234567890123,"n":null,"e":[],"nested":{"b":"{{x}}","a":1e400}}"#;
    let part = format!(r#"{{"data": {data}, "metadata": {{"k": [1 , 2]}}}}"#);
    let params = format!(
        r#"{{"message": {{"message_id": "m", "role": "ROLE_USER", "x-new": {{"a": [1]}}, "parts": [{part}]}}}}"#
    );
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let rpc = format!(r#"{{"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {params}}}"#);
    for (path, body) in [("/a2a/jsonrpc", &rpc), ("/a2a/rest/message:stream", &params)] {
        let url = format!("{}{path}", served.url);
        let mut request = reqwest_client().post(url).body(body.clone());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let text = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(text.matches(compact).count(), 2, "in the first frame and in the last: {text}");
        assert!(text.contains(r#""metadata":{"k":[1,2]}"#));
    }
}

fn reqwest_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn w05_protojson_is_read_in_all_its_spellings() {
    let served = served().await;
    let message = |part: &str| {
        let extras =
            r#""context_id": "", "taskId": null, "metadata": null, "extensions": null, "new": [1, {"a": null}]"#;
        format!(r#"{{"message_id": "m{}", "role": 1, "parts": [{part}], {extras}}}"#, part.len())
    };
    let (headers, configuration) = (
        [("content-type", "application/json"), ("a2a-version", "1.0")],
        r#"{"history_length": "1", "return_immediately": null, "acceptedOutputModes": null}"#,
    );
    for (part, read) in [
        (
            r#"{"raw": "_-8", "media_type": "application/octet-stream"}"#,
            json!({"raw": "/+8=", "mediaType": "application/octet-stream"}),
        ),
        (r#"{"raw": "/+8="}"#, json!({"raw": "/+8="})),
        (r#"{"text": "x", "data": 7, "text": null}"#, json!(null)),
        (r#"{"data": null}"#, json!({"data": null})),
        (r#"{"text": "", "raw": null, "filename": ""}"#, json!({"text": ""})),
    ] {
        let params = format!(r#"{{"tenant": "", "message": {}, "configuration": {configuration}}}"#, message(part));
        let rpc = format!(r#"{{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {params}}}"#);
        for (path, body) in [("/a2a/jsonrpc", &rpc), ("/a2a/rest/message:send", &params)] {
            let answer = served.http("POST", path, &headers, body).await;
            if read.is_null() {
                assert_eq!(answer.fields(), ["message.parts[0].text", "message.parts[0]"], "{part}");
                continue;
            }
            let task = &answer.result()["task"];
            assert_eq!(task["history"][0]["parts"][0], read, "{path} {part}");
            assert_eq!(task["status"]["message"]["parts"][0], read, "and back");
            assert_eq!(task["history"][0]["role"], "ROLE_USER");
        }
    }
    let lists = ["?page_size=1&context_id=&include_artifacts=false", "?pageSize=1&contextId=&includeArtifacts=false"];
    for query in lists {
        let list = served.http("GET", &format!("/a2a/rest/tasks{query}"), &headers, "").await;
        assert_eq!((&list.result()["pageSize"], list.result()["tasks"].as_array().unwrap().len()), (&json!(1), 1));
    }
    let list = json!({"page_size": "1", "contextId": null, "status": 3, "include_artifacts": false});
    assert_eq!(served.call(Binding::Rpc, "ListTasks", list).await.result()["pageSize"], 1);
}

#[tokio::test]
async fn w06_answers_are_compact_camel_case_and_leave_absent_members_out() {
    let served = served().await;
    let params = send("žluťoučký 🦀");
    for (binding, method, start) in [
        (Binding::Rpc, "SendMessage", r#"{"jsonrpc":"2.0","id":7,"result":{"task":{"id":""#),
        (Binding::Rest, "SendMessage", r#"{"task":{"id":""#),
        (
            Binding::Rpc,
            "SendStreamingMessage",
            "id: 0\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"task\":{\"id\":\"",
        ),
        (Binding::Rest, "SendStreamingMessage", "id: 0\ndata: {\"task\":{\"id\":\""),
    ] {
        let response = served.request(binding, method, &params, &[]).send().await.unwrap();
        let text = response.text().await.unwrap();
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("žluťoučký 🦀"), "raw UTF-8");
        assert!(!text.contains("null") && !text.contains("_id\""), "{text}");
        let stamp = text.split("\"timestamp\":\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!((stamp.len(), &stamp[19..20], &stamp[23..]), (24, ".", "Z"));
    }
    for (binding, error) in [
        (
            Binding::Rpc,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Task not found","data":[{"@type":"#,
        ),
        (Binding::Rest, r#"{"error":{"code":404,"status":"NOT_FOUND","message":"Task not found","details":[{"@type":"#),
    ] {
        let response = served.request(binding, "GetTask", &json!({"id": "x"}), &[]).send().await.unwrap();
        let text = response.text().await.unwrap();
        assert!(text.starts_with(error), "{text}");
    }
    let empty = serve(echo(), |_| {}).await;
    for binding in Binding::BOTH {
        let list = empty.call(binding, "ListTasks", json!({})).await;
        let required = json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0});
        assert_eq!(list.result(), &required, "required members are there even when they are empty");
    }
}

#[tokio::test]
async fn w07_every_wrong_field_is_named_alike_on_both_bindings() {
    let served = served().await;
    let wrong = json!({
        "message": {"role": "ROLE_AGENT", "parts": [{"text": "fine"}, {"raw": "@@"}, {}]},
        "configuration": {"historyLength": -1, "returnImmediately": "yes"}
    });
    for (binding, status) in [(Binding::Rpc, 200), (Binding::Rest, 400)] {
        for method in ["SendMessage", "SendStreamingMessage"] {
            let refused = served.call(binding, method, wrong.clone()).await;
            assert_eq!(refused.status, status);
            assert_eq!(
                refused.fields(),
                [
                    "message.messageId",
                    "message.role",
                    "message.parts[1].raw",
                    "message.parts[2]",
                    "configuration.historyLength",
                    "configuration.returnImmediately"
                ]
            );
        }
        assert_eq!(served.call(binding, "SendMessage", json!({})).await.fields(), ["message"]);
        let list = served.call(binding, "ListTasks", json!({})).await;
        assert_eq!(list.result()["totalSize"], 0, "nothing was stored");
    }
}

#[tokio::test]
async fn w08_versions_are_major_and_minor_from_the_header_or_else_the_query() {
    let served = served().await;
    let get = json!({"id": "x"});
    for binding in Binding::ALL {
        for spoken in ["1.0", "1.0.1"] {
            let headers = [("a2a-version", spoken)];
            assert_eq!(served.call_with(binding, "GetTask", get.clone(), &headers).await.reason(), "TASK_NOT_FOUND");
        }
        for (asked, named) in [("", "0.3 (no header)"), ("0.3", "0.3"), ("99.0", "99.0"), ("1.00", "1.00")] {
            let refused = served.call_with(binding, "GetTask", get.clone(), &[("a2a-version", asked)]).await;
            assert_eq!(refused.reason(), "VERSION_NOT_SUPPORTED", "{asked}");
            let error = refused.error().unwrap();
            let details = error.get("data").or_else(|| error.get("details")).unwrap();
            assert_eq!(details[0]["metadata"], json!({"requested": named, "supported": "1.0"}));
        }
    }
    let query = served.http("GET", "/a2a/rest/tasks?A2A-Version=1.0", &[], "").await;
    assert_eq!(query.result()["totalSize"], 0);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}).to_string();
    let query = served.http("POST", "/a2a/jsonrpc?a2a-version=1.0", &[], &body).await;
    assert_eq!(query.result()["totalSize"], 0);
    let query = served.http("POST", "/a2a/jsonrpc?A2A-Version=0.3", &[], &body).await;
    assert_eq!(query.reason(), "VERSION_NOT_SUPPORTED");
    let header = [("a2a-version", "0.3")];
    let query = served.http("GET", "/a2a/rest/tasks?A2A-Version=1.0", &header, "").await;
    assert_eq!(query.reason(), "VERSION_NOT_SUPPORTED", "the header wins");
}

#[tokio::test]
async fn w09_a_required_extension_must_be_named_and_active_ones_are_echoed() {
    let mut agent = echo();
    let extension = |uri: &str, required| AgentExtension { uri: uri.into(), description: None, required, params: None };
    agent.card.capabilities.extensions = vec![extension("urn:must", true), extension("urn:may", false)];
    let served = serve(agent, |_| {}).await;
    for binding in Binding::ALL {
        let refused = served.call(binding, "SendMessage", send("x")).await;
        assert_eq!(refused.reason(), "EXTENSION_SUPPORT_REQUIRED");
        for (named, echoed) in [("urn:must", "urn:must"), ("urn:other, urn:may,urn:must", "urn:must, urn:may")] {
            let answer = served.call_with(binding, "SendMessage", send("x"), &[("a2a-extensions", named)]).await;
            assert_eq!(answer.headers["a2a-extensions"], echoed);
        }
    }
}

#[tokio::test]
async fn w10_a_tenant_where_the_card_has_none_is_named() {
    let served = served().await;
    let mut params = send("x");
    params["tenant"] = json!("acme");
    for binding in Binding::ALL {
        let refused = served.call(binding, "SendMessage", params.clone()).await;
        assert_eq!(refused.fields(), ["tenant"]);
    }
    let refused = served.http("GET", "/a2a/rest/acme/tasks", &[("a2a-version", "1.0")], "").await;
    assert_eq!(refused.fields(), ["tenant"]);
}

#[tokio::test]
async fn what_the_path_says_may_stand_in_the_body_and_must_not_differ() {
    let served = serve(
        scripted(|_, say| async move {
            say.ask("which?").await?;
            Ok(())
        }),
        |_| {},
    )
    .await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("x")).await;
    let id = answer.result()["task"]["id"].as_str().unwrap().to_owned();
    let path = format!("/a2a/rest/tasks/{id}/pushNotificationConfigs");
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    let url = "https://hooks.example.com/x";
    for body in [
        json!({"url": url}),
        json!({"url": url, "taskId": id}),
        json!({"url": url, "task_id": id}),
        json!({"url": url, "taskId": "", "task_id": null}),
    ] {
        let made = served.http("POST", &path, &headers, &body.to_string()).await;
        assert_eq!(made.result()["taskId"], json!(id), "{body}");
    }
    let body = json!({"url": url, "taskId": "another"}).to_string();
    assert_eq!(served.http("POST", &path, &headers, &body).await.fields(), ["taskId"]);
    assert_eq!(served.http("POST", &path, &headers, "[]").await.fields(), ["body"]);
}

#[tokio::test]
async fn w11_both_verbs_subscribe() {
    let served = serve(
        scripted(|_, say| async move {
            say.ask("which?").await?;
            Ok(())
        }),
        |_| {},
    )
    .await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("x")).await;
    let id = answer.result()["task"]["id"].as_str().unwrap().to_owned();
    for (verb, body) in [("GET", ""), ("POST", ""), ("POST", "{}")] {
        let url = format!("{}/a2a/rest/tasks/{id}:subscribe", served.url);
        let verb = reqwest::Method::from_bytes(verb.as_bytes()).unwrap();
        let request = reqwest_client().request(verb, url).header("a2a-version", "1.0").body(body);
        let mut response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let first = response.chunk().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&first).contains("TASK_STATE_INPUT_REQUIRED"));
    }
}

#[tokio::test]
async fn w12_the_card_names_the_host_that_was_asked_for_when_it_may() {
    let with_name = serve(echo(), |setup| setup.hosts = vec!["reviewer".to_owned()]).await;
    let port = with_name.url.rsplit(':').next().unwrap().to_owned();
    let bound = format!("localhost:{port}");
    let card = async |served: &Served, host: &str| {
        let answer = served.http("GET", "/.well-known/agent-card.json", &[("host", host)], "").await;
        answer.body["supportedInterfaces"][0]["url"].as_str().unwrap().to_owned()
    };
    for (host, named) in [
        ("localhost:4101", "localhost:4101"),
        ("127.0.0.1:9", "127.0.0.1:9"),
        ("[::1]:9", "[::1]:9"),
        ("reviewer:41242", "reviewer:41242"),
        ("Reviewer", "Reviewer"),
        ("evil.example:80", &bound),
        ("0.0.0.0:80", &bound),
        ("localhost:80/x", &bound),
        ("localhost.evil:80", &bound),
    ] {
        assert_eq!(card(&with_name, host).await, format!("http://{named}/a2a/jsonrpc"), "{host}");
    }
    let public = serve(echo(), |setup| setup.public_url = Some("https://agents.example/x/".into())).await;
    assert_eq!(card(&public, "localhost:1").await, "https://agents.example/x/a2a/jsonrpc");
}

#[tokio::test]
async fn w12_an_agent_is_told_under_which_name_its_caller_reaches_it() {
    let served = serve(
        scripted(|job, say| async move {
            say.done(job.base_url.to_string()).await?;
            Ok(())
        }),
        |setup| setup.hosts = vec!["reviewer".to_owned()],
    )
    .await;
    let bound = format!("http://localhost:{}", served.url.rsplit(':').next().unwrap());
    for binding in Binding::BOTH {
        for (host, named) in [("reviewer:80", "http://reviewer:80"), ("evil.example", &bound)] {
            let answer = served.call_with(binding, "SendMessage", send("x"), &[("host", host)]).await;
            assert_eq!(answer.result()["task"]["status"]["message"]["parts"][0]["text"], json!(named));
        }
    }
}

#[tokio::test]
async fn w12_a_card_that_the_caller_has_is_not_sent_again() {
    let served = served().await;
    let path = "/.well-known/agent-card.json";
    let first = served.http("GET", path, &[], "").await;
    assert!(first.headers["cache-control"].to_str().unwrap().contains("max-age"));
    let etag = first.headers["etag"].to_str().unwrap().to_owned();
    let since = first.headers["last-modified"].to_str().unwrap().to_owned();
    assert_eq!(served.http("GET", path, &[("if-none-match", &etag)], "").await.status, 304);
    assert_eq!(served.http("GET", path, &[("if-modified-since", &since)], "").await.status, 304);
    assert_eq!(served.http("GET", path, &[("if-none-match", "\"other\"")], "").await.status, 200);
    assert_eq!(served.http("HEAD", path, &[], "").await.status, 200);
}

#[tokio::test]
async fn what_is_refused_leaves_the_connection_usable_and_nothing_behind() {
    let served = served().await;
    let deep = format!("{}{}", "[".repeat(3_000), "]".repeat(3_000));
    let bodies = [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{deep}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ListTasks","x":{deep}}}"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"\ud800"}]}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":"\ud800"}]}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","data":1}]}}}"#.to_owned(),
    ];
    let before = message("x");
    for body in bodies {
        let refused = served.raw(&body).await;
        let code = refused.body["error"]["code"].as_i64().unwrap();
        assert!([-32600, -32602, -32700].contains(&code), "{}", refused.body);
    }
    let answer = served.call(Binding::Rpc, "SendMessage", json!({"message": before})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(served.call(Binding::Rpc, "ListTasks", json!({})).await.result()["totalSize"], 1);
}
