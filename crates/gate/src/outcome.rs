//! What became of a dispatched act (PROFILE §5): settling, delivery, late answers.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::ActId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, State};
use lychgate_ledger::report::CONTRADICTS;
use lychgate_store as store;

use crate::gate::Gate;
use crate::hold::HeldAct;
use crate::identity::round_key;
use crate::log;
use crate::ped::answer_label;
use crate::receipts::Facts;
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
    facts: Arc<Facts>,
}

impl Late {
    /// The answer has come.
    pub fn answered(self, end: End) -> Attempt {
        Attempt {
            facts: self.facts,
            end,
            permitted_at: None,
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
    /// unrecorded, and the gate ends; at its next start the act is `indeterminate`. A late answer after a person's
    /// verdict settles nothing, but is recorded beside it.
    pub async fn settle(self: &Arc<Self>, attempt: Attempt, answer: Option<&[u8]>) -> Settled {
        let settling = self.observer().settling(&attempt);
        let settled = self.settle_attempt(attempt, answer).await;
        self.observer().settled(settling, &settled);
        settled
    }

    async fn settle_attempt(self: &Arc<Self>, attempt: Attempt, answer: Option<&[u8]>) -> Settled {
        let Attempt { facts, end, .. } = attempt;
        let act = facts.act();
        let settled = |state, recorded, late| Settled {
            act,
            state,
            recorded,
            late,
        };
        match self.commit_outcome(&facts, end, answer).await {
            Kept::Outcome => {}
            Kept::Beside(verdict) => return settled(verdict, true, None),
            Kept::Nothing => {
                self.give_up();
                self.twins().indeterminate(act);
                return settled(end.state(), false, None);
            }
        }
        match end.state() {
            State::Indeterminate => self.twins().indeterminate(act),
            State::Effected if answer.is_some() => self.twins().undelivered(act, self.now()),
            _ => self.twins().close(act),
        }
        let late = (end.state() == State::Indeterminate).then_some(Late { facts });
        settled(end.state(), true, late)
    }

    /// As [`Gate::settle`], of an act whose effect is a delegation: both become durable, or neither.
    pub(crate) async fn settle_delegation(
        self: &Arc<Self>,
        attempt: Attempt,
        new: store::NewDelegation,
    ) -> Settled {
        let settling = self.observer().settling(&attempt);
        let Attempt { facts, end, .. } = attempt;
        let act = facts.act();
        let kept = match self.settlement(&facts, end, None) {
            Some(settle) => {
                let delegate = store::Delegate { settle, new };
                let txn = store::Txn::Delegate(Box::new(delegate));
                matches!(
                    self.commit_patiently(txn).await,
                    Ok(store::Committed::Done(_))
                )
            }
            None => false,
        };
        if kept {
            self.twins().close(act);
        } else {
            self.give_up();
            self.twins().indeterminate(act);
        }
        let settled = Settled {
            act,
            state: end.state(),
            recorded: kept,
            late: None,
        };
        self.observer().settled(settling, &settled);
        settled
    }

    async fn commit_outcome(
        self: &Arc<Self>,
        facts: &Facts,
        end: End,
        answer: Option<&[u8]>,
    ) -> Kept {
        let Some(settle) = self.settlement(facts, end, answer) else {
            return Kept::Nothing;
        };
        match self.commit_patiently(store::Txn::Settle(settle)).await {
            Ok(store::Committed::Done(_)) => Kept::Outcome,
            Ok(store::Committed::Rejected(why)) => {
                // A person's verdict may have come before the answer.
                let act = facts.act();
                match self.row(act).map(|row| row.state) {
                    Ok(verdict) if reconciled(verdict) => {
                        return self.commit_beside(facts, verdict, end).await;
                    }
                    _ => log::error(
                        "an outcome was rejected",
                        &[("act", act.into()), ("code", (&why).into())],
                    ),
                }
                Kept::Nothing
            }
            Err(fault) => {
                self.store_fault(&fault);
                Kept::Nothing
            }
        }
    }

    fn settlement(
        self: &Arc<Self>,
        facts: &Facts,
        end: End,
        answer: Option<&[u8]>,
    ) -> Option<store::Settle> {
        let (act, to) = (facts.act(), end.state());
        let keeps = to == State::Effected && facts.watched;
        // An answer too large to keep, or that cannot be sealed, cannot be given again; an equal call is then refused
        // until reconciliation.
        let kept = answer.filter(|answer| keeps && answer.len() <= LARGEST_KEPT);
        let sealed = kept.and_then(|answer| self.sealer().seal(&answer_label(act), answer).ok());
        let code = matches!(end, End::Unknown(_)).then_some(Code::TwinUnresolved);
        let receipt = self
            .draft(ReceiptKind::Outcome, &self.current())
            .facts(facts, to)
            .code(code)
            .detail(end.phrase())
            .entry()
            .ok()?;
        Some(store::Settle {
            act,
            to,
            answer: sealed,
            undelivered: keeps && answer.is_some(),
            code,
            refund: match to {
                State::Failed | State::InputRequired => facts.refund.clone(),
                _ => Vec::new(),
            },
            now: self.now(),
            receipts: vec![receipt],
        })
    }

    /// A late answer to an act that a person has reconciled: the verdict stands, and the record says what came.
    async fn commit_beside(self: &Arc<Self>, facts: &Facts, verdict: State, end: End) -> Kept {
        let effect = verdict == State::ReconciledEffect;
        let (contradicts, phrase) = match end {
            End::Unknown(_) => (false, "a late answer says nothing of the effect"),
            End::Effected if effect => (false, AGREES),
            End::NoEffect | End::NotSent | End::InputRequired if !effect => (false, AGREES),
            _ => (true, CONTRADICTS),
        };
        let receipt = self
            .draft(ReceiptKind::Outcome, &self.current())
            .facts(facts, verdict)
            .detail(phrase)
            .entry();
        let Ok(receipt) = receipt else {
            return Kept::Nothing;
        };
        let (act, now, receipts) = (facts.act(), self.now(), vec![receipt]);
        let txn = if contradicts {
            log::error(
                CONTRADICTS,
                &[("act", act.into()), ("state", verdict.into())],
            );
            store::Txn::Contradict(store::Contradict { act, now, receipts })
        } else {
            store::Txn::Note(store::Note { now, receipts })
        };
        match self.commit_patiently(txn).await {
            Ok(store::Committed::Done(_)) => Kept::Beside(verdict),
            Ok(store::Committed::Rejected(_)) => Kept::Nothing,
            Err(fault) => {
                self.store_fault(&fault);
                Kept::Nothing
            }
        }
    }

    /// Commits what has happened already: a full queue is tried again, for about a second.
    async fn commit_patiently(
        self: &Arc<Self>,
        txn: store::Txn,
    ) -> Result<store::Committed, store::StoreFault> {
        for _ in 0..MOST_TRIES {
            match self.store().commit(txn.clone()).await {
                Err(store::StoreFault::Busy) => tokio::time::sleep(BETWEEN_TRIES).await,
                result => return result,
            }
        }
        self.store().commit(txn).await
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
        let mut known = self.predecessors();
        if known.rounds.len() >= MOST_ROUNDS {
            known.rounds.clear();
        }
        known.rounds.insert(
            round_key(request_state, &held.likeness),
            held.act.candidate_act_id,
        );
    }
}

/// What the store has of an outcome.
enum Kept {
    /// It is the act's.
    Outcome,
    /// A person's verdict is, and the outcome stands beside it in the record.
    Beside(State),
    /// Nothing.
    Nothing,
}

fn reconciled(state: State) -> bool {
    matches!(state, State::ReconciledEffect | State::ReconciledNoEffect)
}

const AGREES: &str = "a late answer agrees with the reconciliation";
/// How often, and how far apart, an outcome is offered to a store that has too much to do.
const MOST_TRIES: usize = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
/// The largest answer that is kept for an equal call, in bytes.
const LARGEST_KEPT: usize = 256 << 10;
/// Rounds that wait for their input.
const MOST_ROUNDS: usize = 4096;
