//! Consuming an authority: what one durable transaction is made of, and the permit that comes of it (PROFILE §4).

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::{ActId, EffectId};
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::verification::{
    Consumption, Effectuation, Operation, SinkDecision, SinkVerification,
};
use lychgate_core::{Code, Digest, State};
use lychgate_store as store;

use super::objects::{Digests, digest};
use super::permit::Permit;
use super::verify::{CheckList, Verified, phrase};
use super::{Dispatched, LiveInvocation, Origin, Presented, SinkRefusal};
use crate::current::Current;
use crate::envelope::Hot;
use crate::gate::Gate;
use crate::receipts::{Facts, part_of};

impl Gate {
    pub(super) async fn consume(
        self: &Arc<Self>,
        effect: EffectId,
        live: &LiveInvocation<'_>,
        presented: Presented,
        verified: Verified,
        current: &Arc<Current>,
    ) -> Result<Dispatched, SinkRefusal> {
        let first = match &presented.origin {
            Origin::Fresh(fresh) => fresh.chain.first,
            Origin::Stored => presented.act.candidate_act_id,
        };
        let key = live.idempotent.then(|| idempotency_key(first));
        let verification = self.yes(effect, &verified);
        let said = self.said(&presented, &verified, &verification);
        let prepared = said.and_then(|(said, digests)| {
            let facts = Arc::new(self.dispatch_facts(effect, key, &presented, &verified)?);
            let mut txn =
                self.dispatch_txn(effect, &facts, &presented, &verified, &digests, current)?;
            txn.said = Some(said);
            let key = facts.idempotency_key.as_deref();
            txn.read_back = self.sealed_plan(facts.act(), live, key, current)?;
            Ok((facts, txn))
        });
        let (facts, txn) = match prepared {
            Ok(prepared) => prepared,
            Err(code) => return Err(self.refuse_bare(&presented, code, current).await),
        };
        match self
            .store()
            .commit(store::Txn::Dispatch(Box::new(txn)))
            .await
        {
            Ok(store::Committed::Done(_)) => {
                if let Origin::Fresh(fresh) = presented.origin
                    && let Some(opening) = fresh.opening
                {
                    self.envelopes().open(*opening);
                }
                let lifetime = Duration::from_millis(current.applied.limits().permit);
                let permit = Permit::after_commit(effect, facts, lifetime);
                let checks = verified.checks.0;
                Ok(Dispatched { permit, checks })
            }
            Ok(store::Committed::Rejected(why)) => Err(self
                .rejected(effect, &presented, verified.checks, &why, current)
                .await),
            Err(fault) => Err(SinkRefusal {
                code: self.store_fault(&fault),
                verification: None,
                approval_lost: false,
            }),
        }
    }

    /// The transaction compared something that had moved since the checks.
    async fn rejected(
        self: &Arc<Self>,
        effect: EffectId,
        presented: &Presented,
        checks: CheckList,
        why: &store::Rejected,
        current: &Current,
    ) -> SinkRefusal {
        // An act that waited for its own ticket has nothing else to be licensed by.
        let waited = matches!(&presented.origin, Origin::Fresh(fresh) if fresh.escalated);
        let approval_lost = !waited
            && matches!(
                why,
                store::Rejected::TicketConsumed
                    | store::Rejected::TicketNotApproved { .. }
                    | store::Rejected::TicketExpired
            );
        let code = crate::gate::code_of(why);
        let verification = self.signed_refusal(effect, checks.after_rejection(why), code);
        // Then the act is decided on once more, and that is what is recorded.
        let code = if approval_lost {
            code
        } else {
            self.record_sink_refusal(presented, code, phrase(why), current)
                .await
        };
        SinkRefusal {
            code,
            verification,
            approval_lost,
        }
    }

