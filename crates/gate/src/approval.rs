//! Escalations: sealed tickets, who waits for them, and what an approver's verdict does (PROFILE §4, §11).
//!
//! An approval is an input to the PED, never a substitute for the sink: a waiting act whose ticket is approved is
//! decided again under the policy of that moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Object, Value};
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, Digest, State, Timestamp, jcs};
use lychgate_keys::Role;
use lychgate_keys::verdict::{ApprovalVerdict, Verdict as Ruling};
use lychgate_store::{self as store, TicketRow, TicketState};
use tokio::sync::watch;

use crate::gate::{Gate, code_of};
use crate::hold::HeldAct;
use crate::ped::{Denied, Escalated, Judgement, Verdict};
use crate::receipts::part_of;

/// What is known of tickets in memory: who waits, and which subjects a person has said no to.
#[derive(Debug)]
pub(crate) struct Approvals {
    inner: Mutex<Waiting>,
    /// Moves with every decision; each waiter looks at its own ticket then.
    decided: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Waiting {
    by_ticket: HashMap<TicketId, usize>,
    denied: HashMap<Digest, Timestamp>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            decided: watch::Sender::new(0),
        }
    }
}

/// What the approvals say to an act that needs one.
#[derive(Debug)]
pub(crate) enum License {
    /// A person said yes to exactly this, and nobody has used it.
    Approved(TicketId),
    /// A person said no to exactly this, not long ago.
    Denied,
    /// Ask; with a new ticket, or on one that is pending and whose caller has gone.
    Ask(Option<TicketId>),
}

/// What a person is shown of a ticket. The digests are of exactly the text that is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingTicket {
    /// The ticket.
    pub id: TicketId,
    /// What an approval would be for.
    pub subject: Digest,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it can be decided and used.
    pub expires_at: Timestamp,
    /// Whether its caller still waits.
    pub waiting: bool,
    /// The sealed display, opened: an object with `tool_id`, `function_id`, `arguments` (canonical text) and more.
    pub display: Value,
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
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remember_denial(&self, subject: Digest, until: Timestamp) {
        let mut waiting = self.waiting();
        if waiting.denied.len() >= MOST_DENIALS {
            waiting.denied.clear();
        }
        waiting.denied.insert(subject, until);
    }

    fn is_denied(&self, subject: &Digest, now: Timestamp) -> bool {
        let mut waiting = self.waiting();
        waiting.denied.retain(|_, until| now < *until);
        waiting.denied.contains_key(subject)
    }

    pub(crate) fn is_waited_for(&self, ticket: TicketId) -> bool {
        self.waiting().by_ticket.contains_key(&ticket)
    }

    fn announce(&self) {
        self.decided
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    fn enter(self: &Approvals, ticket: TicketId) {
        *self.waiting().by_ticket.entry(ticket).or_default() += 1;
    }

    fn leave(&self, ticket: TicketId) {
        let mut waiting = self.waiting();
        if let Some(count) = waiting.by_ticket.get_mut(&ticket) {
            *count -= 1;
            if *count == 0 {
                waiting.by_ticket.remove(&ticket);
            }
        }
    }
}

impl Gate {
    pub(crate) fn license(&self, held: &HeldAct, subject: &Digest) -> Result<License, Code> {
        let now = self.now();
        let read = |result: Result<Option<TicketRow>, store::StoreFault>| {
            result.map_err(|fault| self.store_fault(&fault))
        };
        if let Some(own) = held.escalated {
            // A waiting act lives and dies with its own ticket.
            let row = read(self.store().ticket(own))?;
            return Ok(match row {
                Some(row) if row.state == TicketState::Approved && row.subject == *subject => {
                    License::Approved(own)
                }
                _ => License::Denied,
            });
        }
        if self.approvals().is_denied(subject, now) {
            return Ok(License::Denied);
        }
        let Some(row) = read(self.store().ticket_for_subject(subject))? else {
            return Ok(License::Ask(None));
        };
        let waited_for = self.approvals().is_waited_for(row.id);
        Ok(match row.state {
            // One whose caller still waits is that caller's: two equal live calls are two acts.
            _ if waited_for || now >= row.expires_at => License::Ask(None),
            TicketState::Approved => License::Approved(row.id),
            TicketState::Pending => License::Ask(Some(row.id)),
            TicketState::Denied | TicketState::Expired | TicketState::Consumed => {
                License::Ask(None)
            }
        })
    }

