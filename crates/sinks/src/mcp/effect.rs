//! The effect: one line to the server, spending the permit, and what is made of the answer (PROFILE §5).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use lychgate_core::ConsequenceClass;
use lychgate_core::json::Value;
use lychgate_gate::sink::Effect;
use lychgate_gate::{Attempt, End, Permit, Unknown};
use lychgate_intake::answer::without_decision;
use lychgate_intake::server::{ResultKind, result_facts};
use lychgate_intake::{Proposal, request_bytes};
use lychgate_policy::ErrorMeaning;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::upstream::{Answer, Upstream};

/// A call about to be made, with everything it takes.
pub(crate) struct McpCall<'a> {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) proposal: &'a Proposal,
    pub(crate) timeout: Duration,
    pub(crate) meaning: Meaning,
    /// Hears under which id the call went out, so that a cancellation can name it.
    pub(crate) sent: &'a (dyn Fn(u64) + Send + Sync),
}

/// What the catalogue says of this function's errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) class: ConsequenceClass,
    pub(crate) errors: ErrorMeaning,
}

/// What came of a call, for the caller.
pub(crate) enum Outcome {
    /// The server's answer.
    Answered(Answer),
    /// None in time; it may still come.
    Late(oneshot::Receiver<Answer>),
    /// None, and none will come.
    Lost,
    /// The call never left.
    NotSent,
}

impl Outcome {
    /// Whether the server has answered with an error: whatever it did, it is over.
    pub(crate) fn is_error(&self) -> bool {
        match self {
            Self::Answered(Err(_)) => true,
            Self::Answered(Ok(raw)) => result_facts(raw).is_ok_and(|facts| facts.is_error),
            Self::Late(_) | Self::Lost | Self::NotSent => false,
        }
    }
}

impl Effect for McpCall<'_> {
    type Answer = Outcome;

    async fn perform(self, permit: Permit) -> (Attempt, Outcome) {
        let (id, mut receiver) = self.upstream.expect();
        let key = permit
            .idempotency_key()
            .map(|key| (IDEMPOTENCY_KEY, Value::from(key)));
        let line = request_bytes(id, self.proposal, key);
        let until = Instant::now() + self.timeout;
        let begun = match self.upstream.act(line, permit, until).await {
            Ok(begun) => begun,
            Err(not_sent) => return (not_sent.into(), Outcome::NotSent),
        };
        (self.sent)(id);
        match timeout_at(until, &mut receiver).await {
            Ok(Ok(answer)) => {
                let (answer, end) = self.meaning.read(answer);
                (begun.end(end), Outcome::Answered(answer))
            }
            Ok(Err(_)) => (begun.end(End::Unknown(Unknown::AnswerLost)), Outcome::Lost),
            Err(_) => (
                begun.end(End::Unknown(Unknown::TimedOut)),
                Outcome::Late(receiver),
            ),
        }
    }
}

impl Meaning {
    /// An answer without anything that speaks as the gate, and how the attempt ended by it. What is kept for an equal
    /// call is what comes out here.
    pub(crate) fn read(self, answer: Answer) -> (Answer, End) {
        let end = self.end_of(&answer);
        let Ok(raw) = answer else {
            return (answer, end);
        };
        let clean = match without_decision(&raw) {
            Some(Cow::Borrowed(_)) => None,
            Some(Cow::Owned(clean)) => Some(clean),
            None => return (Ok(raw), End::Unknown(Unknown::Unreadable)),
        };
        (Ok(clean.unwrap_or(raw)), end)
    }

    //= PROFILE §5: a tool's own error is `failed` only where the catalogue says so or the class is INFORMATIONAL
    /// How an attempt ended, by the answer.
    fn end_of(self, answer: &Answer) -> End {
        let by_error = match (self.class, self.errors) {
            (ConsequenceClass::Informational, _) | (_, ErrorMeaning::NoEffect) => End::NoEffect,
            (_, ErrorMeaning::Unknown) => End::Unknown(Unknown::ErrorUnexplained),
        };
        let Ok(result) = answer else { return by_error };
        match result_facts(result) {
            Ok(facts) if facts.is_error => by_error,
            Ok(facts) => match facts.kind {
                ResultKind::Complete => End::Effected,
                ResultKind::InputRequired => End::InputRequired,
                ResultKind::Task => End::Unknown(Unknown::TaskRunning),
                ResultKind::Other => End::Unknown(Unknown::Unreadable),
            },
            Err(_) => End::Unknown(Unknown::Unreadable),
        }
    }
}

/// The `_meta` key under which a destination that recognises repetitions finds the act's chain.
pub(crate) const IDEMPOTENCY_KEY: &str = "dev.lychgate/idempotency-key";
