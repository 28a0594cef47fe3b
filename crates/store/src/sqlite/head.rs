//! What changes with nearly every transaction: kept in memory while a group is worked on, written once at its end.

use lychgate_core::{Epochs, State, Timestamp};
use lychgate_ledger::{Frontier, LeafHash};
use rusqlite::{Connection, params};

use super::column::{Columns, Fault, Stop, millis};
use super::said::Batches;
use crate::ledger::GroupSigner;
use crate::outcome::{Done, Rejected, StoreFault};
use crate::row::ProtectedState;
use crate::txn::{Entry, Txn};

/// The head of the store inside a write transaction.
pub(super) struct Head {
    pub(super) protected: ProtectedState,
    loaded: ProtectedState,
    record_len: u64,
    /// Anything is revoked at all. Nearly always nothing is, and one look a group says so.
    pub(super) revokes: bool,
    /// What the group appended, for the tree.
    leaves: Vec<LeafHash>,
    /// What the group says, signed.
    pub(super) batches: Batches,
    /// How the number of acts in each state changes.
    moved: [i64; 12],
}

impl Head {
    /// Read anew for each group, so that nothing rests on this process being the only writer. What the group says is
    /// signed here, before any of it is applied.
    pub(super) fn load(
        connection: &Connection,
        txns: &[Txn],
        signer: &dyn GroupSigner,
    ) -> Result<Self, StoreFault> {
        let protected = protected(connection)?;
        let record_len = record_len(connection)?;
        Ok(Self {
            protected,
            loaded: protected,
            record_len,
            revokes: revokes(connection)?,
            leaves: Vec::new(),
            batches: Batches::sign(txns, signer)?,
            moved: [0; 12],
        })
    }

    /// Writes what changed; `grown` is the tree when the record grew.
    pub(super) fn save(
        &self,
        connection: &Connection,
        grown: Option<&Frontier>,
    ) -> Result<(), Fault> {
        let now = &self.protected;
        if let Some(grown) = grown {
            connection
                .prepare_cached("UPDATE head SET frontier = ?1 WHERE id = 1")?
                .execute(params![grown.to_bytes()])?;
        }
        if *now != self.loaded {
            connection
                .prepare_cached(
                    "UPDATE head SET policy_epoch = ?1, authority_epoch = ?2, revocation_epoch = ?3,
                     purpose_epoch = ?4, policy_digest = ?5, last_time = ?6 WHERE id = 1",
                )?
                .execute(params![
                    stored(now.epochs.policy_epoch),
                    stored(now.epochs.authority_epoch),
                    stored(now.epochs.revocation_epoch),
                    stored(now.purpose_epoch),
                    now.policy_digest.as_ref().map(|digest| digest.bytes()),
                    millis(now.last_time),
                ])?;
        }
        for (state, by) in State::ALL.iter().zip(self.moved).filter(|(_, by)| *by != 0) {
            connection
                .prepare_cached("UPDATE counts SET n = n + ?2 WHERE state = ?1")?
                .execute(params![state.number(), by])?;
        }
        Ok(())
    }

    /// The time a transaction is judged by: what it says, but never before what an earlier one said.
    pub(super) fn at(&self, now: Timestamp) -> Timestamp {
        now.max(self.protected.last_time)
    }

    /// An act moved, or came to be.
    pub(super) fn count(&mut self, from: Option<State>, to: State) {
        let mut add = |state: State, by: i64| {
            if let Some(slot) = self.moved.get_mut(usize::from(state.number())) {
                *slot += by;
            }
        };
        if let Some(from) = from {
            add(from, -1);
        }
        add(to, 1);
    }

    /// The last step of every transaction: its receipts, and its time.
    pub(super) fn finish(
        &mut self,
        connection: &Connection,
        now: Timestamp,
        receipts: &[&[Entry]],
    ) -> Result<Done, Stop> {
        let first_index = self.record_len;
        let mut append = connection
            .prepare_cached("INSERT INTO record (idx, leaf, bytes) VALUES (?1, ?2, ?3)")?;
        for entry in receipts.iter().copied().flatten() {
            append.execute(params![stored(self.record_len), entry.leaf.0, entry.bytes])?;
            self.leaves.push(entry.leaf);
            self.record_len += 1;
        }
        self.protected.last_time = self.at(now);
        Ok(Done {
            first_index,
            epochs: self.protected.epochs,
        })
    }

    /// What the group appended so far, in the record's order.
    pub(super) fn leaves(&self) -> &[LeafHash] {
        &self.leaves
    }

    /// How many lines the record has, with those of the group.
    pub(super) fn record_len(&self) -> u64 {
        self.record_len
    }

    pub(super) fn epochs(&mut self) -> &mut Epochs {
        &mut self.protected.epochs
    }
}

/// One further; an epoch never wraps and never goes back.
pub(super) fn advance(epoch: &mut u64) -> Result<(), Rejected> {
    let next = epoch
        .checked_add(1)
        .filter(|next| i64::try_from(*next).is_ok());
    *epoch = next.ok_or(Rejected::Malformed("an epoch has come to its end"))?;
    Ok(())
}

/// The protected state as stored.
pub(super) fn protected(connection: &Connection) -> Result<ProtectedState, Fault> {
    let mut select = connection.prepare_cached("SELECT * FROM head WHERE id = 1")?;
    let mut rows = select.query([])?;
    let Some(row) = rows.next()? else {
        return Err(Fault::Corrupt("head".to_owned()));
    };
    let columns = Columns(row);
    Ok(ProtectedState {
        epochs: Epochs {
            policy_epoch: columns.number("policy_epoch")?,
            authority_epoch: columns.number("authority_epoch")?,
            revocation_epoch: columns.number("revocation_epoch")?,
        },
        purpose_epoch: columns.number("purpose_epoch")?,
        policy_digest: columns.digest_some("policy_digest")?,
        last_time: columns.time("last_time")?,
    })
}

fn revokes(connection: &Connection) -> Result<bool, Fault> {
    let mut any = connection.prepare_cached("SELECT 1 FROM revoked LIMIT 1")?;
    Ok(any.exists([])?)
}

/// How many lines the record has.
pub(super) fn record_len(connection: &Connection) -> Result<u64, Fault> {
    let mut select =
        connection.prepare_cached("SELECT coalesce(max(idx) + 1, 0) AS n FROM record")?;
    let mut rows = select.query([])?;
    let Some(row) = rows.next()? else {
        return Ok(0);
    };
    Columns(row).number("n")
}

/// Numbers that came from the store fit it: epochs stop before the limit, and a record of 2^63 lines has no disk.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
