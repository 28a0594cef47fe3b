//! `ledger prune`: old receipts go into an archive, and their bytes out of the store. What is dropped is on stable storage
//! elsewhere and was read back before anybody is asked; every proof stays, since hashes do.

use lychgate_core::Digest;
use lychgate_core::act::Version;
use lychgate_core::receipt::Approver;
use lychgate_keys::TrustBundle;
use lychgate_keys::verdict::{BundleEdge, PruneVerdict};
use lychgate_ledger::tiles::WIDTH;
use lychgate_ledger::tree::{Leaves, inclusion_proof};
use lychgate_ledger::{LeafHash, ReceiptProof, verify_inclusion};
use lychgate_server::{Request, Response};
use serde_json::json;

use super::archive::Archive;
use super::export::{entries, missing};
use super::source::{Kept, believed, from_gate};
use super::trust;
use crate::approver;
use crate::args::LedgerPrune;
use crate::commands::Context;
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::places::{absolute, now, shown};
use crate::terminal::{Style, count, dim, styled, text};

/// What was archived and read back.
struct Archived {
    first: BundleEdge,
    below: BundleEdge,
    digest: Digest,
}

/// Archives, asks, drops.
pub(super) fn run(args: &LedgerPrune, context: &mut Context<'_>) -> Outcome {
    let dir = absolute(&args.archive)?;
    if dir.starts_with(context.places.folder()?.path()) {
        return Err(Stop::usage(
            "the archive must lie outside the state folder: a backup of one is no archive of the other",
        ));
    }
    let trust = trust(None, context)?;
    let mut connection = Connection::open(context)?;
    let ledger = answer!(connection.ask(&Request::Ledger)?, Response::Ledger { ledger } => ledger)?;
    if args.below > ledger.size {
        let size = ledger.size;
        return Err(Stop::usage(format!("the record has {size} receipts")));
    }
    let archive = Archive::at(dir.clone());
    let found = write(&archive, args.below, &mut connection, &trust)?;
    let name = shown(&dir);
    let Some(found) = found else {
        return nothing(args, context);
    };
    let (from, below) = (found.first.line(), found.below.line());
    let records = usize::try_from(below - from).unwrap_or(usize::MAX);
    context.terminal.note(&[dim(format!(
        "{} ({from} to {}) are in {name}, on stable storage and read back.",
        count(records, "receipt", "receipts"),
        below - 1
    ))]);
    let yes = yes(args, &found, &mut connection, context)?;
    let request = Request::Prune {
        first: found.first,
        below: found.below,
        archive: found.digest,
        yes,
    };
    answer!(connection.ask(&request)?, Response::Pruned => ())?;
    if args.output.json {
        context.terminal.document(&json!({
            "from": from, "below": below, "archive": dir.to_string_lossy(), "digest": found.digest.to_base64url(),
        }));
        return Ok(());
    }
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text("their bytes are out of the store; their hashes stay, and every proof with them"),
    ]);
    context.terminal.line(&[
        dim("  to check all of it:  "),
        text(format!("lychgate ledger verify --archive {name}")),
    ]);
    Ok(())
}

fn nothing(args: &LedgerPrune, context: &mut Context<'_>) -> Outcome {
    if args.output.json {
        context
            .terminal
            .document(&json!({ "from": null, "below": null }));
    } else {
        context.terminal.line(&[text(format!(
            "Nothing to drop: whole bundles of {WIDTH} receipts are archived, and those below are already."
        ))]);
    }
    Ok(())
}

/// Archives every whole bundle below a line that still has its bytes. `None` when there is none.
fn write(
    archive: &Archive,
    below: u64,
    connection: &mut Connection,
    trust: &TrustBundle,
) -> Outcome<Option<Archived>> {
    let width = u64::from(WIDTH);
    let (mut from, mut digests) = (None, Vec::new());
    for bundle in 0..below / width {
        let first = bundle * width;
        let kept = from_gate(first, WIDTH.into(), connection)?;
        let whole = kept.iter().zip(first..).all(|(one, at)| one.index == at);
        if !whole || kept.len() != usize::from(WIDTH) {
            return Err(missing(first));
        }
        match (entries(&kept)?, from) {
            (Some(bytes), _) => {
                from = from.or(Some(first));
                archive.put(bundle, &bytes)?;
                let read = check(archive, bundle, &kept, connection, trust)?;
                digests.extend_from_slice(Digest::sha256(&read).bytes());
            }
            (None, None) => {}
            // Lines are dropped from the oldest on.
            (None, Some(_)) => return Err(missing(first)),
        }
    }
    let edge = |line: u64| BundleEdge::try_from(line).map_err(Stop::fault);
    let Some(from) = from else { return Ok(None) };
    Ok(Some(Archived {
        first: edge(from)?,
        below: edge(below / width * width)?,
        digest: Digest::sha256(&digests),
    }))
}

