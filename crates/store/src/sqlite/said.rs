//! What the PED and the sinks say of the acts of a commit group: signed in two batches before any of it is applied, and
//! kept beside the acts it is about.

use lychgate_core::id::ActId;
use lychgate_core::signed::{BatchPath, BatchPlace};
use lychgate_ledger::tree::{Leaves, inclusion_proof};
use lychgate_ledger::{Hash, LeafHash, root};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::column::Fault;
use crate::ledger::{GroupSigner, SignRefused, Signatory};
use crate::outcome::StoreFault;
use crate::row::{BatchSignature, SaidRow};
use crate::txn::{Said, Txn};

/// The batches of one group, signed.
#[derive(Default)]
pub(super) struct Batches {
    ped: Batch,
    sink: Batch,
    /// How many leaves belong to the transactions before the one at hand.
    ped_at: u32,
    sink_at: u32,
    /// The number they are kept under.
    kept: Option<i64>,
}

#[derive(Default)]
struct Batch {
    leaves: Vec<LeafHash>,
    signature: Option<[u8; 64]>,
}

impl Batches {
    /// Signs what a group says. The leaves of a transaction that is rejected later stay in the trees, where they prove
    /// nothing: what is believed is what the store issued.
    pub(super) fn sign(txns: &[Txn], signer: &dyn GroupSigner) -> Result<Self, StoreFault> {
        let mut batches = Self::default();
        for said in txns.iter().filter_map(said) {
            batches.ped.leaves.extend(said.ped.iter().flatten());
            batches.sink.leaves.push(said.sink);
        }
        batches.ped.sign(Signatory::Ped, signer)?;
        batches.sink.sign(Signatory::Sink, signer)?;
        Ok(batches)
    }

    /// Keeps what a transaction of the group said, and gives the number it is kept under.
    pub(super) fn keep(&mut self, connection: &Connection, said: &Said) -> Result<i64, Fault> {
        let batch = match self.kept {
            Some(batch) => batch,
            None => self.save(connection)?,
        };
        self.kept = Some(batch);
        let ped = said.ped.is_some().then_some(self.ped_at);
        connection
            .prepare_cached("INSERT INTO said (batch, ped, sink, objects) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![batch, ped, self.sink_at, said.objects])?;
        Ok(connection.last_insert_rowid())
    }

    /// The next transaction's leaves come after this one's.
    pub(super) fn pass(&mut self, txn: &Txn) {
        if let Some(said) = said(txn) {
            self.sink_at += 1;
            self.ped_at += if said.ped.is_some() { 2 } else { 0 };
        }
    }

    /// Keeps the batches themselves, once a group and only when something in them is kept.
    fn save(&self, connection: &Connection) -> Result<i64, Fault> {
        let signature = |batch: &Batch| batch.signature.map(Vec::from);
        connection
            .prepare_cached(
                "INSERT INTO batches (ped, ped_signature, sink, sink_signature) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                self.ped.bytes(),
                signature(&self.ped),
                self.sink.bytes(),
                signature(&self.sink)
            ])?;
        Ok(connection.last_insert_rowid())
    }
}

impl Batch {
    fn sign(&mut self, by: Signatory, signer: &dyn GroupSigner) -> Result<(), StoreFault> {
        if self.leaves.is_empty() {
            return Ok(());
        }
        let size = u32::try_from(self.leaves.len());
        let size = size.map_err(|_| SignRefused("batch is too large".to_owned()))?;
        let root = root(self.leaves.iter().copied());
        self.signature = Some(signer.sign_batch(by, &root, size)?);
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        let hashes: Vec<Hash> = self.leaves.iter().map(|leaf| leaf.0).collect();
        hashes.as_flattened().to_vec()
    }
}

fn said(txn: &Txn) -> Option<&Said> {
    match txn {
        Txn::Dispatch(dispatch) => dispatch.said.as_ref(),
        _ => None,
    }
}

/// What was said of an act.
pub(super) fn read(connection: &Connection, act: ActId) -> Result<Option<SaidRow>, Fault> {
    let sql = "SELECT said.ped, said.sink, said.objects, batches.ped, batches.ped_signature,
               batches.sink, batches.sink_signature
               FROM acts JOIN said ON said.id = acts.said JOIN batches ON batches.id = said.batch
               WHERE acts.id = ?1";
    let row = connection
        .prepare_cached(sql)?
        .query_row([act.as_bytes()], |row| {
            Ok((
                (row.get::<_, Option<u32>>(0)?, row.get::<_, u32>(1)?),
                row.get::<_, Vec<u8>>(2)?,
                (row.get::<_, Vec<u8>>(3)?, row.get::<_, Option<Vec<u8>>>(4)?),
                (row.get::<_, Vec<u8>>(5)?, row.get::<_, Option<Vec<u8>>>(6)?),
            ))
        })
        .optional()?;
    let Some(((ped_at, sink_at), objects, ped, sink)) = row else {
        return Ok(None);
    };
    let corrupt = || Fault::Corrupt("batch".to_owned());
    let place = |(leaves, signature): &(Vec<u8>, Option<Vec<u8>>), index| {
        signed_place(leaves, signature.as_deref(), index).ok_or_else(corrupt)
    };
    let evidence_and_authority = |at| Ok::<_, Fault>([place(&ped, at)?, place(&ped, at + 1)?]);
    Ok(Some(SaidRow {
        objects,
        ped: ped_at.map(evidence_and_authority).transpose()?,
        sink: place(&sink, sink_at)?,
    }))
}

fn signed_place(leaves: &[u8], signature: Option<&[u8]>, index: u32) -> Option<BatchSignature> {
    let (leaves, rest) = leaves.as_chunks::<32>();
    let leaves: Vec<LeafHash> = leaves.iter().copied().map(LeafHash).collect();
    let size = u32::try_from(leaves.len()).ok()?;
    let path = inclusion_proof(index.into(), size.into(), &Leaves(&leaves)).ok()?;
    let place = BatchPlace {
        index,
        size,
        path: BatchPath(path),
    };
    let signature = signature?.try_into().ok()?;
    rest.is_empty()
        .then_some(BatchSignature { place, signature })
}
