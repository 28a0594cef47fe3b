//! The first step of an act: a proposal becomes a candidate act, held non-effective (draft §8.1, PROFILE §11).

use std::sync::Arc;
use std::time::{Duration, Instant};

use lychgate_core::act::{
    ActType, Agent, ArgumentsDigest, CandidateAct, FinalitySink, Freshness, InstructionProvenance,
    PolicyState, Principal, Purpose, Tool, ToolProtocol,
};
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Object, Value};
use lychgate_core::receipt::Salt;
use lychgate_core::{Code, ConsequenceClass, Digest, jcs};
use lychgate_intake::{ActingMethod, Proposal};
use lychgate_policy::{Reach, Resolution, SchemaFault, Server, ToolEntry, Unresolved};
use lychgate_store as store;

use crate::approval::Claim;
use crate::current::Current;
use crate::gate::Gate;
use crate::receipts::source_of;
use crate::session::Session;
use crate::sink::FinalitySink as Sink;

/// What is really connected behind a proposal, as the sink's adapter sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The endpoint's canonical name (PROFILE §8).
    pub endpoint: String,
    /// The definition the server gives for the function now; `None` when it gives none, or two.
    pub definition: Option<Digest>,
    /// For a resource or a prompt: the server lists it.
    pub listed: bool,
}

/// A candidate act in hand. Nothing effective can be done with it but handing it to [`Gate::decide`], by value.
#[derive(Debug)]
pub struct HeldAct {
    pub(crate) session: Arc<Session>,
    pub(crate) current: Arc<Current>,
    pub(crate) act: CandidateAct,
    pub(crate) digest: Digest,
    pub(crate) proposal: Proposal,
    pub(crate) connected: Connected,
    pub(crate) found: Found,
    pub(crate) schema: Option<SchemaFault>,
    pub(crate) reach: Result<Reach, Unresolved>,
    pub(crate) has_program: bool,
    pub(crate) predecessor: Predecessor,
    pub(crate) salt: Salt,
    /// The destination as the store keeps it.
    pub(crate) sealed_destination: Option<Vec<u8>>,
    pub(crate) vouched: bool,
    pub(crate) began: Instant,
    /// It has a row in the store, waiting for this ticket.
    pub(crate) escalated: Option<TicketId>,
    /// Its ticket is no other act's, as long as this act is in hand.
    pub(crate) claim: Option<Claim>,
    /// Its authority has been handed over: a second decision would be a replay.
    pub(crate) spent: bool,
}

/// What a proposal's name resolved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Tool,
    Method,
    Disabled,
    Unknown,
}

/// What a proposal repeats or continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Predecessor {
    None,
    /// An equal act that reconciliation found without effect.
    Reconciled(ActId),
    /// The round of a multi-round call that asked for input.
    Round(ActId),
    /// It claims to continue a round nobody knows.
    UnknownRound,
}

impl Predecessor {
    pub(crate) fn act(self) -> Option<ActId> {
        match self {
            Self::Reconciled(act) | Self::Round(act) => Some(act),
            Self::None | Self::UnknownRound => None,
        }
    }
}

impl HeldAct {
    /// The candidate act.
    pub fn act(&self) -> &CandidateAct {
        &self.act
    }

    /// What was emitted: its canonical arguments are the bytes to send.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// Whether its answer is kept until it is known to have reached the caller.
    pub fn awaits_delivery(&self) -> bool {
        self.twin().is_some()
    }

    /// The catalogue entry, when the name resolved to one.
    pub(crate) fn entry(&self) -> Option<&ToolEntry> {
        entry_of(
            &self.current,
            &self.act.tool.tool_id,
            &self.act.tool.function_id,
            self.found,
        )
    }

    /// What equal calls are recognised by; reads are exempt (PROFILE §5).
    pub(crate) fn twin(&self) -> Option<Digest> {
        let exempt = self.act.consequence_class == ConsequenceClass::Informational;
        if exempt { None } else { twin_of(&self.act) }
    }

    /// Whether it continues a round: then no equal call holds it back.
    pub(crate) fn continues(&self) -> bool {
        matches!(
            self.predecessor,
            Predecessor::Round(_) | Predecessor::UnknownRound
        )
    }

