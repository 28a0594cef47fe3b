//! `lychgate verify` from outside: what a mailed file proves, and that every mutated one is refused at its step. The
//! files of `tests/cmd/verify.in` are made here: `TRYCMD=overwrite cargo test -p lychgate --test verify` writes them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lychgate_core::Timestamp;
use lychgate_core::json::{self, Limits};
use lychgate_core::receipt::{Commitment, Receipt, Salt};
use lychgate_keys::{Role, SigningKey, TrustBundle};
use lychgate_ledger::note::SignatureKind;
use lychgate_ledger::proof::{CommittedField, Opening};
use lychgate_ledger::tree::{Leaves, inclusion_proof};
use lychgate_ledger::{
    Checkpoint, KeyName, LeafHash, ReceiptProof, SignedCheckpoint, VerifierKey, leaf_hash, root,
};
use serde_json::Value;

const SIZE: u64 = 300;
const INDEX: u64 = 77;
const ORIGIN: &str = "lychgate.example/gate";
const SALT: Salt = Salt([9; 16]);
const DESTINATION: &[u8] =
    br#"{"destination_id":"file:///home/alice/src/notes.txt","destination_type":"file"}"#;
const ARGUMENTS: &[u8] = b"thirty-two bytes of a digest....";

fn signer(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn second(second: u64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00.000Z".parse().unwrap();
    start.after(Duration::from_secs(second))
}

fn commit(field: CommittedField, value: &[u8]) -> String {
    let label = field.label();
    Commitment::to(&SALT.of_field(label), label, value).into()
}

fn receipt() -> String {
    let text = format!(
        r#"{{"version":"1.0","object_type":"validation_receipt","kind":"dispatched","at":"2026-01-01T00:00:05.000Z",
        "gate_id":"gate-01890a5d-ac96-774b-bcce-b302099a8057","act":{{"candidate_act_id":"act-01890a5d-ac96-774b-bcce-b302099a8057",
        "agent_id":"agent:assistant","delegation_depth":0,"tool_id":"files","function_id":"write_file",
        "consequence_class":"PERSISTENT_STATE_CHANGE","arguments_commitment":"{}","destination_commitment":"{}","vouched":false}},
        "state":"dispatched","epochs":{{"policy_epoch":1,"authority_epoch":1,"revocation_epoch":1}},
        "enforcement":"finality","isolation":"same-user","approver":"key"}}"#,
        commit(CommittedField::ArgumentsDigest, ARGUMENTS),
        commit(CommittedField::Destination, DESTINATION),
    );
    let value = json::parse(text.as_bytes(), &Limits::OBJECT).unwrap();
    let receipt: Receipt = json::from_value(&value).unwrap();
    String::from_utf8(receipt.to_bytes().unwrap()).unwrap()
}

fn signed(seed: u8, size: u64, all: &[LeafHash], origin: &str) -> SignedCheckpoint {
    let head = Checkpoint::new(origin, size, root(all.iter().copied())).unwrap();
    SignedCheckpoint::sign(head, &signer(seed)).unwrap()
}

fn leaves() -> Vec<LeafHash> {
    let mut all: Vec<LeafHash> = (0..SIZE).map(|at| leaf_hash(&at.to_be_bytes())).collect();
    all[INDEX as usize] = leaf_hash(receipt().as_bytes());
    all
}

fn proof() -> ReceiptProof {
    let all = leaves();
    let mut checkpoint = signed(1, SIZE, &all, ORIGIN);
    let name = KeyName::new("wit.example").unwrap();
    let time = second(6).as_millis() / 1000;
    checkpoint.cosign(&name, time, &signer(2)).unwrap();
    let open = |field: CommittedField, value: &[u8]| Opening {
        field,
        salt: SALT.of_field(field.label()),
        value: value.to_vec(),
    };
    ReceiptProof {
        inclusion: inclusion_proof(INDEX, SIZE, &Leaves(&all)).unwrap(),
        receipt: receipt(),
        index: INDEX,
        checkpoint,
        openings: vec![
            open(CommittedField::ArgumentsDigest, ARGUMENTS),
            open(CommittedField::Destination, DESTINATION),
        ],
    }
}

fn bundle() -> TrustBundle {
    let mut bundle = TrustBundle::new();
    for (role, seed) in [(Role::Ledger, 1), (Role::Ped, 4)] {
        bundle.add(role, signer(seed).public(), second(0)).unwrap();
    }
    bundle
}

fn witness() -> String {
    let name = KeyName::new("wit.example").unwrap();
    let key = VerifierKey::new(name, SignatureKind::Cosignature, signer(2).public());
    key.unwrap().to_string()
}

fn bytes(proof: &ReceiptProof) -> Vec<u8> {
    [&proof.to_bytes().unwrap()[..], b"\n"].concat()
}

