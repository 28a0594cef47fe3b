//! What goes wrong with keys, and the way out.

use std::io;
use std::path::{Path, PathBuf};

use lychgate_core::Timestamp;
use lychgate_core::json::ShapeFault;
use lychgate_core::outside::NoEntropy;

use crate::Role;

/// A key or a file of keys cannot be used. Never carries secret bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// Something stands where a new file was to go.
    #[error("`{}` exists already and is never overwritten; move it away first", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// No such file or folder.
    #[error("`{}` does not exist", path.display())]
    Missing {
        /// The file or folder.
        path: PathBuf,
    },
    /// Group or others may read or write it.
    #[error("`{path}` is open to other users (mode {mode:04o}); close it with `chmod {wanted:o} {path}`", path = path.display())]
    Mode {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What they should be: 0600 for a file, 0700 for a folder.
        wanted: u32,
    },
    /// A symbolic link, which could point anywhere tomorrow.
    #[error("`{}` is a symbolic link; put the file itself there", path.display())]
    SymbolicLink {
        /// The link.
        path: PathBuf,
    },
    /// Another user owns it.
    #[error("`{path}` belongs to user {owner}, not to user {expected}; take it over with `chown {expected} {path}`", path = path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
        /// This process' user.
        expected: u32,
    },
    /// A folder where a file should be, or the other way round, or a pipe, socket or device.
    #[error("`{path}` is not a {wanted}", path = path.display())]
    WrongType {
        /// What was found.
        path: PathBuf,
        /// `regular file` or `folder`.
        wanted: &'static str,
    },
    /// Not a file this crate wrote.
    #[error("`{}` is not a key file of the kind expected here; restore it from a backup", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// The private key in a file is not the one its name, role or the trust bundle says.
    #[error("`{}` holds another key than the trust bundle names; restore the two together", path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
    },
    /// The trust bundle has no current key in a role.
    #[error("trust bundle has no current `{role}` key")]
    NoKey {
        /// The role.
        role: Role,
    },
    /// The approver's key has no plain file.
    #[error("the `{role}` key is under a passphrase and is not rotated as a file")]
    NotAFileKey {
        /// The role.
        role: Role,
    },
    /// Too short to withstand guessing.
    #[error("passphrase must have at least {least} characters")]
    PassphraseTooShort {
        /// The least number of characters.
        least: usize,
    },
    /// Longer than anyone types.
    #[error("passphrase must have at most {most} bytes")]
    PassphraseTooLong {
        /// The most bytes.
        most: usize,
    },
    /// The passphrase opens nothing here. A changed file looks the same.
    #[error("passphrase does not open `{}` (or the file was changed)", path.display())]
    WrongPassphrase {
        /// The key file.
        path: PathBuf,
    },
    /// A sealed text was changed, sealed under another key, or for another place.
    #[error("sealed data does not open")]
    NotSealed,
    /// A key has sealed as much as is safe in one process.
    #[error("seal key is used up; make a new one")]
    UsedUp,
    /// No randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The cryptographic library refused, which no input of ours explains.
    #[error("cryptographic operation `{0}` failed")]
    Crypto(&'static str),
    /// An object cannot be written as canonical JSON.
    #[error("object cannot be signed")]
    Shape(#[from] ShapeFault),
    /// The trust bundle cannot take a change, or is malformed.
    #[error(transparent)]
    Trust(#[from] TrustFault),
    /// The system said no.
    #[error("cannot {what} `{path}`", path = path.display())]
    Io {
        /// What was tried: `read`, `write`, ...
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl KeyFault {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            _ => Self::Io { what, path, source },
        }
    }
}

/// A trust bundle is malformed or cannot take a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustFault {
    /// Not strict JSON, or not a trust bundle's.
    #[error("trust bundle is malformed: {0}")]
    Malformed(String),
    /// Not 32 bytes of a point, a small-order point, or a second spelling of a point.
    #[error("public key `{0}` is not a sound Ed25519 key")]
    Unsound(String),
    /// The id is not the thumbprint of the key.
    #[error("key id `{0}` is not the thumbprint of its key")]
    WrongId(String),
    /// Keys are never shared between roles nor listed twice.
    #[error("key `{0}` is in the trust bundle already")]
    Twice(String),
    /// One current key per role.
    #[error("trust bundle has a current `{0}` key already; retire or replace it")]
    RoleTaken(Role),
    /// No such key.
    #[error("trust bundle has no key `{0}`")]
    Unknown(String),
    /// Retired before.
    #[error("key `{0}` is retired already")]
    Retired(String),
    /// Retired before it became valid.
    #[error("key `{0}` would be retired before it is valid")]
    Order(String),
    /// More keys than anyone needs.
    #[error("trust bundle has too many keys")]
    Full,
}

/// Why a signed object is not believed. For the record and the operator; a model sees a constant text only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// This kind of object is not this role's to sign.
    #[error("a `{0}` key does not sign this kind of object")]
    Kind(Role),
    /// The bundle does not have this key in this role.
    #[error("no such `{0}` key is trusted")]
    UnknownKey(Role),
    /// The key's time has not come.
    #[error("key is not valid before {0}")]
    NotYetValid(Timestamp),
    /// The key was retired.
    #[error("key was retired at {0}")]
    Retired(Timestamp),
    /// There is no signature.
    #[error("object is not signed")]
    Unsigned,
    /// The signature is not 64 bytes of strict base64url.
    #[error("signature is not base64url of 64 bytes")]
    Encoding,
    /// The object has no canonical form.
    #[error("object has no canonical form")]
    Shape,
    /// The place in a batch is none, or this kind of object is not signed in batches.
    #[error("object stands in no batch")]
    Batch,
    /// The signature is not this key's over these bytes.
    #[error("signature does not hold")]
    Signature,
}
