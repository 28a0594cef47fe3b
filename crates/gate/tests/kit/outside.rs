//! The world round a gate: time, randomness, folders, and what really happened in it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lychgate_core::Timestamp;
use lychgate_core::id::ActId;
use lychgate_core::outside::{Clock, Entropy, NoEntropy};
use lychgate_gate::{Begun, Dispatched, NotSent};
use lychgate_keys::SystemEntropy;

/// Where a test's time begins.
pub const START: u64 = 1_787_766_000_000;

/// A clock that tests move, in both directions.
#[derive(Debug)]
pub struct ManualClock(pub AtomicU64, pub AtomicU64);

impl ManualClock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    pub fn step_back(&self, by: Duration) {
        self.0.fetch_sub(by.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn behind(&self) -> Duration {
        Duration::from_millis(self.1.load(Ordering::SeqCst))
    }
}

/// Randomness that can run dry.
#[derive(Debug, Default)]
pub struct Dry(AtomicBool);

impl Dry {
    pub fn set(&self, dry: bool) {
        self.0.store(dry, Ordering::SeqCst);
    }
}

impl Entropy for Dry {
    fn fill(&self, out: &mut [u8]) -> Result<(), NoEntropy> {
        if self.0.load(Ordering::SeqCst) {
            return Err(NoEntropy);
        }
        SystemEntropy.fill(out)
    }
}

/// The effects that really began, in order.
#[derive(Clone, Debug, Default)]
pub struct Effects(Arc<Mutex<Vec<ActId>>>);

impl Effects {
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn of(&self, act: ActId) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|one| **one == act)
            .count()
    }

    pub fn begin(&self, dispatched: Dispatched) -> Result<Begun, NotSent> {
        let begun = dispatched.permit.begin()?;
        self.0.lock().unwrap().push(begun.act());
        Ok(begun)
    }
}

/// The folders of one test.
#[derive(Debug)]
pub struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["work", "plain", "config"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }
}
