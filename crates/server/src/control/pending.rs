//! The tickets that wait for a person: a list in pages, and one of them whole.

use lychgate_core::id::TicketId;
use lychgate_core::jcs;
use lychgate_gate as gate;

use super::fault;
use crate::listen::Door;
use crate::protocol::{MOST_TICKETS, Refusal, Response, Ticket, TicketSummary};

/// One page of the list, oldest first.
pub(super) fn page(door: &Door, after: Option<TicketId>) -> Result<Response, Refusal> {
    let all = door.gate().pending().map_err(fault)?;
    let (tickets, more) = page_of(all, after);
    Ok(Response::Pending { tickets, more })
}

/// One ticket, with everything the person is to be shown.
pub(super) fn one(door: &Door, id: TicketId) -> Result<Option<Ticket>, Refusal> {
    let found = door.gate().pending_ticket(id).map_err(fault)?;
    Ok(found.map(|ticket| Ticket {
        id: ticket.id,
        subject: ticket.subject,
        created_at: ticket.created_at,
        expires_at: ticket.expires_at,
        waiting: ticket.waiting,
        display: String::from_utf8_lossy(&jcs::to_bytes(&ticket.display)).into_owned(),
    }))
}

/// The tickets after one, at most [`MOST_TICKETS`], and whether there are more. Ids are in the order of their making.
fn page_of(
    mut all: Vec<gate::TicketSummary>,
    after: Option<TicketId>,
) -> (Vec<TicketSummary>, bool) {
    all.retain(|ticket| after.is_none_or(|after| ticket.id > after));
    all.sort_unstable_by_key(|ticket| ticket.id);
    let more = all.len() > MOST_TICKETS;
    (all.into_iter().take(MOST_TICKETS).map(view).collect(), more)
}

fn view(ticket: gate::TicketSummary) -> TicketSummary {
    TicketSummary {
        id: ticket.id,
        subject: ticket.subject,
        act: ticket.act,
        tool: clipped(ticket.tool),
        function: clipped(ticket.function),
        class: clipped(ticket.class),
        reach: clipped(ticket.reach),
        more: ticket.more,
        arguments_digest: clipped(ticket.arguments_digest),
        code: clipped(ticket.code),
        why: clipped(ticket.why),
        created_at: ticket.created_at,
        expires_at: ticket.expires_at,
        waiting: ticket.waiting,
    }
}

/// A page stays far below a frame whatever a name holds.
fn clipped(text: String) -> String {
    match text.char_indices().nth(TicketSummary::MOST_TEXT) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use lychgate_core::id::ActId;
    use lychgate_core::{Digest, Timestamp};

    use super::*;
    use crate::frame::MOST_CONTROL;

    fn ticket(number: u32, text: &str) -> gate::TicketSummary {
        let mut random = [0; 10];
        random[6..].copy_from_slice(&number.to_be_bytes());
        // Many in one millisecond.
        let at = Timestamp::from_millis(1_787_766_000_000 + u64::from(number / 64));
        gate::TicketSummary {
            id: TicketId::new(at, random),
            subject: Digest::sha256(text.as_bytes()),
            act: ActId::new(at, random),
            tool: text.to_owned(),
            function: text.to_owned(),
            class: text.to_owned(),
            code: text.to_owned(),
            why: text.to_owned(),
            arguments_digest: text.to_owned(),
            reach: text.to_owned(),
            more: u64::from(number),
            created_at: at,
            expires_at: at,
            waiting: true,
        }
    }

    #[test]
    fn ten_thousand_tickets_come_in_small_pages_each_once() {
        // What JSON writes longest: six bytes for each character.
        let text = "\u{1}".repeat(5_000);
        let all = || {
            (0..10_000)
                .rev()
                .map(|number| ticket(number, &text))
                .collect()
        };
        let (mut seen, mut after) = (BTreeSet::new(), None);
        loop {
            let (tickets, more) = page_of(all(), after);
            assert!(tickets.is_sorted_by_key(|ticket| ticket.id));
            after = tickets.last().map(|ticket| ticket.id);
            seen.extend(tickets.iter().map(|ticket| ticket.id));
            let frame = Response::Pending { tickets, more }.to_frame().unwrap();
            assert!(frame.payload.len() < MOST_CONTROL / 8);
            if !more {
                break;
            }
        }
        assert_eq!(seen.len(), 10_000);
        assert_eq!(page_of(all(), after), (Vec::new(), false));
    }
}
