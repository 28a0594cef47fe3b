//! Evidence, then authority: what an ALLOW consists of (draft §8.2, §12.2).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use lychgate_core::authority::{Binding, FinalityAuthority, Issuer, Lifetime, Scope};
use lychgate_core::evidence::{
    Predicates, ProtectedState, Protector, ProtectorType, ValidationEvidence,
};
use lychgate_core::id::{ActId, AuthorityId, EvidenceId};
use lychgate_core::signed::unsigned;
use lychgate_core::{Code, Digest, Timestamp};
use lychgate_store as store;

use super::Allowed;
use crate::envelope::Hot;
use crate::gate::Gate;
use crate::hold::HeldAct;
use crate::sink::{Fresh, Origin, Presented};

impl Gate {
    /// Makes evidence and authority. They are signed, kept and usable only with the commit at the sink: once a commit
    /// group, before anything in it is consumed (PROFILE §3).
    pub(super) fn issue(
        self: &Arc<Self>,
        held: HeldAct,
        predicates: Predicates,
        approval: Option<store::Approval>,
    ) -> Result<Allowed, Box<(HeldAct, Code)>> {
        match self.evidence_and_authority(&held, predicates, approval) {
            Ok((evidence, authority)) => {
                let (said, leaf) = match (unsigned(&evidence), unsigned(&authority)) {
                    (Ok(evidence), Ok(authority)) => (evidence, authority.leaf),
                    _ => return Err(Box::new((held, Code::FailClosed))),
                };
                let act = held.act.candidate_act_id;
                let chain = match self.chain(act, held.predecessor.act()) {
                    Ok(chain) => chain,
                    Err(code) => return Err(Box::new((held, code))),
                };
                let opening = match self.opening(&held, approval) {
                    Ok(opening) => opening.map(Box::new),
                    Err(code) => return Err(Box::new((held, code))),
                };
                let fresh = Fresh {
                    opening,
                    envelope: held.hot,
                    new_act: held.new_act(),
                    escalated: held.escalated.is_some(),
                    evidence_id: evidence.evidence_id,
                    evidence: said,
                    authority: leaf,
                    predicates,
                    approval,
                    retry_of: held.predecessor.act(),
                    chain,
                    vouched: held.vouched,
                    salt: held.salt,
                    subjects: held.revocation_subjects(),
                    charges: held.charges.clone(),
                };
                let presented = Presented {
                    act: held.act.clone(),
                    authority: Some(authority),
                    origin: Origin::Fresh(Box::new(fresh)),
                };
                Ok(Allowed {
                    held,
                    presented,
                    evidence,
                })
            }
            Err(code) => Err(Box::new((held, code))),
        }
    }

    fn evidence_and_authority(
        &self,
        held: &HeldAct,
        predicates: Predicates,
        approval: Option<store::Approval>,
    ) -> Result<(ValidationEvidence, FinalityAuthority), Code> {
        let now = self.now();
        let definition = held.connected.definition.ok_or(Code::ToolSubstitution)?;
        let evidence = self.evidence(held, predicates, approval, definition, now)?;
        let authority = self.authority(held, evidence.evidence_id, definition, now)?;
        Ok((evidence, authority))
    }

    fn evidence(
        &self,
        held: &HeldAct,
        predicates: Predicates,
        approval: Option<store::Approval>,
        definition: Digest,
        now: Timestamp,
    ) -> Result<ValidationEvidence, Code> {
        Ok(ValidationEvidence {
            version: Default::default(),
            object_type: Default::default(),
            evidence_id: EvidenceId::new(now, self.ten()?),
            candidate_act_id: held.act.candidate_act_id,
            candidate_act_digest: held.digest,
            decision: Default::default(),
            validated_predicates: predicates,
            protected_state: ProtectedState {
                state_reference: held.current.policy_digest.to_base64url(),
                monotonic_counter: held.act.freshness.nonce.count,
            },
            tool_definition_digest: definition,
            retry_of: held.predecessor.act(),
            continuation_digest: held.continuation(),
            approval_digest: match (approval, held.hot) {
                (Some(approval), _) => Some(approval.subject),
                (None, Hot::Under { approval, .. }) => approval,
                (None, Hot::Cold | Hot::Strange(_)) => None,
            },
            delegation_digest: held.session.worker().map(|worker| worker.digest),
            issued_at: now,
            protector: Protector {
                protector_type: ProtectorType::SoftwareSignature,
                mark: self.ped_mark(),
            },
        })
    }

    fn authority(
        &self,
        held: &HeldAct,
        evidence: EvidenceId,
        definition: Digest,
        now: Timestamp,
    ) -> Result<FinalityAuthority, Code> {
        let act = &held.act;
        let destination = act.destination.clone();
        let endpoint = act.tool.tool_endpoint.clone();
        let lifetime = Duration::from_millis(held.current.applied.limits().authority);
        let epochs = act.policy_state.epochs();
        Ok(FinalityAuthority {
            version: Default::default(),
            object_type: Default::default(),
            authority_id: AuthorityId::new(now, self.ten()?),
            candidate_act_id: act.candidate_act_id,
            evidence_id: evidence,
            scope: Scope {
                act_type: act.act_type,
                tool_id: act.tool.tool_id.clone(),
                function_id: act.tool.function_id.clone(),
                tool_endpoint: endpoint.ok_or(Code::ToolSubstitution)?,
                tool_definition_digest: definition,
                permitted_destination: destination.ok_or(Code::DestinationUnresolved)?,
                permitted_consequence_class: act.consequence_class,
            },
            binding: Binding {
                candidate_act_digest: held.digest,
                arguments_digest: held.proposal.digest,
                continuation_digest: held.continuation(),
                holder_id: held.session.holder(),
                nonce: act.freshness.nonce,
                policy_epoch: epochs.policy_epoch,
                authority_epoch: epochs.authority_epoch,
                revocation_epoch: epochs.revocation_epoch,
                policy_digest: held.current.policy_digest,
                finality_sink_id: act.finality_sink.sink_id.clone(),
            },
            lifetime: Lifetime {
                issued_at: now,
                expires_at: self.within_consent(held, now.after(lifetime)),
                single_use: Default::default(),
            },
            issuer: Issuer {
                ped_id: self.id().to_string(),
                mark: self.ped_mark(),
            },
        })
    }

    /// Where an act stands in the chain of retries it belongs to.
    pub(crate) fn chain(&self, act: ActId, retry_of: Option<ActId>) -> Result<Chain, Code> {
        let mut chain = Chain {
            first: act,
            attempt: NonZeroU32::MIN,
        };
        let mut earlier = retry_of;
        for _ in 0..LONGEST_CHAIN {
            let Some(one) = earlier.filter(|one| *one != act) else {
                break;
            };
            chain.first = one;
            chain.attempt = chain.attempt.saturating_add(1);
            earlier = self.row(one)?.retry_of;
        }
        Ok(chain)
    }
}

/// An act's place among those that repeat each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The first act.
    pub(crate) first: ActId,
    /// Which attempt this act is: 1 for the first.
    pub(crate) attempt: NonZeroU32,
}

/// A chain of retries this long has stopped being one.
const LONGEST_CHAIN: usize = 64;
