//! What the kit has a requirement for and no test: AUTH-*, BIND-EQUIV-*, CARD-SIGN-*, VER-CLIENT-* and VER-SERVER-001. A
//! test is named after the requirement.

use client::{Connection, Http, Limits, choose};
use protocol::{AgentCard, Call, Dial, ErrorKind, Method};
use script::{Scripted, Story};
use serde_json::{Value, json, value::to_raw_value};
use server::{Credential, Setup, Start};
use signature::{Form, Key};
use testing::{Answer, Binding, Served, frame_state, message, scripted, send, serve, state, to};

use crate::{FILE, UNKNOWN, conformance, next, played, refused_as, sent, task};

const ADA: [(&str, &str); 1] = [("authorization", "Bearer t-ada")];
const BOB: [(&str, &str); 1] = [("authorization", "Bearer t-bob")];

/// The agent that has everything, for callers that it knows.
async fn guarded() -> Served {
    let story = Story::parse("conformance.toml", FILE).unwrap();
    let agent = Scripted::of(&story, "conformance.toml", None, Some("ext")).unwrap();
    serve(agent, |setup| {
        setup.credentials =
            ["ada", "bob"].map(|name| Credential { token: format!("t-{name}"), principal: name.into() }).into();
    })
    .await
}

/// Each operation on a task, with what it is asked.
fn on(task: &Value) -> Vec<(&'static str, Value)> {
    let named = json!({"taskId": task, "id": "hook"});
    let mut hook = named.clone();
    hook["url"] = json!("http://localhost:1/");
    let mut message = played("tck-input-required");
    message["taskId"] = task.clone();
    vec![
        ("SendMessage", json!({"message": message})),
        ("SendStreamingMessage", json!({"message": message})),
        ("GetTask", json!({"id": task})),
        ("SubscribeToTask", json!({"id": task})),
        ("CreateTaskPushNotificationConfig", hook),
        ("GetTaskPushNotificationConfig", named.clone()),
        ("ListTaskPushNotificationConfigs", json!({"taskId": task})),
        ("DeleteTaskPushNotificationConfig", named),
        ("CancelTask", json!({"id": task})),
    ]
}

