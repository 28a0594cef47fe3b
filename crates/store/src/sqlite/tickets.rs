//! Escalations: tickets and the acts that wait for them.

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::{Code, Digest, State, Timestamp};
use rusqlite::{Connection, params};

use super::acts::{self, First, Move};
use super::column::{Columns, Fault, Stop, millis};
use super::head::Head;
use crate::outcome::{Done, Rejected};
use crate::row::TicketState;
use crate::txn::{Approval, Awaited, Decide, Escalate, NewTicket, Ruling};

/// What the rules ask of a ticket.
struct Standing {
    state: TicketState,
    subject: Digest,
    expires_at: Timestamp,
}

pub(super) fn escalate(
    connection: &Connection,
    head: &mut Head,
    txn: &Escalate,
) -> Result<Done, Stop> {
    let now = head.at(txn.now);
    if acts::standing(connection, txn.act.id)?.is_some() {
        return Err(Rejected::SeenAct.into());
    }
    let ticket = match &txn.ticket {
        Awaited::New(ticket) => {
            if standing(connection, ticket.id)?.is_some() {
                return Err(Rejected::SeenTicket.into());
            }
            if now >= ticket.expires_at {
                return Err(Rejected::TicketExpired.into());
            }
            insert(connection, ticket, txn.act.id, now)?;
            ticket.id
        }
        Awaited::Pending(awaited) => {
            let found = of_subject(connection, awaited)?;
            still_pending(&found, now)?;
            awaited.ticket
        }
    };
    let first = First {
        ticket: Some(ticket),
        ..First::default()
    };
    acts::insert(connection, head, &txn.act, State::Escalated, now, &first)?;
    head.finish(connection, txn.now, &[&txn.receipts])
}

pub(super) fn decide(connection: &Connection, head: &mut Head, txn: &Decide) -> Result<Done, Stop> {
    let now = head.at(txn.now);
    let found = standing(connection, txn.ticket)?.ok_or(Rejected::UnknownTicket)?;
    still_pending(&found, now)?;
    keep_verdict(connection, txn)?;
    let to = match txn.ruling {
        Ruling::Counted => return head.finish(connection, txn.now, &[&txn.receipts]),
        Ruling::Approved => TicketState::Approved,
        Ruling::Denied => TicketState::Denied,
    };
    connection
        .prepare_cached(
            "UPDATE tickets SET state = ?2, live = ?3, decided_at = ?4, approver = ?5,
             summary = NULL, display = NULL WHERE id = ?1",
        )?
        .execute(params![
            txn.ticket.as_bytes(),
            to.number(),
            live(to),
            millis(now),
            txn.approver.0,
        ])?;
    if to == TicketState::Denied {
        for act in waiting_for(connection, txn.ticket)? {
            let step = Move {
                from: State::Escalated,
                to: State::Refused,
                code: Some(Code::ApprovalDenied),
                answered_by: None,
                undelivered: false,
            };
            acts::advance(connection, head, act, now, &step)?;
        }
    }
    head.finish(connection, txn.now, &[&txn.receipts])
}

