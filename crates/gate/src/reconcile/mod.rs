//! The automatic reconciler (PROFILE §5): acts whose answer was lost are looked up at their destination, with growing
//! waits, until it tells or the deadline has passed; then a person must say.
//!
//! A look-up is an act of its own: an INFORMATIONAL call of the gate's own agent, through both doors, to the same server
//! as the act in doubt. The act itself is never sent again.
//!
//! - `plan`: what a look-up needs from the act, sealed at dispatch
//! - `table`: when each act is asked about
//! - `step`: one look-up, and what is made of the answer

mod plan;
mod step;
mod table;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lychgate_core::id::ActId;
use lychgate_core::json::Value;
use lychgate_core::{State, Timestamp};
use tokio::task::JoinSet;

pub use self::step::Step;
use self::table::{Entry, Table};
use crate::gate::Gate;
use crate::log;

/// What is asked of a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The server in the catalogue.
    pub server: String,
    /// What must be connected (PROFILE §8).
    pub endpoint: String,
    /// The INFORMATIONAL function to call.
    pub function: String,
    /// With these arguments.
    pub arguments: Value,
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The destination answered.
    Answered {
        /// The look-up's own act.
        read_back: ActId,
        /// Its raw result.
        result: Vec<u8>,
    },
    /// It was asked and did not answer.
    Unanswered {
        /// The look-up's own act.
        read_back: ActId,
    },
    /// It was not asked, or not as it could have answered.
    Refused {
        /// The look-up's own act, when there was one.
        read_back: Option<ActId>,
        /// A phrase of our own for the receipt.
        why: &'static str,
    },
}

/// Who can ask destinations: the sinks.
pub trait Destination: Send + Sync + 'static {
    /// Asks once, through both doors, over a connection of its own. Ends soon when the gate closes.
    fn ask<'a>(
        &'a self,
        gate: &'a Arc<Gate>,
        question: Question,
    ) -> Pin<Box<dyn Future<Output = Asked> + Send + 'a>>;
}

/// How things stand with acts in doubt; for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Acts whose outcome is unknown.
    pub in_doubt: usize,
    /// Those among them that only a person can settle now: the deadline has passed.
    pub surfaced: usize,
    /// Since when the oldest is.
    pub oldest: Option<Timestamp>,
    /// Look-ups so far.
    pub looked_up: u64,
    /// Acts that a look-up found to have had their effect.
    pub found_effect: u64,
    /// Acts that a look-up released.
    pub found_no_effect: u64,
}

/// What the gate holds for its reconciler.
#[derive(Debug, Default)]
pub(crate) struct DoubtsHeld {
    told: Mutex<Doubts>,
    at_work: Mutex<HashMap<ActId, usize>>,
}

impl DoubtsHeld {
    pub(crate) fn may_still_act(&self, act: ActId) -> bool {
        lock(&self.at_work).contains_key(&act)
    }
}

/// A map or a copy is never half-changed, so a poisoned lock is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server that got an act's call still runs: while this is held, "no effect" is not believed of the act.
#[derive(Debug)]
#[must_use = "dropped, it says that nothing can come of the act any more"]
pub struct AtWork {
    gate: Arc<Gate>,
    act: ActId,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut at_work = lock(&self.gate.doubts_held().at_work);
        if let Some(count) = at_work.get_mut(&self.act) {
            *count -= 1;
            if *count == 0 {
                at_work.remove(&self.act);
            }
        }
    }
}

impl Gate {
    /// How things stand with acts in doubt, as of the reconciler's last look.
    pub fn doubts(&self) -> Doubts {
        *lock(&self.doubts_held().told)
    }

    /// The act's call is with a server that has not answered and still runs.
    pub fn at_work(self: &Arc<Self>, act: ActId) -> AtWork {
        *lock(&self.doubts_held().at_work).entry(act).or_default() += 1;
        AtWork {
            gate: Arc::clone(self),
            act,
        }
    }
}

/// The reconciler of one gate. Run it for as long as the gate decides.
pub struct Reconciler {
    gate: Arc<Gate>,
    destination: Arc<dyn Destination>,
    table: Table,
    tasks: JoinSet<(ActId, Step)>,
}

