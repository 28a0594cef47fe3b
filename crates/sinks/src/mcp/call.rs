//! One act, from the proposal to the delivered answer.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Limits, Value};
use lychgate_core::{Code, State};
use lychgate_gate::sink::Effect;
use lychgate_gate::{Caller, Connected, Denied, Dispatched, FinalitySink, HeldAct, Passed};
use lychgate_intake::answer::{
    denial_answer, indeterminate_answer, indeterminate_decision, mark_result, response_bytes,
    without_decision,
};
use lychgate_intake::{ActingMethod, Denial, Era, Proposal, RequestId};

use super::ToLink;
use super::effect::{McpCall, Meaning, Outcome};
use super::handshake::Stage;
use super::shared::Shared;
use super::upstream::Answer;

/// One request that acts.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: RequestId,
    pub(crate) era: Era,
    pub(crate) caller: Caller,
}

impl Call {
    /// The whole way of one act. It runs to its end whatever becomes of the client: what is dispatched is settled.
    pub(crate) async fn run(self, proposal: Proposal) {
        let method = proposal.method.clone();
        if let Err((code, why)) = self.ready(&proposal).await {
            let denied = self
                .shared
                .gate
                .deny_request(&self.shared.session, code, why)
                .await;
            return self.deny(&method, denied).await;
        }
        let connected = self.connected(&proposal);
        let held = match self
            .shared
            .gate
            .hold(&self.shared.session, proposal, connected)
        {
            Ok(held) => held,
            Err(code) => {
                let denied = self
                    .shared
                    .gate
                    .deny_request(&self.shared.session, code, "it could not be held")
                    .await;
                return self.deny(&method, denied).await;
            }
        };
        let act = held.act().candidate_act_id;
        self.shared.held(&self.id, act);
        let sink = FinalitySink::mcp(self.shared.session.server());
        let look = self.look(&held);
        let waiting = |ticket: TicketId| tracing::info!(%ticket, %act, "an act waits for a person");
        match self
            .shared
            .gate
            .pass(held, &sink, &self.caller, &look, &waiting)
            .await
        {
            Passed::Denied(denied) => self.deny(&method, denied).await,
            Passed::Recorded { act, answer } => {
                self.send(response_bytes(&self.id, Ok(&answer)), Some(act))
                    .await;
            }
            Passed::Dispatched { held, dispatched } => self.perform(*held, dispatched).await,
        }
    }

    /// Before anything is decided: the handshake is done, the server is there, its definitions are known.
    async fn ready(&self, proposal: &Proposal) -> Result<(), (Code, &'static str)> {
        let shared = &self.shared;
        if shared.upstream.is_over() {
            return Err((Code::FailClosed, "the server has ended"));
        }
        match self.era {
            Era::Legacy if shared.handshake.stage() != Stage::Legacy => {
                return Err((Code::MalformedAct, "a call before the handshake"));
            }
            Era::Modern if !shared.ensure_modern(proposal).await => {
                return Err((
                    Code::MalformedAct,
                    "a call of an era the server does not speak",
                ));
            }
            Era::Legacy | Era::Modern => {}
        }
        shared
            .listing
            .ensure(&shared.upstream, &shared.handshake)
            .await;
        match proposal.method {
            ActingMethod::ResourcesRead => {
                shared
                    .listing
                    .ensure_names("resources", &shared.upstream, &shared.handshake)
                    .await;
            }
            ActingMethod::PromptsGet => {
                shared
                    .listing
                    .ensure_names("prompts", &shared.upstream, &shared.handshake)
                    .await;
            }
            _ => {}
        }
        Ok(())
    }

