//! The chain of each act: evidence, authority, dispatched, outcome, in this order and once.

use lychgate_core::act::SourceType;
use lychgate_core::evidence::Predicates;
use lychgate_core::receipt::{ActPart, Enforcement, Receipt, ReceiptKind};
use lychgate_core::{Code, State};

use super::acts::{Known, made};
use super::doubt::reconciled;
use super::examine::{Examiner, Place, denial_moves, function_of, is_mismatch};
use super::people::Ended;
use super::timeline::Happened;
use super::violation::Breach;

impl Examiner {
    /// A step of an act.
    pub(super) fn step(&mut self, place: Place, receipt: &Receipt, part: &ActPart) {
        if let Some(code) = receipt.code
            && place.inside
            && matches!(receipt.kind, ReceiptKind::Denied | ReceiptKind::Lapsed)
        {
            self.counts.coded(code);
        }
        let denied = receipt.kind == ReceiptKind::Denied && receipt.state == Some(State::Refused);
        let lets_through = matches!(
            receipt.kind,
            ReceiptKind::Denied
                | ReceiptKind::Allowed
                | ReceiptKind::Dispatched
                | ReceiptKind::Outcome
        );
        if receipt.code.is_some_and(is_mismatch) && lets_through && !denied {
            self.list_inside(place, Breach::MismatchNotDenied, Some(part), &[place.index]);
        }
        if receipt.enforcement == Enforcement::Advisory {
            return self.advised(place, receipt, part);
        }
        let known = self.acts.get(part.candidate_act_id);
        match receipt.kind {
            ReceiptKind::Dispatched => self.dispatched(place, receipt, part, known),
            ReceiptKind::Outcome => self.outcome(place, receipt, part, known),
            ReceiptKind::Reconciled => self.reconciled(place, receipt, part, known),
            ReceiptKind::Denied => self.denied(place, receipt, part, known),
            ReceiptKind::Allowed | ReceiptKind::Escalated | ReceiptKind::Lapsed => {
                self.moved(place, receipt, part, known);
            }
            _ => {}
        }
    }

    //= PROFILE §10: advisory is never counted as finality in a report
    fn advised(&mut self, place: Place, receipt: &Receipt, part: &ActPart) {
        let act = part.candidate_act_id;
        if place.inside {
            if self.acts.is_first_advice(act) {
                self.counts.advisory.add(place.index);
            }
            self.timeline.add(Happened::Advisory, place.at);
        }
        let denied = self
            .acts
            .get(act)
            .filter(|known| known.state == State::Refused);
        let mismatch = denied.and_then(|known| known.mismatch);
        let ran = matches!(receipt.kind, ReceiptKind::Dispatched | ReceiptKind::Outcome);
        if let Some(mismatch) = mismatch.filter(|_| ran) {
            let records = [mismatch, place.index];
            self.list_inside(place, Breach::DispatchedAfterMismatch, Some(part), &records);
        }
    }

    fn dispatched(
        &mut self,
        place: Place,
        receipt: &Receipt,
        part: &ActPart,
        known: Option<Known>,
    ) {
        let whole = self.check_pieces(place, receipt, part, known.as_ref());
        self.check_order(place, receipt, part, known.as_ref());
        self.check_mismatches(place, receipt, part, whole);
        self.check_approval(place, receipt, part);
        self.check_depth(place, receipt, part);
        if place.inside {
            self.counts.invoked += 1;
            let high = part.consequence_class.is_none_or(|class| class.high_risk())
                && !part.source_type.is_some_and(SourceType::trusted);
            self.counts.high_risk += u64::from(high);
        }
        // A second dispatch makes no second chain: the act stays what the first made of it.
        let again = known.filter(|known| known.dispatched.is_some());
        let to = again.map_or(State::Dispatched, |known| known.state);
        let mut next = self.next(place, part, known.as_ref(), to);
        next.dispatched = next.dispatched.or(Some(place.index));
        if again.is_none() {
            next.authority = receipt.authority_id;
            next.effect = receipt.effect_id;
        }
        self.acts.put(part.candidate_act_id, next);
    }

    //= PROFILE §11: an approval is consumed once
    /// An act that asked a person was answered yes, and nothing else ran on that yes. Whoever rewrites the gate's tables
    /// can make a ticket look approved; the record then says otherwise.
    fn check_approval(&mut self, place: Place, receipt: &Receipt, part: &ActPart) {
        let Some(ticket) = receipt.ticket_id else {
            return;
        };
        let approved = self.tickets.used(ticket);
        if !approved && !self.began_unseen(made(part.candidate_act_id.as_bytes())) {
            self.list_inside(place, Breach::NotApproved, Some(part), &[place.index]);
        }
    }

