//! Extensions (DECISIONS W9): declared, activated and echoed; and the one that this server has, timestamps.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;

use protocol::{Object, Timestamps};
use serde_json::{Value, json};
use server::store::{Memory, Store};
use server::{Chunk, Setup};
use testing::{Binding, Scripted, Served, chunk, id, scripted, send, serve, to};

/// Works, makes an artifact in two pieces, and asks; answered, it needs an approval; approved, it is done.
fn agent() -> Scripted {
    scripted(|job, say| async move {
        match job.start {
            server::Start::Message => {
                say.working("on it").await?;
                let Chunk { mut artifact, .. } = chunk("log", "one", false, false);
                artifact.metadata = Some(Object::parse(r#"{"own": 1.0}"#).unwrap());
                say.artifact(Chunk { artifact, append: false, last_chunk: false }).await?;
                say.artifact(chunk("log", "two", true, true)).await?;
                say.working(()).await?;
                say.ask("which?").await?;
            }
            server::Start::Answer => say.need_approval("may I?").await?,
            _ => say.done("done").await?,
        }
        Ok(())
    })
}

async fn served() -> Served {
    serve(agent(), |setup: &mut Setup| setup.timestamps = true).await
}

/// What is told of the things that an agent made: each message and artifact, wherever it stands.
fn things(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(members)
            if members.contains_key("artifactId") || members.get("role") == Some(&"ROLE_AGENT".into()) =>
        {
            found.push(value);
        }
        Value::Object(members) => found.extend(members.values().flat_map(things)),
        Value::Array(items) => found.extend(items.iter().flat_map(things)),
        _ => {}
    }
    found
}

fn is_stamped(thing: &Value, name: Timestamps) -> bool {
    let made = thing["metadata"][name.field()].as_str().map(|made| made.parse::<protocol::Timestamp>().unwrap());
    assert_eq!(thing["extensions"] == json!([name.uri()]), made.is_some(), "{thing}");
    made.is_some()
}

#[tokio::test]
async fn w09_timestamps_are_declared_when_they_are_switched_on_and_never_required() {
    let mut with_longer_card = agent();
    with_longer_card.extended = Some(with_longer_card.card.clone());
    with_longer_card.card.capabilities.extended_agent_card = Some(true);
    let change = |setup: &mut Setup| {
        setup.timestamps = true;
        setup.credentials = vec![server::Credential { token: "t".into(), principal: "ada".into() }];
    };
    let served = serve(with_longer_card, change).await;
    let card = served.http("GET", "/.well-known/agent-card.json", &[], "").await.body;
    let token = [("authorization", "Bearer t")];
    let longer = served.call_with(Binding::Rpc, "GetExtendedAgentCard", json!({}), &token).await;
    for card in [&card, longer.result()] {
        let declared = card["capabilities"]["extensions"].as_array().unwrap();
        let uris: Vec<_> = declared.iter().map(|extension| extension["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, Timestamps::ALL.map(Timestamps::uri));
        assert!(declared.iter().all(|extension| extension.get("required").is_none()));
    }
    let plain = serve(agent(), |_| {}).await;
    let card = plain.http("GET", "/.well-known/agent-card.json", &[], "").await.body;
    assert!(card["capabilities"].get("extensions").is_none());
    let named = [("a2a-extensions", Timestamps::Specified.uri())];
    let answer = plain.call_with(Binding::Rpc, "SendMessage", send("x"), &named).await;
    assert!(answer.headers.get("a2a-extensions").is_none());
    assert!(things(answer.result()).iter().all(|thing| !is_stamped(thing, Timestamps::Specified)));
}

#[tokio::test]
async fn w09_whoever_activates_timestamps_reads_when_each_message_and_artifact_was_made() {
    let served = served().await;
    for binding in Binding::ALL {
        for name in Timestamps::ALL {
            let named = [("a2a-extensions", name.uri())];
            let answer = served.call_with(binding, "SendMessage", send("x"), &named).await;
            assert_eq!(answer.headers["a2a-extensions"], name.uri());
            let task = &answer.result()["task"];
            let made = things(task);
            assert_eq!(made.len(), 3, "two messages and an artifact: {task}");
            assert!(made.iter().all(|thing| is_stamped(thing, name)), "{binding:?}: {task}");
            assert_eq!(task["status"]["message"]["metadata"][name.field()], task["status"]["timestamp"]);
            assert_eq!(task["artifacts"][0]["metadata"]["own"], json!(1.0), "what the agent said itself stays");

            let stream = served.try_stream(binding, "SendStreamingMessage", send("x"), &named).await;
            let frames = stream.unwrap_or_else(|answer| panic!("{}", answer.body)).rest().await;
            let told: Vec<_> = frames.iter().flat_map(things).collect();
            assert_eq!(told.len(), 4, "{frames:?}");
            assert!(told.iter().all(|thing| is_stamped(thing, name)), "{binding:?}");
            let users = frames[0]["task"]["history"][0].as_object().unwrap();
            assert!(!users.contains_key("metadata") && !users.contains_key("extensions"), "the client's stays its own");

            // The task keeps them, whoever reads it.
            let read = served.call(binding, "GetTask", json!({"id": task["id"]})).await;
            assert_eq!(things(read.result()), made);
            assert!(read.headers.get("a2a-extensions").is_none());
        }
        let plain = served.call(binding, "SendMessage", send("x")).await;
        assert!(plain.headers.get("a2a-extensions").is_none());
        for thing in things(plain.result()) {
            assert!(thing.get("extensions").is_none() && !is_stamped(thing, Timestamps::Specified), "{thing}");
        }
        let both = Timestamps::ALL.map(Timestamps::uri).join(",");
        let answer = served.call_with(binding, "SendMessage", send("x"), &[("a2a-extensions", &both)]).await;
        assert_eq!(answer.headers["a2a-extensions"], Timestamps::Specified.uri(), "one of the two names is used");
        assert!(things(answer.result()).iter().all(|thing| is_stamped(thing, Timestamps::Specified)));
    }
}

#[tokio::test]
async fn w09_a_direct_reply_says_when_it_was_made() {
    let replying = scripted(|_, say| async move {
        say.reply("hello").await?;
        Ok(())
    });
    let served = serve(replying, |setup: &mut Setup| setup.timestamps = true).await;
    for binding in Binding::ALL {
        let named = [("a2a-extensions", Timestamps::Specified.uri())];
        let answer = served.call_with(binding, "SendMessage", send("x"), &named).await;
        assert!(is_stamped(&answer.result()["message"], Timestamps::Specified));
        let answer = served.call(binding, "SendMessage", send("x")).await;
        assert!(!is_stamped(&answer.result()["message"], Timestamps::Specified));
    }
}

#[tokio::test]
async fn w09_each_turn_is_as_its_message_asks_and_an_approval_goes_on_as_before_even_after_a_restart() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let start = || {
        let store = store.clone();
        serve(agent(), |setup: &mut Setup| (setup.timestamps, setup.store) = (true, store))
    };
    let named = [("a2a-extensions", Timestamps::Sampled.uri())];
    for activated in [true, false] {
        let served = start().await;
        let headers: &[_] = if activated { &named } else { &[] };
        // The first turn asks the opposite of the second.
        let first: &[_] = if activated { &[] } else { &named };
        let asked = served.call_with(Binding::Rpc, "SendMessage", send("x"), first).await;
        let task = id(&asked.result()["task"]);
        let answer = json!({"message": to(&task, "main")});
        let waits = served.call_with(Binding::Rest, "SendMessage", answer, headers).await;
        let status = &waits.result()["task"]["status"];
        assert_eq!(status["state"], "TASK_STATE_AUTH_REQUIRED");
        assert_eq!(is_stamped(&status["message"], Timestamps::Sampled), activated);
        served.stop().await;

        let served = start().await;
        assert_eq!(served.http("POST", &format!("/approve/{task}"), &[], "").await.status, 200);
        let done = served.until(&task, "TASK_STATE_COMPLETED").await;
        assert_eq!(is_stamped(&done["status"]["message"], Timestamps::Sampled), activated);
    }
}

#[tokio::test]
async fn w09_a_client_that_activates_an_extension_does_so_on_every_binding() {
    use client::live::LiveIds;
    use client::{Connection, Http, Limits, Reply, choose};
    use protocol::call::SendMessageRequest;
    use protocol::{Dial, Ids, Message, MessageId, Part, Role};

    let served = served().await;
    let http = Http::new(Dial::default(), Limits::default(), None);
    let card = http.card("", &served.url).await.unwrap();
    let offered = Timestamps::offered(&card).map(Timestamps::uri);
    for spoken in client::Binding::SPOKEN {
        let (interface, binding) = choose(&card, &[*spoken]).unwrap();
        let agent = Connection::new(http.clone(), &interface.url, binding, None).activating(offered);
        let message = Message::new(MessageId::new(LiveIds.next()).unwrap(), Role::User, vec![Part::text("x")]);
        let Reply::Task(task) = agent.send("", SendMessageRequest::new(message)).await.unwrap() else {
            panic!("a task was expected")
        };
        let message = task.status.message.as_ref().unwrap();
        assert_eq!(Timestamps::made(message.metadata.as_ref()), task.status.timestamp, "{spoken:?}");
        assert!(Timestamps::made(task.artifacts[0].metadata.as_ref()).is_some());
    }
}
