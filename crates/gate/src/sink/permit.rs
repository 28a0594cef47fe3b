//! The permit: the one thing an effect needs and only the sink's commit makes (PROFILE §4.3).

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::{ActId, EffectId};
use tokio::time::Instant;

use crate::delivery::Flight;
use crate::receipts::Facts;

/// Leave to perform one effect, once, soon.
///
/// It is taken by value, is neither `Clone` nor constructible outside the sink, and is spent at the effect's first
/// byte by [`Permit::begin`]. After its deadline it turns into [`NotSent`], and the effect is never begun later.
#[derive(Debug)]
#[must_use = "an unspent permit must be settled as not sent"]
pub struct Permit {
    act: ActId,
    effect: EffectId,
    facts: Arc<Facts>,
    deadline: Instant,
    /// For measuring alone.
    made_at: std::time::Instant,
    /// Until it is spent or given up, something decided on is on its way.
    flight: Option<Flight>,
}

impl Permit {
    /// Only the sink calls this, after its commit is durable.
    pub(super) fn after_commit(effect: EffectId, facts: Arc<Facts>, lifetime: Duration) -> Self {
        Self {
            act: facts.act(),
            effect,
            facts,
            deadline: Instant::now() + lifetime,
            made_at: Instant::now().into_std(),
            flight: None,
        }
    }

    /// The act's flight ends with the permit.
    pub(crate) fn carry(&mut self, flight: Flight) {
        self.flight = Some(flight);
    }

    /// The act this permit is for.
    pub fn act(&self) -> ActId {
        self.act
    }

    /// The one attempt this permit is for.
    pub fn effect(&self) -> EffectId {
        self.effect
    }

    /// The key to hand to a destination that recognises repetitions.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.facts.idempotency_key.as_deref()
    }

    /// Until when the first byte may leave.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Spends the permit, immediately before the first byte.
    ///
    /// # Errors
    /// [`NotSent`] when the deadline has passed: certainly no effect.
    pub fn begin(self) -> Result<Begun, NotSent> {
        if Instant::now() < self.deadline {
            Ok(Begun {
                facts: self.facts,
                permitted_at: self.made_at,
            })
        } else {
            Err(self.give_up())
        }
    }

    /// Gives the permit up unspent: certainly no effect.
    pub fn give_up(self) -> NotSent {
        NotSent {
            facts: self.facts,
            permitted_at: self.made_at,
        }
    }
}

/// Something that takes effect outside the gate. Its one way to act takes a [`Permit`] by value.
pub trait Effect {
    /// What the destination said, for the caller.
    type Answer;

    /// Acts once, spending the permit at the first byte, and tells how it ended.
    fn perform(self, permit: Permit) -> impl Future<Output = (Attempt, Self::Answer)> + Send;
}

/// A spent permit: the first byte may have left, so from here on a missing answer is `indeterminate`.
#[derive(Debug)]
#[must_use = "what has begun must be settled"]
pub struct Begun {
    facts: Arc<Facts>,
    permitted_at: std::time::Instant,
}

impl Begun {
    /// The act.
    pub fn act(&self) -> ActId {
        self.facts.act()
    }

    /// Ends the attempt with what is known of it.
    pub fn end(self, end: End) -> Attempt {
        Attempt {
            facts: self.facts,
            end,
            permitted_at: Some(self.permitted_at),
        }
    }
}

/// A permit whose effect was never begun.
#[derive(Debug)]
#[must_use = "what was not sent must be settled"]
pub struct NotSent {
    facts: Arc<Facts>,
    permitted_at: std::time::Instant,
}

impl From<NotSent> for Attempt {
    fn from(not_sent: NotSent) -> Self {
        Self {
            facts: not_sent.facts,
            end: End::NotSent,
            permitted_at: Some(not_sent.permitted_at),
        }
    }
}

/// One attempt at an effect and how it ended; [`crate::Gate::settle`] takes it by value.
#[derive(Debug)]
#[must_use = "an attempt must be settled"]
pub struct Attempt {
    pub(crate) facts: Arc<Facts>,
    pub(crate) end: End,
    /// When its permit was made; `None` for an answer that came late.
    pub(crate) permitted_at: Option<std::time::Instant>,
}

/// How an attempt ended. The distinction between "certainly not performed" and "unknown" is the whole point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The destination answered that it did it.
    Effected,
    /// The destination answered with an error that, by the catalogue, means no effect.
    NoEffect,
    /// The first byte never left.
    NotSent,
    /// The destination wants more input before it acts.
    InputRequired,
    /// No answer, a broken one, or an error that says nothing of the effect.
    Unknown(Unknown),
}

impl End {
    /// Every way to end.
    pub const ALL: [Self; 10] = [
        Self::Effected,
        Self::NoEffect,
        Self::NotSent,
        Self::InputRequired,
        Self::Unknown(Unknown::AnswerLost),
        Self::Unknown(Unknown::TimedOut),
        Self::Unknown(Unknown::Unreadable),
        Self::Unknown(Unknown::ErrorUnexplained),
        Self::Unknown(Unknown::GateEnded),
        Self::Unknown(Unknown::TaskRunning),
    ];

    /// A word for it, for metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Effected => "answered",
            Self::NoEffect => "error_means_no_effect",
            Self::NotSent => "not_sent",
            Self::InputRequired => "input_required",
            Self::Unknown(Unknown::AnswerLost) => "answer_lost",
            Self::Unknown(Unknown::TimedOut) => "timed_out",
            Self::Unknown(Unknown::Unreadable) => "unreadable",
            Self::Unknown(Unknown::ErrorUnexplained) => "error_unexplained",
            Self::Unknown(Unknown::GateEnded) => "gate_ended",
            Self::Unknown(Unknown::TaskRunning) => "task_running",
        }
    }
}

/// Why an outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The stream ended before the answer.
    AnswerLost,
    /// The answer did not come in time.
    TimedOut,
    /// The answer could not be read.
    Unreadable,
    /// The destination reported an error whose meaning the catalogue does not know.
    ErrorUnexplained,
    /// The gate ended between consume and outcome.
    GateEnded,
    /// The destination took the act on as a task and has not finished it.
    TaskRunning,
}

impl Unknown {
    /// The receipt's phrase.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::AnswerLost => "answer lost",
            Self::TimedOut => "no answer in time",
            Self::Unreadable => "unreadable answer",
            Self::ErrorUnexplained => "error without a declared meaning",
            Self::GateEnded => "gate ended before the answer",
            Self::TaskRunning => "task accepted, not finished",
        }
    }
}
