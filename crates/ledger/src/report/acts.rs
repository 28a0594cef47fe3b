//! What is remembered of acts while the record is read: all of an open act, what matters of an ended one for a while.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lychgate_core::id::{ActId, AuthorityId, EffectId};
use lychgate_core::{State, Timestamp};

use super::WINDOW;

/// What is remembered of an act.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) state: State,
    /// Its last receipt.
    pub(super) last: u64,
    /// The receipt of its dispatch.
    pub(super) dispatched: Option<u64>,
    /// The denial of it for a mismatch.
    pub(super) mismatch: Option<u64>,
    pub(super) authority: Option<AuthorityId>,
    pub(super) effect: Option<EffectId>,
    /// Evidence was recorded before its dispatch.
    pub(super) evidence: bool,
    /// It was in doubt at some time: a late answer may still come.
    pub(super) doubted: bool,
    /// It is in the counts.
    pub(super) counted: bool,
    /// A later gate said nothing of it, and that was told.
    pub(super) lost: bool,
    /// Its function, in [`Names`].
    pub(super) function: Name,
}

impl Known {
    pub(super) fn new(state: State, last: u64, function: Name) -> Self {
        Self {
            state,
            last,
            dispatched: None,
            mismatch: None,
            authority: None,
            effect: None,
            evidence: false,
            doubted: false,
            counted: false,
            lost: false,
            function,
        }
    }
}

/// The acts of a record.
#[derive(Clone, Debug, Default)]
pub(super) struct Acts {
    open: HashMap<ActId, Known>,
    // Ids grow with the time they were made: what is old stands first.
    ended: BTreeMap<ActId, Known>,
    // A late answer may come at any time.
    doubted: HashMap<ActId, Known>,
    advised: BTreeSet<ActId>,
    consumed: BTreeMap<AuthorityId, u64>,
    now: u64,
}

impl Acts {
    /// The record has come to this time; what is older than [`WINDOW`] is forgotten.
    pub(super) fn at(&mut self, at: Timestamp) {
        // Looking for what is old is worth it once in a while only.
        if at.as_millis() < self.now + BETWEEN {
            return;
        }
        self.now = at.as_millis();
        let window = u64::try_from(WINDOW.as_millis()).unwrap_or(u64::MAX);
        let oldest = Timestamp::from_millis(self.now.saturating_sub(window));
        let act = ActId::new(oldest, [0; 10]);
        self.ended = self.ended.split_off(&act);
        self.advised = self.advised.split_off(&act);
        self.consumed = self.consumed.split_off(&AuthorityId::new(oldest, [0; 10]));
    }

    pub(super) fn get(&self, act: ActId) -> Option<Known> {
        let known = self.open.get(&act).or_else(|| self.ended.get(&act));
        known.or_else(|| self.doubted.get(&act)).copied()
    }

    pub(super) fn put(&mut self, act: ActId, known: Known) {
        if !known.state.is_final() {
            self.open.insert(act, known);
            return;
        }
        self.open.remove(&act);
        if known.doubted {
            self.doubted.insert(act, known);
        } else {
            self.ended.insert(act, known);
        }
    }

    /// Consumes an authority; gives the receipt that had consumed it before.
    pub(super) fn consume(&mut self, authority: AuthorityId, record: u64) -> Option<u64> {
        let before = self.consumed.get(&authority).copied();
        if before.is_none() {
            self.consumed.insert(authority, record);
        }
        before
    }

    /// Whether this is the first receipt of an act under advisory enforcement.
    pub(super) fn is_first_advice(&mut self, act: ActId) -> bool {
        self.advised.insert(act)
    }

    /// Whether an id was made so long before `at` that it would have been forgotten.
    pub(super) fn is_old(&self, made: Timestamp, at: Timestamp) -> bool {
        let now = Timestamp::from_millis(self.now.max(at.as_millis()));
        now.since(made) > WINDOW
    }

    /// The open acts in a state.
    pub(super) fn open_in(&self, state: State) -> Vec<(ActId, Known)> {
        let all = self.open.iter().filter(|(_, known)| known.state == state);
        let mut all = all.map(|(act, known)| (*act, *known)).collect::<Vec<_>>();
        all.sort_unstable_by_key(|(_, known)| known.last);
        all
    }
}

/// When an id was made: the first six bytes of every id are milliseconds (UUIDv7).
pub(super) fn made(id: &[u8; 16]) -> Timestamp {
    let millis = id
        .iter()
        .take(6)
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Timestamp::from_millis(millis)
}

/// A name that stands for a text in [`Names`]; `None` of a text that is absent.
pub(super) type Name = Option<u32>;

/// Texts that come again and again, once each.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    /// The name of a text. A record with too many different texts has no names for the later ones.
    pub(super) fn of(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        if self.texts.len() >= MOST_NAMES {
            return None;
        }
        let number = u32::try_from(self.texts.len()).ok()?;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        Some(number)
    }

    pub(super) fn text(&self, name: Name) -> Option<&str> {
        let at = usize::try_from(name?).ok()?;
        self.texts.get(at).map(String::as_str)
    }
}

/// The time between two looks at what is old, in milliseconds.
const BETWEEN: u64 = 10_000;
/// The most texts that are named: functions and agents.
const MOST_NAMES: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_when_it_was_made() {
        let at = Timestamp::from_millis(1_800_000_000_123);
        assert_eq!(made(ActId::new(at, [7; 10]).as_bytes()), at);
    }

    #[test]
    fn what_ended_long_ago_is_forgotten_and_what_was_in_doubt_is_not() {
        let at = |hours: u64| Timestamp::from_millis(1_800_000_000_000 + hours * 3_600_000);
        let id = |n: u8| ActId::new(at(0), [n; 10]);
        let mut acts = Acts::default();
        acts.at(at(0));
        acts.put(id(1), Known::new(State::Effected, 1, None));
        acts.put(id(2), Known::new(State::Dispatched, 2, None));
        let mut doubted = Known::new(State::ReconciledEffect, 3, None);
        doubted.doubted = true;
        acts.put(id(3), doubted);
        acts.at(at(2));
        assert!(acts.get(id(1)).is_none());
        assert!(acts.get(id(2)).is_some() && acts.get(id(3)).is_some());
        assert!(acts.is_old(at(0), at(2)) && !acts.is_old(at(1), at(2)));
    }
}
