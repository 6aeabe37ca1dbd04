//! Ids and stamps that come out the same every time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use protocol::{Clock, Ids, Timestamp};
use rand_mt::Mt;

/// UUIDs from a Mersenne Twister, seeded as CPython seeds its own from a small number.
#[derive(Debug)]
pub struct SeededIds(Mutex<Mt>);

impl SeededIds {
    /// The ids of a seed.
    pub fn new(seed: u32) -> Self {
        Self(Mutex::new(Mt::new_with_key([seed])))
    }
}

impl Ids for SeededIds {
    fn next(&self) -> String {
        let mut twister = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = 0u128;
        for place in 0..4 {
            number |= u128::from(twister.next_u32()) << (32 * place);
        }
        // Version 4, variant 10.
        number = number & !(0xF << 76) | 0x4 << 76;
        number = number & !(0x3 << 62) | 0x2 << 62;
        let hex = format!("{number:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

/// A clock that moves on by the same step each time it is asked.
#[derive(Debug)]
pub struct SteppingClock {
    now: AtomicI64,
    step: i64,
}

impl SteppingClock {
    /// A clock that stands at `start`; its first answer is one step later. The step is in milliseconds.
    pub fn new(start: Timestamp, step: i64) -> Self {
        Self { now: AtomicI64::new(start.millis()), step }
    }
}

impl Clock for SteppingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.fetch_add(self.step, Ordering::Relaxed) + self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_ids_of_the_published_vectors() {
        assert_eq!(SeededIds::new(2).next(), "d95bafc8-f2a4-427b-9cf4-bb99f4bea973");
        let ids = SeededIds::new(41241);
        assert_eq!(ids.next(), "ac3830af-198c-422c-97e6-7ae3928f1c3a");
        assert_eq!(ids.next(), "3d8f7801-f421-4e4e-aa2d-8b6da17d9281");
        assert_eq!(SeededIds::new(41242).next(), "dc423c62-d5f4-48e5-82c0-4963b9bc4334");
        assert_eq!(SeededIds::new(41243).next(), "9e8e6bcf-b117-48b9-992a-67971cddcb1b");
    }

    #[test]
    fn the_clock_moves_before_it_answers() {
        let clock = SteppingClock::new("2026-10-06T09:00:00Z".parse().unwrap(), 250);
        assert_eq!(clock.now().to_string(), "2026-10-06T09:00:00.250Z");
        assert_eq!(clock.now().to_string(), "2026-10-06T09:00:00.500Z");
    }
}
