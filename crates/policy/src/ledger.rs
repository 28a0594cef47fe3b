//! Where the ledger's heads go besides the gate's own anchor: the `[ledger]` table (PROFILE §10).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::diagnostics::{Problem, quoted};

/// Who keeps the heads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) anchor_file: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) witness: BTreeMap<String, Witness>,
}

/// One witness (C2SP tlog-witness).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    pub(crate) url: String,
    pub(crate) key: String,
}

impl Ledger {
    /// A second anchor, besides the usual one; an absolute path.
    #[must_use]
    pub fn anchor_file(&self) -> Option<&Path> {
        self.anchor_file.as_deref().map(Path::new)
    }

    /// The witnesses, by the names the operator gave them.
    pub fn witnesses(&self) -> impl Iterator<Item = (&str, &Witness)> {
        self.witness.iter().map(|(name, one)| (name.as_str(), one))
    }
}

impl Witness {
    /// Where it listens, over plain HTTP; `None` when the text is no such place. Always an address, never a name.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        let rest = self.url.strip_prefix("http://")?;
        rest.strip_suffix('/').unwrap_or(rest).parse().ok()
    }

    /// Its verifier key, `<name>+<id>+<base64>`, as written.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Every problem of meaning.
pub(crate) fn check(ledger: &Ledger, found: &mut Vec<Problem>) {
    if let Some(text) = &ledger.anchor_file
        && !Path::new(text).is_absolute()
    {
        let message = format!(
            "`anchor_file` must be an absolute path, not {}",
            quoted(text)
        );
        found.push(Problem::new(&["ledger", "anchor_file"], message));
    }
    for (name, witness) in &ledger.witness {
        let path = |key| ["ledger", "witness", name.as_str(), key];
        match witness.address() {
            Some(address) if address.ip().is_loopback() && address.port() != 0 => {}
            _ => {
                let message = format!(
                    "`url` must be `http://`, a loopback address and a port, not {}: names are not looked up and `https` is not spoken, so put a proxy beside the gate",
                    quoted(&witness.url)
                );
                found.push(Problem::new(&path("url"), message));
            }
        }
        if witness
            .key
            .split('+')
            .filter(|part| !part.is_empty())
            .count()
            < 3
        {
            let message = format!(
                "`key` must be the witness' verifier key, `<name>+<id>+<base64>`, not {}",
                quoted(&witness.key)
            );
            found.push(Problem::new(&path("key"), message));
        }
    }
}
