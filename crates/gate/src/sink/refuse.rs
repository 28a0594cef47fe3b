//! The sink's no, signed where it can be and recorded always.

use std::sync::Arc;

use lychgate_core::id::{EffectId, TicketId};
use lychgate_core::receipt::{ReceiptKind, Salt};
use lychgate_core::verification::{Effectuation, Operation, SinkDecision, SinkVerification};
use lychgate_core::{Code, State};
use lychgate_store as store;

use super::verify::CheckList;
use super::{Origin, Presented, SinkRefusal};
use crate::current::Current;
use crate::gate::Gate;
use crate::receipts::part_of;

impl Gate {
    /// A refusal before any check could be signed; recorded like every other.
    pub(super) async fn refuse_bare(
        self: &Arc<Self>,
        presented: &Presented,
        code: Code,
        current: &Current,
    ) -> SinkRefusal {
        let why = "the dispatch could not be prepared";
        let code = self
            .record_sink_refusal(presented, code, why, current)
            .await;
        SinkRefusal {
            code,
            verification: None,
            approval_lost: false,
        }
    }

    pub(super) fn signed_refusal(
        &self,
        effect: EffectId,
        checks: CheckList,
        code: Code,
    ) -> Option<SinkVerification> {
        let mut verification = SinkVerification {
            operation: Operation::DispatchSinkVerify,
            request_id: effect,
            decision: SinkDecision::Deny,
            verification: checks.0,
            consumption: None,
            error: Some(code.into()),
            effectuation: Effectuation {
                permitted: false,
                effect_id: None,
            },
            mark: self.sink_mark(),
        };
        self.sign_as_sink(&mut verification)
            .ok()
            .map(|()| verification)
    }

    /// Records a refusal. A fresh act ends refused. One that was stored stays as it is: whoever presents a stolen or
    /// mutated copy must not be able to spoil the rightful holder's act.
    pub(crate) async fn record_sink_refusal(
        self: &Arc<Self>,
        presented: &Presented,
        code: Code,
        why: &'static str,
        current: &Current,
    ) -> Code {
        let act = &presented.act;
        let Ok(digest) = act.digest() else {
            return Code::FailClosed;
        };
        let delegation = match &presented.origin {
            Origin::Fresh(fresh) => fresh.new_act.delegation,
            Origin::Stored => None,
        };
        let (salt, vouched, ticket): (Salt, bool, Option<TicketId>) = match &presented.origin {
            Origin::Fresh(fresh) => (
                fresh.salt,
                fresh.vouched,
                fresh.approval.map(|approval| approval.ticket),
            ),
            Origin::Stored => match self.fresh_salt() {
                Ok(salt) => (salt, false, None),
                Err(code) => return code,
            },
        };
        let part = part_of(act, digest, &salt, true, vouched, delegation);
        let draft = self
            .draft(ReceiptKind::Denied, current)
            .act(part, State::Refused)
            .code(Some(code))
            .policy(current.policy_digest)
            .ticket(ticket)
            .detail(why);
        let Ok(receipt) = draft.entry() else {
            return Code::FailClosed;
        };
        let now = self.now();
        let receipts = vec![receipt];
        match &presented.origin {
            Origin::Fresh(fresh) => {
                let whose = if fresh.escalated {
                    store::Whose::Existing(act.candidate_act_id)
                } else {
                    store::Whose::New(Box::new(fresh.new_act.clone()))
                };
                let refuse = store::Refuse {
                    whose,
                    to: State::Refused,
                    code: Some(code),
                    answered_by: None,
                    now,
                    receipts,
                };
                self.commit_denial(refuse, code).await
            }
            Origin::Stored => self.commit_note(store::Note { now, receipts }, code).await,
        }
    }
}