    //= PROFILE §11: no ids, times, epochs
    /// What an approval of this act is for.
    pub(crate) fn subject(&self) -> Option<Digest> {
        let act = &self.act;
        let mut subject = Object::new();
        let mut put = |key: &str, value: Option<Value>| {
            subject.insert(key.to_owned(), value?);
            Some(())
        };
        put("principal", json::to_value(&act.initiating_principal).ok())?;
        put("agent", Some(Value::from(act.agent.agent_id.as_str())))?;
        put(
            "delegation_depth",
            json::to_value(&act.agent.delegation_depth.unwrap_or(0)).ok(),
        )?;
        put("tool", json::to_value(&act.tool).ok())?;
        put(
            "tool_definition",
            json::to_value(&self.connected.definition?).ok(),
        )?;
        put("arguments", json::to_value(&act.arguments_digest).ok())?;
        put(
            "continuation",
            json::to_value(
                &self
                    .continuation()
                    .map_or(String::new(), Digest::to_base64url),
            )
            .ok(),
        )?;
        put(
            "destination",
            json::to_value(&act.destination.clone().unwrap_or_default()).ok(),
        )?;
        put("class", Some(Value::from(act.consequence_class.name())))?;
        put(
            "purpose",
            Some(Value::from(act.purpose.purpose_id.as_str())),
        )?;
        put(
            "provenance",
            json::to_value(&act.instruction_provenance.clone().unwrap_or_default()).ok(),
        )?;
        put("vouched", json::to_value(&self.vouched).ok())?;
        Some(Digest::sha256(&jcs::to_bytes(&Value::Object(subject))))
    }

    pub(crate) fn continuation(&self) -> Option<Digest> {
        self.proposal
            .continuation
            .as_ref()
            .map(|continuation| continuation.digest)
    }

    /// What the store keeps of this act from its first moment on.
    pub(crate) fn new_act(&self) -> store::NewAct {
        let resolved = self.found != Found::Unknown;
        store::NewAct {
            id: self.act.candidate_act_id,
            created_at: self.act.created_at,
            twin: self.twin(),
            act_digest: Some(self.digest),
            arguments_digest: Some(self.proposal.digest),
            destination: self.sealed_destination.clone(),
            salt: self.salt,
            agent: self.act.agent.agent_id.clone(),
            tool: resolved.then(|| self.act.tool.tool_id.clone()),
            function: resolved.then(|| self.act.tool.function_id.clone()),
            class: Some(self.act.consequence_class),
            source: source_of(&self.act),
            vouched: self.vouched,
            retry_of: self.predecessor.act(),
        }
    }
}

//= PROFILE §5: same principal, agent, tool, arguments, destination; not session or request id
/// What equal calls have in common.
fn twin_of(act: &CandidateAct) -> Option<Digest> {
    let mut twin = Object::new();
    twin.insert(
        "principal".to_owned(),
        json::to_value(&act.initiating_principal).ok()?,
    );
    twin.insert("agent".to_owned(), Value::from(act.agent.agent_id.as_str()));
    twin.insert("tool".to_owned(), json::to_value(&act.tool).ok()?);
    twin.insert(
        "arguments".to_owned(),
        json::to_value(&act.arguments_digest).ok()?,
    );
    twin.insert(
        "destination".to_owned(),
        json::to_value(&act.destination.clone().unwrap_or_default()).ok()?,
    );
    Some(Digest::sha256(&jcs::to_bytes(&Value::Object(twin))))
}

