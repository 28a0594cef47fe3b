//! Back-pressure on whoever is denied again and again: the denial is recorded and given all the same, only later, so
//! that a flood fills the record no faster than this. Nothing is dropped, and no other caller waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lychgate_core::Timestamp;

/// Every caller's denials. A caller is a user at a server, whatever connections it has or opens anew; `None` is the gate's
/// own agent.
#[derive(Debug, Default)]
pub(crate) struct Throttles(Mutex<HashMap<Caller, Arc<Throttle>>>);

/// User id and server.
type Caller = (Option<u32>, String);

impl Throttles {
    /// The one that all connections of this caller share. When too many callers still wait for their turn, no new one is
    /// remembered beyond its connection: the oldest flood is never forgiven by a new one.
    pub(crate) fn of(&self, uid: Option<u32>, server: &str, now: Timestamp) -> Arc<Throttle> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let caller = (uid, server.to_owned());
        if let Some(throttle) = known.get(&caller) {
            return Arc::clone(throttle);
        }
        if known.len() >= MOST_CALLERS {
            known.retain(|_, throttle| Arc::strong_count(throttle) > 1 || !throttle.is_idle(now));
        }
        let new = Arc::new(Throttle::default());
        if known.len() < MOST_CALLERS {
            known.insert(caller, Arc::clone(&new));
        }
        new
    }
}

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

    /// Nothing of what was denied is held against the next denial.
    fn is_idle(&self, now: Timestamp) -> bool {
        self.due.load(Ordering::Acquire) <= now.as_millis()
    }
}

/// Denials without a wait.
const AT_ONCE: u64 = 200;
/// Milliseconds between two of them afterwards: 20 a second.
const INTERVAL: u64 = 50;
/// Callers remembered: users times servers.
const MOST_CALLERS: usize = 1024;

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

    #[test]
    fn a_caller_that_comes_again_is_the_same_caller() {
        let at = Timestamp::from_millis;
        let all = Throttles::default();
        let flood = all.of(Some(1000), "notes", at(1_000));
        for _ in 0..=AT_ONCE {
            flood.turn(at(1_000));
        }
        drop(flood);
        let wait = |uid, server| all.of(uid, server, at(1_000)).turn(at(1_000));
        assert!(!wait(Some(1000), "notes").is_zero());
        for (uid, server) in [(Some(1001), "notes"), (Some(1000), "mail"), (None, "notes")] {
            assert!(wait(uid, server).is_zero(), "{uid:?} {server}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_a_flood_is_not_forgotten() {
        let at = Timestamp::from_millis;
        let all = Throttles::default();
        let held = all.of(Some(1), "held", at(1_000));
        for uid in 0..3 * MOST_CALLERS as u32 {
            all.of(Some(uid), "busy", at(1_000)).turn(at(1_000));
        }
        assert_eq!(all.0.lock().unwrap().len(), MOST_CALLERS);
        let first = all.of(Some(0), "busy", at(1_000));
        assert!(!first.is_idle(at(1_000)), "the first flood is still known");
        drop(first);
        // Once they are idle their places are free; who is connected keeps his.
        all.of(Some(9), "later", at(1_000 + 2 * INTERVAL));
        assert_eq!(all.0.lock().unwrap().len(), 2);
        assert!(Arc::ptr_eq(&held, &all.of(Some(1), "held", at(9_000))));
    }
}
