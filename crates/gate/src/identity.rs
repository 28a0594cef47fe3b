//! What an act is recognised by: what an approval of it is for, what equal calls have in common, what it repeats or
//! continues (PROFILE §5, §11).

use lychgate_core::act::{ArgumentsDigest, CandidateAct, Destination, Principal, Tool};
use lychgate_core::id::ActId;
use lychgate_core::json::{self, Object, Value};
use lychgate_core::{ConsequenceClass, Digest, jcs};
use lychgate_intake::Proposal;
use serde::Serialize;

use crate::gate::Gate;
use crate::hold::HeldAct;

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
    /// What equal calls are recognised by; reads are exempt (PROFILE §5).
    pub(crate) fn twin(&self) -> Option<Digest> {
        let exempt = self.act.consequence_class == ConsequenceClass::Informational;
        (!exempt).then_some(self.likeness)
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
        let principal = whoever(&act.initiating_principal);
        put("principal", json::to_value(&principal).ok())?;
        put("agent", Some(Value::from(act.agent.agent_id.as_str())))?;
        put(
            "delegation_depth",
            json::to_value(&act.agent.delegation_depth.unwrap_or(0)).ok(),
        )?;
        put(
            "delegations",
            json::to_value(
                &self
                    .session
                    .worker()
                    .map_or(String::new(), |worker| worker.digest.to_base64url()),
            )
            .ok(),
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
}

/// A principal, whichever consent covers it at the moment.
fn whoever(principal: &Principal) -> Principal {
    Principal {
        authorization_context_id: None,
        ..principal.clone()
    }
}

//= PROFILE §5: same principal, agent, tool, arguments, destination; not session or request id
/// What equal calls have in common.
pub(crate) fn likeness_of(act: &CandidateAct) -> Option<Digest> {
    let bytes = json::to_canonical(&Likeness {
        agent: &act.agent.agent_id,
        arguments: &act.arguments_digest,
        destination: act.destination.as_ref(),
        principal: &whoever(&act.initiating_principal),
        tool: &act.tool,
    });
    bytes.ok().map(|bytes| Digest::sha256(&bytes))
}

#[derive(Serialize)]
struct Likeness<'a> {
    agent: &'a str,
    arguments: &'a ArgumentsDigest,
    destination: Option<&'a Destination>,
    principal: &'a Principal,
    tool: &'a Tool,
}

impl Gate {
    /// What the act repeats or continues, taken: of two equal live calls only one is the retry, or they would share an
    /// idempotency key and a destination that honours it would drop the second.
    pub(crate) fn claim_predecessor(&self, proposal: &Proposal, likeness: &Digest) -> Predecessor {
        let mut known = self.predecessors();
        match &proposal.continuation {
            Some(continuation) => {
                let round = round_key(continuation.request_state.as_deref(), likeness);
                known
                    .rounds
                    .remove(&round)
                    .map_or(Predecessor::UnknownRound, Predecessor::Round)
            }
            None => known
                .reconciled
                .remove(likeness)
                .map_or(Predecessor::None, Predecessor::Reconciled),
        }
    }

    /// An act ended before it was dispatched: a later one may name its predecessor.
    pub(crate) fn give_back(&self, held: &HeldAct) {
        let mut known = self.predecessors();
        match held.predecessor {
            Predecessor::Reconciled(act) => {
                known.reconciled.entry(held.likeness).or_insert(act);
            }
            Predecessor::Round(act) => {
                let continuation = held.proposal.continuation.as_ref();
                let state =
                    continuation.and_then(|continuation| continuation.request_state.as_deref());
                known
                    .rounds
                    .entry(round_key(state, &held.likeness))
                    .or_insert(act);
            }
            Predecessor::None | Predecessor::UnknownRound => {}
        }
    }
}

/// What a round is recognised by: the same call, and the state the server gave to carry back.
pub(crate) fn round_key(request_state: Option<&str>, likeness: &Digest) -> Digest {
    let mut bytes = likeness.bytes().to_vec();
    bytes.extend_from_slice(request_state.unwrap_or_default().as_bytes());
    Digest::sha256(&bytes)
}