/// Those that are about no task.
fn on_none() -> [(&'static str, Value); 2] {
    [("ListTasks", json!({})), ("GetExtendedAgentCard", json!({}))]
}

/// Makes a call of either kind. Of a stream only the first frame is waited for.
async fn made(
    agent: &Served,
    binding: Binding,
    method: &str,
    params: Value,
    headers: &[(&str, &str)],
) -> Result<Value, Answer> {
    if !["SendStreamingMessage", "SubscribeToTask"].contains(&method) {
        let answer = agent.call_with(binding, method, params, headers).await;
        return if answer.status == 401 || answer.error().is_some() {
            Err(answer)
        } else {
            Ok(answer.result().clone())
        };
    }
    let mut stream = agent.try_stream(binding, method, params, headers).await?;
    Ok(stream.next().await.unwrap())
}

#[tokio::test]
async fn auth_server_002_every_request_shows_who_makes_it() {
    let agent = guarded().await;
    for binding in Binding::ALL {
        let mut operations = on(&json!(UNKNOWN));
        operations.extend(on_none());
        assert_eq!(operations.len(), Method::ALL.len());
        for (method, params) in operations {
            for headers in [&[][..], &[("authorization", "Bearer t-eve")]] {
                let refused = made(&agent, binding, method, params.clone(), headers).await.unwrap_err();
                assert!(refused.is_unauthenticated(), "{binding:?} {method}: {}", refused.body);
            }
        }
    }
}

#[tokio::test]
async fn auth_scope_001_no_operation_on_another_caller_s_task_is_allowed() {
    let agent = guarded().await;
    for binding in Binding::ALL {
        let asked = json!({"message": played("tck-input-required")});
        let task = made(&agent, binding, "SendMessage", asked, &ADA).await.unwrap()["task"].clone();
        for (method, params) in on(&task["id"]) {
            let refused = made(&agent, binding, method, params, &BOB).await.unwrap_err();
            refused_as(&refused, binding, ErrorKind::TaskNotFound);
        }
        for (method, params) in on(&task["id"]) {
            let allowed = made(&agent, binding, method, params, &ADA).await;
            assert!(allowed.is_ok(), "{binding:?} {method}: {:?}", allowed.map_err(|answer| answer.body));
        }
    }
}

#[tokio::test]
async fn auth_scope_002_a_list_holds_the_caller_s_own_tasks() {
    let agent = guarded().await;
    for binding in Binding::ALL {
        let context = json!(format!("context-{binding:?}"));
        for (headers, count) in [(&ADA, 1), (&BOB, 2)] {
            for _ in 0..count {
                let mut message = played("tck-complete-task");
                message["contextId"] = context.clone();
                made(&agent, binding, "SendMessage", json!({"message": message}), headers).await.unwrap();
            }
        }
        for (headers, count) in [(&ADA, 1), (&BOB, 2)] {
            let params = json!({"contextId": context});
            let page = made(&agent, binding, "ListTasks", params, headers).await.unwrap();
            assert_eq!((&page["totalSize"], page["tasks"].as_array().unwrap().len()), (&json!(count), count));
        }
    }
}

#[tokio::test]
async fn auth_scope_003_a_task_of_another_caller_and_no_task_are_told_alike() {
    let agent = guarded().await;
    for binding in Binding::ALL {
        let asked = json!({"message": played("tck-input-required")});
        let task = made(&agent, binding, "SendMessage", asked, &ADA).await.unwrap()["task"].clone();
        for ((method, theirs), (_, none)) in on(&task["id"]).into_iter().zip(on(&json!(UNKNOWN))) {
            let hidden = made(&agent, binding, method, theirs, &BOB).await.unwrap_err();
            let absent = made(&agent, binding, method, none, &BOB).await.unwrap_err();
            let told = |answer: &Answer, id: &str| answer.error().unwrap().to_string().replace(id, "ID");
            let (hidden, absent) = (told(&hidden, task["id"].as_str().unwrap()), told(&absent, UNKNOWN));
            assert_eq!(hidden, absent, "{binding:?} {method}");
        }
    }
}

/// Needs an approval of everything, and asks again until it has one.
async fn careful() -> Served {
    serve(
        scripted(|job, say| async move {
            match job.start {
                Start::Approval { .. } => say.done("live").await?,
                _ => say.need_approval(format!("Allow it at {}", job.base_url)).await?,
            }
            Ok(())
        }),
        |_: &mut Setup| {},
    )
    .await
}

async fn approve(agent: &Served, task: &Value) {
    let path = format!("/approve/{}", task["id"].as_str().unwrap());
    assert_eq!(agent.http("POST", &path, &[], "{}").await.status, 200);
}

#[tokio::test]
async fn auth_intask_001_what_needs_an_approval_is_a_task() {
    let agent = careful().await;
    for binding in Binding::ALL {
        let reply = agent.call(binding, "SendMessage", send("deploy")).await.result().clone();
        assert!(reply.get("task").is_some() && reply.get("message").is_none(), "{binding:?}: {reply}");
    }
}

#[tokio::test]
async fn auth_intask_002_a_task_that_needs_an_approval_says_so_by_its_state() {
    let agent = careful().await;
    for binding in Binding::ALL {
        let task = agent.call(binding, "SendMessage", send("deploy")).await.result()["task"].clone();
        assert_eq!(state(&task), "AUTH_REQUIRED", "{binding:?}");
        let read = agent.call(binding, "GetTask", json!({"id": task["id"]})).await.result().clone();
        assert_eq!(state(&read), "AUTH_REQUIRED", "{binding:?}");
    }
}

#[tokio::test]
async fn auth_intask_003_its_status_says_what_is_needed() {
    let agent = careful().await;
    for binding in Binding::ALL {
        let task = agent.call(binding, "SendMessage", send("deploy")).await.result()["task"].clone();
        let told = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(told.starts_with("Allow it at http://"), "{binding:?}: {told}");
    }
}

#[tokio::test]
async fn auth_intask_004_the_approval_comes_from_outside() {
    let agent = careful().await;
    for binding in Binding::ALL {
        let task = agent.call(binding, "SendMessage", send("deploy")).await.result()["task"].clone();
        let subscribed = agent.stream(binding, "SubscribeToTask", json!({"id": task["id"]})).await;
        approve(&agent, &task).await;
        assert_eq!(frame_state(subscribed.rest().await.last().unwrap()), "COMPLETED", "{binding:?}");
    }
}

#[tokio::test]
async fn auth_intask_005_a_stream_stays_open_while_an_approval_is_needed() {
    let agent = careful().await;
    for binding in Binding::ALL {
        let mut stream = agent.stream(binding, "SendStreamingMessage", send("deploy")).await;
        let task = stream.next().await.unwrap()["task"].clone();
        while frame_state(&stream.next().await.unwrap()) != "AUTH_REQUIRED" {}
        approve(&agent, &task).await;
        assert_eq!(frame_state(stream.rest().await.last().unwrap()), "COMPLETED", "{binding:?}");
    }
}

#[tokio::test]
async fn auth_intask_006_a_message_is_taken_while_an_approval_is_needed() {
    let agent = careful().await;
    for binding in Binding::ALL {
        let task = agent.call(binding, "SendMessage", send("deploy")).await.result()["task"].clone();
        let message = to(task["id"].as_str().unwrap(), "I approve");
        let again = agent.call(binding, "SendMessage", json!({"message": message})).await.result()["task"].clone();
        assert_eq!((&again["id"], state(&again)), (&task["id"], "AUTH_REQUIRED"), "{binding:?}: and is no approval");
    }
}

/// A connection of this workspace's client to each interface of an agent.
async fn connections(agent: &Served, token: &str) -> Vec<Connection> {
    let http = Http::new(Dial::default(), Limits::default(), None);
    let card = http.card("card", &agent.url).await.unwrap();
    let connect = |spoken: &client::Binding| {
        let (interface, binding) = choose(&card, &[*spoken]).unwrap();
        Connection::new(http.clone(), &*interface.url, binding, Some(token.to_owned()))
    };
    assert_eq!(client::Binding::SPOKEN.len(), Binding::ALL.len());
    client::Binding::SPOKEN.iter().map(connect).collect()
}

#[tokio::test]
async fn ver_client_001_our_client_names_the_version_in_every_request() {
    // Whoever names none is refused, as VER-SERVER-003 shows.
    let agent = guarded().await;
    for connection in connections(&agent, "t-ada").await {
        let mut operations = on(&json!(UNKNOWN));
        operations.extend(on_none());
        for (method, params) in operations {
            let method = Method::from_name(method).unwrap();
            let call = Call::read(method, Some(&to_raw_value(&params).unwrap())).unwrap();
            let answer = connection.open("call", &call).await;
            let told = match answer {
                Ok(opened) => String::from_utf8(opened.whole().await.unwrap().body).unwrap(),
                Err(error) => error.to_string(),
            };
            assert!(!told.contains(ErrorKind::VersionNotSupported.message()), "{method:?}: {told}");
        }
    }
}

#[tokio::test]
async fn ver_client_002_the_last_number_of_a_version_decides_nothing() {
    let agent = conformance("full").await;
    let get = json!({"id": UNKNOWN});
    for binding in Binding::ALL {
        for version in ["1.0", "1.0.1", "1.0.99"] {
            let answer = agent.call_with(binding, "GetTask", get.clone(), &[("a2a-version", version)]).await;
            refused_as(&answer, binding, ErrorKind::TaskNotFound);
        }
    }
    let http = Http::new(Dial::default(), Limits::default(), None);
    let mut card = http.card("card", &agent.url).await.unwrap();
    card.supported_interfaces[0].protocol_version = "1.0.99".to_owned();
    assert_eq!(choose(&card, client::Binding::SPOKEN).unwrap().0.url, card.supported_interfaces[0].url);
    card.supported_interfaces[0].protocol_version = "1.1".to_owned();
    assert_eq!(choose(&card, client::Binding::SPOKEN).unwrap().0.url, card.supported_interfaces[1].url);
}

#[tokio::test]
async fn ver_server_001_a_request_of_another_version_is_never_handled_as_one_of_ours() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        for version in ["", "0.3", "1.1", "2.0"] {
            let mut message = played("tck-complete-task");
            message["contextId"] = json!("of-another-version");
            let params = json!({"message": message});
            let answer = agent.call_with(binding, "SendMessage", params, &[("a2a-version", version)]).await;
            refused_as(&answer, binding, ErrorKind::VersionNotSupported);
        }
        let listed = agent.call(binding, "ListTasks", json!({"contextId": "of-another-version"})).await;
        assert_eq!(listed.result()["totalSize"], 0, "{binding:?}");
    }
}

