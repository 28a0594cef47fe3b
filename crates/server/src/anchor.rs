//! The anchor: the record's newest signed head, kept outside the state folder, so that a folder that was exchanged,
//! cut or restored is noticed (PROFILE §10). On the same machine it protects from mistakes, not from the disk's owner.
//!
//! It is written off the way of acts, after the commit it speaks of, at most four times a second, the latest head wins.
//! A gate that is killed leaves an anchor up to a quarter of a second old; the record is then ahead of it, which is as
//! it should be. Each write is a new file, synced, and moved into place: after a crash the old or the new one is there.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lychgate_core::Timestamp;
use lychgate_gate::Gate;
use lychgate_gate::ledger::AnchorNote;
use lychgate_ledger::KeyName;
use lychgate_store::HeadRow;
use rustix::fs::OFlags;

use crate::state::FILE_MODE;
use lychgate_gate::log;

/// The default folder of anchors: `$XDG_DATA_HOME/lychgate/anchors`, else `~/.local/share/lychgate/anchors`. Never within
/// the default state folder. The values come from the caller, as for [`crate::state::default_state_dir`].
pub fn default_anchors(xdg_data_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let absolute = |path: Option<&Path>| path.filter(|path| path.is_absolute()).map(Path::to_owned);
    let base = absolute(xdg_data_home).or_else(|| Some(absolute(home)?.join(".local/share")));
    base.map(|base| base.join("lychgate/anchors"))
}

/// One log's anchor.
#[derive(Debug)]
pub struct AnchorFile {
    path: PathBuf,
    /// The size of the head written last: an older one never replaces it.
    written: Mutex<u64>,
}

impl AnchorFile {
    /// In a file of its own.
    pub fn at(path: PathBuf) -> Self {
        let written = Mutex::new(0);
        Self { path, written }
    }

    /// In a folder of anchors, by the log's name.
    pub fn of(folder: &Path, log: &KeyName) -> Self {
        let name = log.as_str().replace('/', "-");
        Self::at(folder.join(format!("{name}.checkpoint")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes; `None` when there is no file, or an empty one.
    ///
    /// # Errors
    /// What the system says; a file too long to be a checkpoint.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("too long for a checkpoint"));
        }
        Ok((!bytes.is_empty()).then_some(bytes))
    }

    /// Puts a head in its place, unless a larger one stands there from this process. Blocks.
    ///
    /// # Errors
    /// What the system says; the old anchor then stands.
    pub fn write(&self, head: &HeadRow) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if head.size <= *written {
            return Ok(());
        }
        replace(&self.path, &head.note)?;
        *written = head.size;
        Ok(())
    }

    /// Moves a contradicted anchor aside; it is evidence, and stays.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn set_aside(&self, at: Timestamp) -> io::Result<PathBuf> {
        let extension = self.path.extension().unwrap_or_default().to_string_lossy();
        let of = extension.strip_prefix(COSIGNED).unwrap_or_default();
        let dash = if of.is_empty() { "" } else { "-" };
        let aside = self
            .path
            .with_extension(format!("contradicted-{of}{dash}{}", at.as_millis()));
        fs::rename(&self.path, &aside)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(aside)
    }
}

/// Every anchor of a log: the usual one, and the one its configuration names besides. The usual one is always there, so
/// that a restored configuration that names none is noticed too.
#[derive(Debug, Default)]
pub struct Anchors(Vec<AnchorFile>);

impl Anchors {
    /// The usual one in `folder`, if there is one, and another.
    pub fn new(folder: Option<&Path>, log: &KeyName, besides: Option<&Path>) -> Self {
        let usual = folder.map(|folder| AnchorFile::of(folder, log));
        let besides = besides.map(|path| AnchorFile::at(path.to_owned()));
        Self(usual.into_iter().chain(besides).collect())
    }

    /// Each of them.
    pub fn files(&self) -> &[AnchorFile] {
        &self.0
    }

    /// Keeps a cosigned head beside the first of them, by the witness' name.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn keep_cosigned(&self, witness: &str, note: &[u8]) -> io::Result<()> {
        let Some(file) = self.0.first() else {
            return Ok(());
        };
        let name: String = witness
            .chars()
            .filter(|c| c.is_ascii_alphanumeric())
            .collect();
        let path = file.path.with_extension(format!("{COSIGNED}{name}"));
        replace(&path, note)
    }

    /// The heads that witnesses cosigned, beside the first anchor; by name. None where there is no such folder.
    pub fn cosigned(&self) -> Vec<AnchorFile> {
        let first = self.0.first().map(AnchorFile::path);
        let place = first.and_then(|path| Some((path.parent()?, path.file_stem()?)));
        let Some((folder, stem)) = place else {
            return Vec::new();
        };
        let beside = format!("{}.{COSIGNED}", stem.to_string_lossy());
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                // One that is being written is no head yet.
                name.starts_with(&beside) && !name.ends_with(NEXT)
            })
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found.into_iter().map(AnchorFile::at).collect()
    }

    /// Puts a head in the place of all of them, as [`AnchorFile::write`].
    ///
    /// # Errors
    /// The first that cannot be written; the others are.
    pub fn write(&self, head: &HeadRow) -> io::Result<()> {
        self.0
            .iter()
            .map(|file| file.write(head))
            .reduce(Result::and)
            .unwrap_or(Ok(()))
    }
}

/// A whole new file in the place of the old one, or the old one still.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut next = path.as_os_str().to_owned();
    next.push(NEXT);
    // Left over from a gate that was killed; this gate is the only one.
    match fs::remove_file(&next) {
        Ok(()) => {}
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
        Err(fault) => return Err(fault),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&next)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    fs::rename(&next, path)
}

/// Keeps the anchors at the store's newest head, as long as it is polled.
pub(crate) async fn keep(gate: Arc<Gate>, file: Arc<Anchors>) {
    let mut heads = gate.store().watch_heads();
    heads.mark_changed();
    let mut failing = false;
    while heads.changed().await.is_ok() {
        let head = heads.borrow_and_update().clone();
        let fault = write(Arc::clone(&file), head).await.err();
        if let Some(fault) = &fault {
            log::error("the anchor cannot be written", &[("fault", fault.into())]);
        }
        if fault.is_some() && !failing {
            // The store says itself when it cannot answer.
            let _ = gate.note_anchor(AnchorNote::Unwritable).await;
        }
        failing = fault.is_some();
        tokio::time::sleep(PAUSE).await;
    }
}

/// The last head of a gate that ends.
pub(crate) async fn finish(gate: &Gate, file: Arc<Anchors>) {
    let head = gate.store().watch_heads().borrow().clone();
    if let Err(fault) = write(file, head).await {
        log::error(
            "the last head could not be anchored",
            &[("fault", (&fault).into())],
        );
    }
}

async fn write(file: Arc<Anchors>, head: Option<HeadRow>) -> io::Result<()> {
    let Some(head) = head else { return Ok(()) };
    let done = tokio::task::spawn_blocking(move || file.write(&head));
    done.await.map_err(io::Error::other)?
}

/// How the files of cosigned heads end, before the witness' name.
const COSIGNED: &str = "cosigned-";
/// What a file that is being written ends with.
const NEXT: &str = ".new";
/// Between two writes.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest anchor: a checkpoint with many cosignatures.
const MOST_BYTES: u64 = 1 << 20;
