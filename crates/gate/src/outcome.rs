//! What became of a dispatched act (PROFILE §5): settling, delivery, late answers.

use std::sync::Arc;

use lychgate_core::id::{ActId, EffectId};
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, State};
use lychgate_store as store;

use crate::gate::Gate;
use crate::hold::{HeldAct, round_key, twin_for_round};
use crate::ped::answer_label;
use crate::sink::{Attempt, End};

/// A settled attempt.
#[derive(Debug)]
pub struct Settled {
    /// The act.
    pub act: ActId,
    /// What became of it.
    pub state: State,
    /// Whether the outcome is in the record. When it is not, the answer must be marked so, and the gate ends.
    pub recorded: bool,
    /// For an indeterminate act: what lets a late answer settle it.
    pub late: Option<Late>,
}

/// Leave to settle an indeterminate act when its answer comes after all.
#[derive(Debug)]
pub struct Late {
    act: ActId,
    effect: EffectId,
}

impl Late {
    /// The answer has come.
    pub fn answered(self, end: End) -> Attempt {
        Attempt {
            act: self.act,
            effect: self.effect,
            end,
        }
    }
}

impl End {
    /// The state an attempt that ended so puts its act in.
    pub fn state(self) -> State {
        match self {
            Self::Effected => State::Effected,
            Self::NoEffect | Self::NotSent => State::Failed,
            Self::InputRequired => State::InputRequired,
            Self::Unknown(_) => State::Indeterminate,
        }
    }

    fn phrase(self) -> &'static str {
        match self {
            Self::Effected => "answered by the destination",
            Self::NoEffect => "the destination's error means no effect",
            Self::NotSent => "not_sent",
            Self::InputRequired => "the destination asks for input",
            Self::Unknown(why) => why.phrase(),
        }
    }
}

impl Gate {
    /// Settles an attempt, durably. `answer` is the raw result to keep, sealed, until it is delivered; reads keep none.
    ///
    /// When the outcome cannot be committed the effect has happened all the same: the answer is to be marked
    /// unrecorded, and the gate ends; at its next start the act is `indeterminate`.
    pub async fn settle(self: &Arc<Self>, attempt: Attempt, answer: Option<&[u8]>) -> Settled {
        let Attempt { act, effect, end } = attempt;
        let to = end.state();
        let recorded = self.commit_outcome(act, end, answer).await;
        match to {
            _ if !recorded => self.twins().indeterminate(act),
            State::Indeterminate => self.twins().indeterminate(act),
            State::Effected if answer.is_some() => self.twins().undelivered(act, self.now()),
            _ => self.twins().close(act),
        }
        let late = (recorded && to == State::Indeterminate).then_some(Late { act, effect });
        Settled {
            act,
            state: to,
            recorded,
            late,
        }
    }

    async fn commit_outcome(self: &Arc<Self>, act: ActId, end: End, answer: Option<&[u8]>) -> bool {
        let to = end.state();
        let Ok(row) = self.row(act) else { return false };
        let keeps = to == State::Effected && row.twin.is_some();
        // An answer too large to keep cannot be given again; an equal call is then refused until reconciliation.
        let kept = answer.filter(|answer| keeps && answer.len() <= LARGEST_KEPT);
        let sealed = kept
            .map(|answer| self.sealer().seal(&answer_label(act), answer))
            .transpose();
        let Ok(sealed) = sealed else { return false };
        let current = self.current();
        let code = matches!(end, End::Unknown(_)).then_some(Code::TwinUnresolved);
        let receipt = self
            .draft(ReceiptKind::Outcome, &current)
            .row(&row, to)
            .code(code)
            .detail(end.phrase())
            .entry();
        let Ok(receipt) = receipt else { return false };
        let settle = store::Settle {
            act,
            to,
            answer: sealed,
            undelivered: keeps && answer.is_some(),
            code,
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Settle(settle)).await {
            Ok(store::Committed::Done(_)) => true,
            Ok(store::Committed::Rejected(why)) => {
                tracing::error!(%act, %why, "an outcome was rejected");
                false
            }
            Err(fault) => {
                self.store_fault(&fault);
                false
            }
        }
    }

    /// The answer of a settled act has reached its caller.
    pub fn delivered(&self, act: ActId) {
        self.store().note_delivered(act);
        self.twins().delivered(act);
    }

    /// The caller of a dispatched act is gone: its answer will not reach it.
    pub fn orphaned(&self, act: ActId) {
        self.twins().orphan(act);
    }

    /// A multi-round call asks for input: its retry may name this act by the state the server gave.
    ///
    /// Only an act that has settled so has a round: the retry of one is held back by no equal call, so an act that may
    /// have had its effect must not get any.
    pub fn expect_round(&self, held: &HeldAct, request_state: Option<&str>) {
        let settled = self.row(held.act.candidate_act_id).map(|row| row.state);
        if settled != Ok(State::InputRequired) {
            return;
        }
        let Some(twin) = twin_for_round(&held.act) else {
            return;
        };
        let mut known = self.predecessors();
        if known.rounds.len() >= MOST_ROUNDS {
            known.rounds.clear();
        }
        known
            .rounds
            .insert(round_key(request_state, &twin), held.act.candidate_act_id);
    }
}

/// The largest answer that is kept for an equal call, in bytes.
const LARGEST_KEPT: usize = 256 << 10;
/// Rounds that wait for their input.
const MOST_ROUNDS: usize = 4096;