    /// What a dispatch must name; gives whether it names what the sink makes.
    fn check_pieces(
        &mut self,
        place: Place,
        receipt: &Receipt,
        part: &ActPart,
        known: Option<&Known>,
    ) -> bool {
        let evidence = receipt.evidence_id.is_some() && receipt.evidence_digest.is_some();
        let authority = receipt.authority_id.is_some() && receipt.authority_digest.is_some();
        let verified = receipt.verification_digest.is_some();
        let as_dispatched = receipt.state == Some(State::Dispatched) && receipt.code.is_none();
        let predicates = receipt.predicates.is_none_or(|all| all == Predicates::HOLD);
        for (holds, breach) in [
            (
                evidence || known.is_some_and(|known| known.evidence),
                Breach::NoEvidence,
            ),
            (authority, Breach::NoAuthority),
            (verified, Breach::NoVerification),
            (receipt.effect_id.is_some(), Breach::NoEffectId),
            (as_dispatched, Breach::NotDispatched),
            (predicates, Breach::PredicateFailed),
        ] {
            if !holds {
                self.list_inside(place, breach, Some(part), &[place.index]);
            }
        }
        authority && verified
    }

    /// That neither act nor authority was used before, and that the act could still be dispatched.
    fn check_order(
        &mut self,
        place: Place,
        receipt: &Receipt,
        part: &ActPart,
        known: Option<&Known>,
    ) {
        let when = made(part.candidate_act_id.as_bytes());
        let mut stale = false;
        match known {
            None if self.began_unseen(when) => self.counts.unjudged += u64::from(place.inside),
            None => stale = self.acts.is_old(when, place.at),
            Some(known) => {
                let breach = match known.state {
                    _ if known.dispatched.is_some() => Some(Breach::ActTwice),
                    state if state.may_become(State::Dispatched) => None,
                    state if state.is_final() => Some(Breach::AfterEnd),
                    _ => Some(Breach::OutOfOrder),
                };
                let before = known.dispatched.unwrap_or(known.last);
                if let Some(breach) = breach {
                    self.list_inside(place, breach, Some(part), &[before, place.index]);
                }
                let issued = known.authority.filter(|_| known.dispatched.is_none());
                if issued.is_some() && issued != receipt.authority_id {
                    let records = [known.last, place.index];
                    self.list_inside(place, Breach::OtherAuthority, Some(part), &records);
                }
            }
        }
        if let Some(authority) = receipt.authority_id {
            stale |= self.acts.is_old(made(authority.as_bytes()), place.at);
            if let Some(before) = self.acts.consume(authority, place.index) {
                let records = [before, place.index];
                self.list_inside(place, Breach::AuthorityTwice, Some(part), &records);
            }
        }
        if stale {
            self.list_inside(place, Breach::Stale, Some(part), &[place.index]);
        }
    }

    /// That nothing denied for a mismatch comes through by another way.
    fn check_mismatches(&mut self, place: Place, receipt: &Receipt, part: &ActPart, whole: bool) {
        let refused = |known: &Known| known.state == State::Refused;
        let act = self.acts.get(part.candidate_act_id).filter(refused);
        let retried = receipt
            .retry_of
            .and_then(|act| self.acts.get(act))
            .filter(refused);
        for (known, breach) in [
            (act, Breach::DispatchedAfterMismatch),
            (retried, Breach::RetryOfMismatch),
        ] {
            if let Some(mismatch) = known.and_then(|known| known.mismatch) {
                self.list_inside(place, breach, Some(part), &[mismatch, place.index]);
            }
        }
        if !whole {
            self.check_skipped(place, part);
        }
    }

    /// Something ran without the sink: whether the same function was denied for a mismatch before.
    fn check_skipped(&mut self, place: Place, part: &ActPart) {
        let likeness = self.function(part);
        if let Some(mismatch) = self.mismatched.get(&likeness).copied() {
            let records = [mismatch, place.index];
            self.list_inside(place, Breach::SinkSkipped, Some(part), &records);
        }
    }

    fn check_depth(&mut self, place: Place, receipt: &Receipt, part: &ActPart) {
        let depth = part.delegation_depth;
        if place.inside {
            self.counts.deepest = self.counts.deepest.max(depth);
        }
        // Every limit permits an act of the principal's own agent.
        if depth == 0 {
            return;
        }
        let depths = self.question.depths.iter();
        let stated = |policy| self.depths.get(&policy).copied();
        let applied = |policy| {
            let known = depths.clone().find(|(digest, _)| *digest == policy);
            known.map(|(_, depth)| *depth).or_else(|| stated(policy))
        };
        let limit = self
            .question
            .max_depth
            .or_else(|| applied(receipt.policy_digest?));
        match limit {
            Some(limit) if depth > limit => {
                self.list_inside(place, Breach::TooDeep, Some(part), &[place.index]);
            }
            Some(_) => {}
            None => self.counts.depth_unknown += u64::from(place.inside),
        }
    }

