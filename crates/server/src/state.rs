//! The state folder: what the gate owns. Made whole or not at all, closed to everybody else, open to one gate at a time.

mod fault;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lychgate_core::Timestamp;
use lychgate_core::outside::ten;
use lychgate_core::receipt::{Approver, Isolation};
use lychgate_core::{digest::b64, id::GateId};
use lychgate_gate::receipts::Standing;
use lychgate_gate::{RingSigner, log_name};
use lychgate_keys::{ApproverKey, KeyRing, Role, Sealer, SystemEntropy, TrustBundle};
use lychgate_ledger::KeyName;
use lychgate_policy::Applied;
use lychgate_store::{self as store, SqliteStore, Store as _};
use rustix::fs::{FlockOperation, OFlags};

pub use self::fault::StateFault;

/// Where a state folder is, and what lies where in it. That it exists says nothing yet; see [`StateFolder::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFolder {
    path: PathBuf,
}

/// The default state folder: `$XDG_STATE_HOME/lychgate`, else `~/.local/state/lychgate`. The values come from the caller,
/// who reads the environment once; one that is relative counts as unset (XDG says so).
pub fn default_state_dir(xdg_state_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let base = absolute(xdg_state_home)
        .map(Path::to_owned)
        .or_else(|| absolute(home).map(|home| home.join(".local/state")));
    base.map(|base| base.join("lychgate"))
}

/// The default configuration file: `$XDG_CONFIG_HOME/lychgate/lychgate.toml`, else `~/.config/lychgate/lychgate.toml`.
pub fn default_config_file(xdg_config_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let base = absolute(xdg_config_home)
        .map(Path::to_owned)
        .or_else(|| absolute(home).map(|home| home.join(".config")));
    base.map(|base| base.join("lychgate").join("lychgate.toml"))
}

fn absolute(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| path.is_absolute())
}

