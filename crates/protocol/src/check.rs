//! What is wrong with a request, field by field.
//!
//! A good request never comes here. When decoding fails, a second and slower pass walks the request beside a
//! description of what it should look like and names every field that is wrong (DECISIONS W7).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::call::Method;
use crate::error::{Error, FieldViolation};
use crate::json::{Json, NotJson, Object};
use crate::message::{Message, Role};
use crate::part;
use crate::read::{self, Text};
use crate::task::TaskState;
use crate::time::Timestamp;

/// Collects violations.
#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<FieldViolation>);

impl From<Violations> for Vec<FieldViolation> {
    fn from(violations: Violations) -> Self {
        violations.0
    }
}

impl Violations {
    fn add(&mut self, field: &str, description: impl Into<String>) {
        self.0.push(FieldViolation { field: field.to_owned(), description: description.into() });
    }

    pub(crate) fn there(&mut self, field: &str, there: bool) {
        if !there {
            self.add(field, required(field));
        }
    }

    pub(crate) fn not_negative(&mut self, field: &str, number: Option<i32>) {
        if number.is_some_and(|number| number < 0) {
            self.add(field, format!("{} must not be negative", last(field)));
        }
    }

    pub(crate) fn within(&mut self, field: &str, number: Option<i32>, low: i32, high: i32) {
        if number.is_some_and(|number| !(low..=high).contains(&number)) {
            self.add(field, format!("{} must be from {low} to {high}", last(field)));
        }
    }

    pub(crate) fn message(&mut self, field: &str, message: &Message) {
        if message.role != Role::User {
            self.add(&format!("{field}.role"), "role must be ROLE_USER");
        }
        if message.parts.is_empty() {
            self.add(&format!("{field}.parts"), required("parts"));
        }
    }
}

/// The error of params that could not be decoded, or that hold wrong values: then `known` are those.
pub(crate) fn explain(method: Method, params: &str, known: Vec<FieldViolation>) -> Error {
    let mut found = Violations::default();
    match serde_json::from_str::<Members<'_>>(params) {
        Ok(members) => found.shape("", shape_of(method), &members),
        Err(_) => found.add("params", not_an_object("params", params)),
    }
    match (found.0.is_empty(), known.is_empty()) {
        (false, _) => Error::violations(found.0),
        (true, false) => Error::violations(known),
        (true, true) => Error::invalid("params", "params cannot be read"),
    }
}

fn required(field: &str) -> String {
    format!("{} is required", last(field))
}

fn last(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}

/// What a member should look like.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// A text that is not empty. An optional id may be empty, which is absent; one in a list may not.
    Id,
    Integer {
        low: i32,
        high: i32,
    },
    Flag,
    Base64,
    Time,
    State,
    UserRole,
    Struct,
    Anything,
    Message(&'static [Member]),
    /// A message with one of these as its content.
    Part,
    List(&'static Kind),
}

/// One member of an object.
#[derive(Clone, Copy)]
struct Member {
    name: &'static str,
    kind: Kind,
    required: bool,
}

const fn may(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, required: false }
}

const fn must(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, required: true }
}

const HISTORY: Member = may("historyLength", Kind::Integer { low: 0, high: i32::MAX });
const PAGE_SIZE: Member = may("pageSize", Kind::Integer { low: 1, high: 100 });
const TENANT: Member = may("tenant", Kind::Text);

