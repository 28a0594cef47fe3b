//! Reads, on connections that cannot write.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use lychgate_core::id::{ActId, DelegationId, EffectId, TicketId};
use lychgate_core::receipt::Salt;
use lychgate_core::signed::KeyId;
use lychgate_core::{Digest, State, Timestamp};
use rusqlite::{Connection, Params, params};

use super::acts::{self, Sealed};
use super::column::{Columns, Fault, millis};
use super::open;
use crate::row::{
    ActQuery, ActRow, AppliedRow, Counts, HeadRow, RecordRow, Revocation, TicketQuery, TicketRow,
    TicketState, VerdictRow,
};

/// Idle connections that read.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::default(),
        }
    }

    /// Reads on an idle connection, or on a new one. After a fault the connection is given up.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let idle = self.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::reader(&self.path)?,
        };
        let found = read(&connection)?;
        let mut idle = self.lock();
        if idle.len() < IDLE_MOST {
            idle.push(connection);
        }
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn act(connection: &Connection, id: ActId) -> Result<Option<ActRow>, Fault> {
    // One transaction, so that row and sealed bytes are of one moment.
    let transaction = connection.unchecked_transaction()?;
    let found = many(
        &transaction,
        "SELECT * FROM acts WHERE id = ?1",
        [id.as_bytes()],
        act_row,
    )?;
    let Some(mut act) = found.into_iter().next() else {
        return Ok(None);
    };
    act.answer = sealed(&transaction, id, Sealed::Answer)?;
    act.read_back = sealed(&transaction, id, Sealed::ReadBack)?;
    Ok(Some(act))
}

fn sealed(connection: &Connection, id: ActId, kind: Sealed) -> Result<Option<Vec<u8>>, Fault> {
    let sql = "SELECT bytes FROM sealed WHERE act = ?1 AND kind = ?2";
    let found = many(
        connection,
        sql,
        params![id.as_bytes(), kind as i64],
        |columns| columns.get::<Vec<u8>>("bytes"),
    )?;
    Ok(found.into_iter().next())
}

pub(super) fn acts(connection: &Connection, query: &ActQuery) -> Result<Vec<ActRow>, Fault> {
    // Acts that are open are found by their index, the others by walking in the order of ids.
    let open = query.state.and_then(|state| acts::open_mark(state, false));
    let (past, order) = direction(query.newest_first);
    let index = if open.is_some() {
        "open = ?3 AND"
    } else {
        "?3 IS NULL AND"
    };
    let sql = format!(
        "SELECT * FROM acts WHERE {index} (?1 IS NULL OR state = ?1)
         AND id {past} ?2 ORDER BY id {order} LIMIT ?4"
    );
    let from = start(
        query.after.as_ref().map(ActId::as_bytes),
        query.newest_first,
    );
    let state = query.state.map(State::number);
    many(
        connection,
        &sql,
        params![state, from, open, limit(query.limit)],
        act_row,
    )
}

/// How a walk compares ids, and in which order it goes.
fn direction(newest_first: bool) -> (&'static str, &'static str) {
    if newest_first {
        ("<", "DESC")
    } else {
        (">", "ASC")
    }
}

/// Where a walk begins: past an id, else before the first one or past the last.
fn start(after: Option<&[u8; 16]>, newest_first: bool) -> Vec<u8> {
    match after {
        Some(after) => after.to_vec(),
        None if newest_first => vec![0xff; 17],
        None => Vec::new(),
    }
}

pub(super) fn open_acts(connection: &Connection) -> Result<Vec<ActRow>, Fault> {
    let sql = "SELECT * FROM acts WHERE open = ?1 ORDER BY id";
    many(connection, sql, [acts::HELD_AGAINST], act_row)
}

pub(super) fn counts(connection: &Connection) -> Result<Counts, Fault> {
    let found = many(connection, "SELECT state, n FROM counts", [], |columns| {
        Ok((columns.state("state")?, columns.number("n")?))
    })?;
    let mut counts = Counts::default();
    for (state, n) in found {
        if let Some(slot) = counts.0.get_mut(usize::from(state.number())) {
            *slot = n;
        }
    }
    Ok(counts)
}

