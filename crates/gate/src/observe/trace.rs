//! What is told of one act, once it is over. Off until somebody asks; bounded; never waited for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::{ConsequenceClass, State, Timestamp};
use lychgate_intake::ActingMethod;

use super::{Answer, Step};
use crate::hold::{Found, HeldAct};

/// A step's place in its act's time, in nanoseconds from the act's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// When it began.
    pub from: u64,
    /// When it ended.
    pub to: u64,
}

/// One act that is over.
///
/// An allowlist by construction (PROFILE §10): ids, names of the applied configuration, closed words, times. No digest of
/// arguments either: what has few values could be guessed from it; the act's receipt has a salted commitment.
#[derive(Clone, Debug)]
pub struct ActTrace {
    /// The act.
    pub act: ActId,
    /// The server, as the applied configuration names it.
    pub server: String,
    /// The function, as the catalogue names it; `None` when the model's name resolved to nothing.
    pub function: Option<String>,
    /// The configured agent.
    pub agent: String,
    /// The method, such as `tools/call`.
    pub method: &'static str,
    /// The consequence class.
    pub class: ConsequenceClass,
    /// The PED's last answer.
    pub answer: Option<Answer>,
    /// The code the caller was given.
    pub code: Option<lychgate_core::Code>,
    /// The ticket it waited on.
    pub ticket: Option<TicketId>,
    /// Where the act stands.
    pub state: State,
    /// The wall clock when it was made.
    pub started_at: Timestamp,
    /// By [`Step`]. A step taken again, after a person's approval, is told with its last beginning and end.
    pub steps: [Option<Stretch>; Step::ALL.len()],
    pub(super) began: Instant,
}

impl ActTrace {
    pub(super) fn of(held: &HeldAct) -> Self {
        let resolved = held.found != Found::Unknown;
        Self {
            act: held.act.candidate_act_id,
            server: held.session.server().to_owned(),
            function: resolved.then(|| held.act.tool.function_id.clone()),
            agent: held.act.agent.agent_id.clone(),
            method: method_name(&held.proposal.method),
            class: held.act.consequence_class,
            answer: None,
            code: None,
            ticket: None,
            state: State::Refused,
            started_at: held.act.created_at,
            steps: [None; Step::ALL.len()],
            began: held.began,
        }
    }

    pub(super) fn stretch(&mut self, step: Step, from: Instant, to: Instant) {
        let nanos = |at: Instant| super::watch::nanos(at.saturating_duration_since(self.began));
        let stretch = Stretch {
            from: nanos(from),
            to: nanos(to),
        };
        if let Some(slot) = self.steps.get_mut(step as usize) {
            *slot = Some(stretch);
        }
    }

    /// A step's place.
    #[must_use]
    pub fn step(&self, step: Step) -> Option<Stretch> {
        self.steps.get(step as usize).copied().flatten()
    }
}

/// The traces that nobody has taken yet.
#[derive(Debug, Default)]
pub struct Traces {
    on: AtomicBool,
    lost: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Dispatched, not settled.
    open: HashMap<ActId, Box<ActTrace>>,
    over: Vec<ActTrace>,
}

impl Traces {
    /// Begins or stops keeping traces. Stopping forgets those that are kept.
    pub fn keep(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
        if !on {
            *self.kept() = Kept::default();
        }
    }

    /// Takes what is over.
    pub fn take(&self) -> Vec<ActTrace> {
        std::mem::take(&mut self.kept().over)
    }

    /// How many were not kept because nobody took them in time.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn are_kept(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(super) fn open(&self, trace: Box<ActTrace>) {
        let mut kept = self.kept();
        if kept.open.len() < MOST_OPEN {
            kept.open.insert(trace.act, trace);
        } else {
            self.lose(1);
        }
    }

    pub(super) fn reopen(&self, act: ActId) -> Option<Box<ActTrace>> {
        self.kept().open.remove(&act)
    }

    pub(super) fn over(&self, trace: Box<ActTrace>) {
        let mut kept = self.kept();
        if kept.over.len() < MOST_OVER {
            kept.over.push(*trace);
        } else {
            self.lose(1);
        }
    }

    /// So many that were taken are dropped.
    pub fn lose(&self, many: usize) {
        let many = u64::try_from(many).unwrap_or(u64::MAX);
        self.lost.fetch_add(many, Ordering::Relaxed);
    }

    /// Every change is one of a map or a list, so a poisoned lock is still good.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A method's name, where it is one of the specification's own.
const fn method_name(method: &ActingMethod) -> &'static str {
    match method {
        ActingMethod::ToolsCall => "tools/call",
        ActingMethod::ResourcesRead => "resources/read",
        ActingMethod::PromptsGet => "prompts/get",
        ActingMethod::TasksUpdate => "tasks/update",
        ActingMethod::TasksCancel => "tasks/cancel",
        ActingMethod::Listed(_) => "listed",
    }
}

/// Acts under way whose trace is kept.
const MOST_OPEN: usize = 4_096;
/// Acts that are over and wait to be taken.
const MOST_OVER: usize = 8_192;
