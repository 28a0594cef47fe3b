//! Fuzz bodies: what must hold for any bytes whatever. A smoke test and a fuzzer call the same functions; each gives
//! whether it held, and none may panic.

use crate::checkpoint::SignedCheckpoint;
use crate::note::{Note, VerifierKey};
use crate::proof::ReceiptProof;
use crate::tiles::{Tile, push_entry, read_bundle};
use crate::tree::Frontier;
use crate::witness::AddCheckpoint;

/// Notes, checkpoints, witness requests and verifier keys: what is read prints to the same bytes.
#[must_use]
pub fn fuzz_note(bytes: &[u8]) -> bool {
    let same = |printed: String| printed.as_bytes() == bytes;
    let note = Note::parse(bytes).map_or(true, |note| same(note.to_string()));
    let head = SignedCheckpoint::parse(bytes).map_or(true, |head| same(head.to_string()));
    let asked = AddCheckpoint::parse(bytes).map_or(true, |asked| same(asked.to_string()));
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let key = text.parse::<VerifierKey>();
    note && head && asked && key.map_or(true, |key| same(key.to_string()))
}

/// Receipt proofs: what is read prints to the same bytes, but for one newline at the end.
#[must_use]
pub fn fuzz_proof(bytes: &[u8]) -> bool {
    let exact = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let printed = |proof: ReceiptProof| proof.to_bytes().is_ok_and(|again| again == exact);
    ReceiptProof::parse(bytes).map_or(true, printed)
}

/// Tile paths, entry bundles and kept tree states: what is read prints to the same bytes.
#[must_use]
pub fn fuzz_tiles(bytes: &[u8]) -> bool {
    let (width, bundle) = bytes.split_first().unwrap_or((&1, &[]));
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let path = text
        .parse::<Tile>()
        .map_or(true, |tile| tile.to_string() == text);
    let state = Frontier::from_bytes(bytes).map_or(true, |state| state.to_bytes() == bytes);
    let entries = read_bundle(bundle, (*width).into()).map_or(true, |entries| {
        let mut again = Vec::new();
        let fits = entries
            .iter()
            .all(|entry| push_entry(&mut again, entry).is_ok());
        fits && again == bundle
    });
    path && state && entries
}
