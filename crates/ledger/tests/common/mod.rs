//! What the tests of this crate share: logs of any size, tiles in memory, keys.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(unreachable_pub, reason = "a test's module is nobody's crate")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;

use lychgate_keys::SigningKey;
use lychgate_ledger::note::SignatureKind;
use lychgate_ledger::tiles::push_entry;
use lychgate_ledger::{
    Checkpoint, Hash, KeyName, LeafHash, SignedCheckpoint, Tile, TileBuilder, TileSource,
    VerifierKey, leaf_hash, root,
};

pub const ORIGIN: &str = "log.example/one";

pub fn entry(at: u64) -> Vec<u8> {
    format!("entry {at}").into_bytes()
}

pub fn leaves(count: u64) -> Vec<LeafHash> {
    (0..count).map(|at| leaf_hash(&entry(at))).collect()
}

pub fn root_of(leaves: &[LeafHash]) -> Hash {
    root(leaves.iter().copied())
}

/// A folder of tiles, by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folder(pub RefCell<BTreeMap<String, Vec<u8>>>);

impl Folder {
    /// The tiles of a log that grew to each of these sizes in turn, partial ones at each.
    pub fn grown(sizes: &[u64]) -> (Self, TileBuilder) {
        let (folder, mut builder) = (Self::default(), TileBuilder::new());
        for size in sizes {
            folder.grow(&mut builder, *size);
        }
        (folder, builder)
    }

    pub fn grow(&self, builder: &mut TileBuilder, size: u64) {
        let old = builder.frontier().size();
        for at in old..size {
            builder.append(leaf_hash(&entry(at)), |tile, hashes| self.put(tile, hashes));
        }
        builder
            .partial()
            .for_each(|(tile, hashes)| self.put(tile, hashes));
        for tile in Tile::growth(old, size)
            .filter(|tile| tile.kind() == lychgate_ledger::tiles::TileKind::Entries)
        {
            let mut bundle = Vec::new();
            for at in 0..u64::from(tile.width()) {
                push_entry(&mut bundle, &entry(tile.start_index() + at)).unwrap();
            }
            self.0.borrow_mut().insert(tile.to_string(), bundle);
        }
    }

    pub fn put(&self, tile: Tile, hashes: &[Hash]) {
        let bytes = hashes.as_flattened().to_vec();
        self.0.borrow_mut().insert(tile.to_string(), bytes);
    }

    pub fn keep(&self, mut keep: impl FnMut(Tile) -> bool) {
        self.0
            .borrow_mut()
            .retain(|path, _| keep(path.parse().unwrap()));
    }
}

impl TileSource for &Folder {
    type Fault = Infallible;

    fn tile(&self, tile: Tile) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.0.borrow().get(&tile.to_string()).cloned())
    }
}

pub fn signer(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

pub fn name(text: &str) -> KeyName {
    KeyName::new(text).unwrap()
}

pub fn key(text: &str, kind: SignatureKind, seed: u8) -> VerifierKey {
    VerifierKey::new(name(text), kind, signer(seed).public()).unwrap()
}

pub fn head(size: u64, root: Hash, seed: u8) -> SignedCheckpoint {
    let head = Checkpoint::new(ORIGIN, size, root).unwrap();
    SignedCheckpoint::sign(head, &signer(seed)).unwrap()
}
