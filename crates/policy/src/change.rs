//! What a new configuration narrows and widens (PROFILE §10).
use crate::applied::Applied;

/// Which way a change goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Less passes than before.
    Narrows,
    /// Neither.
    Neutral,
    /// More passes than before, or nobody can tell: wants the approver.
    Widens,
}

/// One difference between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which way it goes.
    pub effect: Effect,
    /// What changes, escaped for a terminal, without secrets.
    pub text: String,
}

/// Compares two configurations; `None` is the state before the first apply.
#[must_use]
pub fn changes(_old: Option<&Applied>, _new: &Applied) -> Vec<Change> {
    Vec::new()
}
