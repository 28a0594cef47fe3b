//! Reading the tree's hashes from tiles.

use super::build::perfect_root;
use super::{Tile, TileKind, WIDTH, count};
use crate::hash::Hash;
use crate::tree::{HashReader, Node};

/// Where tiles (tlog-tiles "APIs") are kept: a folder, an HTTP server, rows. [`Tile`]'s text form is the path.
pub trait TileSource {
    /// Why a tile cannot be read.
    type Fault: std::error::Error + 'static;

    /// The tile's bytes; `None` when there is no such tile (any more).
    ///
    /// # Errors
    /// When it cannot be told.
    fn tile(&self, tile: Tile) -> Result<Option<Vec<u8>>, Self::Fault>;
}

/// Reads nodes of a log of a given size from its hash tiles (tlog-tiles "Merkle Tree"). A partial tile that is gone is
/// looked for in the full one.
///
/// Tiles are checked for their length only: whoever makes a proof from them verifies it against a head.
#[derive(Clone, Copy, Debug)]
pub struct TileReader<S> {
    source: S,
    size: u64,
}

impl<S: TileSource> TileReader<S> {
    /// Reads from the tiles of a log of `size` entries.
    #[must_use]
    pub fn new(source: S, size: u64) -> Self {
        Self { source, size }
    }

    /// The tile that has the hashes under a node.
    fn tile_of(&self, node: Node) -> Option<Tile> {
        let level = node.level() / 8;
        let index = (node.index() << (node.level() % 8)) / 256;
        let count = count(self.size, level);
        let width = if index < count / 256 {
            WIDTH
        } else {
            // The remainder is below 256.
            (count % 256) as u16
        };
        Tile::new(TileKind::Hashes(level), index, width)
    }
}

impl<S: TileSource> HashReader for TileReader<S> {
    type Fault = ReadFault<S::Fault>;

    fn hashes(&self, nodes: &[Node]) -> Result<Vec<Hash>, Self::Fault> {
        let mut read: Vec<(Tile, Vec<Hash>)> = Vec::new();
        let mut found = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let outside = ReadFault::Outside {
                node,
                size: self.size,
            };
            let tile = self.tile_of(node).filter(|_| node.within(self.size));
            let Some(tile) = tile else {
                return Err(outside);
            };
            let at = match read.iter().position(|(other, _)| *other == tile) {
                Some(at) => at,
                None => {
                    read.push((tile, hashes_of(tile, &self.source)?));
                    read.len() - 1
                }
            };
            let below = node.level() % 8;
            // Below 256, whatever the machine's word.
            let first = ((node.index() << below) % 256) as usize;
            let under = read
                .get(at)
                .and_then(|(_, hashes)| hashes.get(first..first + (1 << below)));
            found.push(under.and_then(perfect_root).ok_or(outside)?);
        }
        Ok(found)
    }
}

/// The hashes of a tile, from the full one in its place when it is gone.
pub(super) fn hashes_of<S: TileSource>(
    tile: Tile,
    source: &S,
) -> Result<Vec<Hash>, ReadFault<S::Fault>> {
    let get = |tile| source.tile(tile).map_err(ReadFault::Source);
    let (found, bytes) = match get(tile)? {
        Some(bytes) => (tile, bytes),
        None if tile.is_full() => return Err(ReadFault::Missing(tile)),
        None => match get(tile.full())? {
            Some(bytes) => (tile.full(), bytes),
            None => return Err(ReadFault::Missing(tile)),
        },
    };
    let (hashes, rest) = bytes.as_chunks();
    if rest.is_empty() && hashes.len() == usize::from(found.width()) {
        Ok(hashes.iter().take(tile.width().into()).copied().collect())
    } else {
        Err(ReadFault::Length {
            tile: found,
            found: bytes.len(),
        })
    }
}

/// A hash cannot be read from tiles.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadFault<E: std::error::Error + 'static> {
    /// The tree is too small for the node.
    #[error("tree of {size} leaves has no node {} at level {}", node.index(), node.level())]
    Outside {
        /// The node asked for.
        node: Node,
        /// The tree's size.
        size: u64,
    },
    /// Never written, or pruned.
    #[error("`{0}` is missing")]
    Missing(Tile),
    /// Not 32 bytes for each hash.
    #[error("`{tile}` has {found} bytes instead of {}", 32 * u32::from(tile.width()))]
    Length {
        /// The tile.
        tile: Tile,
        /// Bytes found.
        found: usize,
    },
    /// The source failed.
    #[error("tiles cannot be read")]
    Source(#[source] E),
}
