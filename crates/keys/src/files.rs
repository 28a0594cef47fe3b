//! Files that only their owner may touch: read with suspicion, written whole or not at all.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use lychgate_core::digest::b64;
use lychgate_core::outside::Entropy as _;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::{KeyFault, SystemEntropy};

/// Reads a whole file of at most `limit` bytes that belongs to this user and is closed to all others.
pub(crate) fn read(path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
    // NONBLOCK: a pipe put here must not hold the gate; it has no effect on files.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::LOOP) => {
            return Err(KeyFault::SymbolicLink {
                path: path.to_owned(),
            });
        }
        Err(errno) => return Err(KeyFault::io("open", path)(errno.into())),
    };
    let metadata = file.metadata().map_err(KeyFault::io("read", path))?;
    if !metadata.is_file() {
        return Err(KeyFault::WrongType {
            path: path.to_owned(),
            wanted: "regular file",
        });
    }
    owned_and_closed(path, &metadata, FILE_MODE)?;
    // Room for everything at once: growing would leave copies of a secret behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(limit.saturating_add(1)));
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(KeyFault::io("read", path))?;
    if bytes.len() > limit {
        return Err(KeyFault::Format {
            path: path.to_owned(),
        });
    }
    Ok(bytes)
}

/// Writes a file that must not exist yet.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<(), KeyFault> {
    // A link, unlike a rename, never replaces what is there.
    through_temporary(path, bytes, |temporary| {
        fs::hard_link(temporary, path).map_err(KeyFault::io("create", path))?;
        fs::remove_file(temporary).map_err(KeyFault::io("create", path))
    })
}

/// Writes a file in one step over whatever stood there.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), KeyFault> {
    through_temporary(path, bytes, |temporary| {
        fs::rename(temporary, path).map_err(KeyFault::io("write", path))
    })
}

/// Removes a file, durably; it is no fault when there is none.
pub(crate) fn remove(path: &Path) -> Result<(), KeyFault> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(folder_of(path)),
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(KeyFault::io("remove", path)(fault)),
    }
}

/// Makes a folder with mode 0700, or checks the one that is there.
pub(crate) fn create_folder(path: &Path) -> Result<(), KeyFault> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE);
    builder.create(path).map_err(KeyFault::io("create", path))?;
    check_folder(path)
}

/// A folder that belongs to this user and is closed to all others.
pub(crate) fn check_folder(path: &Path) -> Result<(), KeyFault> {
    let metadata = fs::symlink_metadata(path).map_err(KeyFault::io("read", path))?;
    if metadata.is_symlink() {
        return Err(KeyFault::SymbolicLink {
            path: path.to_owned(),
        });
    }
    if !metadata.is_dir() {
        return Err(KeyFault::WrongType {
            path: path.to_owned(),
            wanted: "folder",
        });
    }
    owned_and_closed(path, &metadata, FOLDER_MODE)
}

fn owned_and_closed(path: &Path, metadata: &Metadata, wanted: u32) -> Result<(), KeyFault> {
    let expected = rustix::process::geteuid().as_raw();
    let path = || path.to_owned();
    if metadata.uid() != expected {
        return Err(KeyFault::Owner {
            path: path(),
            owner: metadata.uid(),
            expected,
        });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyFault::Mode {
            path: path(),
            mode,
            wanted,
        });
    }
    Ok(())
}

fn through_temporary(
    path: &Path,
    bytes: &[u8],
    put: impl FnOnce(&Path) -> Result<(), KeyFault>,
) -> Result<(), KeyFault> {
    let temporary = temporary_beside(path)?;
    let written = write_synced(&temporary, bytes).and_then(|()| put(&temporary));
    if written.is_err() {
        // The first fault is the one to tell; a leftover is harmless and private.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_folder(folder_of(path))
}

fn temporary_beside(path: &Path) -> Result<PathBuf, KeyFault> {
    let mut random = [0; 9];
    SystemEntropy.fill(&mut random)?;
    Ok(folder_of(path).join(format!(".new-{}", b64::encode(&random))))
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), KeyFault> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let descriptor = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| KeyFault::io("create", path)(errno.into()))?;
    // The umask may have taken bits away that the owner needs.
    rustix::fs::fchmod(&descriptor, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| KeyFault::io("create", path)(errno.into()))?;
    let mut file = File::from(descriptor);
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(KeyFault::io("write", path))
}

fn sync_folder(path: &Path) -> Result<(), KeyFault> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(KeyFault::io("sync", path))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// One secret of 32 bytes in a file of one line: `lychgate-key 1 WORD ID SECRET`.
///
/// Not JSON: a JSON value would keep a second copy of the secret that nothing wipes.
pub(crate) mod line {
    use super::{KeyFault, Path, Zeroizing, b64, read};

    /// The line, to be written.
    pub(crate) fn compose(word: &str, id: &str, secret: &[u8; 32]) -> Zeroizing<String> {
        let secret = Zeroizing::new(b64::encode(secret));
        let mut text = Zeroizing::new(String::with_capacity(LIMIT));
        for part in [HEAD, " ", word, " ", id, " ", secret.as_str(), "\n"] {
            text.push_str(part);
        }
        text
    }

    /// The secret of a file that says exactly this word and id.
    pub(crate) fn load(path: &Path, word: &str, id: &str) -> Result<Zeroizing<[u8; 32]>, KeyFault> {
        let bytes = read(path, LIMIT)?;
        secret(&bytes, word, id).ok_or_else(|| KeyFault::Format {
            path: path.to_owned(),
        })
    }

    /// The id and the secret of a file that says this word; whether they belong together is the caller's to compare.
    pub(crate) fn load_any(
        path: &Path,
        word: &str,
    ) -> Result<(String, Zeroizing<[u8; 32]>), KeyFault> {
        let bytes = read(path, LIMIT)?;
        let id = std::str::from_utf8(&bytes).ok().and_then(|text| {
            let mut words = text.split(' ').skip(HEAD.split(' ').count() + 1);
            words.next().map(str::to_owned)
        });
        let found = id.and_then(|id| Some((secret(&bytes, word, &id)?, id)));
        let (secret, id) = found.ok_or_else(|| KeyFault::Format {
            path: path.to_owned(),
        })?;
        Ok((id, secret))
    }

    fn secret(bytes: &[u8], word: &str, id: &str) -> Option<Zeroizing<[u8; 32]>> {
        let mut rest = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
        for part in [HEAD, word, id] {
            rest = rest.strip_prefix(part)?.strip_prefix(' ')?;
        }
        let decoded = Zeroizing::new(b64::decode(rest)?);
        let mut secret = Zeroizing::new([0; 32]);
        if decoded.len() != secret.len() {
            return None;
        }
        secret.copy_from_slice(&decoded);
        Some(secret)
    }

    const HEAD: &str = "lychgate-key 1";
    const LIMIT: usize = 256;
}
