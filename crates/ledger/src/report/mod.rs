//! What an operator is to measure (draft §5.10), computed from the record alone: which acts were invoked without what
//! they needed, and what else the record tells of a deployment.
//!
//! The record is read once, start to end. Memory is bounded by what is open (acts, tickets, doubts) and by [`WINDOW`],
//! not by the length of the record: an act that ended is remembered for [`WINDOW`], and whatever is dispatched later
//! than that after its own id was made is a breach by that alone.
//!
//! - [`Examiner`]: takes the records one after another; [`Examiner::finish`] gives the [`Report`]
//! - [`Breach`], [`Violation`]: what can be wrong, and where it is
//! - [`Verdict`]: what is claimed of one of the four tests; never more than was measured
//! - [`Timeline`]: what happened when, in a bounded number of spans

mod acts;
mod chain;
mod counts;
mod doubt;
mod examine;
mod people;
mod timeline;
mod violation;

use lychgate_core::{Digest, Timestamp};

pub use self::counts::{Accepted, Counts, Doubt, Doubts, Found, Starts};
pub use self::examine::Examiner;
pub use self::people::People;
pub use self::timeline::{Gap, Happened, Span, Timeline};
pub use self::violation::{Breach, Test, Violation};

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Only what happened from then on is counted; what came before is read all the same.
    pub since: Option<Timestamp>,
    /// Only what happened up to then is counted, and states are those of that moment.
    pub until: Option<Timestamp>,
    /// The deepest delegation that policy permits; goes before `depths`.
    pub max_depth: Option<u32>,
    /// The same, by the digest of the configuration that a dispatch stood under.
    pub depths: Vec<(Digest, u32)>,
}

/// What is claimed of one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds for all that was examined.
    Held,
    /// It holds for what could be read; the reason why that is not everything.
    Partly(&'static str),
    /// It does not hold: so many violations.
    Violated(u64),
    /// There was nothing that it could have been broken by.
    Nothing,
    /// It was not measured, and why not.
    NotMeasured(&'static str),
}

impl Verdict {
    /// The word for it in documents.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Partly(_) => "partly_held",
            Self::Violated(_) => "violated",
            Self::Nothing => "nothing_to_judge",
            Self::NotMeasured(_) => "not_measured",
        }
    }
}

/// The four tests of draft §5.10, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// Every high-risk invoke has a consumed authority.
    pub authority: Verdict,
    /// Digest mismatches are denials, not retries that skip the sink.
    pub mismatch: Verdict,
    /// Delegation beyond the permitted depth never reaches invoke.
    pub depth: Verdict,
    /// A second path cannot complete the same effect.
    pub second_path: Verdict,
}

/// Everything the record tells.
#[derive(Clone, Debug)]
pub struct Report {
    /// The four tests.
    pub verdicts: Verdicts,
    /// Every violation, in the order of the record; at most [`MOST_LISTED`].
    pub violations: Vec<Violation>,
    /// How many there are.
    pub violated: u64,
    /// Numbers of acts and receipts.
    pub counts: Counts,
    /// Decisions that were asked of people.
    pub people: People,
    /// Acts in doubt.
    pub doubts: Doubts,
    /// Anchors that were accepted against the record.
    pub accepted: Vec<Accepted>,
    /// How the gate started and stopped.
    pub starts: Starts,
    /// What happened when.
    pub timeline: Timeline,
    /// The moment that ages are told at.
    pub as_of: Timestamp,
}

impl Report {
    /// Whether nothing that was measured is broken and nothing was merely advised (PROFILE §10). What was not measured
    /// is not in it.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violated == 0 && self.counts.advisory.number == 0
    }
}

/// How long an act that ended, and a consumed authority, are remembered for: many times what an authority lives.
pub const WINDOW: std::time::Duration = std::time::Duration::from_secs(3600);
/// The most of any one thing that is listed; all of it is counted.
pub const MOST_LISTED: usize = 100_000;
/// What the gate's `applied` receipts say in their `detail`: the deepest delegation that the configuration permits.
pub const MAX_DEPTH: &str = "max_depth:";
/// The gate's phrase, in the `detail` of an outcome, for a late answer that contradicts the verdict on its act.
pub const CONTRADICTS: &str = "a late answer contradicts the reconciliation";
