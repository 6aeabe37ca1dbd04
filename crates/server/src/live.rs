//! Identifiers and time as a server that is really in use has them.

use std::time::{SystemTime, UNIX_EPOCH};

use protocol::{Clock, Ids, Timestamp};

/// Random UUIDs (version 4), from the thread's own generator: no system call for each.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveIds;

impl Ids for LiveIds {
    fn next(&self) -> String {
        uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string()
    }
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveClock;

impl Clock for LiveClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
