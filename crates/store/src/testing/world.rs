//! The rules of [`super::MemoryStore`], read off the contract: each step is taken at once, and whoever calls throws the
//! world away when a later one is not allowed.

use std::collections::{BTreeMap, BTreeSet};

use lychgate_core::id::{ActId, ConsentId, DelegationId, Nonce, TicketId};
use lychgate_core::signed::{BatchPath, BatchPlace};
use lychgate_core::{Code, State, Timestamp};
use lychgate_ledger::Hash;

use super::purse::Purse;
use crate::budget::Account;
use crate::ledger::Signatory;
use crate::outcome::{Done, Rejected, Which};
use crate::row::*;
use crate::txn::*;

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) held: ProtectedState,
    pub(super) acts: BTreeMap<ActId, ActRow>,
    pub(super) said: BTreeMap<ActId, SaidRow>,
    pub(super) tickets: BTreeMap<TicketId, TicketRow>,
    pub(super) verdicts: BTreeMap<TicketId, Vec<VerdictRow>>,
    pub(super) used: BTreeSet<Nonce>,
    pub(super) purses: BTreeMap<Account, Purse>,
    pub(super) delegations: BTreeMap<DelegationId, DelegationRow>,
    pub(super) revoked: BTreeMap<String, Timestamp>,
    pub(super) consents: BTreeMap<ConsentId, ConsentRow>,
    pub(super) applied: Option<AppliedRow>,
    pub(super) record: Vec<Entry>,
    pub(super) heads: Vec<HeadRow>,
    pub(super) pruned: BTreeSet<u64>,
}

impl Default for World {
    fn default() -> Self {
        let epochs = lychgate_core::Epochs {
            policy_epoch: 0,
            authority_epoch: 0,
            revocation_epoch: 0,
        };
        let last_time = Timestamp::from_millis(0);
        Self {
            held: ProtectedState {
                epochs,
                purpose_epoch: 0,
                policy_digest: None,
                last_time,
            },
            acts: BTreeMap::new(),
            said: BTreeMap::new(),
            tickets: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            used: BTreeSet::new(),
            purses: BTreeMap::new(),
            delegations: BTreeMap::new(),
            revoked: BTreeMap::new(),
            consents: BTreeMap::new(),
            applied: None,
            record: Vec::new(),
            heads: Vec::new(),
            pruned: BTreeSet::new(),
        }
    }
}

type Step<T = ()> = Result<T, Rejected>;

impl World {
    pub(super) fn transaction(&mut self, txn: Txn) -> Step<Done> {
        let first_index = self.record.len() as u64;
        let (now, receipts) = match txn {
            Txn::Issue(mut txn) => {
                let receipts = std::mem::take(&mut txn.receipts);
                let (now, nonce) = (txn.now, txn.grant.nonce);
                self.issue(txn, self.at(now))?;
                self.fresh(nonce)?;
                (now, receipts)
            }
            Txn::Dispatch(txn) => self.dispatch(*txn)?,
            Txn::Settle(txn) => self.settle(txn)?,
            Txn::Delegate(txn) => self.delegate(*txn)?,
            Txn::Refuse(txn) => self.refuse(txn)?,
            Txn::Escalate(txn) => self.escalate(txn)?,
            Txn::Decide(txn) => self.decide(txn)?,
            Txn::Lapse(txn) => self.lapse(txn)?,
            Txn::Deliver(txn) => {
                self.row(txn.act)?;
                self.delivered(txn.act);
                (txn.now, txn.receipts)
            }
            Txn::Contradict(txn) => self.contradict(txn)?,
            Txn::Apply(txn) => self.apply(txn)?,
            Txn::Revoke(txn) => self.revoke(txn)?,
            Txn::Rotate(txn) => {
                self.held.epochs.authority_epoch += 1;
                (txn.now, txn.receipts)
            }
            Txn::Consent(txn) => self.consent(txn)?,
            Txn::WithdrawConsent(txn) => self.withdraw_consent(txn)?,
            Txn::Prune(txn) => {
                self.pruned.extend(txn.lines(first_index)?);
                (txn.now, txn.receipts)
            }
            Txn::Note(txn) => (txn.now, txn.receipts),
        };
        self.held.last_time = self.at(now);
        self.record.extend(receipts);
        self.seal();
        Ok(Done {
            first_index,
            epochs: self.held.epochs,
        })
    }

