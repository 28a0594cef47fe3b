//! One act, from the proposal to the delivered answer.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Limits, Value};
use lychgate_core::{Code, State};
use lychgate_gate::sink::Effect;
use lychgate_gate::{
    Caller, CallerGone, Connected, Denied, Dispatched, End, FinalitySink, HeldAct, Late, Passed,
    Settled,
};
use lychgate_intake::answer::{
    denial_answer, indeterminate_answer, indeterminate_decision, mark_result, response_bytes,
};
use lychgate_intake::{ActingMethod, Era, Proposal, RequestId};
use tokio::sync::oneshot;

use super::ToLink;
use super::effect::{McpCall, Meaning, Outcome};
use super::handshake::Stage;
use super::live::{Named, as_pinned, meaning_of};
use super::refusals::{Refused, denial_of};
use super::shared::Shared;
use super::upstream::Answer;
use super::waiting::Telling;
use lychgate_gate::log;

/// One request that acts.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: RequestId,
    pub(crate) era: Era,
    pub(crate) caller: Caller,
    /// The client shows URLs to a person.
    pub(crate) shows_urls: bool,
}

impl Call {
    /// The whole way of one act. It runs to its end whatever becomes of the client: what is dispatched is settled.
    pub(crate) async fn run(self, mut proposal: Proposal) {
        let shared = &self.shared;
        let telling = Telling::of(&mut proposal, self.era, self.shows_urls);
        let method = proposal.method.clone();
        if let Err((code, why)) = self.ready(&proposal).await {
            return self.refuse(&method, code, why).await;
        }
        let connected = Named::of(&proposal).connected(shared);
        let held = match shared.gate.hold(&shared.session, proposal, connected) {
            Ok(held) => held,
            Err(code) => return self.refuse(&method, code, "it could not be held").await,
        };
        let act = held.act().candidate_act_id;
        shared.held(&self.id, act);
        let sink = FinalitySink::mcp(shared.session.server());
        let look = self.look(&held);
        let (tell, told) = Self::told(&telling);
        let waiting = |ticket: TicketId| {
            tell.send_replace(Some(ticket));
            log::info(
                "an act waits for a person",
                &[("ticket", ticket.into()), ("act", act.into())],
            );
        };
        let (away, caller) = CallerGone::new();
        let passed = tokio::select! {
            // First, so that a caller that has gone is known to have gone.
            biased;
            never = self.mind(&telling, tell.subscribe(), &away) => match never {},
            passed = shared.gate.pass(held, &sink, &caller, &look, &waiting) => passed,
        };
        let denied = match &passed {
            Passed::Denied(denied) => Some(denied),
            _ => None,
        };
        if let Some(line) = self.over(&told, denied) {
            return self.send(line, None).await;
        }
        match passed {
            Passed::Denied(denied) => self.deny(&method, denied).await,
            Passed::Recorded { act, answer } => {
                let line = response_bytes(&self.id, Ok(&answer));
                self.send(line, Some(act)).await;
            }
            Passed::Dispatched { held, dispatched } => self.perform(*held, dispatched).await,
        }
    }

    /// Before anything is decided: the handshake is done, the server is there, its definitions are known.
    async fn ready(&self, proposal: &Proposal) -> Result<(), (Code, &'static str)> {
        let shared = &self.shared;
        let (upstream, handshake) = (&shared.upstream, &shared.handshake);
        if upstream.is_over() {
            return Err((Code::FailClosed, "the server has ended"));
        }
        match self.era {
            Era::Legacy if handshake.stage() != Stage::Legacy => {
                return Err((Code::MalformedAct, "a call before the handshake"));
            }
            Era::Modern if !shared.ensure_modern(proposal).await => {
                let why = "a call of an era the server does not speak";
                return Err((Code::MalformedAct, why));
            }
            Era::Legacy | Era::Modern => {}
        }
        let names = match proposal.method {
            // Nobody has changed anything as far as anybody knows: that is no substitution.
            ActingMethod::ToolsCall if !shared.listing.ensure(upstream, handshake).await => {
                return Err((Code::FailClosed, "the server's listing cannot be read"));
            }
            ActingMethod::ResourcesRead => "resources",
            ActingMethod::PromptsGet => "prompts",
            _ => return Ok(()),
        };
        shared
            .listing
            .ensure_names(names, upstream, handshake)
            .await;
        Ok(())
    }

