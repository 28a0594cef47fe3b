//! `approve` and `deny`: a person looks at all of a call, and signs a verdict with a key that is opened in this process
//! (PROFILE §10).

use lychgate_core::act::Version;
use lychgate_core::display::escape;
use lychgate_core::id::TicketId;
use lychgate_keys::verdict::{ApprovalVerdict, Verdict};
use lychgate_server::protocol::Asked;
use lychgate_server::{Request, Response};
use serde_json::json;

use super::Context;
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
    let mut chosen: Vec<Checked> = Vec::new();
    for part in &args.ids {
        let id = named(&mut connection, part)?;
        // A ticket named twice is decided once.
        if chosen.iter().any(|one| one.ticket().id == id) {
            continue;
        }
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
    let path = context.places.approver_named(args.name.as_deref())?;
    let key = approver::open(&path, args.passphrase.passphrase_fd.into())?;
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
                let still = answer!(response, Response::Ruled { still } => still)?;
                say(verdict, checked, &still, args.output.json, context);
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

fn say(
    verdict: Verdict,
    checked: &Checked,
    still: &[Asked],
    as_json: bool,
    context: &mut Context<'_>,
) {
    let id = checked.ticket().id;
    let word = match verdict {
        Verdict::Approve => "approved",
        Verdict::Deny => "denied",
    };
    let enough = still.is_empty();
    if as_json {
        context.terminal.json_line(&json!({
            "id": id.to_string(), "verdict": word, "decided": enough, "asked": asked_document(still),
        }));
        return;
    }
    let follows = match (verdict, enough, checked.ticket().waiting) {
        (Verdict::Approve, false, _) => "counted; more must say yes",
        (Verdict::Approve, true, true) => "the waiting call goes through now, once",
        (Verdict::Approve, true, false) => {
            "the caller has gone; one equal call goes through when it comes"
        }
        (Verdict::Deny, ..) => "the call is refused",
    };
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("{word} {}", checked.tool())),
        dim(format!("  {follows}")),
    ]);
    for one in still {
        context
            .terminal
            .line(&[dim(format!("  {}", asked_line(one)))]);
    }
}

/// `2 of finance must say yes, 1 has`
pub(super) fn asked_line(one: &Asked) -> String {
    let group = if one.group.is_empty() {
        "any approver".to_owned()
    } else {
        escape(&one.group)
    };
    format!("{} of {group} must say yes, {} so far", one.quorum, one.yes)
}

fn asked_document(asked: &[Asked]) -> serde_json::Value {
    let one = |one: &Asked| json!({ "group": one.group, "quorum": one.quorum, "yes": one.yes });
    asked.iter().map(one).collect()
}

/// The one ticket that a text names: its id, or how the id begins or ends.
pub(super) fn named(connection: &mut Connection, part: &str) -> Outcome<TicketId> {
    let quoted = escape(part);
    if part.len() < LEAST {
        return Err(Stop::usage(format!(
            "`{quoted}` is too short to name a ticket; give at least {LEAST} characters"
        )));
    }
    let request = Request::Named {
        part: part.to_owned(),
    };
    let found = answer!(connection.ask(&request)?, Response::Named { tickets } => tickets)?;
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(gone(&quoted)),
        _ => Err(Stop::usage(format!(
            "`{quoted}` names more than one ticket; give more of it"
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
