//! An exported log: C2SP tlog-tiles in a folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use lychgate_ledger::tiles::{LONGEST_ENTRY, WIDTH};
use lychgate_ledger::{Tile, TileSource};

use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::shown;

/// One.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// A new one: the folder is made, or is there and empty.
    pub(super) fn create(path: &Path) -> Outcome<Self> {
        let unwritable =
            |fault: io::Error| Stop::usage(format!("cannot write `{}`: {fault}", shown(path)));
        files::make_folder(path).map_err(unwritable)?;
        if fs::read_dir(path).map_err(unwritable)?.next().is_some() {
            return Err(Stop::usage(format!(
                "`{}` is not empty; an export goes into a folder of its own",
                shown(path)
            )));
        }
        Ok(Self(path.to_owned()))
    }

    /// Writes a tile's file. Durable once [`Folder::put_checkpoint`] has returned, as far as the checkpoint goes.
    pub(super) fn put(&self, tile: Tile, bytes: &[u8]) -> Outcome {
        let path = self.0.join(tile.to_string());
        let written = path
            .parent()
            .map_or(Ok(()), files::make_folder)
            .and_then(|()| {
                OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path)
            })
            .and_then(|mut file| file.write_all(bytes));
        written.map_err(|fault| Stop::usage(format!("cannot write `{}`: {fault}", shown(&path))))
    }

    /// Writes the head; last, so that an export with one is whole.
    pub(super) fn put_checkpoint(&self, note: &[u8]) -> Outcome {
        files::write(&self.0.join(CHECKPOINT), note)
    }

    /// The head.
    pub(super) fn checkpoint(&self) -> Outcome<Vec<u8>> {
        let path = self.0.join(CHECKPOINT);
        files::read(&path, MOST_NOTE)?.ok_or_else(|| {
            Stop::usage(format!(
                "there is no `{}`: an export that is whole has one",
                shown(&path)
            ))
        })
    }
}

impl TileSource for Folder {
    type Fault = io::Error;

    fn tile(&self, tile: Tile) -> Result<Option<Vec<u8>>, io::Error> {
        let file = match File::open(self.0.join(tile.to_string())) {
            Ok(file) => file,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault),
        };
        let mut bytes = Vec::new();
        file.take(MOST_BUNDLE).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

const CHECKPOINT: &str = "checkpoint";
/// The longest signed note.
const MOST_NOTE: u64 = 1_000_000;
/// The longest entry bundle.
const MOST_BUNDLE: u64 = WIDTH as u64 * (LONGEST_ENTRY as u64 + 2);
