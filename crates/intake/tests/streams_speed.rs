//! What normalising costs, behind a flag: `cargo test --release -p lychgate-intake --test streams_speed -- --ignored
//! --nocapture`.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::print_stderr, reason = "a measurement is printed")]

mod support;

use std::time::Instant;

use lychgate_intake::streams::{Limits, Normaliser};
use support::fixtures;

#[test]
#[ignore = "a measurement"]
fn a_chunk_costs_little() {
    for (provider, name, bytes) in fixtures() {
        if name != "good" {
            continue;
        }
        let mut each = Vec::new();
        let mut blocks = 0;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            let mut normaliser = Normaliser::new(provider, Limits::default());
            for chunk in bytes.chunks(CHUNK) {
                let start = Instant::now();
                normaliser.push(chunk);
                blocks += normaliser.by_ref().count();
                each.push(start.elapsed());
            }
            normaliser.finish();
            blocks += normaliser.count();
        }
        let rate = (bytes.len() * ROUNDS) as f64 / start.elapsed().as_secs_f64() / 1e6;
        assert_eq!(blocks, 3 * ROUNDS);
        each.sort_unstable();
        let (p50, p99) = (each[each.len() / 2], each[each.len() * 99 / 100]);
        eprintln!(
            "{}: p50 {p50:?}, p99 {p99:?} a chunk of {CHUNK} bytes, {rate:.0} MB/s",
            provider.name()
        );
    }
}

const ROUNDS: usize = 5_000;
/// About an event.
const CHUNK: usize = 160;
