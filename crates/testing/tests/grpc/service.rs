//! What only this binding has: health, reflection, statuses outside the table, HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use protocol::Json;
use serde_json::json;
use testing::{Binding, Slow, message, send, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::{v1, v1alpha};

use crate::{echo, locked};

fn code(answer: &testing::Answer) -> i64 {
    answer.error().unwrap()["code"].as_i64().unwrap()
}

#[tokio::test]
async fn health_is_answered_without_a_credential_and_ends_with_the_server() {
    let served = serve(echo(), locked).await;
    let mut health = HealthClient::new(served.grpc.clone());
    for service in ["", "lf.a2a.v1.A2AService"] {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let HealthCheckResponse { status } = health.check(asked).await.unwrap().into_inner();
        assert_eq!(status, ServingStatus::Serving as i32);
    }
    let unknown = health.check(HealthCheckRequest { service: "other".to_owned() }).await.unwrap_err();
    assert_eq!(i32::from(unknown.code()), 5);
    let asked = HealthCheckRequest { service: String::new() };
    let mut watch = health.watch(asked).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, ServingStatus::Serving as i32);
    let stopping = tokio::spawn(served.stop());
    assert_eq!(watch.message().await.unwrap().unwrap().status, ServingStatus::NotServing as i32);
    drop(watch);
    stopping.await.unwrap();
}

#[tokio::test]
async fn reflection_shows_the_service_under_both_of_its_names() {
    let served = serve(echo(), locked).await;
    macro_rules! reflected {
        ($version:ident) => {{
            use $version::server_reflection_request::MessageRequest;
            use $version::server_reflection_response::MessageResponse;
            let mut client = $version::server_reflection_client::ServerReflectionClient::new(served.grpc.clone());
            let mut ask = async |message_request| {
                let request =
                    $version::ServerReflectionRequest { host: String::new(), message_request: Some(message_request) };
                let mut answers = client.server_reflection_info(one(request)).await.unwrap().into_inner();
                answers.message().await.unwrap().unwrap().message_response.unwrap()
            };
            let MessageResponse::ListServicesResponse(all) = ask(MessageRequest::ListServices(String::new())).await
            else {
                panic!()
            };
            for known in ["lf.a2a.v1.A2AService", "grpc.health.v1.Health"] {
                assert!(all.service.iter().any(|service| service.name == known), "{all:?}");
            }
            let symbol = "lf.a2a.v1.A2AService.SendMessage".to_owned();
            let found = ask(MessageRequest::FileContainingSymbol(symbol)).await;
            assert!(matches!(found, MessageResponse::FileDescriptorResponse(_)), "{found:?}");
        }};
    }
    reflected!(v1);
    reflected!(v1alpha);
}

fn one<T: Send + 'static>(one: T) -> impl futures_util::Stream<Item = T> + Send + 'static {
    futures_util::stream::once(std::future::ready(one))
}

