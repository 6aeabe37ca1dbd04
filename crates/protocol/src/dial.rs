//! Which socket an origin stands for.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Maps origins (`localhost:41241`, host and port as they stand in a URL) to the sockets really dialled. An origin
/// that is not in the map is dialled as it is written. A recording keeps the kit's ports in its text this way while it
/// listens on free ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dial(BTreeMap<String, SocketAddr>);

impl Dial {
    /// Sends what is meant for an origin to a socket.
    pub fn set(&mut self, origin: impl Into<String>, socket: SocketAddr) {
        self.0.insert(origin.into().to_ascii_lowercase(), socket);
    }

    /// The socket of an origin, when the map names one.
    pub fn get(&self, origin: &str) -> Option<SocketAddr> {
        self.0.get(&origin.to_ascii_lowercase()).copied()
    }
}
