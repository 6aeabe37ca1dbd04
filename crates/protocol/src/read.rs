//! How ProtoJSON is read where it differs from serde's habits (DECISIONS W5): `null` and an empty string are absent,
//! integers may come as text, a struct is an object and never an array.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A deserializer that takes an object for a struct and nothing else. serde's derive would also take an array.
pub(crate) struct ObjectOnly<D>(pub D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Reads a whole text as a struct that has no business being an array.
pub(crate) fn whole<'a, R, T>(mut text: serde_json::Deserializer<R>) -> Result<T, serde_json::Error>
where
    R: serde_json::de::Read<'a>,
    T: Deserialize<'a>,
{
    let value = T::deserialize(ObjectOnly(&mut text))?;
    text.end().map(|()| value)
}

/// Reads, and unless it says `read`, writes a struct through the functions that `#[serde(remote = "Self")]` derives,
/// reading objects only. Those functions show up beside the trait's; `Type::deserialize` names them, and takes arrays.
macro_rules! object {
    (read $($name:ty),* $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$name>::deserialize(crate::read::ObjectOnly(deserializer))
            }
        }
    )*};
    ($($name:ty),* $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$name>::serialize(self, serializer)
            }
        }

        crate::read::object!(read $name);
    )*};
}
pub(crate) use object;

/// Reads a message that is only a oneof; [`oneof!`] says of what.
pub(crate) struct OneOf<T>(PhantomData<T>);

/// Reads a message that is only a oneof.
pub(crate) fn one_of<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    OneOf<T>: Visitor<'de, Value = T>,
{
    deserializer.deserialize_map(OneOf(PhantomData))
}

/// Reads an enum that stands for a message that is only a oneof: exactly one of its members is there, `null` is absent,
/// and other members are ignored. After `visitor` only [`one_of`] reads it, and the enum may do so its own way.
macro_rules! oneof {
    ($name:ident { $($variant:ident: $member:literal $(| $proto:literal)?),* $(,)? }) => {
        crate::read::oneof!(visitor $name { $($variant: $member $(| $proto)?,)* });

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::read::one_of(deserializer)
            }
        }
    };
    (visitor $name:ident { $($variant:ident: $member:literal $(| $proto:literal)?),* $(,)? }) => {
        impl<'de> serde::de::Visitor<'de> for crate::read::OneOf<$name> {
            type Value = $name;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!("an object with one of", $(" ", $member),*))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<$name, A::Error> {
                let mut found = None;
                while let Some(name) = members.next_key::<crate::read::Text<'_>>()? {
                    let value = match &*name.0 {
                        $($member $(| $proto)? => members.next_value::<Option<_>>()?.map($name::$variant),)*
                        _ => members.next_value::<serde::de::IgnoredAny>().map(|_| None)?,
                    };
                    if value.is_some() && std::mem::replace(&mut found, value).is_some() {
                        return Err(serde::de::Error::custom(concat!("more than one of", $(" ", $member),*)));
                    }
                }
                found.ok_or_else(|| serde::de::Error::custom(concat!("none of", $(" ", $member),*)))
            }
        }
    };
}
pub(crate) use oneof;

/// A text that borrows from what is read, unless it holds an escape.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// An optional text; `null` and `""` are absent.
pub(crate) fn text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: for<'a> From<&'a str>,
{
    let text = Option::<Text<'de>>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.0.is_empty()).map(|text| T::from(&text.0)))
}

/// An optional id; `null` and `""` are absent.
pub(crate) fn id<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: for<'a> TryFrom<&'a str>,
{
    let text = Option::<Text<'de>>::deserialize(deserializer)?;
    Ok(text.and_then(|text| T::try_from(&text.0).ok()))
}

/// A required text; an empty one counts as absent, which is an error.
pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() { Err(de::Error::custom("must not be empty")) } else { Ok(text) }
}

/// `null` is the default: an empty list, an empty map, false.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A member that is there, `null` included: `"data": null` is content.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// An optional 32-bit integer: a number without a fraction, or the same as text.
pub(crate) fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    struct Integer;

    impl<'de> Visitor<'de> for Integer {
        type Value = Option<i32>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a 32-bit integer")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Option<i32>, E> {
            Ok(None)
        }

        fn visit_none<E: de::Error>(self) -> Result<Option<i32>, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<i32>, D::Error> {
            deserializer.deserialize_any(self)
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<Option<i32>, E> {
            i32::try_from(value).map(Some).map_err(|_| E::custom("out of range"))
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<Option<i32>, E> {
            i32::try_from(value).map(Some).map_err(|_| E::custom("out of range"))
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<Option<i32>, E> {
            let whole = value as i32;
            if f64::from(whole) == value { Ok(Some(whole)) } else { Err(E::custom("not a 32-bit integer")) }
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<i32>, E> {
            self.visit_f64(number(text).ok_or_else(|| E::custom("not a 32-bit integer"))?)
        }
    }

    deserializer.deserialize_option(Integer)
}

/// A number written as JSON, with nothing around it. A double holds every 32-bit integer.
pub(crate) fn number(text: &str) -> Option<f64> {
    let bare = !text.starts_with(char::is_whitespace) && !text.ends_with(char::is_whitespace);
    serde_json::from_str(text).ok().filter(|_| bare)
}

/// An enum of the proto: its word, or its number where ProtoJSON allows it. `null` is the first value.
pub(crate) fn word<'de, D, T>(deserializer: D, words: &'static [(&'static str, T)]) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Copy + 'static,
{
    struct Word<T: 'static>(&'static [(&'static str, T)], PhantomData<T>);

    impl<'de, T: Copy> Visitor<'de> for Word<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("one of")?;
            self.0.iter().try_for_each(|(word, _)| write!(f, " {word}"))
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            let known = self.0.iter().find(|(word, _)| *word == text);
            known.map(|(_, value)| *value).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            let known = usize::try_from(number).ok().and_then(|at| self.0.get(at));
            known.map(|(_, value)| *value).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(number), &self))
        }

        fn visit_unit<E: de::Error>(self) -> Result<T, E> {
            self.visit_u64(0)
        }
    }

    deserializer.deserialize_any(Word(words, PhantomData))
}

/// An enum of the proto in a place where its first value, which says nothing, counts as absent.
pub(crate) fn said<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + PartialEq + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.filter(|value| *value != T::default()))
}

/// Whether a flag stands at its default and is therefore not written.
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}