    /// What is really connected behind this proposal now.
    fn connected(&self, proposal: &Proposal) -> Connected {
        let name = |key| {
            proposal
                .arguments
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        connected(
            &self.shared,
            &proposal.method,
            &proposal.function,
            (name("uri"), name("name")),
        )
    }

    /// The same, to be asked again at the sink.
    fn look(&self, held: &HeldAct) -> impl Fn() -> Connected + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        let method = held.proposal().method.clone();
        let function = held.proposal().function.clone();
        let name = |key| {
            held.proposal()
                .arguments
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let names = (name("uri"), name("name"));
        move || connected(&shared, &method, &function, names.clone())
    }

    async fn perform(&self, held: HeldAct, dispatched: Dispatched) {
        let shared = &self.shared;
        let act = held.act().candidate_act_id;
        let (meaning, timeout) = meaning_of(shared, &held);
        let sent = |upstream_id| shared.dispatched(&self.id, upstream_id);
        let effect = McpCall {
            upstream: Arc::clone(&shared.upstream),
            proposal: held.proposal(),
            timeout,
            meaning,
            sent: &sent,
        };
        if self.caller.is_gone() {
            // Consumed, but not a byte has left: what its caller took back is not begun.
            shared
                .gate
                .settle(dispatched.permit.give_up().into(), None)
                .await;
            return shared.finished(&self.id);
        }
        let (attempt, outcome) = effect.perform(dispatched.permit).await;
        let raw = match &outcome {
            Outcome::Answered(Ok(result)) => Some(result.as_slice()),
            _ => None,
        };
        let settled = shared.gate.settle(attempt, raw).await;
        if let (State::InputRequired, Outcome::Answered(Ok(result))) = (settled.state, &outcome) {
            shared
                .gate
                .expect_round(&held, request_state(result).as_deref());
        }
        let method = held.proposal().method.clone();
        match (settled.state, outcome) {
            (State::Failed, Outcome::NotSent) => {
                let denied = Denied {
                    code: Code::FailClosed,
                    pointer: None,
                    act: Some(act),
                    ticket: None,
                    state: State::Failed,
                };
                self.deny(&method, denied).await;
            }
            (State::Effected, Outcome::Answered(answer)) if settled.recorded => {
                let delivery = held.awaits_delivery().then_some(act);
                self.answer(&method, act, &answer, delivery).await;
            }
            (State::Failed | State::InputRequired, Outcome::Answered(answer))
                if settled.recorded =>
            {
                self.answer(&method, act, &answer, None).await;
            }
            (_, Outcome::Answered(answer)) => self.answer_marked(&method, act, &answer).await,
            (_, Outcome::Late(receiver)) => {
                shared.cancel_upstream(&self.id).await;
                self.send(
                    indeterminate_answer(&self.id, &method, &act, self.era),
                    None,
                )
                .await;
                if let Some(late) = settled.late {
                    self.await_late(late, receiver, meaning).await;
                }
            }
            (_, Outcome::Lost | Outcome::NotSent) => {
                self.send(
                    indeterminate_answer(&self.id, &method, &act, self.era),
                    None,
                )
                .await;
            }
        }
    }

    //= PROFILE §5: a late answer settles the act
    async fn await_late(
        &self,
        late: lychgate_gate::Late,
        receiver: tokio::sync::oneshot::Receiver<Answer>,
        meaning: Meaning,
    ) {
        self.shared.finished(&self.id);
        let Ok(Ok(answer)) = tokio::time::timeout(LATE, receiver).await else {
            return;
        };
        let end = meaning.end_of(&answer);
        if !matches!(end, lychgate_gate::End::Unknown(_)) {
            let raw = answer.as_ref().ok().map(Vec::as_slice);
            self.shared.gate.settle(late.answered(end), raw).await;
        }
    }

    async fn answer(
        &self,
        method: &ActingMethod,
        act: ActId,
        answer: &Answer,
        delivery: Option<ActId>,
    ) {
        let line = match answer {
            Ok(raw) => match without_decision(raw) {
                Some(clean) => response_bytes(&self.id, Ok(&clean)),
                None => indeterminate_answer(&self.id, method, &act, self.era),
            },
            Err(raw) => response_bytes(&self.id, Err(raw)),
        };
        self.send(line, delivery).await;
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

    async fn deny(&self, method: &ActingMethod, denied: Denied) {
        let denial = Denial {
            code: denied.code,
            pointer: denied.pointer,
            act: denied.act,
            ticket: denied.ticket,
            state: Some(denied.state),
        };
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

fn connected(
    shared: &Shared,
    method: &ActingMethod,
    function: &str,
    names: (String, String),
) -> Connected {
    let current = shared.gate.current();
    let server = current.applied.server(shared.session.server());
    let entry_of_method = || {
        server
            .and_then(|server| server.method(method.name()))
            .map(|entry| entry.definition)
    };
    let (definition, listed) = match method {
        ActingMethod::ToolsCall => {
            let resolved = server.and_then(|server| match server.resolve(function) {
                lychgate_policy::Resolution::Exact(entry) => Some(entry.function.clone()),
                _ => None,
            });
            (
                shared
                    .listing
                    .definition(resolved.as_deref().unwrap_or(function)),
                false,
            )
        }
        ActingMethod::ResourcesRead => (
            entry_of_method(),
            shared.listing.lists("resources", &names.0),
        ),
        ActingMethod::PromptsGet => (entry_of_method(), shared.listing.lists("prompts", &names.1)),
        ActingMethod::TasksUpdate | ActingMethod::TasksCancel | ActingMethod::Listed(_) => {
            (entry_of_method(), false)
        }
    };
    Connected {
        endpoint: shared.endpoint.clone(),
        definition,
        listed,
    }
}

fn meaning_of(shared: &Shared, held: &HeldAct) -> (Meaning, Duration) {
    let current = shared.gate.current();
    let entry = current
        .applied
        .server(shared.session.server())
        .and_then(|server| {
            let function = held.proposal().function.as_str();
            match held.proposal().method {
                ActingMethod::ToolsCall => server.tool(function),
                _ => server.method(function),
            }
        });
    let class = held.act().consequence_class;
    // Without an entry there is no act; the safest meaning stands here all the same.
    entry.map_or(
        (
            Meaning {
                class,
                errors: lychgate_policy::ErrorMeaning::Unknown,
            },
            Duration::from_secs(60),
        ),
        |entry| {
            (
                Meaning {
                    class,
                    errors: entry.errors,
                },
                entry.timeout,
            )
        },
    )
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
