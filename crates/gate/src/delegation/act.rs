//! AGENT_DELEGATION is a candidate act like every other (draft §5.9): held, decided, where policy says so asked about, and
//! only then made. What it grants is its arguments, so what an approver sees is what is signed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lychgate_core::act::{ActType, Destination, FinalitySink as ActSink, SinkType, ToolProtocol};
use lychgate_core::delegation::{AgentName, Chain, Delegation, Grant, HolderBinding, names_tool};
use lychgate_core::id::{DelegationId, HolderId};
use lychgate_core::json::{self, Object, Value};
use lychgate_core::{Code, ConsequenceClass, Digest, Timestamp};
use lychgate_intake::{ActingMethod, Limits, Proposal, propose};
use lychgate_policy::{Applied, Finding, Reach, Resolution, Scope, Target, allowlisted};
use serde::{Deserialize, Serialize};

use super::Charges;
use super::predicate::judge_grant;
use crate::gate::Gate;
use crate::hold::{Connected, Found, HeldAct, Resolved};
use crate::session::Session;
use crate::sink::{FinalitySink, LiveInvocation};

/// What an agent asks to hand on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegationRequest {
    /// To whom.
    pub child_agent_id: AgentName,
    /// What.
    pub grant: Grant,
    /// The user who may come with it.
    pub uid: u32,
    /// For how long, in milliseconds; at most [`MOST_LIFETIME`]. Absent: as long as what the asker was handed itself, else
    /// half an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub lifetime_ms: Option<u64>,
}

impl DelegationRequest {
    /// The act's class: the gravest that is granted.
    fn class(&self) -> ConsequenceClass {
        let classes = &self.grant.consequence_classes;
        let gravest = GRAVEST.into_iter().find(|class| classes.has(class));
        gravest.unwrap_or(ConsequenceClass::Other)
    }

    fn proposal(&self) -> Option<Proposal> {
        let mut params = Object::new();
        params.insert("name".to_owned(), Value::from(FUNCTION));
        params.insert("arguments".to_owned(), json::to_value(self).ok()?);
        let limits = Limits::default();
        propose(
            ActingMethod::ToolsCall,
            Some(Value::Object(params)),
            &limits,
        )
        .ok()
    }

    fn destination(&self) -> Destination {
        let child = format!("agent:{}", self.child_agent_id.as_str());
        Destination {
            destination_id: Some(child.clone()),
            endpoint: Some(ENDPOINT.to_owned()),
            jurisdiction: None,
            recipient_id: Some(child),
        }
    }

    fn reach(&self) -> Reach {
        let child = format!("agent:{}", self.child_agent_id.as_str());
        Reach {
            destination: self.destination(),
            targets: vec![Target {
                canonical: child.clone(),
                scope: Scope::LocalOther,
            }],
            recipients: vec![child],
        }
    }
}

impl FinalitySink {
    /// The sink that makes delegations durable.
    pub(crate) fn delegation() -> Self {
        Self::internal(TOOL, SinkType::Other)
    }
}

impl Gate {
    /// Makes a candidate act of a request and holds it. The session is of the gate's own "server" [`TOOL`].
    pub(crate) fn hold_delegation(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: DelegationRequest,
    ) -> Result<HeldAct, Code> {
        #[allow(
            clippy::disallowed_methods,
            reason = "measures how long the decision takes, decides nothing else"
        )]
        let began = Instant::now();
        let proposal = request.proposal().ok_or(Code::MalformedAct)?;
        let current = self.current();
        let connected = connected();
        let reach = Ok(request.reach());
        let mut act = self.candidate(
            session,
            &current,
            FUNCTION,
            None,
            request.class(),
            &proposal,
            &connected,
            &reach,
        )?;
        act.act_type = ActType::AgentDelegation;
        act.tool.tool_protocol = Some(ToolProtocol::A2a);
        let sink = FinalitySink::delegation();
        act.finality_sink = ActSink {
            sink_id: sink.id().to_owned(),
            sink_type: sink.sink_type(),
        };
        let resolved = Resolved {
            found: Found::Delegation,
            schema: None,
            reach,
            has_program: false,
            charges: Charges::of(session, &current, &act, None),
            delegation: Some(request),
        };
        self.put_together(session, current, act, proposal, connected, resolved, began)
    }

    /// Why what is asked for cannot be granted; `None` for every other act.
    pub(super) fn unfit_delegation(&self, held: &HeldAct) -> Option<Finding> {
        let request = held.delegation.as_ref()?;
        let exceeded = |why| {
            Some(Finding::Deny {
                code: Code::DelegationExceeded,
                why,
            })
        };
        let lifetimes = 1_000..=MOST_LIFETIME;
        if request
            .lifetime_ms
            .is_some_and(|wanted| !lifetimes.contains(&wanted))
        {
            return exceeded("a delegation lives from one second to 31 days");
        }
        let applied = &held.current.applied;
        let child = request.child_agent_id.as_str();
        if child == applied.agent().id || child == lychgate_policy::RECONCILER {
            return exceeded("an agent cannot delegate to one above it");
        }
        if request
            .grant
            .tools
            .iter()
            .any(|rule| !is_offered(applied, rule))
        {
            return Some(Finding::Deny {
                code: Code::ToolNotAuthorized,
                why: "it names a tool that this agent does not have",
            });
        }
        let Some(link) = self.link(held, request, DelegationId::from_bytes([0xff; 16]), None)
        else {
            return exceeded("the configured agent's name cannot stand in a delegation");
        };
        let deepest = link
            .delegation_depth
            .checked_add(request.grant.further_depth);
        if deepest.is_none_or(|deepest| deepest > applied.agent().max_depth) {
            return exceeded("it would be deeper than allowed");
        }
        let above = held.session.worker().map(|worker| &worker.chain);
        let links = above.map_or(&[][..], Chain::links);
        let links = links.iter().cloned().chain([link]).collect();
        match Chain::new(links) {
            Ok(_) => judge_grant(held).filter(|finding| finding.rank() > 0),
            Err(_) => exceeded("it is more than what was delegated to this agent"),
        }
    }

    /// The link as it would be made now; unsigned.
    pub(super) fn link(
        &self,
        held: &HeldAct,
        request: &DelegationRequest,
        id: DelegationId,
        secret: Option<Digest>,
    ) -> Option<Delegation> {
        let now = self.now();
        let act = &held.act;
        let current = &held.current;
        let depth = act.agent.delegation_depth.unwrap_or(0);
        let mut principal = act.initiating_principal.clone();
        // Consent belongs to the session at hand; every act of the worker is held against the one of its own moment.
        principal.authorization_context_id = None;
        Some(Delegation {
            version: Default::default(),
            object_type: Default::default(),
            delegation_id: id,
            parent_delegation_id: held.session.delegation(),
            candidate_act_id: act.candidate_act_id,
            initiating_principal: principal,
            parent_agent_id: AgentName::try_from(act.agent.agent_id.clone()).ok()?,
            child_agent_id: request.child_agent_id.clone(),
            delegation_depth: depth.checked_add(1)?,
            grant: request.grant.clone(),
            holder: HolderBinding {
                uid: request.uid,
                secret_digest: secret.unwrap_or_else(|| Digest::sha256(b"")),
            },
            policy_digest: current.policy_digest,
            epochs: current.epochs,
            issued_at: now,
            expires_at: match (request.lifetime_ms, held.session.worker()) {
                (Some(wanted), _) => now.after(Duration::from_millis(wanted)),
                (None, Some(worker)) => worker.chain.expires_at(),
                (None, None) => now.after(USUAL_LIFETIME),
            },
            mark: self.ped_mark(),
        })
    }
}

