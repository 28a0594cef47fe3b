//! The accounts that acts draw on, and the delegations that were made.

use std::collections::BTreeMap;

use lychgate_core::Timestamp;
use lychgate_core::amount::Amount;
use lychgate_core::id::{ActId, DelegationId};
use rusqlite::{Connection, params};

use super::column::{Columns, Fault, Stop, int, millis};
use crate::budget::{Account, Charge, Drawn, Recent, Refund, SLOTS};
use crate::outcome::Rejected;
use crate::row::DelegationRow;
use crate::txn::NewDelegation;

/// What accounts hold after some draws; nothing is written yet.
pub(super) type Draws = Vec<(Account, Drawn)>;

//= draft §10: cumulative depth, velocity and class across the chain
/// Compares every draw with its limits. An act without a budget costs nothing here.
pub(super) fn draw(
    connection: &Connection,
    charges: &[Charge],
    now: Timestamp,
) -> Result<Draws, Stop> {
    let mut draws = Draws::with_capacity(charges.len());
    for charge in charges {
        let account = charge.account;
        if draws.iter().any(|(other, _)| *other == account) {
            return Err(Rejected::Malformed("an act draws twice on one account").into());
        }
        let drawn = read(connection, account)?.unwrap_or_else(|| Drawn::nothing(now));
        let next = drawn.with(charge, now);
        let next = next.map_err(|over| Rejected::OverBudget { account, over })?;
        draws.push((account, next));
    }
    Ok(draws)
}

/// What accounts hold after some draws were given back.
pub(super) fn refund(connection: &Connection, refunds: &[Refund]) -> Result<Draws, Stop> {
    let mut draws = Draws::with_capacity(refunds.len());
    for refund in refunds {
        let account = refund.charge.account;
        if let Some(drawn) = read(connection, account)? {
            draws.push((account, drawn.without(refund)));
        }
    }
    Ok(draws)
}

/// Writes them.
pub(super) fn save(connection: &Connection, draws: &Draws) -> Result<(), Stop> {
    for (account, drawn) in draws {
        let id = account.to_bytes();
        let recent = &drawn.recent;
        let counts = recent.counts.map(u32::to_be_bytes);
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO accounts (id, began, acts, high_risk, slot_ms, slot, counts)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                id,
                millis(drawn.began),
                int(drawn.acts)?,
                int(drawn.high_risk)?,
                int(recent.slot_ms)?,
                int(recent.slot)?,
                counts.as_flattened(),
            ])?;
        connection
            .prepare_cached("DELETE FROM spent WHERE account = ?1")?
            .execute([id])?;
        for (unit, amount) in &drawn.spent {
            connection
                .prepare_cached("INSERT INTO spent (account, unit, amount) VALUES (?1, ?2, ?3)")?
                .execute(params![id, unit, amount.to_bytes()])?;
        }
    }
    Ok(())
}

/// What was drawn on an account.
pub(super) fn read(connection: &Connection, account: Account) -> Result<Option<Drawn>, Fault> {
    let id = account.to_bytes();
    let mut select = connection.prepare_cached("SELECT * FROM accounts WHERE id = ?1")?;
    let mut rows = select.query([id])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let columns = Columns(row);
    let recent = Recent {
        slot_ms: columns.number("slot_ms")?,
        slot: columns.number("slot")?,
        counts: counts(&columns.get::<Vec<u8>>("counts")?)?,
    };
    Ok(Some(Drawn {
        began: columns.time("began")?,
        acts: columns.number("acts")?,
        high_risk: columns.number("high_risk")?,
        recent,
        spent: spent(connection, id)?,
    }))
}

/// The same of one moment, outside of a transaction.
pub(super) fn read_whole(
    connection: &Connection,
    account: Account,
) -> Result<Option<Drawn>, Fault> {
    let transaction = connection.unchecked_transaction()?;
    read(&transaction, account)
}

fn counts(bytes: &[u8]) -> Result<[u32; SLOTS], Fault> {
    let (counts, rest) = bytes.as_chunks::<4>();
    let counts: Vec<_> = counts
        .iter()
        .map(|count| u32::from_be_bytes(*count))
        .collect();
    match <[u32; SLOTS]>::try_from(counts) {
        Ok(counts) if rest.is_empty() => Ok(counts),
        _ => Err(Fault::Corrupt("counts".to_owned())),
    }
}

fn spent(connection: &Connection, account: [u8; 16]) -> Result<BTreeMap<String, Amount>, Fault> {
    let mut select =
        connection.prepare_cached("SELECT unit, amount FROM spent WHERE account = ?1")?;
    let mut rows = select.query([account])?;
    let mut spent = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let columns = Columns(row);
        let amount = Amount::from_bytes(columns.get("amount")?);
        let amount = amount.ok_or_else(|| Fault::Corrupt("amount".to_owned()))?;
        spent.insert(columns.get("unit")?, amount);
    }
    Ok(spent)
}

/// Whether a delegation of this id was made.
pub(super) fn made(connection: &Connection, id: DelegationId) -> Result<bool, Fault> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM delegations WHERE id = ?1")?
        .exists([id.as_bytes()])?)
}

/// Keeps a delegation.
pub(super) fn make(
    connection: &Connection,
    act: ActId,
    new: &NewDelegation,
    now: Timestamp,
) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO delegations (id, act, made_at, expires_at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            new.id.as_bytes(),
            act.as_bytes(),
            millis(now),
            millis(new.expires_at),
            new.body,
        ])?;
    Ok(())
}

pub(super) fn delegation(
    connection: &Connection,
    id: DelegationId,
) -> Result<Option<DelegationRow>, Fault> {
    let sql = "SELECT * FROM delegations WHERE id = ?1";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([id.as_bytes()])?;
    rows.next()?
        .map(|row| delegation_row(&Columns(row)))
        .transpose()
}

/// Newest first.
pub(super) fn delegations(
    connection: &Connection,
    limit: usize,
) -> Result<Vec<DelegationRow>, Fault> {
    let sql = "SELECT * FROM delegations ORDER BY id DESC LIMIT ?1";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(delegation_row(&Columns(row))?);
    }
    Ok(found)
}

fn delegation_row(columns: &Columns<'_, '_>) -> Result<DelegationRow, Fault> {
    Ok(DelegationRow {
        id: columns.id("id", DelegationId::from_bytes)?,
        act: columns.id("act", ActId::from_bytes)?,
        made_at: columns.time("made_at")?,
        expires_at: columns.time("expires_at")?,
        body: columns.get("body")?,
    })
}
