//! The rules a second time, in memory and without cunning: work on a copy, keep it when all went well.
//!
//! It is the model that histories are compared with, and a store for tests above this crate that need no file.

use std::sync::{Arc, Mutex};

use lychgate_core::id::{ActId, DelegationId, TicketId};
use lychgate_core::{Digest, State, Timestamp};
use lychgate_ledger::{Frontier, Hash};
use tokio::sync::watch;

use super::Place;
use super::purse::Purse;
use super::world::World;
use crate::budget::{Account, Drawn};
use crate::outcome::{Committed, StoreFault};
use crate::row::*;
use crate::txn::Txn;
use crate::{Pending, Store};

/// A store in memory. It lasts as long as one clone of it, and is a [`Place`] that finds the same world again.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    world: Arc<Mutex<World>>,
    heads: Arc<watch::Sender<Option<HeadRow>>>,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn look<T>(&self, look: impl FnOnce(&World) -> T) -> Result<T, StoreFault> {
        Ok(look(&self.world.lock().unwrap()))
    }
}

impl Place for MemoryStore {
    fn open(&self) -> Box<dyn Store> {
        Box::new(self.clone())
    }
}

impl Store for MemoryStore {
    fn commit(&self, txn: Txn) -> Pending {
        let mut world = self.world.lock().unwrap();
        let mut next = world.clone();
        Pending::ready(Ok(match next.transaction(txn) {
            Ok(done) => {
                *world = next;
                let newest = world.heads.last().cloned();
                self.heads.send_if_modified(|seen| {
                    let grown = *seen != newest;
                    *seen = newest;
                    grown
                });
                Committed::Done(done)
            }
            Err(why) => Committed::Rejected(why),
        }))
    }

    fn note_delivered(&self, act: ActId) {
        self.world.lock().unwrap().delivered(act);
    }

    fn protected_state(&self) -> Result<ProtectedState, StoreFault> {
        self.look(|world| world.held)
    }

    fn act(&self, id: ActId) -> Result<Option<ActRow>, StoreFault> {
        self.look(|world| world.acts.get(&id).cloned())
    }

    fn acts(&self, query: &ActQuery) -> Result<Vec<ActRow>, StoreFault> {
        self.look(|world| {
            let mut rows: Vec<&ActRow> = world.acts.values().collect();
            if query.newest_first {
                rows.reverse();
            }
            rows.into_iter()
                .filter(|row| query.state.is_none_or(|state| row.state == state))
                .filter(|row| match query.after {
                    None => true,
                    Some(after) if query.newest_first => row.id < after,
                    Some(after) => row.id > after,
                })
                .take(query.limit)
                .map(bare)
                .collect()
        })
    }

    fn counts(&self) -> Result<Counts, StoreFault> {
        self.look(|world| {
            let mut counts = Counts::default();
            world
                .acts
                .values()
                .for_each(|row| counts.0[usize::from(row.state.number())] += 1);
            counts
        })
    }

    fn open_acts(&self) -> Result<Vec<ActRow>, StoreFault> {
        let open = |row: &&ActRow| {
            row.undelivered || matches!(row.state, State::Dispatched | State::Indeterminate)
        };
        self.look(|world| world.acts.values().filter(open).map(bare).collect())
    }

    fn said(&self, id: ActId) -> Result<Option<SaidRow>, StoreFault> {
        self.look(|world| world.said.get(&id).cloned())
    }

    fn kept_answers(&self, until: Timestamp) -> Result<Vec<ActId>, StoreFault> {
        let kept =
            |row: &&ActRow| row.undelivered && row.answer.is_some() && row.updated_at <= until;
        let id = |row: &ActRow| row.id;
        self.look(|world| world.acts.values().filter(kept).map(id).collect())
    }

    fn ticket(&self, id: TicketId) -> Result<Option<TicketRow>, StoreFault> {
        self.look(|world| world.tickets.get(&id).cloned())
    }

    fn verdicts(&self, id: TicketId) -> Result<Vec<VerdictRow>, StoreFault> {
        self.look(|world| world.verdicts.get(&id).cloned().unwrap_or_default())
    }

