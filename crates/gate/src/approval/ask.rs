//! Asking: an act that needs a person gets a ticket, or joins one whose caller has gone.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::TicketId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, Digest, State, jcs};
use lychgate_store as store;

use super::Claim;
use super::show::{display_label, display_of, summary_label, summary_of};
use crate::gate::{Gate, code_of};
use crate::hold::HeldAct;
use crate::ped::{Escalated, Judgement, Verdict};

/// Why a person is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) code: Code,
    pub(crate) why: &'static str,
    pub(crate) subject: Digest,
}

/// What an act waits for, and who has a hold on it.
struct Asked {
    claim: Claim,
    awaited: store::Awaited,
}

type Unasked = (Code, &'static str);

impl Gate {
    /// Keeps the act and its ticket; `pending` is one it joins.
    pub(crate) async fn escalate(
        self: &Arc<Self>,
        mut held: HeldAct,
        question: Question,
        judged: Judgement,
        pending: Option<Claim>,
    ) -> Verdict {
        let asked = match self.prepare_ticket(&held, &question, pending) {
            Ok(asked) => asked,
            Err((code, why)) => return Verdict::Deny(self.deny(held, code, why, judged).await),
        };
        // Taken before anybody else can see the ticket.
        let ticket = asked.claim.ticket();
        held.claim = Some(asked.claim);
        let is_new = matches!(asked.awaited, store::Awaited::New(_));
        let kept = self
            .keep_ticket(&held, &question, &judged, ticket, asked.awaited)
            .await;
        match kept {
            Ok(()) => {
                held.escalated = Some(ticket);
                Verdict::Escalate(Box::new(Escalated { held, ticket }))
            }
            Err((code, why)) => {
                // A ticket that was joined keeps its place.
                if is_new {
                    self.approvals().give_back(ticket);
                }
                Verdict::Deny(self.deny(held, code, why, judged).await)
            }
        }
    }

    async fn keep_ticket(
        self: &Arc<Self>,
        held: &HeldAct,
        question: &Question,
        judged: &Judgement,
        ticket: TicketId,
        awaited: store::Awaited,
    ) -> Result<(), Unasked> {
        let receipt = self
            .draft(ReceiptKind::Escalated, &held.current)
            .act(held.part(), State::Escalated)
            .code(Some(question.code))
            .predicates(judged.predicates)
            .policy(held.current.policy_digest)
            .ticket(Some(ticket))
            .detail(question.why)
            .entry()
            .map_err(|_| (Code::FailClosed, "the receipt could not be made"))?;
        let txn = store::Escalate {
            act: held.new_act(),
            ticket: awaited,
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Escalate(txn)).await {
            Ok(store::Committed::Done(_)) => Ok(()),
            Ok(store::Committed::Rejected(why)) => {
                Err((code_of(&why), "the ticket could not be kept"))
            }
            Err(fault) => Err((self.store_fault(&fault), "the store cannot answer")),
        }
    }

    fn prepare_ticket(
        &self,
        held: &HeldAct,
        question: &Question,
        pending: Option<Claim>,
    ) -> Result<Asked, Unasked> {
        let subject = question.subject;
        if let Some(claim) = pending {
            let ticket = claim.ticket();
            let awaited = store::Awaited::Pending(store::Approval { ticket, subject });
            return Ok(Asked { claim, awaited });
        }
        let no_ticket = |_| (Code::FailClosed, "no ticket could be made");
        let now = self.now();
        let id = TicketId::new(now, self.ten().map_err(no_ticket)?);
        let lifetime = Duration::from_millis(held.current.applied.limits().ticket);
        let expires_at = now.after(lifetime);
        let (code, why) = (question.code, question.why);
        let none = (Code::FailClosed, "no ticket could be made");
        let seal =
            |label: Vec<u8>, bytes: &[u8]| self.sealer().seal(&label, bytes).map_err(|_| none);
        let display = jcs::to_bytes(&display_of(held, code, why).ok_or(none)?);
        let display = seal(display_label(id, &subject, expires_at), &display)?;
        let summary = jcs::to_bytes(&summary_of(held, code, why).ok_or(none)?);
        let summary = seal(summary_label(id, &subject, expires_at), &summary)?;
        let holder = held.session.holder();
        let tickets = &self.approvals().tickets;
        if !tickets.open(|open| open.take(id, display.len(), holder, expires_at)) {
            return Err((
                Code::EnvelopeExceeded,
                "too many calls wait for a person already",
            ));
        }
        let Some(claim) = tickets.claim(id) else {
            tickets.open(|open| open.give_back(id));
            return Err(none);
        };
        let ticket = store::NewTicket {
            id,
            subject,
            summary,
            display,
            expires_at,
        };
        let awaited = store::Awaited::New(ticket);
        Ok(Asked { claim, awaited })
    }
}
