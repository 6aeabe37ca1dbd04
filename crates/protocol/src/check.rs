//! What is wrong with a request, field by field.
//!
//! A good request never comes here. When decoding fails, a second and slower pass walks the request beside a
//! description of what it should look like and names every field that is wrong (DECISIONS W7).

use serde_json::{Map, Value};

use crate::call::Method;
use crate::error::{Error, FieldViolation};
use crate::message::{Message, Role};
use crate::part;
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

/// The error of params that could not be decoded.
pub(crate) fn explain(method: Method, params: &str, cause: &serde_json::Error) -> Error {
    let found = walk(method, params);
    if found.is_empty() { Error::invalid("params", cause_text(cause)) } else { Error::violations(found) }
}

/// The error of params that were decoded but hold wrong values.
pub(crate) fn explain_values(method: Method, params: &str, known: Vec<FieldViolation>) -> Error {
    let found = walk(method, params);
    Error::violations(if found.is_empty() { known } else { found })
}

fn walk(method: Method, params: &str) -> Vec<FieldViolation> {
    let mut found = Violations::default();
    match serde_json::from_str::<Value>(params) {
        Ok(Value::Object(members)) => found.shape("", shape_of(method), &members),
        Ok(_) => found.add("params", "params must be an object"),
        Err(cause) => found.add("params", cause_text(&cause)),
    }
    found.into()
}

/// serde's words without the place, which means nothing to a caller.
fn cause_text(cause: &serde_json::Error) -> String {
    let text = cause.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
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
    Integer { low: i32, high: i32 },
    Flag,
    Base64,
    Time,
    State,
    UserRole,
    Struct,
    Anything,
    Message(&'static [Member]),
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
    must("parts", Kind::List(&Kind::Message(PART))),
    may("metadata", Kind::Struct),
    may("extensions", Kind::List(&Kind::Text)),
    may("referenceTaskIds", Kind::List(&Kind::Text)),
];
const AUTHENTICATION: &[Member] = &[must("scheme", Kind::Text), may("credentials", Kind::Text)];
const INLINE_CONFIG: &[Member] = &[
    TENANT,
    may("id", Kind::Text),
    may("taskId", Kind::Text),
    must("url", Kind::Text),
    may("token", Kind::Text),
    may("authentication", Kind::Message(AUTHENTICATION)),
];
const CONFIG: &[Member] = &[
    TENANT,
    may("id", Kind::Text),
    must("taskId", Kind::Text),
    must("url", Kind::Text),
    may("token", Kind::Text),
    may("authentication", Kind::Message(AUTHENTICATION)),
];
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
pub(crate) fn proto_name(name: &str) -> String {
    let mut proto = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            proto.push('_');
        }
        proto.push(letter.to_ascii_lowercase());
    }
    proto
}

impl Violations {
    fn shape(&mut self, at: &str, shape: &[Member], members: &Map<String, Value>) {
        for member in shape {
            let field = if at.is_empty() { member.name.to_owned() } else { format!("{at}.{}", member.name) };
            let proto = proto_name(member.name);
            let camel = members.get(member.name);
            let snake = members.get(&proto).filter(|_| proto != member.name);
            if camel.is_some() && snake.is_some() {
                self.add(&field, format!("{} stands there twice", member.name));
                continue;
            }
            match camel.or(snake) {
                Some(Value::Null) | None if member.required => self.add(&field, required(member.name)),
                Some(Value::Null) | None => {}
                Some(value) => self.value(&field, member, value),
            }
        }
        if std::ptr::eq(shape, PART) {
            let kinds = ["text", "raw", "url"];
            let there = kinds.iter().filter(|kind| members.get(**kind).is_some_and(|value| !value.is_null())).count()
                + usize::from(members.contains_key("data"));
            if there != 1 {
                self.add(at, "exactly one of text, raw, url and data must be there");
            }
        }
    }

    fn value(&mut self, field: &str, member: &Member, value: &Value) {
        let name = last(field);
        match (member.kind, value) {
            (Kind::Anything, _) | (Kind::Flag, Value::Bool(_)) | (Kind::Struct, Value::Object(_)) => {}
            (Kind::Text, Value::String(text)) => {
                if member.required && text.is_empty() {
                    self.add(field, required(name));
                }
            }
            (Kind::Text, _) => self.add(field, format!("{name} must be a string")),
            (Kind::Flag, _) => self.add(field, format!("{name} must be true or false")),
            (Kind::Struct, _) => self.add(field, format!("{name} must be an object")),
            (Kind::Base64, Value::String(text)) if part::base64(text).is_some() => {}
            (Kind::Base64, _) => self.add(field, format!("{name} must be base64")),
            (Kind::Time, Value::String(text)) if text.parse::<Timestamp>().is_ok() => {}
            (Kind::Time, _) => self.add(field, format!("{name} must be an RFC 3339 timestamp")),
            (Kind::State, value) => {
                if serde_json::from_value::<TaskState>(value.clone()).is_err() {
                    self.add(field, format!("{name} must be one of the TASK_STATE_ words"));
                }
            }
            (Kind::UserRole, value) => {
                if serde_json::from_value::<Role>(value.clone()).ok() != Some(Role::User) {
                    self.add(field, format!("{name} must be ROLE_USER"));
                }
            }
            (Kind::Integer { low, high }, value) => {
                let number = match value {
                    Value::String(text) => text.parse::<i32>().ok().map(f64::from),
                    number => number.as_f64().filter(|number| number.fract() == 0.0),
                };
                match number {
                    None => self.add(field, format!("{name} must be a whole number")),
                    Some(number) if number < f64::from(low) && low == 0 => {
                        self.add(field, format!("{name} must not be negative"));
                    }
                    Some(number) if number < f64::from(low) || number > f64::from(high) => {
                        self.add(field, format!("{name} must be from {low} to {high}"));
                    }
                    Some(_) => {}
                }
            }
            (Kind::Message(shape), Value::Object(members)) => self.shape(field, shape, members),
            (Kind::Message(_), _) => self.add(field, format!("{name} must be an object")),
            (Kind::List(_), Value::Array(items)) if items.is_empty() && member.required => {
                self.add(field, required(name));
            }
            (Kind::List(kind), Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    let item_member = Member { name: "", kind: *kind, required: false };
                    self.value(&format!("{field}[{at}]"), &item_member, item);
                }
            }
            (Kind::List(_), _) => self.add(field, format!("{name} must be a list")),
        }
    }
}