    /// Each transaction is a group of its own.
    fn seal(&mut self) {
        let size = self.record.len() as u64;
        if self.heads.last().map_or(0, |head| head.size) < size {
            let root = lychgate_ledger::root(self.record.iter().map(|line| line.leaf));
            let note = super::make::signer().sign_head(size, root).unwrap();
            self.heads.push(HeadRow { size, note });
        }
    }

    fn at(&self, now: Timestamp) -> Timestamp {
        now.max(self.held.last_time)
    }

    fn row(&mut self, id: ActId) -> Step<&mut ActRow> {
        self.acts.get_mut(&id).ok_or(Rejected::UnknownAct)
    }

    fn fresh(&self, nonce: Nonce) -> Step {
        if self.used.contains(&nonce) {
            Err(Rejected::SeenNonce)
        } else {
            Ok(())
        }
    }

    fn issue(&mut self, txn: Issue, at: Timestamp) -> Step {
        let id = txn.act.id;
        match self.acts.get(&id) {
            None => {}
            Some(row) if row.state == State::Escalated => {
                let ticket = row.ticket.expect("an escalated act has a ticket");
                usable(&self.tickets[&ticket], at)?;
            }
            Some(_) => return Err(Rejected::SeenAct),
        }
        let Nonce { holder, count } = txn.grant.nonce;
        if holder != txn.grant.holder || count == 0 || i64::try_from(count).is_err() {
            return Err(Rejected::NonceUnusable);
        }
        let row = self.acts.entry(id).or_insert_with(|| first_row(txn.act));
        row.state = State::Allowed;
        row.updated_at = at;
        row.grant = Some(txn.grant);
        Ok(())
    }