impl StateFolder {
    /// Names a folder. It need not exist.
    ///
    /// # Errors
    /// When the path is relative, or too long for a socket.
    pub fn at(path: &Path) -> Result<Self, StateFault> {
        if !path.is_absolute() {
            return Err(StateFault::Relative(path.to_owned()));
        }
        if path.as_os_str().len() > MOST_PATH {
            return Err(StateFault::TooLong(path.to_owned()));
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file whose lock makes a gate the only one.
    pub fn lock_file(&self) -> PathBuf {
        self.path.join("gate.lock")
    }

    /// The unix socket.
    pub fn socket(&self) -> PathBuf {
        self.path.join("gate.sock")
    }

    /// The log.
    pub fn log(&self) -> PathBuf {
        self.path.join("gate.log")
    }

    /// The store.
    pub fn database(&self) -> PathBuf {
        self.path.join("store.db")
    }

    /// The log's name, one line, fixed when the folder is made.
    pub fn log_name_file(&self) -> PathBuf {
        self.path.join("log.name")
    }

    /// The folder of the keys.
    pub fn keys(&self) -> PathBuf {
        self.path.join("keys")
    }

    /// The key that seals what must not lie in clear text.
    pub fn seal_key(&self) -> PathBuf {
        self.keys().join("seal.key")
    }

    /// The approver's key, encrypted under the passphrase.
    pub fn approver_key(&self) -> PathBuf {
        self.keys().join("approver.key")
    }

    /// The trust bundle.
    pub fn trust(&self) -> PathBuf {
        self.path.join("trust.json")
    }

    /// Whether something stands there.
    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok()
    }

    /// Checks that the folder and what must not be open in it belong to this user alone.
    ///
    /// # Errors
    /// The first thing that is not as it should be, with the way out.
    pub fn check(&self) -> Result<(), StateFault> {
        closed(&self.path, true)?;
        closed(&self.keys(), true)?;
        for file in [
            self.trust(),
            self.database(),
            self.seal_key(),
            self.log_name_file(),
        ] {
            closed(&file, false).map_err(|fault| match fault {
                StateFault::Missing(file) => StateFault::Incomplete(file),
                other => other,
            })?;
        }
        for file in [self.lock_file(), self.log(), self.approver_key()] {
            match closed(&file, false) {
                Ok(()) | Err(StateFault::Missing(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Who owns the folder, which must be a closed one of this user.
    ///
    /// # Errors
    /// As [`StateFolder::check`], for the folder alone.
    pub fn owner(&self) -> Result<u32, StateFault> {
        closed(&self.path, true)?;
        Ok(rustix::process::geteuid().as_raw())
    }

    //= PROFILE §10: never overwrites; the approver's public key stands in the trust bundle from `init`
    /// Makes the folder with keys, trust bundle, store and first configuration: built beside its place and moved there in
    /// one step, so that it is there whole or not at all. With `approver` its passphrase; without one there is no
    /// approver and what would ask is denied.
    ///
    /// # Errors
    /// When something other than an empty folder stands there, or anything cannot be made; then nothing is left behind.
    pub fn create(
        path: &Path,
        approver: Option<&[u8]>,
        first: &Applied,
        at: Timestamp,
    ) -> Result<Self, StateFault> {
        let state = Self::at(path)?;
        state.refuse_occupied()?;
        let parent = path
            .parent()
            .ok_or_else(|| StateFault::Exists(path.to_owned()))?;
        make_folder(parent, true)?;
        let random = b64::encode(&ten(&SystemEntropy)?);
        let building = Self {
            path: parent.join(format!(".lychgate-new-{random}")),
        };
        make_folder(&building.path, false)?;
        let built = building
            .fill(approver, first, at)
            .and_then(|()| state.take_place_of(&building));
        if built.is_err() {
            // The fault that led here is the one to tell.
            let _ = fs::remove_dir_all(&building.path);
        }
        built?;
        sync_folder(parent)?;
        Ok(state)
    }

    fn refuse_occupied(&self) -> Result<(), StateFault> {
        match fs::read_dir(&self.path).map(Iterator::count) {
            Ok(0) => closed(&self.path, true),
            Ok(_) => Err(StateFault::Exists(self.path.clone())),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound && !self.exists() => Ok(()),
            Err(_) => Err(StateFault::Exists(self.path.clone())),
        }
    }

    /// A rename takes the place of an empty folder and of nothing else.
    fn take_place_of(&self, building: &Self) -> Result<(), StateFault> {
        match fs::rename(&building.path, &self.path) {
            Ok(()) => Ok(()),
            Err(fault) if fault.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err(StateFault::Exists(self.path.clone()))
            }
            Err(fault) => Err(StateFault::io("create", &self.path)(fault)),
        }
    }

    fn fill(
        &self,
        approver: Option<&[u8]>,
        first: &Applied,
        at: Timestamp,
    ) -> Result<(), StateFault> {
        let (ring, mut trust) = KeyRing::create(&self.keys(), at)?;
        Sealer::create(&self.seal_key())?;
        if let Some(passphrase) = approver {
            let (_, public) = ApproverKey::create(&self.approver_key(), passphrase, at)?;
            trust.add(Role::Approver, public, at)?;
        }
        trust.write(&self.trust())?;
        let gate_id = GateId::new(at, ten(&SystemEntropy)?);
        let log = log_name(gate_id).map_err(StateFault::LogName)?;
        self.write_log_name(&log)?;
        let signer = Arc::new(RingSigner::new(log, &ring, &trust)?);
        let store = SqliteStore::open(&store::Options::new(self.database()), signer)?;
        let standing = Standing {
            gate_id,
            isolation: Isolation::SameUser,
            approver: approver_of(&trust),
        };
        let epochs = store.protected_state()?.epochs;
        let digest = first.digest();
        let receipts = lychgate_gate::first::first_receipts(standing, at, epochs, &trust, digest)?;
        let apply = store::Apply {
            expected: None,
            digest,
            snapshot: first.snapshot(),
            purposes_moved: false,
            authority_moved: false,
            now: at,
            receipts,
        };
        store
            .commit(store::Txn::Apply(apply))
            .wait()?
            .done()
            .map_err(StateFault::Rejected)?;
        drop(store);
        sync_folder(&self.path)
    }

    /// Writes the log's name into a folder that has none.
    ///
    /// # Errors
    /// When there is one, or it cannot be written.
    pub fn write_log_name(&self, name: &KeyName) -> Result<(), StateFault> {
        let path = self.log_name_file();
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&path)
            .and_then(|mut file| {
                file.write_all(format!("{name}\n").as_bytes())?;
                file.sync_all()
            })
            .map_err(StateFault::io("write", &path))
    }

    /// The log's name.
    ///
    /// # Errors
    /// When the file is missing, open to others, or holds no name.
    pub fn read_log_name(&self) -> Result<KeyName, StateFault> {
        let path = self.log_name_file();
        closed(&path, false)?;
        let text = fs::read_to_string(&path).map_err(StateFault::io("read", &path))?;
        KeyName::new(text.trim_end_matches('\n')).map_err(StateFault::LogName)
    }

    /// Takes the lock that makes this process the folder's one gate.
    ///
    /// # Errors
    /// [`StateFault::Locked`] with the other gate's process; or the folder is not fit.
    pub fn lock(&self) -> Result<Lock, StateFault> {
        self.check()?;
        let path = self.lock_file();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(StateFault::io("open", &path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // What cannot be read is simply not told.
                let _ = file.take(32).read_to_string(&mut text);
                let pid = text.trim().parse().ok();
                return Err(StateFault::Locked { pid });
            }
            Err(errno) => return Err(StateFault::io("lock", &path)(errno.into())),
        }
        let pid = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(pid.as_bytes()))
            .map_err(StateFault::io("write", &path))?;
        Ok(Lock { _file: file })
    }
}

/// The one gate's lock; gone when it is dropped, and when the process ends in any way.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

pub(crate) fn approver_of(trust: &TrustBundle) -> Approver {
    if trust.current(Role::Approver).is_some() {
        Approver::Key
    } else {
        Approver::None
    }
}

/// A folder or file that belongs to this user and is closed to all others.
fn closed(path: &Path, folder: bool) -> Result<(), StateFault> {
    let found = fs::symlink_metadata(path).map_err(|fault| match fault.kind() {
        io::ErrorKind::NotFound => StateFault::Missing(path.to_owned()),
        _ => StateFault::io("read", path)(fault),
    })?;
    if found.is_symlink() {
        return Err(StateFault::SymbolicLink(path.to_owned()));
    }
    if folder != found.is_dir() || folder == found.is_file() {
        return Err(StateFault::WrongType {
            path: path.to_owned(),
            wanted: if folder { "folder" } else { "regular file" },
        });
    }
    let expected = rustix::process::geteuid().as_raw();
    if found.uid() != expected {
        return Err(StateFault::Owner {
            path: path.to_owned(),
            owner: found.uid(),
            expected,
        });
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(StateFault::Mode {
            path: path.to_owned(),
            mode,
            wanted: if folder { FOLDER_MODE } else { FILE_MODE },
        });
    }
    Ok(())
}

/// Makes a folder for this user alone. Parents that are missing too, when `all`.
fn make_folder(path: &Path, all: bool) -> Result<(), StateFault> {
    DirBuilder::new()
        .recursive(all)
        .mode(FOLDER_MODE)
        .create(path)
        .map_err(StateFault::io("create", path))
}

pub(crate) fn sync_folder(path: &Path) -> Result<(), StateFault> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(StateFault::io("sync", path))
}

const FOLDER_MODE: u32 = 0o700;
pub(crate) const FILE_MODE: u32 = 0o600;
/// A socket's whole path has at most 107 bytes on Linux; `/gate.sock` takes ten of them.
const MOST_PATH: usize = 97;

#[cfg(test)]
mod tests;
