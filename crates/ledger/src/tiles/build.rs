//! Building hash tiles as the log grows.

use super::{ReadFault, TOP, Tile, TileKind, TileSource, WIDTH, count, read::hashes_of};
use crate::hash::{Hash, LeafHash};
use crate::tree::{Frontier, fold};

/// Turns leaf hashes into hash tiles (tlog-tiles "Merkle Tree", "Partial Tiles"): each full tile once, when its last
/// hash is there, and the partial ones whenever asked. Holds at most 255 hashes a level, so the log may be as long as
/// it likes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileBuilder {
    frontier: Frontier,
    // INVARIANT: at each level the hashes right of the last full tile, as `frontier` says: `count(size, level) % 256`.
    open: [Vec<Hash>; TOP as usize + 1],
}

impl TileBuilder {
    /// Of the empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on from a tree whose partial tiles were kept. They are believed only when they are exactly what the kept
    /// frontier was made of.
    ///
    /// # Errors
    /// When a partial tile cannot be read or belongs to another tree.
    pub fn resume<S: TileSource>(
        frontier: Frontier,
        source: &S,
    ) -> Result<Self, ResumeFault<S::Fault>> {
        let mut open: [Vec<Hash>; TOP as usize + 1] = Default::default();
        let mut peaks = Vec::new();
        for (level, hashes) in (0..=TOP).zip(&mut open).rev() {
            let count = count(frontier.size(), level);
            // The remainder is below 256.
            let width = (count % 256) as u16;
            if let Some(tile) = Tile::new(TileKind::Hashes(level), count / 256, width) {
                *hashes = hashes_of(tile, source).map_err(ResumeFault::Read)?;
            }
            peaks.extend(perfect(hashes));
        }
        if peaks == frontier.peaks() {
            Ok(Self { frontier, open })
        } else {
            Err(ResumeFault::OtherTree)
        }
    }

    /// The tree so far.
    #[must_use]
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Appends a leaf; hands over each tile that it makes full, with its bytes' hashes.
    pub fn append(&mut self, leaf: LeafHash, mut full: impl FnMut(Tile, &[Hash])) {
        let open = &mut self.open;
        self.frontier.append_with(leaf, |node, hash| {
            let level = node.level() / 8;
            let Some(hashes) = open.get_mut(usize::from(level)) else {
                return;
            };
            if node.level() % 8 != 0 {
                return;
            }
            hashes.push(*hash);
            if hashes.len() == usize::from(WIDTH) {
                let kind = TileKind::Hashes(level);
                if let Some(tile) = Tile::new(kind, node.index() / 256, WIDTH) {
                    full(tile, hashes);
                }
                hashes.clear();
            }
        });
    }

    /// The partial tiles of the tree as it is, each with its bytes' hashes.
    pub fn partial(&self) -> impl Iterator<Item = (Tile, &[Hash])> {
        let levels = (0..=TOP).zip(&self.open);
        levels.filter_map(|(level, hashes)| {
            let width = u16::try_from(hashes.len()).ok()?;
            let index = count(self.frontier.size(), level) / 256;
            Some((
                Tile::new(TileKind::Hashes(level), index, width)?,
                &hashes[..],
            ))
        })
    }
}

/// The roots of the perfect subtrees side by side over these hashes, the largest first.
fn perfect(hashes: &[Hash]) -> Vec<Hash> {
    let mut rest = hashes;
    let mut roots = Vec::new();
    while let Some(level) = rest.len().checked_ilog2() {
        let (subtree, after) = rest.split_at(1 << level);
        roots.extend(perfect_root(subtree));
        rest = after;
    }
    roots
}

/// The root over a power of two of hashes.
pub(super) fn perfect_root(hashes: &[Hash]) -> Option<Hash> {
    let mut row = hashes.to_vec();
    while row.len() > 1 {
        row = row.chunks(2).filter_map(fold).collect();
    }
    row.pop()
}

/// Building cannot go on from what was kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeFault<E: std::error::Error + 'static> {
    /// A partial tile cannot be read.
    #[error("partial tile cannot be read")]
    Read(#[source] ReadFault<E>),
    /// The partial tiles and the kept frontier are of different trees.
    #[error("partial tiles do not belong to the kept tree")]
    OtherTree,
}
