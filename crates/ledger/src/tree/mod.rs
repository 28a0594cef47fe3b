//! The Merkle tree of RFC 9162 §2.1: grown leaf by leaf, proved and verified.
//!
//! [`Frontier`] is all that growing takes: one hash for each binary digit 1 of the size. Proofs read older hashes
//! through a [`HashReader`], a handful for any size.

mod prove;
mod verify;

pub use self::prove::{
    Leaves, NoSuchNode, ProveFault, consistency_proof, inclusion_proof, root_at,
};
pub use self::verify::{ProofFault, verify_consistency, verify_inclusion};

use crate::hash::{Hash, LeafHash, empty_root, node_hash};

/// A perfect subtree (a node of RFC 9162 §2.1.1's tree): the 2^level leaves from `index` * 2^level on. Level 0 is the
/// leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    // INVARIANT: level < 64, and index * 2^level fits in a u64.
    level: u8,
    index: u64,
}

impl Node {
    /// The node, if a log of `u64` leaves can have it.
    #[must_use]
    pub fn new(level: u8, index: u64) -> Option<Self> {
        (level < 64 && index <= u64::MAX >> level).then_some(Self { level, index })
    }

    /// A leaf.
    #[must_use]
    pub fn leaf(index: u64) -> Self {
        Self { level: 0, index }
    }

    /// Its height over the leaves, 0 to 63.
    #[must_use]
    pub fn level(self) -> u8 {
        self.level
    }

    /// How many of its level stand left of it.
    #[must_use]
    pub fn index(self) -> u64 {
        self.index
    }

    /// Its first leaf.
    #[must_use]
    pub fn first_leaf(self) -> u64 {
        self.index << self.level
    }

    /// Whether a tree of `size` leaves has all of it.
    #[must_use]
    pub fn within(self, size: u64) -> bool {
        self.index < size >> self.level
    }
}

/// Reads hashes of the tree (RFC 9162 §2.1.1) that were kept: from tiles ([`crate::TileReader`]), rows, or memory
/// ([`Leaves`]).
///
/// What it gives need not be believed: a proof made of wrong hashes does not verify.
pub trait HashReader {
    /// Why a hash cannot be read.
    type Fault: std::error::Error + 'static;

    /// The hash of each node, in the order asked.
    ///
    /// # Errors
    /// When a node is not there, was pruned, or cannot be read.
    fn hashes(&self, nodes: &[Node]) -> Result<Vec<Hash>, Self::Fault>;
}

/// The state of a growing tree (RFC 9162 §2.1.2): its size and the roots of its perfect subtrees, the largest first. At
/// most 63 hashes.
///
/// Its bytes ([`Self::to_bytes`]) are kept in the same transaction as the leaves that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    // INVARIANT: as many peaks as `size` has binary digits 1.
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    /// The tree without leaves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The roots of its perfect subtrees, the largest first.
    #[must_use]
    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    /// The Merkle Tree Hash (RFC 9162 §2.1.1) of the leaves so far.
    #[must_use]
    pub fn root(&self) -> Hash {
        fold(&self.peaks).unwrap_or_else(empty_root)
    }

    /// Appends a leaf. One node hash on average.
    pub fn append(&mut self, leaf: LeafHash) {
        self.append_with(leaf, |_, _| ());
    }

    /// Appends a leaf and hands over every node that it completes: the leaf itself, then its ancestors, upwards.
    pub fn append_with(&mut self, leaf: LeafHash, mut made: impl FnMut(Node, &Hash)) {
        let (mut node, mut hash) = (Node::leaf(self.size), leaf.0);
        made(node, &hash);
        // As many peaks are full pairs with the new leaf as the size ends in digits 1.
        for _ in 0..self.size.trailing_ones() {
            let Some(left) = self.peaks.pop() else { break };
            hash = node_hash(&left, &hash);
            node = Node {
                level: node.level + 1,
                index: node.index >> 1,
            };
            made(node, &hash);
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    /// Size (8 bytes, big-endian) and peaks (32 bytes each, the largest subtree's first): under 2 KiB. Our own form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + 32 * self.peaks.len());
        out.extend_from_slice(&self.size.to_be_bytes());
        out.extend_from_slice(self.peaks.as_flattened());
        out
    }

    /// Reads what [`Self::to_bytes`] wrote. Whether the hashes are the right ones, only a known root can tell.
    ///
    /// # Errors
    /// When the bytes are not as long as their size says, or the size is over [`MOST_LEAVES`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotAFrontier> {
        let (size, rest) = bytes.split_first_chunk().ok_or(NotAFrontier)?;
        let size = u64::from_be_bytes(*size);
        let (peaks, []) = rest.as_chunks() else {
            return Err(NotAFrontier);
        };
        Self::from_peaks(size, peaks.to_vec()).ok_or(NotAFrontier)
    }

    /// From its parts; `None` when there are not as many peaks as the size has binary digits 1.
    pub(crate) fn from_peaks(size: u64, peaks: Vec<Hash>) -> Option<Self> {
        let fits = size <= MOST_LEAVES && peaks.len() == size.count_ones() as usize;
        fits.then_some(Self { size, peaks })
    }
}

