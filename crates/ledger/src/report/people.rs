//! Decisions that were asked of people, and how long they waited.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use lychgate_core::Timestamp;
use lychgate_core::id::{ActId, TicketId};

/// What was asked of people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// Tickets opened.
    pub asked: u64,
    /// Answered with yes.
    pub approved: u64,
    /// Answered with no.
    pub denied: u64,
    /// Nobody answered in time.
    pub lapsed: u64,
    /// Open at the end.
    pub waiting: u64,
    /// How long the answered ones waited: half of them not longer than this.
    pub median_wait: Option<Duration>,
    /// The longest wait.
    pub longest_wait: Option<Duration>,
}

/// The tickets of a record, while they are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Tickets {
    open: HashMap<TicketId, Ticket>,
    // Approved and not used yet: as few as the approvals that people give.
    approved: HashSet<TicketId>,
    // One number an answer of a person: they are not many.
    waits: Vec<u64>,
    told: People,
}

#[derive(Clone, Debug)]
struct Ticket {
    at: Timestamp,
    acts: Vec<ActId>,
    counted: bool,
}

/// How a ticket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Approved,
    Denied,
    Lapsed,
}

impl Tickets {
    /// An act waits for a ticket; the first one opens it.
    pub(super) fn ask(&mut self, ticket: TicketId, act: ActId, at: Timestamp, counted: bool) {
        let open = self.open.entry(ticket).or_insert_with(|| {
            self.told.asked += u64::from(counted);
            Ticket {
                at,
                acts: Vec::new(),
                counted,
            }
        });
        open.acts.push(act);
    }

    /// A dispatch used a ticket; whether a person's yes to it stands in the record, and no dispatch has used it before.
    pub(super) fn used(&mut self, ticket: TicketId) -> bool {
        self.approved.remove(&ticket)
    }

    /// A ticket ended; gives the acts that waited for it. One that is not open has ended before.
    pub(super) fn end(
        &mut self,
        ticket: TicketId,
        how: Ended,
        at: Timestamp,
        counted: bool,
    ) -> Vec<ActId> {
        match how {
            Ended::Approved => self.approved.insert(ticket),
            Ended::Denied | Ended::Lapsed => self.approved.remove(&ticket),
        };
        let Some(open) = self.open.remove(&ticket) else {
            return Vec::new();
        };
        if counted {
            let told = &mut self.told;
            match how {
                Ended::Approved => told.approved += 1,
                Ended::Denied => told.denied += 1,
                Ended::Lapsed => told.lapsed += 1,
            }
            if how != Ended::Lapsed {
                let waited = at.as_millis().saturating_sub(open.at.as_millis());
                self.waits.push(waited);
            }
        }
        open.acts
    }

    pub(super) fn finish(mut self) -> People {
        self.waits.sort_unstable();
        let waiting = self.open.values().filter(|ticket| ticket.counted).count();
        self.told.waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        let at = |place: usize| self.waits.get(place).copied().map(Duration::from_millis);
        self.told.median_wait = at(self.waits.len().saturating_sub(1) / 2);
        self.told.longest_wait = at(self.waits.len().saturating_sub(1));
        self.told
    }
}
