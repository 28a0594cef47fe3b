//! Canonical names of destinations and recipients: one text for one thing, and a refusal (EF-022) where a reader
//! downstream might see another thing than the gate (CASES "Network", "Mail", "Files").

pub(crate) mod account;
pub(crate) mod host;
pub(crate) mod mail;
pub(crate) mod path;
pub(crate) mod repository;

use crate::model::Kind;
use crate::reach::Unresolved;

/// A canonical name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The name itself.
    pub(crate) id: String,
    /// Who is behind it, when it lies outside this machine.
    pub(crate) host: Option<String>,
    /// A cloud's metadata address.
    pub(crate) metadata: bool,
}

impl Name {
    pub(crate) fn outside(id: String, host: String) -> Self {
        let metadata = host::is_metadata(&host);
        Self {
            id,
            host: Some(host),
            metadata,
        }
    }
}

/// Reads a text as a name of this kind. Paths are read elsewhere, for they need the machine.
pub(crate) fn name(kind: Kind, text: &str) -> Result<Name, Unresolved> {
    match kind {
        Kind::Path => Err(Unresolved::new("a path cannot name this")),
        Kind::Url => host::url(text),
        Kind::Host => host::host_and_port(text),
        Kind::Email => mail::address(text),
        Kind::Iban => account::iban(text),
        Kind::Repository => repository::repository(text),
        Kind::Text => exact(text),
    }
}

fn exact(text: &str) -> Result<Name, Unresolved> {
    if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(Unresolved::new(
            "a text is empty, too long or has control characters",
        ));
    }
    Ok(Name {
        id: text.to_owned(),
        host: None,
        metadata: false,
    })
}

/// The longest name, in bytes.
pub(crate) const LONGEST: usize = 4096;
