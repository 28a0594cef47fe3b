//! Escalations: sealed tickets, who waits for them, and what an approver's verdict does (PROFILE §4, §11).
//!
//! An approval is an input to the PED, never a substitute for the sink: a waiting act whose ticket is approved is
//! decided again under the policy of that moment.

mod ask;
mod license;
mod open;
mod proof;
mod quorum;
mod rule;
mod show;
mod used;
mod wait;

use lychgate_core::id::TicketId;
use lychgate_core::{Digest, Timestamp};
use lychgate_store::TicketRow;
use tokio::sync::watch;

pub(crate) use self::ask::Question;
use self::license::Tickets;
pub(crate) use self::license::{Claim, License};
pub(crate) use self::open::MOST_OPEN;
pub use self::quorum::Tally;
pub use self::rule::Ruled;
pub use self::show::{PendingQuery, PendingTicket, TicketSummary};
use crate::hold::HeldAct;
use crate::ped::Denied;

/// What is known of tickets in memory.
#[derive(Debug)]
pub(crate) struct Approvals {
    tickets: Tickets,
    /// One verdict at a time.
    ruling: tokio::sync::Mutex<()>,
    /// Moves with every decision; each waiter looks at its own ticket then.
    decided: watch::Sender<u64>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            tickets: Tickets::default(),
            ruling: tokio::sync::Mutex::default(),
            decided: watch::Sender::new(0),
        }
    }
}

/// How a wait ended.
#[derive(Debug)]
pub enum Waited {
    /// Approved: decide again.
    Approved(Box<HeldAct>),
    /// It will not run.
    Over(Denied),
}

/// Resolves when the caller of a held act is gone: it cancelled, timed out or vanished.
#[derive(Clone, Debug)]
pub struct Caller(watch::Receiver<bool>);

/// The other end of a [`Caller`].
#[derive(Debug)]
pub struct CallerGone(watch::Sender<bool>);

impl CallerGone {
    /// A caller that is there, and the means to say that it is not.
    pub fn new() -> (Self, Caller) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Caller(receiver))
    }

    /// The caller is gone.
    pub fn say(&self) {
        self.0.send_replace(true);
    }
}

impl Caller {
    /// Whether it is gone. Dropping the other end counts as gone.
    pub fn is_gone(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Resolves when it is gone.
    pub async fn gone(&self) {
        let mut receiver = self.0.clone();
        // An error means that the other end was dropped, which is the same news.
        drop(receiver.wait_for(|gone| *gone).await);
    }
}

impl Approvals {
    pub(crate) fn remember_denial(&self, subject: Digest, until: Timestamp) {
        self.tickets.remember_denial(subject, until);
    }

    /// Whether an act in hand has the ticket.
    pub(crate) fn is_waited_for(&self, ticket: TicketId) -> bool {
        self.tickets.is_claimed(ticket)
    }

    /// A ticket waits for nobody any longer, or never came to be.
    pub(crate) fn give_back(&self, ticket: TicketId) {
        self.tickets.open(|open| open.give_back(ticket));
    }

    /// A pending ticket of the store comes back into memory.
    pub(crate) fn restore(&self, row: &TicketRow) {
        self.tickets.open(|open| open.restore(row));
    }

    /// `lapsed` end now; of the others only `live` ones are in the store.
    pub(crate) fn forget_lapsed(&self, now: Timestamp, lapsed: &[TicketId], live: &[TicketRow]) {
        let live = live.iter().map(|row| row.id).collect();
        self.tickets.open(|open| {
            lapsed.iter().for_each(|ticket| open.give_back(*ticket));
            open.forget_lapsed(now, &live);
        });
    }

    pub(crate) fn announce(&self) {
        self.decided
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}
