//! `pending`: what waits for a person, and how to look at it.

use lychgate_core::display::{escape, escape_within};
use lychgate_core::id::TicketId;
use lychgate_core::json::Value;
use lychgate_server::Request;
use lychgate_server::Response;
use lychgate_server::protocol::Ticket;
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
    let mut rows = vec![
        ["ticket", "age", "left", "tool", "class", "where to"]
            .map(dim)
            .to_vec(),
    ];
    rows.extend(tickets.iter().map(|ticket| row(ticket, &ids)));
    terminal.table(&rows);
    terminal.gap();
    let first = ids.first().map(|id| handle(*id, &ids)).unwrap_or_default();
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

/// The tickets that wait, oldest first.
pub(crate) fn fetch(connection: &mut Connection) -> Outcome<Vec<Ticket>> {
    answer!(connection.ask(&Request::Pending)?, Response::Pending { tickets } => tickets)
}

/// The last characters of a ticket's id that name no other one; at least eight.
pub(crate) fn handle(id: TicketId, all: &[TicketId]) -> String {
    let full = id.to_string();
    let tails = |length: usize| {
        let tail = full
            .get(full.len().saturating_sub(length)..)
            .unwrap_or(&full);
        let named = all
            .iter()
            .filter(|other| other.to_string().ends_with(tail))
            .count();
        (named <= 1).then(|| tail.to_owned())
    };
    (8..full.len()).find_map(tails).unwrap_or(full)
}

fn row(ticket: &Ticket, ids: &[TicketId]) -> Vec<Span> {
    let display = ticket.display();
    let of = |key: &str| {
        escape(
            display
                .as_ref()
                .and_then(|value| value.get(key)?.as_str())
                .unwrap_or("?"),
        )
    };
    let now = now();
    let waits = if ticket.waiting { "" } else { " (caller gone)" };
    vec![
        styled(Style::Bold, handle(ticket.id, ids)),
        text(ago(now.since(ticket.created_at))),
        text(ago(ticket.expires_at.since(now))),
        text(format!("{}/{}", of("tool_id"), of("function_id"))),
        text(of("consequence_class")),
        text(format!(
            "{}{waits}",
            escape_within(&reach(display.as_ref()), 60)
        )),
    ]
}

fn reach(display: Option<&Value>) -> String {
    let targets = display
        .and_then(|value| value.get("targets")?.as_array())
        .unwrap_or_default();
    let named = targets.iter().filter_map(Value::as_str).collect::<Vec<_>>();
    match named.as_slice() {
        [] => {
            let id =
                display.and_then(|value| value.get("destination")?.get("destination_id")?.as_str());
            id.unwrap_or("unresolved").to_owned()
        }
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// A ticket as JSON. The arguments are for the approver's eyes and stay out of lists.
pub(crate) fn document(ticket: &Ticket) -> serde_json::Value {
    let display = ticket.display();
    let of = |key: &str| {
        display
            .as_ref()
            .and_then(|value| value.get(key)?.as_str())
            .map(ToOwned::to_owned)
    };
    json!({
        "id": ticket.id.to_string(), "subject": ticket.subject.to_base64url(),
        "created_at": ticket.created_at.to_string(), "expires_at": ticket.expires_at.to_string(),
        "waiting": ticket.waiting, "act": of("candidate_act_id"), "tool": of("tool_id"),
        "function": of("function_id"), "class": of("consequence_class"),
        "arguments_digest": of("arguments_digest"), "code": of("code"), "why": of("why"),
    })
}

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
        assert_eq!(handle(all[2], &all), "07070702");
        let first = handle(all[0], &all);
        assert!(first.len() > 8);
        assert_eq!(
            all.iter()
                .filter(|id| id.to_string().ends_with(&first))
                .count(),
            1
        );
    }
}
