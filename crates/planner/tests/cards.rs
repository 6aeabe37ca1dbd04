//! What the planner makes of cards: read again when they are old, signed by whom, changed under way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod played;

use planner::{Failure, Operator};
use played::{Alone, Played, SKILLS, Says, alone, task};
use protocol::Part;
use serde_json::{Value, json};
use signature::Key;

async fn agent() -> Alone {
    alone(true, &SKILLS, |_, _, _| Says::Result(json!({"task": task("COMPLETED", "done")}))).await
}

impl Alone {
    fn card(&self, change: impl FnOnce(&mut played::Card)) {
        change(&mut self.stage.card.lock().unwrap());
    }
}

fn change(played: &Played, member: &str, value: Value) {
    played.stage.card.lock().unwrap().json[member] = value;
}

fn asked(played: &Played) -> Vec<Option<String>> {
    played.stage.card.lock().unwrap().asked.clone()
}

async fn delegate(played: &Played, skill: &str) -> Result<(), Failure> {
    played.planner.delegate(skill, vec![Part::text("go")]).await.map(|_| ())
}

#[tokio::test]
async fn a_card_that_is_fresh_is_not_read_again_and_an_old_one_only_if_it_changed() {
    let header = |value: &str| vec![("cache-control", value.to_owned()), ("etag", "\"1\"".to_owned())];
    let tag = || Some("\"1\"".to_owned());
    let cases = [("max-age=60", vec![None]), ("max-age=0", vec![None, tag(), tag()]), ("no-store", vec![None; 3])];
    for (caching, expected) in cases {
        let agent = agent().await;
        agent.card(|card| card.headers = header(caching));
        let played = agent.met(Operator::Auto).await;
        change(&played, "description", "not to be seen while the tag is the same".into());
        if caching == "no-store" {
            change(&played, "description", "plays".into());
        }
        for skill in ["run-tests", "deploy"] {
            delegate(&played, skill).await.unwrap();
        }
        assert_eq!(asked(&played), expected, "{caching}");
        assert!(!played.log().iter().any(|line| line.contains("card")), "{:?}", played.log());
    }
}

#[tokio::test]
async fn a_card_that_changed_under_way_is_said_once_and_the_job_goes_on() {
    let played = agent().await.met(Operator::Auto).await;
    change(&played, "description", "plays better".into());
    change(&played, "version", "2".into());
    for skill in ["run-tests", "review-diff", "deploy"] {
        delegate(&played, skill).await.unwrap();
    }
    let log = played.log();
    assert_eq!(log[1], "  its card has changed (description, version); the job goes on as it began");
    assert_eq!(log.iter().filter(|line| line.contains("card")).count(), 1, "{log:?}");
}

#[tokio::test]
async fn a_card_that_would_send_the_work_elsewhere_stops_the_job() {
    let elsewhere = |binding: &str, version: &str| json!([{"url": "http://elsewhere.example/", "protocolBinding": binding, "protocolVersion": version}]);
    let cases = [
        ("name", json!("somebody"), "its name is somebody now"),
        ("skills", json!([]), "it has no skill deploy any more"),
        (
            "supportedInterfaces",
            elsewhere("JSONRPC", "1.0"),
            "it is called by JSONRPC at http://elsewhere.example/ now",
        ),
        ("supportedInterfaces", elsewhere("JSONRPC", "0.3"), "player offers JSONRPC 0.3 at http://elsewhere.example/"),
    ];
    for (member, value, why) in cases {
        let played = agent().await.met(Operator::Auto).await;
        delegate(&played, "run-tests").await.unwrap();
        change(&played, member, value);
        let failure = delegate(&played, "deploy").await.unwrap_err();
        assert!(matches!(failure, Failure::Changed { .. }), "{failure}");
        assert!(failure.to_string().starts_with(&format!("player changed its card under way: {why}")), "{failure}");
        assert_eq!(played.calls(), ["SendMessage"], "{member}");
    }
}