    /// What the receipts of this act say from here on.
    fn dispatch_facts(
        &self,
        effect: EffectId,
        idempotency_key: Option<String>,
        presented: &Presented,
        verified: &Verified,
    ) -> Result<Facts, Code> {
        let act = &presented.act;
        let mut facts = match &presented.origin {
            Origin::Fresh(fresh) => Facts {
                part: part_of(
                    act,
                    verified.act_digest,
                    &fresh.salt,
                    true,
                    fresh.vouched,
                    fresh.new_act.delegation,
                ),
                authority: None,
                effect: None,
                idempotency_key: None,
                retry_of: fresh.retry_of,
                attempt: Some(fresh.chain.attempt),
                ticket: fresh.approval.map(|approval| approval.ticket),
                watched: fresh.new_act.twin.is_some(),
                refund: fresh.charges.refunds(self.now()),
            },
            Origin::Stored => {
                let row = self.row(act.candidate_act_id)?;
                let attempt = self.chain(row.id, row.retry_of)?.attempt;
                Facts {
                    attempt: Some(attempt),
                    ..self.facts_of(&row)
                }
            }
        };
        facts.authority = Some(verified.grant.authority);
        facts.effect = Some(effect);
        facts.idempotency_key = idempotency_key;
        Ok(facts)
    }

    fn dispatch_txn(
        &self,
        effect: EffectId,
        facts: &Facts,
        presented: &Presented,
        verified: &Verified,
        digests: &Digests,
        current: &Current,
    ) -> Result<store::Dispatch, Code> {
        let now = self.now();
        let act = &presented.act;
        let grant = verified.grant;
        let mut draft = self
            .draft(ReceiptKind::Dispatched, current)
            .facts(facts, State::Dispatched)
            .policy(current.policy_digest)
            .signed(digests.authority, digests.verification);
        let (mut issue, mut approval) = (None, None);
        let mut charges = Vec::new();
        let mut opening = None;
        if let Origin::Fresh(fresh) = &presented.origin {
            draft = draft
                .predicates(fresh.predicates)
                .evidence(fresh.evidence_id, digest(&fresh.evidence.leaf)?);
            approval = fresh.approval;
            charges.clone_from(&fresh.charges.all);
            opening = fresh.opening.as_deref();
            if let Hot::Under { id, .. } = fresh.envelope {
                draft = draft.detail(format!("envelope:{id}"));
            }
            issue = Some(store::Issue {
                act: fresh.new_act.clone(),
                grant,
                now,
                receipts: Vec::new(),
            });
        }
        let revocation_subjects = match &presented.origin {
            Origin::Fresh(fresh) => fresh.revocation_subjects.clone(),
            Origin::Stored => crate::gate::revocation_subjects(act),
        };
        let mut receipts = vec![draft.entry().map_err(|_| Code::FailClosed)?];
        if let Some(opening) = opening {
            receipts.push(self.opened_entry(opening, current)?);
        }
        Ok(store::Dispatch {
            issue,
            act: act.candidate_act_id,
            authority: grant.authority,
            holder: verified.holder,
            nonce: grant.nonce,
            expected_epochs: current.epochs,
            policy_digest: current.policy_digest,
            revocation_subjects,
            charges,
            effect,
            idempotency_key: facts.idempotency_key.clone(),
            approval,
            read_back: None,
            said: None,
            now,
            receipts,
        })
    }

    fn yes(&self, effect: EffectId, verified: &Verified) -> SinkVerification {
        SinkVerification {
            operation: Operation::DispatchSinkVerify,
            request_id: effect,
            decision: SinkDecision::Allow,
            verification: verified.checks.0,
            consumption: Some(Consumption {
                authority_id: verified.grant.authority,
                status: Default::default(),
            }),
            error: None,
            effectuation: Effectuation {
                permitted: true,
                effect_id: Some(effect),
            },
            mark: self.sink_mark(),
        }
    }
}

//= PROFILE §5: the idempotency key is derived from the first act of the chain
/// The key every attempt of one chain of retries shares.
fn idempotency_key(first_of_chain: ActId) -> String {
    Digest::sha256(first_of_chain.to_string().as_bytes()).to_base64url()
}
