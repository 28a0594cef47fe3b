//! Equal calls (PROFILE §5): acts whose outcome or whose answer is still open, by what they would do.
//!
//! The hazard: an answer is lost after the destination committed, and client, framework and model each repeat the call
//! under a new request id. The request id is worthless; the act is recognised by principal, agent, tool, arguments and
//! destination. The table is bounded by the number of open acts and is rebuilt from the store when the gate starts.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lychgate_core::id::ActId;
use lychgate_core::{Digest, Timestamp};

/// What the table says to a call.
#[derive(Debug, PartialEq, Eq)]
pub enum TwinVerdict {
    /// No equal act is open, or the open ones are live beside it: a new act.
    New,
    /// An equal act ended, its answer was not delivered and is still kept: give that answer.
    Recorded(ActId),
    /// An equal act's outcome or answer is open: refuse (EF-063).
    Unresolved(ActId),
}

/// Where an open act stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Admitted or dispatched, and its caller waits for the answer.
    Live,
    /// Dispatched, and its caller cancelled or vanished.
    Orphan,
    /// No answer.
    Indeterminate,
    /// Settled; the answer is not known to have reached the caller, who is gone if `orphaned`.
    Undelivered { at: Timestamp, orphaned: bool },
    /// A look-up found that it took effect; whoever called has not been told.
    Found,
}

/// The call that is judged: when it was emitted, and what time it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) emitted: Timestamp,
    pub(crate) now: Timestamp,
}

/// The open acts.
#[derive(Debug, Default)]
pub struct Twins {
    open: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    by_act: HashMap<ActId, (Digest, Standing)>,
    by_twin: HashMap<Digest, Vec<ActId>>,
}

impl Twins {
    /// Judges a call that is not admitted yet, so that nobody is asked about one that would be refused.
    pub(crate) fn look(&self, twin: &Digest, moment: Moment) -> TwinVerdict {
        self.table().judge(twin, moment)
    }

    /// Judges a call and, when it is new, enters it as live in the same step.
    pub(crate) fn admit(&self, twin: &Digest, act: ActId, moment: Moment) -> TwinVerdict {
        let mut table = self.table();
        let verdict = table.judge(twin, moment);
        if verdict == TwinVerdict::New {
            table.enter(*twin, act, Standing::Live);
        }
        verdict
    }

    //= PROFILE §5: the retry of a multi-round call is no twin
    /// Enters the retry of a round, which no equal call holds back. Later calls are held against it all the same: its
    /// answer can be lost like any other.
    pub(crate) fn enter(&self, twin: &Digest, act: ActId) {
        self.table().enter(*twin, act, Standing::Live);
    }

    /// An act was refused after admission, or its outcome leaves nothing open.
    pub(crate) fn close(&self, act: ActId) {
        self.table().remove(act);
    }

    /// A settled act's answer reached its caller. One whose outcome is open stays open, whatever its caller was told.
    pub(crate) fn delivered(&self, act: ActId) {
        let mut table = self.table();
        let told = matches!(
            table.by_act.get(&act),
            Some((_, Standing::Undelivered { .. } | Standing::Found))
        );
        if told {
            table.remove(act);
        }
    }

    /// The caller of an act is gone.
    pub(crate) fn orphan(&self, act: ActId) {
        self.table().restate(act, |standing| match standing {
            Standing::Live => Standing::Orphan,
            other => other,
        });
    }

    /// An act's answer is lost.
    pub(crate) fn indeterminate(&self, act: ActId) {
        self.table().restate(act, |_| Standing::Indeterminate);
    }

    /// An act settled; its answer is on its way.
    pub(crate) fn undelivered(&self, act: ActId, at: Timestamp) {
        self.table().restate(act, |standing| Standing::Undelivered {
            at,
            orphaned: standing != Standing::Live,
        });
    }

    /// A look-up found that an act took effect: the next equal call is told so in its place.
    pub(crate) fn found(&self, act: ActId) {
        self.table().restate(act, |_| Standing::Found);
    }

    /// Enters one that a predecessor's look-up found.
    pub(crate) fn restore_found(&self, twin: Digest, act: ActId) {
        self.table().enter(twin, act, Standing::Found);
    }

    /// The acts whose outcome is unknown.
    pub(crate) fn in_doubt(&self) -> Vec<ActId> {
        let table = self.table();
        let open = table.by_act.iter();
        open.filter(|(_, (_, standing))| *standing == Standing::Indeterminate)
            .map(|(act, _)| *act)
            .collect()
    }

    /// Enters what the store had open when the gate started.
    pub(crate) fn restore(&self, twin: Digest, act: ActId, undelivered_since: Option<Timestamp>) {
        let standing =
            undelivered_since.map_or(Standing::Indeterminate, |at| Standing::Undelivered {
                at,
                // Whoever called is not connected to this gate.
                orphaned: true,
            });
        self.table().enter(twin, act, standing);
    }

