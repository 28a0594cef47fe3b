//! The stop watch that goes with an act through the doors.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use lychgate_core::{Code, ConsequenceClass, State};

use super::{ActTrace, Answer, Door, Observer, Step};
use crate::approval::Waited;
use crate::doors::Passed;
use crate::hold::HeldAct;
use crate::outcome::Settled;
use crate::ped::{Denied, Verdict};
use crate::sink::Attempt;

/// Goes with one act from hold to permit, or to its end.
#[derive(Debug)]
pub(crate) struct Watch<'o> {
    observer: &'o Observer,
    class: ConsequenceClass,
    /// When the step under way began.
    since: Instant,
    trace: Option<Box<ActTrace>>,
}

/// Goes with one attempt while its outcome is committed.
#[derive(Debug)]
pub(crate) struct Settling {
    end: crate::sink::End,
    since: Instant,
    trace: Option<Box<ActTrace>>,
}

impl Observer {
    /// An act is held.
    pub(crate) fn watch(&self, held: &HeldAct) -> Watch<'_> {
        let keep = self.traces().are_kept();
        let mut watch = Watch {
            observer: self,
            class: held.act.consequence_class,
            since: held.began,
            trace: keep.then(|| Box::new(ActTrace::of(held))),
        };
        watch.mark(Step::Hold);
        watch
    }

    /// An attempt has ended and is to be settled.
    pub(crate) fn settling(&self, attempt: &Attempt) -> Settling {
        let now = now();
        let mut trace = self
            .traces()
            .are_kept()
            .then(|| self.traces().reopen(attempt.facts.act()))
            .flatten();
        // A late answer's act was told of already, and so was its time.
        if let Some(began) = attempt.permitted_at {
            self.took(Step::Effect, nanos(now.saturating_duration_since(began)));
            if let Some(trace) = &mut trace {
                trace.stretch(Step::Effect, began, now);
            }
        }
        Settling {
            end: attempt.end,
            since: now,
            trace,
        }
    }

    /// The outcome is committed, or could not be.
    pub(crate) fn settled(&self, settling: Settling, settled: &Settled) {
        let now = now();
        let Settling { end, since, trace } = settling;
        self.took(Step::Settle, nanos(now.saturating_duration_since(since)));
        self.ended(end, settled.recorded);
        if let Some(mut trace) = trace {
            trace.stretch(Step::Settle, since, now);
            trace.state = settled.state;
            if settled.state == State::Indeterminate {
                trace.code = Some(Code::TwinUnresolved);
            }
            self.traces().over(trace);
        }
    }
}

impl Watch<'_> {
    fn mark(&mut self, step: Step) {
        let now = now();
        let took = now.saturating_duration_since(self.since);
        self.observer.took(step, nanos(took));
        if let Some(trace) = &mut self.trace {
            trace.stretch(step, self.since, now);
        }
        self.since = now;
    }

    /// The PED has answered.
    pub(crate) fn decided(&mut self, verdict: &Verdict) {
        self.mark(Step::Decide);
        let answer = match verdict {
            Verdict::Allow(_) => Answer::Allow,
            Verdict::Escalate(_) => Answer::Escalate,
            Verdict::Recorded { .. } => Answer::Recorded,
            Verdict::Deny(denied) => {
                self.refused(Door::Ped, denied);
                Answer::Deny(denied.code)
            }
        };
        self.observer.decided(answer, self.class);
        if let Some(trace) = &mut self.trace {
            trace.answer = Some(answer);
            if let Verdict::Escalate(escalated) = verdict {
                trace.ticket = Some(escalated.ticket());
            }
        }
    }

    /// The wait for a person is over.
    pub(crate) fn waited(&mut self, waited: &Waited) {
        self.mark(Step::Wait);
        if let Waited::Over(denied) = waited {
            self.refused(Door::Wait, denied);
        }
    }

    /// The sink has answered.
    pub(crate) fn presented<T>(&mut self, answer: &ControlFlow<Passed, T>) {
        self.mark(Step::Present);
        if let ControlFlow::Break(Passed::Denied(denied)) = answer {
            self.refused(Door::Sink, denied);
        }
    }

    fn refused(&self, door: Door, denied: &Denied) {
        let door = if denied.state == State::Withdrawn {
            Door::Caller
        } else {
            door
        };
        self.observer.refused(door, denied.code);
    }

    /// The act goes on to its effect, or is over.
    pub(crate) fn end(self, passed: &Passed) {
        let Some(mut trace) = self.trace else { return };
        match passed {
            Passed::Dispatched { .. } => {
                trace.state = State::Dispatched;
                self.observer.traces().open(trace);
                return;
            }
            Passed::Recorded { .. } => trace.code = Some(Code::TwinUnresolved),
            Passed::Denied(denied) => {
                trace.code = Some(denied.code);
                trace.state = denied.state;
            }
        }
        self.observer.traces().over(trace);
    }
}

pub(super) fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

#[allow(
    clippy::disallowed_methods,
    reason = "measures how long the steps of an act take, decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}
