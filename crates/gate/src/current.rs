//! What the gate decides by at one moment: the applied configuration and the protected state it belongs to.

use std::collections::BTreeSet;
use std::sync::Arc;

use lychgate_core::{Digest, Epochs, Timestamp};
use lychgate_keys::TrustBundle;
use lychgate_policy::Applied;
use lychgate_store::{Store, StoreFault};

use crate::control::consent::Consents;

/// One consistent view. A decision takes one and keeps it; the consuming transaction compares it with the store again,
/// so a view that has grown old can deny but never permit.
#[derive(Debug)]
pub struct Current {
    /// The three epochs.
    pub epochs: Epochs,
    /// Moves when purposes are reconfigured.
    pub purpose_epoch: u64,
    /// The applied configuration's digest.
    pub policy_digest: Digest,
    /// The applied configuration.
    pub applied: Arc<Applied>,
    /// What is revoked, in the spelling of [`lychgate_core::Subject`].
    pub revoked: BTreeSet<String>,
    /// The consents that hold.
    pub consents: Consents,
}

/// The store's protected state is not what a gate can decide by.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CurrentFault {
    /// The store cannot answer.
    #[error(transparent)]
    Store(#[from] StoreFault),
    //= PROFILE §4: the store binds the policy digest to the policy epoch
    /// Rules decided by under another configuration's digest would pass the sink's comparison.
    #[error("the store holds another applied configuration")]
    Digest,
}

impl Current {
    /// The view at `now`, as the store has it. `applied` must be the configuration that the store names.
    ///
    /// # Errors
    /// When it is not, or the store cannot answer.
    pub fn read(
        store: &dyn Store,
        applied: Arc<Applied>,
        trust: &TrustBundle,
        now: Timestamp,
    ) -> Result<Self, CurrentFault> {
        let state = store.protected_state()?;
        let digest = applied.digest();
        if state.policy_digest != Some(digest) {
            return Err(CurrentFault::Digest);
        }
        let revoked = store.revocations()?.into_iter();
        let revoked: BTreeSet<String> = revoked.map(|revocation| revocation.subject).collect();
        let consents = Consents::read(store, trust, &revoked, now)?;
        Ok(Self {
            epochs: state.epochs,
            purpose_epoch: state.purpose_epoch,
            policy_digest: digest,
            applied,
            revoked,
            consents,
        })
    }

    /// Whether a key is revoked.
    pub(crate) fn is_key_revoked(&self, key: &lychgate_core::signed::KeyId) -> bool {
        !self.revoked.is_empty() && self.revoked.contains(&format!("key:{}", key.0))
    }
}
