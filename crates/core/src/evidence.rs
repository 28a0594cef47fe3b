//! Protected validation evidence: what the PED found, signed before any authority is usable (draft §12.2).

use serde::{Deserialize, Deserializer, Serialize};

use crate::Timestamp;
use crate::act::Version;
use crate::digest::Digest;
use crate::id::{ActId, EvidenceId};
use crate::json;
use crate::signed::{self, BatchPlace, KeyId, Mark, ObjectKind, SignatureAlgorithm, Signed};

/// The evidence behind an ALLOW. The draft publishes a sample and no schema; `schemas/` has ours (PROFILE §2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationEvidence {
    /// Always `1.0`.
    pub version: Version,
    /// Always `protected_validation_evidence`.
    pub object_type: EvidenceObject,
    /// This evidence.
    pub evidence_id: EvidenceId,
    /// The act it speaks of.
    pub candidate_act_id: ActId,
    /// The whole act's digest.
    pub candidate_act_digest: Digest,
    /// Evidence exists for ALLOW alone; a denial is a receipt.
    pub decision: Allow,
    /// Every predicate; all of them held.
    #[serde(deserialize_with = "all_hold")]
    pub validated_predicates: Predicates,
    /// What the decision stood on.
    pub protected_state: ProtectedState,
    /// The pinned definition's digest (PROFILE §8).
    pub tool_definition_digest: Digest,
    /// The earlier act this one repeats after reconciliation, or continues after `input_required`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub retry_of: Option<ActId>,
    /// Digest over the canonical `inputResponses` and `requestState` of a multi-round retry (PROFILE §3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub continuation_digest: Option<Digest>,
    /// The approval that licensed it, when a person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub approval_digest: Option<Digest>,
    /// The chain of delegations that its agent acts under ([`crate::delegation::Chain::digest`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub delegation_digest: Option<Digest>,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// Who protects it.
    pub protector: Protector,
}

impl Signed for ValidationEvidence {
    const KIND: ObjectKind = ObjectKind::Evidence;

    fn mark(&self) -> &Mark {
        &self.protector.mark
    }

    fn mark_mut(&mut self) -> &mut Mark {
        &mut self.protector.mark
    }
}

/// The evidence's `object_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EvidenceObject {
    /// `protected_validation_evidence`
    #[default]
    #[serde(rename = "protected_validation_evidence")]
    ProtectedValidationEvidence,
}

/// The one decision evidence can carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allow {
    /// `ALLOW`
    #[default]
    #[serde(rename = "ALLOW")]
    Allow,
}

/// The draft's ten predicates. All are `true` in evidence; a receipt of a denial shows which was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub struct Predicates {
    pub principal_authorized: bool,
    pub agent_identity_valid: bool,
    pub tool_scope_valid: bool,
    pub purpose_valid: bool,
    pub instruction_provenance_valid: bool,
    pub destination_valid: bool,
    pub policy_epoch_valid: bool,
    pub revocation_state_valid: bool,
    pub freshness_valid: bool,
    pub sink_binding_valid: bool,
}

impl Predicates {
    /// Every predicate holds.
    pub const HOLD: Self = Self {
        principal_authorized: true,
        agent_identity_valid: true,
        tool_scope_valid: true,
        purpose_valid: true,
        instruction_provenance_valid: true,
        destination_valid: true,
        policy_epoch_valid: true,
        revocation_state_valid: true,
        freshness_valid: true,
        sink_binding_valid: true,
    };
}

/// What the decision stood on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectedState {
    /// The digest of the applied configuration.
    pub state_reference: String,
    /// The holder's nonce counter.
    pub monotonic_counter: u64,
}

/// Who protects an evidence. On the wire the mark's members stand beside `type`, as the draft writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ProtectorWire", into = "ProtectorWire")]
pub struct Protector {
    /// What kind of key signed.
    pub protector_type: ProtectorType,
    /// Which key, which algorithm, and the signature.
    pub mark: Mark,
}

/// What kind of key protects evidence (PROFILE §2). A file key is a software signature and says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(
    missing_docs,
    clippy::enum_variant_names,
    reason = "the profile's own words, one for one"
)]
pub enum ProtectorType {
    SoftwareSignature,
    HsmSignature,
    TeeSignature,
}

fn all_hold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Predicates, D::Error> {
    let predicates = Predicates::deserialize(deserializer)?;
    if predicates == Predicates::HOLD {
        Ok(predicates)
    } else {
        Err(serde::de::Error::custom(
            "every predicate of an evidence must be `true`",
        ))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProtectorWire {
    #[serde(rename = "type")]
    protector_type: ProtectorType,
    key_id: KeyId,
    algorithm: SignatureAlgorithm,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "signed::signature")]
    signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    batch: Option<BatchPlace>,
}

impl From<Protector> for ProtectorWire {
    fn from(
        Protector {
            protector_type,
            mark,
        }: Protector,
    ) -> Self {
        Self {
            protector_type,
            key_id: mark.key_id,
            algorithm: mark.algorithm,
            signature: mark.signature,
            batch: mark.batch,
        }
    }
}

impl From<ProtectorWire> for Protector {
    fn from(wire: ProtectorWire) -> Self {
        Self {
            protector_type: wire.protector_type,
            mark: Mark {
                key_id: wire.key_id,
                algorithm: wire.algorithm,
                signature: wire.signature,
                batch: wire.batch,
            },
        }
    }
}
