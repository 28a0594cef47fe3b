//! One look-up of one act, and what is made of what the destination says.

use std::sync::Arc;

use lychgate_core::id::ActId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, ConsequenceClass, State};
use lychgate_policy::{Reading, ToolEntry};
use lychgate_store::{self as store, ActRow};

use super::plan::Plan;
use super::{Asked, Destination, Question};
use crate::gate::Gate;
use crate::log;

/// What came of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The act took effect; it is reconciled.
    Effect,
    /// It did not, and that is believed; it is reconciled and may be called again.
    NoEffect,
    /// Its outcome is as unknown as before.
    Unknown,
    /// It is no longer in doubt: a late answer or a person came first.
    Over,
    /// The store cannot answer.
    Failed,
}

impl Gate {
    /// Looks an act in doubt up at its destination, once. Every answer is a receipt; what settles the act is committed
    /// with it. The act itself is never sent again.
    pub(super) async fn look_up(
        self: &Arc<Self>,
        destination: &dyn Destination,
        act: ActId,
    ) -> Step {
        let row = match self.row(act) {
            Ok(row) if row.state == State::Indeterminate => row,
            Ok(_) => return Step::Over,
            Err(_) => return Step::Failed,
        };
        let Some(plan) = self.plan_of_row(&row) else {
            return Step::Unknown;
        };
        let current = self.current();
        let Some((server, _)) = plan.same(&row, &current) else {
            return self.note_step(&row, None, ELSEWHERE).await;
        };
        let question = Question {
            server: server.name.clone(),
            endpoint: plan.endpoint.clone(),
            function: plan.read_back.tool.clone(),
            arguments: plan.read_back.arguments.clone(),
        };
        match destination.ask(self, question).await {
            Asked::Answered { read_back, result } => {
                let reading = plan.read_back.read(&result);
                self.conclude(act, &plan, read_back, reading).await
            }
            Asked::Unanswered { read_back } => {
                if self.end_look_up(read_back).await.is_err() {
                    return Step::Failed;
                }
                self.note_step(&row, Some(read_back), "no answer").await
            }
            Asked::Refused { read_back, why } => self.note_step(&row, read_back, why).await,
        }
    }

    async fn conclude(
        self: &Arc<Self>,
        act: ActId,
        plan: &Plan,
        read_back: ActId,
        reading: Reading,
    ) -> Step {
        // A late answer or a person may have come in between.
        let row = match self.row(act) {
            Ok(row) if row.state == State::Indeterminate => row,
            Ok(_) => return Step::Over,
            Err(_) => return Step::Failed,
        };
        match reading {
            Reading::Effect => {
                let to = State::ReconciledEffect;
                self.settle_by(&row, read_back, to, "the destination has the effect")
                    .await
            }
            Reading::NoEffect => match self.why_not_released(&row, plan) {
                None => {
                    let to = State::ReconciledNoEffect;
                    self.settle_by(&row, read_back, to, "the destination has no effect")
                        .await
                }
                Some(why) => self.note_step(&row, Some(read_back), why).await,
            },
            Reading::Neither => {
                self.note_step(&row, Some(read_back), "the answer fits neither rule")
                    .await
            }
            Reading::Both => {
                self.note_step(&row, Some(read_back), "the answer fits both rules")
                    .await
            }
            Reading::Unreadable => {
                self.note_step(&row, Some(read_back), "the answer cannot be read")
                    .await
            }
        }
    }

