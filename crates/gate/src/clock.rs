//! A clock that never goes back (CASES: "clock stepping back").

use std::time::{Duration, Instant};

use lychgate_core::Timestamp;
use lychgate_core::outside::Clock;

/// The wall clock's time when the gate started, carried on by the monotonic clock.
///
/// A wall clock that steps back while the gate runs changes nothing. One that stepped back while the gate was down is
/// noticed against the store's last time and the gate goes on from there, so an expired authority stays expired.
#[derive(Debug)]
pub struct SteadyClock {
    base: Timestamp,
    behind: Duration,
    started: Instant,
}

impl SteadyClock {
    /// Starts at the later of the wall clock and `not_before`, the latest time the store has recorded.
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where the wall clock and the monotonic clock are read"
    )]
    pub fn start(not_before: Timestamp) -> Self {
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let wall = Timestamp::from_millis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
        Self {
            base: wall.max(not_before),
            behind: not_before.since(wall),
            started: Instant::now(),
        }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.base.after(self.started.elapsed())
    }

    fn behind(&self) -> Duration {
        self.behind
    }
}