    fn dispatch(&mut self, txn: Dispatch) -> Step<(Timestamp, Vec<Entry>)> {
        let at = self.at(txn.now);
        let mut receipts = Vec::new();
        if let Some(mut issue) = txn.issue {
            if issue.act.id != txn.act {
                return Err(Rejected::Malformed(
                    "the act issued is not the act dispatched",
                ));
            }
            receipts.append(&mut issue.receipts);
            self.issue(issue, at)?;
        }
        let row = self.acts.get(&txn.act).ok_or(Rejected::NotIssued)?.clone();
        let grant = row.grant.ok_or(Rejected::NotIssued)?;
        if grant.authority != txn.authority {
            return Err(Rejected::NotIssued);
        }
        if grant.holder != txn.holder {
            return Err(Rejected::HolderMismatch);
        }
        match row.state {
            State::Allowed => {}
            State::Expired => return Err(Rejected::Expired),
            from @ (State::Refused | State::Withdrawn | State::Escalated) => {
                return Err(Rejected::WrongState {
                    from,
                    to: State::Dispatched,
                });
            }
            _ => return Err(Rejected::AlreadyUsed),
        }
        if at >= grant.expires_at {
            return Err(Rejected::Expired);
        }
        if grant.nonce != txn.nonce {
            return Err(Rejected::NonceUnusable);
        }
        self.fresh(txn.nonce)?;
        let (now, issued, expected) = (self.held.epochs, grant.epochs, txn.expected_epochs);
        let moved = |which| Err(Rejected::EpochMismatch { which });
        let differ = |a, b, c| !(a == b && b == c);
        if differ(now.policy_epoch, issued.policy_epoch, expected.policy_epoch) {
            return moved(Which::Policy);
        }
        if differ(
            now.authority_epoch,
            issued.authority_epoch,
            expected.authority_epoch,
        ) {
            return moved(Which::Authority);
        }
        if differ(
            now.revocation_epoch,
            issued.revocation_epoch,
            expected.revocation_epoch,
        ) {
            return moved(Which::Revocation);
        }
        let held = self.held.policy_digest;
        if held != Some(grant.policy_digest) || held != Some(txn.policy_digest) {
            return moved(Which::PolicyDigest);
        }
        for subject in txn.revocation_subjects {
            if self.revoked.contains_key(&subject) {
                return Err(Rejected::Revoked { subject });
            }
        }
        if row.ticket.is_some() && row.ticket != txn.approval.map(|approval| approval.ticket) {
            return Err(Rejected::ApprovalMissing);
        }
        if let Some(approval) = txn.approval {
            let ticket = self
                .tickets
                .get_mut(&approval.ticket)
                .ok_or(Rejected::UnknownTicket)?;
            if ticket.subject != approval.subject {
                return Err(Rejected::TicketSubject);
            }
            usable(ticket, at)?;
            ticket.state = TicketState::Consumed;
            ticket.consumed_by = Some(txn.act);
        }
        let mut drawn = BTreeSet::new();
        for charge in &txn.charges {
            let account = charge.account;
            if !drawn.insert(account) {
                return Err(Rejected::Malformed("an act draws twice on one account"));
            }
            let purse = self.purses.entry(account).or_insert_with(|| Purse::new(at));
            let over = |over| Rejected::OverBudget { account, over };
            purse.draw(charge, at).map_err(over)?;
        }
        self.used.insert(txn.nonce);
        self.said
            .extend(txn.said.map(|said| (txn.act, signed(said))));
        let row = self.row(txn.act)?;
        row.state = State::Dispatched;
        row.updated_at = at;
        row.effect = Some(txn.effect);
        row.idempotency_key = txn.idempotency_key;
        row.ticket = txn.approval.map(|approval| approval.ticket);
        row.read_back = txn.read_back;
        receipts.extend(txn.receipts);
        Ok((txn.now, receipts))
    }

    fn advance(&mut self, id: ActId, to: &[State], step: State, at: Timestamp) -> Step {
        let row = self.row(id)?;
        let from = row.state;
        if !to.contains(&step) || !from.may_become(step) {
            return Err(Rejected::WrongState { from, to: step });
        }
        row.state = step;
        row.updated_at = at;
        Ok(())
    }

    fn settle(&mut self, txn: Settle) -> Step<(Timestamp, Vec<Entry>)> {
        let outcomes = [
            State::Effected,
            State::Failed,
            State::InputRequired,
            State::Indeterminate,
            State::ReconciledEffect,
            State::ReconciledNoEffect,
        ];
        self.advance(txn.act, &outcomes, txn.to, self.at(txn.now))?;
        if !txn.refund.is_empty() && ![State::Failed, State::InputRequired].contains(&txn.to) {
            let why = "an effect may have been, and is paid for";
            return Err(Rejected::Malformed(why));
        }
        for refund in &txn.refund {
            if let Some(purse) = self.purses.get_mut(&refund.charge.account) {
                purse.give_back(refund);
            }
        }
        let row = self.row(txn.act)?;
        row.code = txn.code;
        row.answered_by = None;
        row.undelivered = txn.undelivered;
        row.answer = txn.answer.filter(|_| txn.undelivered);
        if txn.to != State::Indeterminate {
            row.read_back = None;
        }
        Ok((txn.now, txn.receipts))
    }