    fn outcome(&mut self, place: Place, receipt: &Receipt, part: &ActPart, known: Option<Known>) {
        let Some(state) = receipt.state else {
            return self.list_inside(place, Breach::OutOfOrder, Some(part), &[place.index]);
        };
        let when = made(part.candidate_act_id.as_bytes());
        let Some(known) = known.filter(|known| known.dispatched.is_some()) else {
            if known.is_none() && self.began_unseen(when) {
                return;
            }
            let before = known.map(|known| known.last);
            let records = before.into_iter().chain([place.index]).collect::<Vec<_>>();
            self.list_inside(place, Breach::OutcomeWithoutDispatch, Some(part), &records);
            self.check_skipped(place, part);
            let next = self.next(place, part, known.as_ref(), state);
            return self.acts.put(part.candidate_act_id, next);
        };
        let dispatched = known.dispatched.unwrap_or(known.last);
        if (receipt.authority_id, receipt.effect_id) != (known.authority, known.effect) {
            let records = [dispatched, place.index];
            self.list_inside(place, Breach::OutcomeDiffers, Some(part), &records);
        }
        if reconciled(state) {
            return self.beside(place, receipt, part, &known, state);
        }
        let breach = match known.state {
            from if from.may_become(state) => None,
            from if from.is_final() => Some(Breach::OutcomeTwice),
            _ => Some(Breach::OutOfOrder),
        };
        if let Some(breach) = breach {
            let records = [dispatched, known.last, place.index];
            return self.list_inside(place, breach, Some(part), &records);
        }
        self.happened(place, state);
        if state == State::Indeterminate {
            self.begin_doubt(place, part);
        } else {
            self.end_doubt(place, part, |doubts| doubts.by_answer += 1);
        }
        let next = self.next(place, part, Some(&known), state);
        self.acts.put(part.candidate_act_id, next);
    }

    fn denied(&mut self, place: Place, receipt: &Receipt, part: &ActPart, known: Option<Known>) {
        let mismatch = receipt.code.is_some_and(is_mismatch);
        if mismatch {
            self.counts.mismatches += u64::from(place.inside);
            let likeness = self.function(part);
            if likeness.1.is_some() {
                self.mismatched.insert(likeness, place.index);
            }
        }
        if place.inside {
            self.timeline.add(Happened::Denied, place.at);
        }
        // A copy of an act long forgotten was presented.
        let replayed = known.is_none()
            && self
                .acts
                .is_old(made(part.candidate_act_id.as_bytes()), place.at);
        if replayed || !denial_moves(known.as_ref()) {
            return;
        }
        let mut next = self.next(place, part, known.as_ref(), State::Refused);
        next.mismatch = mismatch.then_some(place.index);
        self.acts.put(part.candidate_act_id, next);
    }

    /// Allowed, escalated or lapsed.
    fn moved(&mut self, place: Place, receipt: &Receipt, part: &ActPart, known: Option<Known>) {
        let act = part.candidate_act_id;
        let Some(state) = receipt.state else {
            return self.list_inside(place, Breach::OutOfOrder, Some(part), &[place.index]);
        };
        let may = known.is_none_or(|known| known.state == state || known.state.may_become(state));
        if !may {
            let records = [known.map_or(place.index, |known| known.last), place.index];
            return self.list_inside(place, Breach::OutOfOrder, Some(part), &records);
        }
        match (receipt.kind, receipt.ticket_id) {
            (ReceiptKind::Escalated, Some(ticket)) => {
                self.tickets.ask(ticket, act, place.at, place.inside);
            }
            (ReceiptKind::Lapsed, Some(ticket)) if receipt.code == Some(Code::ApprovalExpired) => {
                self.tickets
                    .end(ticket, Ended::Lapsed, place.at, place.inside);
            }
            _ => {}
        }
        if receipt.kind == ReceiptKind::Lapsed && place.inside {
            self.timeline.add(Happened::Lapsed, place.at);
        }
        let mut next = self.next(place, part, known.as_ref(), state);
        if receipt.kind == ReceiptKind::Allowed {
            next.evidence = receipt.evidence_id.is_some() && receipt.evidence_digest.is_some();
            next.authority = receipt.authority_id;
        }
        self.acts.put(act, next);
    }

    /// The act after a step, counted.
    pub(super) fn next(
        &mut self,
        place: Place,
        part: &ActPart,
        known: Option<&Known>,
        to: State,
    ) -> Known {
        let function = function_of(part).and_then(|text| self.names.of(&text));
        let mut next = known
            .copied()
            .unwrap_or(Known::new(to, place.index, function));
        if next.counted {
            self.counts.moved(next.state, to);
        } else if place.inside {
            next.counted = true;
            self.counts.new_act(part.consequence_class, to);
        }
        next.state = to;
        next.last = place.index;
        next.doubted |= to == State::Indeterminate;
        next
    }

    pub(super) fn happened(&mut self, place: Place, state: State) {
        let what = match state {
            State::Effected | State::ReconciledEffect => Happened::Effected,
            State::Indeterminate => Happened::InDoubt,
            _ => Happened::NoEffect,
        };
        if place.inside {
            self.timeline.add(what, place.at);
        }
    }
}
