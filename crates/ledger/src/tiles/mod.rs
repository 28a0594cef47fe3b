//! The log as immutable files: C2SP tlog-tiles.
//!
//! A hash tile holds up to 256 hashes of one level, eight tree levels apart; an entry bundle holds the entries under a
//! level 0 tile. The rightmost ones are partial and carry their width in their path, so that no file ever changes.

mod build;
mod bundle;
mod check;
mod read;

pub use self::build::{ResumeFault, TileBuilder};
pub use self::bundle::{BundleFault, EntryTooLong, LONGEST_ENTRY, push_entry, read_bundle};
pub use self::check::{Checked, TileFinding, check_tiles};
pub use self::read::{ReadFault, TileReader, TileSource};

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::tree::Node;

/// What a tile holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileKind {
    /// Hashes of tree level 8 times this one. 0 to 7: a `u64` counts no more leaves.
    Hashes(u8),
    /// The entries themselves (tlog-tiles "Log entries").
    Entries,
}

/// One file of the log's layout (tlog-tiles "Merkle Tree"): `tile/<L>/<N>[.p/<W>]` or `tile/entries/<N>[.p/<W>]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    // INVARIANT: level <= 7, 1 <= width <= 256, and every leaf under the full tile has a number that fits in a u64.
    kind: TileKind,
    index: u64,
    width: u16,
}

impl Tile {
    /// The tile, if a log of `u64` leaves can have it: `width` is 1 to 256, 256 being a full one.
    #[must_use]
    pub fn new(kind: TileKind, index: u64, width: u16) -> Option<Self> {
        let tile = Self { kind, index, width };
        let last = u64::MAX.checked_shr(8 * (u32::from(tile.level()) + 1));
        let fits =
            tile.level() <= TOP && index <= last.unwrap_or(0) && (1..=WIDTH).contains(&width);
        fits.then_some(tile)
    }

    /// What it holds.
    #[must_use]
    pub fn kind(self) -> TileKind {
        self.kind
    }

    /// Its place among the tiles of its kind.
    #[must_use]
    pub fn index(self) -> u64 {
        self.index
    }

    /// How many hashes or entries it holds, 1 to 256.
    #[must_use]
    pub fn width(self) -> u16 {
        self.width
    }

    /// Whether it will never be replaced by a wider one.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.width == WIDTH
    }

    /// The full tile at this place.
    #[must_use]
    pub fn full(self) -> Self {
        Self {
            width: WIDTH,
            ..self
        }
    }

    /// Its level; an entry bundle counts as level 0.
    #[must_use]
    pub fn level(self) -> u8 {
        match self.kind {
            TileKind::Hashes(level) => level,
            TileKind::Entries => 0,
        }
    }

    /// The first leaf under it.
    #[must_use]
    pub fn start_index(self) -> u64 {
        let shift = 8 * (u32::from(self.level()) + 1);
        self.index.checked_shl(shift).unwrap_or(0)
    }

    /// One past the last leaf under the full tile at this place; `u64::MAX` where that is one too many.
    #[must_use]
    pub fn end_index(self) -> u64 {
        let shift = 8 * (u32::from(self.level()) + 1);
        let end = (u128::from(self.index) + 1) << shift;
        u64::try_from(end).unwrap_or(u64::MAX)
    }

    /// The nodes whose hashes it holds, or would hold the leaf hashes of: read them in order to write it.
    pub fn nodes(self) -> impl ExactSizeIterator<Item = Node> {
        let (level, first) = (8 * self.level(), self.index << 8);
        (0..self.width)
            .filter_map(move |at| Node::new(level, first + u64::from(at)))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Whether a log that publishes nothing below entry `minimum_index` may drop it (tlog-tiles "Pruning"): every entry
    /// from there on, and every proof about such entries and about trees of at least that size, can still be had.
    #[must_use]
    pub fn may_be_pruned(self, minimum_index: u64) -> bool {
        self.is_full() && self.end_index() <= minimum_index
    }

    /// Every tile of a log of `size` entries, partial ones for the rightmost.
    pub fn all(size: u64) -> impl Iterator<Item = Self> {
        Self::growth(0, size)
    }

    /// The tiles that a log of `new` entries has and the same log with `old` entries had not: what growth writes. Level
    /// by level, entries first; one at a time, so that any growth takes little memory.
    pub fn growth(old: u64, new: u64) -> impl Iterator<Item = Self> {
        let kinds = std::iter::once(TileKind::Entries).chain((0..=TOP).map(TileKind::Hashes));
        kinds.flat_map(move |kind| {
            let level = Self {
                kind,
                index: 0,
                width: 1,
            }
            .level();
            let (old, new) = (count(old, level), count(new, level));
            let tile = move |index, width| Self { kind, index, width };
            let full = (old / 256..new / 256).map(move |index| tile(index, WIDTH));
            // The remainder is below 256.
            let width = (new % 256) as u16;
            let partial = (new > old && width > 0).then(|| tile(new / 256, width));
            full.chain(partial)
        })
    }
}

