//! How many questions may be open. Each keeps a sealed copy of a call's arguments until it is decided or expires, and a
//! person reads the list; so a client that asks and hangs up is bounded.

use std::collections::{HashMap, HashSet};

use lychgate_core::Timestamp;
use lychgate_core::id::{HolderId, TicketId};
use lychgate_store::TicketRow;

/// The pending tickets, with what they take up.
#[derive(Debug, Default)]
pub(super) struct Open {
    by_ticket: HashMap<TicketId, Place>,
    by_holder: HashMap<HolderId, usize>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    bytes: u64,
    /// Whose it is; nobody's after a restart, since no connection outlives one.
    holder: Option<HolderId>,
    expires_at: Timestamp,
}

impl Open {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_ticket.len()
    }

    /// Which, in no order.
    pub(super) fn ids(&self) -> impl Iterator<Item = TicketId> {
        self.by_ticket.keys().copied()
    }

    /// Takes a place for a new ticket, when there is one.
    pub(super) fn take(
        &mut self,
        ticket: TicketId,
        bytes: usize,
        holder: HolderId,
        expires_at: Timestamp,
    ) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let own = self.by_holder.get(&holder).copied().unwrap_or(0);
        let room = self.by_ticket.len() < MOST_OPEN
            && self.bytes.saturating_add(bytes) <= MOST_BYTES
            && own < MOST_OF_ONE;
        if room {
            self.enter(ticket, bytes, Some(holder), expires_at);
        }
        room
    }

    /// Enters a ticket that is in the store.
    pub(super) fn restore(&mut self, row: &TicketRow) {
        self.enter(row.id, row.display_bytes, None, row.expires_at);
    }

    fn enter(
        &mut self,
        ticket: TicketId,
        bytes: u64,
        holder: Option<HolderId>,
        expires_at: Timestamp,
    ) {
        self.give_back(ticket);
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(holder) = holder {
            *self.by_holder.entry(holder).or_default() += 1;
        }
        let place = Place {
            bytes,
            holder,
            expires_at,
        };
        self.by_ticket.insert(ticket, place);
    }

    /// A ticket waits no longer, or never came to be.
    pub(super) fn give_back(&mut self, ticket: TicketId) {
        let Some(place) = self.by_ticket.remove(&ticket) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(place.bytes);
        let Some(holder) = place.holder else { return };
        if let Some(count) = self.by_holder.get_mut(&holder) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_holder.remove(&holder);
            }
        }
    }

    /// Gives back the places of tickets that have expired and are not in the store as `live`: whoever took such a place
    /// was dropped before its ticket was kept.
    pub(super) fn forget_lapsed(&mut self, now: Timestamp, live: &HashSet<TicketId>) {
        let gone = self
            .by_ticket
            .iter()
            .filter(|(ticket, place)| now >= place.expires_at && !live.contains(*ticket))
            .map(|(ticket, _)| *ticket)
            .collect::<Vec<_>>();
        for ticket in gone {
            self.give_back(ticket);
        }
    }
}

/// Tickets that may wait at once.
pub(crate) const MOST_OPEN: usize = 10_000;
/// What their sealed displays may take up together.
const MOST_BYTES: u64 = 64 << 20;
/// Tickets of one connection that may wait at once.
const MOST_OF_ONE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(n: u64) -> TicketId {
        TicketId::new(Timestamp::from_millis(n), [0; 10])
    }

    fn holder(n: u64) -> HolderId {
        HolderId::new(Timestamp::from_millis(n), [0; 10])
    }

    fn later() -> Timestamp {
        Timestamp::from_millis(9_000)
    }

    #[test]
    fn tickets_are_bounded_in_number() {
        let mut open = Open::default();
        let all = MOST_OPEN as u64;
        assert!((0..all).all(|n| open.take(ticket(n), 1, holder(n), later())));
        assert!(!open.take(ticket(all), 1, holder(all), later()));
        open.give_back(ticket(3));
        assert!(open.take(ticket(all), 1, holder(all), later()));
    }

    #[test]
    fn tickets_are_bounded_in_bytes() {
        let mut open = Open::default();
        let half = (MOST_BYTES / 2) as usize;
        assert!(open.take(ticket(1), half, holder(1), later()));
        assert!(!open.take(ticket(2), half + 1, holder(2), later()));
        assert!(open.take(ticket(2), half, holder(2), later()));
        assert!(!open.take(ticket(3), 1, holder(3), later()));
        open.give_back(ticket(2));
        open.give_back(ticket(2));
        assert!(open.take(ticket(3), 1, holder(3), later()));
    }

    #[test]
    fn tickets_are_bounded_per_connection() {
        let mut open = Open::default();
        let most = MOST_OF_ONE as u64;
        assert!((0..most).all(|n| open.take(ticket(n), 1, holder(1), later())));
        assert!(!open.take(ticket(most), 1, holder(1), later()));
        assert!(open.take(ticket(most), 1, holder(2), later()));
        open.give_back(ticket(0));
        assert!(open.take(ticket(most + 1), 1, holder(1), later()));
    }

    #[test]
    fn a_place_whose_ticket_never_came_to_be_is_given_back() {
        let mut open = Open::default();
        assert!(open.take(ticket(1), 1, holder(1), later()));
        assert!(open.take(ticket(2), 1, holder(1), later()));
        open.forget_lapsed(Timestamp::from_millis(8_999), &HashSet::new());
        assert_eq!(open.by_ticket.len(), 2);
        open.forget_lapsed(later(), &HashSet::from([ticket(2)]));
        assert_eq!(open.by_ticket.keys().collect::<Vec<_>>(), [&ticket(2)]);
        assert_eq!((open.bytes, open.by_holder[&holder(1)]), (1, 1));
    }
}
