//! The tickets that wait for a person: a list in pages, and one of them whole.

use lychgate_core::id::TicketId;
use lychgate_core::jcs;
use lychgate_gate as gate;

use super::fault;
use crate::listen::Door;
use crate::protocol::{
    Asked, MOST_NAMED, MOST_TICKETS, Refusal, Response, Ticket, TicketSummary, Wanted,
};

/// Some of them.
pub(super) fn page(door: &Door, wanted: Wanted) -> Result<Response, Refusal> {
    let most = usize::try_from(wanted.limit).unwrap_or(MOST_TICKETS);
    let query = gate::PendingQuery {
        after: wanted.after,
        newest_first: wanted.newest_first,
        tool: wanted.tool,
        function: wanted.function,
        class: wanted.class.map(|class| class.name().to_owned()),
        limit: most.min(MOST_TICKETS),
    };
    let (tickets, more) = door.gate().pending_page(&query).map_err(fault)?;
    Ok(Response::Pending {
        tickets: tickets.into_iter().map(view).collect(),
        more,
        waiting: u64::try_from(door.gate().pending_count()).unwrap_or(u64::MAX),
    })
}

/// Those that a text names.
pub(super) fn named(door: &Door, part: &str) -> Response {
    Response::Named {
        tickets: door.gate().pending_named(part, MOST_NAMED),
    }
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
        asked: ticket.wanted.into_iter().map(asked).collect(),
        display: String::from_utf8_lossy(&jcs::to_bytes(&ticket.display)).into_owned(),
    }))
}

/// What became of a verdict.
pub(super) fn ruled(ruled: gate::Ruled) -> Response {
    let still = match ruled {
        gate::Ruled::Approved | gate::Ruled::Denied => Vec::new(),
        gate::Ruled::Counted(tallies) => tallies.into_iter().map(asked).collect(),
    };
    Response::Ruled { still }
}

fn asked(tally: gate::Tally) -> Asked {
    Asked {
        group: tally.group,
        quorum: tally.quorum,
        yes: tally.yes,
    }
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
    fn a_page_is_a_small_frame_whatever_a_name_holds() {
        // What JSON writes longest: six bytes for each character.
        let text = "\u{1}".repeat(5_000);
        let page = (0..MOST_TICKETS).map(|number| view(ticket(number as u32, &text)));
        let page = Response::Pending {
            tickets: page.collect(),
            more: true,
            waiting: u64::MAX >> 12,
        };
        assert!(page.to_frame().unwrap().payload.len() < MOST_CONTROL / 8);
    }
}