    /// How many acts are open.
    pub fn len(&self) -> usize {
        self.table().by_act.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A panic elsewhere cannot leave the table half-changed: every change is one or two map operations that do not
    /// panic, so a poisoned lock is still good.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn judge(&self, twin: &Digest, moment: Moment) -> TwinVerdict {
        let mut recorded = None;
        for other in self.by_twin.get(twin).into_iter().flatten() {
            match self.by_act.get(other).map(|(_, standing)| *standing) {
                Some(Standing::Orphan | Standing::Indeterminate) => {
                    return TwinVerdict::Unresolved(*other);
                }
                //= PROFILE §5: while both are live they are two acts
                // Emitted before the other ended, with that one's caller there: no repetition of a lost answer.
                Some(Standing::Undelivered {
                    at,
                    orphaned: false,
                }) if moment.emitted < at => {}
                Some(Standing::Undelivered { at, .. }) if moment.now.since(at) >= KEPT => {
                    return TwinVerdict::Unresolved(*other);
                }
                Some(Standing::Undelivered { .. } | Standing::Found) => recorded = Some(*other),
                Some(Standing::Live) | None => {}
            }
        }
        recorded.map_or(TwinVerdict::New, TwinVerdict::Recorded)
    }

    fn enter(&mut self, twin: Digest, act: ActId, standing: Standing) {
        self.by_twin.entry(twin).or_default().push(act);
        self.by_act.insert(act, (twin, standing));
    }

    fn restate(&mut self, act: ActId, next: impl FnOnce(Standing) -> Standing) {
        if let Some((_, standing)) = self.by_act.get_mut(&act) {
            *standing = next(*standing);
        }
    }

    fn remove(&mut self, act: ActId) {
        let Some((twin, _)) = self.by_act.remove(&act) else {
            return;
        };
        if let Some(acts) = self.by_twin.get_mut(&twin) {
            acts.retain(|other| *other != act);
            if acts.is_empty() {
                self.by_twin.remove(&twin);
            }
        }
    }
}

/// How long a recorded answer is kept for an equal call.
pub(crate) const KEPT_MILLIS: u64 = 600_000;
const KEPT: Duration = Duration::from_millis(KEPT_MILLIS);

#[cfg(test)]
mod tests {
    use super::*;

    fn act(n: u8) -> ActId {
        ActId::from_bytes([n; 16])
    }

    /// A call emitted when it is judged.
    fn moment(ms: u64) -> Moment {
        let now = Timestamp::from_millis(ms);
        Moment { emitted: now, now }
    }

    #[test]
    fn a_call_emitted_while_its_twin_was_live_is_a_second_act_whenever_it_is_decided() {
        let twins = Twins::default();
        let twin = Digest::sha256(b"call");
        let emitted_before = Moment {
            emitted: Timestamp::from_millis(5),
            now: Timestamp::from_millis(99),
        };
        assert_eq!(twins.admit(&twin, act(1), moment(0)), TwinVerdict::New);
        twins.undelivered(act(1), Timestamp::from_millis(10));
        assert_eq!(
            twins.look(&twin, moment(11)),
            TwinVerdict::Recorded(act(1)),
            "emitted after: a repetition"
        );
        assert_eq!(twins.admit(&twin, act(2), emitted_before), TwinVerdict::New);
        // With the first caller gone it may be the same caller's repetition.
        let other = Digest::sha256(b"other");
        assert_eq!(twins.admit(&other, act(3), moment(0)), TwinVerdict::New);
        twins.orphan(act(3));
        twins.undelivered(act(3), Timestamp::from_millis(10));
        assert_eq!(
            twins.look(&other, emitted_before),
            TwinVerdict::Recorded(act(3))
        );
    }

    #[test]
    fn two_live_equal_calls_are_two_acts_and_a_lost_answer_blocks_the_third() {
        let twins = Twins::default();
        let twin = Digest::sha256(b"call");
        let now = moment(0);
        assert_eq!(twins.admit(&twin, act(1), now), TwinVerdict::New);
        assert_eq!(twins.admit(&twin, act(2), now), TwinVerdict::New);
        twins.indeterminate(act(1));
        assert_eq!(
            twins.admit(&twin, act(3), now),
            TwinVerdict::Unresolved(act(1))
        );
        twins.close(act(1));
        twins.close(act(2));
        assert!(twins.is_empty());
    }

    #[test]
    fn an_undelivered_answer_is_given_for_ten_minutes_and_then_blocks() {
        let twins = Twins::default();
        let twin = Digest::sha256(b"call");
        let at = moment;
        assert_eq!(twins.admit(&twin, act(1), at(0)), TwinVerdict::New);
        twins.orphan(act(1));
        assert_eq!(
            twins.admit(&twin, act(2), at(1)),
            TwinVerdict::Unresolved(act(1))
        );
        twins.undelivered(act(1), Timestamp::from_millis(10));
        assert_eq!(
            twins.admit(&twin, act(2), at(599_999)),
            TwinVerdict::Recorded(act(1))
        );
        assert_eq!(
            twins.admit(&twin, act(2), at(600_010)),
            TwinVerdict::Unresolved(act(1))
        );
        twins.delivered(act(1));
        assert_eq!(twins.admit(&twin, act(2), at(700_000)), TwinVerdict::New);
    }

    #[test]
    fn telling_the_caller_that_an_outcome_is_unknown_does_not_close_it() {
        let twins = Twins::default();
        let twin = Digest::sha256(b"call");
        let now = moment(0);
        assert_eq!(twins.admit(&twin, act(1), now), TwinVerdict::New);
        twins.indeterminate(act(1));
        twins.delivered(act(1));
        assert_eq!(twins.look(&twin, now), TwinVerdict::Unresolved(act(1)));
    }
}
