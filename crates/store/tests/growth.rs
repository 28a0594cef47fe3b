//! What the ledger costs as it grows: append rate, bytes a receipt, opening, proofs, the whole audit. Says numbers,
//! asserts only that they hold together: the machine is anybody's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use lychgate_ledger::audit::Record;
use lychgate_ledger::tree::{consistency_proof, inclusion_proof};
use lychgate_ledger::{Auditor, SignedCheckpoint, TileReader, verify_inclusion};
use lychgate_store::testing::make::*;
use lychgate_store::txn::Note;
use lychgate_store::{Options, SqliteStore, Store, StoreTiles, Txn};

#[test]
#[ignore = "a measurement: RECEIPTS=1000000 cargo test --release -p lychgate-store --test growth -- --ignored --nocapture"]
fn a_ledger_of_many_receipts() {
    let total: u64 = std::env::var("RECEIPTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("store.db");
    let start = Instant::now();
    append(&path, total);
    let took = start.elapsed().as_secs_f64();
    let bytes = std::fs::metadata(&path).unwrap().len();
    eprintln!(
        "{total} receipts of {RECEIPT} bytes, 64 in flight: {:.0}/s, {:.1} bytes each on disk, {:.1} of them not the receipt",
        total as f64 / took,
        bytes as f64 / total as f64,
        bytes as f64 / total as f64 - RECEIPT as f64,
    );
    let start = Instant::now();
    let store = SqliteStore::open(&Options::new(&path), signer()).unwrap();
    eprintln!("open and check: {:?}", start.elapsed());
    prove(&store, total);
    audit(&store);
}

fn append(path: &Path, total: u64) {
    let store = Arc::new(SqliteStore::open(&Options::new(path), signer()).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let store = Arc::clone(&store);
            runtime.spawn(async move {
                for n in (task..total).step_by(64) {
                    let receipts = vec![entry(&format!("{n:0RECEIPT$}"))];
                    let note = Txn::Note(Note {
                        now: at(n),
                        receipts,
                    });
                    store.commit(note).await.unwrap().done().unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
}

fn prove(store: &SqliteStore, total: u64) {
    let head = store.newest_head().unwrap().unwrap();
    let head = SignedCheckpoint::parse(&head.note).unwrap();
    let head = head.checkpoint();
    assert_eq!(head.size(), total);
    let reader = TileReader::new(StoreTiles(store), total);
    let start = Instant::now();
    let many = 100;
    let mut longest = 0;
    for index in (0..total).step_by(usize::try_from(total / many).unwrap().max(1)) {
        let proof = inclusion_proof(index, total, &reader).unwrap();
        longest = longest.max(proof.len());
        let leaf = store.record(index, 1).unwrap()[0].leaf;
        verify_inclusion(&leaf, index, total, &proof, head.root()).unwrap();
    }
    eprintln!(
        "inclusion: {:?} each to make and verify, at most {longest} hashes ({} bytes)",
        start.elapsed() / u32::try_from(many).unwrap(),
        32 * longest,
    );
    let start = Instant::now();
    let proof = consistency_proof(total / 3, total, &reader).unwrap();
    eprintln!("consistency: {:?}, {} hashes", start.elapsed(), proof.len());
}

fn audit(store: &SqliteStore) {
    let start = Instant::now();
    let heads = store.heads(0, usize::MAX).unwrap();
    let verified: Vec<_> = heads
        .iter()
        .map(|head| {
            let signed = SignedCheckpoint::parse(&head.note).unwrap();
            signed.verify(&[log_key()], &[]).unwrap()
        })
        .collect();
    let signatures = start.elapsed();
    let mut auditor = Auditor::new(&verified, []).unwrap();
    let mut from = 0;
    loop {
        let rows = store.record(from, 1024).unwrap();
        let Some(last) = rows.last() else { break };
        from = last.index + 1;
        for row in &rows {
            let record = Record {
                index: row.index,
                bytes: row.bytes.as_deref(),
                leaf: row.leaf,
            };
            auditor.record(record).unwrap();
        }
    }
    let clean = auditor.finish().unwrap();
    eprintln!(
        "audit of {} lines under {} heads: {:?}, {signatures:?} of it for the heads",
        clean.size,
        heads.len(),
        start.elapsed(),
    );
}

/// A receipt's usual length.
const RECEIPT: usize = 900;
