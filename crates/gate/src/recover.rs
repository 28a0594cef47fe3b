//! What a gate does before it decides anything, and from time to time: it settles what its predecessor left open, and
//! ends what has run out (PROFILE §5).

use std::collections::HashSet;
use std::sync::Arc;

use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, State, Timestamp};
use lychgate_store::{self as store, ActQuery, ActRow, TicketState};

use crate::approval::MOST_OPEN;
use crate::gate::Gate;
use crate::log;
use crate::sink::Unknown;
use crate::twins::KEPT_MILLIS;

/// What a gate found when it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Dispatched acts without an outcome: they are indeterminate now.
    pub indeterminate: usize,
    /// Acts that were held when the gate ended: they are withdrawn or expired now.
    pub lapsed: usize,
}

impl Gate {
    //= PROFILE §5: when the gate starts, every `dispatched` row without an outcome becomes `indeterminate`
    /// Settles what a predecessor left open and records the start. Decide nothing before this has returned.
    ///
    /// # Errors
    /// EF-081 when the store cannot answer.
    pub async fn recover(self: &Arc<Self>) -> Result<Recovered, Code> {
        let mut recovered = Recovered::default();
        for row in self.read(self.store().open_acts())? {
            if row.state == State::Dispatched {
                self.lose(&row).await?;
                recovered.indeterminate += 1;
            }
            if let (Some(twin), State::ReconciledEffect) = (row.twin, row.state) {
                self.twins().restore_found(twin, row.id);
            } else if let Some(twin) = row.twin {
                let undelivered_since = (row.state == State::Effected).then_some(row.updated_at);
                self.twins().restore(twin, row.id, undelivered_since);
            }
        }
        for (state, to) in [
            (State::Allowed, State::Expired),
            (State::Escalated, State::Withdrawn),
        ] {
            recovered.lapsed += self.lapse_all(state, to).await?;
        }
        self.end_used_approvals().await?;
        self.remember().await?;
        // How long the gate was down cannot be told, so neither can how long a ticket still lives.
        if self.clock_behind() > CLOCKS_DIFFER {
            log::warn(
                "the clock stands behind what is recorded; open tickets lapse",
                &[],
            );
            self.end_what_is_over(true).await?;
        }
        self.recall_controls().await?;
        self.note(ReceiptKind::Started).await?;
        Ok(recovered)
    }

    async fn lose(self: &Arc<Self>, row: &ActRow) -> Result<(), Code> {
        let current = self.current();
        let receipt = self
            .draft_of(ReceiptKind::Outcome, &current, row, State::Indeterminate)
            .code(Some(Code::TwinUnresolved))
            .detail(Unknown::GateEnded.phrase())
            .entry()
            .map_err(|_| Code::FailClosed)?;
        let settle = store::Settle {
            act: row.id,
            to: State::Indeterminate,
            answer: None,
            undelivered: false,
            code: Some(Code::TwinUnresolved),
            refund: Vec::new(),
            now: self.now(),
            receipts: vec![receipt],
        };
        self.must(store::Txn::Settle(settle)).await
    }

    async fn lapse_all(self: &Arc<Self>, state: State, to: State) -> Result<usize, Code> {
        let mut lapsed = 0;
        loop {
            let query = ActQuery {
                state: Some(state),
                after: None,
                newest_first: false,
                limit: PAGE,
            };
            let rows = self.read(self.store().acts(&query))?;
            if rows.is_empty() {
                return Ok(lapsed);
            }
            lapsed += rows.len();
            let current = self.current();
            let mut lapse = store::Lapse::at(self.now());
            for row in &rows {
                let draft = self
                    .draft_of(ReceiptKind::Lapsed, &current, row, to)
                    .detail("the gate ended while it was held");
                lapse
                    .receipts
                    .push(draft.entry().map_err(|_| Code::FailClosed)?);
                lapse.acts.push(store::Lapsed {
                    act: row.id,
                    to,
                    code: None,
                });
            }
            self.must(store::Txn::Lapse(lapse)).await?;
        }
    }

    /// What a person has decided lately comes back into memory: denials, and acts found without effect.
    async fn remember(self: &Arc<Self>) -> Result<(), Code> {
        let now = self.now();
        let pending = self.store().tickets(&store::TicketQuery::newest(
            Some(TicketState::Pending),
            MOST_OPEN,
        ));
        for ticket in self.read(pending)? {
            self.approvals().restore(&ticket);
        }
        for ticket in self.read(
            self.store()
                .tickets(&store::TicketQuery::newest(Some(TicketState::Denied), PAGE)),
        )? {
            if now < ticket.expires_at {
                self.approvals()
                    .remember_denial(ticket.subject, ticket.expires_at);
            }
        }
        self.remember_reconciled()
    }

