#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lychgate_ledger::tree::{Leaves, consistency_proof, root_at};
use lychgate_ledger::{Checkpoint, LeafHash, SignedCheckpoint, leaf_hash};

use std::path::Path;

use super::*;

const ORIGIN: &str = "log.example";

fn signer() -> SigningKey {
    SigningKey::from_seed(&[1; 32]).unwrap()
}

fn options(folder: &Path) -> WitnessOptions {
    let name = KeyName::new(ORIGIN).unwrap();
    let log = VerifierKey::new(name, SignatureKind::Ed25519, signer().public()).unwrap();
    WitnessOptions {
        folder: folder.to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        name: None,
        logs: vec![log],
        report: |_| {},
    }
}

/// A folder that only its owner may enter.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("witness")
    }
}

fn witness(folder: &Path) -> Witness {
    let memory = Memory::open(folder).unwrap();
    let key = lone_key(&folder.join("witness.key"), "witness").unwrap();
    Witness::new(&options(folder), key, memory).unwrap()
}

/// A log whose records from `fork` on are others.
fn leaves(fork: u8) -> Vec<LeafHash> {
    (0..40u8)
        .map(|at| leaf_hash(&[at, u8::from(at >= fork)]))
        .collect()
}

fn request(old: u64, new: u64, fork: u8) -> Vec<u8> {
    let leaves = leaves(fork);
    let reader = Leaves(&leaves);
    let head = Checkpoint::new(ORIGIN, new, root_at(new, &reader).unwrap()).unwrap();
    AddCheckpoint {
        old,
        proof: consistency_proof(old.min(new), new, &reader).unwrap(),
        checkpoint: SignedCheckpoint::sign(head, &signer()).unwrap(),
    }
    .to_string()
    .into_bytes()
}

#[test]
fn it_cosigns_growth_and_remembers_it_across_a_restart() {
    let folder = Home::new();
    let first = witness(&folder.path());
    let key = first.verifier.clone();
    let answer = first.add_checkpoint(&request(0, 5, 99));
    assert_eq!(answer.status, 200);
    assert_eq!(first.add_checkpoint(&request(5, 20, 99)).status, 200);
    // The cosignature is one that the log's own side takes.
    let body = request(5, 20, 99);
    let mut asked = AddCheckpoint::parse(&body).unwrap().checkpoint;
    let again = first.add_checkpoint(&request(20, 20, 99));
    assert_eq!(
        asked.add_cosignatures(&again.body, std::slice::from_ref(&key)),
        Ok(1)
    );
    drop(first);

    let second = witness(&folder.path());
    assert_eq!(second.verifier, key);
    for old in [0, 5, 21] {
        let answer = second.add_checkpoint(&request(old, 30, 99));
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (409, "20\n"),
            "{old}"
        );
    }
    assert_eq!(second.add_checkpoint(&request(20, 30, 99)).status, 200);
}

#[test]
fn it_never_cosigns_a_fork_or_a_rollback() {
    let folder = Home::new();
    let witness = witness(&folder.path());
    assert_eq!(witness.add_checkpoint(&request(0, 20, 99)).status, 200);
    // Another story of the same size, whoever asks; the first stays what is remembered.
    assert_eq!(witness.add_checkpoint(&request(20, 20, 10)).status, 409);
    assert_eq!(witness.add_checkpoint(&request(20, 30, 10)).status, 422);
    assert_eq!(witness.add_checkpoint(&request(20, 10, 99)).status, 400);
    assert_eq!(witness.add_checkpoint(&request(0, 10, 99)).status, 409);
    assert_eq!(witness.add_checkpoint(&request(10, 20, 10)).status, 409);
    let forks = std::fs::read_dir(folder.path().join("forks")).unwrap();
    assert_eq!(forks.count(), 1, "the proof that the log lies is kept");
    assert_eq!(witness.add_checkpoint(&request(20, 30, 99)).status, 200);
}

#[test]
fn it_answers_only_for_its_logs() {
    let folder = Home::new();
    let witness = witness(&folder.path());
    let body = String::from_utf8(request(0, 5, 99)).unwrap();
    let other = body.replace(ORIGIN, "other.example");
    assert_eq!(witness.add_checkpoint(other.as_bytes()).status, 404);
    let key = SigningKey::from_seed(&[2; 32]).unwrap();
    let head = Checkpoint::new(ORIGIN, 5, root_at(5, &Leaves(&leaves(99))).unwrap()).unwrap();
    let forged = AddCheckpoint {
        old: 0,
        proof: Vec::new(),
        checkpoint: SignedCheckpoint::sign(head, &key).unwrap(),
    };
    let forged = witness.add_checkpoint(forged.to_string().as_bytes());
    assert_eq!(forged.status, 403);
    assert_eq!(witness.add_checkpoint(b"old 0\n").status, 400);
    assert_eq!(witness.add_checkpoint(&request(0, 5, 99)).status, 200);
}

#[test]
fn without_what_it_remembers_it_does_not_start() {
    let folder = Home::new();
    let first = witness(&folder.path());
    assert_eq!(first.add_checkpoint(&request(0, 20, 99)).status, 200);
    assert!(matches!(
        Memory::open(&folder.path()),
        Err(MemoryFault::Locked(_))
    ));
    drop(first);
    let heads = folder.path().join("heads");
    let [head] = std::fs::read_dir(&heads)
        .unwrap()
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let path = head.unwrap().path();
    // A write that was cut off is not the memory.
    std::fs::write(path.with_extension("new"), b"half").unwrap();
    drop(Memory::open(&folder.path()).unwrap());
    std::fs::write(&path, b"half").unwrap();
    assert!(matches!(
        Memory::open(&folder.path()),
        Err(MemoryFault::Head { .. })
    ));
}

#[test]
fn what_cannot_be_kept_is_not_cosigned() {
    let folder = Home::new();
    let witness = witness(&folder.path());
    assert_eq!(witness.add_checkpoint(&request(0, 5, 99)).status, 200);
    // A folder stands where the next head would be written.
    let heads = folder.path().join("heads");
    let [head] = std::fs::read_dir(&heads)
        .unwrap()
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let next = head.unwrap().path().with_extension("new");
    std::fs::create_dir(&next).unwrap();
    let answer = witness.add_checkpoint(&request(5, 20, 99));
    assert_eq!(answer.status, 500);
    assert!(!answer.body.contains('—'));
    // Nobody knows what the disk holds now: it stays so until it is started again.
    std::fs::remove_dir(&next).unwrap();
    assert_eq!(witness.add_checkpoint(&request(5, 20, 99)).status, 500);
}
