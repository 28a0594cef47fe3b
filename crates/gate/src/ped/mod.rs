//! The first door: the Protected Enforcement Domain validates a held act and answers ALLOW, DENY or ESCALATE
//! (draft §8.2, PROFILE §4, §7). Every answer is committed before it is given.

mod denial;
mod issue;
mod predicates;

use std::borrow::Cow;
use std::sync::Arc;

use lychgate_core::evidence::Predicates;
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::{Code, State};
use lychgate_intake::answer::found_result;
use lychgate_policy::Finding;
use lychgate_store as store;
use zeroize::Zeroizing;

use self::denial::No;
pub(crate) use self::issue::Chain;
use crate::approval::{License, Question};
use crate::gate::Gate;
use crate::hold::HeldAct;
use crate::identity::Predecessor;
use crate::sink::Presented;
use crate::twins::{Moment, TwinVerdict};

/// The PED's answer. Each variant holds the next step's type; there is no other way on.
#[derive(Debug)]
pub enum Verdict {
    /// Evidence and authority are made; the sink may be asked.
    Allow(Box<Allowed>),
    /// No.
    Deny(Denied),
    /// A person must be asked.
    Escalate(Box<Escalated>),
    /// An equal act has ended and its answer never reached anybody: here it is (PROFILE §5).
    Recorded {
        /// The act whose answer it is.
        act: ActId,
        /// The raw result as the destination gave it.
        answer: Zeroizing<Vec<u8>>,
    },
}

/// A held act with its authority. By value it becomes what is presented to the sink; nothing else can be done with it.
#[derive(Debug)]
#[must_use = "an allowed act that is not presented must be given up"]
pub struct Allowed {
    pub(crate) held: HeldAct,
    pub(crate) presented: Presented,
    pub(crate) evidence: lychgate_core::evidence::ValidationEvidence,
}

impl Allowed {
    /// The evidence behind it.
    pub fn evidence(&self) -> &lychgate_core::evidence::ValidationEvidence {
        &self.evidence
    }

    /// The authority.
    pub fn authority(&self) -> Option<&lychgate_core::authority::FinalityAuthority> {
        self.presented.authority.as_ref()
    }

    /// The held act.
    pub fn held(&self) -> &HeldAct {
        &self.held
    }

    /// Parts with the authority: the held act stays, to send what was hashed; the rest goes to the sink.
    pub fn into_parts(mut self) -> (HeldAct, Presented) {
        self.held.spent = true;
        (self.held, self.presented)
    }
}

/// A denial, as the caller may know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Why.
    pub code: Code,
    /// The JSON pointer at fault; set only where the code may name one.
    pub pointer: Option<String>,
    /// The act; for EF-063 the earlier act that is open.
    pub act: Option<ActId>,
    /// The ticket it waits or waited on.
    pub ticket: Option<TicketId>,
    /// Where the act stands.
    pub state: State,
}

/// A held act that waits for a person.
#[derive(Debug)]
#[must_use = "an escalated act must be awaited or given up"]
pub struct Escalated {
    pub(crate) held: HeldAct,
    pub(crate) ticket: TicketId,
}

impl Escalated {
    /// The ticket.
    pub fn ticket(&self) -> TicketId {
        self.ticket
    }

    /// The act.
    pub fn act(&self) -> ActId {
        self.held.act.candidate_act_id
    }
}

/// What the predicates came to.
pub(crate) struct Judgement {
    pub(crate) predicates: Predicates,
    pub(crate) finding: Finding,
    pub(crate) pointer: Option<String>,
}

impl Gate {
    //= draft §8.2; PROFILE §7: the first DENY gives the code, a DENY outranks an ESCALATE
    /// Decides on a held act.
    ///
    /// Every predicate is evaluated. Whatever the answer, it is committed before it is given: an ALLOW together with
    /// its consumption at the sink, a DENY or an ESCALATE here. When that commit fails the answer is a DENY.
    pub async fn decide(self: &Arc<Self>, mut held: HeldAct) -> Verdict {
        held.hot = self.enter(&held).await;
        let judgement = self.judge(&held);
        match judgement.finding {
            Finding::Deny { code, why } => {
                Verdict::Deny(self.deny(held, code, why, judgement).await)
            }
            Finding::Ask { code, why } => self.ask_or_license(held, code, why, judgement).await,
            Finding::Pass => self.allow(held, judgement, None).await,
        }
    }

