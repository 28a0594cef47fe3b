//! Counting what the doors do, without I/O: numbers for a metrics endpoint, and the acts' traces where somebody asks for
//! them. Everything here is typed: there is no place where an argument, a tool's text or a free word would fit
//! (PROFILE §10).
//!
//! Counting is a few relaxed additions per act: no lock, no allocation. A trace costs one allocation and is only kept
//! while tracing is on.

mod histogram;
mod trace;
mod watch;

use std::sync::atomic::{AtomicU64, Ordering};

use lychgate_core::{Code, ConsequenceClass, State};

pub use self::histogram::{BOUNDS, Histogram, Reading};
pub use self::trace::{ActTrace, Stretch, Traces};
pub(crate) use self::watch::Watch;
use crate::sink::End;

/// A step of an act whose time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// From the parsed proposal to the candidate act.
    Hold,
    /// The PED's answer, its commit included.
    Decide,
    /// Waiting for a person.
    Wait,
    /// The sink's checks and the consuming commit.
    Present,
    /// From the permit to the destination's answer, or to giving it up.
    Effect,
    /// The commit of the outcome.
    Settle,
}

impl Step {
    /// Every step, in their order.
    pub const ALL: [Self; 6] = [
        Self::Hold,
        Self::Decide,
        Self::Wait,
        Self::Present,
        Self::Effect,
        Self::Settle,
    ];

    /// The label's value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Decide => "decide",
            Self::Wait => "wait",
            Self::Present => "present",
            Self::Effect => "effect",
            Self::Settle => "settle",
        }
    }
}

/// What the PED answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Evidence and authority.
    Allow,
    /// A ticket.
    Escalate,
    /// An equal act's answer that had not been delivered.
    Recorded,
    /// No.
    Deny(Code),
}

impl Answer {
    /// The label's value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Escalate => "escalate",
            Self::Recorded => "recorded",
            Self::Deny(_) => "deny",
        }
    }

    /// The code the caller is given, where there is one.
    #[must_use]
    pub const fn code(self) -> Option<Code> {
        match self {
            Self::Allow => None,
            Self::Escalate => Some(Code::EscalationRequired),
            Self::Recorded => Some(Code::TwinUnresolved),
            Self::Deny(code) => Some(code),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let codes = Code::ALL.iter().map(|code| Self::Deny(*code));
        [Self::Allow, Self::Escalate, Self::Recorded]
            .into_iter()
            .chain(codes)
    }

    const fn index(self) -> usize {
        match self {
            Self::Allow => 0,
            Self::Escalate => 1,
            Self::Recorded => 2,
            Self::Deny(code) => 3 + code as usize,
        }
    }
}

/// Where an act or a request ended without an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Door {
    /// Before it was an act: it was not well formed, or its server was not there.
    Adapter,
    /// The PED denied it.
    Ped,
    /// A person denied it, or nobody decided in time.
    Wait,
    /// The sink refused it.
    Sink,
    /// Its caller took it back or vanished.
    Caller,
}

impl Door {
    /// Every door.
    pub const ALL: [Self; 5] = [
        Self::Adapter,
        Self::Ped,
        Self::Wait,
        Self::Sink,
        Self::Caller,
    ];

    /// The label's value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adapter => "adapter",
            Self::Ped => "ped",
            Self::Wait => "wait",
            Self::Sink => "sink",
            Self::Caller => "caller",
        }
    }
}

/// Everything that is counted. One per gate.
#[derive(Debug)]
pub struct Observer {
    decisions: [[AtomicU64; CLASSES]; ANSWERS],
    refusals: [[AtomicU64; CODES]; Door::ALL.len()],
    outcomes: [AtomicU64; ENDS],
    unrecorded: AtomicU64,
    steps: [Histogram; Step::ALL.len()],
    traces: Traces,
}

impl Default for Observer {
    fn default() -> Self {
        Self {
            decisions: [const { [const { AtomicU64::new(0) }; CLASSES] }; ANSWERS],
            refusals: [const { [const { AtomicU64::new(0) }; CODES] }; Door::ALL.len()],
            outcomes: [const { AtomicU64::new(0) }; ENDS],
            unrecorded: AtomicU64::new(0),
            steps: [const { Histogram::new() }; Step::ALL.len()],
            traces: Traces::default(),
        }
    }
}

