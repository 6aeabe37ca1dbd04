//! The clients of the public SDKs against the three agents, each a process, over every binding that both sides have.
//!
//! `interop/clients.py` and `interop/clients.mjs` make the calls and print what they saw, as the SDK understood it; what
//! it must have been is said here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use protocol::task::Change;
use protocol::{StreamResponse, Task};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use signature::{Form, check, jwks};
use testing::{Installed, Program, Sdk, programs, skip};

const BINDINGS: [&str; 3] = ["JSONRPC", "HTTP+JSON", "GRPC"];

/// What the client of an SDK saw over a binding.
struct Run {
    sdk: Sdk,
    binding: &'static str,
    facts: Value,
}

impl Run {
    /// A group of facts, and who saw them.
    fn of(&self, group: &str) -> (&Value, String) {
        let who = format!("{:?} over {}", self.sdk, self.binding);
        let facts = self.facts.get(group).unwrap_or_else(|| panic!("{who} says nothing of {group}"));
        if let Some(broke) = facts.get("broke") {
            panic!("{who}, {group}: {}", broke.as_str().unwrap());
        }
        (facts, who)
    }
}

fn run(client: &Installed, binding: &'static str, agents: &[Program]) -> Run {
    let mut command = client.command("clients");
    command.arg(binding).args(agents.iter().map(|agent| &agent.url));
    let output = command.output().unwrap();
    let facts = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        panic!("{command:?} printed no facts:\n{printed}{said}")
    });
    Run { sdk: client.sdk, binding, facts }
}

/// All that the clients saw. The agents run, and the SDKs are installed, once for all tests.
fn runs() -> &'static [Run] {
    static RUNS: OnceLock<Vec<Run>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let clients: Vec<Installed> = [Sdk::Python, Sdk::JavaScript]
            .into_iter()
            .filter_map(|sdk| {
                let client = sdk.installed(env!("CARGO_TARGET_TMPDIR"));
                client.map_err(|why| skip(&format!("the SDK for {sdk:?} cannot be installed: {why}"))).ok()
            })
            .collect();
        let key = tempfile::NamedTempFile::new().unwrap();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        fs::write(&key, &der).unwrap();
        let agent = |name, more: &[&str]| {
            let usual = ["--grpc", "127.0.0.1:0", "--store", "memory", "--allow-local-webhooks"];
            Program::start_with(name, &[&usual, more].concat())
        };
        let agents = [
            agent("test-runner", &["--pace", "20"]),
            agent("code-reviewer", &[]),
            agent("deployer", &["--signing-key", key.path().to_str().unwrap()]),
            // It never comes to its first word, so what is running is never over too soon.
            agent("test-runner", &["--pace", "3600000"]),
        ];
        std::thread::scope(|scope| {
            let (agents, runs) = (&agents, clients.iter().flat_map(|client| BINDINGS.map(|binding| (client, binding))));
            let running: Vec<_> =
                runs.map(|(client, binding)| scope.spawn(move || run(client, binding, agents))).collect();
            running.into_iter().map(|running| running.join().unwrap()).collect()
        })
    })
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap()
}

