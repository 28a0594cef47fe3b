//! What a ticket's state is worth: what its approvers signed, verified again before it is used. The store's own word on a
//! ticket is no approval, for whoever can write its file could give it.

use std::collections::BTreeSet;

use lychgate_core::json;
use lychgate_core::signed::KeyId;
use lychgate_keys::Role;
use lychgate_keys::verdict::{ApprovalVerdict, Verdict};
use lychgate_store::{StoreFault, TicketRow, VerdictRow};

use crate::gate::Gate;
use crate::log;

/// The keys whose holders said yes to a ticket.
pub(super) type Yeses = BTreeSet<KeyId>;

/// Why a ticket that says it is approved is not.
#[derive(Debug)]
pub(super) enum Unproven {
    /// The store cannot answer.
    Store(StoreFault),
    /// What is kept is not what an approver of this gate signed for this ticket.
    Forged,
}

impl Unproven {
    /// For a person.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Store(fault) => fault.to_string(),
            Self::Forged => "what is kept of this ticket is not what an approver signed".to_owned(),
        }
    }
}

impl Gate {
    //= PROFILE §10: the terminal client signs ticket and subject with the approver key
    /// Whose yes to this ticket stands, each signature verified against the keys that are believed now.
    pub(super) fn yeses(&self, row: &TicketRow) -> Result<Yeses, Unproven> {
        let kept = self.store().verdicts(row.id).map_err(Unproven::Store)?;
        let mut yeses = Yeses::new();
        for verdict in &kept {
            match self.genuine(row, verdict) {
                Some(verdict) => drop(yeses.insert(verdict.mark.key_id)),
                None => {
                    log::error(
                        "a ticket's verdict is not what an approver signed",
                        &[("ticket", row.id.into())],
                    );
                    return Err(Unproven::Forged);
                }
            }
        }
        Ok(yeses)
    }

    /// A yes to exactly this ticket: its subject, its end, by the key under which it is kept.
    fn genuine(&self, row: &TicketRow, kept: &VerdictRow) -> Option<ApprovalVerdict> {
        let value = json::parse(&kept.bytes, &json::Limits::OBJECT).ok()?;
        let verdict: ApprovalVerdict = json::from_value(&value).ok()?;
        let fits = verdict.ticket_id == row.id
            && verdict.subject == row.subject
            && verdict.expires_at == row.expires_at
            && verdict.verdict == Verdict::Approve
            && verdict.mark.key_id == kept.approver;
        (fits && self.verify_live(Role::Approver, &verdict)).then_some(verdict)
    }
}
