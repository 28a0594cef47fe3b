//! The fuzz bodies over random mutations of well-formed inputs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{head, key, leaves, name, signer};
use lychgate_ledger::fuzz::{fuzz_note, fuzz_proof, fuzz_tiles};
use lychgate_ledger::note::SignatureKind;
use lychgate_ledger::proof::{CommittedField, Opening};
use lychgate_ledger::tiles::push_entry;
use lychgate_ledger::witness::AddCheckpoint;
use lychgate_ledger::{Frontier, ReceiptProof};
use proptest::prelude::*;
use proptest::sample::Index;

fn notes() -> Vec<Vec<u8>> {
    let mut signed = head(12, [7; 32], 1);
    signed.cosign(&name("wit.example"), 9, &signer(2)).unwrap();
    let asked = AddCheckpoint {
        old: 3,
        proof: vec![[1; 32]; 4],
        checkpoint: signed.clone(),
    };
    let key = key("wit.example", SignatureKind::Cosignature, 2);
    let texts = [signed.to_string(), asked.to_string(), key.to_string()];
    texts.map(String::into_bytes).to_vec()
}

fn proofs() -> Vec<Vec<u8>> {
    let proof = ReceiptProof {
        receipt: "{}".into(),
        index: 5,
        inclusion: vec![[8; 32]; 3],
        checkpoint: head(12, [7; 32], 1),
        openings: vec![Opening {
            field: CommittedField::Destination,
            salt: lychgate_core::receipt::Salt([1; 16]),
            value: b"x".to_vec(),
        }],
    };
    vec![proof.to_bytes().unwrap()]
}

fn tiles() -> Vec<Vec<u8>> {
    let mut bundle = vec![2];
    push_entry(&mut bundle, b"one").unwrap();
    push_entry(&mut bundle, b"").unwrap();
    let state = leaves(7).into_iter().collect::<Frontier>().to_bytes();
    vec![
        bundle,
        state,
        b"tile/0/x001/234.p/7".to_vec(),
        b"tile/entries/000".to_vec(),
    ]
}

/// One edit: (what, where, with).
type Edit = (u8, Index, u8);

fn edited(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for (what, at, with) in edits {
        let at = at.index(bytes.len() + 1);
        match what % 5 {
            0 if at < bytes.len() => bytes[at] = *with,
            1 if at < bytes.len() => bytes[at] ^= 1 << (with % 8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => bytes.truncate(at),
            _ => bytes.insert(at, if with % 2 == 0 { b'\n' } else { *with }),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_inputs_are_refused_or_read_as_they_are(edits in prop::collection::vec(any::<Edit>(), 0..4)) {
        for bytes in notes() {
            prop_assert!(fuzz_note(&edited(bytes, &edits)));
        }
        for bytes in proofs() {
            prop_assert!(fuzz_proof(&edited(bytes, &edits)));
        }
        for bytes in tiles() {
            prop_assert!(fuzz_tiles(&edited(bytes, &edits)));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_as_they_are(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(fuzz_note(&bytes) && fuzz_proof(&bytes) && fuzz_tiles(&bytes));
    }

    #[test]
    fn any_texts_are_refused_or_read_as_they_are(text in "[a-z0-9+/=\n— .x]{0,80}") {
        prop_assert!(fuzz_note(text.as_bytes()) && fuzz_proof(text.as_bytes()) && fuzz_tiles(text.as_bytes()));
    }
}