#[tokio::test]
async fn a_card_that_cannot_be_read_is_tried_again_and_one_that_is_not_there_is_not() {
    let here = agent().await;
    here.card(|card| card.failures = vec![503, 429]);
    let played = here.met(Operator::Auto).await;
    assert_eq!(asked(&played).len(), 3);
    // Later it is no reason to give up.
    played.stage.card.lock().unwrap().failures = vec![503];
    delegate(&played, "run-tests").await.unwrap();
    assert!(played.log()[1].starts_with("  its card cannot be read again, the job goes on with the one it has: "));

    for (failures, asked) in [(vec![404], 1), (vec![503; 9], 4)] {
        let gone = agent().await;
        gone.card(|card| card.failures = failures);
        let stage = gone.stage.clone();
        let failure = gone.met_by(Operator::Auto, |planner| planner).await.err().unwrap();
        assert!(failure.to_string().contains("no agent card; tried http://"), "{failure}");
        assert_eq!(stage.card.lock().unwrap().asked.len(), asked, "{failure}");
    }
}

fn signed(card: &mut Value, key: &Key) {
    card.as_object_mut().unwrap().remove("signatures");
    let signature = key.sign(&serde_json::from_value(card.clone()).unwrap()).unwrap();
    card["signatures"] = json!([signature]);
}

#[tokio::test]
async fn with_trusted_keys_only_a_card_is_taken_that_one_of_them_has_signed() {
    let trusted = || Key::hs256("ours", b"secret");
    let met = async |sign: &dyn Fn(&mut Value)| {
        let agent = agent().await;
        agent.card(|card| sign(&mut card.json));
        agent.met_by(Operator::Auto, |planner| planner.trusting(vec![trusted()])).await
    };
    let played = met(&|card| signed(card, &trusted())).await.unwrap();
    delegate(&played, "run-tests").await.unwrap();
    // One that is changed under way has to be signed as well.
    change(&played, "description", "plays better".into());
    let failure = delegate(&played, "deploy").await.unwrap_err().to_string();
    assert!(failure.ends_with("HS256 with the key ours, the card was changed, or another key signed it"), "{failure}");

    type Signs<'a> = &'a dyn Fn(&mut Value);
    let refused: [(Signs<'_>, &str); 3] = [
        (&|_| {}, "it is not signed"),
        (
            &|card| signed(card, &Key::hs256("theirs", b"secret")),
            "of its signature, HS256 with the key theirs, no key of that name is known",
        ),
        (
            &|card| signed(card, &Key::hs256("ours", b"another")),
            "of its signature, HS256 with the key ours, the card was changed, or another key signed it",
        ),
    ];
    for (sign, why) in refused {
        let failure = met(sign).await.err().unwrap();
        assert!(matches!(failure, Failure::Unvouched { .. }), "{failure}");
        let failure = failure.to_string();
        assert!(failure.starts_with("player: its card at http://127.0.0.1:"), "{failure}");
        assert!(failure.ends_with(&format!("is refused, for no trusted key vouches for it: {why}")), "{failure}");
    }
}

#[tokio::test]
async fn a_token_is_not_given_to_a_second_agent_of_the_same_name() {
    let asks = |card: &mut played::Card| card.json["securityRequirements"] = json!([{"schemes": {"bearer": {}}}]);
    let (one, other) = (agent().await, agent().await);
    one.card(asks);
    other.card(asks);
    let mut played = one.met_by(Operator::Auto, |planner| planner).await.unwrap();
    let token = |name: &str| (name == "player").then(|| "secret".to_owned());
    played.planner.meet(&other.origin, token).await.unwrap();
    let third = agent().await;
    third.card(asks);
    let failure = played.planner.meet(&third.origin, token).await.unwrap_err();
    assert!(matches!(failure, Failure::Namesake { .. }), "{failure}");
}
