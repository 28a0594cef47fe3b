//! The three epochs an authority is bound to (draft §8.2, §9; PROFILE §4).

use serde::{Deserialize, Serialize};

/// Policy, authority and revocation epoch at one moment. Any difference makes an authority stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epochs {
    /// Moves when a configuration is applied.
    pub policy_epoch: u64,
    /// Moves when a principal's authorization changes or a key is rotated.
    pub authority_epoch: u64,
    /// Moves when something is revoked.
    pub revocation_epoch: u64,
}

impl Epochs {
    /// The number of the newest control these epochs know of: their sum, for every control moves one of them at least.
    pub fn control(&self) -> u64 {
        self.policy_epoch
            .saturating_add(self.authority_epoch)
            .saturating_add(self.revocation_epoch)
    }
}
