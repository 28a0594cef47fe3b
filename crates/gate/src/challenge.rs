//! One-time challenges: what an approver signs beside a change, so that a captured signature is worth nothing later.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lychgate_core::Timestamp;
use lychgate_core::outside::{Entropy, NoEntropy};
use lychgate_keys::verdict::Challenge;

/// The open challenges; bounded in number and time.
#[derive(Debug, Default)]
pub(crate) struct Challenges(Mutex<HashMap<String, Timestamp>>);

impl Challenges {
    /// A fresh one.
    pub(crate) fn give(
        &self,
        entropy: &dyn Entropy,
        now: Timestamp,
    ) -> Result<Challenge, NoEntropy> {
        let challenge = Challenge::fresh(entropy)?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, given| now.since(*given) < LIFETIME);
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        open.insert(challenge.as_str().to_owned(), now);
        Ok(challenge)
    }

    /// Whether this one was given and is still open; it is not afterwards.
    pub(crate) fn take(&self, challenge: &Challenge, now: Timestamp) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(challenge.as_str())
            .is_some_and(|given| now.since(given) < LIFETIME)
    }
}

/// Long enough to read a difference and type a passphrase.
const LIFETIME: Duration = Duration::from_secs(900);
const MOST_OPEN: usize = 256;
