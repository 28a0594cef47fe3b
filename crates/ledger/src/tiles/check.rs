//! Checking a whole folder of tiles against a head: an export, an archive, what a server gave.

use super::{BundleFault, ReadFault, Tile, TileBuilder, TileKind, TileSource, WIDTH, read_bundle};
use crate::hash::{Hash, LeafHash, leaf_hash};

/// Recomputes every hash tile of a log of `size` entries from its entries, and compares tiles and root (tlog-tiles
/// "Merkle Tree", "Log entries"). A bundle that was pruned is stood in for by its level 0 tile. One bundle in memory at
/// a time.
///
/// # Errors
/// The first tile that is missing or not what the entries make it, or another root than the head's.
pub fn check_tiles<S: TileSource>(
    size: u64,
    root: &Hash,
    source: &S,
) -> Result<Checked, TileFinding<S::Fault>> {
    let mut builder = TileBuilder::new();
    let mut without_bytes = 0;
    for bundle in Tile::all(size).take_while(|tile| tile.kind() == TileKind::Entries) {
        let leaves = match get(bundle, source)? {
            Some(bytes) => from_entries(bundle, &bytes)?,
            None => {
                without_bytes += u64::from(bundle.width());
                from_hashes(bundle, source)?
            }
        };
        let mut made: Vec<(Tile, Vec<Hash>)> = Vec::new();
        for leaf in leaves {
            builder.append(leaf, |tile, hashes| made.push((tile, hashes.to_vec())));
        }
        for (tile, hashes) in made {
            compare(tile, &hashes, source)?;
        }
    }
    for (tile, hashes) in builder.partial() {
        compare(tile, hashes, source)?;
    }
    if builder.frontier().root() == *root {
        Ok(Checked {
            size,
            without_bytes,
        })
    } else {
        Err(TileFinding::Root)
    }
}

fn get<S: TileSource>(tile: Tile, source: &S) -> Result<Option<Vec<u8>>, TileFinding<S::Fault>> {
    source
        .tile(tile)
        .map_err(|fault| TileFinding::Read(ReadFault::Source(fault)))
}

fn from_entries<E: std::error::Error + 'static>(
    bundle: Tile,
    bytes: &[u8],
) -> Result<Vec<LeafHash>, TileFinding<E>> {
    let entries = read_bundle(bytes, bundle.width());
    let entries = entries.map_err(|fault| TileFinding::Bundle {
        tile: bundle,
        fault,
    })?;
    Ok(entries.into_iter().map(leaf_hash).collect())
}

fn from_hashes<S: TileSource>(
    bundle: Tile,
    source: &S,
) -> Result<Vec<LeafHash>, TileFinding<S::Fault>> {
    let missing = TileFinding::Read(ReadFault::Missing(bundle));
    let tile = Tile::new(TileKind::Hashes(0), bundle.index(), bundle.width()).ok_or(missing)?;
    let hashes = super::read::hashes_of(tile, source)?;
    Ok(hashes.into_iter().map(LeafHash).collect())
}

fn compare<S: TileSource>(
    tile: Tile,
    hashes: &[Hash],
    source: &S,
) -> Result<(), TileFinding<S::Fault>> {
    let found = super::read::hashes_of(tile, source)?;
    let differs = found
        .iter()
        .zip(hashes)
        .position(|(one, other)| one != other);
    match differs {
        // At most 255.
        Some(at) => Err(TileFinding::Differs {
            tile,
            at: at as u16 % WIDTH,
        }),
        None => Ok(()),
    }
}

/// Tiles without a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// How many entries.
    pub size: u64,
    /// How many of them had only their leaf hash left.
    pub without_bytes: u64,
}

/// The first difference between tiles and entries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TileFinding<E: std::error::Error + 'static> {
    /// A tile is missing, of the wrong length, or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFault<E>),
    /// A bundle is malformed.
    #[error("`{tile}` is malformed")]
    Bundle {
        /// The bundle.
        tile: Tile,
        /// How.
        #[source]
        fault: BundleFault,
    },
    /// A hash is not the one that entries or lower tiles make.
    #[error("hash {at} of `{tile}` is not that of what lies under it")]
    Differs {
        /// The tile.
        tile: Tile,
        /// The hash in it, from 0: level 0's is the leaf's.
        at: u16,
    },
    /// Tiles and entries agree with each other and not with the head.
    #[error("tiles lead to another root than the head's")]
    Root,
}
