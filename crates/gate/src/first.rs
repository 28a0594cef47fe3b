//! The first lines of a record: keys were made, and a configuration was applied, before any gate ran.

use lychgate_core::json::ShapeFault;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Digest, Epochs, Timestamp};
use lychgate_keys::TrustBundle;
use lychgate_store::Entry;

use crate::receipts::{Draft, Standing};

/// The receipts of a fresh state folder: one for each key that is believed from now on, one for the first
/// configuration. `epochs` are those before it.
///
/// # Errors
/// When an epoch lies beyond what canonical JSON can carry.
pub fn first_receipts(
    standing: Standing,
    at: Timestamp,
    epochs: Epochs,
    trust: &TrustBundle,
    policy: Digest,
) -> Result<Vec<Entry>, ShapeFault> {
    let keys = trust.keys().iter().map(|key| {
        Draft::new(standing, ReceiptKind::KeyChanged, at, epochs)
            .detail(format!("key:{}:{}", key.role(), key.key_id().0))
            .entry()
    });
    let applied = Draft::new(standing, ReceiptKind::Applied, at, epochs)
        .policy(policy)
        .detail("the first configuration")
        .entry();
    keys.chain([applied]).collect()
}
