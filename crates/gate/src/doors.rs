//! Both doors in a row, as an adapter goes through them: decide, wait for a person where one must be asked, verify the
//! live invocation, consume.

use std::ops::ControlFlow;
use std::sync::Arc;

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::{Code, State};
use zeroize::Zeroizing;

use crate::approval::{Caller, Waited};
use crate::delegation::live_delegation;
use crate::delivery::Flight;
use crate::gate::Gate;
use crate::hold::{Connected, Found, HeldAct, entry_of};
use crate::observe::Watch;
use crate::ped::{Allowed, Denied, Verdict};
use crate::sink::{Dispatched, FinalitySink, LiveInvocation};

/// How a held act came through.
#[derive(Debug)]
pub enum Passed {
    /// Its authority is consumed: perform the effect, once, with what was hashed.
    Dispatched {
        /// The act; its proposal holds the very bytes to send.
        held: Box<HeldAct>,
        /// The permit and the sink's verification.
        dispatched: Dispatched,
    },
    /// An equal act's undelivered answer.
    Recorded {
        /// The act whose answer it is.
        act: ActId,
        /// The raw result.
        answer: Zeroizing<Vec<u8>>,
    },
    /// No.
    Denied(Denied),
}

impl Gate {
    /// Takes a held act through both doors.
    ///
    /// `connected` tells what is really connected at the moment it is called: it is asked again right before the sink
    /// verifies, so a definition that changed while a person thought is noticed. `waiting` hears of a ticket.
    pub async fn pass(
        self: &Arc<Self>,
        held: HeldAct,
        sink: &FinalitySink,
        caller: &Caller,
        connected: &(dyn Fn() -> Connected + Send + Sync),
        waiting: &(dyn Fn(TicketId) + Send + Sync),
    ) -> Passed {
        let mut watch = self.observer().watch(&held);
        let walked = self.walk(held, sink, caller, connected, waiting, &mut watch);
        let passed = walked.await;
        watch.end(&passed);
        passed
    }

    async fn walk(
        self: &Arc<Self>,
        held: HeldAct,
        sink: &FinalitySink,
        caller: &Caller,
        connected: &(dyn Fn() -> Connected + Send + Sync),
        waiting: &(dyn Fn(TicketId) + Send + Sync),
        watch: &mut Watch<'_>,
    ) -> Passed {
        let mut held = held;
        for _ in 0..MOST_ROUNDS {
            let session = Arc::clone(&held.session);
            let flight = Flight::begin(&session, self.current().epochs.control());
            let verdict = self.decide(held).await;
            watch.decided(&verdict);
            let allowed = match verdict {
                Verdict::Allow(allowed) => allowed,
                Verdict::Deny(denied) => return Passed::Denied(denied),
                Verdict::Recorded { act, answer } => return Passed::Recorded { act, answer },
                Verdict::Escalate(escalated) => {
                    // Nothing was allowed: it is decided on again.
                    drop(flight);
                    waiting(escalated.ticket());
                    let waited = self.wait(*escalated, caller).await;
                    watch.waited(&waited);
                    match waited {
                        Waited::Over(denied) => return Passed::Denied(denied),
                        Waited::Approved(approved) => {
                            held = *approved;
                            held.connected = connected();
                            continue;
                        }
                    }
                }
            };
            let answer = self.second_door(*allowed, sink, caller, connected).await;
            watch.presented(&answer);
            match answer {
                ControlFlow::Break(mut passed) => {
                    if let Passed::Dispatched { dispatched, .. } = &mut passed {
                        dispatched.permit.carry(flight);
                    }
                    return passed;
                }
                // Another act used the approval first; this one asks for its own.
                ControlFlow::Continue(back) => held = *back,
            }
        }
        let judged = self.judge(&held);
        Passed::Denied(
            self.deny(
                held,
                Code::FailClosed,
                "no decision after several rounds",
                judged,
            )
            .await,
        )
    }

