//! Timestamps of specification 5.6.1: read as RFC 3339 with any offset, written in UTC with three decimals.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment, in whole milliseconds since 1970-01-01T00:00:00Z, between the years 1 and 9999.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// A text is no RFC 3339 timestamp between the years 1 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 timestamp such as 2026-10-06T09:00:00.250Z")]
pub struct NotATimestamp;

/// 0001-01-01T00:00:00Z, the first moment that a protobuf Timestamp can hold.
const FIRST: i64 = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999Z, the last.
const LAST: i64 = 253_402_300_799_999;

impl Timestamp {
    /// A moment from milliseconds since 1970. Outside the years 1 to 9999 the nearest moment inside is taken.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(FIRST, LAST))
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// The 24 characters of the written form, without an allocation.
    fn text(self) -> [u8; 24] {
        let time = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let civil = jiff::tz::Offset::UTC.to_datetime(time);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |at: usize, width: usize, mut value: u32| {
            for place in (at..at + width).rev() {
                text[place] = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        put(0, 4, u32::from(civil.year().unsigned_abs()));
        put(5, 2, u32::from(civil.month().unsigned_abs()));
        put(8, 2, u32::from(civil.day().unsigned_abs()));
        put(11, 2, u32::from(civil.hour().unsigned_abs()));
        put(14, 2, u32::from(civil.minute().unsigned_abs()));
        put(17, 2, u32::from(civil.second().unsigned_abs()));
        put(20, 3, u32::from(civil.millisecond().unsigned_abs()));
        text
    }
}

impl FromStr for Timestamp {
    type Err = NotATimestamp;

    fn from_str(text: &str) -> Result<Self, NotATimestamp> {
        // jiff reads more than RFC 3339 allows (a space for the T, a missing second, a zone in brackets).
        let shape = text.as_bytes();
        let strict = shape.len() >= 20
            && shape[4] == b'-'
            && matches!(shape[10], b'T' | b't')
            && shape[13] == b':'
            && shape[16] == b':'
            && !text.contains(['[', ',']);
        if !strict {
            return Err(NotATimestamp);
        }
        let millis = text.parse::<jiff::Timestamp>().map_err(|_| NotATimestamp)?.as_millisecond();
        if (FIRST..=LAST).contains(&millis) { Ok(Self(millis)) } else { Err(NotATimestamp) }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
