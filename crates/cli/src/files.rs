//! Files of the configuration: read within bounds, written whole or not at all, closed to other users.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lychgate_core::digest::b64;
use lychgate_core::outside::Entropy as _;

use crate::outcome::{Outcome, Stop};
use crate::places::shown;

/// A whole file of at most `limit` bytes; `None` when there is none.
pub(crate) fn read(path: &Path, limit: u64) -> Outcome<Option<Vec<u8>>> {
    let unreadable =
        |fault: io::Error| Stop::usage(format!("cannot read `{}`: {fault}", shown(path)));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(fault) => return Err(unreadable(fault)),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(Stop::usage(format!(
            "`{}` has more than {limit} bytes",
            shown(path)
        )));
    }
    Ok(Some(bytes))
}

/// Writes a file in one step, mode 0600; its folder is made with mode 0700 when there is none. Through a symbolic link
/// the file behind it is written and the link stays.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let unwritable =
        |fault: io::Error| Stop::usage(format!("cannot write `{}`: {fault}", shown(path)));
    let folder = real.parent().unwrap_or(Path::new("/")).to_owned();
    make_folder(&folder).map_err(unwritable)?;
    let temporary = temporary(&folder)?;
    let written = write_new(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, &real))
        .and_then(|()| File::open(&folder)?.sync_all());
    if written.is_err() {
        // The first fault is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(unwritable)
}

/// Writes a file, or takes it away: how things were before.
pub(crate) fn restore(path: &Path, bytes: Option<&[u8]>) -> Outcome {
    match bytes {
        Some(bytes) => write(path, bytes),
        None => match fs::remove_file(path) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(Stop::fault(format!(
                "cannot remove `{}`: {fault}",
                shown(path)
            ))),
            _ => Ok(()),
        },
    }
}

/// A folder of mode 0700, and its parents; one that is there stays as it is.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn temporary(folder: &Path) -> Outcome<PathBuf> {
    let mut random = [0; 9];
    lychgate_keys::SystemEntropy
        .fill(&mut random)
        .map_err(Stop::fault)?;
    Ok(folder.join(format!(".lychgate-new-{}", b64::encode(&random))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_closed_to_others_and_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/file");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(read(&path, 3).unwrap().unwrap(), b"two");
        assert!(read(&path, 2).is_err());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let parent = path.parent().unwrap();
        assert_eq!(
            fs::metadata(parent).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(
            fs::read_dir(parent).unwrap().count(),
            1,
            "nothing is left beside it"
        );
        restore(&path, None).unwrap();
        assert!(read(&path, 3).unwrap().is_none());
    }

    #[test]
    fn a_link_to_the_configuration_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }
}
