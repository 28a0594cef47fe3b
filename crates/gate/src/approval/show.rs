//! What a person is shown of a ticket: from the act, the live call and the catalogue; no words of the model's own.

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Object, Value};
use lychgate_core::{Code, Digest, Timestamp};
use lychgate_store::{StoreFault, TicketQuery, TicketRow, TicketState};

use super::open::{MOST_OPEN, Open};
use super::quorum::Tally;
use crate::gate::Gate;
use crate::hold::HeldAct;
use crate::log;

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
    /// Who is asked, and how many of them have said yes.
    pub wanted: Vec<Tally>,
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

/// A ticket in a list: what tells it from the others. What is decided on is [`PendingTicket::display`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketSummary {
    /// The ticket.
    pub id: TicketId,
    /// What an approval would be for.
    pub subject: Digest,
    /// The act that asked.
    pub act: ActId,
    /// The server in the catalogue.
    pub tool: String,
    /// The function in the catalogue.
    pub function: String,
    /// The class.
    pub class: String,
    /// Why a person is asked.
    pub code: String,
    /// The same, as a phrase.
    pub why: String,
    /// The digest of the arguments, base64url.
    pub arguments_digest: String,
    /// Where it goes: the first target or the destination, cut to 200 characters.
    pub reach: String,
    /// How many targets it has beyond that one.
    pub more: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it can be decided and used.
    pub expires_at: Timestamp,
    /// Whether its caller still waits.
    pub waiting: bool,
}

/// Which of the tickets that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingQuery {
    /// Only those past this one, in the direction of the walk.
    pub after: Option<TicketId>,
    /// From the newest down, else from the oldest up.
    pub newest_first: bool,
    /// Only calls of this server.
    pub tool: Option<String>,
    /// Only calls of this function.
    pub function: Option<String>,
    /// Only calls of this class.
    pub class: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl PendingQuery {
    fn fits(&self, ticket: &TicketSummary) -> bool {
        let same =
            |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|one| one == is);
        same(&self.tool, &ticket.tool)
            && same(&self.function, &ticket.function)
            && same(&self.class, &ticket.class)
    }
}

