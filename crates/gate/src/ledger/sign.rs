//! The ledger key behind the store's writer: it signs the heads of the record, and nothing else (PROFILE §3).

use std::sync::Arc;

use lychgate_core::id::GateId;
use lychgate_keys::SigningKey;
use lychgate_ledger::note::NotAKeyName;
use lychgate_ledger::{Checkpoint, Hash, KeyName, SignedCheckpoint};
use lychgate_store::{HeadSigner, SignRefused};

/// Signs heads of one log with the ledger key (C2SP tlog-checkpoint).
#[derive(Debug)]
pub struct LedgerSigner {
    origin: KeyName,
    key: Arc<SigningKey>,
}

impl LedgerSigner {
    /// For the log of this name.
    pub fn new(origin: KeyName, key: Arc<SigningKey>) -> Self {
        Self { origin, key }
    }
}

impl HeadSigner for LedgerSigner {
    fn sign_head(&self, size: u64, root: Hash) -> Result<Vec<u8>, SignRefused> {
        let refused = |why: &dyn std::error::Error| SignRefused(why.to_string());
        let head =
            Checkpoint::new(self.origin.as_str(), size, root).map_err(|why| refused(&why))?;
        let signed =
            SignedCheckpoint::sign(head, self.key.as_ref()).map_err(|why| refused(&why))?;
        Ok(signed.to_string().into_bytes())
    }
}

/// The name of a new log: fixed when its state folder is made, by an id that is used once.
///
/// # Errors
/// None that an id can cause.
pub fn log_name(first: GateId) -> Result<KeyName, NotAKeyName> {
    KeyName::new(format!("lychgate/{first}"))
}