#[tokio::test]
async fn bind_equiv_001_every_operation_is_there_on_every_binding() {
    let agent = guarded().await;
    for binding in Binding::ALL {
        let asked = json!({"message": played("tck-input-required")});
        let task = made(&agent, binding, "SendMessage", asked, &ADA).await.unwrap()["task"].clone();
        for (method, params) in on(&task["id"]).into_iter().chain(on_none()) {
            let answer = made(&agent, binding, method, params, &ADA).await;
            assert!(answer.is_ok(), "{binding:?} {method}: {:?}", answer.map_err(|answer| answer.body));
        }
    }
}

#[tokio::test]
async fn bind_equiv_002_what_was_made_over_one_binding_reads_the_same_over_the_others() {
    let agent = conformance("full").await;
    for binding in Binding::ALL {
        let open = task(&agent, binding, "tck-input-required").await;
        let made = sent(&agent, binding, next("tck-artifact-data", &open)).await["task"].clone();
        for other in Binding::ALL {
            let read = agent.call(other, "GetTask", json!({"id": made["id"]})).await.result().clone();
            assert_eq!(plain(&read), plain(&made), "made over {binding:?}, read over {other:?}");
            let params = json!({"contextId": made["contextId"], "includeArtifacts": true});
            let listed = agent.call(other, "ListTasks", params).await.result()["tasks"][0].clone();
            assert_eq!(plain(&listed)["artifacts"], plain(&made)["artifacts"], "{binding:?}, {other:?}");
        }
    }
}

