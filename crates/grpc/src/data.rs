//! JSON of the caller's making as `google.protobuf.Value` and `Struct`, and timestamps.

use std::collections::BTreeMap;

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use protocol::check::Wrong;
use protocol::{Json, Object, Timestamp};
use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;

use crate::depth::{TOO_DEEP, is_too_deep};
use crate::read::{At, Reading};

/// JSON as a message.
pub(crate) fn value(json: &Json) -> Value {
    of_text(json.text())
}

/// A JSON object as a message.
pub(crate) fn fields(object: &Option<Object>) -> Option<Struct> {
    object.as_ref().map(|object| Struct { fields: members(object.text()) })
}

/// The text is JSON, so nothing here can fail; what could stands as null.
fn of_text(text: &str) -> Value {
    let kind = match text.as_bytes().first() {
        Some(b'{') => Kind::StructValue(Struct { fields: members(text) }),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            Kind::ListValue(ListValue { values: items.into_iter().map(|item| of_text(item.get())).collect() })
        }
        Some(b'"') => Kind::StringValue(serde_json::from_str(text).unwrap_or_default()),
        Some(b't') => Kind::BoolValue(true),
        Some(b'f') => Kind::BoolValue(false),
        Some(b'-' | b'0'..=b'9') => Kind::NumberValue(text.parse().unwrap_or(0.0_f64).clamp(f64::MIN, f64::MAX)),
        _ => Kind::NullValue(0),
    };
    Value { kind: Some(kind) }
}

fn members(text: &str) -> BTreeMap<String, Value> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    members.into_iter().map(|(name, value)| (name, of_text(value.get()))).collect()
}

/// A message as JSON. A whole number that a double holds exactly has no fraction, as somebody who counts expects.
struct Shown<'a>(&'a Value);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
        match &self.0.kind {
            Some(Kind::NullValue(_)) => serializer.serialize_unit(),
            Some(Kind::BoolValue(flag)) => serializer.serialize_bool(*flag),
            Some(Kind::StringValue(text)) => serializer.serialize_str(text),
            Some(Kind::NumberValue(number)) if !number.is_finite() => Err(ser::Error::custom("not a number of JSON")),
            Some(Kind::NumberValue(number)) if number.abs() <= EXACT && is_whole(*number) => {
                serializer.serialize_i64(*number as i64)
            }
            Some(Kind::NumberValue(number)) => serializer.serialize_f64(*number),
            Some(Kind::ListValue(list)) => serializer.collect_seq(list.values.iter().map(Shown)),
            Some(Kind::StructValue(object)) => ShownObject(object).serialize(serializer),
            None => Err(ser::Error::custom("a value of no kind")),
        }
    }
}

/// Whether an integer says the same, which one cannot of minus zero.
fn is_whole(number: f64) -> bool {
    (number as i64 as f64).to_bits() == number.to_bits()
}

struct ShownObject<'a>(&'a Struct);

impl Serialize for ShownObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.fields.iter().map(|(name, value)| (name, Shown(value))))
    }
}

/// Only protobuf can say these: a number that is none, and a value of no kind.
const NO_JSON: Wrong = Wrong::NotA("JSON, in which each value has a kind and each number is finite");

impl Reading<'_> {
    pub(crate) fn json(&mut self, at: At<'_>, value: &Value) -> Option<Json> {
        let json = Json::of(&Shown(value)).ok().or_else(|| self.wrong(at, NO_JSON))?;
        if is_too_deep(json.text()) { self.wrong(at, TOO_DEEP) } else { Some(json) }
    }

    pub(crate) fn object(&mut self, at: At<'_>, object: Option<&Struct>) -> Option<Option<Object>> {
        let Some(object) = object else { return Some(None) };
        let json = Json::of(&ShownObject(object)).and_then(Object::try_from).ok();
        let json = json.or_else(|| self.wrong(at, NO_JSON))?;
        if is_too_deep(json.text()) { self.wrong(at, TOO_DEEP) } else { Some(Some(json)) }
    }

    /// A moment. Digits beyond the milliseconds are dropped.
    pub(crate) fn time(&mut self, at: At<'_>, time: Option<&prost_types::Timestamp>) -> Option<Option<Timestamp>> {
        let Some(prost_types::Timestamp { seconds, nanos }) = time else { return Some(None) };
        let fraction = u32::try_from(*nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
        let millis = fraction.and_then(|nanos| seconds.checked_mul(1000)?.checked_add(i64::from(nanos / 1_000_000)));
        let inside = millis.filter(|millis| Timestamp::from_millis(*millis).millis() == *millis);
        inside.map(|millis| Some(Timestamp::from_millis(millis))).or_else(|| self.wrong(at, Wrong::TIME))
    }
}

/// A moment as a message.
pub(crate) fn time(time: Timestamp) -> prost_types::Timestamp {
    let (seconds, millis) = (time.millis().div_euclid(1000), time.millis().rem_euclid(1000));
    prost_types::Timestamp { seconds, nanos: millis as i32 * 1_000_000 }
}
