//! An archive: the entry bundles of the record's oldest lines (C2SP tlog-tiles), in a folder that the gate does not need.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lychgate_ledger::tiles::{TileKind, WIDTH, read_bundle};
use lychgate_ledger::{LeafHash, Tile, TileSource as _, leaf_hash};

use super::folder::Folder;
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::shown;

/// One.
pub(super) struct Archive {
    folder: Folder,
    /// The bundle read last, by its number; empty when there is none.
    held: Option<(u64, Vec<Vec<u8>>)>,
}

impl Archive {
    /// The one in a folder, which need not exist.
    pub(super) fn at(path: PathBuf) -> Self {
        let folder = Folder(path);
        Self { folder, held: None }
    }

    /// The one in a folder that is there.
    pub(super) fn existing(path: PathBuf) -> Outcome<Self> {
        if path.is_dir() {
            Ok(Self::at(path))
        } else {
            let place = shown(&path);
            Err(Stop::usage(format!("there is no folder `{place}`")))
        }
    }

    /// One archived line; `None` when its bundle is not here.
    pub(super) fn entry(&mut self, index: u64) -> Outcome<Option<&[u8]>> {
        let (bundle, at) = (index / u64::from(WIDTH), index % u64::from(WIDTH));
        if self.held.as_ref().is_none_or(|(held, _)| *held != bundle) {
            let entries = self.read(bundle)?.unwrap_or_default();
            self.held = Some((bundle, entries));
        }
        let held = self.held.as_ref().map(|(_, entries)| entries);
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        Ok(held.and_then(|all| all.get(at)).map(Vec::as_slice))
    }

    fn read(&self, bundle: u64) -> Outcome<Option<Vec<Vec<u8>>>> {
        let Some(tile) = whole(bundle) else {
            return Ok(None);
        };
        let refused = |why: String| Stop::refused(format!("`{tile}` of the archive: {why}"));
        let bytes = self.folder.tile(tile);
        let Some(bytes) = bytes.map_err(|fault| refused(fault.to_string()))? else {
            return Ok(None);
        };
        let entries = read_bundle(&bytes, WIDTH).map_err(|fault| refused(fault.to_string()))?;
        Ok(Some(entries.into_iter().map(<[u8]>::to_vec).collect()))
    }

    /// Puts a bundle there, on stable storage with every folder on the way. One that is there already with these bytes
    /// stays; with others it is somebody else's.
    pub(super) fn put(&self, bundle: u64, bytes: &[u8]) -> Outcome {
        let tile = whole(bundle).ok_or_else(|| Stop::fault("the record is too long"))?;
        let path = self.folder.0.join(tile.to_string());
        let there = self.folder.tile(tile);
        match there.map_err(|fault| unusable(&path, &fault))? {
            Some(there) if there == bytes => {}
            Some(_) => {
                let place = shown(&path);
                return Err(Stop::refused(format!(
                    "`{place}` holds something else; nothing was overwritten and nothing dropped"
                )));
            }
            None => files::write(&path, bytes)?,
        }
        let mut at = path.as_path();
        while let Some(folder) = at.parent() {
            let synced = File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|fault| unusable(folder, &fault))?;
            if at == self.folder.0 {
                break;
            }
            at = folder;
        }
        Ok(())
    }

    /// What is on the disk of a bundle: its bytes, and the leaf hashes they make.
    pub(super) fn read_back(&self, bundle: u64) -> Outcome<(Vec<u8>, Vec<LeafHash>)> {
        let lost = || Stop::fault("what was archived cannot be read back; nothing was dropped");
        let tile = whole(bundle).ok_or_else(lost)?;
        let bytes = self.folder.tile(tile).ok().flatten().ok_or_else(lost)?;
        let entries = read_bundle(&bytes, WIDTH).map_err(|_| lost())?;
        let leaves = entries.into_iter().map(leaf_hash).collect();
        Ok((bytes, leaves))
    }
}

fn whole(bundle: u64) -> Option<Tile> {
    Tile::new(TileKind::Entries, bundle, WIDTH)
}

fn unusable(path: &Path, fault: &io::Error) -> Stop {
    Stop::usage(format!("cannot use `{}`: {fault}", shown(path)))
}