/// Status, standard output, standard error.
fn verify(folder: &Path, file: &[u8], trust: &[u8], words: &[&str]) -> (i32, Value, String) {
    let (proof, bundle) = (folder.join("proof.json"), folder.join("trust.json"));
    std::fs::write(&proof, file).unwrap();
    std::fs::write(&bundle, trust).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_lychgate"))
        .env_clear()
        .arg("verify")
        .arg(&proof)
        .arg("--trust")
        .arg(&bundle)
        .args(words)
        .arg("--json")
        .output()
        .unwrap();
    let said = serde_json::from_slice(&ran.stdout).unwrap_or_default();
    let error = String::from_utf8_lossy(&ran.stderr).into_owned();
    (ran.status.code().unwrap(), said, error)
}

/// What a mutation does to the file and the trust bundle, by the step that must find it.
fn mutations() -> Vec<(&'static str, &'static str, Vec<u8>, Vec<u8>)> {
    let trust = || bundle().to_bytes().unwrap();
    let with = |change: fn(&mut ReceiptProof)| {
        let mut other = proof();
        change(&mut other);
        bytes(&other)
    };
    let text = |from: &str, to: &str| {
        let whole = String::from_utf8(bytes(&proof())).unwrap();
        assert!(whole.contains(from), "{from}");
        whole.replacen(from, to, 1).into_bytes()
    };
    let mut rows = vec![
        ("nothing in it", "file", Vec::new(), trust()),
        (
            "cut short",
            "file",
            bytes(&proof())[..400].to_vec(),
            trust(),
        ),
        ("a space more", "file", text("{", "{ "), trust()),
        (
            "two lines after it",
            "file",
            [&bytes(&proof())[..], b"\n"].concat(),
            trust(),
        ),
        (
            "a member more",
            "file",
            text("\"version\"", "\"verity\":1,\"version\""),
            trust(),
        ),
        (
            "an index in words",
            "file",
            text("\"index\":77", "\"index\":\"77\""),
            trust(),
        ),
        (
            "receipt: another time",
            "inclusion",
            text("00:00:05", "00:00:04"),
            trust(),
        ),
        (
            "receipt: another class",
            "inclusion",
            text("PERSISTENT_STATE_CHANGE", "INFORMATIONAL"),
            trust(),
        ),
        (
            "receipt: no receipt",
            "receipt",
            text("validation_receipt", "validation_recipe"),
            trust(),
        ),
        (
            "receipt: another spelling",
            "receipt",
            with(|p| p.receipt.insert(1, ' ')),
            trust(),
        ),
        (
            "path: a bit",
            "inclusion",
            with(|p| p.inclusion[3][0] ^= 1),
            trust(),
        ),
        (
            "path: one hash less",
            "inclusion",
            with(|p| p.inclusion.truncate(5)),
            trust(),
        ),
        (
            "path: one hash more",
            "inclusion",
            with(|p| p.inclusion.push([0; 32])),
            trust(),
        ),
        (
            "path: two swapped",
            "inclusion",
            with(|p| p.inclusion.swap(0, 1)),
            trust(),
        ),
        (
            "index: the next",
            "inclusion",
            with(|p| p.index += 1),
            trust(),
        ),
        (
            "index: beyond",
            "inclusion",
            with(|p| p.index = SIZE),
            trust(),
        ),
        (
            "size: one more",
            "signature",
            text("\\n300\\n", "\\n301\\n"),
            trust(),
        ),
        (
            "size: with a zero before it",
            "file",
            text("\\n300\\n", "\\n0300\\n"),
            trust(),
        ),
        (
            "origin: another",
            "key",
            text("lychgate.example/gate\\n", "lychgate.example/gatf\\n"),
            trust(),
        ),
        (
            "head: of another key",
            "key",
            with(|p| p.checkpoint = signed(3, SIZE, &leaves(), ORIGIN)),
            trust(),
        ),
        (
            "head: over other records",
            "inclusion",
            with(|p| p.checkpoint = signed(1, SIZE - 1, &leaves()[1..], ORIGIN)),
            trust(),
        ),
        (
            "opening: another salt",
            "opening",
            with(|p| p.openings[0].salt.0[0] ^= 1),
            trust(),
        ),
        (
            "opening: another value",
            "opening",
            with(|p| p.openings[1].value[2] ^= 1),
            trust(),
        ),
        (
            "opening: of the other field",
            "opening",
            with(|p| p.openings[0].field = CommittedField::Destination),
            trust(),
        ),
        (
            "opening: twice",
            "opening",
            with(|p| p.openings[0] = p.openings[1].clone()),
            trust(),
        ),
        (
            "key: not in the bundle",
            "key",
            bytes(&proof()),
            TrustBundle::new().to_bytes().unwrap(),
        ),
        ("key: called otherwise", "trust", bytes(&proof()), renamed()),
        (
            "key: in another role",
            "key",
            bytes(&proof()),
            of_role(Role::Sink),
        ),
        ("key: retired before", "key", bytes(&proof()), retired(5)),
        ("bundle: not one", "trust", bytes(&proof()), b"{}".to_vec()),
    ];
    rows.push(("root: a bit", "signature", root_changed(), trust()));
    rows.push((
        "signature: a bit",
        "signature",
        signature_changed(0),
        trust(),
    ));
    rows
}

