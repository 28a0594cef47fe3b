//! Numbers of acts and receipts.

use std::collections::BTreeMap;
use std::time::Duration;

use lychgate_core::id::ActId;
use lychgate_core::signed::KeyId;
use lychgate_core::{Code, ConsequenceClass, State, Timestamp};

use super::MOST_LISTED;

/// A number of things, and where in the record they are; at most [`MOST_LISTED`] places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How many.
    pub number: u64,
    /// Where.
    pub records: Vec<u64>,
}

impl Found {
    pub(super) fn add(&mut self, index: u64) {
        self.number += 1;
        if self.records.len() < MOST_LISTED {
            self.records.push(index);
        }
    }
}

/// Numbers of what happened in the time asked for.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Records of the whole ledger that were read.
    pub records: u64,
    /// Of these, those whose bytes are not here: archived, or left out of a redacted export.
    pub without_bytes: u64,
    /// Receipts in the time asked for.
    pub receipts: u64,
    /// Acts that have a receipt in that time.
    pub acts: u64,
    /// Acts that were invoked under finality.
    pub invoked: u64,
    /// Of these, the high-risk ones (PROFILE §9).
    pub high_risk: u64,
    /// Dispatches whose beginning lies in records without bytes: not judged.
    pub unjudged: u64,
    /// Dispatches deeper than 0 under a configuration whose limit is not known.
    pub depth_unknown: u64,
    /// The deepest delegation that was dispatched.
    pub deepest: u32,
    /// Denials because of a mismatch between what was allowed and what was presented.
    pub mismatches: u64,
    /// Acts whose receipts say `advisory`: never finality (PROFILE §10). The places are their first receipts.
    pub advisory: Found,
    /// Dispatched, and the record ends before an outcome.
    pub in_flight: Found,
    /// Late answers that contradict a verdict on their act.
    pub contradicted: Found,
    /// Denials and lapses by code.
    pub codes: BTreeMap<Code, u64>,
    states: BTreeMap<State, u64>,
    classes: BTreeMap<Option<ConsequenceClass>, u64>,
}

impl Counts {
    /// Acts that are in this state at the end.
    #[must_use]
    pub fn in_state(&self, state: State) -> u64 {
        self.states.get(&state).copied().unwrap_or(0)
    }

    /// Acts of this class; `None` are those that never got one.
    #[must_use]
    pub fn of_class(&self, class: Option<ConsequenceClass>) -> u64 {
        self.classes.get(&class).copied().unwrap_or(0)
    }

    pub(super) fn new_act(&mut self, class: Option<ConsequenceClass>, state: State) {
        self.acts += 1;
        *self.classes.entry(class).or_default() += 1;
        *self.states.entry(state).or_default() += 1;
    }

    pub(super) fn moved(&mut self, from: State, to: State) {
        if let Some(count) = self.states.get_mut(&from) {
            *count = count.saturating_sub(1);
        }
        *self.states.entry(to).or_default() += 1;
    }

    pub(super) fn coded(&mut self, code: Code) {
        *self.codes.entry(code).or_default() += 1;
    }
}

/// An act whose outcome is unknown at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The act.
    pub act: ActId,
    /// `tool/function` as it stands in the receipt: text from outside, to be escaped.
    pub function: Option<String>,
    /// The class.
    pub class: Option<ConsequenceClass>,
    /// Since when.
    pub since: Timestamp,
    /// How often it was looked up in vain.
    pub looked_up: u64,
    /// The receipt that says so first.
    pub record: u64,
}

/// What became of acts in doubt.
#[derive(Clone, Debug, Default)]
pub struct Doubts {
    /// Acts that were in doubt at some time.
    pub number: u64,
    /// Settled by a late answer.
    pub by_answer: u64,
    /// Settled by a look-up at the destination.
    pub by_look_up: u64,
    /// Settled by a person's verdict.
    pub by_person: u64,
    /// Look-ups that settled nothing.
    pub looked_up_in_vain: u64,
    /// The longest time in doubt of an act that was settled.
    pub longest: Option<Duration>,
    /// Those that are in doubt at the end, oldest first; at most [`MOST_LISTED`].
    pub open: Vec<Doubt>,
    /// How many are.
    pub open_number: u64,
}

/// A record that was gone on with although its anchor contradicted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The receipt.
    pub record: u64,
    /// When.
    pub at: Timestamp,
    /// How record and anchor differed, as the receipt says it: to be escaped.
    pub difference: String,
    /// By which approver; `None` where the gate has none.
    pub approver: Option<KeyId>,
}

/// How the gate started and stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Starts.
    pub started: u64,
    /// Stops.
    pub stopped: u64,
    /// Starts after a gate that recorded no stop: it was killed, or the machine went down.
    pub without_stop: Found,
}
