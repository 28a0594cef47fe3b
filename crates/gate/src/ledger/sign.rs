//! The gate's keys behind the store's writer: what a commit group says is signed at once, and its head (PROFILE §3).

use std::sync::Arc;

use lychgate_core::id::GateId;
use lychgate_core::signed::batch_bytes;
use lychgate_keys::{KeyFault, KeyRing, Role, SigningKey, TrustBundle, TrustedKey};
use lychgate_ledger::note::NotAKeyName;
use lychgate_ledger::{Checkpoint, Hash, KeyName, SignedCheckpoint};
use lychgate_store::{GroupSigner, SignRefused, Signatory};

/// Signs for one log: its heads with the ledger key, batches with the PED's key and the sinks'. No two trees share a key.
#[derive(Debug)]
pub struct RingSigner {
    origin: KeyName,
    ped: Arc<SigningKey>,
    sink: Arc<SigningKey>,
    ledger: Arc<SigningKey>,
    /// The PED's key as the sinks believe it.
    believed: TrustedKey,
}

impl RingSigner {
    /// For the log of this name.
    ///
    /// # Errors
    /// When the bundle believes no PED.
    pub fn new(origin: KeyName, ring: &KeyRing, trust: &TrustBundle) -> Result<Self, KeyFault> {
        let believed = trust.current(Role::Ped);
        Ok(Self {
            origin,
            ped: Arc::clone(&ring.ped),
            sink: Arc::clone(&ring.sink),
            ledger: Arc::clone(&ring.ledger),
            believed: believed.ok_or(KeyFault::NoKey { role: Role::Ped })?.clone(),
        })
    }
}

impl GroupSigner for RingSigner {
    //= draft §8.3: the sink verifies the authority's integrity before it consumes it
    fn sign_batch(&self, by: Signatory, root: &Hash, size: u32) -> Result<[u8; 64], SignRefused> {
        let key = match by {
            Signatory::Ped => &self.ped,
            Signatory::Sink => &self.sink,
        };
        let signed = key.sign_batch(root, size);
        let signature = signed.map_err(|why| SignRefused(why.to_string()))?;
        if by == Signatory::Ped {
            // Each sink has compared its authority with its leaf. That the tree is the PED's they learn here, all at
            // once: by the bundle's key, not by the one that signed.
            self.believed
                .holds(&batch_bytes(root, size), &signature)
                .map_err(|why| SignRefused(why.to_string()))?;
        }
        Ok(signature)
    }

    fn sign_head(&self, size: u64, root: Hash) -> Result<Vec<u8>, SignRefused> {
        let refused = |why: &dyn std::error::Error| SignRefused(why.to_string());
        let head =
            Checkpoint::new(self.origin.as_str(), size, root).map_err(|why| refused(&why))?;
        let signed =
            SignedCheckpoint::sign(head, self.ledger.as_ref()).map_err(|why| refused(&why))?;
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
