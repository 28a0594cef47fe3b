//! What the rules need from the outside world, as traits: time and randomness. Real ones live in the outer crates,
//! so that tests and simulations can say what time it is.

use std::time::Duration;

use crate::Timestamp;

/// What time it is.
pub trait Clock: Send + Sync + 'static {
    /// Now. Never goes back within one process, whatever the wall clock does.
    fn now(&self) -> Timestamp;

    /// How far the wall clock stood behind the latest recorded time when this process started. While it stands still
    /// there, lifetimes that began before are not measured.
    fn behind(&self) -> Duration {
        Duration::ZERO
    }
}

/// Where randomness comes from.
pub trait Entropy: Send + Sync + 'static {
    /// Fills `out`.
    ///
    /// # Errors
    /// When the system has none; nothing may be decided then.
    fn fill(&self, out: &mut [u8]) -> Result<(), NoEntropy>;
}

/// The system gave no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no randomness")]
pub struct NoEntropy;

/// Ten fresh random bytes, as an id wants them.
///
/// # Errors
/// As [`Entropy::fill`].
pub fn ten(entropy: &dyn Entropy) -> Result<[u8; 10], NoEntropy> {
    let mut bytes = [0; 10];
    entropy.fill(&mut bytes)?;
    Ok(bytes)
}