fn ids(tasks: &Value) -> Vec<&str> {
    tasks.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

/// The task as the frames of a stream make it.
fn told(frames: &Value, who: &str) -> Value {
    let (first, rest) = frames.as_array().unwrap().split_first().unwrap();
    let mut task: Task = serde_json::from_value(first["task"].clone()).unwrap_or_else(|_| panic!("{who}: {first}"));
    for frame in rest {
        let frame: StreamResponse = serde_json::from_value(frame.clone()).unwrap();
        task.apply(&Change::try_from(frame).unwrap()).unwrap();
    }
    serde_json::to_value(task).unwrap()
}

#[test]
fn the_clients_read_the_cards_of_all_three_agents() {
    for run in runs() {
        let (card, who) = run.of("card");
        for (agent, name) in
            [("testRunner", "test-runner"), ("codeReviewer", "code-reviewer"), ("deployer", "deployer")]
        {
            assert_eq!(card[agent]["name"], name, "{who}");
            let interfaces = card[agent]["supportedInterfaces"].as_array().unwrap();
            let bindings: Vec<_> = interfaces.iter().map(|interface| &interface["protocolBinding"]).collect();
            assert_eq!(bindings, BINDINGS, "{who}");
            assert!(interfaces.iter().all(|interface| interface["protocolVersion"] == "1.0"), "{who}");
        }
        assert_eq!(card["testRunner"]["capabilities"], json!({"streaming": true, "pushNotifications": true}), "{who}");
        let scheme = &card["deployer"]["securitySchemes"]["bearer"]["httpAuthSecurityScheme"];
        assert_eq!(scheme["scheme"], "Bearer", "{who}: {}", card["deployer"]);
    }
}

#[test]
fn a_question_gets_a_message() {
    for run in runs() {
        let (answer, who) = run.of("message");
        let message = &answer["message"];
        assert_eq!(message["role"], "ROLE_AGENT", "{who}");
        let text = message["parts"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("I review unified diffs in Python"), "{who}: {text}");
        assert!(!message["contextId"].as_str().unwrap().is_empty(), "{who}");
    }
}

#[test]
fn a_blocking_send_gets_the_task_when_it_is_done() {
    for run in runs() {
        let (task, who) = run.of("task");
        assert_eq!(state(task), "TASK_STATE_COMPLETED", "{who}");
        assert_eq!(task["status"]["message"]["parts"][0]["text"], "1 failed, 11 passed", "{who}");
        assert_eq!(task["artifacts"][0]["artifactId"], "test-log", "{who}");
        let summary = &task["artifacts"][1]["parts"][0]["data"];
        assert_eq!((summary["passed"].as_f64(), summary["failed"].as_f64()), (Some(11.0), Some(1.0)), "{who}");
        let history = task["history"].as_array().unwrap();
        let roles: Vec<_> = history.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["ROLE_USER", "ROLE_AGENT"], "{who}");
    }
}