    /// Acts found without effect that nobody has repeated yet. One that was repeated is no retry's predecessor again: a
    /// later equal call is a new act with an idempotency key of its own. So is the retry of one too long ago to tell.
    fn remember_reconciled(self: &Arc<Self>) -> Result<(), Code> {
        let mut repeated = HashSet::new();
        let mut found = Vec::new();
        let mut after = None;
        for _ in 0..PAGES {
            let query = ActQuery {
                state: None,
                after,
                newest_first: true,
                limit: PAGE,
            };
            let rows = self.read(self.store().acts(&query))?;
            let Some(last) = rows.last() else { break };
            after = Some(last.id);
            for row in rows {
                if row.effect.is_some() {
                    repeated.extend(row.retry_of);
                }
                if let (State::ReconciledNoEffect, Some(twin)) = (row.state, row.twin) {
                    found.push((twin, row.id));
                }
            }
        }
        // Acts of one millisecond are in no order, so a retry may come before or after what it repeats.
        let mut known = self.predecessors();
        for (twin, act) in found {
            if !repeated.contains(&act) {
                known.reconciled.entry(twin).or_insert(act);
            }
        }
        drop(known);
        Ok(())
    }

    /// Ends what has run out: tickets past their time, recorded answers past ten minutes. Called from time to time.
    ///
    /// # Errors
    /// EF-081 when the store cannot answer.
    pub async fn sweep(self: &Arc<Self>) -> Result<(), Code> {
        self.end_what_is_over(false).await
    }

    async fn end_what_is_over(self: &Arc<Self>, every_ticket: bool) -> Result<(), Code> {
        let now = self.now();
        let mut lapse = store::Lapse::at(now);
        let current = self.current();
        let mut live = Vec::new();
        for state in [TicketState::Pending, TicketState::Approved] {
            live.extend(
                self.read(
                    self.store()
                        .tickets(&store::TicketQuery::newest(Some(state), MOST_OPEN)),
                )?,
            );
        }
        // A ticket somebody waits for is ended by its waiter, with the act's own receipt.
        let over = live.iter().filter(|ticket| {
            (every_ticket || now >= ticket.expires_at) && !self.approvals().is_waited_for(ticket.id)
        });
        for ticket in over {
            let draft = self
                .draft(ReceiptKind::Lapsed, &current)
                .ticket(Some(ticket.id))
                .detail(if every_ticket {
                    "the clock stands behind the record"
                } else {
                    "the ticket expired"
                });
            lapse
                .receipts
                .push(draft.entry().map_err(|_| Code::FailClosed)?);
            lapse.tickets.push(ticket.id);
        }
        if let Some(until) = now.as_millis().checked_sub(KEPT_MILLIS) {
            let until = Timestamp::from_millis(until);
            lapse.forget_answers = self.read(self.store().kept_answers(until))?;
        }
        self.approvals().forget_lapsed(now, &lapse.tickets, &live);
        if lapse.tickets.is_empty() && lapse.forget_answers.is_empty() {
            return Ok(());
        }
        // A ticket decided meanwhile rejects the whole; the next sweep sees it as it is then.
        match self.store().commit(store::Txn::Lapse(lapse)).await {
            Ok(_) => Ok(()),
            Err(fault) => Err(self.store_fault(&fault)),
        }
    }

    /// Records a step of the gate itself.
    ///
    /// # Errors
    /// EF-081 when the store cannot answer.
    pub async fn note(self: &Arc<Self>, kind: ReceiptKind) -> Result<(), Code> {
        let current = self.current();
        let receipt = self
            .draft(kind, &current)
            .policy(current.policy_digest)
            .entry()
            .map_err(|_| Code::FailClosed)?;
        self.must(store::Txn::Note(store::Note {
            now: self.now(),
            receipts: vec![receipt],
        }))
        .await
    }

    pub(crate) async fn must(self: &Arc<Self>, txn: store::Txn) -> Result<(), Code> {
        match self.store().commit(txn).await {
            Ok(store::Committed::Done(_)) => Ok(()),
            Ok(store::Committed::Rejected(why)) => Err(crate::gate::code_of(&why)),
            Err(fault) => Err(self.store_fault(&fault)),
        }
    }

    pub(crate) fn read<T>(&self, result: Result<T, store::StoreFault>) -> Result<T, Code> {
        result.map_err(|fault| self.store_fault(&fault))
    }
}

/// Clocks of one machine may differ by so much from one start to the next.
const CLOCKS_DIFFER: std::time::Duration = std::time::Duration::from_secs(60);
/// Rows handled at a time.
const PAGE: usize = 1000;
/// How far back acts found without effect are looked for.
const PAGES: usize = 10;
