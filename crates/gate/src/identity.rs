//! What an act is recognised by: what an approval of it is for, what equal calls have in common, what it repeats or
//! continues (PROFILE §5, §11).

use lychgate_core::act::CandidateAct;
use lychgate_core::id::ActId;
use lychgate_core::json::{self, Object, Value};
use lychgate_core::{ConsequenceClass, Digest, jcs};
use lychgate_intake::Proposal;

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
    /// What the act repeats or continues, taken: of two equal live calls only one is the retry, or they would share an
    /// idempotency key and a destination that honours it would drop the second.
    pub(crate) fn claim_predecessor(&self, proposal: &Proposal, act: &CandidateAct) -> Predecessor {
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
