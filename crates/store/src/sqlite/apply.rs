//! What each transaction does inside the writer's.
//!
//! INVARIANT: everything is compared before anything is written, in the file as in [`Head`]; so a rejected transaction
//! has changed nothing, and needs no savepoint.

use std::collections::HashSet;
use std::hash::Hash;

use lychgate_core::id::ActId;
use lychgate_core::{State, Timestamp};
use rusqlite::{Connection, params};

use super::accounts;
use super::acts::{self, Move, Sealed};
use super::column::{Fault, Stop, int, millis};
use super::head::{Head, advance};
use super::{consents, dispatch, tickets};
use crate::outcome::{Done, Rejected};
use crate::row::TicketState;
use crate::txn::{
    Apply, Contradict, Delegate, Deliver, Lapse, Prune, Refuse, Revoke, Rotate, Settle, Txn, Whose,
};

/// One transaction.
pub(super) fn transaction(
    connection: &Connection,
    head: &mut Head,
    txn: &Txn,
) -> Result<Done, Stop> {
    match txn {
        Txn::Issue(txn) => dispatch::issue(connection, head, txn),
        Txn::Dispatch(txn) => dispatch::dispatch(connection, head, txn),
        Txn::Settle(txn) => settle(connection, head, txn),
        Txn::Delegate(txn) => delegate(connection, head, txn),
        Txn::Refuse(txn) => refuse(connection, head, txn),
        Txn::Escalate(txn) => tickets::escalate(connection, head, txn),
        Txn::Decide(txn) => tickets::decide(connection, head, txn),
        Txn::Lapse(txn) => lapse(connection, head, txn),
        Txn::Deliver(txn) => deliver(connection, head, txn),
        Txn::Contradict(txn) => contradict(connection, head, txn),
        Txn::Apply(txn) => apply(connection, head, txn),
        Txn::Revoke(txn) => revoke(connection, head, txn),
        Txn::Rotate(txn) => rotate(connection, head, txn),
        Txn::Consent(txn) => consents::grant(connection, head, txn),
        Txn::WithdrawConsent(txn) => consents::withdraw(connection, head, txn),
        Txn::Prune(txn) => prune(connection, head, txn),
        Txn::Note(txn) => head.finish(connection, txn.now, &[&txn.receipts]),
    }
}

/// A delivery without receipts.
pub(super) fn delivered(connection: &Connection, act: ActId) -> Result<(), Fault> {
    acts::delivered(connection, act)
}

fn settle(connection: &Connection, head: &mut Head, txn: &Settle) -> Result<Done, Stop> {
    let now = head.at(txn.now);
    let outcome = matches!(
        txn.to,
        State::Effected
            | State::Failed
            | State::InputRequired
            | State::Indeterminate
            | State::ReconciledEffect
            | State::ReconciledNoEffect
    );
    let from = step(connection, txn.act, txn.to, outcome)?;
    txn.may_refund()?;
    let refunds = accounts::refund(connection, &txn.refund)?;
    let moved = Move {
        from,
        to: txn.to,
        code: txn.code,
        answered_by: None,
        undelivered: txn.undelivered,
    };
    acts::advance(connection, head, txn.act, now, &moved)?;
    match txn.answer.as_deref().filter(|_| txn.undelivered) {
        Some(answer) => acts::seal(connection, txn.act, Sealed::Answer, answer)?,
        // Only an act that was indeterminate can have one already.
        None if from == State::Indeterminate => acts::unseal(connection, txn.act, Sealed::Answer)?,
        None => {}
    }
    if txn.to != State::Indeterminate {
        acts::unseal(connection, txn.act, Sealed::ReadBack)?;
    }
    accounts::save(connection, &refunds)?;
    head.finish(connection, txn.now, &[&txn.receipts])
}

fn delegate(connection: &Connection, head: &mut Head, txn: &Delegate) -> Result<Done, Stop> {
    if accounts::made(connection, txn.new.id)? {
        return Err(Rejected::SeenDelegation.into());
    }
    if txn.settle.to != State::Effected {
        return Err(Rejected::Malformed("only an effect makes a delegation").into());
    }
    let now = head.at(txn.settle.now);
    // It compares before it writes; after it nothing can be rejected any more.
    let done = settle(connection, head, &txn.settle)?;
    accounts::make(connection, txn.settle.act, &txn.new, now)?;
    Ok(done)
}

fn refuse(connection: &Connection, head: &mut Head, txn: &Refuse) -> Result<Done, Stop> {
    let now = head.at(txn.now);
    let denial = matches!(txn.to, State::Refused | State::Expired | State::Withdrawn);
    match &txn.whose {
        Whose::New(act) => {
            if acts::standing(connection, act.id)?.is_some() {
                return Err(Rejected::SeenAct.into());
            }
            if !denial {
                return Err(Rejected::Malformed("a denial must end the act").into());
            }
            let first = acts::First {
                code: txn.code,
                answered_by: txn.answered_by,
                ..acts::First::default()
            };
            acts::insert(connection, head, act, txn.to, now, &first)?;
        }
        Whose::Existing(act) => {
            let from = step(connection, *act, txn.to, denial)?;
            let moved = Move {
                from,
                to: txn.to,
                code: txn.code,
                answered_by: txn.answered_by,
                undelivered: false,
            };
            acts::advance(connection, head, *act, now, &moved)?;
        }
    }
    head.finish(connection, txn.now, &[&txn.receipts])
}

