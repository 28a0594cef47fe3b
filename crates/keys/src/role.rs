//! What a key is trusted for.

use std::fmt;
use std::str::FromStr;

use lychgate_core::signed::ObjectKind;
use serde::{Deserialize, Serialize};

/// What a key is trusted for. PED, sink and ledger never share a key (PROFILE §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Signs evidence, authorities and delegations.
    Ped,
    /// Signs sink verifications.
    Sink,
    /// Signs checkpoints, and nothing else.
    Ledger,
    /// Signs what a person decided.
    Approver,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Ped, Self::Sink, Self::Ledger, Self::Approver];

    /// The word on the wire and in file names.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ped => "ped",
            Self::Sink => "sink",
            Self::Ledger => "ledger",
            Self::Approver => "approver",
        }
    }

    /// The only role that may sign objects of a kind.
    #[must_use]
    pub const fn signing(kind: ObjectKind) -> Self {
        match kind {
            ObjectKind::Evidence | ObjectKind::Authority | ObjectKind::Delegation => Self::Ped,
            ObjectKind::Verification => Self::Sink,
            ObjectKind::Approval
            | ObjectKind::Change
            | ObjectKind::Reconciliation
            | ObjectKind::KeyChange
            | ObjectKind::Anchor
            | ObjectKind::Prune
            | ObjectKind::Approver
            | ObjectKind::Consent
            | ObjectKind::Restoration => Self::Approver,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// A text that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of `ped`, `sink`, `ledger`, `approver`")]
pub struct NotARole(String);

impl FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, NotARole> {
        let mut roles = Self::ALL.into_iter();
        roles
            .find(|role| role.word() == text)
            .ok_or_else(|| NotARole(text.to_owned()))
    }
}