    /// What is really connected, to be asked again at the sink.
    fn look(&self, held: &HeldAct) -> impl Fn() -> Connected + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        let named = Named::of(held.proposal());
        move || named.connected(&shared)
    }

    async fn perform(&self, held: HeldAct, dispatched: Dispatched) {
        let shared = &self.shared;
        let (meaning, timeout) = meaning_of(shared, &held);
        if let Err(code) = self.still(&held).await {
            // Consumed, but not a byte has left.
            let not_sent = dispatched.permit.give_up();
            shared.gate.settle(not_sent.into(), None).await;
            return self.not_sent(&held, code).await;
        }
        let sent = |upstream_id| shared.dispatched(&self.id, upstream_id);
        let effect = McpCall {
            upstream: Arc::clone(&shared.upstream),
            proposal: held.proposal(),
            timeout,
            meaning,
            sent: &sent,
        };
        let (attempt, outcome) = effect.perform(dispatched.permit).await;
        let raw = match &outcome {
            Outcome::Answered(Ok(result)) => Some(result.as_slice()),
            _ => None,
        };
        let settled = shared.gate.settle(attempt, raw).await;
        if settled.state == State::Indeterminate && !outcome.is_error() {
            shared.still_at_work(settled.act);
        }
        if let (State::InputRequired, Some(result)) = (settled.state, raw) {
            let state = request_state(result);
            shared.gate.expect_round(&held, state.as_deref());
        }
        self.tell(&held, settled, outcome, meaning).await;
    }

    /// At the last moment: what the caller took back is not begun, and neither is what the server says it has changed.
    /// The permit's own deadline bounds the look.
    async fn still(&self, held: &HeldAct) -> Result<(), Code> {
        let shared = &self.shared;
        if self.caller.is_gone() {
            return Err(Code::FailClosed);
        }
        // Consumed before the revocation, and not a byte has left: then none does.
        if let Some((code, _)) = shared.gate.stopped(held) {
            return Err(code);
        }
        let listed = held.proposal().method == ActingMethod::ToolsCall;
        if !listed || shared.listing.is_fresh() {
            return Ok(());
        }
        let reading = shared.listing.ensure(&shared.upstream, &shared.handshake);
        match tokio::time::timeout(LOOK, reading).await {
            Ok(true) if as_pinned(shared, held) => Ok(()),
            Ok(true) => Err(Code::ToolSubstitution),
            Ok(false) | Err(_) => Err(Code::FailClosed),
        }
    }

    async fn not_sent(&self, held: &HeldAct, code: Code) {
        let denied = Denied {
            code,
            pointer: None,
            act: Some(held.act().candidate_act_id),
            ticket: None,
            state: State::Failed,
        };
        self.deny(&held.proposal().method, denied).await;
    }

    /// Tells the client what became of its act.
    async fn tell(&self, held: &HeldAct, settled: Settled, outcome: Outcome, meaning: Meaning) {
        let method = &held.proposal().method;
        let act = settled.act;
        let known = settled.recorded && settled.state != State::Indeterminate;
        match outcome {
            Outcome::NotSent if settled.state == State::Failed => {
                self.not_sent(held, Code::FailClosed).await;
            }
            Outcome::Answered(answer) if known => {
                let effected = settled.state == State::Effected;
                let delivery = (effected && held.awaits_delivery()).then_some(act);
                let raw = answer.as_ref().map(Vec::as_slice).map_err(Vec::as_slice);
                self.send(response_bytes(&self.id, raw), delivery).await;
            }
            Outcome::Answered(answer) => self.answer_marked(method, act, &answer).await,
            Outcome::Late(receiver) => {
                self.shared.cancel_upstream(&self.id).await;
                self.unknown(method, act).await;
                if let Some(late) = settled.late {
                    self.await_late(late, receiver, meaning).await;
                }
            }
            Outcome::Lost | Outcome::NotSent => self.unknown(method, act).await,
        }
    }

    async fn unknown(&self, method: &ActingMethod, act: ActId) {
        let line = indeterminate_answer(&self.id, method, &act, self.era);
        self.send(line, None).await;
    }

    //= PROFILE §5: a late answer settles the act
    async fn await_late(&self, late: Late, receiver: oneshot::Receiver<Answer>, meaning: Meaning) {
        self.shared.finished(&self.id);
        // The client's absence is no reason to give an answer up at once, but nothing is kept running for it for long.
        let patience = async {
            tokio::select! {
                () = tokio::time::sleep(LATE) => {}
                () = self.shared.to.closed() => tokio::time::sleep(LATE_FOR_NOBODY).await,
            }
        };
        let answer = tokio::select! {
            answer = receiver => answer,
            () = patience => return,
        };
        let Ok(answer) = answer else { return };
        let (answer, end) = meaning.read(answer);
        if !matches!(end, End::Unknown(_)) {
            let raw = answer.as_ref().ok().map(Vec::as_slice);
            self.shared.gate.settle(late.answered(end), raw).await;
        }
    }

    /// The server's own text, with the marker that the outcome is unknown or unrecorded.
    async fn answer_marked(&self, method: &ActingMethod, act: ActId, answer: &Answer) {
        let marked = answer
            .as_ref()
            .ok()
            .and_then(|raw| mark_result(raw, &indeterminate_decision(&act)));
        let line = match marked {
            Some(marked) => response_bytes(&self.id, Ok(&marked)),
            None => indeterminate_answer(&self.id, method, &act, self.era),
        };
        self.send(line, None).await;
    }

    async fn refuse(&self, method: &ActingMethod, code: Code, why: &'static str) {
        let refused = Refused {
            id: &self.id,
            method: Some(method),
            era: self.era,
        };
        let line = self.shared.refusals.request(&refused, code, why).await;
        self.send(line, None).await;
    }

    async fn deny(&self, method: &ActingMethod, denied: Denied) {
        let denial = denial_of(denied);
        self.send(denial_answer(&self.id, method, &denial, self.era), None)
            .await;
    }

    /// To the client, unless it has given this request up.
    async fn send(&self, line: Vec<u8>, delivery: Option<ActId>) {
        // Asked first: what is finished has no other end any more, which would look like a caller that has gone.
        let gone = self.caller.is_gone();
        self.shared.finished(&self.id);
        if !gone {
            self.shared.send(ToLink { line, delivery }).await;
        }
    }
}

fn request_state(raw: &[u8]) -> Option<String> {
    let result = json::parse(raw, &Limits::CANON).ok()?;
    result
        .get("requestState")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// How long a late answer is waited for while the server lives.
const LATE: Duration = Duration::from_secs(600);
/// And once its client is gone: until then the child and the connection's place are kept.
const LATE_FOR_NOBODY: Duration = Duration::from_secs(20);
/// How long a listing may take between a permit and its first byte; less than the permit lives.
const LOOK: Duration = Duration::from_millis(700);