impl Gate {
    //= draft §8.1: fresh id, resolved tool and destination, canonical digest, current epochs, fresh nonce
    /// Makes a candidate act of a proposal and holds it. Every field comes from the gate, the applied configuration or
    /// the live request; what could not be resolved is carried as such and denied by the PED.
    ///
    /// # Errors
    /// EF-080 when there is no randomness or the server is not in the applied configuration.
    pub fn hold(
        self: &Arc<Self>,
        session: &Arc<Session>,
        mut proposal: Proposal,
        connected: Connected,
    ) -> Result<HeldAct, Code> {
        #[allow(
            clippy::disallowed_methods,
            reason = "measures how long the decision takes, decides nothing else"
        )]
        let began = Instant::now();
        let current = self.current();
        let server = current
            .applied
            .server(session.server())
            .ok_or(Code::FailClosed)?;
        let found = find(server, &proposal);
        let function = match (found, server.resolve(&proposal.function)) {
            (Found::Tool, Resolution::Exact(entry)) => entry.function.clone(),
            _ => proposal.function.clone(),
        };
        // From here on the call bears the function's own name: an alias never reaches the server.
        proposal.function.clone_from(&function);
        let entry = entry_of(&current, session.server(), &function, found);
        let schema = entry.and_then(|entry| entry.validate(&proposal.arguments).err());
        //= PROFILE §7: arguments against the tool's schema, before anything is read from them
        let reach = match (entry, &schema) {
            (Some(entry), None) => entry.destinations(&proposal.arguments, self.paths(), server),
            _ => Err(Unresolved {
                code: Code::DestinationUnresolved,
                why: "nothing to resolve a destination with",
            }),
        };
        let class = class_of(server, found, entry, &proposal, &connected);
        let act = self.candidate(
            session, &current, &function, entry, class, &proposal, &connected, &reach,
        )?;
        let has_program = entry.is_some_and(|entry| entry.roles(&proposal.arguments).has_program());
        let digest = act.digest().map_err(|_| Code::FailClosed)?;
        let vouched = act.instruction_provenance.is_some();
        let salt = self.fresh_salt()?;
        let sealed_destination = act
            .destination
            .as_ref()
            .map(|destination| self.seal_destination(act.candidate_act_id, destination))
            .transpose()?;
        let predecessor = self.claim_predecessor(&proposal, &act);
        Ok(HeldAct {
            session: Arc::clone(session),
            current: Arc::clone(&current),
            act,
            digest,
            proposal,
            connected,
            found,
            schema,
            reach,
            has_program,
            predecessor,
            salt,
            sealed_destination,
            vouched,
            began,
            escalated: None,
            claim: None,
            spent: false,
        })
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one call site; each is one source of PROFILE §11's table"
    )]
    fn candidate(
        &self,
        session: &Session,
        current: &Current,
        function: &str,
        entry: Option<&ToolEntry>,
        class: ConsequenceClass,
        proposal: &Proposal,
        connected: &Connected,
        reach: &Result<Reach, Unresolved>,
    ) -> Result<CandidateAct, Code> {
        let now = self.now();
        let applied = &current.applied;
        let limits = applied.limits();
        let nonce = session.next_nonce();
        let sink = Sink::mcp(session.server());
        Ok(CandidateAct {
            version: Default::default(),
            object_type: Default::default(),
            candidate_act_id: ActId::new(now, self.ten()?),
            act_type: entry.map_or(ActType::ToolCall, |entry| entry.act_type),
            created_at: now,
            // It may be held for a person, and then needs time to be dispatched.
            expires_at: now.after(Duration::from_millis(
                limits.hold.saturating_add(limits.authority),
            )),
            initiating_principal: Principal {
                principal_id: applied.principal().id.clone(),
                principal_type: applied.principal().kind,
                authorization_context_id: None,
            },
            agent: Agent {
                agent_id: applied.agent().id.clone(),
                runtime_id: self.id(),
                model_id: None,
                model_version: None,
                alf_digest: None,
                // A connection speaks for the configured agent itself; a delegated worker comes with a chain.
                delegation_depth: Some(0),
                parent_agent_id: None,
            },
            tool: Tool {
                tool_id: session.server().to_owned(),
                function_id: function.to_owned(),
                tool_endpoint: Some(connected.endpoint.clone()),
                tool_protocol: Some(ToolProtocol::Mcp),
            },
            purpose: Purpose {
                purpose_id: applied.purpose().id.clone(),
                declared_purpose: applied.purpose().declared.clone(),
                user_intent_reference: None,
                purpose_epoch: Some(current.purpose_epoch),
            },
            arguments_digest: ArgumentsDigest::new(&proposal.digest),
            destination: reach.as_ref().ok().map(|reach| reach.destination.clone()),
            consequence_class: class,
            policy_state: PolicyState {
                policy_epoch: current.epochs.policy_epoch,
                authority_epoch: current.epochs.authority_epoch,
                revocation_epoch: current.epochs.revocation_epoch,
                policy_profile_id: Some(applied.profile().name().to_owned()),
            },
            freshness: Freshness {
                nonce,
                sequence: Some(nonce.count),
                session_id: Some(session.holder().to_string()),
            },
            instruction_provenance: applied.vouch().map(|source| InstructionProvenance {
                source_type: Some(source),
                ..InstructionProvenance::default()
            }),
            finality_sink: FinalitySink {
                sink_id: sink.id().to_owned(),
                sink_type: sink.sink_type(),
            },
        })
    }

    /// What the act repeats or continues, taken: of two equal live calls only one is the retry, or they would share an
    /// idempotency key and a destination that honours it would drop the second.
    fn claim_predecessor(&self, proposal: &Proposal, act: &CandidateAct) -> Predecessor {
        let Some(twin) = twin_of(act) else {
            return Predecessor::None;
        };
        let mut known = self.predecessors();
        match &proposal.continuation {
            Some(continuation) => {
                let round = round_key(continuation.request_state.as_deref(), &twin);
                known
                    .rounds
                    .remove(&round)
                    .map_or(Predecessor::UnknownRound, Predecessor::Round)
            }
            None => known
                .reconciled
                .remove(&twin)
                .map_or(Predecessor::None, Predecessor::Reconciled),
        }
    }

    /// An act ended before it was dispatched: a later one may name its predecessor.
    pub(crate) fn give_back(&self, held: &HeldAct) {
        let Some(twin) = twin_of(&held.act) else {
            return;
        };
        let mut known = self.predecessors();
        match held.predecessor {
            Predecessor::Reconciled(act) => {
                known.reconciled.entry(twin).or_insert(act);
            }
            Predecessor::Round(act) => {
                let continuation = held.proposal.continuation.as_ref();
                let state =
                    continuation.and_then(|continuation| continuation.request_state.as_deref());
                known.rounds.entry(round_key(state, &twin)).or_insert(act);
            }
            Predecessor::None | Predecessor::UnknownRound => {}
        }
    }
}