/// A key decides on a ticket once.
fn keep_verdict(connection: &Connection, txn: &Decide) -> Result<(), Stop> {
    let kept = connection
        .prepare_cached(
            "INSERT INTO verdicts (ticket, approver, bytes) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![txn.ticket.as_bytes(), txn.approver.0, txn.verdict])?;
    if kept == 0 {
        return Err(Rejected::SeenVerdict.into());
    }
    Ok(())
}

/// Whether an approval of this ticket can be used for this subject now.
pub(super) fn usable(
    connection: &Connection,
    approval: &Approval,
    now: Timestamp,
) -> Result<(), Stop> {
    let found = of_subject(connection, approval)?;
    approved(&found, now)
}

/// Whether this ticket's approval, whatever its subject, can be used now.
pub(super) fn usable_any(
    connection: &Connection,
    id: TicketId,
    now: Timestamp,
) -> Result<(), Stop> {
    let found = standing(connection, id)?.ok_or(Rejected::UnknownTicket)?;
    approved(&found, now)
}

/// Uses an approval.
pub(super) fn consume(connection: &Connection, id: TicketId, by: ActId) -> Result<(), Stop> {
    let to = TicketState::Consumed;
    connection
        .prepare_cached("UPDATE tickets SET state = ?2, live = ?3, consumed_by = ?4 WHERE id = ?1")?
        .execute(params![id.as_bytes(), to.number(), live(to), by.as_bytes()])?;
    Ok(())
}

/// Whether a ticket can lapse.
pub(super) fn may_lapse(connection: &Connection, id: TicketId) -> Result<(), Stop> {
    let state = standing(connection, id)?
        .ok_or(Rejected::UnknownTicket)?
        .state;
    match state {
        TicketState::Pending | TicketState::Approved => Ok(()),
        TicketState::Denied
        | TicketState::Expired
        | TicketState::Consumed
        | TicketState::Withdrawn => Err(Rejected::TicketNotPending { state }.into()),
    }
}

/// Ends a ticket that was not used.
pub(super) fn end(connection: &Connection, id: TicketId, to: TicketState) -> Result<(), Stop> {
    connection
        .prepare_cached(
            "UPDATE tickets SET state = ?2, live = ?3, summary = NULL, display = NULL WHERE id = ?1",
        )?
        .execute(params![id.as_bytes(), to.number(), live(to)])?;
    Ok(())
}

fn of_subject(connection: &Connection, approval: &Approval) -> Result<Standing, Stop> {
    let found = standing(connection, approval.ticket)?.ok_or(Rejected::UnknownTicket)?;
    if found.subject == approval.subject {
        Ok(found)
    } else {
        Err(Rejected::TicketSubject.into())
    }
}

fn still_pending(ticket: &Standing, now: Timestamp) -> Result<(), Stop> {
    if ticket.state != TicketState::Pending {
        return Err(Rejected::TicketNotPending {
            state: ticket.state,
        }
        .into());
    }
    in_time(ticket, now)
}

fn approved(ticket: &Standing, now: Timestamp) -> Result<(), Stop> {
    match ticket.state {
        TicketState::Approved => in_time(ticket, now),
        TicketState::Consumed => Err(Rejected::TicketConsumed.into()),
        TicketState::Expired => Err(Rejected::TicketExpired.into()),
        state @ (TicketState::Pending | TicketState::Denied | TicketState::Withdrawn) => {
            Err(Rejected::TicketNotApproved { state }.into())
        }
    }
}

fn in_time(ticket: &Standing, now: Timestamp) -> Result<(), Stop> {
    if now < ticket.expires_at {
        Ok(())
    } else {
        Err(Rejected::TicketExpired.into())
    }
}

fn standing(connection: &Connection, id: TicketId) -> Result<Option<Standing>, Fault> {
    let mut select = connection
        .prepare_cached("SELECT state, subject, expires_at FROM tickets WHERE id = ?1")?;
    let mut rows = select.query([id.as_bytes()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let columns = Columns(row);
    Ok(Some(Standing {
        state: columns.ticket_state("state")?,
        subject: columns.digest("subject")?,
        expires_at: columns.time("expires_at")?,
    }))
}

fn insert(
    connection: &Connection,
    ticket: &NewTicket,
    act: ActId,
    now: Timestamp,
) -> Result<(), Stop> {
    let state = TicketState::Pending;
    connection
        .prepare_cached(
            "INSERT INTO tickets (id, state, live, subject, act, created_at, expires_at, summary,
             display) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            ticket.id.as_bytes(),
            state.number(),
            live(state),
            ticket.subject.bytes(),
            act.as_bytes(),
            millis(now),
            millis(ticket.expires_at),
            ticket.summary,
            ticket.display,
        ])?;
    Ok(())
}

fn waiting_for(connection: &Connection, ticket: TicketId) -> Result<Vec<ActId>, Fault> {
    let mut select = connection
        .prepare_cached("SELECT id FROM acts WHERE open = ?1 AND state = ?2 AND ticket = ?3")?;
    let mut rows = select.query(params![
        acts::WAITING,
        State::Escalated.number(),
        ticket.as_bytes()
    ])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Columns(row).id("id", ActId::from_bytes)?);
    }
    Ok(found)
}

/// The `live` column of the schema.
fn live(state: TicketState) -> Option<i64> {
    matches!(state, TicketState::Pending | TicketState::Approved).then_some(1)
}
