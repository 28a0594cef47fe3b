//! Catalogue entries proposed to a person by `add`.
use std::collections::BTreeMap;

use lychgate_core::act::ActType;
use lychgate_core::{ConsequenceClass, Digest};

use crate::definition::Definition;
use crate::library::Library;
use crate::model::{ErrorMeaning, Idempotency, Kind, Role};

/// A proposed catalogue entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The function.
    pub function: String,
    /// The definition's digest.
    pub definition: Digest,
    /// What kind of consequence.
    pub class: ConsequenceClass,
    /// The act's type.
    pub act_type: ActType,
    /// A constant destination, when no pointer names one.
    pub fixed: Option<String>,
    /// A constant local file as destination, when the server works on one.
    pub file: Option<String>,
    /// Pointers that name the destination.
    pub destination: BTreeMap<Kind, Vec<String>>,
    /// Pointers that name who receives.
    pub recipient: BTreeMap<Kind, Vec<String>>,
    /// Roles of arguments.
    pub roles: BTreeMap<String, Role>,
    /// Asks even inside a recoverable root.
    pub irreversible: bool,
    /// What error results mean, when it is not the server's default.
    pub errors: Option<ErrorMeaning>,
    /// Whether the server takes an idempotency key.
    pub idempotency: Idempotency,
    /// The definition is the one that the library's entry was reviewed for.
    pub reviewed: bool,
    /// For the person, e.g. `not the reviewed definition`.
    pub note: String,
}

/// Proposes one entry for each definition. `package` is the server's package name as far as the command shows it.
#[must_use]
pub fn propose(_server: &str, _package: Option<&str>, _definitions: &[Definition], _library: &Library) -> Vec<Proposed> {
    Vec::new()
}
