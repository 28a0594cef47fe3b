//! The hashes of RFC 9162's Merkle tree (RFC 6962 gave them first), and the way from a leaf up to the root.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A node's hash, a root among them: 32 bytes of SHA-256 (RFC 9162 §2.1.1).
pub type Hash = [u8; 32];

/// The hash of one leaf. Never the hash of an inner node: the two are told apart by a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeafHash(pub [u8; 32]);

impl fmt::Debug for LeafHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LeafHash(")?;
        self.0
            .iter()
            .try_for_each(|byte| write!(out, "{byte:02x}"))?;
        out.write_str(")")
    }
}

/// The leaf hash of exact bytes: SHA-256 of 0x00 and the bytes (RFC 9162 §2.1.1).
#[must_use]
pub fn leaf_hash(bytes: &[u8]) -> LeafHash {
    leaf_hash_of(&[bytes])
}

/// As [`leaf_hash`], of bytes that lie in pieces.
#[must_use]
pub fn leaf_hash_of(pieces: &[&[u8]]) -> LeafHash {
    let mut hash = Sha256::new().chain_update([0]);
    pieces.iter().for_each(|piece| hash.update(piece));
    LeafHash(hash.finalize().into())
}

/// The hash of an inner node: SHA-256 of 0x01 and its children's hashes (RFC 9162 §2.1.1).
#[must_use]
pub fn node_hash(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    // One piece: the hash's own buffering costs more than this copy.
    let mut both = [1; 65];
    let (first, second) = both[1..].split_at_mut(32);
    first.copy_from_slice(left);
    second.copy_from_slice(right);
    Sha256::digest(both).into()
}

/// The root that a leaf at `index` of `size` leads to by the hashes beside its way, from the leaf upwards
/// (RFC 9162 §2.1.3.2). `None` when the tree has no such leaf, or the way has another length.
#[must_use]
pub fn root_of_path(leaf: &LeafHash, index: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let (mut at, mut last, mut hash) = (index, size - 1, leaf.0);
    for beside in path {
        if last == 0 {
            return None;
        }
        if at & 1 == 1 || at == last {
            hash = node_hash(beside, &hash);
            // An only child is its own parent: up to where it has a sibling on its left.
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = node_hash(&hash, beside);
        }
        at >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(hash)
}