pub(super) fn ticket(connection: &Connection, id: TicketId) -> Result<Option<TicketRow>, Fault> {
    let sql = format!("SELECT {TICKET}, display FROM tickets WHERE id = ?1");
    let row = |columns: &Columns<'_, '_>| {
        Ok(TicketRow {
            display: columns.get("display")?,
            ..ticket_row(columns)?
        })
    };
    Ok(many(connection, &sql, [id.as_bytes()], row)?
        .into_iter()
        .next())
}

pub(super) fn verdicts(connection: &Connection, of: TicketId) -> Result<Vec<VerdictRow>, Fault> {
    let sql = "SELECT approver, bytes FROM verdicts WHERE ticket = ?1 ORDER BY approver";
    many(connection, sql, [of.as_bytes()], |columns| {
        Ok(VerdictRow {
            approver: KeyId(columns.get("approver")?),
            bytes: columns.get("bytes")?,
        })
    })
}

pub(super) fn tickets(
    connection: &Connection,
    query: &TicketQuery,
) -> Result<Vec<TicketRow>, Fault> {
    let state = query.state;
    let live = matches!(state, Some(TicketState::Pending | TicketState::Approved));
    let index = if live { "live = 1 AND" } else { "" };
    let (past, order) = direction(query.newest_first);
    let sql = format!(
        "SELECT {TICKET} FROM tickets WHERE {index} (?1 IS NULL OR state = ?1)
         AND id {past} ?2 ORDER BY id {order} LIMIT ?3"
    );
    let from = start(
        query.after.as_ref().map(TicketId::as_bytes),
        query.newest_first,
    );
    let state = state.map(TicketState::number);
    many(
        connection,
        &sql,
        params![state, from, limit(query.limit)],
        ticket_row,
    )
}

pub(super) fn tickets_of(
    connection: &Connection,
    subject: &Digest,
    most: usize,
) -> Result<Vec<TicketRow>, Fault> {
    // Named, so that a statement that would walk every ticket does not prepare.
    let sql = format!(
        "SELECT {TICKET} FROM tickets INDEXED BY tickets_subject
         WHERE live IS NOT NULL AND subject = ?1 ORDER BY id DESC LIMIT ?2"
    );
    many(
        connection,
        &sql,
        params![subject.bytes(), limit(most)],
        ticket_row,
    )
}

pub(super) fn kept_answers(connection: &Connection, until: Timestamp) -> Result<Vec<ActId>, Fault> {
    let sql = "SELECT id FROM acts WHERE open = ?1 AND undelivered = 1 AND updated_at <= ?2
               AND EXISTS (SELECT 1 FROM sealed WHERE act = acts.id AND kind = ?3) ORDER BY id";
    many(
        connection,
        sql,
        params![acts::HELD_AGAINST, millis(until), Sealed::Answer as i64],
        |columns| columns.id("id", ActId::from_bytes),
    )
}

pub(super) fn applied(connection: &Connection) -> Result<Option<AppliedRow>, Fault> {
    let found = many(
        connection,
        "SELECT * FROM applied WHERE id = 1",
        [],
        |columns| {
            Ok(AppliedRow {
                digest: columns.digest("digest")?,
                epoch: columns.number("epoch")?,
                snapshot: columns.get("snapshot")?,
                at: columns.time("at")?,
            })
        },
    )?;
    Ok(found.into_iter().next())
}

pub(super) fn revocations(connection: &Connection) -> Result<Vec<Revocation>, Fault> {
    many(
        connection,
        "SELECT * FROM revoked ORDER BY subject",
        [],
        |columns| {
            Ok(Revocation {
                subject: columns.get("subject")?,
                at: columns.time("at")?,
            })
        },
    )
}

