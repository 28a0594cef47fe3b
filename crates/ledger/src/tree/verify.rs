//! Verifying proofs, strictly: a proof has exactly the hashes its sizes call for.

use lychgate_core::merkle::root_of_path;

use super::prove::{beside, between};
use crate::hash::{Hash, LeafHash, empty_root, node_hash};

/// Whether the tree of `size` leaves with this root has this leaf at `index` (RFC 9162 §2.1.3.2).
///
/// # Errors
/// The first reason why the proof does not show it.
pub fn verify_inclusion(
    leaf: &LeafHash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), ProofFault> {
    if index >= size {
        return Err(ProofFault::Index { index, size });
    }
    check_length(beside(index, size).len(), proof)?;
    let found = root_of_path(leaf, index, size, proof);
    if found == Some(*root) {
        Ok(())
    } else {
        Err(ProofFault::Root)
    }
}

/// Whether the tree of `new_size` leaves with `new_root` only added to the tree of `old_size` leaves with `old_root`
/// (RFC 9162 §2.1.4.2). Every tree only adds to the empty one.
///
/// # Errors
/// The first reason why the proof does not show it.
pub fn verify_consistency(
    old_size: u64,
    old_root: &Hash,
    new_size: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), ProofFault> {
    if old_size > new_size {
        return Err(ProofFault::Order {
            old: old_size,
            new: new_size,
        });
    }
    if old_size == 0 && *old_root != empty_root() {
        return Err(ProofFault::OldRoot);
    }
    if new_size == 0 && *new_root != empty_root() {
        return Err(ProofFault::Root);
    }
    let parts = between(old_size, new_size);
    check_length(parts.len(), proof)?;
    if old_size == 0 {
        return Ok(());
    }
    let mut steps = parts.into_iter().zip(proof).peekable();
    // The innermost subtree: the proof's first hash when it ends where the old tree ends, else the whole old tree.
    let seed = match steps.next_if(|(part, _)| part.from > 0 && part.to == old_size) {
        Some((_, hash)) => *hash,
        None => *old_root,
    };
    let (mut old, mut new) = (seed, seed);
    for (part, hash) in steps {
        if part.from >= old_size {
            new = node_hash(&new, hash);
        } else {
            old = node_hash(hash, &old);
            new = node_hash(hash, &new);
        }
    }
    if old != *old_root {
        Err(ProofFault::OldRoot)
    } else if new != *new_root {
        Err(ProofFault::Root)
    } else {
        Ok(())
    }
}

fn check_length(expected: usize, proof: &[Hash]) -> Result<(), ProofFault> {
    if proof.len() == expected {
        Ok(())
    } else {
        Err(ProofFault::Length {
            expected,
            found: proof.len(),
        })
    }
}

/// A proof shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    /// The tree has no such leaf.
    #[error("tree of {size} leaves has no leaf {index}")]
    Index {
        /// The leaf.
        index: u64,
        /// The tree's size.
        size: u64,
    },
    /// The older tree is the larger one.
    #[error("tree of {old} leaves cannot be an older state of one of {new}")]
    Order {
        /// The size said to be older.
        old: u64,
        /// The size said to be newer.
        new: u64,
    },
    /// Too few or too many hashes.
    #[error("proof must have {expected} hashes, not {found}")]
    Length {
        /// Hashes that these sizes call for.
        expected: usize,
        /// Hashes there are.
        found: usize,
    },
    /// The hashes lead to another root than the tree's, or the newer tree's.
    #[error("proof leads to another root")]
    Root,
    /// The hashes lead to another root than the older tree's.
    #[error("proof leads to another root for the older tree")]
    OldRoot,
}
