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

/// What may be wrong with a field. The words are the same on every binding; a binding whose wire has types of its own
/// says less of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// It has to be there, and not empty.
    Required,
    /// An entry of a list of ids is empty.
    Empty,
    /// It stands there more than once.
    Twice,
    /// It has to be of another type: these words.
    NotA(&'static str),
    /// A number below zero.
    Negative,
    /// A number outside of these two.
    Range(i32, i32),
    /// A part with more or less than one content.
    NotOneContent,
    /// JSON of the caller's that cannot be kept.
    Json(NotJson),
}

impl Wrong {
    /// No moment between the years 1 and 9999.
    pub const TIME: Self = Self::NotA("an RFC 3339 timestamp");
    /// No state of a task.
    pub const STATE: Self = Self::NotA("one of the TASK_STATE_ words");
    /// A message that does not come from the client.
    pub const ROLE: Self = Self::NotA("ROLE_USER");

    fn words(self, name: &str) -> String {
        match self {
            Self::Required => format!("{name} is required"),
            Self::Empty => format!("{name} must not be empty"),
            Self::Twice => format!("{name} stands there twice"),
            Self::NotA(what) => format!("{name} must be {what}"),
            Self::Negative => format!("{name} must not be negative"),
            Self::Range(low, high) => format!("{name} must be from {low} to {high}"),
            Self::NotOneContent => "exactly one of text, raw, url and data must be there".to_owned(),
            Self::Json(NotJson::NotAnObject) => format!("{name} must be an object"),
            Self::Json(why) => why.to_string(),
        }
    }

    /// Whether a number is outside of these two.
    fn outside(number: f64, low: i32, high: i32) -> Option<Self> {
        match number {
            _ if low == 0 && number < 0.0 => Some(Self::Negative),
            _ if number < f64::from(low) || number > f64::from(high) => Some(Self::Range(low, high)),
            _ => None,
        }
    }
}

/// What only a server knows to be wrong with a text: given the path of its field and the text, which is empty when the
/// field is absent, the words that say what is wrong. It is asked about texts whose shape is right.
pub type Rules<'a> = dyn Fn(&str, &str) -> Option<String> + 'a;

/// No rules beside the shape.
pub fn no_rules(_field: &str, _text: &str) -> Option<String> {
    None
}

/// Collects violations, in the order in which they are found.
#[derive(Debug, Default)]
pub struct Violations(Vec<FieldViolation>);

impl From<Violations> for Vec<FieldViolation> {
    fn from(violations: Violations) -> Self {
        violations.0
    }
}

impl Violations {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One more field is wrong. Its path ends in the name that the words use.
    pub fn add(&mut self, field: &str, wrong: Wrong) {
        self.0.push(FieldViolation { field: field.to_owned(), description: wrong.words(last(field)) });
    }

    /// One more field is wrong, if a rule says so.
    pub fn ask(&mut self, rules: &Rules<'_>, field: &str, text: &str) {
        if let Some(description) = rules(field, text) {
            self.0.push(FieldViolation { field: field.to_owned(), description });
        }
    }

    pub(crate) fn there(&mut self, field: &str, there: bool) {
        if !there {
            self.add(field, Wrong::Required);
        }
    }

    /// A number has to stay within these two, if it is there.
    pub fn within(&mut self, field: &str, number: Option<i32>, low: i32, high: i32) {
        if let Some(wrong) = number.and_then(|number| Wrong::outside(number.into(), low, high)) {
            self.add(field, wrong);
        }
    }

    /// A number may be anything but negative, if it is there.
    pub fn not_negative(&mut self, field: &str, number: Option<i32>) {
        self.within(field, number, 0, i32::MAX);
    }

    pub(crate) fn message(&mut self, field: &str, message: &Message) {
        if message.role != Role::User {
            self.add(&format!("{field}.role"), Wrong::ROLE);
        }
        if message.parts.is_empty() {
            self.add(&format!("{field}.parts"), Wrong::Required);
        }
    }
}

