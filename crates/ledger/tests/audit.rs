//! Every way to spoil a record, and the finding it gives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{ORIGIN, entry, key, name, root_of, signer};
use lychgate_ledger::audit::{Clean, Difference, Record, against_anchor, first_difference};
use lychgate_ledger::note::SignatureKind;
use lychgate_ledger::tree::Leaves;
use lychgate_ledger::{
    Auditor, Checkpoint, Finding, LeafHash, SignedCheckpoint, VerifiedCheckpoint, leaf_hash,
};

#[derive(Clone)]
struct Line {
    index: u64,
    bytes: Option<Vec<u8>>,
    leaf: LeafHash,
}

fn record(count: u64) -> Vec<Line> {
    (0..count).map(|index| line(index, entry(index))).collect()
}

fn line(index: u64, bytes: Vec<u8>) -> Line {
    Line {
        index,
        leaf: leaf_hash(&bytes),
        bytes: Some(bytes),
    }
}

/// As a thief of the disk leaves it: numbers in order again.
fn renumber(record: &mut [Line]) {
    (0..)
        .zip(record)
        .for_each(|(index, line)| line.index = index);
}

fn hashes(record: &[Line]) -> Vec<LeafHash> {
    record.iter().map(|line| line.leaf).collect()
}

fn verified(origin: &str, size: u64, root: [u8; 32]) -> VerifiedCheckpoint {
    let head = Checkpoint::new(origin, size, root).unwrap();
    let signed = SignedCheckpoint::sign(head, &signer(1)).unwrap();
    let key = key(name(origin).as_str(), SignatureKind::Ed25519, 1);
    signed.verify(&[key], &[]).unwrap()
}

fn heads(record: &[Line], sizes: &[u64]) -> Vec<VerifiedCheckpoint> {
    let leaves = hashes(record);
    let head = |size: &u64| verified(ORIGIN, *size, root_of(&leaves[..*size as usize]));
    sizes.iter().map(head).collect()
}

fn audit(
    record: &[Line],
    own: &[VerifiedCheckpoint],
    anchored: &[VerifiedCheckpoint],
) -> Result<Clean, Finding> {
    let mut auditor = Auditor::new(own, anchored)?;
    for line in record {
        auditor.record(Record {
            index: line.index,
            bytes: line.bytes.as_deref(),
            leaf: line.leaf,
        })?;
    }
    auditor.finish()
}

#[test]
fn an_honest_record_is_clean() {
    let mut all = record(20);
    all[..5].iter_mut().for_each(|line| line.bytes = None);
    let (own, anchored) = (heads(&all, &[0, 4, 9, 18]), heads(&all, &[9, 9, 4]));
    let clean = audit(&all, &own, &anchored).unwrap();
    let root = root_of(&hashes(&all));
    assert_eq!(
        clean,
        Clean {
            size: 20,
            root,
            sealed: 18,
            anchored: Some(9),
            without_bytes: 5
        }
    );
    assert_eq!(audit(&[], &[], &[]).unwrap().sealed, 0);
}

#[test]
fn each_spoiled_record_gives_its_finding() {
    let all = record(20);
    let own = heads(&all, &[4, 9, 18]);
    let spoil = |change: fn(&mut Vec<Line>)| {
        let mut other = all.clone();
        change(&mut other);
        audit(&other, &own, &[]).unwrap_err()
    };
    assert_eq!(
        spoil(|all| all[7].bytes.as_mut().unwrap().push(0)),
        Finding::Edited { index: 7 }
    );
    assert_eq!(
        spoil(|all| all[7].leaf.0[0] ^= 1),
        Finding::Edited { index: 7 }
    );
    assert_eq!(
        spoil(|all| drop(all.remove(7))),
        Finding::Missing { index: 7, found: 8 }
    );
    assert_eq!(
        spoil(|all| all.swap(7, 8)),
        Finding::Missing { index: 7, found: 8 }
    );
    assert_eq!(
        spoil(|all| all.insert(7, all[3].clone())),
        Finding::Reordered { index: 7, found: 3 }
    );
    assert_eq!(
        spoil(|all| all.truncate(17)),
        Finding::Truncated {
            size: 17,
            sealed: 18
        }
    );
    let rewritten = Finding::Rewritten { from: 4, to: 9 };
    assert_eq!(spoil(|all| all[7] = line(7, b"forged".to_vec())), rewritten);
    assert_eq!(
        spoil(|all| {
            all.remove(7);
            renumber(all);
        }),
        rewritten
    );
    assert_eq!(
        spoil(|all| {
            all.swap(7, 8);
            renumber(all);
        }),
        rewritten
    );
    assert_eq!(
        spoil(|all| {
            all.insert(7, all[3].clone());
            renumber(all);
        }),
        rewritten
    );
    // Behind the last head nothing is proved, and the audit says so.
    let mut tail = all.clone();
    tail[18] = line(18, b"forged".to_vec());
    assert_eq!(audit(&tail, &own, &[]).unwrap().sealed, 18);
}