    /// Presents what was allowed; goes on with the act when it is to be decided on once more.
    async fn second_door(
        self: &Arc<Self>,
        allowed: Allowed,
        sink: &FinalitySink,
        caller: &Caller,
        connected: &(dyn Fn() -> Connected + Send + Sync),
    ) -> ControlFlow<Passed, Box<HeldAct>> {
        let (mut held, presented) = allowed.into_parts();
        let act = held.act.candidate_act_id;
        if caller.is_gone() {
            self.twins().close(act);
            return ControlFlow::Break(Passed::Denied(self.withdraw(held).await));
        }
        let now_connected = connected();
        let presented = match self.live(&held, &now_connected) {
            Ok(live) => self.present(sink, &live, presented).await,
            Err(code) => Err(self.refuse_unlive(presented, code).await),
        };
        let refusal = match presented {
            Ok(dispatched) => {
                let held = Box::new(held);
                return ControlFlow::Break(Passed::Dispatched { held, dispatched });
            }
            Err(refusal) => refusal,
        };
        self.twins().close(act);
        if refusal.approval_lost {
            held.spent = false;
            held.claim = None;
            return ControlFlow::Continue(Box::new(held));
        }
        self.give_back(&held);
        ControlFlow::Break(Passed::Denied(Denied {
            code: refusal.code,
            pointer: None,
            act: Some(act),
            ticket: held.escalated,
            state: State::Refused,
        }))
    }

    /// The invocation as it would be made now, derived again from the live arguments and the current catalogue.
    fn live<'a>(
        &self,
        held: &'a HeldAct,
        connected: &'a Connected,
    ) -> Result<LiveInvocation<'a>, Code> {
        if held.found == Found::Delegation {
            return live_delegation(held.session.holder(), &held.proposal, connected);
        }
        let current = self.current();
        let gone = Code::ToolSubstitution;
        let server = current.applied.server(held.session.server()).ok_or(gone)?;
        let entry = entry_of(
            &current,
            held.session.server(),
            &held.proposal.function,
            held.found,
        )
        .ok_or(gone)?;
        let reach = entry
            .destinations(&held.proposal.arguments, self.paths(), server)
            .map_err(|_| Code::DestinationMismatch)?;
        let class = match held.found {
            Found::Method => server.method_class(held.proposal.method.name(), connected.listed),
            _ => entry.class,
        };
        Ok(LiveInvocation {
            holder: held.session.holder(),
            tool_id: held.session.server(),
            function_id: &held.proposal.function,
            endpoint: &connected.endpoint,
            definition: connected.definition.ok_or(gone)?,
            arguments: &held.proposal.canonical,
            continuation: held.continuation(),
            destination: reach.destination,
            class,
            idempotent: entry.idempotency == lychgate_policy::Idempotency::Meta,
        })
    }

    /// What would be invoked no longer exists as it was decided on.
    async fn refuse_unlive(
        self: &Arc<Self>,
        presented: crate::sink::Presented,
        code: Code,
    ) -> crate::sink::SinkRefusal {
        let current = self.current();
        let why = "the live tool or destination is no longer the one decided on";
        let code = self
            .record_sink_refusal(&presented, code, why, &current)
            .await;
        crate::sink::SinkRefusal {
            code,
            verification: None,
            approval_lost: false,
        }
    }

    async fn withdraw(self: &Arc<Self>, held: HeldAct) -> Denied {
        self.give_back(&held);
        let act = held.act.candidate_act_id;
        let whose = match held.escalated {
            Some(_) => lychgate_store::Whose::Existing(act),
            None => lychgate_store::Whose::New(Box::new(held.new_act())),
        };
        let draft = self
            .draft(lychgate_core::receipt::ReceiptKind::Lapsed, &held.current)
            .act(held.part(), State::Withdrawn)
            .policy(held.current.policy_digest)
            .ticket(held.escalated)
            .detail("the caller is gone");
        let code = self
            .commit_refusal(draft, whose, State::Withdrawn, Code::EscalationRequired)
            .await;
        Denied {
            code,
            pointer: None,
            act: Some(act),
            ticket: held.escalated,
            state: State::Withdrawn,
        }
    }
}

/// How often an act may lose its approval to another before it is denied.
const MOST_ROUNDS: usize = 4;