/// The error of params that could not be decoded, or that hold wrong values: then `known` are those.
pub(crate) fn explain(method: Method, params: &str, known: Vec<FieldViolation>, rules: &Rules<'_>) -> Error {
    let mut found = Violations::default();
    match serde_json::from_str::<Members<'_>>(params) {
        Ok(members) => found.shape("", shape_of(method), &members, rules),
        Err(_) => found.add("params", not_an_object(params)),
    }
    match (found.0.is_empty(), known.is_empty()) {
        (false, _) => Error::violations(found.0),
        (true, false) => Error::violations(known),
        (true, true) => Error::invalid("params", "params cannot be read"),
    }
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
fn unless(json: &str, opening: char, otherwise: &'static str) -> Wrong {
    let is_of_this_kind = json.trim_ascii_start().starts_with(opening);
    if is_of_this_kind { Wrong::Json(NotJson::Surrogate) } else { Wrong::NotA(otherwise) }
}

fn not_an_object(json: &str) -> Wrong {
    unless(json, '{', "an object")
}

impl Violations {
    fn shape(&mut self, at: &str, shape: &[Member], members: &Members<'_>, rules: &Rules<'_>) {
        for member in shape {
            let field = if at.is_empty() { member.name.to_owned() } else { format!("{at}.{}", member.name) };
            let mut found = members.named(member.name);
            match (found.next(), found.next()) {
                (_, Some(_)) => self.add(&field, Wrong::Twice),
                (Some(value), None) if value.get() != "null" => {
                    self.value(&field, member.kind, member.required, value, rules);
                }
                _ if member.required => self.add(&field, Wrong::Required),
                _ => self.ask(rules, &field, ""),
            }
        }
    }

    fn value(&mut self, field: &str, kind: Kind, is_required: bool, value: &RawValue, rules: &Rules<'_>) {
        let json = value.get();
        let wrong = match kind {
            Kind::Text | Kind::Id => match serde_json::from_str::<Text<'_>>(json) {
                Ok(text) if text.0.is_empty() && is_required => Some(Wrong::Required),
                Ok(text) if text.0.is_empty() && matches!(kind, Kind::Id) => Some(Wrong::Empty),
                Ok(text) => return self.ask(rules, field, &text.0),
                Err(_) => Some(unless(json, '"', "a string")),
            },
            Kind::Flag => (!matches!(json, "true" | "false")).then_some(Wrong::NotA("true or false")),
            Kind::Struct => Object::parse(json).err().map(Wrong::Json),
            Kind::Anything => Json::parse(json).err().map(Wrong::Json),
            Kind::Base64 => {
                let bytes = serde_json::from_str::<Text<'_>>(json).ok().and_then(|text| part::base64(&text.0));
                bytes.is_none().then_some(Wrong::NotA("base64"))
            }
            Kind::Time => serde_json::from_str::<Timestamp>(json).is_err().then_some(Wrong::TIME),
            Kind::State => serde_json::from_str::<TaskState>(json).is_err().then_some(Wrong::STATE),
            Kind::UserRole => match serde_json::from_str::<Role>(json) {
                Ok(Role::User) => None,
                Ok(Role::Unspecified) => Some(Wrong::Required),
                Ok(Role::Agent) | Err(_) => Some(Wrong::ROLE),
            },
            Kind::Integer { low, high } => {
                let text = serde_json::from_str::<Text<'_>>(json).map_or(json.into(), |text| text.0);
                match read::number(&text).filter(|number| number.fract() == 0.0) {
                    None => Some(Wrong::NotA("a whole number")),
                    Some(number) => Wrong::outside(number, low, high),
                }
            }
            Kind::Message(shape) => match serde_json::from_str::<Members<'_>>(json) {
                Ok(members) => return self.shape(field, shape, &members, rules),
                Err(_) => Some(not_an_object(json)),
            },
            Kind::Part => match serde_json::from_str::<Members<'_>>(json) {
                Ok(members) => {
                    self.shape(field, PART, &members, rules);
                    let there = ["text", "raw", "url", "data"]
                        .into_iter()
                        .filter(|kind| members.named(kind).any(|value| *kind == "data" || value.get() != "null"));
                    (there.count() != 1).then_some(Wrong::NotOneContent)
                }
                Err(_) => Some(not_an_object(json)),
            },
            Kind::List(kind) => match serde_json::from_str::<Vec<&RawValue>>(json) {
                Ok(items) if items.is_empty() && is_required => Some(Wrong::Required),
                Ok(items) => {
                    for (at, item) in items.into_iter().enumerate() {
                        self.value(&format!("{field}[{at}]"), *kind, false, item, rules);
                    }
                    None
                }
                Err(_) => Some(Wrong::NotA("a list")),
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