/// The numbers of a value as gRPC carries them.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), plain(member))).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn bind_equiv_003_the_same_fault_has_the_same_reason_on_every_binding() {
    let mut told = Vec::new();
    for binding in Binding::ALL {
        let faults = crate::wire::faults(binding).await;
        told.push(faults.iter().map(|(kind, answer)| (*kind, answer.reason().to_owned())).collect::<Vec<_>>());
    }
    assert!(told.iter().all(|reasons| *reasons == told[0]), "{told:?}");
}

#[tokio::test]
async fn bind_equiv_004_the_same_credential_opens_every_binding() {
    let agent = guarded().await;
    let mut contexts = Vec::new();
    for binding in Binding::ALL {
        for headers in [ADA, [("authorization", "bearer t-ada")]] {
            let params = json!({"message": message("hello")});
            let reply = made(&agent, binding, "SendMessage", params, &headers).await.unwrap();
            contexts.push(reply["task"]["id"].clone());
        }
    }
    for binding in Binding::ALL {
        let page = made(&agent, binding, "ListTasks", json!({}), &ADA).await.unwrap();
        assert_eq!(page["totalSize"], contexts.len(), "{binding:?}: and whoever shows it is the same caller");
    }
}

/// An agent whose card is signed, its card, and the keys that sign it.
async fn signed() -> (Served, Value, Vec<Key>) {
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
    let random = ring::rand::SystemRandom::new();
    let keys: Vec<Key> = (0..2)
        .map(|_| {
            let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            Key::es256_pkcs8("", made.as_ref()).unwrap().named_by_thumbprint()
        })
        .collect();
    let signing = keys.clone();
    let agent = serve(scripted(|_, _| async { Ok(()) }), |setup| setup.signing_keys = signing).await;
    let card = agent.http("GET", "/.well-known/agent-card.json", &[], "").await.body;
    (agent, card, keys)
}

/// For each signature of a card whether it holds.
fn hold(card: &Value, keys: &[Key]) -> Vec<bool> {
    signature::check(card, keys).into_iter().map(|checked| checked.result.is_ok()).collect()
}

#[tokio::test]
async fn card_sign_001_a_card_is_signed_in_the_canonical_form() {
    let (_agent, card, keys) = signed().await;
    assert!(hold(&card, &keys).into_iter().all(|holds| holds));
    // Other blanks and another order of the members are the same card; another word is not.
    let Value::Object(members) = &card else { panic!() };
    let turned: serde_json::Map<String, Value> = members.clone().into_iter().rev().collect();
    let turned: Value = serde_json::from_str(&serde_json::to_string_pretty(&turned).unwrap()).unwrap();
    assert!(hold(&turned, &keys).into_iter().all(|holds| holds));
    let mut changed = card.clone();
    changed["description"] = json!("Plays another test.");
    assert!(hold(&changed, &keys).into_iter().all(|holds| !holds));
    let read: AgentCard = serde_json::from_value(card.clone()).unwrap();
    assert_eq!(signature::canonical(&read).unwrap(), Form::Specification.text(&card).unwrap());
}

#[tokio::test]
async fn card_sign_002_signatures_are_no_part_of_what_is_signed() {
    let (_agent, mut card, keys) = signed().await;
    let signatures = card["signatures"].as_array().unwrap().clone();
    assert!(signatures.len() >= keys.len());
    for signature in signatures {
        card["signatures"] = json!([signature]);
        assert_eq!(hold(&card, &keys), [true], "without the others");
    }
}

#[tokio::test]
async fn card_sign_003_the_header_of_a_signature_names_its_algorithm_its_type_and_its_key() {
    use base64::Engine;
    let (_agent, card, keys) = signed().await;
    for signature in card["signatures"].as_array().unwrap() {
        let protected = signature["protected"].as_str().unwrap();
        let header = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(protected).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        assert_eq!((&header["alg"], &header["typ"]), (&json!("ES256"), &json!("JOSE")));
        assert!(keys.iter().any(|key| header["kid"] == key.id()), "{header}");
        assert!(signature["signature"].is_string());
    }
}

#[tokio::test]
async fn card_sign_004_a_key_that_was_withdrawn_proves_nothing() {
    let (_agent, card, mut keys) = signed().await;
    let withdrawn = keys.pop().unwrap();
    let held = hold(&card, &keys);
    assert!(held.contains(&true) && held.contains(&false), "the other one still does: {held:?}");
    assert!(hold(&card, &[]).into_iter().all(|holds| !holds));
    assert!(hold(&card, &[withdrawn]).contains(&true));
}
