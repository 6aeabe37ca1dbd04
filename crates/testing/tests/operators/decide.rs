//! What an operator's decision comes to.

use serde_json::json;
use server::{Credential, Setup, Tokens};
use testing::{Binding, id, send, serve};

use super::{ANA, BOB, EVE, approve, asked, deployer, post, with_operators, words};

#[tokio::test]
async fn an_approval_counts_once_and_the_agent_knows_whose_it_is() {
    let served = serve(deployer(), with_operators).await;
    let task = asked(&served, "go").await;
    let answer = post(&served, &format!("/approve/{task}"), ANA, &json!({})).await;
    assert_eq!((answer.status, answer.body), (200, json!({"approved": true, "taskId": task, "by": "ana"})));
    let done = served.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(words(&done), "live, asked by somebody, approved by ana");
    assert_eq!(approve(&served, &task, ANA).await, 409);
}

#[tokio::test]
async fn a_refusal_needs_a_reason_and_the_agent_is_told_it() {
    let served = serve(deployer(), with_operators).await;
    for (content_type, body) in [
        ("application/json", "{\"reason\": \" not\\n\\u0007today \"}"),
        ("application/x-www-form-urlencoded; charset=utf-8", "reason=not+today"),
    ] {
        let task = asked(&served, "go").await;
        let path = format!("/refuse/{task}");
        for nothing in [json!({}), json!({"reason": " "}), json!({"reason": null}), json!(["not today"]), json!(7)] {
            assert_eq!(post(&served, &path, ANA, &nothing).await.status, 400, "{nothing}");
        }
        let bearer = format!("Bearer {ANA}");
        let headers = [("authorization", bearer.as_str()), ("content-type", content_type)];
        let answer = served.http("POST", &path, &headers, body).await;
        assert_eq!((answer.status, answer.body), (200, json!({"approved": false, "taskId": task, "by": "ana"})));
        let rejected = served.until(&task, "TASK_STATE_REJECTED").await;
        assert_eq!(words(&rejected), "Some(\"ana\") refused: Some(\"not today\")");
    }
}

#[tokio::test]
async fn two_approvals_are_two_operators() {
    let served = serve(deployer(), with_operators).await;
    let task = asked(&served, "approvals: 2").await;
    assert_eq!(approve(&served, &task, ANA).await, 200);
    served.until(&task, "TASK_STATE_AUTH_REQUIRED").await;
    assert_eq!(approve(&served, &task, ANA).await, 403);
    assert_eq!(approve(&served, &task, EVE).await, 200);
    assert_eq!(words(&served.until(&task, "TASK_STATE_COMPLETED").await), "live, asked by somebody, approved by eve");
}

#[tokio::test]
async fn whoever_shows_the_token_that_all_share_has_no_name_and_a_tenant_is_no_part_of_one() {
    let callers = |setup: &mut Setup| {
        with_operators(setup);
        setup.tenants = vec!["acme".to_owned()];
        setup.credentials = vec![Credential { token: "t".into(), principal: server::ANONYMOUS.into() }];
        setup.callers = Tokens::read(&Tokens::line("carol@home", "token-of-carol").unwrap()).unwrap();
    };
    let served = serve(deployer(), callers).await;
    for (token, asker) in [("t", "somebody"), ("token-of-carol", "carol@home")] {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        let params = json!({"message": testing::message("go"), "tenant": "acme"});
        let task = served.call_with(Binding::Rpc, "SendMessage", params, &headers).await;
        let task = id(&task.result()["task"]);
        assert_eq!(approve(&served, &task, ANA).await, 200);
        let get = json!({"id": task, "tenant": "acme"});
        let done = loop {
            let answer = served.call_with(Binding::Rpc, "GetTask", get.clone(), &headers).await;
            if answer.result()["status"]["state"] == "TASK_STATE_COMPLETED" {
                break answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        };
        assert_eq!(words(done.result()), format!("live, asked by {asker}, approved by ana"));
    }
}

#[tokio::test]
async fn what_waits_is_listed_for_operators_with_what_they_should_know() {
    let callers = |setup: &mut Setup| {
        with_operators(setup);
        setup.credentials = vec![Credential { token: "t".into(), principal: "caller".into() }];
        setup.callers = Tokens::read(&Tokens::line("carol", "token-of-carol").unwrap()).unwrap();
    };
    let served = serve(deployer(), callers).await;
    let carol = [("authorization", "Bearer token-of-carol")];
    let answer = served.call_with(Binding::Rpc, "SendMessage", send("go"), &carol).await;
    let task = id(&answer.result()["task"]);
    for (token, may) in [(ANA, true), (BOB, false)] {
        let bearer = format!("Bearer {token}");
        let list = served.http("GET", "/approvals", &[("authorization", &bearer)], "").await.body;
        let waiting = &list["approvals"][0];
        assert_eq!(list["approvals"].as_array().unwrap().len(), 1);
        assert_eq!(waiting["taskId"], json!(task));
        assert_eq!(waiting["text"], "Deploy <b>build 7</b>?");
        assert_eq!(waiting["asker"], "carol");
        assert_eq!(waiting["about"][1], json!({"name": "environment", "value": "<i>staging</i>"}));
        assert_eq!(waiting["mayDecide"], may);
        assert!(waiting["since"].is_string());
    }
    for nobody in ["Bearer token-of-carol", "Bearer t", "Bearer ", "Basic YTpi"] {
        assert_eq!(served.http("GET", "/approvals", &[("authorization", nobody)], "").await.status, 401);
    }
    // An operator's token lets nobody call, and a caller's decides nothing.
    let operator = [("authorization", "Bearer token-of-ana")];
    assert_eq!(served.call_with(Binding::Rpc, "SendMessage", send("go"), &operator).await.status, 401);
    assert_eq!(approve(&served, &task, "token-of-carol").await, 401);
    assert_eq!(approve(&served, &task, ANA).await, 200);
    let get = || served.call_with(Binding::Rpc, "GetTask", json!({"id": task}), &carol);
    while get().await.result()["status"]["state"] != "TASK_STATE_COMPLETED" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(words(get().await.result()), "live, asked by carol, approved by ana");
}
