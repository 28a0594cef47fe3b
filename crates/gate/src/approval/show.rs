//! What a person is shown of a ticket: from the act, the live call and the catalogue; no words of the model's own.

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Object, Value};
use lychgate_core::{Code, Digest, Timestamp};
use lychgate_store::{StoreFault, TicketState};

use super::MOST_PENDING;
use crate::gate::Gate;
use crate::hold::HeldAct;

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

impl PendingTicket {
    /// The act that asked.
    pub fn act(&self) -> Option<ActId> {
        self.display
            .get("candidate_act_id")
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok())
    }
}

impl Gate {
    /// The tickets that wait for a person, oldest first, with what the person is to be shown.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn pending(&self) -> Result<Vec<PendingTicket>, StoreFault> {
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
    pub fn pending_ticket(&self, id: TicketId) -> Result<Option<PendingTicket>, StoreFault> {
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

/// Everything the approver decides on.
pub(super) fn display_of(held: &HeldAct, code: Code, why: &str) -> Option<Value> {
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

/// What a sealed display is bound to.
pub(super) fn display_label(ticket: TicketId) -> Vec<u8> {
    format!("ticket:{ticket}").into_bytes()
}