const PART: &[Member] = &[
    may("text", Kind::Text),
    may("raw", Kind::Base64),
    may("url", Kind::Text),
    may("data", Kind::Anything),
    may("metadata", Kind::Struct),
    may("filename", Kind::Text),
    may("mediaType", Kind::Text),
];
const MESSAGE: &[Member] = &[
    must("messageId", Kind::Text),
    may("contextId", Kind::Text),
    may("taskId", Kind::Text),
    must("role", Kind::UserRole),
    must("parts", Kind::List(&Kind::Part)),
    may("metadata", Kind::Struct),
    may("extensions", Kind::List(&Kind::Text)),
    may("referenceTaskIds", Kind::List(&Kind::Id)),
];
const AUTHENTICATION: &[Member] = &[must("scheme", Kind::Text), may("credentials", Kind::Text)];
const fn config(task_id: Member) -> [Member; 6] {
    [
        TENANT,
        may("id", Kind::Text),
        task_id,
        must("url", Kind::Text),
        may("token", Kind::Text),
        may("authentication", Kind::Message(AUTHENTICATION)),
    ]
}
const CONFIG: &[Member] = &config(must("taskId", Kind::Text));
const INLINE_CONFIG: &[Member] = &config(may("taskId", Kind::Text));
const CONFIGURATION: &[Member] = &[
    may("acceptedOutputModes", Kind::List(&Kind::Text)),
    HISTORY,
    may("returnImmediately", Kind::Flag),
    may("taskPushNotificationConfig", Kind::Message(INLINE_CONFIG)),
];
const SEND: &[Member] = &[
    TENANT,
    must("message", Kind::Message(MESSAGE)),
    may("configuration", Kind::Message(CONFIGURATION)),
    may("metadata", Kind::Struct),
];
const GET: &[Member] = &[TENANT, must("id", Kind::Text), HISTORY];
const LIST: &[Member] = &[
    TENANT,
    may("contextId", Kind::Text),
    may("status", Kind::State),
    PAGE_SIZE,
    may("pageToken", Kind::Text),
    HISTORY,
    may("statusTimestampAfter", Kind::Time),
    may("includeArtifacts", Kind::Flag),
];
const CANCEL: &[Member] = &[TENANT, must("id", Kind::Text), may("metadata", Kind::Struct)];
const SUBSCRIBE: &[Member] = &[TENANT, must("id", Kind::Text)];
const ONE_CONFIG: &[Member] = &[TENANT, must("taskId", Kind::Text), must("id", Kind::Text)];
const LIST_CONFIGS: &[Member] = &[
    TENANT,
    must("taskId", Kind::Text),
    may("pageSize", Kind::Integer { low: 0, high: i32::MAX }),
    may("pageToken", Kind::Text),
];
const CARD: &[Member] = &[TENANT];

fn shape_of(method: Method) -> &'static [Member] {
    match method {
        Method::SendMessage | Method::SendStreamingMessage => SEND,
        Method::GetTask => GET,
        Method::ListTasks => LIST,
        Method::CancelTask => CANCEL,
        Method::SubscribeToTask => SUBSCRIBE,
        Method::CreateTaskPushNotificationConfig => CONFIG,
        Method::GetTaskPushNotificationConfig | Method::DeleteTaskPushNotificationConfig => ONE_CONFIG,
        Method::ListTaskPushNotificationConfigs => LIST_CONFIGS,
        Method::GetExtendedAgentCard => CARD,
    }
}

/// `messageId` in the proto's own spelling, `message_id`.
fn proto_name(name: &str) -> String {
    let mut proto = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            proto.push('_');
        }
        proto.push(letter.to_ascii_lowercase());
    }
    proto
}

/// The members of an object as they stand there: twice if they do, and their values not looked at.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

/// Why JSON cannot be read as an object, a text or a list: it is of another kind, or an escape in it is half a character.
fn unless(json: &str, opening: char, otherwise: String) -> String {
    if json.trim_ascii_start().starts_with(opening) { NotJson::Surrogate.to_string() } else { otherwise }
}

fn not_an_object(name: &str, json: &str) -> String {
    unless(json, '{', format!("{name} must be an object"))
}

impl Violations {
    fn shape(&mut self, at: &str, shape: &[Member], members: &Members<'_>) {
        for member in shape {
            let field = if at.is_empty() { member.name.to_owned() } else { format!("{at}.{}", member.name) };
            let mut found = members.named(member.name);
            match (found.next(), found.next()) {
                (_, Some(_)) => self.add(&field, format!("{} stands there twice", member.name)),
                (Some(value), None) if value.get() != "null" => self.value(&field, member.kind, member.required, value),
                _ if member.required => self.add(&field, required(member.name)),
                _ => {}
            }
        }
    }