fn lapse(connection: &Connection, head: &mut Head, txn: &Lapse) -> Result<Done, Stop> {
    let now = head.at(txn.now);
    let tickets = || txn.tickets.iter().chain(&txn.withdrawn);
    if twice(tickets()) || twice(txn.acts.iter().map(|lapsed| lapsed.act)) {
        return Err(Rejected::Malformed("something lapses twice").into());
    }
    for ticket in tickets() {
        tickets::may_lapse(connection, *ticket)?;
    }
    let mut moves = Vec::with_capacity(txn.acts.len());
    for lapsed in &txn.acts {
        let ends = matches!(lapsed.to, State::Expired | State::Withdrawn);
        let from = step(connection, lapsed.act, lapsed.to, ends)?;
        let moved = Move {
            from,
            to: lapsed.to,
            code: lapsed.code,
            answered_by: None,
            undelivered: false,
        };
        moves.push((lapsed.act, moved));
    }
    for act in &txn.forget_answers {
        acts::standing(connection, *act)?.ok_or(Rejected::UnknownAct)?;
    }
    for ticket in &txn.tickets {
        tickets::end(connection, *ticket, TicketState::Expired)?;
    }
    for ticket in &txn.withdrawn {
        tickets::end(connection, *ticket, TicketState::Withdrawn)?;
    }
    for (act, moved) in &moves {
        acts::advance(connection, head, *act, now, moved)?;
    }
    for act in &txn.forget_answers {
        acts::unseal(connection, *act, Sealed::Answer)?;
    }
    head.finish(connection, txn.now, &[&txn.receipts])
}

fn deliver(connection: &Connection, head: &mut Head, txn: &Deliver) -> Result<Done, Stop> {
    acts::standing(connection, txn.act)?.ok_or(Rejected::UnknownAct)?;
    acts::delivered(connection, txn.act)?;
    head.finish(connection, txn.now, &[&txn.receipts])
}

fn contradict(connection: &Connection, head: &mut Head, txn: &Contradict) -> Result<Done, Stop> {
    let now = head.at(txn.now);
    let from = acts::standing(connection, txn.act)?
        .ok_or(Rejected::UnknownAct)?
        .state;
    if !matches!(from, State::ReconciledEffect | State::ReconciledNoEffect) {
        return Err(Rejected::WrongState { from, to: from }.into());
    }
    acts::contradict(connection, txn.act, now)?;
    head.finish(connection, txn.now, &[&txn.receipts])
}

fn apply(connection: &Connection, head: &mut Head, txn: &Apply) -> Result<Done, Stop> {
    let found = head.protected.policy_digest;
    if found != txn.expected {
        return Err(Rejected::PolicyMoved { found }.into());
    }
    let mut next = head.protected;
    advance(&mut next.epochs.policy_epoch)?;
    if txn.purposes_moved {
        advance(&mut next.purpose_epoch)?;
    }
    if txn.authority_moved {
        advance(&mut next.epochs.authority_epoch)?;
    }
    next.policy_digest = Some(txn.digest);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO applied (id, digest, epoch, snapshot, at)
             VALUES (1, ?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            txn.digest.bytes(),
            int(next.epochs.policy_epoch)?,
            txn.snapshot,
            millis(head.at(txn.now)),
        ])?;
    head.protected = next;
    head.finish(connection, txn.now, &[&txn.receipts])
}

fn revoke(connection: &Connection, head: &mut Head, txn: &Revoke) -> Result<Done, Stop> {
    let added: HashSet<&String> = txn.add.iter().collect();
    if txn.remove.iter().any(|subject| added.contains(subject)) {
        return Err(Rejected::Malformed("a subject is both revoked and not").into());
    }
    let mut next = *head.epochs();
    advance(&mut next.revocation_epoch)?;
    let at: Timestamp = head.at(txn.now);
    for subject in &txn.add {
        connection
            .prepare_cached("INSERT OR IGNORE INTO revoked (subject, at) VALUES (?1, ?2)")?
            .execute(params![subject, millis(at)])?;
    }
    for subject in &txn.remove {
        connection
            .prepare_cached("DELETE FROM revoked WHERE subject = ?1")?
            .execute(params![subject])?;
    }
    *head.epochs() = next;
    // For whatever comes after it in the same group.
    head.revokes |= !txn.add.is_empty();
    head.finish(connection, txn.now, &[&txn.receipts])
}

fn rotate(connection: &Connection, head: &mut Head, txn: &Rotate) -> Result<Done, Stop> {
    let mut next = *head.epochs();
    advance(&mut next.authority_epoch)?;
    *head.epochs() = next;
    head.finish(connection, txn.now, &[&txn.receipts])
}

fn prune(connection: &Connection, head: &mut Head, txn: &Prune) -> Result<Done, Stop> {
    let lines = txn.lines(head.record_len())?;
    connection
        .prepare_cached("UPDATE record SET bytes = NULL WHERE idx >= ?1 AND idx < ?2")?
        .execute(params![int(lines.start)?, int(lines.end)?])?;
    head.finish(connection, txn.now, &[&txn.receipts])
}

//= PROFILE §5: no state changes but along the table
/// Where an act stands that is to become `to`, if this transaction may do that (`allowed`) and the lifecycle allows it.
fn step(connection: &Connection, act: ActId, to: State, allowed: bool) -> Result<State, Stop> {
    let from = acts::standing(connection, act)?
        .ok_or(Rejected::UnknownAct)?
        .state;
    if allowed && from.may_become(to) {
        Ok(from)
    } else {
        Err(Rejected::WrongState { from, to }.into())
    }
}

pub(super) fn twice<T: Eq + Hash>(things: impl IntoIterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    !things.into_iter().all(|thing| seen.insert(thing))
}
