//! Latencies in bounded space: a million acts must not look like a leak of the gate's.

use std::time::Duration;

/// Counts by duration, each octave of nanoseconds in 64 steps: at most 1.6 % off.
#[derive(Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
        }
    }

    pub(crate) fn add(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(nanos)) {
            *count += 1;
            self.total += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// This, or nothing.
    pub(crate) fn counted(self, counts: bool) -> Self {
        if counts { self } else { Self::new() }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The duration below which `permille` of a thousand lie; zero when nothing was counted.
    pub(crate) fn quantile(&self, permille: u64) -> Duration {
        let rank = self.total.saturating_mul(permille).div_ceil(1000);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return Duration::from_nanos(value(index));
            }
        }
        Duration::ZERO
    }
}

fn bucket(nanos: u64) -> usize {
    let octave = 63_u32.saturating_sub(nanos.leading_zeros()).max(STEP_BITS);
    let shift = octave - STEP_BITS;
    let step = (nanos >> shift) & (STEPS - 1);
    let octaves = u64::from(octave - STEP_BITS) + u64::from(nanos >= STEPS);
    usize::try_from(octaves * STEPS + step).unwrap_or(usize::MAX)
}

fn value(index: usize) -> u64 {
    let index = u64::try_from(index).unwrap_or(0);
    let (octave, step) = (index / STEPS, index % STEPS);
    if octave == 0 {
        step
    } else {
        (STEPS + step) << (octave - 1)
    }
}

/// 64 steps an octave.
const STEP_BITS: u32 = 6;
const STEPS: u64 = 1 << STEP_BITS;
/// Up to 2^40 ns, eighteen minutes.
const BUCKETS: usize = 36 * 64;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_quantile_is_off_by_less_than_two_percent() {
        let mut histogram = Histogram::new();
        for micros in 1..=10_000 {
            histogram.add(Duration::from_micros(micros));
        }
        for (permille, micros) in [(500, 5_000_f64), (990, 9_900.0), (1, 10.0)] {
            let found = histogram.quantile(permille).as_secs_f64() * 1e6;
            assert!((found / micros - 1.0).abs() < 0.02, "{permille}: {found}");
        }
        assert_eq!(histogram.total(), 10_000);
    }

    #[test]
    fn every_bucket_holds_its_own_value() {
        for nanos in [0, 1, 63, 64, 65, 127, 128, 1_000, 123_456_789] {
            let found = value(bucket(nanos));
            assert!(
                found <= nanos && nanos - found <= nanos / 64,
                "{nanos}: {found}"
            );
        }
    }
}
