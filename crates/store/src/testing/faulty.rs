//! A store that fails on request.

use std::sync::{Mutex, PoisonError};

use lychgate_core::id::{ActId, DelegationId, TicketId};
use lychgate_core::{Digest, Timestamp};
use lychgate_ledger::{Frontier, Hash};
use tokio::sync::watch;

use crate::budget::{Account, Drawn};
use crate::contract::Answer;
use crate::outcome::StoreFault;
use crate::row::*;
use crate::txn::Txn;
use crate::{Pending, Store};

/// What goes wrong with commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Refused at once; certainly not committed.
    Unavailable,
    /// As `Unavailable`, with a full queue as the reason.
    Busy,
    /// Never answered, never committed, until the store is told to fail in another way or not at all: then `Unavailable`.
    Hang,
    /// Really committed, but answered `Unrecorded`; then closed.
    CommitThenUnrecorded,
    /// Not committed, and answered `Unrecorded`; then closed.
    LoseThenUnrecorded,
}

/// Wraps any store; see [`FaultyStore::fail`]. Reads fail too once it is closed, and while it is unavailable.
pub struct FaultyStore<S> {
    inner: S,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    /// Commits to let through before the fault sets in.
    spare: usize,
    closed: bool,
    hanging: Vec<Answer>,
}

impl<S: Store> FaultyStore<S> {
    /// One that does not fail yet.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            state: Mutex::default(),
        }
    }

    /// From now on commits fail so; `None` mends everything but a closed store.
    pub fn fail(&self, fault: Option<Fault>) {
        self.fail_after(0, fault);
    }

    /// Lets `spare` commits through first.
    pub fn fail_after(&self, spare: usize, fault: Option<Fault>) {
        let mut state = self.lock();
        state.fault = fault;
        state.spare = spare;
        let hanging = std::mem::take(&mut state.hanging);
        drop(state);
        for answer in hanging {
            answer.give(Err(unavailable()));
        }
    }

    /// The store inside.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&S) -> Result<T, StoreFault>) -> Result<T, StoreFault> {
        let state = self.lock();
        if state.closed {
            return Err(StoreFault::Closed);
        }
        if state.fault == Some(Fault::Unavailable) && state.spare == 0 {
            return Err(unavailable());
        }
        drop(state);
        read(&self.inner)
    }
}

fn unavailable() -> StoreFault {
    StoreFault::Unavailable("told to fail".to_owned())
}

impl<S: Store> Store for FaultyStore<S> {
    fn commit(&self, txn: Txn) -> Pending {
        let mut state = self.lock();
        if state.closed {
            return Pending::ready(Err(StoreFault::Closed));
        }
        let Some(fault) = state.fault else {
            return self.inner.commit(txn);
        };
        if state.spare > 0 {
            state.spare -= 1;
            return self.inner.commit(txn);
        }
        match fault {
            Fault::Unavailable => Pending::ready(Err(unavailable())),
            Fault::Busy => Pending::ready(Err(StoreFault::Busy)),
            Fault::Hang => {
                let (answer, pending) = Pending::new();
                state.hanging.push(answer);
                pending
            }
            Fault::CommitThenUnrecorded => {
                state.closed = true;
                // Dropping the promise withdraws nothing.
                drop(self.inner.commit(txn));
                Pending::ready(Err(StoreFault::Unrecorded))
            }
            Fault::LoseThenUnrecorded => {
                state.closed = true;
                Pending::ready(Err(StoreFault::Unrecorded))
            }
        }
    }

    fn note_delivered(&self, act: ActId) {
        if !self.lock().closed {
            self.inner.note_delivered(act);
        }
    }

    fn protected_state(&self) -> Result<ProtectedState, StoreFault> {
        self.read(S::protected_state)
    }

    fn act(&self, id: ActId) -> Result<Option<ActRow>, StoreFault> {
        self.read(|inner| inner.act(id))
    }

    fn acts(&self, query: &ActQuery) -> Result<Vec<ActRow>, StoreFault> {
        self.read(|inner| inner.acts(query))
    }

    fn counts(&self) -> Result<Counts, StoreFault> {
        self.read(S::counts)
    }

    fn open_acts(&self) -> Result<Vec<ActRow>, StoreFault> {
        self.read(S::open_acts)
    }

    fn said(&self, id: ActId) -> Result<Option<SaidRow>, StoreFault> {
        self.read(|inner| inner.said(id))
    }

    fn kept_answers(&self, until: Timestamp) -> Result<Vec<ActId>, StoreFault> {
        self.read(|inner| inner.kept_answers(until))
    }

    fn ticket(&self, id: TicketId) -> Result<Option<TicketRow>, StoreFault> {
        self.read(|inner| inner.ticket(id))
    }

    fn verdicts(&self, id: TicketId) -> Result<Vec<VerdictRow>, StoreFault> {
        self.read(|inner| inner.verdicts(id))
    }

    fn tickets(&self, query: &TicketQuery) -> Result<Vec<TicketRow>, StoreFault> {
        self.read(|inner| inner.tickets(query))
    }

    fn tickets_of(&self, subject: &Digest, limit: usize) -> Result<Vec<TicketRow>, StoreFault> {
        self.read(|inner| inner.tickets_of(subject, limit))
    }

    fn applied(&self) -> Result<Option<AppliedRow>, StoreFault> {
        self.read(S::applied)
    }

    fn revocations(&self) -> Result<Vec<Revocation>, StoreFault> {
        self.read(S::revocations)
    }

    fn account(&self, account: Account) -> Result<Option<Drawn>, StoreFault> {
        self.read(|inner| inner.account(account))
    }

    fn delegation(&self, id: DelegationId) -> Result<Option<DelegationRow>, StoreFault> {
        self.read(|inner| inner.delegation(id))
    }

    fn delegations(&self, limit: usize) -> Result<Vec<DelegationRow>, StoreFault> {
        self.read(|inner| inner.delegations(limit))
    }

    fn consents(
        &self,
        live_at: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<ConsentRow>, StoreFault> {
        self.read(|inner| inner.consents(live_at, limit))
    }

    fn record(&self, from: u64, limit: usize) -> Result<Vec<RecordRow>, StoreFault> {
        self.read(|inner| inner.record(from, limit))
    }

    fn newest_head(&self) -> Result<Option<HeadRow>, StoreFault> {
        self.read(S::newest_head)
    }

    fn heads(&self, from: u64, limit: usize) -> Result<Vec<HeadRow>, StoreFault> {
        self.read(|inner| inner.heads(from, limit))
    }

    fn watch_heads(&self) -> watch::Receiver<Option<HeadRow>> {
        self.inner.watch_heads()
    }

    fn load(&self) -> crate::Load {
        self.inner.load()
    }

    fn frontier(&self) -> Result<Frontier, StoreFault> {
        self.read(S::frontier)
    }

    fn tree_hashes(&self, level: u8, from: u64, count: u16) -> Result<Vec<Hash>, StoreFault> {
        self.read(|inner| inner.tree_hashes(level, from, count))
    }

    fn record_len(&self) -> Result<u64, StoreFault> {
        self.read(S::record_len)
    }
}