    async fn ask_or_license(
        self: &Arc<Self>,
        mut held: HeldAct,
        code: Code,
        why: &'static str,
        judged: Judgement,
    ) -> Verdict {
        let unattended = held.current.applied.unattended() || held.session.is_own();
        let no_approver = self.standing().approver == lychgate_core::receipt::Approver::None;
        if unattended || no_approver {
            return Verdict::Deny(self.deny(held, code, why, judged).await);
        }
        let Some(subject) = held.subject() else {
            return Verdict::Deny(
                self.deny(held, Code::FailClosed, "no approval subject", judged)
                    .await,
            );
        };
        //= PROFILE §7: the twin check comes before the approval, so nobody is asked about a call that would fail anyway
        if let (None, false, Some(twin)) = (held.escalated, held.continues(), held.twin()) {
            match self.twins().look(&twin, self.moment(&held)) {
                TwinVerdict::New => {}
                TwinVerdict::Recorded(act) => return self.recorded(held, act, judged).await,
                TwinVerdict::Unresolved(act) => return self.unresolved(held, act, judged).await,
            }
        }
        match self.license(&held, &subject) {
            Ok(License::Approved(ticket, claim)) => {
                let approval = store::Approval { ticket, subject };
                held.claim = claim.or(held.claim);
                self.allow(held, judged, Some(approval)).await
            }
            Ok(License::Refused(code, why)) => {
                Verdict::Deny(self.deny(held, code, why, judged).await)
            }
            Ok(License::Ask(awaited)) => {
                let question = Question { code, why, subject };
                self.escalate(held, question, judged, awaited).await
            }
            Err(code) => Verdict::Deny(
                self.deny(held, code, "the approvals cannot be read", judged)
                    .await,
            ),
        }
    }

    async fn allow(
        self: &Arc<Self>,
        held: HeldAct,
        judged: Judgement,
        approval: Option<store::Approval>,
    ) -> Verdict {
        let act = held.act.candidate_act_id;
        match held.twin() {
            None => {}
            Some(twin) if held.continues() => self.twins().enter(&twin, act),
            Some(twin) => match self.twins().admit(&twin, act, self.moment(&held)) {
                TwinVerdict::New => {}
                TwinVerdict::Recorded(act) => return self.recorded(held, act, judged).await,
                TwinVerdict::Unresolved(act) => return self.unresolved(held, act, judged).await,
            },
        }
        match self.issue(held, judged.predicates, approval) {
            Ok(allowed) => Verdict::Allow(Box::new(allowed)),
            Err(refused) => {
                let (held, code) = *refused;
                self.twins().close(act);
                Verdict::Deny(
                    self.deny(
                        held,
                        code,
                        "evidence or authority could not be made",
                        judged,
                    )
                    .await,
                )
            }
        }
    }

    fn moment(&self, held: &HeldAct) -> Moment {
        Moment {
            emitted: held.act.created_at,
            now: self.now(),
        }
    }

    async fn recorded(self: &Arc<Self>, held: HeldAct, act: ActId, judged: Judgement) -> Verdict {
        let Some(answer) = self.answer_of(&held, act) else {
            return self.unresolved(held, act, judged).await;
        };
        let why = format!("the recorded answer of {act} was given");
        let no = No {
            code: Code::TwinUnresolved,
            why: Cow::Owned(why),
            answered_by: Some(act),
        };
        let mut denied = self.deny_as(held, no, judged).await;
        if denied.code == Code::TwinUnresolved {
            Verdict::Recorded { act, answer }
        } else {
            denied.act = Some(act);
            Verdict::Deny(denied)
        }
    }

    /// The kept answer of an act; for one that a look-up found, word that it took effect.
    fn answer_of(&self, held: &HeldAct, act: ActId) -> Option<Zeroizing<Vec<u8>>> {
        let row = self.row(act).ok()?;
        if row.state == State::ReconciledEffect {
            let definition = held
                .entry()
                .and_then(|entry| entry.definition_value.as_ref());
            let structured = definition.is_some_and(|value| value.get("outputSchema").is_some());
            return Some(Zeroizing::new(found_result(&act, structured)));
        }
        self.sealer().open(&answer_label(act), &row.answer?).ok()
    }

    async fn unresolved(self: &Arc<Self>, held: HeldAct, act: ActId, judged: Judgement) -> Verdict {
        let why = "an equal act's outcome or answer is open";
        let mut denied = self.deny(held, Code::TwinUnresolved, why, judged).await;
        denied.act = Some(act);
        Verdict::Deny(denied)
    }
}

impl HeldAct {
    pub(crate) fn continues_unknown_round(&self) -> bool {
        self.predecessor == Predecessor::UnknownRound
    }
}

/// What a sealed answer is bound to.
pub(crate) fn answer_label(act: ActId) -> Vec<u8> {
    format!("answer:{act}").into_bytes()
}
