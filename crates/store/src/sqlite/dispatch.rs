//! Issuing an authority and consuming it, once.

use lychgate_core::id::Nonce;
use lychgate_core::{Epochs, State, Timestamp};
use rusqlite::Connection;

use super::accounts;
use super::acts::{self, First, Sealed, Standing};
use super::column::{Stop, int};
use super::head::Head;
use super::tickets;
use crate::outcome::{Done, Rejected, Which};
use crate::row::{Grant, ProtectedState};
use crate::txn::{Dispatch, Issue};

/// Whether an issued act has a row already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Absent,
    Escalated,
}

pub(super) fn issue(connection: &Connection, head: &mut Head, txn: &Issue) -> Result<Done, Stop> {
    let now = head.at(txn.now);
    let (row, _) = may_issue(connection, txn, now)?;
    unseen(connection, txn.grant.nonce)?;
    match row {
        Row::Absent => {
            let first = First {
                grant: Some(&txn.grant),
                ..First::default()
            };
            acts::insert(connection, head, &txn.act, State::Allowed, now, &first)?;
        }
        Row::Escalated => acts::allow(connection, head, txn.act.id, &txn.grant, now)?,
    }
    head.finish(connection, txn.now, &[&txn.receipts])
}

pub(super) fn dispatch(
    connection: &Connection,
    head: &mut Head,
    txn: &Dispatch,
) -> Result<Done, Stop> {
    let now = head.at(txn.now);
    let (row, standing) = match &txn.issue {
        Some(issue) if issue.act.id != txn.act => {
            return Err(Rejected::Malformed("the act issued is not the act dispatched").into());
        }
        Some(issue) => {
            let (row, standing) = may_issue(connection, issue, now)?;
            (Some(row), standing)
        }
        None => (
            None,
            acts::standing(connection, txn.act)?.ok_or(Rejected::NotIssued)?,
        ),
    };
    may_dispatch(connection, head, txn, &standing, now)?;
    let draws = accounts::draw(connection, &txn.charges, now)?;

    let said = match &txn.said {
        Some(said) => Some(head.batches.keep(connection, said)?),
        None => None,
    };
    let first = First {
        grant: txn.issue.as_ref().map(|issue| &issue.grant),
        effect: Some(txn.effect),
        idempotency_key: txn.idempotency_key.as_deref(),
        ticket: txn.approval.map(|approval| approval.ticket),
        code: None,
        answered_by: None,
        said,
    };
    match (&txn.issue, row) {
        (Some(issue), Some(Row::Absent)) => {
            acts::insert(connection, head, &issue.act, State::Dispatched, now, &first)?;
        }
        (Some(issue), _) => {
            acts::allow(connection, head, txn.act, &issue.grant, now)?;
            acts::dispatch(connection, head, txn.act, now, &first)?;
        }
        (None, _) => acts::dispatch(connection, head, txn.act, now, &first)?,
    }
    acts::use_nonce(connection, txn.nonce)?;
    accounts::save(connection, &draws)?;
    if let Some(approval) = &txn.approval {
        tickets::consume(connection, approval.ticket, txn.act)?;
    }
    if let Some(read_back) = &txn.read_back {
        acts::seal(connection, txn.act, Sealed::ReadBack, read_back)?;
    }
    let issued = txn
        .issue
        .as_ref()
        .map_or(&[][..], |issue| &issue.receipts[..]);
    head.finish(connection, txn.now, &[issued, &txn.receipts])
}

