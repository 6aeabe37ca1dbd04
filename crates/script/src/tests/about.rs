//! Who an agent is, its configurations, and what of it is refused.

use server::{Agent, Dedupe};

use crate::{Scripted, Story};

const WHOLE: &str = r#"
[whole]
name = "The whole agent"
description = "Has everything."
version = "2.1.0"
documentation_url = "https://example.com/docs"
provider = { organization = "Examples", url = "https://example.com" }
input_modes = ["text/plain", "image/png"]
output_modes = "application/json"
push = true
port = 41300
dedupe = "off"
allow_local_webhooks = true
plain_json = true

[[whole.skill]]
id = "one"
name = "One"
description = "The first."
tags = ["a", "b"]
examples = ["Do one"]
input_modes = "text/plain"

[[whole.extension]]
uri = "urn:example:extension"
description = "More."

[whole.configuration.locked]
token = "open-sesame"
extended_skill = [{ id = "two", name = "Two", description = "The second.", tags = "c" }]

[whole.configuration.plain]
streaming = false
push = false
extension = [{ uri = "urn:example:needed", required = true }]

[[whole.rule]]
otherwise = true
say = ["done"]
"#;

/// An agent with these lines of its own, after those that it must have.
fn having(lines: &str) -> String {
    format!(
        "[a]\ndescription = \"d\"\nversion = \"1\"\n\
         skill = [{{ id = \"s\", name = \"s\", description = \"s\", tags = \"t\" }}]\n{lines}\n\
         [[a.rule]]\notherwise = true\nsay = [\"done\"]\n"
    )
}

fn agent(text: &str, name: Option<&str>, configuration: Option<&str>) -> Result<Scripted, String> {
    let story = Story::parse("a.toml", text).map_err(|mistake| mistake.to_string())?;
    Scripted::of(&story, "a.toml", name, configuration).map_err(|mistake| mistake.to_string())
}

fn refusal(text: &str) -> String {
    agent(text, None, None).unwrap_err()
}

#[test]
fn an_agent_with_everything_has_it_on_its_card() {
    let agent = agent(WHOLE, None, None).unwrap();
    assert_eq!(
        serde_json::to_string(&agent.card()).unwrap(),
        concat!(
            r#"{"name":"The whole agent","description":"Has everything.","supportedInterfaces":[],"#,
            r#""provider":{"url":"https://example.com","organization":"Examples"},"version":"2.1.0","#,
            r#""documentationUrl":"https://example.com/docs","#,
            r#""capabilities":{"streaming":true,"pushNotifications":true,"#,
            r#""extensions":[{"uri":"urn:example:extension","description":"More."}],"extendedAgentCard":false},"#,
            r#""defaultInputModes":["text/plain","image/png"],"defaultOutputModes":["application/json"],"#,
            r#""skills":[{"id":"one","name":"One","description":"The first.","tags":["a","b"],"#,
            r#""examples":["Do one"],"inputModes":["text/plain"]}]}"#
        )
    );
    assert_eq!(agent.extended_card(), None);
    let about = agent.about;
    assert_eq!((about.port, about.dedupe, about.allow_local_webhooks), (41300, Dedupe::Off, true));
    assert!(about.plain_json);
}

#[test]
fn an_agent_that_leaves_out_what_it_may_streams_and_speaks_text() {
    let about = agent(&having(""), None, None).unwrap().about;
    assert_eq!(
        serde_json::to_string(&about.card).unwrap(),
        concat!(
            r#"{"name":"a","description":"d","supportedInterfaces":[],"version":"1","#,
            r#""capabilities":{"streaming":true,"pushNotifications":false,"extendedAgentCard":false},"#,
            r#""defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"#,
            r#""skills":[{"id":"s","name":"s","description":"s","tags":["t"]}]}"#
        )
    );
    assert_eq!((about.port, about.token, about.dedupe), (41250, None, Dedupe::Unanswered));
    assert!(!about.allow_local_webhooks && !about.plain_json);
}

#[test]
fn a_configuration_changes_what_it_names_and_nothing_else() {
    let plain = agent(WHOLE, None, None).unwrap().about;
    let locked = agent(WHOLE, None, Some("locked")).unwrap().about;
    assert_eq!(locked.token.as_deref(), Some("open-sesame"));
    assert!(locked.card.security_schemes.contains_key("bearer") && locked.card.security_requirements.len() == 1);
    assert_eq!(locked.card.capabilities.extended_agent_card, Some(true));
    assert_eq!((locked.card.skills.len(), locked.extended_card.unwrap().skills.len()), (1, 2));
    assert_eq!((locked.card.capabilities.extensions, locked.port), (plain.card.capabilities.extensions, 41300));
    let plainer = agent(WHOLE, None, Some("plain")).unwrap().about.card.capabilities;
    assert_eq!((plainer.streaming, plainer.push_notifications), (Some(false), Some(false)));
    assert_eq!(plainer.extensions.len(), 1);
    assert!(plainer.extensions[0].required);
}

