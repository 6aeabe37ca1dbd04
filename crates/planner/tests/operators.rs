//! Who approves: a program or a web service that is asked, and the journal that says who it was.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![cfg(unix)]

mod played;

use std::path::Path;

use axum::Router;
use axum::extract::Json;
use axum::routing::post;
use planner::{Journal, Operator};
use played::{Played, SKILLS, Says, alone, task};
use protocol::Part;
use serde_json::{Value, json};

/// A planner whose operator is asked about one deploy, and what its journal says of the decision.
async fn asked(operator: Operator) -> (Played, Option<Value>) {
    let agent = alone(false, &SKILLS, |method, _: &Value, number| match (method, number) {
        ("SendMessage", _) => Says::Result(json!({"task": task("AUTH_REQUIRED", "Approve \"$(touch no)\"?")})),
        ("CancelTask", _) => Says::Result(task("CANCELED", "refused")),
        ("GetTask", _) => Says::Result(task("COMPLETED", "elsewhere")),
        (other, _) => panic!("{other}"),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal");
    let mut played = agent.await.met(operator).await;
    played.planner = played.planner.with_journal(Journal::begin(&file, json!("a test")).unwrap());
    let delegated = played.planner.delegate("deploy", vec![Part::text("go")]);
    tokio::time::timeout(std::time::Duration::from_secs(5), delegated).await.unwrap().unwrap();
    let decided = decided(&file);
    (played, decided)
}

fn decided(journal: &Path) -> Option<Value> {
    let kept = std::fs::read_to_string(journal).unwrap();
    kept.lines().find_map(|line| serde_json::from_str::<Value>(line).unwrap().get("decided").cloned())
}

#[tokio::test]
async fn a_program_approves_refuses_or_leaves_it_to_somebody_else() {
    let read = "read -r asked; case $asked in *'\"agent\":\"player\",\"taskId\":\"0123456789\",\"text\":'*) ;; *) exit 7;; esac";
    let cases = [
        ("echo Grace; exit 0", "approve", Some((true, "Grace"))),
        ("echo Ada; exit 1", "CancelTask", Some((false, "Ada"))),
        ("exit 3", "GetTask", None),
    ];
    for (does, call, by) in cases {
        let (played, decided) = asked(Operator::Command(format!("{read}; {does}"))).await;
        assert_eq!(played.calls()[1], call, "{does}: {:?}", played.calls());
        let decided =
            decided.map(|entry| (entry["approves"].as_bool().unwrap(), entry["by"].as_str().unwrap().to_owned()));
        assert_eq!(decided, by.map(|(approves, by)| (approves, by.to_owned())), "{does}");
    }
}

#[tokio::test]
async fn a_web_service_approves_refuses_or_leaves_it_to_somebody_else() {
    let cases = [
        (json!({"approved": true, "by": "Grace"}), "approve", Some((true, "Grace"))),
        (json!({"approved": false, "by": "Ada"}), "CancelTask", Some((false, "Ada"))),
        (json!({"later": true}), "GetTask", None),
    ];
    for (answers, call, by) in cases {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/decide", listener.local_addr().unwrap());
        let app = Router::new().route(
            "/decide",
            post(move |Json(asked): Json<Value>| async move {
                assert_eq!((&asked["agent"], &asked["taskId"]), (&json!("player"), &json!("0123456789")));
                Json(answers)
            }),
        );
        tokio::spawn(async move { axum::serve(listener, app).await });
        let (played, decided) = asked(Operator::Webhook(url)).await;
        assert_eq!(played.calls()[1], call, "{:?}", played.calls());
        let decided =
            decided.map(|entry| (entry["approves"].as_bool().unwrap(), entry["by"].as_str().unwrap().to_owned()));
        assert_eq!(decided, by.map(|(approves, by)| (approves, by.to_owned())));
    }
}

#[tokio::test]
async fn an_operator_who_cannot_be_asked_approves_nothing() {
    for operator in
        [Operator::Command("/no/such/program".to_owned()), Operator::Webhook("http://127.0.0.1:9/decide".to_owned())]
    {
        let (played, decided) = asked(operator).await;
        assert_eq!((played.calls()[1].as_str(), decided), ("GetTask", None));
    }
}