/// What a round is recognised by: the same call, and the state the server gave to carry back.
pub(crate) fn round_key(request_state: Option<&str>, twin: &Digest) -> Digest {
    let mut bytes = twin.bytes().to_vec();
    bytes.extend_from_slice(request_state.unwrap_or_default().as_bytes());
    Digest::sha256(&bytes)
}

/// The twin of a stored or held act, for the rounds table.
pub(crate) fn twin_for_round(act: &CandidateAct) -> Option<Digest> {
    twin_of(act)
}

fn find(server: &Server, proposal: &Proposal) -> Found {
    match &proposal.method {
        ActingMethod::ToolsCall => match server.resolve(&proposal.function) {
            Resolution::Exact(_) => Found::Tool,
            Resolution::Disabled => Found::Disabled,
            Resolution::Unknown => Found::Unknown,
        },
        method if server.method(method.name()).is_some() => Found::Method,
        _ => Found::Unknown,
    }
}

pub(crate) fn entry_of<'a>(
    current: &'a Current,
    server: &str,
    function: &str,
    found: Found,
) -> Option<&'a ToolEntry> {
    let server = current.applied.server(server)?;
    match found {
        Found::Tool => server.tool(function),
        Found::Method => server.method(function),
        Found::Disabled | Found::Unknown => None,
    }
}

fn class_of(
    server: &Server,
    found: Found,
    entry: Option<&ToolEntry>,
    proposal: &Proposal,
    connected: &Connected,
) -> ConsequenceClass {
    match (found, entry) {
        (Found::Method, _) => server.method_class(proposal.method.name(), connected.listed),
        (Found::Tool, Some(entry)) => entry.class,
        _ => ConsequenceClass::Other,
    }
}