/// The bundles (by their index) whose entries may be archived and dropped while every hash tile stays: no proof about
/// any entry, old or new, and no root is lost with them; only the entries' own bytes are.
#[must_use]
pub fn prunable_bundles(minimum_index: u64) -> Range<u64> {
    0..minimum_index / 256
}

/// How many hashes of a tile level (or entries, level 0) a tree of `size` leaves has.
fn count(size: u64, level: u8) -> u64 {
    size.checked_shr(8 * u32::from(level)).unwrap_or(0)
}

impl fmt::Display for Tile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TileKind::Hashes(level) => write!(out, "tile/{level}/")?,
            TileKind::Entries => out.write_str("tile/entries/")?,
        }
        let groups = self.index.checked_ilog(1000).unwrap_or(0);
        for power in (1..=groups).rev() {
            write!(out, "x{:03}/", self.index / 1000u64.pow(power) % 1000)?;
        }
        write!(out, "{:03}", self.index % 1000)?;
        if self.is_full() {
            Ok(())
        } else {
            write!(out, ".p/{}", self.width)
        }
    }
}

/// A text that is no tile's path in its one spelling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tile's path")]
pub struct NotATile(String);

impl FromStr for Tile {
    type Err = NotATile;

    fn from_str(path: &str) -> Result<Self, NotATile> {
        // Read loosely, then held against the one spelling.
        let tile = loosely(path).filter(|tile| tile.to_string() == path);
        tile.ok_or_else(|| NotATile(path.to_owned()))
    }
}

fn loosely(path: &str) -> Option<Tile> {
    let (kind, rest) = path.strip_prefix("tile/")?.split_once('/')?;
    let kind = match kind {
        "entries" => TileKind::Entries,
        level => TileKind::Hashes(level.parse().ok()?),
    };
    let (number, width) = match rest.split_once(".p/") {
        Some((number, width)) => (number, width.parse().ok()?),
        None => (rest, WIDTH),
    };
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    Tile::new(kind, digits.parse().ok()?, width)
}

