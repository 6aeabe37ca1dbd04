//! Where identifiers and time come from. Nothing in this workspace asks the system for either: live sources stand in
//! `server` and `client`, seeded ones in `workshop`, which is how a recording comes out the same every time.

use crate::Timestamp;

/// Makes fresh identifiers.
pub trait Ids: Send + Sync {
    /// A text that was never given before: a UUID in its lower-case form.
    fn next(&self) -> String;
}

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time now. A seeded clock moves on with each question, so ask once for each thing that carries a time.
    fn now(&self) -> Timestamp;
}
