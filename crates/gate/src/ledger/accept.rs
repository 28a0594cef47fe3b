//! Going on with a record that its anchor contradicts: a person's decision, and a line in the record that stays.

use lychgate_core::json::ShapeFault;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::signed::KeyId;
use lychgate_core::{Digest, Epochs, Timestamp};
use lychgate_keys::verdict::Reason;
use lychgate_store::Entry;

use super::Difference;
use crate::receipts::{Draft, Standing};

/// The receipt of an acceptance. It names the difference, digests of the anchor's and of the record's head as they were,
/// and of the person's reason; `approver` is absent where there is none (PROFILE §10).
///
/// # Errors
/// When an epoch lies beyond what canonical JSON can carry.
pub fn acceptance_receipt(
    standing: Standing,
    at: Timestamp,
    epochs: Epochs,
    what: &Acceptance<'_>,
) -> Result<Entry, ShapeFault> {
    let digest = |bytes: &[u8]| Digest::sha256(bytes).to_base64url();
    Draft::new(standing, ReceiptKind::AnchorAccepted, at, epochs)
        .approver(what.approver.cloned())
        .detail(format!(
            "{} {}:{} record:{}:{} reason:{}",
            what.difference.word(),
            what.place,
            digest(what.anchor),
            what.size,
            digest(what.head),
            digest(what.reason.as_str().as_bytes()),
        ))
        .entry()
}

/// What is accepted, by whom and why.
#[derive(Clone, Copy, Debug)]
pub struct Acceptance<'a> {
    /// How record and anchor differ.
    pub difference: &'a Difference,
    /// What kept the head that the record contradicts: `anchor`, `cosigned`, `witness`.
    pub place: &'static str,
    /// That head's bytes.
    pub anchor: &'a [u8],
    /// The record's newest signed head.
    pub head: &'a [u8],
    /// How many lines the record has.
    pub size: u64,
    /// The approver's key.
    pub approver: Option<&'a KeyId>,
    /// The person's reason; the record keeps its digest.
    pub reason: &'a Reason,
}
