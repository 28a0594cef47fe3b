//! The rows of acts as the transactions need them.

use lychgate_core::act::SourceType;
use lychgate_core::code::Code;
use lychgate_core::id::{ActId, AuthorityId, DelegationId, EffectId, HolderId, Nonce, TicketId};
use lychgate_core::{Epochs, State, Timestamp};
use rusqlite::{Connection, params};

use super::column::{Columns, Fault, Stop, class_number, int, millis};
use super::head::Head;
use crate::row::Grant;
use crate::txn::NewAct;

/// What the rules ask of an act that has a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) state: State,
    pub(super) grant: Option<Grant>,
    pub(super) ticket: Option<TicketId>,
}

/// The two kinds of sealed bytes an act may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sealed {
    Answer = 0,
    ReadBack = 1,
}

/// What a first row holds beyond the act's own facts.
#[derive(Default)]
pub(super) struct First<'t> {
    pub(super) grant: Option<&'t Grant>,
    pub(super) effect: Option<EffectId>,
    pub(super) idempotency_key: Option<&'t str>,
    pub(super) ticket: Option<TicketId>,
    pub(super) code: Option<Code>,
    pub(super) answered_by: Option<ActId>,
    /// Under which number what was said of it is kept.
    pub(super) said: Option<i64>,
}

pub(super) fn standing(connection: &Connection, id: ActId) -> Result<Option<Standing>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT state, ticket, authority, holder, nonce, expires_at, policy_epoch, authority_epoch,
         revocation_epoch, policy_digest FROM acts WHERE id = ?1",
    )?;
    let mut rows = select.query([id.as_bytes()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let columns = Columns(row);
    Ok(Some(Standing {
        state: columns.state("state")?,
        grant: grant(&columns)?,
        ticket: columns.id_some("ticket", TicketId::from_bytes)?,
    }))
}

/// The authority in a row that may have none.
pub(super) fn grant(columns: &Columns<'_, '_>) -> Result<Option<Grant>, Fault> {
    let Some(authority) = columns.id_some("authority", AuthorityId::from_bytes)? else {
        return Ok(None);
    };
    let holder = columns.id("holder", HolderId::from_bytes)?;
    Ok(Some(Grant {
        authority,
        holder,
        nonce: Nonce {
            holder,
            count: columns.number("nonce")?,
        },
        expires_at: columns.time("expires_at")?,
        epochs: Epochs {
            policy_epoch: columns.number("policy_epoch")?,
            authority_epoch: columns.number("authority_epoch")?,
            revocation_epoch: columns.number("revocation_epoch")?,
        },
        policy_digest: columns.digest("policy_digest")?,
    }))
}

/// Writes the first row of an act.
pub(super) fn insert(
    connection: &Connection,
    head: &mut Head,
    act: &NewAct,
    state: State,
    now: Timestamp,
    first: &First<'_>,
) -> Result<(), Stop> {
    let grant = first.grant;
    // By place: looking names up costs more than the row.
    connection.prepare_cached(INSERT)?.execute(params![
        act.id.as_bytes(),
        state.number(),
        open_mark(state, false),
        millis(act.created_at),
        millis(now),
        act.twin.as_ref().map(|digest| digest.bytes()),
        act.act_digest.as_ref().map(|digest| digest.bytes()),
        act.arguments_digest.as_ref().map(|digest| digest.bytes()),
        act.destination,
        act.salt.0,
        act.agent,
        act.depth,
        act.delegation.as_ref().map(DelegationId::as_bytes),
        act.tool,
        act.function,
        act.class.and_then(class_number),
        act.source.map(SourceType::number),
        act.vouched,
        act.retry_of.as_ref().map(ActId::as_bytes),
        grant.map(|grant| *grant.authority.as_bytes()),
        grant.map(|grant| *grant.holder.as_bytes()),
        grant.map(|grant| int(grant.nonce.count)).transpose()?,
        grant.map(|grant| millis(grant.expires_at)),
        grant
            .map(|grant| int(grant.epochs.policy_epoch))
            .transpose()?,
        grant
            .map(|grant| int(grant.epochs.authority_epoch))
            .transpose()?,
        grant
            .map(|grant| int(grant.epochs.revocation_epoch))
            .transpose()?,
        grant.map(|grant| grant.policy_digest.bytes()),
        first.effect.map(|effect| *effect.as_bytes()),
        first.idempotency_key,
        first.ticket.map(|ticket| *ticket.as_bytes()),
        first.code.map(Code::number),
        first.answered_by.as_ref().map(ActId::as_bytes),
        first.said,
    ])?;
    head.count(None, state);
    Ok(())
}

/// Gives an escalated act its authority.
pub(super) fn allow(
    connection: &Connection,
    head: &mut Head,
    id: ActId,
    grant: &Grant,
    now: Timestamp,
) -> Result<(), Stop> {
    connection
        .prepare_cached(
            "UPDATE acts SET state = ?2, open = ?3, updated_at = ?4, authority = ?5, holder = ?6,
             nonce = ?7, expires_at = ?8, policy_epoch = ?9, authority_epoch = ?10,
             revocation_epoch = ?11, policy_digest = ?12 WHERE id = ?1",
        )?
        .execute(params![
            id.as_bytes(),
            State::Allowed.number(),
            open_mark(State::Allowed, false),
            millis(now),
            grant.authority.as_bytes(),
            grant.holder.as_bytes(),
            int(grant.nonce.count)?,
            millis(grant.expires_at),
            int(grant.epochs.policy_epoch)?,
            int(grant.epochs.authority_epoch)?,
            int(grant.epochs.revocation_epoch)?,
            grant.policy_digest.bytes(),
        ])?;
    head.count(Some(State::Escalated), State::Allowed);
    Ok(())
}

/// Moves an allowed act to dispatched.
pub(super) fn dispatch(
    connection: &Connection,
    head: &mut Head,
    id: ActId,
    now: Timestamp,
    first: &First<'_>,
) -> Result<(), Stop> {
    connection
        .prepare_cached(
            "UPDATE acts SET state = ?2, open = ?3, updated_at = ?4, effect = ?5,
             idempotency_key = ?6, ticket = coalesce(?7, ticket), said = ?8 WHERE id = ?1",
        )?
        .execute(params![
            id.as_bytes(),
            State::Dispatched.number(),
            open_mark(State::Dispatched, false),
            millis(now),
            first.effect.map(|effect| *effect.as_bytes()),
            first.idempotency_key,
            first.ticket.map(|ticket| *ticket.as_bytes()),
            first.said,
        ])?;
    head.count(Some(State::Allowed), State::Dispatched);
    Ok(())
}

/// A step of an act to a state that needs no more than a reason.
pub(super) struct Move {
    pub(super) from: State,
    pub(super) to: State,
    pub(super) code: Option<Code>,
    pub(super) answered_by: Option<ActId>,
    pub(super) undelivered: bool,
}

/// Moves an act.
pub(super) fn advance(
    connection: &Connection,
    head: &mut Head,
    id: ActId,
    now: Timestamp,
    step: &Move,
) -> Result<(), Stop> {
    connection
        .prepare_cached(
            "UPDATE acts SET state = ?2, open = ?3, updated_at = ?4, code = ?5, undelivered = ?6,
             answered_by = ?7 WHERE id = ?1",
        )?
        .execute(params![
            id.as_bytes(),
            step.to.number(),
            open_mark(step.to, step.undelivered),
            millis(now),
            step.code.map(Code::number),
            step.undelivered,
            step.answered_by.as_ref().map(ActId::as_bytes),
        ])?;
    head.count(Some(step.from), step.to);
    Ok(())
}

/// The answer reached its caller.
pub(super) fn delivered(connection: &Connection, id: ActId) -> Result<(), Fault> {
    let changed = connection
        .prepare_cached(
            "UPDATE acts SET undelivered = 0, open = CASE WHEN state = ?2 THEN open ELSE NULL END
             WHERE id = ?1 AND undelivered = 1",
        )?
        .execute(params![id.as_bytes(), State::Indeterminate.number()])?;
    if changed > 0 {
        unseal(connection, id, Sealed::Answer)?;
    }
    Ok(())
}

/// A late answer contradicts the person who reconciled the act.
pub(super) fn contradict(connection: &Connection, id: ActId, now: Timestamp) -> Result<(), Fault> {
    connection
        .prepare_cached("UPDATE acts SET contradicted = 1, updated_at = ?2 WHERE id = ?1")?
        .execute(params![id.as_bytes(), millis(now)])?;
    Ok(())
}

/// Keeps sealed bytes, in the place of those of their kind.
pub(super) fn seal(
    connection: &Connection,
    id: ActId,
    kind: Sealed,
    bytes: &[u8],
) -> Result<(), Fault> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO sealed (act, kind, bytes) VALUES (?1, ?2, ?3)")?
        .execute(params![id.as_bytes(), kind as i64, bytes])?;
    Ok(())
}