#[test]
fn the_anchor_tells_what_the_log_s_own_heads_cannot() {
    let all = record(20);
    let anchored = heads(&all, &[4, 9, 18]);
    // Rewritten from 6 on and signed anew, at other sizes than were anchored.
    let mut forged = all.clone();
    forged[6] = line(6, b"forged".to_vec());
    let resealed = Finding::Resealed { from: 4, to: 9 };
    assert_eq!(
        audit(&forged, &heads(&forged, &[4, 8, 19]), &anchored),
        Err(resealed)
    );
    // Signed anew at one that was: two heads of one size.
    let finding = audit(&forged, &heads(&forged, &[9]), &anchored).unwrap_err();
    assert!(matches!(finding, Finding::Forked { size: 9, .. }));
    // Shorter and sealed anew.
    let short = &forged[..9];
    let finding = audit(short, &heads(&forged, &[8]), &anchored).unwrap_err();
    assert_eq!(finding, Finding::Rewritten { from: 4, to: 9 });
    // Restored from a backup, heads and all: everything agrees, and it ends too early.
    let old = &all[..12];
    let rolled_back = Finding::RolledBack {
        size: 12,
        anchored: 18,
    };
    assert_eq!(
        audit(old, &heads(&all, &[4, 9, 12]), &anchored),
        Err(rolled_back)
    );
    // Only the record restored, not the heads.
    let truncated = Finding::Truncated {
        size: 12,
        sealed: 18,
    };
    assert_eq!(audit(old, &heads(&all, &[18]), &anchored), Err(truncated));
    // Rewritten without the log's key.
    let rewritten = Finding::Rewritten { from: 4, to: 9 };
    assert_eq!(
        audit(&forged, &heads(&all, &[18]), &anchored),
        Err(rewritten.clone())
    );
    assert_eq!(audit(&forged, &[], &anchored), Err(rewritten));
}

#[test]
fn heads_alone_show_a_fork_and_a_stranger() {
    let one = verified(ORIGIN, 5, [1; 32]);
    let other = verified(ORIGIN, 5, [2; 32]);
    let stranger = verified("other.example", 6, [2; 32]);
    let forked = Finding::Forked {
        size: 5,
        one: [1; 32],
        other: [2; 32],
    };
    assert_eq!(Auditor::new([&one, &other], []).unwrap_err(), forked);
    assert_eq!(Auditor::new([&one], [&other]).unwrap_err(), forked);
    let two = Finding::TwoLogs(ORIGIN.into(), "other.example".into());
    assert_eq!(Auditor::new([&one], [&stranger]).unwrap_err(), two);
}

#[test]
fn the_first_difference_is_named() {
    let all = hashes(&record(20));
    let spoil = |change: fn(&mut Vec<LeafHash>)| {
        let mut other = all.clone();
        change(&mut other);
        first_difference(100, other, all.clone())
    };
    assert_eq!(spoil(|_| ()), None);
    assert_eq!(
        spoil(|all| all[7].0[0] ^= 1),
        Some(Difference::Replaced { index: 107 })
    );
    assert_eq!(
        spoil(|all| {
            all.remove(7);
        }),
        Some(Difference::Dropped { index: 107 })
    );
    assert_eq!(
        spoil(|all| all.insert(7, LeafHash([0; 32]))),
        Some(Difference::Inserted { index: 107 })
    );
    assert_eq!(
        spoil(|all| all.swap(7, 8)),
        Some(Difference::Swapped { index: 107 })
    );
    assert_eq!(
        spoil(|all| all.swap(7, 12)),
        Some(Difference::Replaced { index: 107 })
    );
    assert_eq!(
        spoil(|all| all.truncate(19)),
        Some(Difference::Dropped { index: 119 })
    );
    assert_eq!(
        spoil(|all| all.push(LeafHash([0; 32]))),
        Some(Difference::Inserted { index: 120 })
    );
}

#[test]
fn a_store_older_than_its_anchor_is_told_before_the_gate_starts() {
    let leaves = hashes(&record(20));
    let ask = |size: usize, anchored: &VerifiedCheckpoint| {
        against_anchor(size as u64, &Leaves(&leaves[..size]), anchored.checkpoint()).unwrap()
    };
    for head in heads(&record(20), &[0, 9, 20]) {
        assert_eq!(ask(20, &head), None);
    }
    let ahead = &heads(&record(20), &[18])[0];
    assert_eq!(
        ask(12, ahead),
        Some(Finding::RolledBack {
            size: 12,
            anchored: 18
        })
    );
    let other = verified(ORIGIN, 9, [1; 32]);
    assert_eq!(ask(20, &other), Some(Finding::Rewritten { from: 0, to: 9 }));
}
