//! The operator on the command line: `planner approvals`, `approve` and `refuse`, and a planner whose own operator has a
//! token.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use testing::{Served, program, serve, state};

use super::{ANA, BOB, asked, deployer, with_operators, words};

/// A folder with tokens in files.
struct Tokens(tempfile::TempDir);

impl Tokens {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, token: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let file = self.0.path().join(token);
        std::fs::write(&file, format!("{token}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    }
}

/// Runs the planner: its exit code, what it printed, and what it complained of.
async fn planner(arguments: &[&str], token: Option<&str>) -> (i32, String, String) {
    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    let token = token.map(str::to_owned);
    let run = move || -> Output {
        let state = tempfile::tempdir().unwrap();
        let mut planner = program("planner", state.path());
        planner.env_remove("A2A_OPERATOR_TOKEN").args(["--timeout", "60"]).args(arguments);
        if let Some(token) = token {
            planner.env("A2A_OPERATOR_TOKEN", token);
        }
        planner.output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

async fn served() -> Served {
    let mut agent = deployer();
    let about = [("action", "deploy"), ("build", "7"), ("environment", "staging\u{1b}[2J")];
    agent.about = about.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    serve(agent, with_operators).await
}

#[tokio::test]
async fn what_waits_is_listed_approved_and_refused_with_a_token_from_a_file_or_the_environment() {
    let served = served().await;
    let agent = ["--agent", served.url.as_str()];
    let tokens = Tokens::new();
    let file = tokens.file(ANA);
    let file = file.to_str().unwrap();
    let run = async |before: &[&str], after: &[&str], token| planner(&[before, &agent, after].concat(), token).await;
    assert_eq!(run(&["approvals"], &[], Some(ANA)).await, (0, "nothing waits\n".to_owned(), String::new()));
    let (one, two) = (asked(&served, "go").await, asked(&served, "go").await);
    let (code, table, _) = run(&["approvals"], &["--token-file", file], None).await;
    let what = "-         deploy build 7 to staging\\u{1b}[2J";
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((code, lines.len()), (0, 3), "{table}");
    assert!(lines[0].starts_with("TASK ") && lines[0].ends_with("ASKED BY  WHAT"), "{table}");
    assert!(lines[1].starts_with(&one) && lines[2].starts_with(&two) && lines[2].ends_with(what), "{table}");
    let (_, listed, _) = run(&["approvals"], &["--json"], Some(ANA)).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed["operator"], &listed["approvals"][1]["taskId"]), (&"ana".into(), &two.as_str().into()));

    let (code, printed, wrong) = run(&["approve", &one[..13]], &["--token-file", file], None).await;
    let expected = format!("approved by ana: deploy build 7 to staging\\u{{1b}}[2J (task {one})\n");
    assert_eq!((code, printed.as_str(), wrong.as_str()), (0, expected.as_str(), ""));
    assert_eq!(words(&served.until(&one, "TASK_STATE_COMPLETED").await), "live, asked by somebody, approved by ana");
    let (code, printed, _) = run(&["refuse", &two], &["--reason", "not today"], Some(ANA)).await;
    assert!(code == 0 && printed.starts_with("refused by ana: "), "{printed}");
    let rejected = served.until(&two, "TASK_STATE_REJECTED").await;
    assert_eq!(words(&rejected), "Some(\"ana\") refused: Some(\"not today\")");
}

#[tokio::test]
async fn what_the_agent_does_not_take_is_said_with_what_to_do_and_changes_nothing() {
    let served = served().await;
    let task = asked(&served, "go").await;
    let agent = ["--agent", served.url.as_str()];
    let tokens = Tokens::new();
    let none = tokens.file("two words");
    let none = none.to_str().unwrap();
    let nobody = "--token-file FILE or A2A_OPERATOR_TOKEN gives it";
    for (arguments, token, code, says) in [
        (vec!["approvals"], None, 1, format!("operators have tokens here; {nobody}")),
        (vec!["approve", &task], None, 1, format!("operators have tokens here; {nobody}")),
        (vec!["approve", &task], Some("guessed"), 1, format!("no operator has this token; {nobody}")),
        (vec!["approve", &task], Some(BOB), 1, "bob may not decide this".to_owned()),
        (vec!["refuse", &task, "--reason", " "], Some(ANA), 1, "A refusal needs a reason".to_owned()),
        (vec!["refuse", &task], Some(ANA), 2, "--reason <TEXT>".to_owned()),
        (vec!["approve", "no-such-task"], Some(ANA), 1, "no task no-such-task waits; `planner approvals`".to_owned()),
        (vec!["approve", &task, "--token-file", none], None, 2, "holds no token".to_owned()),
        (vec!["approve", &task, "--token-file", "/no/such/file"], None, 2, "/no/such/file: ".to_owned()),
        (vec!["approve", &task], Some("žeton"), 2, "A2A_OPERATOR_TOKEN holds no token".to_owned()),
    ] {
        let (ended, printed, wrong) = planner(&[&arguments[..], &agent].concat(), token).await;
        assert_eq!((ended, printed.as_str()), (code, ""), "{arguments:?}: {wrong}");
        assert!(wrong.contains(&says), "{arguments:?}: {wrong}");
        assert!(token.is_none_or(|token| !wrong.contains(token)), "{wrong}");
    }
    let (code, _, wrong) = planner(&["approvals", "--agent", "http://127.0.0.1:9"], None).await;
    assert!(code == 2 && wrong.contains("127.0.0.1:9 does not answer"), "{wrong}");
    assert_eq!(state(&served.task(&task).await), "AUTH_REQUIRED");
    // One that has been decided meanwhile.
    assert_eq!(planner(&["approve", &task, agent[0], agent[1]], Some(ANA)).await.0, 0);
    let (code, _, wrong) = planner(&["approve", &task, agent[0], agent[1]], Some(ANA)).await;
    assert!(code == 1 && wrong.contains("does not wait for this decision"), "{wrong}");
}

#[tokio::test]
async fn where_operators_have_no_names_approvals_need_no_token_and_nobody_refuses() {
    let served = serve(deployer(), |_| ()).await;
    let task = asked(&served, "go").await;
    let agent = ["--agent", &format!("{}/.well-known/agent-card.json", served.url)];
    let (code, _, wrong) = planner(&[&["refuse", &task, "--reason", "no"], &agent[..]].concat(), None).await;
    assert!(code == 1 && wrong.contains("no operators, so nobody can refuse"), "{wrong}");
    let (code, printed, _) = planner(&[&["approve", &task], &agent[..]].concat(), None).await;
    assert_eq!((code, printed), (0, format!("approved: Deploy <b>build 7</b>? (task {task})\n")));
    served.until(&task, "TASK_STATE_COMPLETED").await;
}

/// A plan of one deploy by the agent of the tests.
const PLAN: &str = r#"
inputs = []
[[steps]]
name = "deploy"
skill = "play"
send = [{ text = "go" }]
incomplete = "no deploy"
unreadable = "no report"
say = [{ text = "deploy: {state}" }]
"#;

#[tokio::test]
async fn a_planner_that_approves_by_itself_shows_the_token_of_its_operator_to_the_agent_of_that_name() {
    let served = serve(deployer(), with_operators).await;
    let tokens = Tokens::new();
    let plan = tokens.0.path().join("plan.toml");
    std::fs::write(&plan, PLAN).unwrap();
    let job = async |named: &str, file: &Path| {
        let named = format!("{named}={}", file.display());
        let plan = plan.to_str().unwrap();
        let arguments = ["run", plan, "--agent", &served.url, "--patience", "2"];
        planner(&[&arguments[..], &["--operator-token-file", &named]].concat(), None).await
    };
    let (code, log, wrong) = job("scripted", &tokens.file(ANA)).await;
    assert!(code == 0 && log.contains("TASK_STATE_COMPLETED"), "{log}{wrong}");
    for (named, token) in [("scripted", "guessed"), ("another", ANA)] {
        let (code, log, wrong) = job(named, &tokens.file(token)).await;
        let says = "scripted took no approval for this task: Send Authorization: Bearer <token>";
        assert!(code != 0 && log.contains(says), "{log}{wrong}");
        assert!(!log.contains(token) && !wrong.contains(token), "{log}{wrong}");
    }
    let (code, _, wrong) = job("scripted", Path::new("/no/such/file")).await;
    assert!(code == 2 && wrong.contains("/no/such/file"), "{wrong}");
}