    pub(crate) async fn escalate(
        self: &Arc<Self>,
        mut held: HeldAct,
        code: Code,
        why: &'static str,
        judged: Judgement,
        subject: Digest,
        pending: Option<TicketId>,
    ) -> Verdict {
        let prepared = self.prepare_ticket(&held, code, why, subject, pending);
        let (ticket, awaited) = match prepared {
            Ok(prepared) => prepared,
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
                self.approvals().enter(ticket);
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
        pending: Option<TicketId>,
    ) -> Result<(TicketId, store::Awaited), Code> {
        if let Some(ticket) = pending {
            return Ok((
                ticket,
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
        Ok((id, store::Awaited::New(ticket)))
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
        self.approvals().leave(ticket);
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
        let (to, code, why) = match ended {
            // The commit of the denial has moved every act that waited for the ticket.
            Ended::Denied => {
                let act = Some(held.act.candidate_act_id);
                return Denied {
                    code: Code::ApprovalDenied,
                    pointer: None,
                    act,
                    ticket: Some(ticket),
                    state: State::Refused,
                };
            }
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
        let part = part_of(&held.act, held.digest, &held.salt, true, held.vouched);
        let draft = self
            .draft(ReceiptKind::Lapsed, &held.current)
            .act(part, to)
            .code(Some(code))
            .policy(held.current.policy_digest)
            .ticket(Some(ticket))
            .detail(why);
        let act = held.act.candidate_act_id;
        let code = self
            .commit_refusal(draft, store::Whose::Existing(act), to, code)
            .await;
        Denied {
            code,
            pointer: None,
            act: Some(act),
            ticket: Some(ticket),
            state: to,
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

    /// The tickets that wait for a person, oldest first, with what the person is to be shown.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn pending(&self) -> Result<Vec<PendingTicket>, store::StoreFault> {
        let now = self.now();
        let mut pending = Vec::new();
        for row in self
            .store()
            .tickets(Some(TicketState::Pending), MOST_PENDING)?
        {
            if now >= row.expires_at {
                continue;
            }
            // Rows of a list come without their sealed bytes.
            if let Some(ticket) = self.pending_ticket(row.id)? {
                pending.push(ticket);
            }
        }
        pending.reverse();
        Ok(pending)
    }

    /// One ticket that waits for a person.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn pending_ticket(&self, id: TicketId) -> Result<Option<PendingTicket>, store::StoreFault> {
        let Some(row) = self.store().ticket(id)? else {
            return Ok(None);
        };
        let opened = row
            .display
            .as_ref()
            .and_then(|sealed| self.sealer().open(&display_label(id), sealed).ok());
        let display = opened.and_then(|bytes| json::parse(&bytes, &json::Limits::CANON).ok());
        let (TicketState::Pending, Some(display)) = (row.state, display) else {
            return Ok(None);
        };
        Ok(Some(PendingTicket {
            id,
            subject: row.subject,
            created_at: row.created_at,
            expires_at: row.expires_at,
            waiting: self.approvals().is_waited_for(id),
            display,
        }))
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

/// Everything the approver decides on: from the act, the live call and the catalogue; no words of the model's own.
fn display_of(held: &HeldAct, code: Code, why: &str) -> Option<Value> {
    let act = &held.act;
    let mut display = Object::new();
    let mut put = |key: &str, value: Value| drop(display.insert(key.to_owned(), value));
    put(
        "candidate_act_id",
        Value::from(act.candidate_act_id.to_string()),
    );
    put("tool_id", Value::from(act.tool.tool_id.as_str()));
    put("function_id", Value::from(act.tool.function_id.as_str()));
    put("endpoint", Value::from(held.connected.endpoint.as_str()));
    put(
        "arguments",
        Value::from(String::from_utf8(held.proposal.canonical.clone()).ok()?),
    );
    put(
        "arguments_digest",
        Value::from(held.proposal.digest.to_base64url()),
    );
    put("agent_id", Value::from(act.agent.agent_id.as_str()));
    put(
        "principal_id",
        Value::from(act.initiating_principal.principal_id.as_str()),
    );
    put(
        "purpose",
        Value::from(act.purpose.declared_purpose.as_str()),
    );
    put(
        "consequence_class",
        Value::from(act.consequence_class.name()),
    );
    let source = act
        .instruction_provenance
        .as_ref()
        .map(json::to_value)
        .transpose()
        .ok()?;
    put(
        "provenance",
        source.unwrap_or_else(|| Value::from("UNKNOWN")),
    );
    put("vouched", Value::from(held.vouched));
    put(
        "destination",
        json::to_value(&act.destination.clone().unwrap_or_default()).ok()?,
    );
    let targets = held
        .reach
        .as_ref()
        .map(|reach| reach.targets.clone())
        .unwrap_or_default();
    put(
        "targets",
        Value::Array(
            targets
                .iter()
                .map(|target| Value::from(target.canonical.as_str()))
                .collect(),
        ),
    );
    let recipients = held
        .reach
        .as_ref()
        .map(|reach| reach.recipients.clone())
        .unwrap_or_default();
    put(
        "recipients",
        Value::Array(
            recipients
                .iter()
                .map(|one| Value::from(one.as_str()))
                .collect(),
        ),
    );
    put("code", Value::from(code.number()));
    put("why", Value::from(why));
    Some(Value::Object(display))
}

fn display_label(ticket: TicketId) -> Vec<u8> {
    format!("ticket:{ticket}").into_bytes()
}

/// A waiter looks at its ticket by itself at least this often, so that expiry is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Denials remembered by subject until their ticket's time is over.
const MOST_DENIALS: usize = 4096;
/// The most tickets shown at once.
pub(crate) const MOST_PENDING: usize = 10_000;

/// So that the act id of a waiting ticket can be told.
impl PendingTicket {
    /// The act that asked.
    pub fn act(&self) -> Option<ActId> {
        self.display
            .get("candidate_act_id")
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok())
    }
}