#[test]
fn the_only_agent_with_a_card_needs_no_name() {
    let recites = "[[b.rule]]\notherwise = true\nsay = [\"done\"]\n";
    assert_eq!(agent(&(having("") + recites), None, None).unwrap().about.card.name, "a");
    assert_eq!(agent(&(having("") + recites), Some("a"), None).unwrap().about.card.name, "a");
}

#[test]
fn an_agent_or_configuration_that_is_not_there_says_what_is() {
    let two = having("") + &having("").replace("[a]", "[b]").replace("[[a.rule", "[[b.rule");
    let recites = "[[b.rule]]\notherwise = true\nsay = [\"done\"]\n";
    let refusal = |text: &str, name, configuration| agent(text, name, configuration).unwrap_err();
    assert_eq!(refusal(&two, None, None), "a.toml: there is more than one agent; expected --agent with `a` or `b`");
    assert_eq!(refusal(&two, Some("c"), None), "a.toml: there is no agent c; expected `a` or `b`");
    assert_eq!(
        refusal(recites, None, None),
        "a.toml: b has no card, only rules; expected [b] with description, version and [[b.skill]]"
    );
    assert_eq!(
        refusal(WHOLE, None, Some("open")),
        "a.toml: whole has no configuration open; expected `locked` or `plain`"
    );
    assert_eq!(refusal(&having(""), None, Some("open")), "a.toml: a has no configuration open; expected nothing");
}

macro_rules! refused {
    ($($name:ident: $text:expr => $words:expr;)*) => {$(
        #[test]
        fn $name() {
            assert_eq!(refusal(&$text), $words);
        }
    )*};
}

refused! {
    an_agent_without_a_description_is_refused: "\n[a]\nversion = \"1\"\n" =>
        "a.toml:2: an agent with a card needs a description; expected `description = \"...\"`";
    an_agent_without_a_version_is_refused: "[a]\ndescription = \"d\"\n" =>
        "a.toml:1: an agent with a card needs a version; expected one such as `version = \"1.0.0\"`";
    an_agent_without_a_skill_is_refused: "[a]\ndescription = \"d\"\nversion = \"1\"\n" =>
        "a.toml:1: an agent with a card needs a skill; expected [[a.skill]]";
    a_card_without_rules_is_refused: having("").split("[[a.rule").next().unwrap() =>
        "a.toml:1: a has no rules; expected [[a.rule]]";
    an_unknown_key_beside_a_card_is_refused: having("discription = 1") =>
        "a.toml:5: unknown key `discription`; did you mean `description`?";
    a_skill_that_lacks_a_member_is_refused: having("extended_skill = [\n{ id = \"x\", name = \"x\", tags = \"x\" }]") =>
        "a.toml:6: a skill needs `description`; expected id, name, description and tags";
    a_skill_that_is_there_twice_is_refused: having("").replace("{ id", "{ id = \"s\", name = \"s\", description = \"s\", tags = \"t\" },\n{ id") =>
        "a.toml:5: the skill `s` is there already";
    an_unknown_key_of_a_skill_is_refused: having("extended_skill = [{ id = \"x\", tag = \"x\" }]") =>
        "a.toml:5: unknown key `tag`; did you mean `tags`?";
    a_mode_that_is_no_media_type_is_refused: having("output_modes = [\"text/plain\",\n\"json\"]") =>
        "a.toml:6: `json` is no media type; expected one such as `text/plain`";
    a_port_beyond_the_last_is_refused: having("port = 70000") => "a.toml:5: `port` is at most 65535; 0 takes a free one";
    a_dedupe_that_is_none_is_refused: having("dedupe = \"of\"") => "a.toml:5: `dedupe` cannot be `of`; did you mean `off`?";
    a_capability_of_the_wrong_type_is_refused: having("push = \"yes\"") =>
        "a.toml:5: `push` must be true or false, and is a string";
    an_extension_without_a_uri_is_refused: having("extension = [{ required = true }]") =>
        "a.toml:5: an extension needs `uri`";
    a_provider_that_lacks_a_member_is_refused: having("provider = { url = \"u\" }") =>
        "a.toml:5: a provider is { organization = \"...\", url = \"...\" }";
    a_configuration_of_the_wrong_type_is_refused: having("configuration = 1") =>
        "a.toml:5: `configuration` must be tables, such as [a.configuration.NAME], and is an integer";
    a_mistake_in_a_configuration_is_refused_at_its_own_line: having("[a.configuration.b]\npush = 1") =>
        "a.toml:6: `push` must be true or false, and is an integer";
    a_configuration_that_changes_the_rules_is_refused: having("[a.configuration.b]\nrule = []") =>
        "a.toml:6: unknown key `rule`; expected `name`, `description`, `version`, `documentation_url`, `provider`, \
         `skill`, `input_modes`, `output_modes`, `streaming`, `push`, `extension`, `extended_skill`, `token`, `port`, \
         `dedupe`, `allow_local_webhooks` or `plain_json`";
}
