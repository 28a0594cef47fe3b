//! The gate's own keys: one file each, mode 0600, in a folder of mode 0700 (PROFILE §10).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lychgate_core::Timestamp;
use lychgate_core::signed::KeyId;
use zeroize::Zeroizing;

use crate::files::{self, line};
use crate::{KeyFault, Role, SigningKey, TrustBundle};

/// The three keys a gate signs with. They are never the same key (PROFILE §3). Shared with the store's writer, which
/// signs whatever a commit group says at once.
#[derive(Debug)]
pub struct KeyRing {
    /// Signs evidence and authorities.
    pub ped: Arc<SigningKey>,
    /// Signs sink verifications.
    pub sink: Arc<SigningKey>,
    /// Signs checkpoints.
    pub ledger: Arc<SigningKey>,
}

impl KeyRing {
    /// Makes the folder if need be and three fresh keys in it, and a trust bundle that names them. The bundle is not
    /// written anywhere yet; see [`TrustBundle::write`].
    ///
    /// # Errors
    /// When the folder is open to others or holds keys already (nothing is overwritten), or cannot be written. Keys
    /// made before the fault are taken away again.
    pub fn create(dir: &Path, at: Timestamp) -> Result<(Self, TrustBundle), KeyFault> {
        files::create_folder(dir)?;
        refuse_if_keys_are_here(dir)?;
        let mut bundle = TrustBundle::new();
        let mut made = Vec::new();
        let ring = Self::create_in(dir, at, &mut bundle, &mut made);
        if ring.is_err() {
            for path in made {
                // The first fault is the one to tell.
                let _ = files::remove(&path);
            }
        }
        Ok((ring?, bundle))
    }

    fn create_in(
        dir: &Path,
        at: Timestamp,
        bundle: &mut TrustBundle,
        made: &mut Vec<PathBuf>,
    ) -> Result<Self, KeyFault> {
        let mut make = |role| {
            let key = write_new(dir, role)?;
            made.push(path_of(dir, role, key.key_id()));
            bundle.add(role, key.public(), at)?;
            Ok::<_, KeyFault>(key)
        };
        Ok(Self {
            ped: Arc::new(make(Role::Ped)?),
            sink: Arc::new(make(Role::Sink)?),
            ledger: Arc::new(make(Role::Ledger)?),
        })
    }

    /// Opens the keys the bundle names as current. Private files of retired keys, which an interrupted rotation can
    /// leave, are removed.
    ///
    /// # Errors
    /// When the folder or a file is open to others, a symbolic link, another user's, missing, or holds another key
    /// than the bundle names.
    pub fn open(dir: &Path, bundle: &TrustBundle) -> Result<Self, KeyFault> {
        files::check_folder(dir)?;
        let open = |role| open_current(dir, bundle, role);
        let ring = Self {
            ped: Arc::new(open(Role::Ped)?),
            sink: Arc::new(open(Role::Sink)?),
            ledger: Arc::new(open(Role::Ledger)?),
        };
        remove_retired(dir, bundle)?;
        Ok(ring)
    }
}

/// A key that was made for a role and that nobody believes yet. It lives in memory only: dropped, it never was.
#[derive(Debug)]
pub struct NewKey {
    role: Role,
    key: SigningKey,
    seed: Zeroizing<[u8; 32]>,
}

impl NewKey {
    /// A fresh one.
    ///
    /// # Errors
    /// When the role is the approver's, or the system gives no randomness.
    pub fn generate(role: Role) -> Result<Self, KeyFault> {
        if role == Role::Approver {
            return Err(KeyFault::NotAFileKey { role });
        }
        let (key, seed) = SigningKey::generate_with_seed()?;
        Ok(Self { role, key, seed })
    }

    /// What it is to be believed for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its public half.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        self.key.public()
    }

    /// Its RFC 7638 thumbprint.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        self.key.key_id()
    }
}

