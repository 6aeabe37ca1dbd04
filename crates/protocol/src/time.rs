//! Timestamps of specification 5.6.1: read as RFC 3339 with any offset, written in UTC with three decimals.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::read::Text;

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
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

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
        let civil = EPOCH.saturating_add(SignedDuration::from_millis(self.0));
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |at: usize, width: usize, mut value: u16| {
            for place in (at..at + width).rev() {
                text[place] = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        put(0, 4, civil.year().unsigned_abs());
        put(5, 2, civil.month().unsigned_abs().into());
        put(8, 2, civil.day().unsigned_abs().into());
        put(11, 2, civil.hour().unsigned_abs().into());
        put(14, 2, civil.minute().unsigned_abs().into());
        put(17, 2, civil.second().unsigned_abs().into());
        put(20, 3, civil.millisecond().unsigned_abs());
        text
    }
}

impl FromStr for Timestamp {
    type Err = NotATimestamp;

    /// Digits beyond the milliseconds are dropped. A leap second is the last second of its minute.
    fn from_str(text: &str) -> Result<Self, NotATimestamp> {
        rfc3339(text.as_bytes()).filter(|millis| (FIRST..=LAST).contains(millis)).map(Self).ok_or(NotATimestamp)
    }
}

/// Milliseconds since 1970 of exactly what RFC 3339 allows.
fn rfc3339(text: &[u8]) -> Option<i64> {
    let (moment, rest) = text.split_at_checked(19).filter(|(moment, _)| like(moment, b"0000-00-00T00:00:00"))?;
    let (fraction, zone) = match rest {
        [b'.', rest @ ..] => rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count()),
        _ => (b"0".as_slice(), rest),
    };
    let offset = match zone {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), ahead @ ..] if like(ahead, b"00:00") => {
            let (hours, minutes) = (two(ahead, 0), two(ahead, 3));
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = i64::from(hours) * 60 + i64::from(minutes);
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let [tenths, hundredths, thousandths] =
        [0, 1, 2].map(|at| fraction.get(at).map_or(0, |digit| i32::from(digit - b'0')));
    let year = i16::from(two(moment, 0)) * 100 + i16::from(two(moment, 2));
    let second = if two(moment, 17) == 60 { 59 } else { two(moment, 17) };
    let nanos = (tenths * 100 + hundredths * 10 + thousandths) * 1_000_000;
    let civil = DateTime::new(year, two(moment, 5), two(moment, 8), two(moment, 11), two(moment, 14), second, nanos);
    let millis = i64::try_from(civil.ok()?.duration_since(EPOCH).as_millis()).ok()?;
    (!fraction.is_empty()).then_some(millis - offset * 60_000)
}

/// Whether a text has this shape, `0` standing for any digit.
fn like(text: &[u8], shape: &[u8]) -> bool {
    let fits = |(byte, shape): (&u8, &u8)| {
        if *shape == b'0' { byte.is_ascii_digit() } else { byte.eq_ignore_ascii_case(shape) }
    };
    text.len() == shape.len() && text.iter().zip(shape).all(fits)
}

/// The number that two digits make.
fn two(digits: &[u8], at: usize) -> i8 {
    ((digits[at] - b'0') * 10 + digits[at + 1] - b'0') as i8
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
        Text::deserialize(deserializer)?.0.parse().map_err(de::Error::custom)
    }
}
