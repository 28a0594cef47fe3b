//! How growing costs, behind a flag: `cargo test --release -p lychgate-ledger --test growth -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::print_stderr, reason = "a measurement is printed")]

use std::time::Instant;

use lychgate_keys::SigningKey;
use lychgate_ledger::{
    Checkpoint, Frontier, LeafHash, SignedCheckpoint, TileBuilder, leaf_hash, node_hash,
};

fn leaf(at: u64) -> LeafHash {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&at.to_be_bytes());
    LeafHash(bytes)
}

#[test]
#[ignore = "ten million leaves"]
fn ten_million_leaves() {
    const MANY: u64 = 10_000_000;
    let timed = |what: &str, run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        let each = start.elapsed().as_nanos() / u128::from(MANY);
        eprintln!("{what}: {each} ns a leaf");
    };
    timed("node hash alone", &mut || {
        let mut hash = [1; 32];
        (0..MANY).for_each(|_| hash = node_hash(&hash, &hash));
        assert_ne!(hash, [1; 32]);
    });
    let mut frontier = Frontier::new();
    timed("frontier", &mut || {
        (0..MANY).for_each(|at| frontier.append(leaf(at)))
    });
    let mut builder = TileBuilder::new();
    let mut tiles = 0;
    timed("frontier and tiles", &mut || {
        (0..MANY).for_each(|at| builder.append(leaf(at), |_, hashes| tiles += hashes.len() / 256));
    });
    assert_eq!(builder.frontier(), &frontier);
    let full: u64 = (1..8).map(|level| MANY >> (8 * level)).sum();
    assert_eq!(tiles as u64, full);
    assert!(builder.partial().all(|(_, hashes)| hashes.len() < 256));
    let receipt = [7; 900];
    timed("leaf hash of 900 bytes", &mut || {
        (0..MANY).for_each(|_| assert_ne!(leaf_hash(&receipt).0, [0; 32]));
    });
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    eprintln!("peak memory: {}", peak.unwrap_or("unknown"));
    let key = SigningKey::from_seed(&[1; 32]).unwrap();
    let start = Instant::now();
    for _ in 0..10_000 {
        let head = Checkpoint::new("log.example/one", MANY, frontier.root()).unwrap();
        let signed = SignedCheckpoint::sign(head, &key).unwrap().to_string();
        assert!(signed.len() < 300 && frontier.to_bytes().len() < 2025);
    }
    let each = start.elapsed().as_nanos() / 10_000;
    eprintln!("root, checkpoint and kept state: {each} ns a commit group");
}
