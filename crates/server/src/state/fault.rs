//! What goes wrong with a state folder, each with the way out.

use std::io;
use std::path::{Path, PathBuf};

use lychgate_core::json::ShapeFault;
use lychgate_core::outside::NoEntropy;
use lychgate_gate::ledger::Difference;
use lychgate_keys::{KeyFault, TrustFault};
use lychgate_ledger::note::NotAKeyName;
use lychgate_store::{self as store, StoreFault};

use super::MOST_PATH;
use crate::protocol::Class;

/// What is wrong with a state folder, and the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateFault {
    /// There is none.
    #[error("there is no state folder `{}`; make one with `lychgate init`", .0.display())]
    Missing(PathBuf),
    /// Something is there already.
    #[error("`{}` exists already and is never overwritten; move it away first, or name another with `--state-dir`", .0.display())]
    Exists(PathBuf),
    /// It is not an absolute path.
    #[error("state folder `{}` must be an absolute path", .0.display())]
    Relative(PathBuf),
    /// Too long for a socket in it.
    #[error("state folder `{}` has a path too long for a socket in it (at most {MOST_PATH} bytes); name a shorter one with `--state-dir`", .0.display())]
    TooLong(PathBuf),
    /// Others may read or write it.
    #[error("`{}` is open to other users (mode {mode:04o}); close it with `chmod {wanted:o} {}`", path.display(), path.display())]
    Mode {
        /// The folder or file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What they should be at most.
        wanted: u32,
    },
    /// A symbolic link, which could point anywhere tomorrow.
    #[error("`{}` is a symbolic link; put the real thing there", .0.display())]
    SymbolicLink(PathBuf),
    /// Another user owns it.
    #[error("`{}` belongs to user {owner}, not to user {expected}; take it over with `chown {expected} {}`", path.display(), path.display())]
    Owner {
        /// The folder or file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Who runs this program.
        expected: u32,
    },
    /// Not what it should be.
    #[error("`{}` is not a {wanted}", path.display())]
    WrongType {
        /// The folder or file.
        path: PathBuf,
        /// `folder` or `regular file`.
        wanted: &'static str,
    },
    /// Another gate has it.
    #[error("another gate{} already runs on this state folder; stop it with `lychgate gate stop`", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Locked {
        /// Its process, when it says so.
        pid: Option<u32>,
    },
    /// The system said no.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A key cannot be made or used.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// The trust bundle cannot be made.
    #[error(transparent)]
    Trust(#[from] TrustFault),
    /// The store cannot be made or used.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// A first receipt cannot be written.
    #[error(transparent)]
    Receipt(#[from] ShapeFault),
    /// The store did not take the first configuration.
    #[error("the first configuration was not kept: {0}")]
    Rejected(store::Rejected),
    /// A file of the folder is gone.
    #[error(
        "EF-080: `{}` is missing from the state folder; nothing starts without it: restore the folder from a backup, or move it away and make a new one with `lychgate init`",
        .0.display()
    )]
    Incomplete(PathBuf),
    /// The record does not agree with itself.
    #[error(
        "EF-080: the record in `{}` does not agree with itself: {what}; the gate does not start, and nothing was repaired: keep a copy, look with `lychgate ledger verify`, then restore the state folder from a backup",
        path.display()
    )]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The record is not the one its anchor saw.
    #[error(
        "EF-080: {difference} (record `{}`, {place}); the gate does not start, and nothing was repaired: restore the newest state folder, or go on with this one, for ever visibly, with `lychgate ledger anchor --accept --reason R`{}",
        record.display(),
        if *approver { ", which asks for the approver's passphrase" } else { "; this gate has no approver, so whoever owns the folder decides" }
    )]
    Contradicted {
        /// What was found.
        difference: Box<Difference>,
        /// The store.
        record: PathBuf,
        /// What keeps the head that it contradicts, or the record itself.
        place: String,
        /// Whether there is an approver.
        approver: bool,
    },
    /// Record and anchor agree.
    #[error("the record agrees with its anchor; there is nothing to accept")]
    NothingToAccept,
    /// The decision is not the approver's, or for another record or anchor.
    #[error("the decision is not signed by the approver's key for this record and this anchor")]
    NotAccepted,
    /// The log's name is none.
    #[error(
        "the log's name in the state folder is none: {0}; restore the state folder from a backup"
    )]
    LogName(NotAKeyName),
    /// There is no randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The stored configuration cannot be used.
    #[error("the stored configuration cannot be used: {0}; restore the state folder from a backup")]
    Applied(String),
}

impl StateFault {
    /// The exit status (CLI.md).
    pub fn status(&self) -> u8 {
        match self {
            Self::Locked { .. } | Self::NothingToAccept | Self::NotAccepted => Class::Refused,
            Self::Missing(_)
            | Self::Exists(_)
            | Self::Relative(_)
            | Self::TooLong(_)
            | Self::Mode { .. }
            | Self::SymbolicLink(_)
            | Self::Owner { .. }
            | Self::WrongType { .. }
            | Self::Key(_) => Class::Usage,
            _ => Class::Fault,
        }
        .status()
    }

    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