/// Whether the agent may name every function a rule names, and there is one (PROFILE §8: a rule that resolves to nothing is
/// an error).
fn is_offered(applied: &Applied, rule: &str) -> bool {
    let (server, function) = match rule.split_once('/') {
        Some((server, function)) => (server, Some(function)),
        None => (rule, None),
    };
    let Some(entry) = applied.server(server).filter(|_| names_tool(rule)) else {
        return false;
    };
    match function {
        Some(function) => {
            let known = matches!(entry.resolve(function), Resolution::Exact(tool) if tool.function == function)
                || entry.method(function).is_some();
            known && allowlisted(applied, server, function)
        }
        // The whole server: only where the agent itself has all of it.
        None => entry
            .tools()
            .filter(|tool| tool.enabled)
            .all(|tool| allowlisted(applied, server, &tool.function)),
    }
}

/// What is connected behind a delegation: the gate itself, as this build makes them.
pub(super) fn connected() -> Connected {
    Connected {
        endpoint: ENDPOINT.to_owned(),
        definition: Some(Digest::sha256(DEFINITION)),
        listed: false,
    }
}

/// Whether what is connected is what makes delegations.
pub(crate) fn is_connected(held: &HeldAct) -> bool {
    held.found == Found::Delegation && held.connected == connected()
}

/// The invocation as it would be made now, read again from the arguments in hand.
pub(crate) fn live_delegation<'a>(
    holder: HolderId,
    proposal: &'a Proposal,
    connected: &'a Connected,
) -> Result<LiveInvocation<'a>, Code> {
    let request: DelegationRequest =
        json::from_value(&proposal.arguments).map_err(|_| Code::ArgsSubstitution)?;
    Ok(LiveInvocation {
        holder,
        tool_id: TOOL,
        function_id: FUNCTION,
        endpoint: &connected.endpoint,
        definition: connected.definition.ok_or(Code::ToolSubstitution)?,
        arguments: &proposal.canonical,
        continuation: None,
        destination: request.destination(),
        class: request.class(),
        idempotent: false,
    })
}

/// When a link made now would end, the chain above it at hand.
pub(super) fn end_of(wanted: Timestamp, above: Option<&Chain>) -> Timestamp {
    above.map_or(wanted, |above| wanted.min(above.expires_at()))
}

/// The act's tool: no server of a catalogue can have a name with a dot.
pub(crate) const TOOL: &str = "lychgate.delegation";
/// The act's function.
pub(crate) const FUNCTION: &str = "delegate";
const ENDPOINT: &str = "gate:delegation";
/// What stands for the function's definition; changed with its meaning.
const DEFINITION: &[u8] = b"lychgate delegation 1";
/// 31 days, in milliseconds.
pub const MOST_LIFETIME: u64 = 2_678_400_000;

/// Where nobody says how long.
const USUAL_LIFETIME: Duration = Duration::from_secs(1_800);

/// The classes by how grave they are.
const GRAVEST: [ConsequenceClass; 8] = [
    ConsequenceClass::Financial,
    ConsequenceClass::Physical,
    ConsequenceClass::NetworkControl,
    ConsequenceClass::Other,
    ConsequenceClass::Communication,
    ConsequenceClass::DataDisclosure,
    ConsequenceClass::PersistentStateChange,
    ConsequenceClass::Informational,
];