    fn delegate(&mut self, txn: Delegate) -> Step<(Timestamp, Vec<Entry>)> {
        if self.delegations.contains_key(&txn.new.id) {
            return Err(Rejected::SeenDelegation);
        }
        if txn.settle.to != State::Effected {
            return Err(Rejected::Malformed("only an effect makes a delegation"));
        }
        let row = DelegationRow {
            id: txn.new.id,
            act: txn.settle.act,
            made_at: self.at(txn.settle.now),
            expires_at: txn.new.expires_at,
            body: txn.new.body,
        };
        self.delegations.insert(row.id, row);
        self.settle(txn.settle)
    }

    fn refuse(&mut self, txn: Refuse) -> Step<(Timestamp, Vec<Entry>)> {
        let at = self.at(txn.now);
        let ends = [State::Refused, State::Expired, State::Withdrawn];
        let id = match txn.whose {
            Whose::New(act) => {
                let id = act.id;
                if self.acts.contains_key(&id) {
                    return Err(Rejected::SeenAct);
                }
                if !ends.contains(&txn.to) {
                    return Err(Rejected::Malformed("a denial must end the act"));
                }
                self.acts.insert(
                    id,
                    ActRow {
                        state: txn.to,
                        updated_at: at,
                        ..first_row(*act)
                    },
                );
                id
            }
            Whose::Existing(id) => {
                self.advance(id, &ends, txn.to, at)?;
                id
            }
        };
        let row = self.row(id)?;
        row.code = txn.code;
        row.answered_by = txn.answered_by;
        Ok((txn.now, txn.receipts))
    }

    fn escalate(&mut self, txn: Escalate) -> Step<(Timestamp, Vec<Entry>)> {
        let at = self.at(txn.now);
        let act = txn.act.id;
        if self.acts.contains_key(&act) {
            return Err(Rejected::SeenAct);
        }
        let ticket = match txn.ticket {
            Awaited::New(new) => {
                if self.tickets.contains_key(&new.id) {
                    return Err(Rejected::SeenTicket);
                }
                let row = ticket_row(new, act, at);
                pending(&row, at)?;
                let id = row.id;
                self.tickets.insert(id, row);
                id
            }
            Awaited::Pending(awaited) => {
                let row = self
                    .tickets
                    .get(&awaited.ticket)
                    .ok_or(Rejected::UnknownTicket)?;
                if row.subject != awaited.subject {
                    return Err(Rejected::TicketSubject);
                }
                pending(row, at)?;
                awaited.ticket
            }
        };
        let row = ActRow {
            state: State::Escalated,
            updated_at: at,
            ticket: Some(ticket),
            ..first_row(txn.act)
        };
        self.acts.insert(act, row);
        Ok((txn.now, txn.receipts))
    }

    fn decide(&mut self, txn: Decide) -> Step<(Timestamp, Vec<Entry>)> {
        let at = self.at(txn.now);
        let ticket = self
            .tickets
            .get_mut(&txn.ticket)
            .ok_or(Rejected::UnknownTicket)?;
        pending(ticket, at)?;
        let verdicts = self.verdicts.entry(txn.ticket).or_default();
        if verdicts.iter().any(|row| row.approver == txn.approver) {
            return Err(Rejected::SeenVerdict);
        }
        verdicts.push(VerdictRow {
            approver: txn.approver.clone(),
            bytes: txn.verdict,
        });
        verdicts.sort_by(|one, other| one.approver.cmp(&other.approver));
        ticket.state = match txn.ruling {
            Ruling::Counted => return Ok((txn.now, txn.receipts)),
            Ruling::Approved => TicketState::Approved,
            Ruling::Denied => TicketState::Denied,
        };
        ticket.decided_at = Some(at);
        ticket.approver = Some(txn.approver);
        hide(ticket);
        let waits = |row: &&mut ActRow| {
            txn.ruling == Ruling::Denied
                && row.state == State::Escalated
                && row.ticket == Some(txn.ticket)
        };
        for row in self.acts.values_mut().filter(waits) {
            row.state = State::Refused;
            row.code = Some(Code::ApprovalDenied);
            row.updated_at = at;
        }
        Ok((txn.now, txn.receipts))
    }