/// Reads a bundle back and holds it against the tree: its lines are those under a head that the log's key signed.
fn check(
    archive: &Archive,
    bundle: u64,
    kept: &[Kept],
    connection: &mut Connection,
    trust: &TrustBundle,
) -> Outcome<Vec<u8>> {
    let index = bundle * u64::from(WIDTH);
    let (bytes, leaves) = archive.read_back(bundle)?;
    let other = |why: &str| {
        Stop::refused(format!(
            "records from {index} on: {why}; nothing was dropped"
        ))
        .try_this("lychgate ledger verify")
    };
    if leaves.iter().ne(kept.iter().map(|one| &one.leaf)) {
        return Err(other("their hashes are not those of their bytes"));
    }
    let request = Request::Proof {
        index,
        open: false,
        head: None,
    };
    let proof = answer!(connection.ask(&request)?, Response::Proof { proof } => proof)?;
    let proof = ReceiptProof::parse(&proof.0).map_err(|fault| other(&fault.to_string()))?;
    let head =
        believed(proof.checkpoint.to_string().as_bytes(), trust).map_err(|why| other(&why))?;
    if under(&leaves, index, &proof, head.checkpoint()) {
        Ok(bytes)
    } else {
        Err(other("they do not lie under the log's signed head"))
    }
}

/// Whether a whole bundle lies under a head: the first eight hashes beside its first line's way are of the bundle alone,
/// and with that line they stand for every other.
fn under(
    leaves: &[LeafHash],
    index: u64,
    proof: &ReceiptProof,
    head: &lychgate_ledger::Checkpoint,
) -> bool {
    let Some(first) = leaves.first() else {
        return false;
    };
    let placed = verify_inclusion(first, index, head.size(), &proof.inclusion, head.root());
    let own = inclusion_proof(0, leaves.len() as u64, &Leaves(leaves));
    let Ok(own) = own else { return false };
    placed.is_ok() && own.len() == BUNDLE_LEVELS && proof.inclusion.starts_with(&own)
}

/// The approver's yes, where there is an approver.
fn yes(
    args: &LedgerPrune,
    found: &Archived,
    connection: &mut Connection,
    context: &Context<'_>,
) -> Outcome<Option<PruneVerdict>> {
    let status = answer!(connection.ask(&Request::Status)?, Response::Status { status } => status)?;
    if status.approver == Approver::None {
        return Ok(None);
    }
    let descriptor = args.passphrase.passphrase_fd.into();
    let key = approver::open(&context.places.approver()?, descriptor)?;
    let challenge = answer!(connection.ask(&Request::Challenge)?, Response::Challenge { challenge } => challenge)?;
    approver::sign(&key, |mark| PruneVerdict {
        version: Version::V1,
        object_type: Default::default(),
        first: found.first,
        below: found.below,
        archive: found.digest,
        at: now(),
        challenge,
        mark,
    })
    .map(Some)
}

/// 256 lines: eight levels.
const BUNDLE_LEVELS: usize = 8;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use lychgate_keys::SigningKey;
    use lychgate_ledger::tree::root_at;
    use lychgate_ledger::{Checkpoint, SignedCheckpoint, leaf_hash};

    use super::*;

    #[test]
    fn a_bundle_with_one_other_line_is_not_under_the_head() {
        let leaves: Vec<_> = (0..700_u32)
            .map(|at| leaf_hash(&at.to_be_bytes()))
            .collect();
        let head = Checkpoint::new("log", 700, root_at(700, &Leaves(&leaves)).unwrap()).unwrap();
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let proof = ReceiptProof {
            receipt: String::new(),
            index: 256,
            inclusion: inclusion_proof(256, 700, &Leaves(&leaves)).unwrap(),
            checkpoint: SignedCheckpoint::sign(head.clone(), &key).unwrap(),
            openings: Vec::new(),
        };
        let bundle = &leaves[256..512];
        assert!(under(bundle, 256, &proof, &head));
        for at in 0..256 {
            let mut other = bundle.to_vec();
            other[at] = leaf_hash(b"other");
            assert!(!under(&other, 256, &proof, &head), "{at}");
        }
        assert!(!under(&bundle[..255], 256, &proof, &head));
        assert!(!under(&leaves[..256], 256, &proof, &head));
    }
}