impl Reconciler {
    /// A reconciler that has looked at nothing yet.
    pub fn new(gate: Arc<Gate>, destination: Arc<dyn Destination>) -> Self {
        Self {
            gate,
            destination,
            table: Table::default(),
            tasks: JoinSet::new(),
        }
    }

    /// Reconciles until the gate closes.
    pub async fn run(mut self) {
        let gate = Arc::clone(&self.gate);
        self.take_up().await;
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = gate.closing() => break,
                _ = beat.tick() => self.beat().await,
                Some(done) = self.tasks.join_next() => self.done(done),
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    /// Look-ups that a predecessor left open are nobody's to ask about. The acts in doubt come back with the gate's own
    /// table of open acts.
    async fn take_up(&self) {
        let Ok(rows) = self.gate.store().open_acts() else {
            return;
        };
        for row in rows {
            // Others are left alone by it.
            if let Err(code) = self.gate.end_look_up(row.id).await {
                log::warn(
                    "an old look-up could not be ended",
                    &[("code", code.into()), ("act", row.id.into())],
                );
            }
        }
    }

    /// One look at everything in doubt: what is due is asked about, in tasks of its own; what is past its deadline is
    /// told of.
    pub async fn beat(&mut self) {
        let gate = Arc::clone(&self.gate);
        let now = gate.now();
        let rule = *gate.current().applied.reconcile();
        for act in self.table.compare(&gate.twins().in_doubt()) {
            let Ok(row) = gate.row(act) else { return };
            if row.state != State::Indeterminate {
                continue;
            }
            let askable = gate.plan_of_row(&row).is_some();
            let server = row.tool.clone().unwrap_or_default();
            let entry = Entry::new(row.updated_at, server, askable, now, &rule);
            self.table.insert(act, entry);
        }
        for act in self.table.take_due(now, &rule, MOST_AT_ONCE) {
            let (gate, destination) = (Arc::clone(&gate), Arc::clone(&self.destination));
            self.tasks
                .spawn(async move { (act, gate.look_up(destination.as_ref(), act).await) });
        }
        for act in self.table.over(now, &rule) {
            match gate.surface(act).await {
                Step::Over => self.table.remove(act),
                Step::Failed => {}
                Step::Unknown | Step::Effect | Step::NoEffect => self.table.surfaced(act),
            }
        }
        self.tell();
    }

    /// Waits for every look-up under way.
    pub async fn settled(&mut self) {
        while let Some(done) = self.tasks.join_next().await {
            self.done(done);
        }
    }

    fn done(&mut self, done: Result<(ActId, Step), tokio::task::JoinError>) {
        // A task that panicked has said nothing of its act, which stays busy: nothing more is asked about it before the
        // next start.
        let Ok((act, step)) = done else {
            log::error("a look-up broke off", &[]);
            return;
        };
        let rule = *self.gate.current().applied.reconcile();
        {
            let mut told = lock(&self.gate.doubts_held().told);
            told.looked_up += 1;
            match step {
                Step::Effect => told.found_effect += 1,
                Step::NoEffect => told.found_no_effect += 1,
                Step::Unknown | Step::Over | Step::Failed => {}
            }
        }
        match step {
            Step::Effect | Step::NoEffect | Step::Over => self.table.remove(act),
            Step::Unknown | Step::Failed => self.table.asked(act, self.gate.now(), &rule),
        }
        self.tell();
    }

    fn tell(&self) {
        let mut told = lock(&self.gate.doubts_held().told);
        told.in_doubt = self.table.entries().count();
        let surfaced = self.table.entries().filter(|entry| entry.surfaced);
        told.surfaced = surfaced.count();
        told.oldest = self.table.entries().map(|entry| entry.since).min();
    }
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reconciler")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

/// How often acts in doubt are looked for.
const BEAT: Duration = Duration::from_millis(250);
/// Look-ups at a time: each takes a child process.
const MOST_AT_ONCE: usize = 4;
