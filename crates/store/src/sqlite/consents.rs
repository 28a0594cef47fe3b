//! Consents: granted, withdrawn, read.

use lychgate_core::Timestamp;
use lychgate_core::id::ConsentId;
use rusqlite::{Connection, params};

use super::apply::twice;
use super::column::{Columns, Fault, Stop, millis};
use super::head::{Head, advance};
use crate::outcome::{Done, Rejected};
use crate::row::ConsentRow;
use crate::txn::{Consent, WithdrawConsent};

pub(super) fn grant(connection: &Connection, head: &mut Head, txn: &Consent) -> Result<Done, Stop> {
    let known = connection
        .prepare_cached("SELECT 1 FROM consents WHERE id = ?1")?
        .exists([txn.id.as_bytes()])?;
    if known {
        return Err(Rejected::SeenConsent.into());
    }
    connection
        .prepare_cached(
            "INSERT INTO consents (id, granted_at, expires_at, terms, grant)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            txn.id.as_bytes(),
            millis(head.at(txn.now)),
            millis(txn.expires_at),
            txn.terms,
            txn.grant,
        ])?;
    head.finish(connection, txn.now, &[&txn.receipts])
}

pub(super) fn withdraw(
    connection: &Connection,
    head: &mut Head,
    txn: &WithdrawConsent,
) -> Result<Done, Stop> {
    if twice(&txn.consents) {
        return Err(Rejected::UnknownConsent.into());
    }
    for id in &txn.consents {
        let live = connection
            .prepare_cached("SELECT 1 FROM consents WHERE id = ?1 AND withdrawn_at IS NULL")?
            .exists([id.as_bytes()])?;
        if !live {
            return Err(Rejected::UnknownConsent.into());
        }
    }
    let mut next = *head.epochs();
    advance(&mut next.authority_epoch)?;
    let at = head.at(txn.now);
    for id in &txn.consents {
        connection
            .prepare_cached("UPDATE consents SET withdrawn_at = ?2 WHERE id = ?1")?
            .execute(params![id.as_bytes(), millis(at)])?;
    }
    *head.epochs() = next;
    head.finish(connection, txn.now, &[&txn.receipts])
}

pub(super) fn read(
    connection: &Connection,
    live_at: Option<Timestamp>,
    limit: usize,
) -> Result<Vec<ConsentRow>, Fault> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let wanted = match live_at {
        Some(_) => "withdrawn_at IS NULL AND expires_at > ?1",
        None => "?1 IS NULL",
    };
    let sql = format!("SELECT * FROM consents WHERE {wanted} ORDER BY id DESC LIMIT ?2");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(params![live_at.map(millis), most])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = Columns(row);
        found.push(ConsentRow {
            id: columns.id("id", ConsentId::from_bytes)?,
            granted_at: columns.time("granted_at")?,
            expires_at: columns.time("expires_at")?,
            withdrawn_at: columns.time_some("withdrawn_at")?,
            terms: columns.get("terms")?,
            grant: columns.get("grant")?,
        });
    }
    Ok(found)
}
