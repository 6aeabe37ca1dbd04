//! The agent of the public interop kit, against itself: the contract that the kit's agents have with each other, over
//! every binding.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testing::{Binding, Served, Webhooks, frame_state, message, serve, state};
use workshop::interop::{Behavior, CallAgent, Instruction, Interop, PushNotification, Response, Series, Step};

/// The kit's words for the bindings.
const TRANSPORTS: [&str; 3] = ["jsonrpc", "http_json", "grpc"];

async fn interop(pause: Duration) -> Served {
    serve(Interop::new(pause), Interop::set).await
}

fn step(step: Step) -> Instruction {
    Instruction { step: Some(step) }
}

fn word(response: &str) -> Instruction {
    step(Step::ReturnResponse(Response { response: response.to_owned(), hold_task: false }))
}

fn held(response: &str) -> Instruction {
    step(Step::ReturnResponse(Response { response: response.to_owned(), hold_task: true }))
}

fn steps(instructions: Vec<Instruction>) -> Instruction {
    step(Step::Steps(Series { instructions, response_generator: 0 }))
}

/// How an agent is called.
#[derive(Clone)]
struct How {
    transport: &'static str,
    streaming: bool,
    behavior: Behavior,
}

fn call(agent: &Served, how: &How, instruction: Instruction) -> Instruction {
    step(Step::CallAgent(Box::new(CallAgent {
        transport: how.transport.to_owned(),
        agent_card_uri: agent.url.clone(),
        instruction: Some(Box::new(instruction)),
        streaming: how.streaming,
        behavior: Some(how.behavior.clone()),
    })))
}

/// What makes the first agent call the second, which calls the first.
fn ring(agents: &[Served; 2], how: &How, end: Instruction, say: fn(&str) -> Instruction) -> Instruction {
    let back = steps(vec![say("[1 -> 0]"), call(&agents[0], how, end)]);
    call(&agents[1], how, back)
}

fn params(part: &Value) -> Value {
    let mut message = message("");
    message["parts"] = json!([part]);
    json!({"message": message})
}

/// Sends an instruction as the runner of the kit does, to one path or the other.
async fn follow(agent: &Served, instruction: &Instruction) -> Value {
    follow_at(agent, "/jsonrpc/", instruction).await
}

async fn follow_at(agent: &Served, path: &str, instruction: &Instruction) -> Value {
    let params = params(&serde_json::to_value(instruction.part()).unwrap());
    let body = json!({"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": params}).to_string();
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    agent.http("POST", path, &headers, &body).await.result()["task"].clone()
}

fn text(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_instruction_goes_around_a_ring_and_every_agent_adds_its_word() {
    let agents = [interop(Duration::ZERO).await, interop(Duration::ZERO).await];
    assert_eq!(text(&follow_at(&agents[0], "/jsonrpc", &word("end")).await), "end", "without a slash too");
    for transport in TRANSPORTS {
        for streaming in [false, true] {
            let how = How { transport, streaming, behavior: Behavior::SendMessage(()) };
            let instruction = steps(vec![word("[0 -> 1]"), ring(&agents, &how, word("end"), word)]);
            let task = follow(&agents[0], &instruction).await;
            assert_eq!(state(&task), "COMPLETED", "{transport}: {task}");
            assert_eq!(text(&task), "[0 -> 1]\n[1 -> 0]\nend", "{transport}, streaming: {streaming}");
            assert_eq!(task["status"]["message"]["role"], "ROLE_AGENT");
        }
    }
}

#[tokio::test]
async fn a_webhook_has_every_word_before_the_caller_has_its_answer() {
    let agents = [interop(Duration::ZERO).await, interop(Duration::ZERO).await];
    for transport in TRANSPORTS {
        // Each webhook takes its time, and the next one of the task waits for it.
        let slow = |_| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            200
        };
        let hooks = Webhooks::answering_later(slow).await;
        // Without a scheme, as some agents of the kit name it.
        let url = hooks.url.trim_start_matches("http://").trim_end_matches("/hook").to_owned();
        let behavior = Behavior::PushNotification(PushNotification { url });
        let how = How { transport, streaming: false, behavior };
        let task = follow(&agents[0], &ring(&agents, &how, word("end"), word)).await;
        assert_eq!(text(&task), "[1 -> 0]\nend", "{transport}");
        let got = hooks.got();
        let told: Vec<&str> = got.iter().map(|hook| text(&hook.body["statusUpdate"])).collect();
        for expected in ["end", "[1 -> 0]\nend"] {
            assert!(told.contains(&expected), "{transport}: {expected:?} is not among {told:?}");
        }
        for hook in &got {
            assert_eq!((&*hook.path, hook.header("x-a2a-notification-token")), ("/notifications", Some("interop")));
            assert!(hook.body.get("statusUpdate").is_some(), "the kit takes nothing else: {}", hook.body);
        }
    }
}

