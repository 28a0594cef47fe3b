//! A histogram of times with fixed bounds.

use std::sync::atomic::{AtomicU64, Ordering};

/// The upper bounds of the buckets, in nanoseconds; above the last there is one more.
pub const BOUNDS: [u64; 18] = [
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    15_000_000_000,
    60_000_000_000,
];

/// Times, counted by bucket.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum: AtomicU64,
}

/// What a histogram holds. Read bucket by bucket while others count, so a sum may be a little ahead of its count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// How many in each bucket, not cumulative; the last one has no upper bound.
    pub buckets: [u64; BOUNDS.len() + 1],
    /// All together.
    pub count: u64,
    /// Nanoseconds, all together.
    pub sum: u64,
}

impl Histogram {
    pub(super) const fn new() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BOUNDS.len() + 1],
            sum: AtomicU64::new(0),
        }
    }

    pub(super) fn add(&self, nanos: u64) {
        let at = BOUNDS.partition_point(|bound| *bound < nanos);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Reading {
        let mut reading = Reading::default();
        for (into, from) in reading.buckets.iter_mut().zip(&self.buckets) {
            *into = from.load(Ordering::Relaxed);
            reading.count += *into;
        }
        reading.sum = self.sum.load(Ordering::Relaxed);
        reading
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let histogram = Histogram::new();
        for nanos in [0, 20_000, 20_001, u64::from(u32::MAX) * 100] {
            histogram.add(nanos);
        }
        let reading = histogram.read();
        assert_eq!(reading.buckets.first(), Some(&2));
        assert_eq!(reading.buckets.get(1), Some(&1));
        assert_eq!(reading.buckets.last(), Some(&1));
        assert_eq!(reading.count, 4);
    }
}