    fn lapse(&mut self, txn: Lapse) -> Step<(Timestamp, Vec<Entry>)> {
        let at = self.at(txn.now);
        let tickets: BTreeSet<_> = txn.tickets.iter().collect();
        let acts: BTreeSet<_> = txn.acts.iter().map(|lapsed| lapsed.act).collect();
        let tickets: BTreeSet<_> = tickets.into_iter().chain(&txn.withdrawn).collect();
        let named = txn.tickets.len() + txn.withdrawn.len();
        if tickets.len() < named || acts.len() < txn.acts.len() {
            return Err(Rejected::Malformed("something lapses twice"));
        }
        let expired = txn.tickets.into_iter().map(|id| (id, TicketState::Expired));
        let withdrawn = txn
            .withdrawn
            .into_iter()
            .map(|id| (id, TicketState::Withdrawn));
        for (id, to) in expired.chain(withdrawn).collect::<Vec<_>>() {
            let ticket = self.tickets.get_mut(&id).ok_or(Rejected::UnknownTicket)?;
            let state = ticket.state;
            if !matches!(state, TicketState::Pending | TicketState::Approved) {
                return Err(Rejected::TicketNotPending { state });
            }
            ticket.state = to;
            hide(ticket);
        }
        for lapsed in txn.acts {
            self.advance(
                lapsed.act,
                &[State::Expired, State::Withdrawn],
                lapsed.to,
                at,
            )?;
            self.row(lapsed.act)?.code = lapsed.code;
        }
        for id in txn.forget_answers {
            self.row(id)?.answer = None;
        }
        Ok((txn.now, txn.receipts))
    }

    fn contradict(&mut self, txn: Contradict) -> Step<(Timestamp, Vec<Entry>)> {
        let at = self.at(txn.now);
        let row = self.row(txn.act)?;
        let from = row.state;
        if !matches!(from, State::ReconciledEffect | State::ReconciledNoEffect) {
            return Err(Rejected::WrongState { from, to: from });
        }
        row.contradicted = true;
        row.updated_at = at;
        Ok((txn.now, txn.receipts))
    }

    fn apply(&mut self, txn: Apply) -> Step<(Timestamp, Vec<Entry>)> {
        let found = self.held.policy_digest;
        if found != txn.expected {
            return Err(Rejected::PolicyMoved { found });
        }
        let at = self.at(txn.now);
        let held = &mut self.held;
        held.epochs.policy_epoch += 1;
        held.purpose_epoch += u64::from(txn.purposes_moved);
        held.epochs.authority_epoch += u64::from(txn.authority_moved);
        held.policy_digest = Some(txn.digest);
        let epoch = held.epochs.policy_epoch;
        self.applied = Some(AppliedRow {
            digest: txn.digest,
            epoch,
            snapshot: txn.snapshot,
            at,
        });
        Ok((txn.now, txn.receipts))
    }

    fn revoke(&mut self, txn: Revoke) -> Step<(Timestamp, Vec<Entry>)> {
        if txn.add.iter().any(|subject| txn.remove.contains(subject)) {
            return Err(Rejected::Malformed("a subject is both revoked and not"));
        }
        let at = self.at(txn.now);
        for subject in txn.add {
            self.revoked.entry(subject).or_insert(at);
        }
        for subject in &txn.remove {
            self.revoked.remove(subject);
        }
        self.held.epochs.revocation_epoch += 1;
        Ok((txn.now, txn.receipts))
    }

    fn consent(&mut self, txn: Consent) -> Step<(Timestamp, Vec<Entry>)> {
        if self.consents.contains_key(&txn.id) {
            return Err(Rejected::SeenConsent);
        }
        let row = ConsentRow {
            id: txn.id,
            granted_at: self.at(txn.now),
            expires_at: txn.expires_at,
            withdrawn_at: None,
            terms: txn.terms,
            grant: txn.grant,
        };
        self.consents.insert(txn.id, row);
        Ok((txn.now, txn.receipts))
    }