impl Gate {
    /// Every ticket that waits for a person, oldest first. What the person is to be shown of one is
    /// [`Gate::pending_ticket`]'s.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn pending(&self) -> Result<Vec<TicketSummary>, StoreFault> {
        let every = PendingQuery {
            limit: MOST_OPEN,
            ..PendingQuery::default()
        };
        Ok(self.pending_page(&every)?.0)
    }

    /// Some of the tickets that wait for a person, and whether there may be more. Memory is bounded by a page and what is
    /// asked for.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn pending_page(
        &self,
        wanted: &PendingQuery,
    ) -> Result<(Vec<TicketSummary>, bool), StoreFault> {
        let now = self.now();
        let mut found = Vec::new();
        let mut query = TicketQuery {
            state: Some(TicketState::Pending),
            after: wanted.after,
            newest_first: wanted.newest_first,
            limit: PAGE,
        };
        loop {
            let rows = self.store().tickets(&query)?;
            let last = rows.last().map(|row| row.id);
            for row in rows.iter().filter(|row| now < row.expires_at) {
                let summary = self.summary(row).filter(|summary| wanted.fits(summary));
                if summary.is_some() && found.len() >= wanted.limit {
                    return Ok((found, true));
                }
                found.extend(summary);
            }
            match last {
                Some(last) if rows.len() == PAGE => query.after = Some(last),
                _ => return Ok((found, false)),
            }
        }
    }

    /// How many tickets wait for a person.
    pub fn pending_count(&self) -> usize {
        self.approvals().tickets.open(|open| open.len())
    }

    /// The tickets that wait and whose id a text names: whole, or how it begins or ends. At most `most`.
    pub fn pending_named(&self, part: &str, most: usize) -> Vec<TicketId> {
        let names = |id: &TicketId| {
            let id = id.to_string();
            let short = id.strip_prefix("tkt-").unwrap_or(&id);
            id == part || id.starts_with(part) || short.starts_with(part) || id.ends_with(part)
        };
        let ids = |open: &mut Open| open.ids().filter(|id| names(id)).take(most).collect();
        self.approvals().tickets.open(ids)
    }

    fn summary(&self, row: &TicketRow) -> Option<TicketSummary> {
        let label = summary_label(row.id, &row.subject, row.expires_at);
        let opened = self.sealer().open(&label, row.summary.as_ref()?);
        let summary = opened
            .ok()
            .and_then(|bytes| json::parse(&bytes, &json::Limits::CANON).ok());
        let Some(summary) = summary else {
            log::error(
                "a ticket's summary cannot be opened",
                &[("ticket", row.id.into())],
            );
            return None;
        };
        let text = |key: &str| Some(summary.get(key)?.as_str()?.to_owned());
        Some(TicketSummary {
            id: row.id,
            subject: row.subject,
            act: row.act,
            tool: text("tool_id")?,
            function: text("function_id")?,
            class: text("consequence_class")?,
            code: text("code")?,
            why: text("why")?,
            arguments_digest: text("arguments_digest")?,
            reach: text("reach")?,
            more: summary.get("more")?.as_u64()?,
            created_at: row.created_at,
            expires_at: row.expires_at,
            waiting: self.approvals().is_waited_for(row.id),
        })
    }

    /// One ticket that waits for a person.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn pending_ticket(&self, id: TicketId) -> Result<Option<PendingTicket>, StoreFault> {
        let Some(row) = self.store().ticket(id)? else {
            return Ok(None);
        };
        let label = display_label(id, &row.subject, row.expires_at);
        let opened = row
            .display
            .as_ref()
            .and_then(|sealed| self.sealer().open(&label, sealed).ok());
        let display = opened.and_then(|bytes| json::parse(&bytes, &json::Limits::CANON).ok());
        let (TicketState::Pending, Some(display)) = (row.state, display) else {
            return Ok(None);
        };
        let Ok(wanted) = self.tallies(&row) else {
            return Ok(None);
        };
        Ok(Some(PendingTicket {
            wanted,
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
    let reach = held.reach.as_ref().ok();
    let targets = reach.iter().flat_map(|reach| &reach.targets);
    put("targets", texts(targets.map(|one| one.canonical.as_str())));
    let recipients = reach.iter().flat_map(|reach| &reach.recipients);
    put("recipients", texts(recipients.map(|one| one.as_str())));
    put("code", Value::from(code.number()));
    put("why", Value::from(why));
    Some(Value::Object(display))
}

fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> Value {
    Value::Array(texts.map(Value::from).collect())
}

/// What a list shows.
pub(super) fn summary_of(held: &HeldAct, code: Code, why: &str) -> Option<Value> {
    let act = &held.act;
    let targets = held
        .reach
        .as_ref()
        .map(|reach| reach.targets.as_slice())
        .unwrap_or_default();
    let destination = act.destination.as_ref();
    let reach = targets.first().map_or_else(
        || destination.and_then(|there| there.destination_id.as_deref()),
        |target| Some(target.canonical.as_str()),
    );
    let reach = reach.unwrap_or("unresolved").chars().take(MOST_REACH);
    let more = u64::try_from(targets.len().saturating_sub(1)).unwrap_or(u64::MAX);
    let mut summary = Object::new();
    let mut put = |key: &str, value: Value| drop(summary.insert(key.to_owned(), value));
    put("tool_id", Value::from(act.tool.tool_id.as_str()));
    put("function_id", Value::from(act.tool.function_id.as_str()));
    put(
        "consequence_class",
        Value::from(act.consequence_class.name()),
    );
    put("code", Value::from(code.number()));
    put("why", Value::from(why));
    put(
        "arguments_digest",
        Value::from(held.proposal.digest.to_base64url()),
    );
    put("reach", Value::from(reach.collect::<String>()));
    put("more", json::to_value(&more).ok()?);
    Some(Value::Object(summary))
}

/// What a sealed summary is bound to.
pub(super) fn summary_label(ticket: TicketId, subject: &Digest, end: Timestamp) -> Vec<u8> {
    format!("summary:{ticket}:{}:{end}", subject.to_base64url()).into_bytes()
}

/// What a sealed display is bound to: in another ticket's row, or beside another subject or end than the ones it was made
/// for, it opens to nothing, and nobody can be shown one thing and sign another.
pub(super) fn display_label(ticket: TicketId, subject: &Digest, end: Timestamp) -> Vec<u8> {
    format!("ticket:{ticket}:{}:{end}", subject.to_base64url()).into_bytes()
}

/// Rows read at a time.
const PAGE: usize = 512;
/// Characters of a target in a list.
const MOST_REACH: usize = 200;
