//! Envelopes (draft §13, PROFILE §9): one decision for acts of one kind, for a while, within limits.
//!
//! An envelope takes the place of policy's word alone. Every other predicate is evaluated for every act, each act has an
//! authority of its own, and the sink checks it as ever. Envelopes live in memory: a start of the gate closes all of them, and
//! so does every move of an epoch. An anomaly (a velocity spike, a shape of arguments never seen, many denials) closes it, and
//! a person is asked.
//!
//! - `kind`: what makes two acts of one kind, and which kinds there never are
//! - `enter`: going by an open one; `open`: opening one, with the receipt in the act's own transaction
//! - [`close`]: closing one, so that nothing decided under it is dispatched any more

pub mod close;
mod enter;
mod kind;
mod open;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lychgate_core::id::{ActId, EnvelopeId, TicketId};
use lychgate_core::{Digest, Epochs, Timestamp};
use lychgate_policy::EnvelopeLimits;
use lychgate_store::Drawn;

pub(crate) use self::enter::Hot;
pub(crate) use self::kind::{Kind, Shape, why_not};
pub(crate) use self::open::Opening;

/// What an approver grants beside a yes: one of the three grants of PROFILE §11. It is worth something only together with
/// the ticket's approval, and for the kind of the act that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeGrant {
    /// The ticket it goes with.
    pub ticket: TicketId,
    /// Within which limits.
    pub limits: EnvelopeLimits,
}

/// An open envelope.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) id: EnvelopeId,
    /// The act it was opened by.
    pub(crate) act: ActId,
    /// The approval behind it; `None` where the configuration is.
    pub(crate) approval: Option<Digest>,
    pub(crate) limits: EnvelopeLimits,
    pub(crate) until: Timestamp,
    pub(crate) epochs: Epochs,
    pub(crate) policy_digest: Digest,
    pub(crate) drawn: Drawn,
}

/// What is known of envelopes.
#[derive(Debug, Default)]
pub(crate) struct Envelopes {
    table: Mutex<Table>,
    /// So that an act costs nothing where there are none.
    open: AtomicUsize,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<Kind, Envelope>,
    /// The shapes of arguments that acts of a kind have had, whether or not it has an envelope now.
    shapes: HashMap<Kind, Vec<Shape>>,
    /// With tickets that are approved and not used yet.
    granted: HashMap<TicketId, EnvelopeLimits>,
    /// When each agent was denied lately.
    denials: HashMap<String, VecDeque<Timestamp>>,
}

impl Envelopes {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Every change is a map operation, so a poisoned lock is still good.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the table, and keeps the number of open ones true.
    fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table();
        let changed = change(&mut table);
        self.open.store(table.open.len(), Ordering::Release);
        changed
    }

    fn none_open(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// An epoch moved: what was decided under another holds no longer.
    pub(crate) fn clear(&self) {
        self.change(|table| {
            table.open.clear();
            table.granted.clear();
        });
    }
}

/// Envelopes open at a time; opening one more closes none, it is just not opened.
const MOST_OPEN: usize = 4096;
/// Kinds whose shapes are remembered.
const MOST_KINDS: usize = 4096;
/// Shapes of one kind.
const MOST_SHAPES: usize = 64;