pub(super) fn record(
    connection: &Connection,
    from: u64,
    most: usize,
) -> Result<Vec<RecordRow>, Fault> {
    let Ok(from) = i64::try_from(from) else {
        return Ok(Vec::new());
    };
    let sql = "SELECT idx, leaf, bytes FROM record WHERE idx >= ?1 ORDER BY idx LIMIT ?2";
    many(connection, sql, [from, limit(most)], |columns| {
        Ok(RecordRow {
            index: columns.number("idx")?,
            bytes: columns.get("bytes")?,
            leaf: columns.leaf("leaf")?,
        })
    })
}

pub(super) fn newest_head(connection: &Connection) -> Result<Option<HeadRow>, Fault> {
    let sql = "SELECT size, note FROM recent ORDER BY size DESC LIMIT 1";
    Ok(many(connection, sql, [], head_row)?.into_iter().next())
}

pub(super) fn heads(
    connection: &Connection,
    from: u64,
    most: usize,
) -> Result<Vec<HeadRow>, Fault> {
    let Ok(from) = i64::try_from(from) else {
        return Ok(Vec::new());
    };
    // UNION leaves out what is in both.
    let sql = "SELECT * FROM (SELECT size, note FROM heads WHERE size >= ?1 ORDER BY size LIMIT ?2)
               UNION SELECT size, note FROM recent WHERE size >= ?1 ORDER BY 1 LIMIT ?2";
    many(connection, sql, [from, limit(most)], head_row)
}

fn head_row(columns: &Columns<'_, '_>) -> Result<HeadRow, Fault> {
    Ok(HeadRow {
        size: columns.number("size")?,
        note: columns.get("note")?,
    })
}

fn many<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Columns<'_, '_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(&Columns(row))?);
    }
    Ok(found)
}

fn act_row(columns: &Columns<'_, '_>) -> Result<ActRow, Fault> {
    Ok(ActRow {
        id: columns.id("id", ActId::from_bytes)?,
        state: columns.state("state")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        twin: columns.digest_some("twin")?,
        act_digest: columns.digest_some("act_digest")?,
        arguments_digest: columns.digest_some("arguments_digest")?,
        destination: columns.get("destination")?,
        salt: Salt(columns.get("salt")?),
        agent: columns.get("agent")?,
        depth: columns.get("depth")?,
        delegation: columns.id_some("delegation", DelegationId::from_bytes)?,
        tool: columns.get("tool")?,
        function: columns.get("function")?,
        class: columns.class_some("class")?,
        source: columns.source_some("source")?,
        vouched: columns.flag("vouched")?,
        retry_of: columns.id_some("retry_of", ActId::from_bytes)?,
        grant: acts::grant(columns)?,
        effect: columns.id_some("effect", EffectId::from_bytes)?,
        idempotency_key: columns.get("idempotency_key")?,
        ticket: columns.id_some("ticket", TicketId::from_bytes)?,
        code: columns.code_some("code")?,
        answered_by: columns.id_some("answered_by", ActId::from_bytes)?,
        contradicted: columns.flag("contradicted")?,
        undelivered: columns.flag("undelivered")?,
        answer: None,
        read_back: None,
    })
}

fn ticket_row(columns: &Columns<'_, '_>) -> Result<TicketRow, Fault> {
    Ok(TicketRow {
        id: columns.id("id", TicketId::from_bytes)?,
        state: columns.ticket_state("state")?,
        subject: columns.digest("subject")?,
        act: columns.id("act", ActId::from_bytes)?,
        created_at: columns.time("created_at")?,
        expires_at: columns.time("expires_at")?,
        decided_at: columns.time_some("decided_at")?,
        approver: columns.get::<Option<String>>("approver")?.map(KeyId),
        consumed_by: columns.id_some("consumed_by", ActId::from_bytes)?,
        summary: columns.get("summary")?,
        display: None,
        display_bytes: columns.number("display_bytes")?,
    })
}

/// A ticket without its display. `length` of a blob reads none of it.
const TICKET: &str =
    "id, state, subject, act, created_at, expires_at, decided_at, approver, consumed_by, summary,
    coalesce(length(display), 0) AS display_bytes";

fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// Connections kept open between reads.
const IDLE_MOST: usize = 4;
