//! Escalations: sealed tickets, who waits for them, and what an approver's verdict does (PROFILE §4, §11).
//!
//! An approval is an input to the PED, never a substitute for the sink: a waiting act whose ticket is approved is
//! decided again under the policy of that moment.

mod license;
mod show;

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::TicketId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, Digest, State, Timestamp, jcs};
use lychgate_keys::Role;
use lychgate_keys::verdict::{ApprovalVerdict, Verdict as Ruling};
use lychgate_store::{self as store, TicketState};
use tokio::sync::watch;

use self::license::Tickets;
pub(crate) use self::license::{Claim, License};
pub use self::show::PendingTicket;
use self::show::{display_label, display_of};
use crate::gate::{Gate, code_of};
use crate::hold::HeldAct;
use crate::ped::{Denied, Escalated, Judgement, Verdict};
use crate::receipts::part_of;

/// What is known of tickets in memory.
#[derive(Debug)]
pub(crate) struct Approvals {
    tickets: Tickets,
    /// Moves with every decision; each waiter looks at its own ticket then.
    decided: watch::Sender<u64>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            tickets: Tickets::default(),
            decided: watch::Sender::new(0),
        }
    }
}

/// How a wait ended.
#[derive(Debug)]
pub enum Waited {
    /// Approved: decide again.
    Approved(Box<HeldAct>),
    /// It will not run.
    Over(Denied),
}

/// Resolves when the caller of a held act is gone: it cancelled, timed out or vanished.
#[derive(Clone, Debug)]
pub struct Caller(watch::Receiver<bool>);

/// The other end of a [`Caller`].
#[derive(Debug)]
pub struct CallerGone(watch::Sender<bool>);

impl CallerGone {
    /// A caller that is there, and the means to say that it is not.
    pub fn new() -> (Self, Caller) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Caller(receiver))
    }

    /// The caller is gone.
    pub fn say(&self) {
        self.0.send_replace(true);
    }
}

impl Caller {
    /// Whether it is gone. Dropping the other end counts as gone.
    pub fn is_gone(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Resolves when it is gone.
    pub async fn gone(&self) {
        let mut receiver = self.0.clone();
        // An error means that the other end was dropped, which is the same news.
        drop(receiver.wait_for(|gone| *gone).await);
    }
}

impl Approvals {
    pub(crate) fn remember_denial(&self, subject: Digest, until: Timestamp) {
        self.tickets.remember_denial(subject, until);
    }

    /// Whether an act in hand has the ticket.
    pub(crate) fn is_waited_for(&self, ticket: TicketId) -> bool {
        self.tickets.is_claimed(ticket)
    }

