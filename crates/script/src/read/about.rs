//! Who the agent is.

use std::collections::BTreeMap;

use protocol::card::{
    AgentCapabilities, AgentExtension, AgentProvider, AgentSkill, HttpAuthSecurityScheme, SecurityRequirement,
    SecurityScheme, StringList,
};
use protocol::{AgentCard, media};
use server::Dedupe;

use super::when::media_type;
use crate::about::About;
use crate::mistake::{Mistake, hint};
use crate::table::{Table, Value};

/// The keys with which an agent tells about itself, in the order in which the documentation explains them.
pub(super) const KEYS: [&str; 17] = [
    "name",
    "description",
    "version",
    "documentation_url",
    "provider",
    "skill",
    "input_modes",
    "output_modes",
    "streaming",
    "push",
    "extension",
    "extended_skill",
    "token",
    "port",
    "dedupe",
    "allow_local_webhooks",
    "plain_json",
];
const SKILL: [&str; 7] = ["id", "name", "description", "tags", "examples", "input_modes", "output_modes"];
const DEDUPE: [(&str, Dedupe); 3] =
    [("unanswered", Dedupe::Unanswered), ("always", Dedupe::Always), ("off", Dedupe::Off)];
/// The port of an agent that names none.
const PORT: u16 = 41250;
/// What the card calls the way to show a token.
const BEARER: &str = "bearer";

/// What an agent is, plainly and in each of its configurations.
pub(super) fn about(table: Table<'_>, key: &str) -> Result<(About, BTreeMap<String, About>), Mistake> {
    let plain = Layers { table, over: None }.about(key)?;
    let configurations = match table.get("configuration") {
        Some(value) => value.table(&format!("tables, such as [{key}.configuration.NAME]"))?.members(),
        None => Vec::new(),
    };
    let read = |(_, value): (_, Value<'_>)| {
        let over = value.table("keys that differ")?;
        over.only(&KEYS)?;
        Ok((value.name.to_owned(), Layers { table, over: Some(over) }.about(key)?))
    };
    Ok((plain, configurations.into_iter().map(read).collect::<Result<_, _>>()?))
}

/// An agent's table, and before it the one of a configuration.
#[derive(Clone, Copy)]
struct Layers<'a> {
    table: Table<'a>,
    over: Option<Table<'a>>,
}

impl<'a> Layers<'a> {
    fn get(self, key: &str) -> Option<Value<'a>> {
        self.over.and_then(|over| over.get(key)).or_else(|| self.table.get(key))
    }

    fn truth(self, key: &str, otherwise: bool) -> Result<bool, Mistake> {
        self.get(key).map_or(Ok(otherwise), Value::truth)
    }

    fn required(self, key: &str, example: &str) -> Result<Value<'a>, Mistake> {
        let expected = || self.table.mistake(format!("an agent with a card needs a {key}; expected {example}"));
        self.get(key).ok_or_else(expected)
    }

    fn about(self, key: &str) -> Result<About, Mistake> {
        let token = self.get("token").map(Value::text).transpose()?.map(str::to_owned);
        let extended_skills = self.get("extended_skill").map(skills).transpose()?;
        let name = self.get("name").map_or(Ok(key), Value::text)?;
        let description = self.required("description", "`description = \"...\"`")?.text()?;
        let version = self.required("version", "one such as `version = \"1.0.0\"`")?.text()?;
        let skills = skills(self.required("skill", &format!("[[{key}.skill]]"))?)?;
        let card = AgentCard {
            provider: self.get("provider").map(provider).transpose()?,
            documentation_url: text(self.get("documentation_url"))?,
            capabilities: AgentCapabilities {
                streaming: Some(self.truth("streaming", true)?),
                push_notifications: Some(self.truth("push", false)?),
                extensions: self.get("extension").map_or(Ok(Vec::new()), extensions)?,
                extended_agent_card: Some(extended_skills.is_some()),
            },
            security_schemes: token.iter().map(|_| (BEARER.to_owned(), bearer())).collect(),
            security_requirements: token.iter().map(|_| bearer_required()).collect(),
            default_input_modes: modes(self.get("input_modes"))?,
            default_output_modes: modes(self.get("output_modes"))?,
            ..AgentCard::new(name, description, version, skills)
        };
        let extended_card = extended_skills.map(|more| {
            let mut extended = card.clone();
            extended.skills.extend(more);
            extended
        });
        Ok(About {
            card,
            extended_card,
            port: self.get("port").map_or(Ok(PORT), port)?,
            token,
            dedupe: self.get("dedupe").map_or(Ok(Dedupe::default()), dedupe)?,
            allow_local_webhooks: self.truth("allow_local_webhooks", false)?,
            plain_json: self.truth("plain_json", false)?,
        })
    }
}

