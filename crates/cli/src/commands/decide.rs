//! `approve` and `deny`: a person looks at all of a call, and signs a verdict with a key that is opened in this process
//! (PROFILE §10).

use lychgate_core::act::Version;
use lychgate_core::display::escape;
use lychgate_keys::verdict::{ApprovalVerdict, Verdict};
use lychgate_server::protocol::TicketSummary;
use lychgate_server::{Request, Response};
use serde_json::json;

use super::Context;
use super::pending;
use super::ticket::Checked;
use crate::approver;
use crate::args::Decide;
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::places::now;
use crate::terminal::{Style, dim, styled, text};

/// `approve`
pub(crate) fn approve(args: &Decide, context: &mut Context<'_>) -> Outcome {
    decide(args, Verdict::Approve, context)
}

/// `deny`
pub(crate) fn deny(args: &Decide, context: &mut Context<'_>) -> Outcome {
    decide(args, Verdict::Deny, context)
}

fn decide(args: &Decide, verdict: Verdict, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    let mut waiting = pending::fetch(&mut connection)?;
    let mut chosen: Vec<Checked> = Vec::new();
    for id in &args.ids {
        let at = find(&waiting, id)?;
        // A ticket named twice is decided once.
        let id = waiting.remove(at).id;
        let ticket = answer!(connection.ask(&Request::Ticket { id })?, Response::Ticket { ticket } => ticket)?;
        chosen.push(Checked::new(ticket.ok_or_else(|| gone(&id.to_string()))?)?);
    }
    if !args.output.json {
        for ticket in &chosen {
            ticket.show(now(), context.terminal);
            context.terminal.gap();
        }
        ask_line(verdict, &chosen, context);
    }
    let key = approver::open(
        &context.places.approver()?,
        args.passphrase.passphrase_fd.into(),
    )?;
    let mut first_fault = None;
    for checked in &chosen {
        let ticket = checked.ticket();
        let signed = approver::sign(&key, |mark| ApprovalVerdict {
            version: Version::V1,
            object_type: Default::default(),
            ticket_id: ticket.id,
            subject: ticket.subject,
            expires_at: ticket.expires_at,
            verdict,
            at: now(),
            mark,
        })?;
        // One that lapsed meanwhile does not keep the others from being decided.
        match connection.ask(&Request::Rule { verdict: signed }) {
            Ok(response) => {
                answer!(response, Response::Ruled => ())?;
                say(verdict, checked, args.output.json, context);
            }
            Err(fault) => first_fault = first_fault.or(Some(fault)),
        }
    }
    first_fault.map_or(Ok(()), Err)
}

/// The last line before the passphrase names the calls again: the first lines may have scrolled away.
fn ask_line(verdict: Verdict, chosen: &[Checked], context: &mut Context<'_>) {
    let names = chosen
        .iter()
        .map(Checked::tool)
        .collect::<Vec<_>>()
        .join(", ");
    let (style, word) = match verdict {
        Verdict::Approve => (Style::Green, "Approve"),
        Verdict::Deny => (Style::Red, "Deny"),
    };
    let once = if verdict == Verdict::Approve {
        ", exactly as shown, once"
    } else {
        ""
    };
    context
        .terminal
        .line(&[styled(style, word), text(format!(" {names}{once}?"))]);
    // The prompt goes to the terminal itself and must come after.
    let _ = context.terminal.flush();
}

fn say(verdict: Verdict, checked: &Checked, as_json: bool, context: &mut Context<'_>) {
    let id = checked.ticket().id;
    let word = match verdict {
        Verdict::Approve => "approved",
        Verdict::Deny => "denied",
    };
    if as_json {
        context
            .terminal
            .json_line(&json!({ "id": id.to_string(), "verdict": word }));
        return;
    }
    let follows = match (verdict, checked.ticket().waiting) {
        (Verdict::Approve, true) => "the waiting call goes through now, once",
        (Verdict::Approve, false) => {
            "the caller has gone; one equal call goes through when it comes"
        }
        (Verdict::Deny, _) => "the call is refused",
    };
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("{word} {}", checked.tool())),
        dim(format!("  {follows}")),
    ]);
}

/// The one ticket that a text names: its id, or how the id begins or ends.
fn find(waiting: &[TicketSummary], named: &str) -> Outcome<usize> {
    let quoted = escape(named);
    let begins = |id: &str| {
        id.starts_with(named)
            || id
                .strip_prefix("tkt-")
                .is_some_and(|id| id.starts_with(named))
    };
    let fits = |ticket: &TicketSummary| {
        let id = ticket.id.to_string();
        id == named || (named.len() >= LEAST && (begins(&id) || id.ends_with(named)))
    };
    let found = waiting
        .iter()
        .enumerate()
        .filter(|(_, ticket)| fits(ticket))
        .map(|(at, _)| at)
        .collect::<Vec<_>>();
    match found.as_slice() {
        [one] => Ok(*one),
        [] if named.len() < LEAST => Err(Stop::usage(format!(
            "`{quoted}` is too short to name a ticket; give at least {LEAST} characters"
        ))),
        [] => Err(gone(&quoted)),
        _ => Err(Stop::usage(format!(
            "`{quoted}` names {} tickets; give more of it",
            found.len()
        ))
        .try_this("lychgate pending")),
    }
}

fn gone(named: &str) -> Stop {
    Stop::refused(format!(
        "no ticket `{named}` waits (decided, expired, or never there)"
    ))
    .try_this("lychgate pending")
}

/// Fewer characters than this name nothing.
const LEAST: usize = 4;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::outcome::Status;
    use lychgate_core::{Digest, Timestamp};

    fn tickets() -> Vec<TicketSummary> {
        [
            "0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f",
            "0190a5d6-9000-7c3e-9d41-5b6a7c8d9e10",
        ]
        .map(|id| TicketSummary {
            id: format!("tkt-{id}").parse().unwrap(),
            subject: Digest::sha256(b""),
            created_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(1),
            waiting: false,
            act: lychgate_core::id::ActId::new(Timestamp::from_millis(0), [0; 10]),
            tool: String::new(),
            function: String::new(),
            class: String::new(),
            reach: String::new(),
            more: 0,
            arguments_digest: String::new(),
            code: String::new(),
            why: String::new(),
        })
        .to_vec()
    }

    #[test]
    fn a_ticket_is_named_by_its_id_or_a_part_that_fits_one() {
        for (named, at) in [
            ("tkt-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f", 0),
            ("0190a5d6-9", 1),
            ("tkt-0190a5d6-8", 0),
            ("9e10", 1),
            ("7c8d9e0f", 0),
        ] {
            assert_eq!(find(&tickets(), named).unwrap(), at, "{named}");
        }
    }

    #[test]
    fn a_part_that_fits_none_or_several_names_nothing() {
        for (named, status) in [
            ("0190a5d6", Status::Usage),
            ("e0f", Status::Usage),
            ("", Status::Usage),
            ("abcd", Status::Refused),
            ("tkt-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f0", Status::Refused),
            ("\u{1b}[2K", Status::Refused),
        ] {
            let stop = find(&tickets(), named).unwrap_err();
            assert_eq!(stop.status(), status, "{named}");
            assert!(!stop.message().contains('\u{1b}'));
        }
    }
}
