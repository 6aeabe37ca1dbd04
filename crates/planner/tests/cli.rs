//! The program `planner` against an agent that plays: what it prints and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use played::{SKILLS, Says, alone, status, task};
use serde_json::json;
use tokio::process::Command;

fn planner(arguments: &[&str]) -> Command {
    let mut planner = Command::new(env!("CARGO_BIN_EXE_planner"));
    planner.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    planner
}

/// Exit code, standard output and standard error.
fn read(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

async fn run(arguments: &[&str]) -> (i32, String, String) {
    read(planner(arguments).output().await.unwrap())
}

#[tokio::test]
async fn a_call_ends_with_0_when_done_with_1_on_the_agents_error_and_with_2_when_there_is_no_answer() {
    let agent =
        alone(true, &SKILLS, |method, params, _| match (method, params["message"]["parts"][0]["text"].as_str()) {
            ("SendMessage", Some("work")) => Says::Result(json!({"task": task("COMPLETED", "done")})),
            ("SendMessage", _) => Says::Other(502, "text/html", "<html>Bad Gateway"),
            _ => Says::Error(-32001, "Task not found"),
        });
    let agent = agent.await.origin;
    let done = run(&["send", &agent, "work"]).await;
    assert_eq!(done, (0, "task 0123456789 is TASK_STATE_COMPLETED: done\n".to_owned(), String::new()));
    let (code, out, _) = run(&["send", &agent, "work", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["id"]), (0, &json!("0123456789")));
    let (code, out, error) = run(&["get", &agent, "nothing"]).await;
    assert_eq!((code, out.as_str(), error.as_str()), (1, "", "error -32001: Task not found\n"));
    let (code, _, error) = run(&["send", &agent, "other"]).await;
    assert!(code == 2 && error.contains("502 text/html") && error.contains("Bad Gateway"), "{code} {error}");
    let (code, _, error) = run(&["card", "http://127.0.0.1:9/agents/x"]).await;
    assert!(code == 2 && error.contains("tried http://127.0.0.1:9/.well-known/agent-card.json"), "{code} {error}");
}

#[tokio::test]
async fn a_stream_that_ends_before_its_task_is_no_success() {
    let agent = alone(true, &SKILLS, |_, params, _| match params["message"]["parts"][0]["text"].as_str().unwrap() {
        "early" => Says::Stream(vec![json!({"task": task("WORKING", "on it")})]),
        "asks" => Says::Stream(vec![json!({"task": task("WORKING", "on it")}), status("INPUT_REQUIRED")]),
        "open" => Says::OpenStream(vec![json!({"task": task("WORKING", "on it")}), status("COMPLETED")]),
        _ => Says::Other(200, "text/event-stream", "{}"),
    });
    let agent = agent.await.origin;
    let (code, out, error) = run(&["send", &agent, "early", "--stream"]).await;
    assert_eq!((code, out.as_str()), (1, "task 0123456789 is TASK_STATE_WORKING: on it\n"));
    assert_eq!(error, "the stream ended while the task is TASK_STATE_WORKING\n");
    assert_eq!(run(&["send", &agent, "asks", "--stream"]).await.0, 0);
    assert_eq!(run(&["send", &agent, "open", "--stream"]).await.0, 0);
    let (code, out, error) = run(&["send", &agent, "none", "--stream"]).await;
    assert!(code == 2 && out.is_empty() && error.contains("not one event came"), "{code} {error}");
}

#[tokio::test]
async fn the_timeout_ends_everything_and_says_so() {
    let agent =
        alone(true, &SKILLS, |method, params, _| match (method, params["message"]["parts"][0]["text"].as_str()) {
            ("SendMessage", Some("wait")) => Says::Silence,
            ("SendMessage", _) => Says::Result(json!({"task": task("WORKING", "for ever")})),
            ("SubscribeToTask", _) => Says::OpenStream(vec![json!({"task": task("WORKING", "for ever")})]),
            _ => Says::Silence,
        });
    let agent = agent.await;
    let silent = alone(true, &SKILLS, |_, _, _| Says::Silence).await;
    let (code, _, error) = run(&["ship", "--agent", &silent.origin, "--timeout", "0.5"]).await;
    let message = silent.stage.sent.lock().unwrap()[0]["message"]["messageId"].as_str().unwrap().to_owned();
    let expected = format!(
        "the job took longer than 0.5 s and is given up; no answer was heard to message {message} to player, so it may \
         still be done\n"
    );
    assert_eq!((code, error), (2, expected));
    let since = Instant::now();
    let (code, _, error) = run(&["send", &agent.origin, "wait", "--timeout", "0.5"]).await;
    assert_eq!((code, error.as_str()), (2, "it took longer than 0.5 s and is given up\n"));
    let (code, out, error) = run(&["ship", "--agent", &agent.origin, "--timeout", "0.5"]).await;
    assert!(code == 2 && out.ends_with("  task 01234567 is TASK_STATE_WORKING\n"), "{code} {out}");
    let expected = "the job took longer than 0.5 s and is given up; tasks made until then: 0123456789 at player\n";
    assert_eq!(error, expected);
    assert_eq!(agent.stage.calls.lock().unwrap().last().unwrap(), "CancelTask");
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[tokio::test]
async fn the_person_who_is_asked_may_say_no_and_silence_does_not_outlast_the_timeout() {
    let agent = alone(true, &SKILLS, |method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("AUTH_REQUIRED", "May I deploy?")})),
        "SubscribeToTask" => {
            Says::Stream(vec![json!({"task": task("AUTH_REQUIRED", "May I deploy?")}), status("CANCELED")])
        }
        "CancelTask" => Says::Result(task("CANCELED", "refused")),
        other => panic!("{other} was not expected"),
    });
    let agent = agent.await;
    let (code, out, error) = run(&["ship", "--agent", &agent.origin, "--operator", "ask"]).await;
    assert!(code == 1 && out.ends_with("stop: the test task did not complete\n"), "{code} {out}");
    assert!(error.contains("May I deploy?\nApprove? [y/N]"), "{error}");
    assert_eq!(*agent.stage.calls.lock().unwrap(), ["SendMessage", "SubscribeToTask", "CancelTask"]);

    let asked = ["ship", "--agent", &agent.origin, "--operator", "ask", "--timeout", "0.5"];
    let mut asking = planner(&asked);
    let mut child = asking.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Held, or the program would read the end of its input, which is a no.
    let _nobody_types = child.stdin.take();
    let ended = tokio::time::timeout(Duration::from_secs(5), child.wait_with_output()).await;
    let (code, _, error) = read(ended.unwrap().unwrap());
    assert!(code == 2 && error.contains("took longer than 0.5 s"), "{code} {error}");
}

