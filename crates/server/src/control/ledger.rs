//! The ledger as an auditor asks for it: records, heads, proofs. Everything in pages that stay far below a frame.

use lychgate_core::json::{self, Limits};
use lychgate_core::receipt::{Commitment, Receipt};
use lychgate_gate::Gate;
use lychgate_ledger::proof::{CommittedField, Opening};
use lychgate_ledger::tree::inclusion_proof;
use lychgate_ledger::{ReceiptProof, SignedCheckpoint, TileReader, leaf_hash, verify_inclusion};
use lychgate_store::{ActRow, RecordRow, StoreTiles};

use super::fault;
use crate::listen::Door;
use crate::protocol::{
    Bytes, Class, LedgerView, MOST_HEADS, MOST_RECORDS, RecordLine, Refusal, Response,
};

/// The log as it stands.
pub(super) fn view(door: &Door) -> Result<LedgerView, Refusal> {
    let store = door.gate().store();
    let head = store.newest_head().map_err(fault)?;
    let origin = door.state.read_log_name().map_err(shown)?;
    Ok(LedgerView {
        origin: origin.to_string(),
        size: store.record_len().map_err(fault)?,
        head: head.map(|head| String::from_utf8_lossy(&head.note).into_owned()),
    })
}

/// Records from one on.
pub(super) fn records(door: &Door, from: u64, limit: u32) -> Result<Response, Refusal> {
    let store = door.gate().store();
    let limit = usize::try_from(limit.min(MOST_RECORDS)).unwrap_or(0);
    let rows = store.record(from, limit).map_err(fault)?;
    Ok(Response::Records {
        records: rows.into_iter().map(line).collect(),
        size: store.record_len().map_err(fault)?,
    })
}

fn line(row: RecordRow) -> RecordLine {
    RecordLine {
        index: row.index,
        bytes: row.bytes.map(Bytes),
        leaf: Bytes(row.leaf.0.to_vec()),
    }
}

/// Kept heads of at least a size.
pub(super) fn heads(door: &Door, from: u64, limit: u32) -> Result<Response, Refusal> {
    let limit = usize::try_from(limit.min(MOST_HEADS)).unwrap_or(0);
    let heads = door.gate().store().heads(from, limit).map_err(fault)?;
    let notes = heads.into_iter().map(|head| Bytes(head.note));
    Ok(Response::Heads {
        heads: notes.collect(),
    })
}

/// A record with all it takes to believe it, opened for whoever may use the gate's socket when asked for.
/// `head` is a note of the client's: the proof leads to its root or is none.
pub(super) fn proof(
    door: &Door,
    index: u64,
    open: bool,
    head: Option<Bytes>,
) -> Result<Response, Refusal> {
    let gate = door.gate();
    let store = gate.store();
    let no = |why: &str| Refusal::new(Class::Refused, format!("record {index} {why}"));
    let row = store.record(index, 1).map_err(fault)?.into_iter().next();
    let row = row.filter(|row| row.index == index);
    let row = row.ok_or_else(|| no("does not exist"))?;
    let bytes = row
        .bytes
        .ok_or_else(|| no("was archived; its bytes are not here"))?;
    let note = match head {
        Some(note) => note.0,
        None => {
            let newest = store.newest_head().map_err(fault)?;
            newest
                .ok_or_else(|| no("is not under a signed head yet"))?
                .note
        }
    };
    let checkpoint = SignedCheckpoint::parse(&note).map_err(shown)?;
    let size = checkpoint.checkpoint().size();
    if index >= size || size > store.record_len().map_err(fault)? {
        return Err(no("is not under that head"));
    }
    let reader = TileReader::new(StoreTiles(&**store), size);
    let inclusion = inclusion_proof(index, size, &reader).map_err(shown)?;
    let leaf = leaf_hash(&bytes);
    verify_inclusion(
        &leaf,
        index,
        size,
        &inclusion,
        checkpoint.checkpoint().root(),
    )
    .map_err(|why| no(&format!("does not lie under its head: {why}")))?;
    let receipt = String::from_utf8(bytes).map_err(|_| no("is not text"))?;
    let openings = if open {
        openings(gate, &receipt)?
    } else {
        Vec::new()
    };
    let proof = ReceiptProof {
        receipt,
        index,
        inclusion,
        checkpoint,
        openings,
    };
    let proof = proof.to_bytes().map_err(shown)?;
    Ok(Response::Proof {
        proof: Bytes(proof),
    })
}

//= PROFILE §10: the salt stays in the store and is opened in the receipt handed to someone entitled to it
/// What of a receipt's commitments can still be opened: exactly what it commits to, and nothing else.
fn openings(gate: &Gate, receipt: &str) -> Result<Vec<Opening>, Refusal> {
    let receipt: Option<Receipt> = json::parse(receipt.as_bytes(), &Limits::OBJECT)
        .ok()
        .and_then(|value| json::from_value(&value).ok());
    let Some(part) = receipt.and_then(|receipt| receipt.act) else {
        return Ok(Vec::new());
    };
    let row = gate.store().act(part.candidate_act_id).map_err(fault)?;
    let Some(row) = row else {
        return Ok(Vec::new());
    };
    let arguments = row.arguments_digest.map(|digest| digest.bytes().to_vec());
    let destination = gate.destination_of(&row).map(String::into_bytes);
    let fields = [
        (
            CommittedField::ArgumentsDigest,
            part.arguments_commitment,
            arguments,
        ),
        (
            CommittedField::Destination,
            part.destination_commitment,
            destination,
        ),
    ];
    let opened = fields.into_iter();
    Ok(opened
        .filter_map(|(field, commitment, value)| opening(&row, field, &commitment?, value?))
        .collect())
}

fn opening(
    row: &ActRow,
    field: CommittedField,
    commitment: &Commitment,
    value: Vec<u8>,
) -> Option<Opening> {
    let salt = row.salt.of_field(field.label());
    let fits = Commitment::to(&salt, field.label(), &value) == *commitment;
    fits.then_some(Opening { field, salt, value })
}

fn shown(fault: impl ToString) -> Refusal {
    Refusal::new(Class::Fault, fault)
}
