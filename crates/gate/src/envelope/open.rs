//! Opening an envelope: with the act that was just allowed, in the transaction that dispatches it.

use std::time::Duration;

use lychgate_core::Code;
use lychgate_core::id::EnvelopeId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_policy::EnvelopeLimits;
use lychgate_store as store;

use super::{Envelope, EnvelopeGrant, Envelopes, Hot, Kind, MOST_OPEN, Shape, why_not};
use crate::current::Current;
use crate::gate::Gate;
use crate::hold::HeldAct;

/// An envelope that opens when its act is dispatched.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    kind: Kind,
    shape: Shape,
    envelope: Envelope,
}

impl Gate {
    //= PROFILE §11: an envelope with limits spelled out
    /// Takes an approver's grant, given with the yes to its ticket. It opens when that yes is used, for acts of the same kind
    /// as the one that used it; where PROFILE §9 says never, it opens nothing and the act runs alone. Whoever shows the
    /// question asks [`Gate::may_be_enveloped`] first.
    ///
    /// # Errors
    /// A sentence: the limits are none.
    pub fn grant_envelope(&self, grant: EnvelopeGrant) -> Result<(), String> {
        if let Some(why) = grant.limits.fault() {
            return Err(why.to_owned());
        }
        self.envelopes().grant(grant);
        Ok(())
    }

    /// Why an act that waits can be granted no envelope; `None` where it can.
    pub fn may_be_enveloped(&self, held: &HeldAct) -> Option<&'static str> {
        why_not(held)
    }

    /// What an allowed act opens, if anything.
    pub(crate) fn opening(
        &self,
        held: &HeldAct,
        approval: Option<store::Approval>,
    ) -> Result<Option<Opening>, Code> {
        let limits = match (approval, held.hot) {
            (Some(approval), _) => self.envelopes().take_grant(approval.ticket),
            (None, Hot::Cold) => held.entry().and_then(|entry| entry.envelope.clone()),
            (None, Hot::Under { .. } | Hot::Strange(_)) => None,
        };
        let Some(limits) = limits.filter(|_| why_not(held).is_none()) else {
            return Ok(None);
        };
        let now = self.now();
        let envelope = Envelope {
            id: EnvelopeId::new(now, self.ten()?),
            act: held.act.candidate_act_id,
            approval: approval.map(|approval| approval.subject),
            until: now.after(Duration::from_millis(limits.lasts)),
            epochs: held.current.epochs,
            policy_digest: held.current.policy_digest,
            drawn: store::Drawn::nothing(now),
            limits,
        };
        Ok(Some(Opening {
            kind: Kind::of(held),
            shape: Shape::of(&held.proposal.arguments),
            envelope,
        }))
    }

    /// The line of the record that goes with the act's own.
    pub(crate) fn opened_entry(
        &self,
        opening: &Opening,
        current: &Current,
    ) -> Result<store::Entry, Code> {
        let Envelope {
            id,
            act,
            until,
            limits,
            ..
        } = &opening.envelope;
        self.draft(ReceiptKind::EnvelopeOpened, current)
            .policy(current.policy_digest)
            .detail(format!(
                "envelope:{id} act:{act} acts:{} until:{until}",
                limits.acts
            ))
            .entry()
            .map_err(|_| Code::FailClosed)
    }
}

impl Envelopes {
    fn grant(&self, grant: EnvelopeGrant) {
        self.change(|table| {
            if table.granted.len() >= MOST_OPEN {
                table.granted.clear();
            }
            table.granted.insert(grant.ticket, grant.limits);
        });
    }

    fn take_grant(&self, ticket: lychgate_core::id::TicketId) -> Option<EnvelopeLimits> {
        self.change(|table| table.granted.remove(&ticket))
    }

    /// The act is dispatched: its envelope is open from now on.
    pub(crate) fn open(&self, opening: Opening) {
        let Opening {
            kind,
            shape,
            envelope,
        } = opening;
        self.see(&kind, shape);
        self.change(|table| {
            if table.open.len() < MOST_OPEN {
                table.open.entry(kind).or_insert(envelope);
            }
        });
    }
}