    fn announce(&self) {
        self.decided
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Gate {
    pub(crate) async fn escalate(
        self: &Arc<Self>,
        mut held: HeldAct,
        code: Code,
        why: &'static str,
        judged: Judgement,
        subject: Digest,
        pending: Option<Claim>,
    ) -> Verdict {
        let prepared = self.prepare_ticket(&held, code, why, subject, pending);
        let (ticket, awaited) = match prepared {
            Ok((claim, awaited)) => {
                // Taken before anybody else can see the ticket.
                let ticket = claim.ticket();
                held.claim = Some(claim);
                (ticket, awaited)
            }
            Err(code) => {
                return Verdict::Deny(
                    self.deny(held, code, "no ticket could be made", judged)
                        .await,
                );
            }
        };
        let resolved = held.found != crate::hold::Found::Unknown;
        let receipt = self
            .draft(ReceiptKind::Escalated, &held.current)
            .act(
                part_of(&held.act, held.digest, &held.salt, resolved, held.vouched),
                State::Escalated,
            )
            .code(Some(code))
            .predicates(judged.predicates)
            .policy(held.current.policy_digest)
            .ticket(Some(ticket))
            .detail(why)
            .entry();
        let Ok(receipt) = receipt else {
            return Verdict::Deny(
                self.deny(
                    held,
                    Code::FailClosed,
                    "the receipt could not be made",
                    judged,
                )
                .await,
            );
        };
        let txn = store::Escalate {
            act: held.new_act(),
            ticket: awaited,
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Escalate(txn)).await {
            Ok(store::Committed::Done(_)) => {
                held.escalated = Some(ticket);
                Verdict::Escalate(Box::new(Escalated { held, ticket }))
            }
            Ok(store::Committed::Rejected(why)) => {
                let code = code_of(&why);
                Verdict::Deny(
                    self.deny(held, code, "the ticket could not be kept", judged)
                        .await,
                )
            }
            Err(fault) => {
                let code = self.store_fault(&fault);
                Verdict::Deny(
                    self.deny(held, code, "the store cannot answer", judged)
                        .await,
                )
            }
        }
    }

    fn prepare_ticket(
        &self,
        held: &HeldAct,
        code: Code,
        why: &'static str,
        subject: Digest,
        pending: Option<Claim>,
    ) -> Result<(Claim, store::Awaited), Code> {
        if let Some(claim) = pending {
            let ticket = claim.ticket();
            return Ok((
                claim,
                store::Awaited::Pending(store::Approval { ticket, subject }),
            ));
        }
        let now = self.now();
        let id = TicketId::new(now, self.ten()?);
        let display = jcs::to_bytes(&display_of(held, code, why).ok_or(Code::FailClosed)?);
        let sealed = self
            .sealer()
            .seal(&display_label(id), &display)
            .map_err(|_| Code::FailClosed)?;
        let lifetime = Duration::from_millis(held.current.applied.limits().ticket);
        let ticket = store::NewTicket {
            id,
            subject,
            display: sealed,
            expires_at: now.after(lifetime),
        };
        let claim = self.approvals().tickets.claim(id).ok_or(Code::FailClosed)?;
        Ok((claim, store::Awaited::New(ticket)))
    }

    //= PROFILE §4: a caller who vanished while its act was held has withdrawn it
    /// Waits for a person's verdict on an escalated act, as long as its caller is there and the hold time lasts.
    pub async fn wait(self: &Arc<Self>, escalated: Escalated, caller: &Caller) -> Waited {
        let Escalated { held, ticket } = escalated;
        let hold = Duration::from_millis(held.current.applied.limits().hold);
        let deadline = tokio::time::Instant::now() + hold;
        let mut decided = self.approvals().decided.subscribe();
        let ended = loop {
            decided.borrow_and_update();
            match self.ticket_ended(ticket) {
                Some(ended) => break ended,
                None if caller.is_gone() => break Ended::Gone,
                None => {}
            }
            tokio::select! {
                _ = decided.changed() => {}
                () = caller.gone() => break Ended::Gone,
                () = self.closing() => break Ended::Gone,
                () = tokio::time::sleep_until(deadline) => break Ended::HoldOver,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        };
        if ended == Ended::Approved && !caller.is_gone() {
            return Waited::Approved(Box::new(held));
        }
        Waited::Over(self.end_wait(held, ticket, ended).await)
    }

    fn ticket_ended(&self, ticket: TicketId) -> Option<Ended> {
        match self.store().ticket(ticket) {
            Ok(Some(row)) => match row.state {
                TicketState::Approved => Some(Ended::Approved),
                TicketState::Denied => Some(Ended::Denied),
                TicketState::Expired | TicketState::Consumed => Some(Ended::Expired),
                TicketState::Pending if self.now() >= row.expires_at => Some(Ended::Expired),
                TicketState::Pending => None,
            },
            Ok(None) => Some(Ended::Unreadable),
            Err(fault) => {
                self.store_fault(&fault);
                Some(Ended::Unreadable)
            }
        }
    }

    async fn end_wait(self: &Arc<Self>, held: HeldAct, ticket: TicketId, ended: Ended) -> Denied {
        self.give_back(&held);
        let (to, code, why) = match ended {
            Ended::Denied => (State::Refused, Code::ApprovalDenied, "a person denied it"),
            Ended::Expired => (
                State::Expired,
                Code::ApprovalExpired,
                "nobody decided in time",
            ),
            Ended::HoldOver => (
                State::Withdrawn,
                Code::EscalationRequired,
                "the hold time is over; the ticket lives on",
            ),
            Ended::Gone | Ended::Approved => (
                State::Withdrawn,
                Code::EscalationRequired,
                "the caller is gone",
            ),
            Ended::Unreadable => (
                State::Withdrawn,
                Code::FailClosed,
                "the ticket cannot be read",
            ),
        };
        let act = held.act.candidate_act_id;
        let told = |code, state| Denied {
            code,
            pointer: None,
            act: Some(act),
            ticket: Some(ticket),
            state,
        };
        let code = self.commit_end(&held, ticket, (to, code, why)).await;
        // A denial that was committed while the wait ended otherwise has moved the act.
        if code == Code::FailClosed
            && let Ok(row) = self.row(act)
            && row.state == State::Refused
        {
            let denied = (State::Refused, Code::ApprovalDenied, "a person denied it");
            return told(self.commit_end(&held, ticket, denied).await, State::Refused);
        }
        told(code, to)
    }

    async fn commit_end(
        self: &Arc<Self>,
        held: &HeldAct,
        ticket: TicketId,
        (to, code, why): (State, Code, &'static str),
    ) -> Code {
        let kind = match code {
            Code::ApprovalDenied => ReceiptKind::Denied,
            _ => ReceiptKind::Lapsed,
        };
        let part = part_of(&held.act, held.digest, &held.salt, true, held.vouched);
        let draft = self
            .draft(kind, &held.current)
            .act(part, to)
            .code(Some(code))
            .policy(held.current.policy_digest)
            .ticket(Some(ticket))
            .detail(why);
        if code != Code::ApprovalDenied {
            let whose = store::Whose::Existing(held.act.candidate_act_id);
            return self.commit_refusal(draft, whose, to, code).await;
        }
        // The commit of the denial has moved every act that waited for the ticket; this is its line in the record.
        match draft.entry() {
            Ok(receipt) => {
                let note = store::Note {
                    now: self.now(),
                    receipts: vec![receipt],
                };
                self.commit_note(note, code).await
            }
            Err(_) => Code::FailClosed,
        }
    }

    //= PROFILE §10: the terminal client signs ticket and subject with the approver key
    /// Takes an approver's verdict on a ticket.
    ///
    /// # Errors
    /// A sentence for the person: the signature does not hold, the ticket is not pending, it is for another subject.
    pub async fn rule(self: &Arc<Self>, verdict: &ApprovalVerdict) -> Result<(), String> {
        if !self.verify_live(Role::Approver, verdict) {
            return Err("the verdict is not signed by the approver key of this gate".to_owned());
        }
        let row = match self.store().ticket(verdict.ticket_id) {
            Ok(Some(row)) => row,
            Ok(None) => return Err(format!("there is no ticket `{}`", verdict.ticket_id)),
            Err(fault) => return Err(fault.to_string()),
        };
        if row.subject != verdict.subject {
            return Err("the verdict is for another subject than the ticket's".to_owned());
        }
        let approve = verdict.verdict == Ruling::Approve;
        let current = self.current();
        let kind = if approve {
            ReceiptKind::Approved
        } else {
            ReceiptKind::Disapproved
        };
        let receipt = self
            .draft(kind, &current)
            .policy(current.policy_digest)
            .ticket(Some(row.id))
            .code((!approve).then_some(Code::ApprovalDenied))
            .approver(Some(verdict.mark.key_id.clone()))
            .entry()
            .map_err(|fault| fault.to_string())?;
        let decide = store::Decide {
            ticket: row.id,
            approve,
            approver: verdict.mark.key_id.clone(),
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Decide(decide)).await {
            Ok(store::Committed::Done(_)) => {
                if !approve {
                    self.approvals()
                        .remember_denial(row.subject, row.expires_at);
                }
                self.approvals().announce();
                Ok(())
            }
            Ok(store::Committed::Rejected(why)) => Err(why.to_string()),
            Err(fault) => {
                self.store_fault(&fault);
                Err(fault.to_string())
            }
        }
    }
}

/// How a wait ended, before it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Approved,
    Denied,
    Expired,
    HoldOver,
    Gone,
    Unreadable,
}

/// A waiter looks at its ticket by itself at least this often, so that expiry is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The most tickets shown at once.
pub(crate) const MOST_PENDING: usize = 10_000;
