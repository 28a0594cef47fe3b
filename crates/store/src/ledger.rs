//! What makes the record provable: who signs its heads, and its tiles as the ledger's readers want them.

use lychgate_ledger::tiles::{TileKind, push_entry};
use lychgate_ledger::{Hash, Tile, TileSource};

use crate::contract::Store;
use crate::outcome::StoreFault;

/// What is signed once a commit group: the record's new head, and the batches of what the PED and the sinks say in it
/// (PROFILE §3). Called by the writer inside the group's transaction, before anything of the group is durable or answered.
pub trait GroupSigner: Send + Sync + 'static {
    /// The signature over the root of one batch ([`lychgate_core::signed::batch_bytes`]), by the signatory's own key.
    /// The group's authorities are consumed only after this has come back.
    ///
    /// # Errors
    /// When it cannot be signed, or does not verify: then nothing of the group is committed.
    fn sign_batch(&self, by: Signatory, root: &Hash, size: u32) -> Result<[u8; 64], SignRefused>;

    /// The signed checkpoint's bytes, by the ledger key, which signs nothing else, for a record of `size` lines with this root.
    ///
    /// # Errors
    /// When it cannot be signed: then nothing of the group is committed.
    fn sign_head(&self, size: u64, root: Hash) -> Result<Vec<u8>, SignRefused>;
}

/// A commit group cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("commit group cannot be signed: {0}")]
pub struct SignRefused(pub String);

/// Who signs a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signatory {
    /// The Protected Enforcement Domain: evidence and authorities.
    Ped,
    /// The finality sinks: verifications.
    Sink,
}

impl From<SignRefused> for StoreFault {
    fn from(why: SignRefused) -> Self {
        Self::Unavailable(why.to_string())
    }
}

/// The record of a store as the ledger's tiles (C2SP tlog-tiles): hash tiles and entry bundles, full ones and partial
/// ones alike. With [`lychgate_ledger::TileReader`] it makes every proof about the record.
#[derive(Clone, Copy)]
pub struct StoreTiles<'s>(pub &'s dyn Store);

impl std::fmt::Debug for StoreTiles<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("StoreTiles")
    }
}

impl TileSource for StoreTiles<'_> {
    type Fault = StoreFault;

    /// `None` for a tile the record has not grown to, and for a bundle with an entry whose bytes were pruned.
    fn tile(&self, tile: Tile) -> Result<Option<Vec<u8>>, StoreFault> {
        let (first, width) = (tile.index() << 8, tile.width());
        match tile.kind() {
            TileKind::Hashes(level) => {
                let hashes = self.0.tree_hashes(level, first, width)?;
                let whole = hashes.len() == usize::from(width);
                Ok(whole.then(|| hashes.as_flattened().to_vec()))
            }
            TileKind::Entries => {
                let rows = self.0.record(first, usize::from(width))?;
                let mut bundle = Vec::new();
                let mut entries = 0;
                for row in rows
                    .iter()
                    .zip(first..)
                    .filter(|(row, at)| row.index == *at)
                {
                    let Some(bytes) = &row.0.bytes else {
                        return Ok(None);
                    };
                    push_entry(&mut bundle, bytes)
                        .map_err(|fault| StoreFault::Corrupt(fault.to_string()))?;
                    entries += 1;
                }
                Ok((entries == usize::from(width)).then_some(bundle))
            }
        }
    }
}
