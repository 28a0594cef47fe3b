//! Back-pressure on whoever is denied again and again: the denial is recorded and given all the same, only later, so
//! that a flood fills the record no faster than this. Nothing is dropped, and no other caller waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lychgate_core::Timestamp;

/// One caller's denials: so many at once, then one more each interval.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// When all denials so far would have been given, one each interval; milliseconds.
    due: AtomicU64,
}

impl Throttle {
    /// How long the next denial waits.
    pub(crate) fn turn(&self, now: Timestamp) -> Duration {
        let now = now.as_millis();
        let next = |due: u64| Some(due.max(now).saturating_add(INTERVAL));
        let before = self
            .due
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .unwrap_or(now);
        let ahead = before.max(now) - now;
        Duration::from_millis(ahead.saturating_sub(AT_ONCE * INTERVAL))
    }
}

/// Denials without a wait.
const AT_ONCE: u64 = 200;
/// Milliseconds between two of them afterwards: 20 a second.
const INTERVAL: u64 = 50;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_flood_is_slowed_down_and_nobody_else_is() {
        let at = Timestamp::from_millis;
        let (flood, other) = (Throttle::default(), Throttle::default());
        let waits: Vec<_> = (0..=AT_ONCE + 2).map(|_| flood.turn(at(1_000))).collect();
        let (free, slow) = waits.split_at(AT_ONCE as usize + 1);
        assert!(free.iter().all(Duration::is_zero));
        let interval = Duration::from_millis(INTERVAL);
        assert_eq!(slow, [interval, 2 * interval]);
        assert_eq!(other.turn(at(1_000)), Duration::ZERO);
        // In time it is a caller like any other.
        assert_eq!(flood.turn(at(1_000 + AT_ONCE * INTERVAL)), Duration::ZERO);
    }
}
