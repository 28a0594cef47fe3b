//! The second door: the finality sink verifies the authority against the live invocation, consumes it durably, and only
//! then makes a [`Permit`] (draft §8.3, PROFILE §4).

mod objects;
mod permit;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::act::{CandidateAct, Destination, SinkType};
use lychgate_core::authority::FinalityAuthority;
use lychgate_core::evidence::Predicates;
use lychgate_core::id::{ActId, EffectId, EvidenceId, HolderId, TicketId};
use lychgate_core::receipt::{ReceiptKind, Salt};
use lychgate_core::verification::{
    Consumption, Effectuation, Operation, SinkDecision, SinkVerification,
};
use lychgate_core::{Code, ConsequenceClass, Digest, State};
use lychgate_store as store;

pub use self::objects::Objects;
use self::objects::SignedObjects;
pub use self::permit::{Attempt, Begun, Effect, End, NotSent, Permit, Unknown};
use self::verify::Verified;
use crate::current::Current;
use crate::gate::Gate;
use crate::receipts::part_of;

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
    /// As signed, canonical.
    pub(crate) evidence: Vec<u8>,
    pub(crate) predicates: Predicates,
    pub(crate) approval: Option<store::Approval>,
    pub(crate) retry_of: Option<ActId>,
    pub(crate) first_of_chain: ActId,
    pub(crate) vouched: bool,
    pub(crate) salt: Salt,
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
    /// What was checked, signed by the sink.
    pub verification: SinkVerification,
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

    async fn consume(
        self: &Arc<Self>,
        effect: EffectId,
        live: &LiveInvocation<'_>,
        presented: Presented,
        verified: Verified,
        current: &Arc<Current>,
    ) -> Result<Dispatched, SinkRefusal> {
        let first = match &presented.origin {
            Origin::Fresh(fresh) => fresh.first_of_chain,
            Origin::Stored => presented.act.candidate_act_id,
        };
        let idempotency_key = live.idempotent.then(|| idempotency_key(first));
        let key = idempotency_key.as_deref();
        let prepared = self.signed_yes(effect, &verified).and_then(|verification| {
            let signed = self.signed_objects(&presented, &verification)?;
            let txn = self.dispatch_txn(effect, key, &presented, &verified, signed, current)?;
            Ok((verification, txn))
        });
        let (verification, txn) = match prepared {
            Ok(prepared) => prepared,
            Err(code) => return Err(self.refuse_bare(&presented, code, current).await),
        };
        match self
            .store()
            .commit(store::Txn::Dispatch(Box::new(txn)))
            .await
        {
            Ok(store::Committed::Done(_)) => {
                let lifetime = Duration::from_millis(current.applied.limits().permit);
                let act = presented.act.candidate_act_id;
                let permit = Permit::after_commit(act, effect, idempotency_key, lifetime);
                Ok(Dispatched {
                    permit,
                    verification,
                })
            }
            Ok(store::Committed::Rejected(why)) => {
                // An act that waited for its own ticket has nothing else to be licensed by.
                let waited = matches!(&presented.origin, Origin::Fresh(fresh) if fresh.escalated);
                let approval_lost = !waited
                    && matches!(
                        why,
                        store::Rejected::TicketConsumed
                            | store::Rejected::TicketNotApproved { .. }
                            | store::Rejected::TicketExpired
                    );
                let code = crate::gate::code_of(&why);
                let checks = verified.checks.after_rejection(&why);
                let verification = self.signed_refusal(effect, checks, code);
                if approval_lost {
                    return Err(SinkRefusal {
                        code,
                        verification,
                        approval_lost,
                    });
                }
                let phrase = verify::phrase(&why);
                let code = self
                    .record_sink_refusal(&presented, code, phrase, current)
                    .await;
                Err(SinkRefusal {
                    code,
                    verification,
                    approval_lost,
                })
            }
            Err(fault) => Err(SinkRefusal {
                code: self.store_fault(&fault),
                verification: None,
                approval_lost: false,
            }),
        }
    }

    /// A refusal before any check could be signed; recorded like every other.
    async fn refuse_bare(
        self: &Arc<Self>,
        presented: &Presented,
        code: Code,
        current: &Current,
    ) -> SinkRefusal {
        let why = "the dispatch could not be prepared";
        let code = self
            .record_sink_refusal(presented, code, why, current)
            .await;
        SinkRefusal {
            code,
            verification: None,
            approval_lost: false,
        }
    }

    fn dispatch_txn(
        &self,
        effect: EffectId,
        idempotency_key: Option<&str>,
        presented: &Presented,
        verified: &Verified,
        signed: SignedObjects,
        current: &Current,
    ) -> Result<store::Dispatch, Code> {
        let now = self.now();
        let act = &presented.act;
        let grant = verified.grant;
        let mut draft = self.draft(ReceiptKind::Dispatched, current);
        let mut issue = None;
        let mut approval = None;
        match &presented.origin {
            Origin::Fresh(fresh) => {
                let part = part_of(act, verified.act_digest, &fresh.salt, true, fresh.vouched);
                draft = draft
                    .act(part, State::Dispatched)
                    .predicates(fresh.predicates)
                    .authority(fresh.evidence_id, signed.evidence, grant.authority)
                    .retry_of(fresh.retry_of)
                    .ticket(fresh.approval.map(|approval| approval.ticket));
                approval = fresh.approval;
                issue = Some(store::Issue {
                    act: fresh.new_act.clone(),
                    grant,
                    now,
                    receipts: Vec::new(),
                });
            }
            Origin::Stored => {
                let row = self.row(act.candidate_act_id)?;
                draft = self.draft_of(ReceiptKind::Dispatched, current, &row, State::Dispatched);
            }
        }
        let receipt = draft
            .policy(current.policy_digest)
            .signed(signed.authority, signed.verification)
            .effect(effect, idempotency_key)
            .entry()
            .map_err(|_| Code::FailClosed)?;
        Ok(store::Dispatch {
            issue,
            act: act.candidate_act_id,
            authority: grant.authority,
            holder: verified.holder,
            nonce: grant.nonce,
            expected_epochs: current.epochs,
            policy_digest: current.policy_digest,
            revocation_subjects: crate::gate::revocation_subjects(act),
            effect,
            idempotency_key: idempotency_key.map(str::to_owned),
            approval,
            read_back: None,
            objects: Some(signed.sealed),
            now,
            receipts: vec![receipt],
        })
    }

    fn signed_yes(&self, effect: EffectId, verified: &Verified) -> Result<SinkVerification, Code> {
        let mut verification = SinkVerification {
            operation: Operation::DispatchSinkVerify,
            request_id: effect,
            decision: SinkDecision::Allow,
            verification: verified.checks.0,
            consumption: Some(Consumption {
                authority_id: verified.grant.authority,
                status: Default::default(),
            }),
            error: None,
            effectuation: Effectuation {
                permitted: true,
                effect_id: Some(effect),
            },
            mark: self.sink_mark(),
        };
        self.sign_as_sink(&mut verification)?;
        Ok(verification)
    }

    fn signed_refusal(
        &self,
        effect: EffectId,
        checks: verify::CheckList,
        code: Code,
    ) -> Option<SinkVerification> {
        let mut verification = SinkVerification {
            operation: Operation::DispatchSinkVerify,
            request_id: effect,
            decision: SinkDecision::Deny,
            verification: checks.0,
            consumption: None,
            error: Some(code.into()),
            effectuation: Effectuation {
                permitted: false,
                effect_id: None,
            },
            mark: self.sink_mark(),
        };
        self.sign_as_sink(&mut verification)
            .ok()
            .map(|()| verification)
    }

    /// Records a refusal. A fresh act ends refused. One that was stored stays as it is: whoever presents a stolen or
    /// mutated copy must not be able to spoil the rightful holder's act.
    pub(crate) async fn record_sink_refusal(
        self: &Arc<Self>,
        presented: &Presented,
        code: Code,
        why: &'static str,
        current: &Current,
    ) -> Code {
        let act = &presented.act;
        let Ok(digest) = act.digest() else {
            return Code::FailClosed;
        };
        let (salt, vouched, ticket): (Salt, bool, Option<TicketId>) = match &presented.origin {
            Origin::Fresh(fresh) => (
                fresh.salt,
                fresh.vouched,
                fresh.approval.map(|approval| approval.ticket),
            ),
            Origin::Stored => match self.fresh_salt() {
                Ok(salt) => (salt, false, None),
                Err(code) => return code,
            },
        };
        let draft = self
            .draft(ReceiptKind::Denied, current)
            .act(part_of(act, digest, &salt, true, vouched), State::Refused)
            .code(Some(code))
            .policy(current.policy_digest)
            .ticket(ticket)
            .detail(why);
        let Ok(receipt) = draft.entry() else {
            return Code::FailClosed;
        };
        let now = self.now();
        let receipts = vec![receipt];
        match &presented.origin {
            Origin::Fresh(fresh) => {
                let whose = if fresh.escalated {
                    store::Whose::Existing(act.candidate_act_id)
                } else {
                    store::Whose::New(Box::new(fresh.new_act.clone()))
                };
                let refuse = store::Refuse {
                    whose,
                    to: State::Refused,
                    code: Some(code),
                    answered_by: None,
                    now,
                    receipts,
                };
                self.commit_denial(refuse, code).await
            }
            Origin::Stored => self.commit_note(store::Note { now, receipts }, code).await,
        }
    }
}

//= PROFILE §5: the idempotency key is derived from the first act of the chain
/// The key every attempt of one chain of retries shares.
fn idempotency_key(first_of_chain: ActId) -> String {
    Digest::sha256(first_of_chain.to_string().as_bytes()).to_base64url()
}
