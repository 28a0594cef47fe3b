//! When each act in doubt is asked about next. Times are the gate's own.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use lychgate_core::Timestamp;
use lychgate_core::id::ActId;
use lychgate_policy::Reconcile;

/// One act in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Since when its outcome is unknown.
    pub(super) since: Timestamp,
    pub(super) server: String,
    /// There is something to ask the destination.
    pub(super) askable: bool,
    pub(super) surfaced: bool,
    next: Timestamp,
    tries: u32,
    busy: bool,
}

impl Entry {
    pub(super) fn new(
        since: Timestamp,
        server: String,
        askable: bool,
        now: Timestamp,
        rule: &Reconcile,
    ) -> Self {
        let first = since.after(Duration::from_millis(rule.first));
        Self {
            since,
            server,
            askable,
            surfaced: false,
            // After a restart a wait that was over is over.
            next: first.max(now),
            tries: 0,
            busy: false,
        }
    }

    fn deadline(&self, rule: &Reconcile) -> Timestamp {
        self.since.after(Duration::from_millis(rule.deadline))
    }

    /// It is asked about at least once after every start, and for the last time at the deadline.
    fn is_due(&self, now: Timestamp, rule: &Reconcile) -> bool {
        let open = self.tries == 0 || self.next <= self.deadline(rule);
        self.askable && !self.busy && !self.surfaced && now >= self.next && open
    }

    fn is_over(&self, now: Timestamp, rule: &Reconcile) -> bool {
        let asked = !self.askable || (self.tries > 0 && self.next > self.deadline(rule));
        !self.busy && !self.surfaced && asked && now >= self.deadline(rule)
    }
}

/// Every act in doubt.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<ActId, Entry>,
}

impl Table {
    /// Drops what is no longer in doubt and gives what is new.
    pub(super) fn compare(&mut self, open: &[ActId]) -> Vec<ActId> {
        let open = open.iter().copied().collect::<HashSet<_>>();
        self.entries
            .retain(|act, entry| entry.busy || open.contains(act));
        let known = |act: &ActId| self.entries.contains_key(act);
        let mut new = open
            .into_iter()
            .filter(|act| !known(act))
            .collect::<Vec<_>>();
        new.sort();
        new
    }

    pub(super) fn insert(&mut self, act: ActId, entry: Entry) {
        self.entries.insert(act, entry);
    }

    /// What is to be asked about now: the oldest first, one act of each server at a time, `most` in all. They are busy
    /// from here on.
    pub(super) fn take_due(&mut self, now: Timestamp, rule: &Reconcile, most: usize) -> Vec<ActId> {
        let busy = self.entries.values().filter(|entry| entry.busy);
        let mut servers = busy
            .map(|entry| entry.server.clone())
            .collect::<HashSet<_>>();
        let mut due = self.entries.iter().collect::<Vec<_>>();
        due.retain(|(_, entry)| entry.is_due(now, rule));
        due.sort_by_key(|(act, entry)| (entry.next, **act));
        let mut taken = Vec::new();
        for (act, entry) in due {
            if servers.len() < most && servers.insert(entry.server.clone()) {
                taken.push(*act);
            }
        }
        for act in &taken {
            if let Some(entry) = self.entries.get_mut(act) {
                entry.busy = true;
            }
        }
        taken
    }

    /// A look-up is over and the act may still be in doubt: the next wait is twice the one before.
    pub(super) fn asked(&mut self, act: ActId, now: Timestamp, rule: &Reconcile) {
        let Some(entry) = self.entries.get_mut(&act) else {
            return;
        };
        entry.busy = false;
        entry.tries = entry.tries.saturating_add(1);
        let doublings = entry.tries.min(32);
        let wait = rule.first.saturating_mul(1 << doublings).min(rule.most);
        let next = now.after(Duration::from_millis(wait));
        let deadline = entry.deadline(rule);
        // The last question comes at the deadline.
        entry.next = if now < deadline {
            next.min(deadline)
        } else {
            next
        };
    }

    pub(super) fn remove(&mut self, act: ActId) {
        self.entries.remove(&act);
    }

    /// What nothing more is asked about and nobody was told of yet.
    pub(super) fn over(&self, now: Timestamp, rule: &Reconcile) -> Vec<ActId> {
        let over = self.entries.iter();
        over.filter(|(_, entry)| entry.is_over(now, rule))
            .map(|(act, _)| *act)
            .collect()
    }

    pub(super) fn surfaced(&mut self, act: ActId) {
        if let Some(entry) = self.entries.get_mut(&act) {
            entry.surfaced = true;
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Reconcile = Reconcile {
        first: 100,
        most: 1_000,
        deadline: 3_000,
    };

    fn act(n: u8) -> ActId {
        ActId::from_bytes([n; 16])
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn entry(server: &str, now: u64) -> Entry {
        Entry::new(at(0), server.to_owned(), true, at(now), &RULE)
    }

    /// The moments at which an act is asked about, from `start` to long after its deadline; each question takes no time.
    fn moments(start: u64) -> (Vec<u64>, Vec<u64>) {
        let mut table = Table::default();
        table.insert(act(1), entry("s", start));
        let (mut asked, mut over) = (Vec::new(), Vec::new());
        for ms in start..start + 10_000 {
            for act in table.take_due(at(ms), &RULE, 4) {
                asked.push(ms);
                table.asked(act, at(ms), &RULE);
            }
            for act in table.over(at(ms), &RULE) {
                over.push(ms);
                table.surfaced(act);
            }
        }
        (asked, over)
    }

    #[test]
    fn waits_double_up_to_the_most_and_end_at_the_deadline() {
        let (asked, over) = moments(0);
        assert_eq!(asked, [100, 300, 700, 1_500, 2_500, 3_000]);
        assert_eq!(over, [3_000]);
    }

    #[test]
    fn after_a_restart_past_the_deadline_it_is_asked_about_once_more() {
        let (asked, over) = moments(8_000);
        assert_eq!(asked, [8_000]);
        assert_eq!(over, [8_000]);
        let (asked, over) = moments(2_000);
        assert_eq!(asked, [2_000, 2_200, 2_600, 3_000]);
        assert_eq!(over, [3_000]);
    }

    #[test]
    fn one_act_of_a_server_at_a_time_and_only_so_many_servers() {
        let mut table = Table::default();
        for (n, server) in [(1, "a"), (2, "a"), (3, "b"), (4, "c")] {
            table.insert(act(n), entry(server, 0));
        }
        assert_eq!(table.take_due(at(100), &RULE, 2), [act(1), act(3)]);
        assert_eq!(table.take_due(at(100), &RULE, 2), []);
        table.asked(act(1), at(100), &RULE);
        assert_eq!(table.take_due(at(100), &RULE, 2), [act(2)]);
        // What is being asked about is not forgotten, what is settled is.
        let new = table.compare(&[act(9), act(4)]);
        assert_eq!(new, [act(9)]);
        assert_eq!(table.entries().count(), 3);
    }

    #[test]
    fn what_cannot_be_asked_about_is_told_of_at_its_deadline() {
        let mut table = Table::default();
        let mut silent = entry("s", 0);
        silent.askable = false;
        table.insert(act(1), silent);
        assert_eq!(table.take_due(at(9_000), &RULE, 4), []);
        assert_eq!(table.over(at(2_999), &RULE), []);
        assert_eq!(table.over(at(3_000), &RULE), [act(1)]);
    }
}