#[tokio::test]
async fn a_limit_that_makes_no_sense_is_refused_and_a_huge_one_is_no_crash() {
    for limit in ["-1", "0", "nan", "inf", "soon", "1e30"] {
        let (code, _, error) = run(&["ship", "--agent", "http://127.0.0.1:9", &format!("--patience={limit}")]).await;
        assert!(code == 2 && error.contains("--patience"), "{limit}: {code} {error}");
    }
    let agent = alone(true, &SKILLS, |method, _, _| match method {
        "SendMessage" => Says::Result(json!({"task": task("WORKING", "later")})),
        _ => Says::Stream(vec![status("FAILED")]),
    });
    let agent = agent.await.origin;
    let (code, _, error) = run(&["ship", "--agent", &agent, "--patience", "1e9", "--timeout", "1e9"]).await;
    assert_eq!((code, error.as_str()), (1, ""));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_output_that_cannot_be_written_is_no_crash() {
    let agent = alone(true, &SKILLS, |_, _, _| Says::Error(-32001, "Task not found")).await.origin;
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = planner(&["card", &agent]).stdout(full()).stderr(full()).status().await.unwrap();
    assert_eq!(status.code(), Some(0));
    let status = planner(&["get", &agent, "t"]).stdout(full()).stderr(full()).status().await.unwrap();
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn a_plan_is_checked_and_done_and_a_wrong_one_is_not_begun() {
    let agent = alone(true, &SKILLS, |_, params, _| {
        let text = params["message"]["parts"][0]["text"].as_str().unwrap();
        assert_eq!(text, "Deploy build 7 to staging");
        Says::Result(json!({"task": task("COMPLETED", "live")}))
    });
    let agent = agent.await.origin;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deploy.toml");
    let plan = "inputs = [\"build\"]\n[[steps]]\nname = \"deploy\"\nskill = \"deploy\"\n\
        send = [{ text = \"Deploy build {build} to staging\" }]\n";
    std::fs::write(&file, plan).unwrap();
    let path = file.to_str().unwrap();
    let checked = run(&["run", path, "--check"]).await;
    assert_eq!(checked, (0, format!("{path} is a plan; it needs build\n"), String::new()));
    let (code, out, error) = run(&["run", path, "--agent", &agent, "--set", "build=7"]).await;
    assert!(code == 0 && out.ends_with("  task 01234567 is TASK_STATE_COMPLETED\n"), "{code} {out}{error}");
    let (code, _, error) = run(&["run", path, "--agent", &agent]).await;
    assert_eq!((code, error.as_str()), (2, "the plan's build is not given\n"));

    std::fs::write(&file, plan.replace("{build}", "{bild}") + "when = 1\n").unwrap();
    let (code, out, error) = run(&["run", path, "--agent", &agent, "--set", "build=7"]).await;
    assert!(
        code == 2 && out.is_empty() && error.starts_with(&format!("{path}, line 6: unknown field `when`")),
        "{error}"
    );
    std::fs::write(&file, plan.replace("{build}", "{bild}")).unwrap();
    let (code, _, error) = run(&["run", path, "--check"]).await;
    assert_eq!((code, error), (2, format!("{path}, line 5: \"bild\" is not known here; known: build\n")));
}