impl Extend<LeafHash> for Frontier {
    fn extend<I: IntoIterator<Item = LeafHash>>(&mut self, leaves: I) {
        leaves.into_iter().for_each(|leaf| self.append(leaf));
    }
}

impl FromIterator<LeafHash> for Frontier {
    fn from_iter<I: IntoIterator<Item = LeafHash>>(leaves: I) -> Self {
        let mut frontier = Self::new();
        frontier.extend(leaves);
        frontier
    }
}

/// Bytes that are no frontier's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kept state of the tree is malformed")]
pub struct NotAFrontier;

/// The hash over perfect subtrees side by side, each smaller than the one before it; `None` over none.
pub(crate) fn fold(subtrees: &[Hash]) -> Option<Hash> {
    let over = subtrees.iter().rev().copied();
    over.reduce(|right, left| node_hash(&left, &right))
}

/// The largest power of two below `leaves`, which must be at least 2: where RFC 9162 §2.1.1 splits.
pub(crate) fn split(leaves: u64) -> u64 {
    1 << (leaves - 1).ilog2()
}

/// The most leaves a frontier has: appending cannot overflow in any lifetime.
pub const MOST_LEAVES: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::hash::leaf_hash;
    use proptest::prelude::*;

    fn leaves(count: u64) -> Vec<LeafHash> {
        (0..count).map(|at| leaf_hash(&at.to_be_bytes())).collect()
    }

    #[test]
    fn state_survives_its_bytes_at_every_size() {
        let (mut live, mut reread) = (Frontier::new(), Frontier::new());
        for leaf in leaves(300) {
            live.append(leaf);
            reread.append(leaf);
            let bytes = reread.to_bytes();
            assert_eq!(bytes.len(), 8 + 32 * live.size().count_ones() as usize);
            reread = Frontier::from_bytes(&bytes).unwrap();
            assert_eq!((reread.size(), reread.root()), (live.size(), live.root()));
        }
    }

    #[test]
    fn state_of_another_length_is_refused() {
        let bytes = leaves(7).into_iter().collect::<Frontier>().to_bytes();
        for cut in 0..bytes.len() {
            assert_eq!(Frontier::from_bytes(&bytes[..cut]), Err(NotAFrontier));
        }
        assert!(Frontier::from_bytes(&[&bytes[..], &[0; 32]].concat()).is_err());
        let mut huge = u64::MAX.to_be_bytes().to_vec();
        huge.extend([0; 64 * 32]);
        assert_eq!(Frontier::from_bytes(&huge), Err(NotAFrontier));
    }

    #[test]
    fn every_node_is_handed_over_once_and_is_the_root_of_its_leaves() {
        let all = leaves(137);
        let (mut frontier, mut made) = (Frontier::new(), Vec::new());
        for leaf in &all {
            frontier.append_with(*leaf, |node, hash| made.push((node, *hash)));
        }
        let expected: u64 = (0..8).map(|level| 137 >> level).sum();
        assert_eq!(made.len() as u64, expected);
        for (node, hash) in made {
            let from = node.first_leaf() as usize;
            let to = from + (1 << node.level());
            assert_eq!(crate::root(all[from..to].iter().copied()), hash);
        }
    }

    proptest! {
        #[test]
        fn batches_of_any_size_end_in_the_same_state(count in 0u64..600, step in 1usize..97) {
            let all = leaves(count);
            let mut stepped = Frontier::new();
            for batch in all.chunks(step) {
                stepped.extend(batch.iter().copied());
            }
            prop_assert_eq!(stepped, all.into_iter().collect::<Frontier>());
        }
    }
}
