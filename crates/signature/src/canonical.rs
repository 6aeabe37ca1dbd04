//! The texts that are signed: a card without its signatures, as canonical JSON (RFC 8785).

use protocol::AgentCard;
use serde_json::{Map, Value};

use crate::SignatureError;

/// Which members of a card stand in the text that is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Those that the specification names (8.4.1): a member at its default is left out unless it is required or was
    /// set.
    Specification,
    /// Those of [`Form::Specification`] without everything that is empty, required or not, at any depth. This is what
    /// the public SDKs for Python and JavaScript sign and verify. It says nothing about a security requirement without
    /// scopes, so a card may have one more or one less of them and still verify.
    WithoutEmpty,
    /// All of them, as they are served.
    Served,
}

impl Form {
    /// In the order in which a signature is tried against them.
    pub const ALL: [Self; 3] = [Self::Specification, Self::WithoutEmpty, Self::Served];

    /// The text of a card in this form. Members that this workspace does not know stay in it.
    pub fn text(self, card: &Value) -> Result<String, SignatureError> {
        let mut card = card.clone();
        if let Some(members) = card.as_object_mut() {
            members.remove("signatures");
        }
        if self != Self::Served {
            drop_defaults(&mut card, &CARD);
        }
        if self == Self::WithoutEmpty {
            drop_empty(&mut card);
        }
        serde_json_canonicalizer::to_string(&card).map_err(|_| SignatureError::NotCanonical)
    }

    /// What the form is called where a person reads it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Specification => "the form of specification 8.4.1",
            Self::WithoutEmpty => "the card without what is empty",
            Self::Served => "the card as it is served",
        }
    }
}

/// The canonical text of a card without its signatures, with all its members as they are served (RFC 8785).
pub fn canonical_as_served(card: &AgentCard) -> Result<String, SignatureError> {
    Form::Served.text(&value(card)?)
}

/// The canonical text of a card in the form of specification 8.4.1: members at their default are left out unless they
/// are required or were set, then RFC 8785.
pub fn canonical(card: &AgentCard) -> Result<String, SignatureError> {
    Form::Specification.text(&value(card)?)
}

pub(crate) fn value(card: &AgentCard) -> Result<Value, SignatureError> {
    serde_json::to_value(card).map_err(|_| SignatureError::NotCanonical)
}

/// A message of the proto: which members are left out at their default, and which hold messages with such members.
/// A member that is named in neither is required, has a presence of its own, or is nobody's business: what looks like a
/// default inside an extension's `params` is the extension's own.
struct Shape {
    drops: &'static [&'static str],
    holds: &'static [(&'static str, Holds)],
}

enum Holds {
    One(&'static Shape),
    List(&'static Shape),
    Map(&'static Shape),
}

const CARD: Shape = Shape {
    drops: &["securitySchemes", "securityRequirements"],
    holds: &[
        ("supportedInterfaces", Holds::List(&Shape { drops: &["tenant"], holds: &[] })),
        ("capabilities", Holds::One(&CAPABILITIES)),
        ("securitySchemes", Holds::Map(&SCHEME)),
        ("securityRequirements", Holds::List(&REQUIREMENT)),
        ("skills", Holds::List(&SKILL)),
    ],
};
const CAPABILITIES: Shape = Shape {
    drops: &["extensions"],
    holds: &[("extensions", Holds::List(&Shape { drops: &["uri", "description", "required"], holds: &[] }))],
};
const SKILL: Shape = Shape {
    drops: &["examples", "inputModes", "outputModes", "securityRequirements"],
    holds: &[("securityRequirements", Holds::List(&REQUIREMENT))],
};
const REQUIREMENT: Shape =
    Shape { drops: &["schemes"], holds: &[("schemes", Holds::Map(&Shape { drops: &["list"], holds: &[] }))] };
const DESCRIBED: Shape = Shape { drops: &["description"], holds: &[] };
const SCHEME: Shape = Shape {
    drops: &[],
    holds: &[
        ("apiKeySecurityScheme", Holds::One(&DESCRIBED)),
        ("httpAuthSecurityScheme", Holds::One(&Shape { drops: &["description", "bearerFormat"], holds: &[] })),
        ("oauth2SecurityScheme", Holds::One(&OAUTH2)),
        ("openIdConnectSecurityScheme", Holds::One(&DESCRIBED)),
        ("mtlsSecurityScheme", Holds::One(&DESCRIBED)),
    ],
};
const OAUTH2: Shape = Shape { drops: &["description", "oauth2MetadataUrl"], holds: &[("flows", Holds::One(&FLOWS))] };
const REFRESHED: Shape = Shape { drops: &["refreshUrl"], holds: &[] };
const FLOWS: Shape = Shape {
    drops: &[],
    holds: &[
        ("authorizationCode", Holds::One(&Shape { drops: &["refreshUrl", "pkceRequired"], holds: &[] })),
        ("clientCredentials", Holds::One(&REFRESHED)),
        ("implicit", Holds::One(&Shape { drops: &["authorizationUrl", "refreshUrl", "scopes"], holds: &[] })),
        ("password", Holds::One(&Shape { drops: &["tokenUrl", "refreshUrl", "scopes"], holds: &[] })),
        ("deviceCode", Holds::One(&REFRESHED)),
    ],
};

fn drop_defaults(value: &mut Value, shape: &Shape) {
    let Some(members) = value.as_object_mut() else { return };
    for (name, holds) in shape.holds {
        match (members.get_mut(*name), holds) {
            (Some(one), Holds::One(shape)) => drop_defaults(one, shape),
            (Some(Value::Array(items)), Holds::List(shape)) => {
                items.iter_mut().for_each(|item| drop_defaults(item, shape));
            }
            (Some(Value::Object(entries)), Holds::Map(shape)) => {
                entries.values_mut().for_each(|entry| drop_defaults(entry, shape));
            }
            _ => {}
        }
    }
    members.retain(|name, value| match value {
        // ProtoJSON: absent.
        Value::Null => false,
        Value::Bool(false) => !shape.drops.contains(&name.as_str()),
        other => !(is_empty(other) && shape.drops.contains(&name.as_str())),
    });
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(drop_empty);
            items.retain(|item| !is_empty(item));
        }
        Value::Object(members) => {
            members.values_mut().for_each(drop_empty);
            members.retain(|_, member| !is_empty(member));
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => Map::is_empty(members),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
