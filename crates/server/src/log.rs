//! The gate's log file: this user's, bounded, and taking nothing but [`lychgate_gate::log`]'s own lines (PROFILE §10).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::OFlags;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

use crate::state::FILE_MODE;

/// Sends this process's events to the file. Where another log is in place already, that one stays.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn to_file(path: &Path) -> io::Result<()> {
    let file = LogFile::open(path, MOST_BYTES)?;
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_target(false)
        .with_writer(Mutex::new(file))
        .with_filter(filter_fn(is_ours));
    let log = tracing_subscriber::registry().with(lines);
    // A process that runs several gates (a test) keeps the first one's log.
    let _ = tracing::subscriber::set_global_default(log);
    Ok(())
}

/// Only what was made by [`lychgate_gate::log`], of an allowlist of fields; nothing that a library says.
fn is_ours(about: &tracing::Metadata<'_>) -> bool {
    about.target() == lychgate_gate::log::TARGET && *about.level() <= tracing::Level::INFO
}

/// A file that moves aside when it is full; one older file is kept.
struct LogFile {
    path: PathBuf,
    file: File,
    size: u64,
    most: u64,
}

impl LogFile {
    fn open(path: &Path, most: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(FILE_MODE)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            size,
            most,
        })
    }

    fn turn(&mut self) -> io::Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        fs::rename(&self.path, old)?;
        *self = Self::open(&self.path, self.most)?;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let coming = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.size > 0 && self.size.saturating_add(coming) > self.most {
            self.turn()?;
        }
        let written = self.file.write(bytes)?;
        self.size = self
            .size
            .saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

const MOST_BYTES: u64 = 10 << 20;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_full_log_moves_aside_once_and_both_are_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.log");
        let mut log = LogFile::open(&path, 100).unwrap();
        for number in 0..50 {
            writeln!(log, "line {number}").unwrap();
        }
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .collect();
        assert_eq!(names.len(), 2);
        for entry in names {
            let found = entry.metadata().unwrap();
            assert!(found.len() <= 100);
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
        }
        assert!(fs::read_to_string(&path).unwrap().ends_with("line 49\n"));
    }
}