#[test]
fn a_stream_begins_with_the_task_and_its_frames_make_the_task_that_a_blocking_send_gets() {
    for run in runs() {
        let (frames, who) = run.of("stream");
        assert_eq!(state(&frames[0]["task"]), "TASK_STATE_SUBMITTED", "{who}");
        let last = frames.as_array().unwrap().last().unwrap();
        assert_eq!(state(&last["statusUpdate"]), "TASK_STATE_COMPLETED", "{who}");
        let (task, blocking) = (told(frames, &who), run.of("task").0);
        let content = |task: &Value| {
            let artifacts = task["artifacts"].as_array().unwrap().iter();
            artifacts.map(|artifact| artifact["parts"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(content(&task), content(blocking), "{who}");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{who}");
    }
}

#[test]
fn a_task_that_was_returned_immediately_can_be_polled_until_it_is_done() {
    for run in runs() {
        let (poll, who) = run.of("poll");
        let first = state(&poll["first"]);
        assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&first), "{who}: {first}");
        assert_eq!(state(&poll["last"]), "TASK_STATE_COMPLETED", "{who}");
        assert_eq!(poll["first"]["id"], poll["last"]["id"], "{who}");
        assert_eq!(poll["last"]["history"].as_array().unwrap().len(), 2, "{who}");
        assert!(poll["trimmed"]["history"].as_array().is_none_or(Vec::is_empty), "{who}: no history was asked for");
        assert_eq!(poll["trimmed"]["artifacts"], poll["last"]["artifacts"], "{who}");
    }
}

#[test]
fn a_task_that_asks_goes_on_with_the_answer() {
    for run in runs() {
        let (question, who) = run.of("question");
        let (asked, answered) = (&question["asked"], &question["answered"]);
        assert_eq!(state(asked), "TASK_STATE_INPUT_REQUIRED", "{who}");
        let words = &asked["status"]["message"]["parts"][0]["text"];
        assert_eq!(words, "Which base branch should I compare this diff against?", "{who}");
        assert_eq!(state(answered), "TASK_STATE_COMPLETED", "{who}");
        assert_eq!((&asked["id"], &asked["contextId"]), (&answered["id"], &answered["contextId"]), "{who}");
        // The diff came as bytes and was read: it is the one with two mistakes.
        assert_eq!(answered["status"]["message"]["parts"][0]["text"], "2 findings", "{who}");
        assert_eq!(answered["artifacts"][0]["parts"][1]["data"]["findings"].as_array().unwrap().len(), 2, "{who}");
    }
}

#[test]
fn an_approval_outside_the_protocol_lets_a_deploy_go_on_while_the_client_watches() {
    for run in runs() {
        let (approval, who) = run.of("approval");
        assert_eq!(state(&approval["waiting"]), "TASK_STATE_AUTH_REQUIRED", "{who}");
        assert_eq!(state(&approval["seen"][0]["task"]), "TASK_STATE_AUTH_REQUIRED", "{who}");
        let task = told(&approval["seen"], &who);
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{who}");
        assert_eq!(task["artifacts"][0]["artifactId"], "deploy-report", "{who}");
    }
}

#[test]
fn a_running_task_is_canceled_once() {
    for run in runs() {
        let (cancel, who) = run.of("cancel");
        assert_eq!(state(&cancel["canceled"]), "TASK_STATE_CANCELED", "{who}");
        assert_eq!(cancel["running"]["id"], cancel["canceled"]["id"], "{who}");
        assert_eq!(cancel["again"], "TaskNotCancelableError", "{who}");
    }
}

#[test]
fn a_subscription_shows_the_task_and_then_its_end_and_none_is_had_to_an_ended_task() {
    for run in runs() {
        let (subscribe, who) = run.of("subscribe");
        assert!(subscribe["seen"][0]["task"].is_object(), "{who}: {}", subscribe["seen"]);
        assert_eq!(state(&told(&subscribe["seen"], &who)), "TASK_STATE_CANCELED", "{who}");
        assert_eq!(subscribe["after"], "UnsupportedOperationError", "{who}");
    }
}

#[test]
fn pages_of_a_list_hold_each_task_of_the_context_once_the_newest_first() {
    for run in runs() {
        let (listing, who) = run.of("listing");
        let made: Vec<&str> = listing["made"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        let (first, second) = (&listing["first"], &listing["second"]);
        assert_eq!(ids(&first["tasks"]), [made[2], made[1]], "{who}");
        assert_eq!(ids(&second["tasks"]), [made[0]], "{who}");
        assert_eq!((first["totalSize"].as_u64(), first["pageSize"].as_u64()), (Some(3), Some(2)), "{who}");
        assert!(second["nextPageToken"].as_str().is_none_or(str::is_empty), "{who}: {second}");
        assert!(first["tasks"][0]["artifacts"].as_array().is_none_or(Vec::is_empty), "{who}: {first}");
    }
}

#[test]
fn webhooks_tell_each_event_with_the_credentials_of_their_config() {
    for run in runs() {
        let (push, who) = run.of("push");
        assert_eq!(push["completed"], true, "{who}");
        let webhooks = push["webhooks"].as_array().unwrap();
        assert_eq!(webhooks.len(), 8, "{who}");
        for webhook in webhooks {
            let (event, headers) = (&webhook["event"], &webhook["headers"]);
            let update = event.get("statusUpdate").or_else(|| event.get("artifactUpdate")).unwrap();
            assert_eq!(update["taskId"], push["task"], "{who}");
            assert_eq!(headers["content-type"], "application/a2a+json", "{who}");
            assert_eq!(headers["authorization"], "Bearer webhook-secret", "{who}");
            assert_eq!(headers["x-a2a-notification-token"], "webhook-token", "{who}");
            assert_eq!(headers["a2a-notification-token"], "webhook-token", "{who}");
        }
        assert_eq!(state(&webhooks[7]["event"]["statusUpdate"]), "TASK_STATE_COMPLETED", "{who}");
    }
}

#[test]
fn push_configs_are_made_read_listed_and_taken_away() {
    for run in runs() {
        let (push, who) = run.of("push");
        assert_eq!(push["made"]["id"], "mine", "{who}");
        assert_eq!(push["made"]["authentication"]["credentials"], "webhook-secret", "{who}");
        assert_eq!(push["read"], push["made"], "{who}");
        assert_eq!(push["before"]["configs"], json!([push["made"]]), "{who}");
        assert!(push["after"]["configs"].as_array().is_none_or(Vec::is_empty), "{who}: {}", push["after"]);
    }
}

#[test]
fn the_extended_card_is_for_callers_with_a_token() {
    for run in runs() {
        let (extended, who) = run.of("extended");
        assert_eq!(ids(&extended["known"]["skills"]), ["deploy", "rollback"], "{who}");
        let unknown = extended["unknown"].as_str().unwrap();
        assert!(!unknown.starts_with("no error"), "{who}: {unknown}");
    }
}

#[test]
fn refusals_become_the_errors_that_the_sdks_have_for_them() {
    for run in runs() {
        let (errors, who) = run.of("errors");
        let expected = [
            ("unknownTask", "TaskNotFoundError"),
            ("cancelEnded", "TaskNotCancelableError"),
            ("messageToEnded", "UnsupportedOperationError"),
            ("mediaType", "ContentTypeNotSupportedError"),
            ("noPush", "PushNotificationNotSupportedError"),
        ];
        for (refused, error) in expected {
            assert_eq!(errors[refused], error, "{who}: {refused}");
        }
        // Wrong fields come as a BadRequest. Off JSON-RPC the SDKs know errors by their ErrorInfo only.
        let wrong_field = match (run.sdk, run.binding) {
            (Sdk::Python, "JSONRPC") => "InvalidParamsError",
            (Sdk::Python, _) => "A2AClientError",
            (Sdk::JavaScript, "JSONRPC") => "RequestMalformedError",
            (Sdk::JavaScript, _) => "A2AError",
            (Sdk::Rust, _) => unreachable!("it has no client here"),
        };
        for refused in ["otherContext", "pageSize"] {
            assert_eq!(errors[refused], wrong_field, "{who}: {refused}");
        }
    }
}

#[test]
fn w14_a_card_that_an_agent_signed_verifies_with_the_sdks_and_a_changed_one_does_not() {
    for run in runs() {
        let (signatures, who) = run.of("signatures");
        let deployer = run.of("card").0["deployer"]["supportedInterfaces"][0]["url"].as_str().unwrap();
        let keys = deployer.replace("/a2a/jsonrpc", signature::JWKS_PATH);
        assert_eq!(signatures["verifiedWith"][0], keys, "{who}");
        let refused = if run.sdk == Sdk::Python { "InvalidSignaturesError" } else { "Error" };
        assert_eq!(signatures["tampered"], refused, "{who}");
    }
}

#[test]
fn w14_a_card_that_an_sdk_signed_verifies_here_and_a_changed_one_does_not() {
    for run in runs() {
        let (signatures, who) = run.of("signatures");
        let keys = jwks::read(signatures["keys"].to_string().as_bytes()).unwrap();
        let mut card = signatures["signed"].clone();
        assert_eq!(check(&card, &keys)[0].result, Ok(Form::Specification), "{who}: {card}");
        card["description"] = "another".into();
        assert!(check(&card, &keys)[0].result.is_err(), "{who}");
    }
}

/// What the planner says of a card that somebody serves.
fn verified(card: &Value, keys: &Path) -> (Option<i32>, String) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let card = card.to_string();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            asked.extend(byte);
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", card.len());
        write!(stream, "{head}Connection: close\r\n\r\n{card}").unwrap();
    });
    let mut planner = Command::new(programs().join("planner"));
    let output = planner.args(["card", &url, "--verify", "--jwks"]).arg(keys).output().unwrap();
    serving.join().unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said)
}

#[test]
fn w14_the_planner_says_that_a_card_which_an_sdk_signed_holds_and_a_changed_one_does_not() {
    for run in runs() {
        let (signatures, who) = run.of("signatures");
        let keys = tempfile::NamedTempFile::new().unwrap();
        fs::write(&keys, signatures["keys"].to_string()).unwrap();
        let (code, said) = verified(&signatures["signed"], keys.path());
        assert_eq!(code, Some(0), "{who}: {said}");
        assert!(said.contains(": holds, over the form of specification 8.4.1"), "{who}: {said}");
        let mut changed = signatures["signed"].clone();
        changed["name"] = "another".into();
        let (code, said) = verified(&changed, keys.path());
        assert!(code == Some(1) && said.contains("no signature of the card holds"), "{who}: {said}");
    }
}
