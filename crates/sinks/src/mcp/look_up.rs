//! Looking an act in doubt up (PROFILE §5): an INFORMATIONAL call of the gate's own agent, through both doors, over a
//! fresh child process of the server that got the act.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lychgate_core::ConsequenceClass;
use lychgate_core::json::{Object, Value};
use lychgate_gate::sink::Effect;
use lychgate_gate::{
    Asked, CallerGone, Connected, Destination, Dispatched, FinalitySink, Gate, HeldAct, Passed,
    Question,
};
use lychgate_intake::{ActingMethod, Limits, Proposal, propose};
use lychgate_policy::{ErrorMeaning, Server};
use tokio::sync::mpsc;

use super::connection;
use super::effect::{McpCall, Meaning, Outcome};
use super::handshake::{Handshake, roots_value};
use super::inspect::{answer_server, greet};
use super::launch::{self, Running};
use super::listing::Listing;
use super::upstream::Upstream;

/// Asks MCP servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct LookUps;

impl Destination for LookUps {
    fn ask<'a>(
        &'a self,
        gate: &'a Arc<Gate>,
        question: Question,
    ) -> Pin<Box<dyn Future<Output = Asked> + Send + 'a>> {
        Box::pin(ask(gate, question))
    }
}

async fn ask(gate: &Arc<Gate>, question: Question) -> Asked {
    let current = gate.current();
    let server = current.applied.server(&question.server);
    let Some(server) = server.filter(|server| server.endpoint() == question.endpoint) else {
        return not_asked("the server is no longer the one the act went to");
    };
    let Ok(running) = connection::start(server) else {
        return not_asked("the server could not be started as it is pinned");
    };
    let largest = usize::try_from(current.applied.limits().message_bytes).unwrap_or(usize::MAX);
    over(running, gate, server, question, largest).await
}

/// The question over a running server, which is ended afterwards.
async fn over(
    running: Running,
    gate: &Arc<Gate>,
    server: &Server,
    question: Question,
    largest: usize,
) -> Asked {
    let upstream = Upstream::new(running.stdin);
    let (events_in, events) = mpsc::channel(EVENTS);
    let reading = tokio::spawn(Arc::clone(&upstream).read(running.stdout, largest, events_in));
    let roots = roots_value(&server.roots);
    let answering = tokio::spawn(answer_server(Arc::clone(&upstream), events, roots));
    let look_up = LookUp {
        gate,
        server,
        upstream: Arc::clone(&upstream),
        listing: Listing::default(),
    };
    let mut asking = std::pin::pin!(look_up.ask(question));
    let asked = tokio::select! {
        asked = &mut asking => asked,
        () = gate.closing() => {
            // Whoever waits for the server hears that nothing comes, and what was dispatched is settled.
            upstream.finish();
            asking.await
        }
    };
    upstream.hang_up().await;
    launch::end(running.child).await;
    upstream.finish();
    drop(reading.await);
    answering.abort();
    asked
}

struct LookUp<'a> {
    gate: &'a Arc<Gate>,
    server: &'a Server,
    upstream: Arc<Upstream>,
    listing: Listing,
}

impl LookUp<'_> {
    async fn ask(&self, question: Question) -> Asked {
        let patience = self.server.timeout.clamp(LEAST, START);
        let has_roots = !self.server.roots.is_empty();
        if greet(&self.upstream, has_roots, patience).await.is_none() {
            return not_asked("the server did not answer the handshake");
        }
        let handshake = Handshake::default();
        if !self.listing.ensure(&self.upstream, &handshake).await {
            return not_asked("the server's listing cannot be read");
        }
        let Some(proposal) = proposal(question) else {
            return not_asked("the look-up cannot be put into words");
        };
        let Ok(session) = self.gate.connect_own(&self.server.name) else {
            return not_asked("there is no randomness");
        };
        let function = proposal.function.clone();
        let connected = || Connected {
            endpoint: self.server.endpoint().to_owned(),
            definition: self.listing.definition(&function),
            listed: false,
        };
        let Ok(held) = self.gate.hold(&session, proposal, connected()) else {
            return not_asked("the look-up could not be held");
        };
        let (_here, caller) = CallerGone::new();
        let sink = FinalitySink::mcp(&self.server.name);
        let waiting = |_| {};
        let passed = self.gate.pass(held, &sink, &caller, &connected, &waiting);
        match passed.await {
            Passed::Dispatched { held, dispatched } => self.perform(&held, dispatched).await,
            Passed::Denied(denied) => Asked::Refused {
                read_back: denied.act,
                why: "the look-up was denied",
            },
            // A read has no twin whose answer could be given.
            Passed::Recorded { .. } => not_asked("the look-up was taken for another"),
        }
    }

    async fn perform(&self, held: &HeldAct, dispatched: Dispatched) -> Asked {
        let entry = self.server.tool(&held.proposal().function);
        let call = McpCall {
            upstream: Arc::clone(&self.upstream),
            proposal: held.proposal(),
            timeout: entry.map_or(self.server.timeout, |entry| entry.timeout),
            meaning: Meaning {
                class: ConsequenceClass::Informational,
                errors: ErrorMeaning::Unknown,
            },
            sent: &|_| {},
        };
        let (attempt, outcome) = call.perform(dispatched.permit).await;
        let settled = self.gate.settle(attempt, None).await;
        let read_back = settled.act;
        let refused = |why| Asked::Refused {
            read_back: Some(read_back),
            why,
        };
        match outcome {
            _ if !settled.recorded => refused("the look-up could not be recorded"),
            Outcome::Answered(Ok(result)) => Asked::Answered { read_back, result },
            Outcome::Answered(Err(_)) => refused("the server answered with a protocol error"),
            Outcome::Late(_) | Outcome::Lost => Asked::Unanswered { read_back },
            Outcome::NotSent => refused("the look-up was not sent in time"),
        }
    }
}

fn proposal(question: Question) -> Option<Proposal> {
    let mut params = Object::new();
    params.insert("name".to_owned(), Value::from(question.function));
    params.insert("arguments".to_owned(), question.arguments);
    let limits = Limits::default();
    propose(
        ActingMethod::ToolsCall,
        Some(Value::Object(params)),
        &limits,
    )
    .ok()
}

fn not_asked(why: &'static str) -> Asked {
    Asked::Refused {
        read_back: None,
        why,
    }
}

/// What a server says by itself, waiting.
const EVENTS: usize = 64;
/// How long a server may take to start; interpreters start slowly.
const LEAST: Duration = Duration::from_secs(10);
const START: Duration = Duration::from_secs(30);
