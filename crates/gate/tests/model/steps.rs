//! What can happen.

use proptest::prelude::*;
use proptest::sample::Index;

/// One step of a history. An index picks among what there is, if there is any.
#[derive(Clone, Debug)]
pub enum Step {
    /// One of two writes.
    Write(bool),
    Mail,
    NotSent(bool),
    Answer(Index),
    AnswerUndelivered(Index),
    NoEffect(Index),
    Lose(Index),
    LateAnswer(Index),
    Deliver(Index),
    Cancel(Index),
    Approve(Index),
    Deny(Index),
    Reconcile(Index, bool),
    Restart,
    Clock(u64),
    Apply,
    Sweep,
}

/// Any step; calls and verdicts more often than the rest.
pub fn step() -> impl Strategy<Value = Step> {
    let at = any::<Index>;
    prop_oneof![
        8 => any::<bool>().prop_map(Step::Write),
        5 => Just(Step::Mail),
        1 => any::<bool>().prop_map(Step::NotSent),
        3 => at().prop_map(Step::Answer),
        2 => at().prop_map(Step::AnswerUndelivered),
        1 => at().prop_map(Step::NoEffect),
        3 => at().prop_map(Step::Lose),
        1 => at().prop_map(Step::LateAnswer),
        2 => at().prop_map(Step::Deliver),
        2 => at().prop_map(Step::Cancel),
        4 => at().prop_map(Step::Approve),
        1 => at().prop_map(Step::Deny),
        3 => (at(), any::<bool>()).prop_map(|(at, effect)| Step::Reconcile(at, effect)),
        1 => Just(Step::Restart),
        2 => (1_u64..350).prop_map(Step::Clock),
        1 => Just(Step::Apply),
        1 => Just(Step::Sweep),
    ]
}
