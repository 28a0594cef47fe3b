//! `pending`: what waits for a person, and how to look at it.

use lychgate_core::display::{escape, escape_within};
use lychgate_core::id::TicketId;
use lychgate_server::Request;
use lychgate_server::Response;
use lychgate_server::protocol::TicketSummary;
use serde_json::json;

use super::Context;
use crate::args::Output;
use crate::connection::{Connection, answer};
use crate::outcome::Outcome;
use crate::places::now;
use crate::terminal::{Span, Style, ago, bold, count, dim, styled, text};

/// Lists.
pub(crate) fn run(output: Output, context: &mut Context<'_>) -> Outcome {
    let tickets = fetch(&mut Connection::open(context)?)?;
    if output.json {
        let list = tickets.iter().map(document).collect::<Vec<_>>();
        context.terminal.document(&json!({ "pending": list }));
        return Ok(());
    }
    if tickets.is_empty() {
        context.terminal.line(&[text("Nothing waits for you.")]);
        return Ok(());
    }
    let terminal = &mut *context.terminal;
    terminal.line(&[bold(count(
        tickets.len(),
        "call waits for you",
        "calls wait for you",
    ))]);
    terminal.gap();
    let ids = tickets.iter().map(|ticket| ticket.id).collect::<Vec<_>>();
    let handles = handles(&ids);
    let mut rows = vec![
        ["ticket", "age", "left", "tool", "class", "where to"]
            .map(dim)
            .to_vec(),
    ];
    let shown = tickets.iter().zip(&handles).take(MOST_ROWS);
    rows.extend(shown.map(|(ticket, handle)| row(ticket, handle)));
    terminal.table(&rows);
    let left = tickets.len().saturating_sub(MOST_ROWS);
    if left > 0 {
        terminal.line(&[
            dim(format!(
                "  and {} that came later:  ",
                count(left, "call", "calls")
            )),
            text("lychgate pending --json"),
        ]);
    }
    terminal.gap();
    let first = handles.first().map(String::as_str).unwrap_or_default();
    terminal.line(&[
        dim("Look at one, then say yes or no:  "),
        text(format!("lychgate approve {first}")),
    ]);
    terminal.line(&[
        dim("                                  "),
        text(format!("lychgate deny {first}")),
    ]);
    Ok(())
}

/// The tickets that wait, oldest first, page by page.
pub(crate) fn fetch(connection: &mut Connection) -> Outcome<Vec<TicketSummary>> {
    let mut all: Vec<TicketSummary> = Vec::new();
    loop {
        let after = all.last().map(|ticket| ticket.id);
        let request = Request::Pending { after };
        let (tickets, more) = answer!(connection.ask(&request)?, Response::Pending { tickets, more } => (tickets, more))?;
        // A gate that gives nothing new has nothing more to give.
        let more = more && !tickets.is_empty();
        all.extend(tickets);
        if !more {
            return Ok(all);
        }
    }
}

/// For each ticket the last characters of its id that name no other one; at least eight.
pub(crate) fn handles(ids: &[TicketId]) -> Vec<String> {
    let full = ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    // Read from the end, those that share most of it stand side by side.
    let mut order = (0..full.len()).collect::<Vec<_>>();
    let reversed = full
        .iter()
        .map(|id| id.bytes().rev().collect::<Vec<_>>())
        .collect::<Vec<_>>();
    order.sort_unstable_by_key(|at| reversed.get(*at));
    let shared = |one: usize, other: usize| {
        let (one, other) = (reversed.get(one), reversed.get(other));
        one.zip(other).map_or(0, |(one, other)| {
            one.iter().zip(other).take_while(|(a, b)| a == b).count()
        })
    };
    let mut needed = vec![LEAST_HANDLE; full.len()];
    for pair in order.windows(2) {
        if let [one, other] = *pair {
            let length = shared(one, other) + 1;
            for at in [one, other] {
                if let Some(needed) = needed.get_mut(at) {
                    *needed = (*needed).max(length);
                }
            }
        }
    }
    full.iter()
        .zip(needed)
        .map(|(id, length)| {
            id.get(id.len().saturating_sub(length)..)
                .unwrap_or(id)
                .to_owned()
        })
        .collect()
}

fn row(ticket: &TicketSummary, handle: &str) -> Vec<Span> {
    let now = now();
    let more = match ticket.more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let waits = if ticket.waiting { "" } else { " (caller gone)" };
    vec![
        styled(Style::Bold, handle),
        text(ago(now.since(ticket.created_at))),
        text(ago(ticket.expires_at.since(now))),
        text(format!(
            "{}/{}",
            escape_within(&ticket.tool, 40),
            escape_within(&ticket.function, 40)
        )),
        text(escape(&ticket.class)),
        text(format!("{}{more}{waits}", escape_within(&ticket.reach, 60))),
    ]
}

/// A ticket as JSON. The arguments are for the approver's eyes and stay out of lists.
fn document(ticket: &TicketSummary) -> serde_json::Value {
    json!({
        "id": ticket.id.to_string(), "subject": ticket.subject.to_base64url(),
        "created_at": ticket.created_at.to_string(), "expires_at": ticket.expires_at.to_string(),
        "waiting": ticket.waiting, "act": ticket.act.to_string(), "tool": ticket.tool,
        "function": ticket.function, "class": ticket.class, "reach": ticket.reach, "more_targets": ticket.more,
        "arguments_digest": ticket.arguments_digest, "code": ticket.code, "why": ticket.why,
    })
}

/// A terminal's list ends here; nobody reads on.
const MOST_ROWS: usize = 100;
const LEAST_HANDLE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use lychgate_core::Timestamp;

    #[test]
    fn a_handle_names_one_ticket() {
        let at = |ms, last| {
            let mut random = [7; 10];
            random[9] = last;
            TicketId::new(Timestamp::from_millis(ms), random)
        };
        let all = [
            at(1_787_766_001_000, 1),
            at(1_787_766_002_000, 1),
            at(1_787_766_003_000, 2),
        ];
        let handles = handles(&all);
        assert_eq!(handles[2], "07070702");
        assert!(handles[0].len() > 8);
        for (id, handle) in all.iter().zip(&handles) {
            let named = |other: &&TicketId| other.to_string().ends_with(handle);
            assert_eq!(all.iter().filter(named).collect::<Vec<_>>(), [id]);
        }
        assert_eq!(super::handles(&all[..1]), ["07070701"]);
    }

    #[test]
    fn ten_thousand_tickets_are_named_at_once() {
        let ids = (0..10_000_u32)
            .map(|number| {
                let mut random = [7; 10];
                random[2..6].copy_from_slice(&number.to_be_bytes());
                TicketId::new(Timestamp::from_millis(1_787_766_001_000), random)
            })
            .collect::<Vec<_>>();
        let handles = handles(&ids);
        let unique = handles.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(unique.len(), ids.len());
    }
}