fn text(value: Option<Value<'_>>) -> Result<Option<String>, Mistake> {
    Ok(value.map(Value::text).transpose()?.map(str::to_owned))
}

fn texts(value: Option<Value<'_>>) -> Result<Vec<String>, Mistake> {
    let values = value.map_or(Ok(Vec::new()), Value::texts)?;
    values.into_iter().map(|value| Ok(value.text()?.to_owned())).collect()
}

fn modes(value: Option<Value<'_>>) -> Result<Vec<String>, Mistake> {
    let Some(value) = value else { return Ok(vec![media::TEXT.to_owned()]) };
    value.texts()?.into_iter().map(media_type).collect()
}

fn provider(value: Value<'_>) -> Result<AgentProvider, Mistake> {
    let example = "{ organization = \"...\", url = \"...\" }";
    let table = value.table(example)?;
    table.only(&["organization", "url"])?;
    let member = |key| {
        let missing = || value.mistake(format!("a provider is {example}"));
        Ok::<_, Mistake>(table.get(key).ok_or_else(missing)?.text()?.to_owned())
    };
    Ok(AgentProvider { organization: member("organization")?, url: member("url")? })
}

fn skills(value: Value<'_>) -> Result<Vec<AgentSkill>, Mistake> {
    let mut skills: Vec<AgentSkill> = Vec::new();
    for value in value.list("a list of skills, each with id, name, description and tags")? {
        let table = value.table("a skill with id, name, description and tags")?;
        table.only(&SKILL)?;
        let needed = |key| {
            let missing = || value.mistake(format!("a skill needs `{key}`; expected id, name, description and tags"));
            table.get(key).ok_or_else(missing)
        };
        let id = needed("id")?;
        if skills.iter().any(|skill| Ok(skill.id.as_str()) == id.text()) {
            return Err(id.mistake(format!("the skill `{}` is there already", id.text()?)));
        }
        let modes = |key| table.get(key).map_or(Ok(Vec::new()), |value| modes(Some(value)));
        skills.push(AgentSkill {
            id: id.text()?.to_owned(),
            name: needed("name")?.text()?.to_owned(),
            description: needed("description")?.text()?.to_owned(),
            tags: texts(Some(needed("tags")?))?,
            examples: texts(table.get("examples"))?,
            input_modes: modes("input_modes")?,
            output_modes: modes("output_modes")?,
            security_requirements: Vec::new(),
        });
    }
    Ok(skills)
}

fn extensions(value: Value<'_>) -> Result<Vec<AgentExtension>, Mistake> {
    let extension = |value: Value<'_>| {
        let table = value.table("an extension, such as { uri = \"...\", required = true }")?;
        table.only(&["uri", "description", "required"])?;
        let uri = table.get("uri").ok_or_else(|| value.mistake("an extension needs `uri`"))?.text()?;
        Ok(AgentExtension {
            uri: uri.to_owned(),
            description: text(table.get("description"))?,
            required: table.get("required").map_or(Ok(false), Value::truth)?,
            params: None,
        })
    };
    value.list("a list of extensions, such as { uri = \"...\" }")?.into_iter().map(extension).collect()
}

fn port(value: Value<'_>) -> Result<u16, Mistake> {
    let port = u16::try_from(value.number()?);
    port.map_err(|_| value.mistake(format!("`port` is at most {}; 0 takes a free one", u16::MAX)))
}

fn dedupe(value: Value<'_>) -> Result<Dedupe, Mistake> {
    let word = value.text()?;
    let known = DEDUPE.map(|(known, _)| known);
    let found = DEDUPE.iter().find(|(known, _)| *known == word).map(|(_, dedupe)| *dedupe);
    found.ok_or_else(|| value.mistake(format!("`dedupe` cannot be `{word}`{}", hint(word, &known))))
}

fn bearer() -> SecurityScheme {
    SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
        description: None,
        scheme: "Bearer".to_owned(),
        bearer_format: None,
    })
}

fn bearer_required() -> SecurityRequirement {
    SecurityRequirement { schemes: [(BEARER.to_owned(), StringList::default())].into() }
}
