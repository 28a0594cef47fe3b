//! What an approver's verdict on a ticket does.

use std::sync::Arc;

use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, json};
use lychgate_keys::Role;
use lychgate_keys::verdict::{ApprovalVerdict, Verdict};
use lychgate_store::{self as store, Ruling, TicketRow};

use super::proof::{Unproven, Yeses};
use super::quorum::{Tally, Wanted};
use crate::current::Current;
use crate::gate::Gate;

/// What became of a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruled {
    /// A yes, and enough: one act may run.
    Approved,
    /// A yes, and more are wanted.
    Counted(Vec<Tally>),
    /// A no.
    Denied,
}

impl Gate {
    //= PROFILE §10: the terminal client signs ticket and subject with the approver key
    /// Takes an approver's verdict on a ticket. A yes counts once a key, and only of who is asked; one no of any approver
    /// ends the ticket.
    ///
    /// # Errors
    /// A sentence for the person: the signature does not hold, the ticket is not pending, it is for another subject, or
    /// somebody else is asked.
    pub async fn rule(self: &Arc<Self>, verdict: &ApprovalVerdict) -> Result<Ruled, String> {
        if !self.verify_live(Role::Approver, verdict) {
            return Err("the verdict is not signed by an approver key of this gate".to_owned());
        }
        // One after the other: what makes the last yes the last one is counted here.
        let _alone = self.approvals().ruling.lock().await;
        let row = match self.store().ticket(verdict.ticket_id) {
            Ok(Some(row)) => row,
            Ok(None) => return Err(format!("there is no ticket `{}`", verdict.ticket_id)),
            Err(fault) => return Err(fault.to_string()),
        };
        if row.subject != verdict.subject {
            return Err("the verdict is for another subject than the ticket's".to_owned());
        }
        if row.expires_at != verdict.expires_at {
            return Err("the verdict is for another end than the ticket's".to_owned());
        }
        let current = self.current();
        let ruled = match verdict.verdict {
            Verdict::Approve => self.count(&current, &row, verdict)?,
            Verdict::Deny => Ruled::Denied,
        };
        self.keep_verdict(&current, &row, verdict, &ruled).await?;
        if matches!(ruled, Ruled::Approved | Ruled::Denied) {
            self.approvals().give_back(row.id);
            if ruled == Ruled::Denied {
                self.approvals()
                    .remember_denial(row.subject, row.expires_at);
            }
            self.approvals().announce();
        }
        Ok(ruled)
    }

    /// What one more yes makes of the ticket.
    fn count(
        &self,
        current: &Current,
        row: &TicketRow,
        verdict: &ApprovalVerdict,
    ) -> Result<Ruled, String> {
        let key = &verdict.mark.key_id;
        let mut yeses = self.yeses(row).map_err(|why| why.sentence())?;
        self.with_wanted(current, row, |wanted| {
            if !wanted.counts(key) {
                return Err(format!(
                    "this call is for the approvers of `{}`, and that key is not one of theirs",
                    wanted.names()
                ));
            }
            yeses.insert(key.clone());
            Ok(if wanted.met_by(&yeses) {
                Ruled::Approved
            } else {
                Ruled::Counted(wanted.tallies(&yeses))
            })
        })?
    }

    /// How far the yeses to a ticket have come.
    pub(super) fn tallies(&self, row: &TicketRow) -> Result<Vec<Tally>, String> {
        let yeses = match self.yeses(row) {
            Ok(yeses) => yeses,
            Err(Unproven::Forged) => Yeses::new(),
            Err(why) => return Err(why.sentence()),
        };
        let current = self.current();
        self.with_wanted(&current, row, |wanted| wanted.tallies(&yeses))
    }

    /// Who is asked about a ticket: told by the act that asked first, whose class and tool are part of its subject.
    fn with_wanted<T>(
        &self,
        current: &Current,
        row: &TicketRow,
        then: impl FnOnce(&Wanted<'_>) -> T,
    ) -> Result<T, String> {
        let unknown = || "the act that asked is not known any more".to_owned();
        let act = self.row(row.act).map_err(|_| unknown())?;
        let class = act.class.ok_or_else(unknown)?;
        let server = act.tool.ok_or_else(unknown)?;
        let function = act.function.ok_or_else(unknown)?;
        let wanted = Wanted::of(&current.applied, class, &server, &function);
        Ok(then(&wanted))
    }

    async fn keep_verdict(
        self: &Arc<Self>,
        current: &Current,
        row: &TicketRow,
        verdict: &ApprovalVerdict,
        ruled: &Ruled,
    ) -> Result<(), String> {
        let (kind, ruling) = match ruled {
            Ruled::Approved => (ReceiptKind::Approved, Ruling::Approved),
            Ruled::Counted(_) => (ReceiptKind::ApprovalCounted, Ruling::Counted),
            Ruled::Denied => (ReceiptKind::Disapproved, Ruling::Denied),
        };
        let receipt = self
            .draft(kind, current)
            .policy(current.policy_digest)
            .ticket(Some(row.id))
            .code((ruling == Ruling::Denied).then_some(Code::ApprovalDenied))
            .approver(Some(verdict.mark.key_id.clone()))
            .entry()
            .map_err(|fault| fault.to_string())?;
        let decide = store::Decide {
            ticket: row.id,
            ruling,
            approver: verdict.mark.key_id.clone(),
            verdict: json::to_canonical(verdict).map_err(|fault| fault.to_string())?,
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Decide(decide)).await {
            Ok(store::Committed::Done(_)) => Ok(()),
            Ok(store::Committed::Rejected(why)) => Err(why.to_string()),
            Err(fault) => {
                self.store_fault(&fault);
                Err(fault.to_string())
            }
        }
    }
}
