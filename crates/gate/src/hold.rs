//! The first step of an act: a proposal becomes a candidate act, held non-effective (draft §8.1, PROFILE §11).

use std::sync::Arc;
use std::time::{Duration, Instant};

use lychgate_core::act::{
    ActType, Agent, ArgumentsDigest, CandidateAct, FinalitySink, Freshness, InstructionProvenance,
    PolicyState, Principal, Purpose, Tool, ToolProtocol,
};
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::receipt::{ActPart, Salt};
use lychgate_core::{Code, ConsequenceClass, Digest};
use lychgate_intake::{ActingMethod, Proposal};
use lychgate_policy::{Reach, Resolution, SchemaFault, Server, ToolEntry, Unresolved};
use lychgate_store as store;

use crate::approval::Claim;
use crate::control::subjects_in_hand;
use crate::current::Current;
use crate::delegation::{Charges, DelegationRequest};
use crate::envelope::Hot;
use crate::gate::Gate;
use crate::identity::{Predecessor, likeness_of};
use crate::receipts::{part_of, source_of};
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
    /// What equal calls have in common.
    pub(crate) likeness: Digest,
    pub(crate) proposal: Proposal,
    pub(crate) connected: Connected,
    pub(crate) found: Found,
    pub(crate) schema: Option<SchemaFault>,
    pub(crate) reach: Result<Reach, Unresolved>,
    pub(crate) has_program: bool,
    /// Set where the act is a delegation.
    pub(crate) delegation: Option<DelegationRequest>,
    /// What it draws on budgets.
    pub(crate) charges: Charges,
    /// Whether policy's word on it is an envelope's.
    pub(crate) hot: Hot,
    pub(crate) predecessor: Predecessor,
    pub(crate) salt: Salt,
    /// The destination as the store keeps it.
    pub(crate) sealed_destination: Option<Vec<u8>>,
    pub(crate) vouched: bool,
    /// What must not be revoked of its own: agent, tool, targets; [`HeldAct::revocation_subjects`] has all.
    subjects: Vec<String>,
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
    /// The gate's own: AGENT_DELEGATION.
    Delegation,
    Disabled,
    Unknown,
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

    /// What must not be revoked for it to run.
    pub(crate) fn revocation_subjects(&self) -> Vec<String> {
        let mut subjects = self.subjects.clone();
        let worker = self.session.worker().into_iter();
        subjects.extend(worker.flat_map(|worker| worker.subjects.iter().cloned()));
        if let Hot::Under { id, .. } = self.hot {
            subjects.push(format!("envelope:{id}"));
        }
        subjects
    }

    /// What receipts say of it.
    pub(crate) fn part(&self) -> ActPart {
        let resolved = self.found != Found::Unknown;
        let delegation = self.session.delegation();
        let vouched = self.vouched;
        part_of(
            &self.act,
            self.digest,
            &self.salt,
            resolved,
            vouched,
            delegation,
        )
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
            depth: self.session.depth(),
            delegation: self.session.delegation(),
            tool: resolved.then(|| self.act.tool.tool_id.clone()),
            function: resolved.then(|| self.act.tool.function_id.clone()),
            class: Some(self.act.consequence_class),
            source: source_of(&self.act),
            vouched: self.vouched,
            retry_of: self.predecessor.act(),
        }
    }
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
        let spending = entry.map(|entry| (entry, &proposal.arguments));
        let charges = Charges::of(session, &current, &act, spending);
        let resolved = Resolved {
            found,
            schema,
            reach,
            has_program,
            delegation: None,
            charges,
        };
        self.put_together(session, current, act, proposal, connected, resolved, began)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of a held act, put together in one place"
    )]
    pub(crate) fn put_together(
        &self,
        session: &Arc<Session>,
        current: Arc<Current>,
        act: CandidateAct,
        proposal: Proposal,
        connected: Connected,
        resolved: Resolved,
        began: Instant,
    ) -> Result<HeldAct, Code> {
        let Resolved {
            found,
            schema,
            reach,
            has_program,
            delegation,
            charges,
        } = resolved;
        let subjects = subjects_in_hand(&act, reach.as_ref().ok());
        let digest = act.digest().map_err(|_| Code::FailClosed)?;
        let vouched = act.instruction_provenance.is_some();
        let salt = self.fresh_salt()?;
        let sealed_destination = act
            .destination
            .as_ref()
            .map(|destination| self.seal_destination(act.candidate_act_id, destination))
            .transpose()?;
        let likeness = likeness_of(&act).ok_or(Code::FailClosed)?;
        let predecessor = self.claim_predecessor(&proposal, &likeness);
        Ok(HeldAct {
            session: Arc::clone(session),
            current,
            act,
            digest,
            likeness,
            proposal,
            connected,
            found,
            schema,
            reach,
            has_program,
            delegation,
            charges,
            hot: Hot::Cold,
            predecessor,
            salt,
            sealed_destination,
            vouched,
            subjects,
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
    pub(crate) fn candidate(
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
        let purpose = session.purpose(&applied.purpose().id);
        let agent = session.agent(&applied.agent().id);
        let context = (applied.consent_required() && !session.is_own()).then(|| {
            let who = (applied.principal().id.as_str(), agent);
            let tool = (session.server(), function);
            current.consents.covering(who, tool, purpose, now)
        });
        let context = context.flatten().map(|consent| consent.to_string());
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
                authorization_context_id: context,
            },
            agent: Agent {
                agent_id: agent.to_owned(),
                runtime_id: self.id(),
                model_id: None,
                model_version: None,
                alf_digest: None,
                //= PROFILE §11: depth and parent from the verified delegation chain
                delegation_depth: Some(session.depth()),
                parent_agent_id: session.parent_agent(),
            },
            tool: Tool {
                tool_id: session.server().to_owned(),
                function_id: function.to_owned(),
                tool_endpoint: Some(connected.endpoint.clone()),
                tool_protocol: Some(ToolProtocol::Mcp),
            },
            purpose: Purpose {
                purpose_id: purpose.to_owned(),
                // One that is no longer configured is denied as such.
                declared_purpose: applied.declared(purpose).unwrap_or(purpose).to_owned(),
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
            instruction_provenance: session.source(applied.vouch()).map(|source| {
                InstructionProvenance {
                    source_type: Some(source),
                    ..InstructionProvenance::default()
                }
            }),
            finality_sink: FinalitySink {
                sink_id: sink.id().to_owned(),
                sink_type: sink.sink_type(),
            },
        })
    }
}

/// What the live request and the catalogue say of an act.
pub(crate) struct Resolved {
    pub(crate) found: Found,
    pub(crate) schema: Option<SchemaFault>,
    pub(crate) reach: Result<Reach, Unresolved>,
    pub(crate) has_program: bool,
    pub(crate) delegation: Option<DelegationRequest>,
    pub(crate) charges: Charges,
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
        Found::Delegation | Found::Disabled | Found::Unknown => None,
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