impl Observer {
    /// The PED's answers so far, by consequence class; only what has happened at least once.
    pub fn decisions(&self) -> impl Iterator<Item = (Answer, ConsequenceClass, u64)> {
        Answer::all()
            .zip(&self.decisions)
            .flat_map(|(answer, by_class)| {
                ConsequenceClass::ALL
                    .into_iter()
                    .zip(by_class)
                    .map(move |(class, count)| (answer, class, read(count)))
            })
            .filter(|(_, _, count)| *count > 0)
    }

    /// What ended without an effect so far, by where and why; only what has happened at least once.
    pub fn refusals(&self) -> impl Iterator<Item = (Door, Code, u64)> {
        Door::ALL
            .into_iter()
            .zip(&self.refusals)
            .flat_map(|(door, by_code)| {
                Code::ALL
                    .iter()
                    .zip(by_code)
                    .map(move |(code, count)| (door, *code, read(count)))
            })
            .filter(|(_, _, count)| *count > 0)
    }

    /// Attempts that ended so far, by how: the state, and a word of a closed set for the reason.
    pub fn outcomes(&self) -> impl Iterator<Item = (State, &'static str, u64)> {
        let counts = self.outcomes.iter().map(read);
        End::ALL
            .into_iter()
            .zip(counts)
            .map(|(end, count)| (end.state(), end.word(), count))
            .filter(|(_, _, count)| *count > 0)
    }

    /// Outcomes that could not be recorded; the gate ends after the first.
    pub fn unrecorded(&self) -> u64 {
        read(&self.unrecorded)
    }

    /// How long a step took.
    pub fn step(&self, step: Step) -> Reading {
        self.steps
            .get(step as usize)
            .map_or_else(Reading::default, Histogram::read)
    }

    /// The acts' traces.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    pub(crate) fn decided(&self, answer: Answer, class: ConsequenceClass) {
        let row = self.decisions.get(answer.index());
        add(row.and_then(|row| row.get(class as usize)));
    }

    pub(crate) fn refused(&self, door: Door, code: Code) {
        let row = self.refusals.get(door as usize);
        add(row.and_then(|row| row.get(code as usize)));
    }

    fn took(&self, step: Step, nanos: u64) {
        if let Some(histogram) = self.steps.get(step as usize) {
            histogram.add(nanos);
        }
    }

    fn ended(&self, end: End, recorded: bool) {
        let index = End::ALL.into_iter().position(|one| one == end);
        add(index.and_then(|index| self.outcomes.get(index)));
        if !recorded {
            add(Some(&self.unrecorded));
        }
    }
}

fn add(counter: Option<&AtomicU64>) {
    if let Some(counter) = counter {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

const CODES: usize = Code::ALL.len();
const ANSWERS: usize = 3 + CODES;
const CLASSES: usize = ConsequenceClass::ALL.len();
const ENDS: usize = End::ALL.len();

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// The tables are indexed by the enums' own order.
    #[test]
    fn every_value_is_counted_under_its_own_name() {
        let observer = Observer::default();
        for (at, answer) in Answer::all().enumerate() {
            assert_eq!(answer.index(), at);
            for class in ConsequenceClass::ALL {
                observer.decided(answer, class);
            }
        }
        let seen: Vec<_> = observer.decisions().collect();
        assert_eq!(seen.len(), ANSWERS * CLASSES);
        assert!(seen.iter().all(|(_, _, count)| *count == 1));
        for door in Door::ALL {
            for code in Code::ALL {
                observer.refused(door, *code);
                assert!(observer.refusals().any(|one| one == (door, *code, 1)));
            }
        }
        for (at, end) in End::ALL.into_iter().enumerate() {
            observer.ended(end, at != 0);
            let word = (end.state(), end.word(), 1);
            assert!(observer.outcomes().any(|one| one == word));
        }
        assert_eq!(observer.unrecorded(), 1);
        for step in Step::ALL {
            observer.took(step, 1_000);
            assert_eq!(observer.step(step).count, 1);
        }
    }

    /// HOUSE: measured. The bound is far above what it takes, and far below what would be felt.
    #[test]
    fn counting_an_act_costs_less_than_three_microseconds() {
        let observer = Observer::default();
        let rounds = 10_000_u32;
        // The best of some: what else the machine does is not what is measured.
        let each = (0..20).map(|_| {
            #[allow(clippy::disallowed_methods)]
            let began = std::time::Instant::now();
            for nanos in 0..rounds {
                observer.decided(Answer::Allow, ConsequenceClass::Other);
                for step in Step::ALL {
                    observer.took(step, u64::from(nanos) * 700);
                }
                observer.ended(End::Effected, true);
            }
            began.elapsed() / rounds
        });
        let each = each.min().unwrap();
        assert!(each.as_nanos() < 3_000, "{each:?}");
    }
}