/// Whether the authority may be issued, and how the act stands then.
fn may_issue(
    connection: &Connection,
    txn: &Issue,
    now: Timestamp,
) -> Result<(Row, Standing), Stop> {
    let found = acts::standing(connection, txn.act.id)?;
    let (row, ticket) = match found {
        None => (Row::Absent, None),
        Some(Standing {
            state: State::Escalated,
            ticket: Some(ticket),
            ..
        }) => {
            tickets::usable_any(connection, ticket, now)?;
            (Row::Escalated, Some(ticket))
        }
        Some(_) => return Err(Rejected::SeenAct.into()),
    };
    let nonce = txn.grant.nonce;
    if nonce.holder != txn.grant.holder || nonce.count == 0 || int(nonce.count).is_err() {
        return Err(Rejected::NonceUnusable.into());
    }
    let Epochs {
        policy_epoch,
        authority_epoch,
        revocation_epoch,
    } = txn.grant.epochs;
    for epoch in [policy_epoch, authority_epoch, revocation_epoch] {
        int(epoch)?;
    }
    Ok((
        row,
        Standing {
            state: State::Allowed,
            grant: Some(txn.grant),
            ticket,
        },
    ))
}

//= PROFILE §4: one transaction compares everything, then consumes
/// Whether the authority may be consumed; the order is [`Dispatch`]'s.
fn may_dispatch(
    connection: &Connection,
    head: &Head,
    txn: &Dispatch,
    standing: &Standing,
    now: Timestamp,
) -> Result<(), Stop> {
    let grant = standing
        .grant
        .filter(|grant| grant.authority == txn.authority);
    let grant = grant.ok_or(Rejected::NotIssued)?;
    if grant.holder != txn.holder {
        return Err(Rejected::HolderMismatch.into());
    }
    unused(standing.state)?;
    if now >= grant.expires_at {
        return Err(Rejected::Expired.into());
    }
    if grant.nonce != txn.nonce {
        return Err(Rejected::NonceUnusable.into());
    }
    unseen(connection, txn.nonce)?;
    current(&head.protected, &grant, txn)?;
    let subjects = txn.revocation_subjects.iter();
    for subject in subjects.filter(|_| head.revokes) {
        let revoked = connection
            .prepare_cached("SELECT 1 FROM revoked WHERE subject = ?1")?
            .exists([subject])?;
        if revoked {
            return Err(Rejected::Revoked {
                subject: subject.clone(),
            }
            .into());
        }
    }
    match (&txn.approval, standing.ticket) {
        (None, None) => Ok(()),
        (Some(approval), awaited) if awaited.is_none_or(|ticket| ticket == approval.ticket) => {
            tickets::usable(connection, approval, now)
        }
        (Some(_) | None, _) => Err(Rejected::ApprovalMissing.into()),
    }
}

fn unused(state: State) -> Result<(), Rejected> {
    match state {
        State::Allowed => Ok(()),
        State::Dispatched
        | State::Effected
        | State::Failed
        | State::InputRequired
        | State::Indeterminate
        | State::ReconciledEffect
        | State::ReconciledNoEffect => Err(Rejected::AlreadyUsed),
        State::Expired => Err(Rejected::Expired),
        State::Refused | State::Escalated | State::Withdrawn => Err(Rejected::WrongState {
            from: state,
            to: State::Dispatched,
        }),
    }
}

fn unseen(connection: &Connection, nonce: Nonce) -> Result<(), Stop> {
    if acts::nonce_seen(connection, nonce)? {
        Err(Rejected::SeenNonce.into())
    } else {
        Ok(())
    }
}

/// Whether nothing moved since the authority was issued.
fn current(held: &ProtectedState, grant: &Grant, txn: &Dispatch) -> Result<(), Rejected> {
    let same = |epoch: fn(&Epochs) -> u64| {
        let now = epoch(&held.epochs);
        epoch(&grant.epochs) == now && epoch(&txn.expected_epochs) == now
    };
    let digest = Some(grant.policy_digest) == held.policy_digest
        && Some(txn.policy_digest) == held.policy_digest;
    let compared = [
        (same(|epochs| epochs.policy_epoch), Which::Policy),
        (same(|epochs| epochs.authority_epoch), Which::Authority),
        (same(|epochs| epochs.revocation_epoch), Which::Revocation),
        (digest, Which::PolicyDigest),
    ];
    match compared.into_iter().find(|(same, _)| !same) {
        None => Ok(()),
        Some((_, which)) => Err(Rejected::EpochMismatch { which }),
    }
}