#[tokio::test]
async fn w02_who_shows_no_credential_is_unauthenticated_and_learns_nothing() {
    let served = serve(echo(), locked).await;
    for method in ["SendMessage", "GetTask"] {
        let params = if method == "GetTask" { json!({"id": "x"}) } else { send("x") };
        for wrong in [vec![], vec![("authorization", "Bearer wrong")], vec![("authorization", "Basic right")]] {
            // Not even whether the version is spoken.
            let wrong: Vec<_> = wrong.into_iter().chain([("a2a-version", "99")]).collect();
            let refused = served.call_with(Binding::Grpc, method, params.clone(), &wrong).await;
            assert_eq!(code(&refused), 16);
            assert!(refused.error().unwrap().get("details").is_none());
        }
    }
    let fine = served.call_with(Binding::Grpc, "SendMessage", send("x"), &[("authorization", "bearer right")]).await;
    assert_eq!(fine.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let missing = served.raw_message("/lf.a2a.v1.A2AService/NoSuchMethod", b"").await;
    assert_eq!(code(&missing), 16);
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_before_it_is_read_and_the_next_one_is_taken() {
    let served = serve(echo(), |setup| setup.limits.body = 2_000).await;
    let refused = served.call(Binding::Grpc, "SendMessage", send(&"x".repeat(3_000))).await;
    assert_eq!(code(&refused), 8);
    assert_eq!(refused.error().unwrap()["message"], "The message is larger than 2000 bytes");
    let fine = served.call(Binding::Grpc, "SendMessage", send(&"x".repeat(1_000))).await;
    assert_eq!(fine.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn an_answer_may_be_larger_than_a_request() {
    let served = serve(echo(), |_| {}).await;
    let mut large = message("go");
    large["parts"] = json!([{"text": "x".repeat(6 << 20)}]);
    let done = served.call(Binding::Grpc, "SendMessage", json!({"message": large})).await;
    assert_eq!(done.result()["task"]["status"]["message"]["parts"][0]["text"].as_str().unwrap().len(), 6 << 20);
}

#[tokio::test]
async fn w12_the_card_names_the_host_of_the_other_bindings_and_the_port_of_this_one() {
    let served = serve(echo(), |setup| setup.hosts = vec!["reviewer".to_owned()]).await;
    let card = async |host: &str| {
        let answer = served.http("GET", "/.well-known/agent-card.json", &[("host", host)], "").await;
        answer.body["supportedInterfaces"].clone()
    };
    let interfaces = card("reviewer:41242").await;
    let port = served.grpc_address.rsplit(':').next().unwrap().to_owned();
    let words: Vec<_> = interfaces.as_array().unwrap().iter().map(|one| one["protocolBinding"].clone()).collect();
    assert_eq!(words, ["JSONRPC", "HTTP+JSON", "GRPC"]);
    assert_eq!(
        interfaces[2],
        json!({"url": format!("reviewer:{port}"), "protocolBinding": "GRPC", "protocolVersion": "1.0"})
    );
    for (host, named) in [("127.0.0.1:9", "127.0.0.1"), ("[::1]:9", "[::1]"), ("evil.example", "localhost")] {
        assert_eq!(card(host).await[2]["url"], format!("{named}:{port}"), "{host}");
    }
    let public = serve(echo(), |setup| setup.public_url = Some("https://agents.example:8443/x/".into())).await;
    let answer = public.http("GET", "/.well-known/agent-card.json", &[], "").await;
    let port = public.grpc_address.rsplit(':').next().unwrap();
    assert_eq!(answer.body["supportedInterfaces"][2]["url"], format!("agents.example:{port}"));
    let behind = serve(echo(), |setup| setup.grpc_public_url = Some("grpc.example:443".into())).await;
    let answer = behind.http("GET", "/.well-known/agent-card.json", &[], "").await;
    assert_eq!(answer.body["supportedInterfaces"][2]["url"], "grpc.example:443");
}

#[tokio::test]
async fn w12_what_a_caller_over_this_binding_is_told_leads_to_the_other_ones() {
    let mut agent = testing::scripted(|job, say| async move {
        say.done(job.base_url.to_string()).await?;
        Ok(())
    });
    agent.card.capabilities.extended_agent_card = Some(true);
    agent.extended = Some(agent.card.clone());
    let served = serve(agent, locked).await;
    let right = [("authorization", "Bearer right")];
    let done = served.call_with(Binding::Grpc, "SendMessage", send("where"), &right).await;
    assert_eq!(done.result()["task"]["status"]["message"]["parts"][0]["text"], served.url);
    let card = served.call_with(Binding::Grpc, "GetExtendedAgentCard", json!({}), &right).await;
    assert_eq!(card.result()["supportedInterfaces"][0]["url"], format!("{}/a2a/jsonrpc", served.url));
    assert_eq!(card.result()["supportedInterfaces"][2]["url"], served.grpc_address);
}

#[tokio::test]
async fn a_stream_ends_and_the_port_closes_when_the_server_stops() {
    let served = serve(echo(), |setup| setup.limits.grace = Duration::from_millis(50)).await;
    let mut stream = served.stream(Binding::Grpc, "SendStreamingMessage", send("wait")).await;
    assert!(stream.next().await.unwrap().get("task").is_some());
    let address = served.grpc_address.clone();
    served.stop().await;
    let rest = stream.rest().await;
    assert!(rest.iter().all(|frame| frame.get("error").is_none()), "{rest:?}");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn who_speaks_something_else_is_turned_away_and_nobody_else_notices() {
    let served = serve(echo(), |_| {}).await;
    let mut silent = tokio::net::TcpStream::connect(&served.grpc_address).await.unwrap();
    let mut http1 = tokio::net::TcpStream::connect(&served.grpc_address).await.unwrap();
    http1.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = http1.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let url = format!("http://{}/lf.a2a.v1.A2AService/GetTask", served.grpc_address);
    for stated in ["application/json", "application/grpcx"] {
        let answer = http2.post(&url).header("content-type", stated).body("{}").send().await.unwrap();
        assert_eq!(answer.status(), 415, "{stated}");
    }
    let elsewhere = served.raw_message("/another.Service/GetTask", b"").await;
    assert_eq!((code(&elsewhere), elsewhere.body["error"]["message"].as_str()), (12, Some("Method not found")));
    let fine = served.call(Binding::Grpc, "SendMessage", send("x")).await;
    assert_eq!(fine.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    silent.shutdown().await.unwrap();
}

#[tokio::test]
async fn after_a_panic_anywhere_the_next_call_is_answered() {
    let mut store = Slow::default();
    store.panics_for = Some("boom");
    let served = serve(echo(), |setup| setup.store = Arc::new(store)).await;
    let mut stream = served.stream(Binding::Grpc, "SendStreamingMessage", send("ask")).await;
    stream.next().await.unwrap();
    for _ in 0..3 {
        let broken = served.call(Binding::Grpc, "GetTask", json!({"id": "boom"})).await;
        assert!(!broken.body.to_string().contains("as it was told"), "{}", broken.body);
        assert!(broken.error().is_some());
        let failed = served.call(Binding::Grpc, "SendMessage", send("panic")).await;
        assert_eq!(failed.result()["task"]["status"]["state"], "TASK_STATE_FAILED");
        let fine = served.call(Binding::Grpc, "SendMessage", send("x")).await;
        assert_eq!(fine.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    }
    let frames = stream.rest().await;
    assert!(frames.iter().all(|frame| frame.get("error").is_none()), "other calls of the connection go on: {frames:?}");
}

#[tokio::test]
async fn two_subscribers_get_the_same_bytes() {
    let served = serve(echo(), |_| {}).await;
    let answer = served.call(Binding::Rpc, "SendMessage", send("ask")).await;
    let task = answer.result()["task"]["id"].clone();
    let mut streams = Vec::new();
    for _ in 0..2 {
        streams.push(served.stream(Binding::Grpc, "SubscribeToTask", json!({"id": task})).await);
    }
    let mut more = message("this");
    more["taskId"] = task;
    served.call(Binding::Rpc, "SendMessage", json!({"message": more})).await.result();
    let (second, first) = (streams.pop().unwrap().rest().await, streams.pop().unwrap().rest().await);
    assert_eq!(first, second);
    assert!(first.len() > 2);
}

#[tokio::test]
async fn w05_numbers_are_doubles_here_and_digits_elsewhere() {
    let served = serve(echo(), |_| {}).await;
    let data = Json::parse(r#"{"b":12345678901234567890,"a":1.50}"#).unwrap();
    let mut sent = message("data");
    sent["parts"] = json!([{"data": {"b": 1.0, "a": [1, 2.5]}}]);
    let done = served.call(Binding::Grpc, "SendMessage", json!({"message": sent})).await;
    let task = &done.result()["task"];
    let again = served
        .http("GET", &format!("/a2a/rest/tasks/{}", task["id"].as_str().unwrap()), &[("a2a-version", "1.0")], "")
        .await;
    assert_eq!(again.result()["status"]["message"]["parts"][0]["data"].to_string(), r#"{"a":[1,2.5],"b":1}"#);
    let params =
        format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{}}}]}}}}"#, data.text());
    let rpc = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{params}}}"#);
    let id = served.raw(&rpc).await.result()["task"]["id"].clone();
    let here = served.call(Binding::Grpc, "GetTask", json!({"id": id})).await;
    let part = &here.result()["status"]["message"]["parts"][0]["data"];
    assert_eq!((part["a"].as_f64(), part["b"].as_f64()), (Some(1.5), Some(12345678901234567000.0)));
}
