//! Making proofs, and the walks down the tree that making and verifying share.

use std::fmt;

use super::{HashReader, Node, fold, split};
use crate::hash::{Hash, LeafHash, empty_root, root};

/// The inclusion proof of a leaf in the tree of `size` leaves, from the leaf upwards (RFC 9162 §2.1.3.1).
///
/// # Errors
/// When the tree has no such leaf, or a hash cannot be read.
pub fn inclusion_proof<R: HashReader>(
    index: u64,
    size: u64,
    reader: &R,
) -> Result<Vec<Hash>, ProveFault<R::Fault>> {
    if index >= size {
        return Err(ProveFault::Index { index, size });
    }
    read(&beside(index, size), reader)
}

/// The consistency proof between the trees of `old` and `new` leaves (RFC 9162 §2.1.4.1). Empty when `old` is 0 or
/// `new`.
///
/// # Errors
/// When `old` is more than `new`, or a hash cannot be read.
pub fn consistency_proof<R: HashReader>(
    old: u64,
    new: u64,
    reader: &R,
) -> Result<Vec<Hash>, ProveFault<R::Fault>> {
    if old > new {
        return Err(ProveFault::Order { old, new });
    }
    read(&between(old, new), reader)
}

/// The root the tree had when it had `size` leaves.
///
/// # Errors
/// When a hash cannot be read.
pub fn root_at<R: HashReader>(size: u64, reader: &R) -> Result<Hash, ProveFault<R::Fault>> {
    if size == 0 {
        return Ok(empty_root());
    }
    let whole = Span { from: 0, to: size };
    read(&[whole], reader).map(|hashes| hashes.first().copied().unwrap_or_else(empty_root))
}

/// A proof cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProveFault<E: std::error::Error + 'static> {
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
    /// A hash cannot be read.
    #[error("hashes of the tree cannot be read")]
    Read(#[source] E),
    /// The reader gave fewer or more hashes than it was asked for.
    #[error("asked for {asked} hashes of the tree, read {given}")]
    Count {
        /// Nodes asked for.
        asked: usize,
        /// Hashes given.
        given: usize,
    },
}

/// Leaves `from..to`, never none; a subtree of RFC 9162's recursive definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Span {
    fn leaves(self) -> u64 {
        self.to - self.from
    }

    /// Its two halves, when it has more than one leaf.
    fn halves(self) -> Option<(Self, Self)> {
        (self.leaves() > 1).then(|| {
            let at = self.from + split(self.leaves());
            let left = Self { to: at, ..self };
            (left, Self { from: at, ..self })
        })
    }

    /// The perfect subtrees it consists of, the largest first.
    fn nodes(self) -> impl Iterator<Item = Node> {
        let mut from = self.from;
        std::iter::from_fn(move || {
            let level = (self.to - from).checked_ilog2()?;
            let node = Node {
                level: level as u8,
                index: from >> level,
            };
            from += 1 << level;
            Some(node)
        })
    }
}

/// The subtrees beside the way from the root to a leaf, the leaf's own sibling first. `index` < `size`.
pub(super) fn beside(index: u64, size: u64) -> Vec<Span> {
    let mut way = Span { from: 0, to: size };
    let mut beside = Vec::new();
    while let Some((left, right)) = way.halves() {
        let (taken, other) = if index < left.to {
            (left, right)
        } else {
            (right, left)
        };
        beside.push(other);
        way = taken;
    }
    beside.reverse();
    beside
}

/// The subtrees of a consistency proof, in its order. Starts with the last whole part of the old tree, unless the old
/// tree is itself a subtree of the new one. `old` <= `new`.
pub(super) fn between(old: u64, new: u64) -> Vec<Span> {
    let mut parts = Vec::new();
    if old == 0 {
        return parts;
    }
    let mut way = Span { from: 0, to: new };
    while way.to != old {
        let Some((left, right)) = way.halves() else {
            break;
        };
        let (taken, other) = if old <= left.to {
            (left, right)
        } else {
            (right, left)
        };
        parts.push(other);
        way = taken;
    }
    if way.from > 0 {
        parts.push(way);
    }
    parts.reverse();
    parts
}

/// Reads every node of the spans at once and gives one hash a span.
fn read<R: HashReader>(spans: &[Span], reader: &R) -> Result<Vec<Hash>, ProveFault<R::Fault>> {
    let nodes: Vec<Node> = spans.iter().flat_map(|span| span.nodes()).collect();
    let hashes = reader.hashes(&nodes).map_err(ProveFault::Read)?;
    let miscount = || ProveFault::Count {
        asked: nodes.len(),
        given: hashes.len(),
    };
    if hashes.len() != nodes.len() {
        return Err(miscount());
    }
    let mut rest = hashes.as_slice();
    let mut folded = Vec::with_capacity(spans.len());
    for span in spans {
        let (own, others) = rest
            .split_at_checked(span.nodes().count())
            .ok_or_else(miscount)?;
        folded.push(fold(own).ok_or_else(miscount)?);
        rest = others;
    }
    Ok(folded)
}

/// A reader for whoever holds every leaf hash: each read hashes the leaves under the node again.
#[derive(Clone, Copy)]
pub struct Leaves<'a>(pub &'a [LeafHash]);

impl fmt::Debug for Leaves<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Leaves({})", self.0.len())
    }
}

impl HashReader for Leaves<'_> {
    type Fault = NoSuchNode;

    fn hashes(&self, nodes: &[Node]) -> Result<Vec<Hash>, NoSuchNode> {
        let hash = |node: &Node| {
            let from = usize::try_from(node.first_leaf()).ok()?;
            let leaves = self
                .0
                .get(from..)?
                .get(..1usize.checked_shl(node.level.into())?)?;
            Some(root(leaves.iter().copied()))
        };
        let read = nodes.iter().map(|node| hash(node).ok_or(NoSuchNode(*node)));
        read.collect()
    }
}

/// The tree that is read has no such node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tree has no node {} at level {}", .0.index, .0.level)]
pub struct NoSuchNode(pub Node);
