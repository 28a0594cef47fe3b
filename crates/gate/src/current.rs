//! What the gate decides by at one moment: the applied configuration and the protected state it belongs to.

use std::collections::BTreeSet;
use std::sync::Arc;

use lychgate_core::{Digest, Epochs};
use lychgate_policy::Applied;

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
    /// What is revoked, in the spelling of [`crate::gate::revocation_subjects`].
    pub revoked: BTreeSet<String>,
}
