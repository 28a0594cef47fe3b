//! What an approver's verdict on a ticket does.

use std::sync::Arc;

use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, json};
use lychgate_keys::Role;
use lychgate_keys::verdict::{ApprovalVerdict, Verdict as Ruling};
use lychgate_store as store;

use crate::gate::Gate;

impl Gate {
    //= PROFILE §10: the terminal client signs ticket and subject with the approver key
    /// Takes an approver's verdict on a ticket.
    ///
    /// # Errors
    /// A sentence for the person: the signature does not hold, the ticket is not pending, it is for another subject.
    pub async fn rule(self: &Arc<Self>, verdict: &ApprovalVerdict) -> Result<(), String> {
        if !self.verify_live(Role::Approver, verdict) {
            return Err("the verdict is not signed by the approver key of this gate".to_owned());
        }
        let row = match self.store().ticket(verdict.ticket_id) {
            Ok(Some(row)) => row,
            Ok(None) => return Err(format!("there is no ticket `{}`", verdict.ticket_id)),
            Err(fault) => return Err(fault.to_string()),
        };
        if row.subject != verdict.subject {
            return Err("the verdict is for another subject than the ticket's".to_owned());
        }
        let approve = verdict.verdict == Ruling::Approve;
        let current = self.current();
        let kind = if approve {
            ReceiptKind::Approved
        } else {
            ReceiptKind::Disapproved
        };
        if row.expires_at != verdict.expires_at {
            return Err("the verdict is for another end than the ticket's".to_owned());
        }
        let signed = json::to_canonical(verdict).map_err(|fault| fault.to_string())?;
        let receipt = self
            .draft(kind, &current)
            .policy(current.policy_digest)
            .ticket(Some(row.id))
            .code((!approve).then_some(Code::ApprovalDenied))
            .approver(Some(verdict.mark.key_id.clone()))
            .entry()
            .map_err(|fault| fault.to_string())?;
        let decide = store::Decide {
            ticket: row.id,
            ruling: if approve {
                store::Ruling::Approved
            } else {
                store::Ruling::Denied
            },
            approver: verdict.mark.key_id.clone(),
            verdict: signed,
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Decide(decide)).await {
            Ok(store::Committed::Done(_)) => {
                self.approvals().give_back(row.id);
                if !approve {
                    self.approvals()
                        .remember_denial(row.subject, row.expires_at);
                }
                self.approvals().announce();
                Ok(())
            }
            Ok(store::Committed::Rejected(why)) => Err(why.to_string()),
            Err(fault) => {
                self.store_fault(&fault);
                Err(fault.to_string())
            }
        }
    }
}
