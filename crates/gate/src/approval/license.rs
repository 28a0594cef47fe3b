//! Who may use a ticket: an approval is one act's, and a ticket that is waited for is its waiter's (PROFILE §4).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lychgate_core::id::TicketId;
use lychgate_core::{Code, Digest, Timestamp};
use lychgate_store::{StoreFault, TicketRow, TicketState};

use super::open::{MOST_OPEN, Open};
use crate::gate::Gate;
use crate::hold::HeldAct;

/// Which tickets are an act's in hand, and which subjects a person has said no to.
#[derive(Clone, Debug, Default)]
pub(super) struct Tickets(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    claimed: HashSet<TicketId>,
    denied: HashMap<Digest, Timestamp>,
    open: Open,
}

/// A ticket is one act's as long as this lives, whatever becomes of the act: also when whoever drives it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    ticket: TicketId,
    tickets: Tickets,
}

impl Claim {
    /// The ticket.
    pub(crate) fn ticket(&self) -> TicketId {
        self.ticket
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.tickets.table().claimed.remove(&self.ticket);
    }
}

impl Tickets {
    /// Every change is a map operation, so a poisoned lock is still good.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a ticket, unless it is another act's.
    pub(super) fn claim(&self, ticket: TicketId) -> Option<Claim> {
        self.table().claimed.insert(ticket).then(|| Claim {
            ticket,
            tickets: self.clone(),
        })
    }

    pub(super) fn is_claimed(&self, ticket: TicketId) -> bool {
        self.table().claimed.contains(&ticket)
    }

    pub(super) fn remember_denial(&self, subject: Digest, until: Timestamp) {
        let mut table = self.table();
        if table.denied.len() >= MOST_DENIALS {
            table.denied.clear();
        }
        let kept = table.denied.entry(subject).or_insert(until);
        *kept = until.max(*kept);
    }

    /// The tickets that wait for a person, and how many there may be.
    pub(super) fn open<T>(&self, change: impl FnOnce(&mut Open) -> T) -> T {
        change(&mut self.table().open)
    }

    fn is_denied(&self, subject: &Digest, now: Timestamp) -> bool {
        let mut table = self.table();
        table.denied.retain(|_, until| now < *until);
        table.denied.contains_key(subject)
    }
}

/// What the approvals say to an act that needs one.
#[derive(Debug)]
pub(crate) enum License {
    /// A person said yes to exactly this, and nobody has used it. The claim is absent where the act has it already.
    Approved(TicketId, Option<Claim>),
    /// A person said no, or the yes is worth nothing any more.
    Refused(Code, &'static str),
    /// Ask; with a new ticket, or on one that is pending and whose caller has gone.
    Ask(Option<Claim>),
}

impl Gate {
    pub(crate) fn license(&self, held: &HeldAct, subject: &Digest) -> Result<License, Code> {
        let fault = |fault: StoreFault| self.store_fault(&fault);
        if let Some(own) = held.escalated {
            let row = self.store().ticket(own).map_err(fault)?;
            return Ok(self.own_license(own, row.as_ref(), subject));
        }
        let now = self.now();
        let tickets = &self.approvals().tickets;
        if tickets.is_denied(subject, now) {
            return Ok(License::Refused(
                Code::ApprovalDenied,
                "a person denied an equal act",
            ));
        }
        let live = self.store().tickets_of(subject, MOST_OPEN).map_err(fault)?;
        // One whose caller still waits is that caller's: two equal live calls are two acts.
        let take = |state: TicketState| {
            live.iter()
                .filter(|row| row.state == state && now < row.expires_at)
                .filter(|row| !self.is_by_revoked_key(row))
                .find_map(|row| tickets.claim(row.id))
        };
        // An approval that outlived its caller may lie behind a newer question for the same subject.
        Ok(match take(TicketState::Approved) {
            Some(claim) => License::Approved(claim.ticket(), Some(claim)),
            None => License::Ask(take(TicketState::Pending)),
        })
    }

    fn is_by_revoked_key(&self, row: &TicketRow) -> bool {
        let key = row.approver.as_ref();
        key.is_some_and(|key| self.current().is_key_revoked(key))
    }

    /// A waiting act lives and dies with its own ticket. Only a person's no is told as one (CASES "Approval").
    fn own_license(&self, own: TicketId, row: Option<&TicketRow>, subject: &Digest) -> License {
        let Some(row) = row else {
            return License::Refused(Code::FailClosed, "its ticket is gone");
        };
        match row.state {
            TicketState::Approved if row.subject != *subject => {
                License::Refused(Code::ActMismatch, "the approval is for another subject")
            }
            TicketState::Approved if self.now() >= row.expires_at => {
                License::Refused(Code::ApprovalExpired, "the approval expired unused")
            }
            TicketState::Approved if self.is_by_revoked_key(row) => {
                License::Refused(Code::RevocationActive, "the approver's key is revoked")
            }
            TicketState::Approved => License::Approved(own, None),
            TicketState::Denied => License::Refused(Code::ApprovalDenied, "a person denied it"),
            TicketState::Expired => {
                License::Refused(Code::ApprovalExpired, "the approval expired unused")
            }
            TicketState::Withdrawn => {
                License::Refused(Code::RevocationActive, "what it asks for was revoked")
            }
            TicketState::Consumed | TicketState::Pending => {
                License::Refused(Code::EscalationRequired, "its ticket does not license it")
            }
        }
    }
}

/// Denials remembered by subject until their ticket's time is over.
const MOST_DENIALS: usize = 4096;
