//! The mailed receipt: what it shows, and that nothing in it may change.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{head, key, leaves, name, root_of, signer};
use lychgate_core::Timestamp;
use lychgate_core::receipt::{Commitment, Receipt, Salt};
use lychgate_core::{jcs, json};
use lychgate_keys::{Role, TrustBundle};
use lychgate_ledger::note::SignatureKind;
use lychgate_ledger::proof::{CommittedField, NotAProof, NotProven, Opening, ledger_keys};
use lychgate_ledger::tree::{Leaves, ProofFault, inclusion_proof};
use lychgate_ledger::{LeafHash, ReceiptProof, Trust, VerifierKey, leaf_hash};

const SALT: Salt = Salt([9; 16]);
const SIZE: u64 = 300;
const INDEX: u64 = 77;

fn receipt() -> String {
    let commit = |label, value| String::from(Commitment::to(&SALT, label, value));
    let text = format!(
        r#"{{"version":"1.0","object_type":"validation_receipt","kind":"denied","at":"2026-01-01T00:00:05.000Z",
        "gate_id":"gate-01890a5d-ac96-774b-bcce-b302099a8057","act":{{"candidate_act_id":"act-01890a5d-ac96-774b-bcce-b302099a8057",
        "agent_id":"a","delegation_depth":0,"arguments_commitment":"{}","destination_commitment":"{}","vouched":false}},
        "state":"refused","epochs":{{"policy_epoch":1,"authority_epoch":1,"revocation_epoch":1}},
        "enforcement":"finality","isolation":"same-user","approver":"key"}}"#,
        commit("arguments_digest", b"thirty-two bytes of a digest...."),
        commit("destination", b"{\"id\":\"x\"}"),
    );
    let value = json::parse(text.as_bytes(), &json::Limits::OBJECT).unwrap();
    let receipt: Receipt = json::from_value(&value).unwrap();
    assert_eq!(receipt.to_bytes().unwrap(), jcs::to_bytes(&value));
    String::from_utf8(receipt.to_bytes().unwrap()).unwrap()
}

fn log(receipt: &str) -> Vec<LeafHash> {
    let mut all = leaves(SIZE);
    all[INDEX as usize] = leaf_hash(receipt.as_bytes());
    all
}

fn proof() -> ReceiptProof {
    let receipt = receipt();
    let all = log(&receipt);
    let mut checkpoint = head(SIZE, root_of(&all), 1);
    checkpoint
        .cosign(&name("wit.example"), 5, &signer(2))
        .unwrap();
    ReceiptProof {
        inclusion: inclusion_proof(INDEX, SIZE, &Leaves(&all)).unwrap(),
        receipt,
        index: INDEX,
        checkpoint,
        openings: vec![Opening {
            field: CommittedField::Destination,
            salt: SALT,
            value: b"{\"id\":\"x\"}".to_vec(),
        }],
    }
}

fn second(second: u64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00.000Z".parse().unwrap();
    start.after(std::time::Duration::from_secs(second))
}

fn bundle() -> TrustBundle {
    let mut bundle = TrustBundle::new();
    bundle
        .add(Role::Ledger, signer(1).public(), second(0))
        .unwrap();
    bundle
        .add(Role::Ped, signer(4).public(), second(0))
        .unwrap();
    bundle
}

fn witnesses() -> [VerifierKey; 1] {
    [key("wit.example", SignatureKind::Cosignature, 2)]
}

fn trust<'a>(bundle: &'a TrustBundle, witnesses: &'a [VerifierKey]) -> Trust<'a> {
    let quorum = witnesses.len();
    Trust {
        bundle,
        origin: None,
        witnesses,
        quorum,
    }
}

#[test]
fn a_mailed_receipt_is_proven_from_its_bytes_alone() {
    let bytes = proof().to_bytes().unwrap();
    let read = ReceiptProof::parse(&bytes).unwrap();
    assert_eq!(read, proof());
    assert_eq!(
        ReceiptProof::parse(&[&bytes[..], b"\n"].concat()),
        Ok(proof())
    );
    let (bundle, witnesses) = (bundle(), witnesses());
    let origin = Trust {
        origin: Some(common::ORIGIN),
        ..trust(&bundle, &witnesses)
    };
    let proven = read.verify(&origin).unwrap();
    assert_eq!((proven.index, proven.size), (INDEX, SIZE));
    assert_eq!(&proven.signed_by, signer(1).key_id());
    assert_eq!(proven.cosignatures[0].time, 5);
    assert_eq!(
        proven.opened,
        [(CommittedField::Destination, b"{\"id\":\"x\"}".to_vec())]
    );
    assert_eq!(ledger_keys(&bundle, common::ORIGIN).len(), 1);
}

