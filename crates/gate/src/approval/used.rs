//! What the record says was used stays used, whatever a ticket's row says when a gate starts.

use std::collections::HashMap;
use std::sync::Arc;

use lychgate_core::id::TicketId;
use lychgate_core::receipt::{Receipt, ReceiptKind};
use lychgate_core::{Code, Timestamp, json};
use lychgate_store::{self as store, RecordRow, TicketQuery, TicketState};

use super::MOST_OPEN;
use crate::gate::Gate;

impl Gate {
    /// Ends approvals that a dispatch in the record has used, and those so far back that the record does not tell.
    pub(crate) async fn end_used_approvals(self: &Arc<Self>) -> Result<(), Code> {
        let query = TicketQuery::newest(Some(TicketState::Approved), MOST_OPEN);
        let rows = self.read(self.store().tickets(&query))?;
        let mut open = rows.iter().map(|row| (row.id, row.created_at)).collect();
        let used = self.used_in_record(&mut open)?;
        let all = [
            (used, "the record says that the approval was used"),
            (
                open.into_keys().collect(),
                "the record does not tell whether the approval was used",
            ),
        ];
        let current = self.current();
        let mut lapse = store::Lapse::at(self.now());
        for (tickets, why) in all {
            for ticket in tickets {
                let draft = self.draft(ReceiptKind::Lapsed, &current);
                let receipt = draft.ticket(Some(ticket)).detail(why).entry();
                lapse.receipts.push(receipt.map_err(|_| Code::FailClosed)?);
                lapse.tickets.push(ticket);
            }
        }
        if lapse.tickets.is_empty() {
            return Ok(());
        }
        self.must(store::Txn::Lapse(lapse)).await
    }

    /// The tickets of `open` that a line of the record says were used; in `open` stay those made before the oldest line
    /// that was read.
    fn used_in_record(
        &self,
        open: &mut HashMap<TicketId, Timestamp>,
    ) -> Result<Vec<TicketId>, Code> {
        let mut used = Vec::new();
        let mut below = self.read(self.store().record_len())?;
        for _ in 0..PAGES {
            if open.is_empty() || below == 0 {
                break;
            }
            let from = below.saturating_sub(PAGE);
            let count = usize::try_from(below - from).unwrap_or(0);
            let mut oldest = None;
            for line in self.read(self.store().record(from, count))? {
                let Some((at, ticket)) = use_of(&line) else {
                    oldest = None;
                    continue;
                };
                oldest = oldest.or(Some(at));
                used.extend(ticket.and_then(|ticket| open.remove_entry(&ticket)));
            }
            // Every line from here on was read: what is younger and not found was not used.
            if let Some(oldest) = oldest {
                open.retain(|_, made| *made < oldest.after(SETTLES));
            }
            below = from;
        }
        if below == 0 {
            open.clear();
        }
        Ok(used.into_iter().map(|(ticket, _)| ticket).collect())
    }
}

/// When a line was made, and the approval it says was used. `None` of one whose bytes were pruned.
fn use_of(line: &RecordRow) -> Option<(Timestamp, Option<TicketId>)> {
    let value = json::parse(line.bytes.as_ref()?, &json::Limits::OBJECT).ok()?;
    let receipt: Receipt = json::from_value(&value).ok()?;
    let used = receipt.kind == ReceiptKind::Dispatched;
    Some((receipt.at, receipt.ticket_id.filter(|_| used)))
}

/// Lines read at a time, and how often: as far back as the applied configuration is looked for.
const PAGE: u64 = 1024;
const PAGES: usize = 64;
/// Lines of one moment are in the order of their commits, not of their times.
const SETTLES: std::time::Duration = std::time::Duration::from_secs(60);
