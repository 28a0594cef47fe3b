//! Acts in doubt: what became of them, and what came beside a verdict (PROFILE §5).

use std::time::Duration;

use lychgate_core::State;
use lychgate_core::receipt::{ActPart, Receipt};

use super::CONTRADICTS;
use super::acts::{Known, made};
use super::counts::{Doubt, Doubts};
use super::examine::{Examiner, Place, function_of};
use super::violation::Breach;

impl Examiner {
    /// A late answer beside a verdict, which stands.
    pub(super) fn beside(
        &mut self,
        place: Place,
        receipt: &Receipt,
        part: &ActPart,
        known: &Known,
        state: State,
    ) {
        if known.state != state {
            let records = [known.last, place.index];
            self.list_inside(place, Breach::OutOfOrder, Some(part), &records);
        }
        let contradicts = receipt.detail.as_deref() == Some(CONTRADICTS);
        if contradicts && place.inside {
            self.counts.contradicted.add(place.index);
        }
    }

    pub(super) fn reconciled(
        &mut self,
        place: Place,
        receipt: &Receipt,
        part: &ActPart,
        known: Option<Known>,
    ) {
        let when = made(part.candidate_act_id.as_bytes());
        let (Some(known), Some(state)) = (known, receipt.state) else {
            // That an answer was delivered after all is said of acts that ended long ago.
            let told = receipt.state == Some(State::Effected) && self.acts.is_old(when, place.at);
            if !told && !self.began_unseen(when) {
                self.list_inside(place, Breach::OutOfOrder, Some(part), &[place.index]);
            }
            return;
        };
        if state == State::Indeterminate && known.doubted {
            // One may cross a late answer.
            self.doubts.looked_up_in_vain += u64::from(place.inside);
            if let Some(doubt) = self.in_doubt.get_mut(&part.candidate_act_id) {
                doubt.looked_up += 1;
            }
            return;
        }
        if state == known.state {
            return;
        }
        if known.state != State::Indeterminate || !reconciled(state) {
            let records = [known.last, place.index];
            return self.list_inside(place, Breach::OutOfOrder, Some(part), &records);
        }
        let person = receipt
            .detail
            .as_deref()
            .is_some_and(|why| why.starts_with("reason:"));
        self.happened(place, state);
        self.end_doubt(place, part, |doubts| match person {
            true => doubts.by_person += 1,
            false => doubts.by_look_up += 1,
        });
        let next = self.next(place, part, Some(&known), state);
        self.acts.put(part.candidate_act_id, next);
    }

    pub(super) fn begin_doubt(&mut self, place: Place, part: &ActPart) {
        self.doubts.number += u64::from(place.inside);
        let doubt = Doubt {
            act: part.candidate_act_id,
            function: function_of(part),
            class: part.consequence_class,
            since: place.at,
            looked_up: 0,
            record: place.index,
        };
        self.in_doubt.insert(part.candidate_act_id, doubt);
    }

    pub(super) fn end_doubt(
        &mut self,
        place: Place,
        part: &ActPart,
        count: impl FnOnce(&mut Doubts),
    ) {
        let Some(doubt) = self.in_doubt.remove(&part.candidate_act_id) else {
            return;
        };
        if place.inside {
            count(&mut self.doubts);
            let took: Duration = place.at.since(doubt.since);
            self.doubts.longest = self.doubts.longest.max(Some(took));
        }
    }
}

/// Whether a state is what reconciliation found.
pub(super) fn reconciled(state: State) -> bool {
    matches!(state, State::ReconciledEffect | State::ReconciledNoEffect)
}