/// Deletes sealed bytes, if there are any.
pub(super) fn unseal(connection: &Connection, id: ActId, kind: Sealed) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM sealed WHERE act = ?1 AND kind = ?2")?
        .execute(params![id.as_bytes(), kind as i64])?;
    Ok(())
}

/// Whether the nonce was consumed.
pub(super) fn nonce_seen(connection: &Connection, nonce: Nonce) -> Result<bool, Stop> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM used WHERE holder = ?1 AND count = ?2")?
        .exists(params![nonce.holder.as_bytes(), int(nonce.count)?])?)
}

/// Consumes the nonce.
pub(super) fn use_nonce(connection: &Connection, nonce: Nonce) -> Result<(), Stop> {
    connection
        .prepare_cached("INSERT INTO used (holder, count) VALUES (?1, ?2)")?
        .execute(params![nonce.holder.as_bytes(), int(nonce.count)?])?;
    Ok(())
}

/// The `open` column of the schema.
pub(super) fn open_mark(state: State, undelivered: bool) -> Option<i64> {
    match state {
        State::Dispatched | State::Indeterminate => Some(HELD_AGAINST),
        State::Allowed | State::Escalated => Some(WAITING),
        State::Refused
        | State::Expired
        | State::Withdrawn
        | State::Effected
        | State::Failed
        | State::InputRequired
        | State::ReconciledEffect
        | State::ReconciledNoEffect => undelivered.then_some(HELD_AGAINST),
    }
}

/// `open`: an equal call is held against it.
pub(super) const HELD_AGAINST: i64 = 1;
/// `open`: it waits before dispatch.
pub(super) const WAITING: i64 = 2;

const INSERT: &str = "
INSERT INTO acts (
    id, state, open, created_at, updated_at, twin, act_digest, arguments_digest, destination, salt,
    agent, depth, delegation, tool, function, class, source, vouched, retry_of, authority, holder, nonce, expires_at,
    policy_epoch, authority_epoch, revocation_epoch, policy_digest, effect, idempotency_key,
    ticket, code, answered_by, said, contradicted, undelivered)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
    ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, 0, 0)";
