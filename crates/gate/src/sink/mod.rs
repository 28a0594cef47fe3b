//! The second door: the finality sink verifies the authority against the live invocation, consumes it durably, and only
//! then makes a [`Permit`] (draft §8.3, PROFILE §4).

mod consume;
mod objects;
mod permit;
mod refuse;
mod verify;

use std::sync::Arc;

use lychgate_core::act::{CandidateAct, Destination, SinkType};
use lychgate_core::authority::FinalityAuthority;
use lychgate_core::evidence::Predicates;
use lychgate_core::id::{ActId, EvidenceId, HolderId};
use lychgate_core::merkle::LeafHash;
use lychgate_core::receipt::Salt;
use lychgate_core::signed::Unsigned;
use lychgate_core::verification::{Checks, SinkVerification};
use lychgate_core::{Code, ConsequenceClass, Digest};
use lychgate_store as store;

pub use self::objects::Objects;
pub use self::permit::{Attempt, Begun, Effect, End, NotSent, Permit, Unknown};
use crate::delegation::Charges;
use crate::envelope::{Hot, Opening};
use crate::gate::Gate;
use crate::ped::Chain;

/// One sink: the component that would really perform the effects of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalitySink {
    id: String,
    sink_type: SinkType,
}

impl FinalitySink {
    /// The sink in front of one MCP server.
    pub fn mcp(server: &str) -> Self {
        Self {
            id: format!("mcp:{server}"),
            sink_type: SinkType::ToolDispatch,
        }
    }

    /// A sink of the gate's own.
    pub(crate) fn internal(id: &str, sink_type: SinkType) -> Self {
        Self {
            id: id.to_owned(),
            sink_type,
        }
    }

    /// Its own id, which an authority must name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it gates.
    pub fn sink_type(&self) -> SinkType {
        self.sink_type
    }
}

/// The invocation as it is about to be made, re-derived by whoever would make it: nothing here is taken from the act.
#[derive(Clone, Debug)]
pub struct LiveInvocation<'a> {
    /// The connection that presents the authority.
    pub holder: HolderId,
    /// The server really connected.
    pub tool_id: &'a str,
    /// The function really called.
    pub function_id: &'a str,
    /// What is really connected (PROFILE §8).
    pub endpoint: &'a str,
    /// The definition the server gives now.
    pub definition: Digest,
    /// The canonical arguments: these very bytes are sent.
    pub arguments: &'a [u8],
    /// Digest of a multi-round retry's inputs, when it is one.
    pub continuation: Option<Digest>,
    /// The destination, derived again from the live arguments.
    pub destination: Destination,
    /// The class the catalogue gives the function now.
    pub class: ConsequenceClass,
    /// The catalogue says the destination recognises idempotency keys.
    pub idempotent: bool,
}

/// What is presented to a sink.
#[derive(Debug)]
pub struct Presented {
    pub(crate) act: CandidateAct,
    pub(crate) authority: Option<FinalityAuthority>,
    pub(crate) origin: Origin,
}

/// Whether the authority is already in the store.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Issued by the PED a moment ago: issue and consumption become one commit.
    Fresh(Box<Fresh>),
    /// Presented from outside: the store must know it.
    Stored,
}

/// What an issue commits beside the authority.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) new_act: store::NewAct,
    /// The act has a row already, since it was escalated.
    pub(crate) escalated: bool,
    pub(crate) evidence_id: EvidenceId,
    /// As it is to be signed.
    pub(crate) evidence: Unsigned,
    /// The leaf of the authority that the PED signs. What a sink is presented with must have it.
    pub(crate) authority: LeafHash,
    pub(crate) predicates: Predicates,
    pub(crate) approval: Option<store::Approval>,
    pub(crate) retry_of: Option<ActId>,
    pub(crate) chain: Chain,
    pub(crate) vouched: bool,
    pub(crate) salt: Salt,
    /// What must not be revoked.
    pub(crate) subjects: Vec<String>,
    /// What it draws on budgets.
    pub(crate) charges: Charges,
    /// The envelope it goes by.
    pub(crate) envelope: Hot,
    /// The envelope it opens.
    pub(crate) opening: Option<Box<Opening>>,
}

impl Presented {
    /// An act and an authority from outside: nothing is believed of either.
    pub fn from_outside(act: CandidateAct, authority: Option<FinalityAuthority>) -> Self {
        Self {
            act,
            authority,
            origin: Origin::Stored,
        }
    }

    /// The act.
    pub fn act(&self) -> &CandidateAct {
        &self.act
    }
}

/// The sink's yes: the authority is consumed, the effect may run once.
#[derive(Debug)]
pub struct Dispatched {
    /// Leave to act.
    pub permit: Permit,
    /// What was checked. The verification that says so was signed with the commit group; [`Gate::objects`] has it.
    pub checks: Checks,
}

/// The sink's no: nothing was consumed, nothing will run.
#[derive(Debug)]
pub struct SinkRefusal {
    /// Why.
    pub code: Code,
    /// What was checked, signed by the sink when it could be.
    pub verification: Option<SinkVerification>,
    /// The approval that was to be consumed had been consumed by another act; the PED may decide again.
    pub approval_lost: bool,
}

impl Gate {
    //= draft §8.3: verify the live invocation, consume atomically, then invoke
    /// Presents an authority at `sink` for a live invocation.
    ///
    /// Everything is checked against the live invocation and the current state; then, in one durable transaction, the
    /// authority is consumed, the nonce advanced and the receipt "dispatched" written. Only then is there a permit.
    ///
    /// # Errors
    /// [`SinkRefusal`] with the first check that failed. The refusal is recorded before it is returned.
    pub async fn present(
        self: &Arc<Self>,
        sink: &FinalitySink,
        live: &LiveInvocation<'_>,
        presented: Presented,
    ) -> Result<Dispatched, SinkRefusal> {
        let current = self.current();
        let effect = match self.fresh_effect_id() {
            Ok(effect) => effect,
            Err(code) => return Err(self.refuse_bare(&presented, code, &current).await),
        };
        let verified = match self.verify(sink, live, &presented, &current) {
            Ok(verified) => verified,
            Err(refused) => {
                let verification = self.signed_refusal(effect, refused.checks, refused.code);
                let code = self
                    .record_sink_refusal(&presented, refused.code, refused.why, &current)
                    .await;
                return Err(SinkRefusal {
                    code,
                    verification,
                    approval_lost: false,
                });
            }
        };
        self.consume(effect, live, presented, verified, &current)
            .await
    }
}
