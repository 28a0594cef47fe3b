//! A held act that waits for its ticket: how the wait ends, and what is committed of that.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::TicketId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, State};
use lychgate_store::{self as store, TicketState};

use super::{Caller, Waited};
use crate::gate::Gate;
use crate::hold::HeldAct;
use crate::ped::{Denied, Escalated};

impl Gate {
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
                None if self.stopped(&held).is_some() => break Ended::Revoked,
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
                TicketState::Withdrawn => Some(Ended::Revoked),
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
            Ended::Revoked => {
                let revoked = (Code::RevocationActive, "what it asks for was revoked");
                let (code, why) = self.stopped(&held).unwrap_or(revoked);
                if code == Code::RevocationActive {
                    self.withdraw_ticket(ticket).await;
                }
                (State::Refused, code, why)
            }
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
            Code::ApprovalDenied | Code::RevocationActive | Code::PrincipalNotAuthorized => {
                ReceiptKind::Denied
            }
            _ => ReceiptKind::Lapsed,
        };
        let draft = self
            .draft(kind, &held.current)
            .act(held.part(), to)
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
}

/// How a wait ended, before it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Approved,
    Denied,
    Expired,
    HoldOver,
    Gone,
    Revoked,
    Unreadable,
}

/// A waiter looks at its ticket by itself at least this often, so that expiry is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
