//! What a witness remembers: the last head it cosigned of each log, on stable storage.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lychgate_core::Digest;
use lychgate_ledger::checkpoint::CheckpointFault;
use lychgate_ledger::{Hash, SignedCheckpoint};
use rustix::fs::{FlockOperation, OFlags};

/// One witness' memory. It alone has the folder.
#[derive(Debug)]
pub(super) struct Memory {
    folder: PathBuf,
    // Size and root of the last head, by origin.
    latest: BTreeMap<String, (u64, Hash)>,
    // A write failed: what the disk holds is not known, and nothing is cosigned any more.
    broken: bool,
    _lock: File,
}

/// It cannot remember.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryFault {
    /// Another witness has the folder.
    #[error("another witness runs on `{}`", .0.display())]
    Locked(PathBuf),
    /// A head is no head: without it, another story could be cosigned.
    #[error("what was cosigned last cannot be read from `{}`: {fault}; nothing starts without it", path.display())]
    Head {
        /// The file.
        path: PathBuf,
        /// Why not.
        fault: CheckpointFault,
    },
    /// An earlier write failed.
    #[error("an earlier head could not be kept; start the witness again once the disk is well")]
    Broken,
    /// The system said no.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl MemoryFault {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

impl Memory {
    /// Reads what was kept. Makes the folder when there is none.
    ///
    /// # Errors
    /// When another witness has it, or anything in it cannot be read: a witness that forgets is none.
    pub(super) fn open(folder: &Path) -> Result<Self, MemoryFault> {
        let heads = folder.join(HEADS);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let made = builder.create(&heads);
        made.map_err(MemoryFault::io("make", &heads))?;
        let lock = lock(&folder.join("lock"))?;
        let mut latest = BTreeMap::new();
        let entries = fs::read_dir(&heads).map_err(MemoryFault::io("read", &heads))?;
        for entry in entries {
            let path = entry.map_err(MemoryFault::io("read", &heads))?.path();
            // What was being written when a witness was killed; the head before it stands.
            if path.extension().is_some_and(|extension| extension == "new") {
                continue;
            }
            let signed = read(&path)?;
            let head = signed.checkpoint();
            latest.insert(head.origin().to_owned(), (head.size(), *head.root()));
        }
        Ok(Self {
            folder: folder.to_owned(),
            latest,
            broken: false,
            _lock: lock,
        })
    }

    /// The last head cosigned of a log.
    pub(super) fn latest(&self, origin: &str) -> Option<(u64, Hash)> {
        self.latest.get(origin).copied()
    }

    /// That head as it was kept.
    pub(super) fn head(&self, origin: &str) -> Result<Option<SignedCheckpoint>, MemoryFault> {
        if !self.latest.contains_key(origin) {
            return Ok(None);
        }
        let file = format!("{}.checkpoint", name(origin));
        read(&self.folder.join(HEADS).join(file)).map(Some)
    }

    /// Keeps a head; it is on stable storage when this returns. After a failure nothing is kept any more, because nobody
    /// knows what the disk holds.
    pub(super) fn keep(&mut self, signed: &SignedCheckpoint) -> Result<(), MemoryFault> {
        if self.broken {
            return Err(MemoryFault::Broken);
        }
        let head = signed.checkpoint();
        let now = (head.size(), *head.root());
        if self.latest(head.origin()) == Some(now) {
            return Ok(());
        }
        let written = self.write(signed);
        self.broken = written.is_err();
        written?;
        self.latest.insert(head.origin().to_owned(), now);
        Ok(())
    }

    fn write(&self, signed: &SignedCheckpoint) -> Result<(), MemoryFault> {
        let folder = self.folder.join(HEADS);
        let path = folder.join(format!("{}.checkpoint", name(signed.checkpoint().origin())));
        let next = path.with_extension("new");
        match fs::remove_file(&next) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => {
                return Err(MemoryFault::io("remove", &next)(fault));
            }
            _ => {}
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&next);
        let mut file = file.map_err(MemoryFault::io("write", &next))?;
        file.write_all(signed.to_string().as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&next, &path))
            .and_then(|()| File::open(&folder)?.sync_all())
            .map_err(MemoryFault::io("write", &path))
    }

    /// Keeps a second head of one size beside the first, which stays what it was; says whether it could.
    pub(super) fn keep_evidence(&self, signed: &SignedCheckpoint) -> bool {
        let folder = self.folder.join("forks");
        let text = signed.to_string();
        let digest = Digest::sha256(text.as_bytes()).to_base64url();
        let path = folder.join(format!(
            "{}.{digest}.checkpoint",
            name(signed.checkpoint().origin())
        ));
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let many = || fs::read_dir(&folder).map_or(0, Iterator::count) >= MOST_FORKS;
        let written = builder.create(&folder).and_then(|()| {
            if path.exists() || many() {
                return Ok(());
            }
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            let mut file = file?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.is_ok()
    }
}

/// The file's name of a log.
fn name(origin: &str) -> String {
    Digest::sha256(origin.as_bytes()).to_base64url()
}

fn read(path: &Path) -> Result<SignedCheckpoint, MemoryFault> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(MemoryFault::io("read", path))?;
    file.take(MOST_NOTE)
        .read_to_end(&mut bytes)
        .map_err(MemoryFault::io("read", path))?;
    let signed = SignedCheckpoint::parse(&bytes);
    signed.map_err(|fault| MemoryFault::Head {
        path: path.to_owned(),
        fault,
    })
}

fn lock(path: &Path) -> Result<File, MemoryFault> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(MemoryFault::io("open", path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let folder = path.parent().unwrap_or(path);
            Err(MemoryFault::Locked(folder.to_owned()))
        }
        Err(errno) => Err(MemoryFault::io("lock", path)(errno.into())),
    }
}

const HEADS: &str = "heads";
/// The longest signed note.
const MOST_NOTE: u64 = 1_000_001;
/// So many proofs that a log lies are enough.
const MOST_FORKS: usize = 64;