#[tokio::test]
async fn a_held_task_is_left_subscribed_to_and_canceled() {
    // Nobody waits so long: whoever has heard everything cancels.
    let agents = [interop(Duration::from_secs(60)).await, interop(Duration::from_secs(60)).await];
    for transport in TRANSPORTS {
        let how = How { transport, streaming: true, behavior: Behavior::Resubscribe(()) };
        let task = follow(&agents[0], &ring(&agents, &how, held("end"), held)).await;
        assert_eq!((state(&task), text(&task)), ("COMPLETED", "[1 -> 0]\nend"), "{transport}");
    }
    for agent in &agents {
        let params = json!({"status": "TASK_STATE_CANCELED", "historyLength": 9});
        let page = agent.call(Binding::Grpc, "ListTasks", params).await.result().clone();
        assert_eq!(page["totalSize"], TRANSPORTS.len(), "one for each binding: {page}");
    }
}

#[tokio::test]
async fn a_held_task_goes_on_without_its_client_and_ends_by_itself() {
    let agent = interop(Duration::ZERO).await;
    let part = serde_json::to_value(steps(vec![word("a"), held("b")]).part()).unwrap();
    let mut stream = agent.stream(Binding::Grpc, "SendStreamingMessage", params(&part)).await;
    let id = json!({"id": stream.next().await.unwrap()["task"]["id"]});
    drop(stream);
    let ended = async {
        loop {
            let task = agent.call(Binding::Grpc, "GetTask", id.clone()).await.result().clone();
            if state(&task) != "WORKING" {
                return task;
            }
        }
    };
    let task = tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();
    assert_eq!((state(&task), text(&task)), ("COMPLETED", "a\nb\ntask-finished"));
    // What it said while it was held is there for whoever comes back.
    let said: Vec<&str> =
        task["history"].as_array().unwrap().iter().filter_map(|message| message["parts"][0]["text"].as_str()).collect();
    assert_eq!(said, ["a\nb\ntask-finished"]);
    let stream = agent.stream(Binding::Grpc, "SendStreamingMessage", params(&part)).await.rest().await;
    let states: Vec<String> = stream.iter().skip(1).map(|frame| frame_state(frame).to_owned()).collect();
    assert_eq!(states, [vec!["WORKING"; 7], vec!["COMPLETED"]].concat());
}

#[tokio::test]
async fn an_instruction_is_found_by_type_by_name_or_as_base64() {
    let agent = interop(Duration::ZERO).await;
    let part = serde_json::to_value(word("found").part()).unwrap();
    let raw = part["raw"].clone();
    let base64 = STANDARD.encode(STANDARD.decode(raw.as_str().unwrap()).unwrap());
    let type_only = json!({"raw": raw, "mediaType": "application/x-protobuf"});
    let name_only = json!({"raw": raw, "filename": "instruction.bin", "mediaType": "text/plain"});
    for part in [part.clone(), type_only, name_only, json!({"text": base64}), json!({"text": format!(" {base64}\n")})] {
        let task = agent.call(Binding::Grpc, "SendMessage", params(&part)).await.result()["task"].clone();
        assert_eq!((state(&task), text(&task)), ("COMPLETED", "found"), "{part}");
    }
    for part in [
        json!({"text": "hello"}),
        json!({"raw": "", "mediaType": "application/x-protobuf"}),
        json!({"raw": raw, "mediaType": "text/plain"}),
    ] {
        let task = agent.call(Binding::Grpc, "SendMessage", params(&part)).await.result()["task"].clone();
        assert_eq!((state(&task), text(&task)), ("FAILED", "The message holds no instruction"), "{part}");
    }
}

#[tokio::test]
async fn a_call_that_fails_fails_the_task_and_says_nothing_of_why() {
    let agent = interop(Duration::ZERO).await;
    let how = |transport| How { transport, streaming: transport == "grpc", behavior: Behavior::SendMessage(()) };
    let mut nowhere = call(&agent, &how("jsonrpc"), word("end"));
    if let Some(Step::CallAgent(call)) = &mut nowhere.step {
        call.agent_card_uri = "http://127.0.0.1:1".to_owned();
    }
    let other_binding = call(&agent, &how("pigeon"), word("end"));
    let empty = ["jsonrpc", "grpc"].map(|transport| call(&agent, &how(transport), Instruction { step: None }));
    for instruction in [nowhere, other_binding].into_iter().chain(empty) {
        let task = follow(&agent, &steps(vec![word("[0 -> 1]"), instruction])).await;
        assert_eq!(state(&task), "FAILED");
        let told = task.to_string();
        assert!(!told.contains("127.0.0.1") && !told.contains("pigeon") && !told.contains("[0 -> 1]"), "{told}");
    }
}