    //= PROFILE §5: a destination's own "no effect" releases a retry only where the catalogue trusts it, never for FINANCIAL
    /// Why "no effect" is not believed; `None`: it is.
    fn why_not_released(&self, row: &ActRow, plan: &Plan) -> Option<&'static str> {
        let current = self.current();
        let Some((_, acted)) = plan.same(row, &current) else {
            return Some(ELSEWHERE);
        };
        let financial = |class| class == Some(ConsequenceClass::Financial);
        if financial(row.class) || financial(Some(acted.class)) || row.class.is_none() {
            return Some("no effect, never believed for FINANCIAL");
        }
        if !plan.read_back.trust_no_effect || !trusted_now(acted) {
            return Some("no effect, which the catalogue does not trust");
        }
        // What has not happened yet is no answer while it may still happen.
        if self.doubts_held().may_still_act(row.id) {
            return Some("no effect so far, and the server that got the call still runs");
        }
        if self.now().since(row.updated_at) < acted.timeout {
            return Some("no effect so far, within the time an answer may take");
        }
        None
    }

    async fn settle_by(
        self: &Arc<Self>,
        row: &ActRow,
        read_back: ActId,
        to: State,
        phrase: &str,
    ) -> Step {
        let draft = self
            .draft_of(ReceiptKind::Reconciled, &self.current(), row, to)
            .detail(told_by(Some(read_back), phrase));
        let Ok(receipt) = draft.entry() else {
            return Step::Failed;
        };
        let settle = store::Settle {
            act: row.id,
            to,
            answer: None,
            // Whoever called was told not to repeat it and waits for word: the next equal call brings it.
            undelivered: to == State::ReconciledEffect && row.twin.is_some(),
            code: None,
            refund: Vec::new(),
            now: self.now(),
            receipts: vec![receipt],
        };
        let txn = store::Txn::Settle(settle);
        match self.commit_reconciliation(row.id, row.twin, to, txn).await {
            Ok(_) => {
                log::info(
                    "an act in doubt is reconciled",
                    &[("act", row.id.into()), ("state", to.into())],
                );
                if to == State::ReconciledEffect {
                    Step::Effect
                } else {
                    Step::NoEffect
                }
            }
            // Whoever was first has settled it.
            Err(_) => match self.row(row.id).map(|row| row.state) {
                Ok(State::Indeterminate) | Err(_) => Step::Failed,
                Ok(_) => Step::Over,
            },
        }
    }

    /// A step after which the act is in doubt as before.
    async fn note_step(
        self: &Arc<Self>,
        row: &ActRow,
        read_back: Option<ActId>,
        phrase: &str,
    ) -> Step {
        match self.note_doubt(row, told_by(read_back, phrase)).await {
            Ok(()) => Step::Unknown,
            Err(_) => Step::Failed,
        }
    }

    async fn note_doubt(self: &Arc<Self>, row: &ActRow, detail: String) -> Result<(), Code> {
        let receipt = self
            .draft_of(
                ReceiptKind::Reconciled,
                &self.current(),
                row,
                State::Indeterminate,
            )
            .code(Some(Code::TwinUnresolved))
            .detail(detail)
            .entry()
            .map_err(|_| Code::FailClosed)?;
        self.must(store::Txn::Note(store::Note {
            now: self.now(),
            receipts: vec![receipt],
        }))
        .await
    }

    /// The deadline has passed: from here on a person must say, and the record says so.
    pub(super) async fn surface(self: &Arc<Self>, act: ActId) -> Step {
        let row = match self.row(act) {
            Ok(row) if row.state == State::Indeterminate => row,
            Ok(_) => return Step::Over,
            Err(_) => return Step::Failed,
        };
        let phrase = "unknown at the deadline: a person must say";
        match self.note_doubt(&row, phrase.to_owned()).await {
            Ok(()) => {
                log::warn(
                    "an act's outcome is still unknown: `lychgate reconcile`",
                    &[("act", act.into())],
                );
                Step::Unknown
            }
            Err(_) => Step::Failed,
        }
    }

    /// Ends a look-up whose own answer was lost: by its class it has no effect, and nobody need ever ask about it.
    pub(super) async fn end_look_up(self: &Arc<Self>, read_back: ActId) -> Result<(), Code> {
        let row = self.row(read_back)?;
        let own = row.agent == lychgate_policy::RECONCILER
            && row.class == Some(ConsequenceClass::Informational);
        if !own || row.state != State::Indeterminate {
            return Ok(());
        }
        let to = State::ReconciledNoEffect;
        let receipt = self
            .draft_of(ReceiptKind::Reconciled, &self.current(), &row, to)
            .detail("a look-up has no effect by its class")
            .entry()
            .map_err(|_| Code::FailClosed)?;
        self.must(store::Txn::Settle(store::Settle {
            act: row.id,
            to,
            answer: None,
            undelivered: false,
            code: None,
            refund: Vec::new(),
            now: self.now(),
            receipts: vec![receipt],
        }))
        .await
    }
}

fn trusted_now(acted: &ToolEntry) -> bool {
    acted
        .read_back
        .as_ref()
        .is_some_and(|rule| rule.trust_no_effect)
}

fn told_by(read_back: Option<ActId>, phrase: &str) -> String {
    read_back.map_or_else(
        || phrase.to_owned(),
        |read_back| format!("looked up by {read_back}: {phrase}"),
    )
}

/// Nothing is asked of a server that is not the one the act went to.
const ELSEWHERE: &str = "the server or its functions are no longer those the act went to";
