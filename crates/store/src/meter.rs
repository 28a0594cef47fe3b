//! How busy a store is: numbers for metrics, never for a decision.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the group-size buckets; above the last there is one more.
pub const GROUP_BOUNDS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// How busy a store is. Counts are since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Transactions that wait now.
    pub queued: usize,
    /// How many may wait.
    pub capacity: usize,
    /// Commit groups, by how many transactions they had: one per bucket of [`GROUP_BOUNDS`], not cumulative.
    pub groups: [u64; GROUP_BOUNDS.len() + 1],
    /// Transactions in those groups.
    pub transactions: u64,
    /// Transactions turned away because the queue was full.
    pub busy: u64,
    /// How long the writer took for all those groups: signing, applying, making durable.
    pub worked: Duration,
}

impl Load {
    /// How many groups there were.
    pub fn group_count(&self) -> u64 {
        self.groups.iter().sum()
    }
}

/// Counts a store's groups.
#[derive(Debug)]
pub(crate) struct Meter {
    groups: [AtomicU64; GROUP_BOUNDS.len() + 1],
    transactions: AtomicU64,
    busy: AtomicU64,
    worked_nanos: AtomicU64,
}

impl Meter {
    pub(crate) const fn new() -> Self {
        Self {
            groups: [const { AtomicU64::new(0) }; GROUP_BOUNDS.len() + 1],
            transactions: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            worked_nanos: AtomicU64::new(0),
        }
    }

    /// A group is durable. One that carried only reports of delivery is none.
    pub(crate) fn group(&self, transactions: usize, took: Duration) {
        let many = u64::try_from(transactions).unwrap_or(u64::MAX);
        if many == 0 {
            return;
        }
        let at = GROUP_BOUNDS.partition_point(|bound| *bound < many);
        if let Some(bucket) = self.groups.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.transactions.fetch_add(many, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.worked_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// A transaction was turned away.
    pub(crate) fn busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, queued: usize, capacity: usize) -> Load {
        let mut load = Load {
            queued,
            capacity,
            transactions: self.transactions.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
            worked: Duration::from_nanos(self.worked_nanos.load(Ordering::Relaxed)),
            ..Load::default()
        };
        for (into, from) in load.groups.iter_mut().zip(&self.groups) {
            *into = from.load(Ordering::Relaxed);
        }
        load
    }
}
