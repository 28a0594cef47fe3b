//! Who may use a ticket: an approval is one act's, and a ticket that is waited for is its waiter's (PROFILE §4).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lychgate_core::id::TicketId;
use lychgate_core::{Code, Digest, Timestamp};
use lychgate_store::{StoreFault, TicketRow, TicketState};

use super::open::{MOST_OPEN, Open};
use super::proof::Unproven;
use super::quorum::Wanted;
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

/// What the signed verdicts say to a ticket that is approved as the store has it.
enum Bears {
    /// The same.
    Out,
    /// Yes, of fewer than are wanted now.
    TooFew,
    /// Yes, but without those whose keys are revoked of fewer than are wanted.
    Revoked,
    /// Nothing of the kind.
    Nothing(Code, &'static str),
}

/// Who must say yes to this act, under the rules it is decided by.
fn wanted_by(held: &HeldAct) -> Wanted<'_> {
    let act = &held.act;
    Wanted::of(
        &held.current.applied,
        act.consequence_class,
        &act.tool.tool_id,
        &act.tool.function_id,
    )
}

impl Gate {
    pub(crate) fn license(&self, held: &HeldAct, subject: &Digest) -> Result<License, Code> {
        let fault = |fault: StoreFault| self.store_fault(&fault);
        if let Some(own) = held.escalated {
            let row = self.store().ticket(own).map_err(fault)?;
            return Ok(self.own_license(own, row.as_ref(), subject, &wanted_by(held)));
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
        // An approval that outlived its caller may lie behind a newer question for the same subject.
        let live_in = |state: TicketState| {
            live.iter()
                .filter(move |row| row.state == state && now < row.expires_at)
        };
        let wanted = wanted_by(held);
        for row in live_in(TicketState::Approved) {
            let Some(claim) = tickets.claim(row.id) else {
                continue;
            };
            match self.borne_out(row, &wanted) {
                Bears::Out => return Ok(License::Approved(row.id, Some(claim))),
                // Since it was given, more were asked for: whoever is asked now decides.
                Bears::TooFew | Bears::Revoked => {}
                Bears::Nothing(code, why) => return Ok(License::Refused(code, why)),
            }
        }
        Ok(License::Ask(
            live_in(TicketState::Pending).find_map(|row| tickets.claim(row.id)),
        ))
    }

    /// Whether what the approvers signed bears out that the ticket is approved.
    fn borne_out(&self, row: &TicketRow, wanted: &Wanted<'_>) -> Bears {
        match self.yeses(row) {
            Ok(yeses) if yeses.is_empty() => Bears::Nothing(Code::FailClosed, UNSIGNED),
            Ok(mut yeses) => {
                let all = yeses.len();
                let current = self.current();
                yeses.retain(|key| !current.is_key_revoked(key));
                match (wanted.met_by(&yeses), yeses.len() < all) {
                    (true, _) => Bears::Out,
                    (false, true) => Bears::Revoked,
                    (false, false) => Bears::TooFew,
                }
            }
            Err(Unproven::Forged) => Bears::Nothing(Code::FailClosed, UNSIGNED),
            Err(Unproven::Store(fault)) => {
                Bears::Nothing(self.store_fault(&fault), "the verdicts cannot be read")
            }
        }
    }

    /// A waiting act lives and dies with its own ticket. Only a person's no is told as one (CASES "Approval").
    fn own_license(
        &self,
        own: TicketId,
        row: Option<&TicketRow>,
        subject: &Digest,
        wanted: &Wanted<'_>,
    ) -> License {
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
            TicketState::Approved => match self.borne_out(row, wanted) {
                Bears::Out => License::Approved(own, None),
                Bears::TooFew => License::Refused(
                    Code::EscalationRequired,
                    "more approvers are asked for now than have said yes",
                ),
                Bears::Revoked => {
                    License::Refused(Code::RevocationActive, "an approver's key is revoked")
                }
                Bears::Nothing(code, why) => License::Refused(code, why),
            },
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

const UNSIGNED: &str = "no approver of now signed what the ticket says";
/// Denials remembered by subject until their ticket's time is over.
const MOST_DENIALS: usize = 4096;