/// Puts a new key in the place of its role's current one: the new key's file is written, then the bundle with the old
/// key retired (at `trust`, which decides), then the old private file is removed. A crash between leaves a ring that
/// opens, with the old or the new key.
///
/// The caller has the new key take the old one's place in its [`KeyRing`].
///
/// # Errors
/// When there is no current key, or a file cannot be written. The bundle in memory is then
/// as it was, unless only the removal of the old file failed.
pub fn rotate(
    dir: &Path,
    trust: &Path,
    bundle: &mut TrustBundle,
    new: NewKey,
    at: Timestamp,
) -> Result<SigningKey, KeyFault> {
    let NewKey { role, key, seed } = new;
    files::check_folder(dir)?;
    if bundle.current(role).is_none() {
        return Err(KeyFault::NoKey { role });
    }
    let mut next = bundle.clone();
    write(dir, role, &key, &seed)?;
    let done = next.replace(role, key.public(), at).map_err(KeyFault::from);
    if let Err(fault) = done.and_then(|_| next.write(trust)) {
        give_up(dir, trust, role, key.key_id());
        return Err(fault);
    }
    *bundle = next;
    remove_retired(dir, bundle)?;
    Ok(key)
}

/// Takes away a new key that nobody trusts. A fault can strike after the bundle is in place; then the key must stay.
fn give_up(dir: &Path, trust: &Path, role: Role, new: &KeyId) {
    let untrusted = match TrustBundle::read(trust) {
        Ok(bundle) => bundle.keys().iter().all(|key| key.key_id() != new),
        Err(fault) => matches!(fault, KeyFault::Missing { .. }),
    };
    if untrusted {
        // The fault that led here is the one to tell.
        let _ = files::remove(&path_of(dir, role, new));
    }
}

fn write_new(dir: &Path, role: Role) -> Result<SigningKey, KeyFault> {
    let (key, seed) = SigningKey::generate_with_seed()?;
    write(dir, role, &key, &seed)?;
    Ok(key)
}

fn write(dir: &Path, role: Role, key: &SigningKey, seed: &[u8; 32]) -> Result<(), KeyFault> {
    let text = line::compose(role.word(), &key.key_id().0, seed);
    files::create(&path_of(dir, role, key.key_id()), text.as_bytes())
}

fn open_current(dir: &Path, bundle: &TrustBundle, role: Role) -> Result<SigningKey, KeyFault> {
    let trusted = bundle.current(role).ok_or(KeyFault::NoKey { role })?;
    let path = path_of(dir, role, trusted.key_id());
    let seed = line::load(&path, role.word(), &trusted.key_id().0)?;
    let key = SigningKey::from_seed(&seed)?;
    if key.public() != *trusted.public() {
        return Err(KeyFault::Mismatch { path });
    }
    Ok(key)
}

fn remove_retired(dir: &Path, bundle: &TrustBundle) -> Result<(), KeyFault> {
    let mut retired = bundle
        .keys()
        .iter()
        .filter(|key| key.retired_at().is_some());
    retired.try_for_each(|key| files::remove(&path_of(dir, key.role(), key.key_id())))
}

fn refuse_if_keys_are_here(dir: &Path) -> Result<(), KeyFault> {
    for entry in std::fs::read_dir(dir).map_err(KeyFault::io("read", dir))? {
        let entry = entry.map_err(KeyFault::io("read", dir))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let ours = |role: Role| name.starts_with(&format!("{role}-")) && name.ends_with(".key");
        if FILE_ROLES.into_iter().any(ours) {
            return Err(KeyFault::Exists { path: entry.path() });
        }
    }
    Ok(())
}

fn path_of(dir: &Path, role: Role, id: &KeyId) -> PathBuf {
    // Key ids in a bundle are thumbprints, base64url: never a path.
    dir.join(format!("{role}-{}.key", id.0))
}

const FILE_ROLES: [Role; 3] = [Role::Ped, Role::Sink, Role::Ledger];
