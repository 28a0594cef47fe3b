//! What changes the rules: a new configuration, a revocation, a consent, a person's verdict on an act in doubt (PROFILE §5,
//! §10, §11).

pub mod consent;
mod known;
mod revoke;

use std::sync::Arc;

use lychgate_core::id::ActId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::signed::KeyId;
use lychgate_core::{Digest, State};
use lychgate_keys::Role;
use lychgate_keys::verdict::{Challenge, ConfigurationChange, Reason, ReconciliationVerdict};
use lychgate_ledger::report::MAX_DEPTH;
use lychgate_policy::{Applied, Change, Effect, changes};
use lychgate_store as store;

pub use self::known::UnknownSubject;
pub use self::revoke::Revoked;
pub(crate) use self::revoke::subjects_in_hand;
use crate::current::Current;
use crate::gate::Gate;

/// What applying a configuration would change.
#[derive(Debug)]
pub struct Plan {
    /// The configuration it starts from.
    pub from: Digest,
    /// The new one.
    pub to: Digest,
    /// What narrows and what widens.
    pub changes: Vec<Change>,
    /// Whether the approver's key is needed.
    pub wants_approver: bool,
    /// To be signed with it.
    pub challenge: Challenge,
}

/// Why a control was refused: a sentence for the person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ControlRefused(pub String);

pub(crate) fn refused(why: impl ToString) -> ControlRefused {
    ControlRefused(why.to_string())
}