#[test]
fn no_bit_of_the_file_may_change() {
    let bytes = proof().to_bytes().unwrap();
    let (bundle, witnesses) = (bundle(), witnesses());
    let trust = trust(&bundle, &witnesses);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            let proven =
                ReceiptProof::parse(&other).is_ok_and(|proof| proof.verify(&trust).is_ok());
            assert!(!proven, "byte {at} bit {bit}");
        }
    }
}

#[test]
fn each_reason_not_to_believe_it_is_named() {
    let (bundle, none) = (bundle(), TrustBundle::new());
    let witnesses = witnesses();
    let verify = |change: fn(&mut ReceiptProof)| {
        let mut proof = proof();
        change(&mut proof);
        proof.verify(&trust(&bundle, &witnesses)).unwrap_err()
    };
    let opening = NotProven::Opening("destination");
    assert_eq!(verify(|proof| proof.openings[0].salt.0[0] ^= 1), opening);
    assert_eq!(verify(|proof| proof.openings[0].value.push(0)), opening);
    assert_eq!(
        verify(|proof| proof.openings.extend(proof.openings.clone())),
        opening
    );
    assert_eq!(
        verify(|proof| proof.index += 1),
        NotProven::Inclusion(ProofFault::Root)
    );
    assert_eq!(
        verify(|proof| proof.receipt.push(' ')),
        NotProven::ReceiptForm
    );
    let edited = verify(|proof| proof.receipt = proof.receipt.replace("refused", "expired"));
    assert_eq!(edited, NotProven::Inclusion(ProofFault::Root));
    assert!(matches!(
        verify(|proof| proof.receipt.clear()),
        NotProven::ReceiptJson(_)
    ));
    assert!(matches!(
        verify(|proof| proof.receipt = "{}".into()),
        NotProven::Receipt(_)
    ));
    let quorum = NotProven::Quorum {
        needed: 1,
        found: 0,
    };
    assert_eq!(
        verify(|proof| {
            let (size, root) = (
                proof.checkpoint.checkpoint().size(),
                *proof.checkpoint.checkpoint().root(),
            );
            proof.checkpoint = head(size, root, 1);
        }),
        quorum
    );

    let proof = proof();
    let origin = Trust {
        origin: Some("other.example"),
        ..trust(&bundle, &[])
    };
    assert_eq!(
        proof.verify(&origin),
        Err(NotProven::Origin(common::ORIGIN.into()))
    );
    assert!(matches!(
        proof.verify(&trust(&none, &[])),
        Err(NotProven::Checkpoint(_))
    ));
    // Another role's key is not the ledger's.
    let mut wrong = TrustBundle::new();
    wrong.add(Role::Ped, signer(1).public(), second(0)).unwrap();
    assert!(matches!(
        proof.verify(&trust(&wrong, &[])),
        Err(NotProven::Checkpoint(_))
    ));
}

#[test]
fn a_retired_key_covers_what_came_before() {
    let retired = |at| {
        let mut bundle = bundle();
        bundle.retire(signer(1).key_id(), second(at)).unwrap();
        proof()
            .verify(&trust(&bundle, &[]))
            .map(|proven| proven.index)
    };
    assert_eq!(retired(6), Ok(INDEX));
    assert_eq!(retired(5), Err(NotProven::Retired(second(5))));
    // A later key's head over an old receipt counts.
    let mut later = TrustBundle::new();
    later
        .add(Role::Ledger, signer(1).public(), second(1_000))
        .unwrap();
    assert!(proof().verify(&trust(&later, &[])).is_ok());
}

#[test]
fn other_forms_are_no_proof() {
    let text = String::from_utf8(proof().to_bytes().unwrap()).unwrap();
    let parse = |text: String| ReceiptProof::parse(text.as_bytes()).unwrap_err();
    assert_eq!(parse(text.replacen(':', ": ", 1)), NotAProof::NotCanonical);
    assert!(matches!(
        parse(text.replacen("\"index\"", "\"indez\"", 1)),
        NotAProof::Shape(_)
    ));
    assert!(matches!(
        parse(text.replacen("receipt_proof", "receipt_proop", 1)),
        NotAProof::Shape(_)
    ));
    assert!(matches!(
        parse(text.replacen("\"inclusion\":[\"", "\"inclusion\":[\"A", 1)),
        NotAProof::Hash
    ));
    assert!(matches!(
        parse(text.replacen("\"salt\":\"", "\"salt\":\"A", 1)),
        NotAProof::Opening
    ));
    assert!(matches!(parse(format!("{text}{text}")), NotAProof::Json(_)));
}
