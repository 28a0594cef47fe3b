//! Laws of the normalisers: however a stream is cut into chunks the blocks are the same, and a stream that breaks off
//! yields no act that the whole does not yield. `LYCHGATE_FUZZ_SECONDS=86400 cargo test --release -p lychgate-intake
//! --test streams_laws -- --ignored` mutates the fixtures for as long, on every core.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(clippy::print_stderr, reason = "a long run says what it did")]

mod support;

use lychgate_intake::fuzz::{fuzz_streams, stream_holds};
use lychgate_intake::streams::Provider;
use proptest::prelude::*;
use support::{blocks, fixtures, frames, is_act};

#[test]
fn a_stream_byte_by_byte_yields_the_same_blocks() {
    for (provider, name, bytes) in corpus() {
        let whole = blocks(provider, &[&bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(
            blocks(provider, &single),
            whole,
            "{}/{name}",
            provider.name()
        );
    }
}

#[test]
fn a_stream_that_breaks_off_anywhere_yields_no_other_act() {
    for (provider, name, bytes) in corpus() {
        let (whole, _) = blocks(provider, &[&bytes]);
        for end in 0..bytes.len() {
            let (part, _) = blocks(provider, &[&bytes[..end]]);
            for act in part.iter().filter(|block| is_act(block)) {
                let same = whole.iter().any(|block| {
                    let twin = |line: Vec<u8>| {
                        String::from_utf8(line)
                            .unwrap()
                            .replace(",\"ambiguous\":true", "")
                    };
                    is_act(block) && twin(block.line()) == twin(act.line())
                });
                assert!(same, "{}/{name} up to byte {end}: {act:?}", provider.name());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn mutations_of_the_fixtures_hold(
        seed in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..6, any::<u8>()), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let corpus = corpus();
        let (provider, _, bytes) = &corpus[seed.index(corpus.len())];
        let (_, _, other) = &corpus[other.index(corpus.len())];
        let edits = edits.iter().map(|(at, kind, byte)| (at.index(usize::MAX), *kind, *byte));
        let bytes = mutate(bytes, other, edits);
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        prop_assert!(stream_holds(*provider, &bytes, &cuts), "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn noise_holds(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(fuzz_streams(&bytes));
    }
}

#[test]
#[ignore = "runs for LYCHGATE_FUZZ_SECONDS on every core"]
#[allow(
    clippy::disallowed_methods,
    reason = "a long run is measured in wall time"
)]
fn a_long_run_holds() {
    let seconds = std::env::var("LYCHGATE_FUZZ_SECONDS").map_or(60, |text| text.parse().unwrap());
    let seed: u64 = std::env::var("LYCHGATE_SEED").map_or(1, |text| text.parse().unwrap());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    let corpus = corpus();
    let runs: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|core| {
                let corpus = &corpus;
                scope.spawn(move || {
                    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (core + 1));
                    let mut runs = 0_u64;
                    while std::time::Instant::now() < until {
                        let (provider, _, bytes) = &corpus[random.below(corpus.len())];
                        let (_, _, other) = &corpus[random.below(corpus.len())];
                        let edits: Vec<_> = (0..random.below(8))
                            .map(|_| {
                                (
                                    random.next() as usize,
                                    random.next() as u8 % 6,
                                    random.next() as u8,
                                )
                            })
                            .collect();
                        let bytes = mutate(bytes, other, edits);
                        let cuts: Vec<_> = (0..random.below(8))
                            .map(|_| random.below(bytes.len() + 1))
                            .collect();
                        assert!(
                            stream_holds(*provider, &bytes, &cuts),
                            "seed {seed}: {} {cuts:?}\n{}",
                            provider.name(),
                            bytes.escape_ascii()
                        );
                        runs += 1;
                    }
                    runs
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    eprintln!("{runs} streams in {seconds} s on {cores} cores");
}

/// The fixtures, and Bedrock's in frames too.
fn corpus() -> Vec<(Provider, String, Vec<u8>)> {
    let mut all = fixtures();
    let framed: Vec<_> = all
        .iter()
        .filter(|(provider, ..)| *provider == Provider::Bedrock)
        .map(|(provider, name, bytes)| (*provider, format!("{name} in frames"), frames(bytes)))
        .collect();
    all.extend(framed);
    all
}

/// Bytes changed, put in, cut off, spliced; whole events dropped, moved or said twice.
fn mutate(bytes: &[u8], other: &[u8], edits: impl IntoIterator<Item = (usize, u8, u8)>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, kind, byte) in edits {
        let at = at % (bytes.len() + 1);
        match kind {
            0 if at < bytes.len() => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            2 if byte < 32 => bytes.truncate(at),
            3 => {
                let from = usize::from(byte) * other.len() / 256;
                bytes.splice(at..at, other[from..].iter().copied().take(24));
            }
            _ => {
                let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
                if lines.is_empty() {
                    continue;
                }
                let line = lines[at % lines.len()];
                match kind {
                    4 if byte < 128 => {
                        lines.remove(at % lines.len());
                    }
                    _ => lines.insert(usize::from(byte) % (lines.len() + 1), line),
                }
                bytes = lines.concat();
            }
        }
    }
    bytes
}

/// xorshift64: enough for choosing, and repeatable.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}