    fn value(&mut self, field: &str, kind: Kind, is_required: bool, value: &RawValue) {
        let name = last(field);
        let json = value.get();
        let wrong = match kind {
            Kind::Text | Kind::Id => match serde_json::from_str::<Text<'_>>(json) {
                Ok(text) if text.0.is_empty() && is_required => Some(required(name)),
                Ok(text) if text.0.is_empty() && matches!(kind, Kind::Id) => Some(format!("{name} must not be empty")),
                Ok(_) => None,
                Err(_) => Some(unless(json, '"', format!("{name} must be a string"))),
            },
            Kind::Flag => (!matches!(json, "true" | "false")).then(|| format!("{name} must be true or false")),
            Kind::Struct => match Object::parse(json) {
                Ok(_) => None,
                Err(NotJson::NotAnObject) => Some(format!("{name} must be an object")),
                Err(why) => Some(why.to_string()),
            },
            Kind::Anything => Json::parse(json).err().map(|why| why.to_string()),
            Kind::Base64 => {
                let bytes = serde_json::from_str::<Text<'_>>(json).ok().and_then(|text| part::base64(&text.0));
                bytes.is_none().then(|| format!("{name} must be base64"))
            }
            Kind::Time => {
                let time = serde_json::from_str::<Timestamp>(json);
                time.is_err().then(|| format!("{name} must be an RFC 3339 timestamp"))
            }
            Kind::State => {
                let state = serde_json::from_str::<TaskState>(json);
                state.is_err().then(|| format!("{name} must be one of the TASK_STATE_ words"))
            }
            Kind::UserRole => {
                let role = serde_json::from_str::<Role>(json).ok();
                (role != Some(Role::User)).then(|| format!("{name} must be ROLE_USER"))
            }
            Kind::Integer { low, high } => {
                let text = serde_json::from_str::<Text<'_>>(json).map_or(json.into(), |text| text.0);
                match read::number(&text).filter(|number| number.fract() == 0.0) {
                    None => Some(format!("{name} must be a whole number")),
                    Some(number) if low == 0 && number < 0.0 => Some(format!("{name} must not be negative")),
                    Some(number) if number < f64::from(low) || number > f64::from(high) => {
                        Some(format!("{name} must be from {low} to {high}"))
                    }
                    Some(_) => None,
                }
            }
            Kind::Message(shape) => match serde_json::from_str::<Members<'_>>(json) {
                Ok(members) => return self.shape(field, shape, &members),
                Err(_) => Some(not_an_object(name, json)),
            },
            Kind::Part => match serde_json::from_str::<Members<'_>>(json) {
                Ok(members) => {
                    self.shape(field, PART, &members);
                    let there = ["text", "raw", "url", "data"]
                        .into_iter()
                        .filter(|kind| members.named(kind).any(|value| *kind == "data" || value.get() != "null"));
                    (there.count() != 1).then(|| "exactly one of text, raw, url and data must be there".to_owned())
                }
                Err(_) => Some(not_an_object(name, json)),
            },
            Kind::List(kind) => match serde_json::from_str::<Vec<&RawValue>>(json) {
                Ok(items) if items.is_empty() && is_required => Some(required(name)),
                Ok(items) => {
                    for (at, item) in items.into_iter().enumerate() {
                        self.value(&format!("{field}[{at}]"), *kind, false, item);
                    }
                    None
                }
                Err(_) => Some(format!("{name} must be a list")),
            },
        };
        if let Some(wrong) = wrong {
            self.add(field, wrong);
        }
    }
}

impl<'a> Members<'a> {
    /// The values of a member, in either spelling.
    fn named(&self, name: &str) -> impl Iterator<Item = &'a RawValue> {
        let proto = proto_name(name);
        self.0.iter().filter(move |(known, _)| *known == name || *known == proto).map(|(_, value)| *value)
    }
}