fn lines_changed(change: impl Fn(&mut Vec<String>)) -> Vec<u8> {
    let mut document: Value = serde_json::from_slice(&bytes(&proof())).unwrap();
    let note = document["checkpoint"].as_str().unwrap();
    let mut lines: Vec<String> = note.split('\n').map(str::to_owned).collect();
    change(&mut lines);
    document["checkpoint"] = lines.join("\n").into();
    // Sorted members: the canonical form.
    format!("{document}\n").into_bytes()
}

/// A letter inside base64 that stays base64.
fn other_letter(text: &mut String, at: usize) {
    let other = if text.as_bytes()[at] == b'A' {
        "B"
    } else {
        "A"
    };
    text.replace_range(at..=at, other);
}

fn root_changed() -> Vec<u8> {
    lines_changed(|lines| other_letter(&mut lines[2], 5))
}

/// The log's signature is line 0 of the signatures, the witness' line 1.
fn signature_changed(line: usize) -> Vec<u8> {
    lines_changed(|lines| {
        let line = &mut lines[4 + line];
        let at = line.len() - 20;
        other_letter(line, at);
    })
}

fn renamed() -> Vec<u8> {
    let text = String::from_utf8(bundle().to_bytes().unwrap()).unwrap();
    let id = signer(1).key_id().0.clone();
    let mut other = id.clone();
    other_letter(&mut other, 3);
    text.replace(id.as_str(), &other).into_bytes()
}

fn of_role(role: Role) -> Vec<u8> {
    let mut bundle = TrustBundle::new();
    bundle.add(role, signer(1).public(), second(0)).unwrap();
    bundle.to_bytes().unwrap()
}

fn retired(at: u64) -> Vec<u8> {
    let mut bundle = bundle();
    bundle.retire(signer(1).key_id(), second(at)).unwrap();
    bundle.to_bytes().unwrap()
}

#[test]
fn every_mutated_file_is_refused_at_its_step() {
    let folder = tempfile::tempdir().unwrap();
    for (what, step, file, trust) in mutations() {
        let (status, said, error) = verify(folder.path(), &file, &trust, &[]);
        assert_eq!(status, 1, "{what}: {error}");
        assert_eq!(said["proven"], false, "{what}");
        assert_eq!(said["failed_step"], step, "{what}: {error}");
        assert!(error.contains(&format!("`{step}`")), "{what}: {error}");
    }
}

#[test]
fn a_good_file_is_proven_with_what_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (witness, trust) = (witness(), bundle().to_bytes().unwrap());
    let good = bytes(&proof());
    for words in [
        &[][..],
        &["--origin", ORIGIN],
        &["--witness", &witness],
        &["--witness", &witness, "--quorum", "1"],
    ] {
        let (status, said, error) = verify(folder.path(), &good, &trust, words);
        assert_eq!(status, 0, "{error}");
        assert_eq!(said["proven"], true);
        assert_eq!(said["index"], INDEX);
        assert_eq!(said["opened"]["destination"]["destination_type"], "file");
    }
    // A key retired after the receipt still proves it.
    assert_eq!(verify(folder.path(), &good, &retired(6), &[]).0, 0);
    for (words, step, file) in [
        (&["--origin", "another/log"][..], "origin", good.clone()),
        (&["--witness", &witness, "--quorum", "2"], "witnesses", good),
        (&["--witness", &witness], "signature", signature_changed(1)),
    ] {
        let (status, said, error) = verify(folder.path(), &file, &trust, words);
        assert_eq!(
            (status, said["failed_step"].as_str()),
            (1, Some(step)),
            "{error}"
        );
    }
}

#[test]
fn the_files_of_the_golden_test_are_these() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cmd/verify.in");
    let overwrite = std::env::var_os("TRYCMD").is_some_and(|what| what == "overwrite");
    for (name, bytes) in [
        ("receipt.json", bytes(&proof())),
        ("changed.json", {
            let whole = String::from_utf8(bytes(&proof())).unwrap();
            whole.replacen("00:00:05", "00:00:04", 1).into_bytes()
        }),
        (
            "trust.json",
            [&bundle().to_bytes().unwrap()[..], b"\n"].concat(),
        ),
        ("witness.txt", format!("{}\n", witness()).into_bytes()),
    ] {
        let path = folder.join(name);
        if overwrite {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
    }
}