    fn withdraw_consent(&mut self, txn: WithdrawConsent) -> Step<(Timestamp, Vec<Entry>)> {
        let at = self.at(txn.now);
        for id in &txn.consents {
            let row = self.consents.get_mut(id).ok_or(Rejected::UnknownConsent)?;
            if row.withdrawn_at.replace(at).is_some() {
                return Err(Rejected::UnknownConsent);
            }
        }
        self.held.epochs.authority_epoch += 1;
        Ok((txn.now, txn.receipts))
    }

    pub(super) fn delivered(&mut self, id: ActId) {
        if let Some(row) = self.acts.get_mut(&id).filter(|row| row.undelivered) {
            row.undelivered = false;
            row.answer = None;
        }
    }
}

fn hide(ticket: &mut TicketRow) {
    ticket.summary = None;
    ticket.display = None;
    ticket.display_bytes = 0;
}

fn pending(ticket: &TicketRow, at: Timestamp) -> Step {
    match ticket.state {
        TicketState::Pending if at < ticket.expires_at => Ok(()),
        TicketState::Pending => Err(Rejected::TicketExpired),
        state => Err(Rejected::TicketNotPending { state }),
    }
}

fn usable(ticket: &TicketRow, at: Timestamp) -> Step {
    match ticket.state {
        TicketState::Approved if at < ticket.expires_at => Ok(()),
        TicketState::Approved | TicketState::Expired => Err(Rejected::TicketExpired),
        TicketState::Consumed => Err(Rejected::TicketConsumed),
        state => Err(Rejected::TicketNotApproved { state }),
    }
}

fn first_row(act: NewAct) -> ActRow {
    ActRow {
        id: act.id,
        state: State::Allowed,
        created_at: act.created_at,
        updated_at: act.created_at,
        twin: act.twin,
        act_digest: act.act_digest,
        arguments_digest: act.arguments_digest,
        destination: act.destination,
        salt: act.salt,
        agent: act.agent,
        depth: act.depth,
        delegation: act.delegation,
        tool: act.tool,
        function: act.function,
        class: act.class,
        source: act.source,
        vouched: act.vouched,
        retry_of: act.retry_of,
        grant: None,
        effect: None,
        idempotency_key: None,
        ticket: None,
        code: None,
        answered_by: None,
        contradicted: false,
        undelivered: false,
        answer: None,
        read_back: None,
    }
}

fn ticket_row(new: NewTicket, act: ActId, at: Timestamp) -> TicketRow {
    TicketRow {
        id: new.id,
        state: TicketState::Pending,
        subject: new.subject,
        act,
        created_at: at,
        expires_at: new.expires_at,
        decided_at: None,
        approver: None,
        consumed_by: None,
        summary: Some(new.summary),
        display_bytes: new.display.len() as u64,
        display: Some(new.display),
    }
}

/// Each transaction is a group of its own.
fn signed(said: Said) -> SaidRow {
    let sign = |by, leaves: &[LeafHash]| {
        let size = u32::try_from(leaves.len()).unwrap();
        let root = lychgate_ledger::root(leaves.iter().copied());
        let signature = super::make::signer().sign_batch(by, &root, size).unwrap();
        move |index: u32, path: Vec<Hash>| BatchSignature {
            place: BatchPlace {
                index,
                size,
                path: BatchPath(path),
            },
            signature,
        }
    };
    let ped = said.ped.map(|leaves| {
        let [evidence, authority] = leaves;
        let signed = sign(Signatory::Ped, &leaves);
        [signed(0, vec![authority.0]), signed(1, vec![evidence.0])]
    });
    SaidRow {
        objects: said.objects,
        ped,
        sink: sign(Signatory::Sink, &[said.sink])(0, Vec::new()),
    }
}