    fn tickets(&self, query: &TicketQuery) -> Result<Vec<TicketRow>, StoreFault> {
        self.look(|world| {
            let mut rows: Vec<&TicketRow> = world.tickets.values().collect();
            if query.newest_first {
                rows.reverse();
            }
            rows.into_iter()
                .filter(|row| query.state.is_none_or(|state| row.state == state))
                .filter(|row| match query.after {
                    None => true,
                    Some(after) if query.newest_first => row.id < after,
                    Some(after) => row.id > after,
                })
                .take(query.limit)
                .map(listed)
                .collect()
        })
    }

    fn tickets_of(&self, subject: &Digest, limit: usize) -> Result<Vec<TicketRow>, StoreFault> {
        let wanted = |row: &&TicketRow| {
            row.subject == *subject
                && matches!(row.state, TicketState::Pending | TicketState::Approved)
        };
        self.look(|world| {
            let rows = world.tickets.values().rev().filter(wanted);
            rows.take(limit).map(listed).collect()
        })
    }

    fn applied(&self) -> Result<Option<AppliedRow>, StoreFault> {
        self.look(|world| world.applied.clone())
    }

    fn revocations(&self) -> Result<Vec<Revocation>, StoreFault> {
        let row = |(subject, at): (&String, &Timestamp)| Revocation {
            subject: subject.clone(),
            at: *at,
        };
        self.look(|world| world.revoked.iter().map(row).collect())
    }

    fn account(&self, account: Account) -> Result<Option<Drawn>, StoreFault> {
        self.look(|world| world.purses.get(&account).map(Purse::drawn))
    }

    fn delegation(&self, id: DelegationId) -> Result<Option<DelegationRow>, StoreFault> {
        self.look(|world| world.delegations.get(&id).cloned())
    }

    fn delegations(&self, limit: usize) -> Result<Vec<DelegationRow>, StoreFault> {
        self.look(|world| {
            world
                .delegations
                .values()
                .rev()
                .take(limit)
                .cloned()
                .collect()
        })
    }

    fn consents(
        &self,
        live_at: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<ConsentRow>, StoreFault> {
        let wanted = |row: &&ConsentRow| {
            live_at.is_none_or(|at| row.withdrawn_at.is_none() && at < row.expires_at)
        };
        self.look(|world| {
            let rows = world.consents.values().rev().filter(wanted);
            rows.take(limit).cloned().collect()
        })
    }

    fn record(&self, from: u64, limit: usize) -> Result<Vec<RecordRow>, StoreFault> {
        self.look(|world| {
            (0..)
                .zip(&world.record)
                .filter(|(index, _)| *index >= from)
                .take(limit)
                .map(|(index, line)| RecordRow {
                    index,
                    bytes: (!world.pruned.contains(&index)).then(|| line.bytes.clone()),
                    leaf: line.leaf,
                })
                .collect()
        })
    }

    fn newest_head(&self) -> Result<Option<HeadRow>, StoreFault> {
        self.look(|world| world.heads.last().cloned())
    }

    fn heads(&self, from: u64, limit: usize) -> Result<Vec<HeadRow>, StoreFault> {
        let kept = |head: &&HeadRow| head.size >= from;
        self.look(|world| {
            world
                .heads
                .iter()
                .filter(kept)
                .take(limit)
                .cloned()
                .collect()
        })
    }

    fn watch_heads(&self) -> watch::Receiver<Option<HeadRow>> {
        self.heads.subscribe()
    }

    fn frontier(&self) -> Result<Frontier, StoreFault> {
        self.look(|world| world.record.iter().map(|line| line.leaf).collect())
    }

    fn tree_hashes(&self, level: u8, from: u64, count: u16) -> Result<Vec<Hash>, StoreFault> {
        let width = 1usize
            .checked_shl(8 * u32::from(level))
            .unwrap_or(usize::MAX);
        self.look(|world| {
            let all = world.record.chunks_exact(width);
            let roots = all.map(|lines| lychgate_ledger::root(lines.iter().map(|line| line.leaf)));
            roots.skip(from as usize).take(count.into()).collect()
        })
    }

    fn record_len(&self) -> Result<u64, StoreFault> {
        self.look(|world| world.record.len() as u64)
    }
}

fn listed(row: &TicketRow) -> TicketRow {
    TicketRow {
        display: None,
        ..row.clone()
    }
}

fn bare(row: &ActRow) -> ActRow {
    ActRow {
        answer: None,
        read_back: None,
        ..row.clone()
    }
}
