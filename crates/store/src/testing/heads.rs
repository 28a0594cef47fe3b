//! The record is a verifiable log: signed heads, and proofs from what is kept.

use lychgate_ledger::tiles::check_tiles;
use lychgate_ledger::tree::{consistency_proof, inclusion_proof};
use lychgate_ledger::{
    Checkpoint, SignedCheckpoint, TileReader, verify_consistency, verify_inclusion,
};

use super::Place;
use super::make::*;
use crate::row::HeadRow;
use crate::txn::{Entry, Note, Prune, Txn};
use crate::{Rejected, Store, StoreTiles};

type Make<'m> = &'m mut dyn FnMut() -> Box<dyn Place>;

/// Appends lines numbered on from those there are.
fn append(store: &dyn Store, lines: u64) {
    let first = store.record_len().unwrap();
    let line = |n| -> Entry { entry(&format!("line {n}")) };
    let receipts = (first..first + lines).map(line).collect();
    done(
        store,
        Txn::Note(Note {
            now: at(1),
            receipts,
        }),
    );
}

/// What a head says, once its signature was verified.
pub fn believed(head: &HeadRow) -> Checkpoint {
    let signed = SignedCheckpoint::parse(&head.note).unwrap();
    let verified = signed.verify(&[log_key()], &[]).unwrap();
    assert_eq!(verified.checkpoint().size(), head.size);
    verified.checkpoint().clone()
}

pub fn every_line_is_covered_by_a_signed_head(make: Make<'_>) {
    let place = make();
    let store = place.open();
    assert_eq!(store.newest_head().unwrap(), None);
    assert_eq!(store.frontier().unwrap().size(), 0);
    for n in 1..=20 {
        append(&*store, n % 3);
        let size = store.record_len().unwrap();
        let newest = store.newest_head().unwrap().map_or(0, |head| head.size);
        assert_eq!(newest, size);
    }
    let size = store.record_len().unwrap();
    let all = store.heads(0, usize::MAX).unwrap();
    assert!(all.is_sorted_by(|one, other| one.size < other.size));
    let leaves = store.record(0, usize::MAX).unwrap();
    for head in &all {
        let some = leaves.iter().take(head.size as usize).map(|row| row.leaf);
        assert_eq!(*believed(head).root(), lychgate_ledger::root(some));
    }
    assert_eq!(all.last(), store.newest_head().unwrap().as_ref());
    for index in 0..size {
        let closest = store.heads(index + 1, 1).unwrap();
        assert!(closest[0].size > index);
    }
    assert_eq!(store.heads(size + 1, 9).unwrap(), []);
    let rejected = Txn::Note(Note {
        now: at(2),
        receipts: Vec::new(),
    });
    done(&*store, rejected);
    assert_eq!(
        store.newest_head().unwrap().unwrap().size,
        size,
        "nothing grew"
    );
}

pub fn a_head_is_seen_after_its_commit(make: Make<'_>) {
    let place = make();
    let store = place.open();
    let mut heads = store.watch_heads();
    assert_eq!(*heads.borrow_and_update(), None);
    append(&*store, 3);
    assert!(heads.has_changed().unwrap());
    assert_eq!(*heads.borrow_and_update(), store.newest_head().unwrap());
    assert_eq!(believed(&store.newest_head().unwrap().unwrap()).size(), 3);
}

pub fn every_line_and_every_growth_is_proved(make: Make<'_>) {
    let place = make();
    let store = place.open();
    let mut older: Vec<Checkpoint> = Vec::new();
    for lines in [1, 254, 1, 1, 300, 13] {
        append(&*store, lines);
        let head = believed(&store.newest_head().unwrap().unwrap());
        let reader = TileReader::new(StoreTiles(&*store), head.size());
        for row in store.record(0, usize::MAX).unwrap().iter().step_by(17) {
            let proof = inclusion_proof(row.index, head.size(), &reader).unwrap();
            verify_inclusion(&row.leaf, row.index, head.size(), &proof, head.root()).unwrap();
        }
        for old in &older {
            let proof = consistency_proof(old.size(), head.size(), &reader).unwrap();
            verify_consistency(old.size(), old.root(), head.size(), head.root(), &proof).unwrap();
        }
        older.push(head);
    }
    let last = older.last().unwrap();
    check_tiles(last.size(), last.root(), &StoreTiles(&*store)).unwrap();
}

pub fn reopening_goes_on_with_the_same_tree(make: Make<'_>) {
    let place = make();
    let mut all = 0;
    for lines in [5, 251, 1, 700] {
        let store = place.open();
        assert_eq!(
            store
                .watch_heads()
                .borrow()
                .as_ref()
                .map_or(0, |head| head.size),
            all
        );
        append(&*store, lines);
        all += lines;
        drop(store);
    }
    let store = place.open();
    let head = believed(&store.newest_head().unwrap().unwrap());
    let leaves = store.record(0, usize::MAX).unwrap();
    assert_eq!(
        *head.root(),
        lychgate_ledger::root(leaves.iter().map(|row| row.leaf))
    );
    assert_eq!(store.frontier().unwrap().root(), *head.root());
}

pub fn pruned_lines_keep_their_proofs(make: Make<'_>) {
    let place = make();
    let store = place.open();
    append(&*store, 700);
    let prune = |from, below| {
        Txn::Prune(Prune {
            from,
            below,
            now: at(3),
            receipts: vec![entry("pruned")],
        })
    };
    for (from, below) in [(0, 255), (1, 256), (256, 0), (0, 768), (0, u64::MAX - 255)] {
        let why = rejected(&*store, prune(from, below));
        assert!(matches!(why, Rejected::Malformed(_)), "{from} {below}");
    }
    let before = store.record(0, usize::MAX).unwrap();
    done(&*store, prune(0, 256));
    done(&*store, prune(0, 512));
    drop(store);
    let store = place.open();
    let size = store.record_len().unwrap();
    let head = believed(&store.newest_head().unwrap().unwrap());
    assert_eq!((size, head.size()), (702, 702));
    let reader = TileReader::new(StoreTiles(&*store), size);
    for (row, old) in store.record(0, 700).unwrap().iter().zip(before) {
        assert_eq!(row.leaf, old.leaf);
        assert_eq!(row.bytes, old.bytes.filter(|_| row.index >= 512));
        if row.index % 51 == 0 {
            let proof = inclusion_proof(row.index, size, &reader).unwrap();
            verify_inclusion(&row.leaf, row.index, size, &proof, head.root()).unwrap();
        }
    }
    let checked = check_tiles(size, head.root(), &StoreTiles(&*store)).unwrap();
    assert_eq!(checked.without_bytes, 512);
}
