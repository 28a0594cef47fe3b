//! How many cycles a second the store alone carries. Says numbers, asserts none: the machine is anybody's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]
#![allow(
    clippy::disallowed_methods,
    reason = "a measurement needs the real clock"
)]

use std::time::{Duration, Instant};

use lychgate_core::State;
use lychgate_store::testing::make::*;
use lychgate_store::{Options, SqliteStore, Store, Txn};

#[test]
#[ignore = "a measurement: cargo test --release -p lychgate-store --test throughput -- --ignored --nocapture"]
fn pairs_of_dispatch_and_settle() {
    for (in_flight, total) in [(1, 1_000), (64, 40_000)] {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let store =
            SqliteStore::open(&Options::new(folder.path().join("store.db")), signer()).unwrap();
        ready(&store);
        let (took, mut each) = run(store, in_flight, total);
        each.sort_unstable();
        let rank = |percent: usize| each[(each.len() * percent / 100).min(each.len() - 1)];
        eprintln!(
            "{in_flight} in flight: {:.0} acts/s, p50 {:?}, p99 {:?}, max {:?}",
            total as f64 / took.as_secs_f64(),
            rank(50),
            rank(99),
            rank(100),
        );
    }
}

fn run(store: SqliteStore, in_flight: u64, total: u64) -> (Duration, Vec<Duration>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let store = std::sync::Arc::new(store);
    let receipt = "r".repeat(900);
    let start = Instant::now();
    let tasks: Vec<_> = (0..in_flight)
        .map(|task| {
            let (store, receipt) = (std::sync::Arc::clone(&store), receipt.clone());
            runtime.spawn(async move {
                let mut each = Vec::new();
                let mut n = task + 1;
                while n <= total {
                    let begun = Instant::now();
                    let mut txn = dispatch(n);
                    txn.read_back = None;
                    txn.receipts = vec![entry(&receipt)];
                    txn.issue.as_mut().unwrap().receipts = Vec::new();
                    store.commit(boxed(txn)).await.unwrap().done().unwrap();
                    let mut txn = settle(n, State::Effected);
                    txn.receipts = vec![entry(&receipt)];
                    store
                        .commit(Txn::Settle(txn))
                        .await
                        .unwrap()
                        .done()
                        .unwrap();
                    store.note_delivered(act(n));
                    each.push(begun.elapsed());
                    n += in_flight;
                }
                each
            })
        })
        .collect();
    let each = tasks
        .into_iter()
        .flat_map(|task| runtime.block_on(task).unwrap())
        .collect();
    (start.elapsed(), each)
}
