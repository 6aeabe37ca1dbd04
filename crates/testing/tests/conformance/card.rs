//! The card and versions: CARD-*, VER-*, BIND-FIELD-*. A test is named after the requirement of the kit.

use protocol::{AgentCard, ErrorKind};
use serde_json::{Value, json};
use server::Credential;
use testing::{Answer, Binding, Served, serve};

use crate::{conformance, each, each_of, played, refused_as};

async fn card(agent: &Served) -> Answer {
    agent.http("GET", "/.well-known/agent-card.json", &[], "").await
}

#[tokio::test]
async fn card_disc_001_the_card_is_where_it_must_be_without_a_version_header() {
    let answer = card(&conformance("full").await).await;
    assert_eq!((answer.status, answer.content_type()), (200, "application/json"));
    assert_eq!(answer.body["name"], "Conformance agent");
}

#[tokio::test]
async fn card_proto_001_the_card_names_the_bindings() {
    let body = card(&conformance("full").await).await.body;
    let bindings: Vec<&Value> = interfaces(&body).map(|interface| &interface["protocolBinding"]).collect();
    assert_eq!(bindings, ["JSONRPC", "HTTP+JSON", "GRPC"]);
}

fn interfaces(card: &Value) -> impl Iterator<Item = &Value> {
    card["supportedInterfaces"].as_array().unwrap().iter()
}

#[tokio::test]
async fn card_proto_002_each_interface_has_a_url_a_binding_and_a_version() {
    let agent = conformance("full").await;
    let body = card(&agent).await.body;
    let urls: Vec<String> = interfaces(&body).map(|interface| interface["url"].as_str().unwrap().to_owned()).collect();
    let (host, grpc) = (&agent.url, agent.grpc_address.rsplit(':').next().unwrap());
    assert_eq!(urls[..2], [format!("{host}/a2a/jsonrpc"), format!("{host}/a2a/rest")]);
    // An address without a scheme.
    assert!(!urls[2].contains("//") && urls[2].ends_with(&format!(":{grpc}")), "{}", urls[2]);
    assert!(interfaces(&body).all(|interface| interface["protocolVersion"] == "1.0"));
}

#[tokio::test]
async fn card_struct_001_the_card_has_what_it_must_have_and_nothing_that_it_must_not() {
    for configuration in ["full", "nocap", "ext", "req"] {
        let body = card(&conformance(configuration).await).await.body;
        for must in [
            "name",
            "description",
            "version",
            "capabilities",
            "skills",
            "supportedInterfaces",
            "defaultInputModes",
            "defaultOutputModes",
        ] {
            assert!(body.get(must).is_some(), "{configuration}: {must}");
        }
        // Nothing is lost when it is read and written again, so nothing is there that the specification does not know.
        let read: AgentCard = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), body, "{configuration}");
    }
}

/// The kit's own test of it asks without a credential and wants the card (docs/conformance.md).
#[tokio::test]
async fn card_ext_001_the_extended_card_wants_a_credential() {
    each_of("ext", async |agent, binding| {
        let answer = agent.call(binding, "GetExtendedAgentCard", json!({})).await;
        assert!(answer.is_unauthenticated(), "{binding:?}: {}", answer.body);
    })
    .await;
}

/// The kit's own test of it wants the card (docs/conformance.md).
#[tokio::test]
async fn card_ext_002_an_extended_card_that_was_not_set_has_an_error_of_its_own() {
    let mut agent = testing::scripted(async |_, say| Ok(say.done(()).await?));
    agent.card.capabilities.extended_agent_card = Some(true);
    let credential = Credential { token: "right".to_owned(), principal: server::ANONYMOUS.into() };
    let agent = serve(agent, |setup| setup.credentials = vec![credential]).await;
    for binding in Binding::ALL {
        let shown = [("authorization", "Bearer right")];
        let answer = agent.call_with(binding, "GetExtendedAgentCard", json!({}), &shown).await;
        refused_as(&answer, binding, ErrorKind::ExtendedAgentCardNotConfigured);
    }
}

#[tokio::test]
async fn card_cache_001_the_card_says_how_long_it_may_be_kept() {
    let answer = card(&conformance("full").await).await;
    assert!(answer.headers["cache-control"].to_str().unwrap().contains("max-age="));
}

#[tokio::test]
async fn card_cache_002_the_card_has_a_tag_with_which_it_is_asked_for_again() {
    let agent = conformance("full").await;
    let tag = card(&agent).await.headers["etag"].to_str().unwrap().to_owned();
    let again = agent.http("GET", "/.well-known/agent-card.json", &[("if-none-match", &tag)], "").await;
    assert_eq!(again.status, 304);
}

#[tokio::test]
async fn card_cache_003_the_card_says_when_it_changed_last() {
    let answer = card(&conformance("full").await).await;
    assert!(answer.headers["last-modified"].to_str().unwrap().ends_with("GMT"));
}

#[tokio::test]
async fn ver_server_002_a_version_that_is_not_spoken_is_refused() {
    each(async |agent, binding| {
        let params = json!({"message": played("tck-complete-task")});
        let answer = agent.call_with(binding, "SendMessage", params, &[("a2a-version", "99.0")]).await;
        refused_as(&answer, binding, ErrorKind::VersionNotSupported);
    })
    .await;
}

#[tokio::test]
async fn ver_server_003_no_version_is_version_0_3() {
    each(async |agent, binding| {
        let params = json!({"message": played("tck-complete-task")});
        let answer = agent.call_with(binding, "SendMessage", params, &[("a2a-version", "")]).await;
        refused_as(&answer, binding, ErrorKind::VersionNotSupported);
        assert!(answer.body.to_string().contains("0.3"), "{binding:?}: {}", answer.body);
    })
    .await;
}

#[tokio::test]
async fn bind_field_001_a_binding_that_is_on_the_card_answers() {
    each(async |agent, binding| {
        let answer = agent.call(binding, "ListTasks", json!({})).await;
        assert!(answer.error().is_none(), "{binding:?}: {}", answer.body);
    })
    .await;
}
