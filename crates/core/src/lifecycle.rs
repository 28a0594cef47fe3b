//! The states of an act and the only ways between them (PROFILE §5).

use serde::{Deserialize, Serialize};

/// Where an act stands. One enum, exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The PED allowed it; its authority is unused.
    Allowed,
    /// The PED or the sink said no. Final.
    Refused,
    /// It waits for a person.
    Escalated,
    /// Its time ran out before dispatch. Final.
    Expired,
    /// Its caller cancelled, timed out or vanished while it was held. Final.
    Withdrawn,
    /// Its authority is consumed; no answer yet.
    Dispatched,
    /// The destination answered. Final.
    Effected,
    /// Certainly no effect. Final.
    Failed,
    /// A multi-round call that has not acted yet; its retry is a new act. Final.
    InputRequired,
    /// The answer is lost: it may or may not have taken effect.
    Indeterminate,
    /// Reconciliation found the effect. Final.
    ReconciledEffect,
    /// Reconciliation found that there was no effect. Final.
    ReconciledNoEffect,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 12] = [
        Self::Allowed,
        Self::Refused,
        Self::Escalated,
        Self::Expired,
        Self::Withdrawn,
        Self::Dispatched,
        Self::Effected,
        Self::Failed,
        Self::InputRequired,
        Self::Indeterminate,
        Self::ReconciledEffect,
        Self::ReconciledNoEffect,
    ];

    /// The spelling on the wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Escalated => "escalated",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Dispatched => "dispatched",
            Self::Effected => "effected",
            Self::Failed => "failed",
            Self::InputRequired => "input_required",
            Self::Indeterminate => "indeterminate",
            Self::ReconciledEffect => "reconciled_effect",
            Self::ReconciledNoEffect => "reconciled_no_effect",
        }
    }

    /// From the spelling, exactly.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The small number the store keeps; stable for ever.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// From the store's number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    //= PROFILE §5: the transition table is in the docs and tested
    /// Whether an act may go from this state to `next`. There is no way back to `Dispatched`, and none out of a final
    /// state: what was consumed, denied or settled never comes alive again.
    pub fn may_become(self, next: Self) -> bool {
        use State::*;
        match self {
            // The sink consumes, refuses (an epoch moved), or the authority's time runs out unused.
            Allowed => matches!(next, Dispatched | Refused | Expired | Withdrawn),
            // An approval is consumed by the same waiting call: decided again, then dispatched in one commit.
            Escalated => matches!(next, Allowed | Dispatched | Refused | Expired | Withdrawn),
            Dispatched => matches!(next, Effected | Failed | InputRequired | Indeterminate),
            // A late answer settles the act; so does reconciliation.
            Indeterminate => matches!(
                next,
                Effected | Failed | ReconciledEffect | ReconciledNoEffect
            ),
            Refused | Expired | Withdrawn | Effected | Failed | InputRequired
            | ReconciledEffect | ReconciledNoEffect => false,
        }
    }

    /// Whether nothing can follow.
    pub fn is_final(self) -> bool {
        !Self::ALL.into_iter().any(|next| self.may_become(next))
    }

    /// Whether the act may have reached its destination.
    pub fn may_have_effect(self) -> bool {
        matches!(
            self,
            Self::Dispatched | Self::Effected | Self::Indeterminate | Self::ReconciledEffect
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_and_numbers_read_back() {
        for state in State::ALL {
            assert_eq!(State::from_name(state.name()), Some(state));
            assert_eq!(State::from_number(state.number()), Some(state));
        }
        assert_eq!(State::from_number(12), None);
    }

    #[test]
    fn nothing_returns_to_dispatched_once_it_left() {
        // Walk everything reachable from each successor of `Dispatched`.
        let mut open: Vec<State> = State::ALL
            .into_iter()
            .filter(|s| State::Dispatched.may_become(*s))
            .collect();
        let mut seen = open.clone();
        while let Some(state) = open.pop() {
            assert!(
                !state.may_become(State::Dispatched),
                "{} may act twice",
                state.name()
            );
            for next in State::ALL
                .into_iter()
                .filter(|next| state.may_become(*next))
            {
                if !seen.contains(&next) {
                    seen.push(next);
                    open.push(next);
                }
            }
        }
    }

    #[test]
    fn a_lost_answer_is_never_simply_failed_and_denials_are_final() {
        assert!(State::Dispatched.may_become(State::Indeterminate));
        for state in [
            State::Refused,
            State::Expired,
            State::Withdrawn,
            State::Effected,
            State::Failed,
        ] {
            assert!(state.is_final(), "{}", state.name());
        }
        assert!(!State::Indeterminate.is_final());
    }
}