impl Gate {
    /// A fresh one-time challenge.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn challenge(&self) -> Result<Challenge, ControlRefused> {
        self.challenges()
            .give(self.entropy(), self.now())
            .map_err(refused)
    }

    /// What applying `new` would change.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn plan(&self, new: &Applied) -> Result<Plan, ControlRefused> {
        let current = self.current();
        let changes = changes(Some(&current.applied), new);
        let widens = changes.iter().any(|change| change.effect == Effect::Widens);
        self.groups_can_decide(new)?;
        let has_approver = self.standing().approver == lychgate_core::receipt::Approver::Key;
        Ok(Plan {
            from: current.policy_digest,
            to: new.digest(),
            wants_approver: widens && has_approver,
            changes,
            challenge: self.challenge()?,
        })
    }

    //= PROFILE §10: a change takes effect only by `apply`; what widens wants the approver key
    /// Applies a configuration: the policy epoch moves, outstanding authority is void, the change is a receipt.
    ///
    /// # Errors
    /// A sentence: the approver's yes is missing or not for this change, or another change came first.
    pub async fn apply(
        self: &Arc<Self>,
        new: Applied,
        yes: Option<&ConfigurationChange>,
    ) -> Result<Digest, ControlRefused> {
        let _alone = self.one_control().await;
        let current = self.current();
        let plan = self.plan(&new)?;
        if plan.wants_approver {
            let yes = yes.ok_or_else(|| {
                refused("this change widens what may happen and needs the approver's key")
            })?;
            if !self.verify_live(Role::Approver, yes) {
                return Err(refused(
                    "the change is not signed by the approver key of this gate",
                ));
            }
            if yes.from != Some(current.policy_digest) || yes.to != new.digest() {
                return Err(refused(
                    "the approver's signature is for another change; run `lychgate apply` again",
                ));
            }
            if !self.challenges().take(&yes.challenge, self.now()) {
                return Err(refused(
                    "the approver's signature is too old or was used before; run `lychgate apply` again",
                ));
            }
        }
        let draft = self
            .draft(ReceiptKind::Applied, &current)
            .policy(new.digest())
            .approver(yes.map(|yes| yes.mark.key_id.clone()))
            .detail(format!("{MAX_DEPTH}{}", new.agent().max_depth));
        let digest = new.digest();
        let old = &current.applied;
        let authority_moved = old.principal() != new.principal();
        let moves = 1 + u64::from(authority_moved);
        let number = current.epochs.control().saturating_add(moves);
        let txn = store::Apply {
            expected: Some(current.policy_digest),
            digest,
            snapshot: new.snapshot(),
            purposes_moved: old.purposes_differ(&new),
            authority_moved,
            now: self.now(),
            receipts: self.emission(draft, number, &current)?,
        };
        self.commit_control(store::Txn::Apply(txn)).await?;
        self.refresh(Arc::new(new))?;
        let what = format!("configuration {}", digest.to_base64url());
        self.emitted(ReceiptKind::Applied, number, what);
        Ok(digest)
    }

    /// Reads the protected state again and decides by it from now on.
    pub(crate) fn refresh(&self, applied: Arc<Applied>) -> Result<(), ControlRefused> {
        let trust = self.trust();
        let current = Current::read(self.store().as_ref(), applied, &trust, self.now());
        // What was decided under other epochs holds no longer.
        self.envelopes().clear();
        self.replace_current(current.map_err(refused)?);
        Ok(())
    }

    /// Commits a change of the rules.
    pub(crate) async fn commit_control(&self, txn: store::Txn) -> Result<(), ControlRefused> {
        match self.store().commit(txn).await {
            Ok(store::Committed::Done(_)) => Ok(()),
            Ok(store::Committed::Rejected(why)) => Err(refused(why)),
            Err(fault) => {
                self.store_fault(&fault);
                Err(refused(fault))
            }
        }
    }

    //= PROFILE §5: a human verdict, with a reason and the approver's key
    /// Takes a person's verdict on an act whose outcome, or whose answer's delivery, is in doubt.
    ///
    /// # Errors
    /// A sentence: the signature does not hold, or the act is not in doubt.
    pub async fn reconcile(
        self: &Arc<Self>,
        verdict: &ReconciliationVerdict,
    ) -> Result<State, ControlRefused> {
        if !self.verify_live(Role::Approver, verdict) {
            return Err(refused(
                "the verdict is not signed by the approver key of this gate",
            ));
        }
        if !self.challenges().take(&verdict.challenge, self.now()) {
            return Err(refused("the verdict is too old or was used before"));
        }
        let approver = Some(verdict.mark.key_id.clone());
        let act = verdict.candidate_act_id;
        self.reconcile_by(act, verdict.effect, &verdict.reason, approver)
            .await
    }

    //= PROFILE §10: with `init --no-approver` nothing wants a key; receipts say `approver: none`
    /// As [`Gate::reconcile`], for a gate without an approver: nobody could sign, and an act in doubt must not hold back
    /// its equals for ever.
    ///
    /// # Errors
    /// A sentence: this gate has an approver, or the act is not in doubt.
    pub async fn reconcile_unsigned(
        self: &Arc<Self>,
        act: ActId,
        effect: bool,
        reason: &Reason,
    ) -> Result<State, ControlRefused> {
        if self.standing().approver != lychgate_core::receipt::Approver::None {
            return Err(refused("the verdict needs the approver's key"));
        }
        self.reconcile_by(act, effect, reason, None).await
    }

    async fn reconcile_by(
        self: &Arc<Self>,
        act: ActId,
        effect: bool,
        reason: &Reason,
        approver: Option<KeyId>,
    ) -> Result<State, ControlRefused> {
        let row = match self.store().act(act) {
            Ok(Some(row)) => row,
            Ok(None) => return Err(refused(format!("there is no act `{act}`"))),
            Err(fault) => return Err(refused(fault)),
        };
        let to = reconciled_to(&row, effect)?;
        // The reason is a person's words; the record keeps its digest, the log line keeps nothing.
        let reason = Digest::sha256(reason.as_str().as_bytes()).to_base64url();
        let receipt = self
            .draft_of(ReceiptKind::Reconciled, &self.current(), &row, to)
            .approver(approver)
            .detail(format!("reason:{reason}"))
            .entry()
            .map_err(refused)?;
        let (now, receipts) = (self.now(), vec![receipt]);
        let txn = if to == State::Effected {
            store::Txn::Deliver(store::Deliver { act, now, receipts })
        } else {
            store::Txn::Settle(store::Settle {
                act,
                to,
                answer: None,
                undelivered: false,
                code: None,
                refund: Vec::new(),
                now,
                receipts,
            })
        };
        self.commit_reconciliation(act, row.twin, to, txn).await
    }

    pub(crate) async fn commit_reconciliation(
        self: &Arc<Self>,
        act: ActId,
        twin: Option<Digest>,
        to: State,
        txn: store::Txn,
    ) -> Result<State, ControlRefused> {
        let untold = matches!(&txn, store::Txn::Settle(settle) if settle.undelivered);
        match self.store().commit(txn).await {
            Ok(store::Committed::Done(_)) => {
                if let (State::ReconciledNoEffect, Some(twin)) = (to, twin) {
                    self.predecessors().reconciled.insert(twin, act);
                }
                if untold {
                    self.twins().found(act);
                } else {
                    self.twins().close(act);
                }
                Ok(to)
            }
            Ok(store::Committed::Rejected(why)) => Err(refused(why)),
            Err(fault) => {
                self.store_fault(&fault);
                Err(refused(fault))
            }
        }
    }
}

/// What a person's verdict makes of an act.
fn reconciled_to(row: &store::ActRow, effect: bool) -> Result<State, ControlRefused> {
    match (row.state, effect) {
        (State::Indeterminate, true) => Ok(State::ReconciledEffect),
        (State::Indeterminate, false) => Ok(State::ReconciledNoEffect),
        // The effect is known; what was in doubt is that anybody heard of it.
        (State::Effected, true) if row.undelivered => Ok(State::Effected),
        (State::Effected, false) => Err(refused("the destination has confirmed this act's effect")),
        (state, _) => {
            let name = state.name();
            Err(refused(format!("the act is `{name}`, not in doubt")))
        }
    }
}
