//! Identifiers as a client that is really in use makes them.

use protocol::Ids;

/// Random UUIDs (version 4).
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveIds;

impl Ids for LiveIds {
    fn next(&self) -> String {
        uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string()
    }
}