/// Hashes or entries in a full tile.
pub const WIDTH: u16 = 256;
/// The highest level of tiles.
const TOP: u8 = 7;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_the_specification_s() {
        let path = |kind, index, width| Tile::new(kind, index, width).unwrap().to_string();
        assert_eq!(
            path(TileKind::Hashes(0), 1_234_067, 256),
            "tile/0/x001/x234/067"
        );
        assert_eq!(path(TileKind::Hashes(2), 0, 1), "tile/2/000.p/1");
        assert_eq!(path(TileKind::Entries, 999, 255), "tile/entries/999.p/255");
        assert_eq!(path(TileKind::Entries, 1000, 256), "tile/entries/x001/000");
        let last = Tile::new(TileKind::Entries, u64::MAX >> 8, 256).unwrap();
        assert_eq!(last.to_string().parse(), Ok(last));
        assert_eq!(last.end_index(), u64::MAX);
    }

    #[test]
    fn other_spellings_are_refused() {
        for path in [
            "",
            "tile",
            "tile/0",
            "tile/0/",
            "tile/0/0",
            "tile/0/00",
            "tile/0/1000",
            "tile/00/000",
            "tile/8/000",
            "tile/64/000",
            "tile/-1/000",
            "tile/+1/000",
            "tile/0/x000/000",
            "tile/0/x001/x067",
            "tile/0/001/067",
            "tile/0/000.p/0",
            "tile/0/000.p/256",
            "tile/0/000.p/01",
            "tile/0/000.p/",
            "tile/0/000.p",
            "tile/0/000/",
            "/tile/0/000",
            "tile/entries/000.p/1/",
            "tile/data/000",
            "tile/7/001",
            "tile/0/x999/x999/x999/x999/x999/x999/999",
            "tile/0/\u{661}00",
        ] {
            assert!(path.parse::<Tile>().is_err(), "{path}");
        }
    }

    #[test]
    fn a_log_of_70_000_has_the_specification_s_tiles() {
        let tiles: Vec<Tile> = Tile::all(70_000).collect();
        let of = |kind| tiles.iter().filter(move |tile| tile.kind() == kind);
        let shape = |kind| {
            let partial: Vec<u16> = of(kind)
                .filter(|tile| !tile.is_full())
                .map(|tile| tile.width())
                .collect();
            (of(kind).filter(|tile| tile.is_full()).count(), partial)
        };
        assert_eq!(shape(TileKind::Entries), (273, vec![112]));
        assert_eq!(shape(TileKind::Hashes(0)), (273, vec![112]));
        assert_eq!(shape(TileKind::Hashes(1)), (1, vec![17]));
        assert_eq!(shape(TileKind::Hashes(2)), (0, vec![1]));
        assert_eq!(of(TileKind::Hashes(3)).count(), 0);
        let of_256: Vec<String> = Tile::all(256).map(|tile| tile.to_string()).collect();
        assert_eq!(of_256, ["tile/entries/000", "tile/0/000", "tile/1/000.p/1"]);
        assert_eq!(Tile::all(0).count(), 0);
    }

    #[test]
    fn only_full_tiles_wholly_below_the_minimum_are_pruned() {
        let tile = |path: &str| path.parse::<Tile>().unwrap();
        assert!(tile("tile/0/000").may_be_pruned(256));
        assert!(!tile("tile/0/000").may_be_pruned(255));
        assert!(!tile("tile/0/000.p/3").may_be_pruned(1000));
        assert!(!tile("tile/1/000").may_be_pruned(65_535));
        assert!(tile("tile/1/000").may_be_pruned(65_536));
        assert_eq!(prunable_bundles(1023), 0..3);
    }

    proptest! {
        #[test]
        fn a_path_reads_back(level in 0u8..=7, index: u64, width in 1u16..=256, entries: bool) {
            let kind = if entries { TileKind::Entries } else { TileKind::Hashes(level) };
            let shift = 8 * (u32::from(if entries { 0 } else { level }) + 1);
            let tile = Tile::new(kind, index.checked_shr(shift).unwrap_or(0), width).unwrap();
            prop_assert_eq!(tile.to_string().parse(), Ok(tile));
        }

        #[test]
        fn growth_in_steps_ends_with_every_tile(first in 0u64..70_000, second in 0u64..2000) {
            use std::collections::BTreeSet;
            let end = first + second;
            let stepped: BTreeSet<Tile> = Tile::all(first).chain(Tile::growth(first, end)).collect();
            prop_assert!(Tile::all(end).all(|tile| stepped.contains(&tile)));
            // Nothing that was there is written again.
            let before: BTreeSet<Tile> = Tile::all(first).collect();
            prop_assert!(Tile::growth(first, end).all(|tile| !before.contains(&tile)));
        }
    }
}
