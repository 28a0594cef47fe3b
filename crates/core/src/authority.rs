//! Finality authority: scoped, single-use, non-bearer (draft §12.2, PROFILE §4).

use serde::{Deserialize, Serialize};

use crate::act::{ActType, Destination, Version};
use crate::digest::Digest;
use crate::epoch::Epochs;
use crate::id::{ActId, AuthorityId, EvidenceId, HolderId, Nonce};
use crate::json;
use crate::signed::{self, BatchPlace, KeyId, Mark, ObjectKind, SignatureAlgorithm, Signed};
use crate::{ConsequenceClass, Timestamp};

/// What the PED hands to the sink for one act. A stolen copy is useless at another sink, from another holder, a second
/// time, or after an epoch moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalityAuthority {
    /// Always `1.0`.
    pub version: Version,
    /// Always `agent_finality_authority`.
    pub object_type: AuthorityObject,
    /// This authority.
    pub authority_id: AuthorityId,
    /// The act it is for.
    pub candidate_act_id: ActId,
    /// The evidence it rests on.
    pub evidence_id: EvidenceId,
    /// What it permits.
    pub scope: Scope,
    /// What it is bound to.
    pub binding: Binding,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// Who issued it.
    pub issuer: Issuer,
}

impl Signed for FinalityAuthority {
    const KIND: ObjectKind = ObjectKind::Authority;

    fn mark(&self) -> &Mark {
        &self.issuer.mark
    }

    fn mark_mut(&mut self) -> &mut Mark {
        &mut self.issuer.mark
    }
}

/// The authority's `object_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthorityObject {
    /// `agent_finality_authority`
    #[default]
    #[serde(rename = "agent_finality_authority")]
    AgentFinalityAuthority,
}

/// What an authority permits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The act's type.
    pub act_type: ActType,
    /// The tool.
    pub tool_id: String,
    /// The function.
    pub function_id: String,
    /// What is really connected (PROFILE §8).
    pub tool_endpoint: String,
    /// The pinned definition's digest (PROFILE §8).
    pub tool_definition_digest: Digest,
    /// The whole destination; compared as a whole.
    pub permitted_destination: Destination,
    /// The class.
    pub permitted_consequence_class: ConsequenceClass,
}

/// What an authority is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The whole act.
    pub candidate_act_digest: Digest,
    /// The canonical arguments.
    pub arguments_digest: Digest,
    /// Digest of a multi-round retry's inputs, when it is one (PROFILE §3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub continuation_digest: Option<Digest>,
    /// The only connection that may present it.
    pub holder_id: HolderId,
    /// The act's nonce.
    pub nonce: Nonce,
    /// See [`Epochs::policy_epoch`].
    pub policy_epoch: u64,
    /// See [`Epochs::authority_epoch`].
    pub authority_epoch: u64,
    /// See [`Epochs::revocation_epoch`].
    pub revocation_epoch: u64,
    /// The applied configuration's digest.
    pub policy_digest: Digest,
    /// The only sink it is good at.
    pub finality_sink_id: String,
}

impl Binding {
    /// The three epochs.
    pub fn epochs(&self) -> Epochs {
        Epochs {
            policy_epoch: self.policy_epoch,
            authority_epoch: self.authority_epoch,
            revocation_epoch: self.revocation_epoch,
        }
    }
}

/// How long an authority lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lifetime {
    /// From here.
    pub issued_at: Timestamp,
    /// To here, exclusive (10 s by default).
    pub expires_at: Timestamp,
    /// Always `true`.
    pub single_use: True,
}

/// The constant `true`: nothing else is representable, so no authority says `single_use: false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct True;

impl From<True> for bool {
    fn from(_: True) -> bool {
        true
    }
}

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value {
            Ok(Self)
        } else {
            Err("only `true` is allowed here")
        }
    }
}

/// Who issued an authority. On the wire the mark's members stand beside `ped_id`, as the draft writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "IssuerWire", into = "IssuerWire")]
pub struct Issuer {
    /// The Protected Enforcement Domain.
    pub ped_id: String,
    /// Which key, which algorithm, and the signature.
    pub mark: Mark,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerWire {
    ped_id: String,
    key_id: KeyId,
    algorithm: SignatureAlgorithm,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "signed::signature")]
    signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    batch: Option<BatchPlace>,
}

impl From<Issuer> for IssuerWire {
    fn from(Issuer { ped_id, mark }: Issuer) -> Self {
        Self {
            ped_id,
            key_id: mark.key_id,
            algorithm: mark.algorithm,
            signature: mark.signature,
            batch: mark.batch,
        }
    }
}

impl From<IssuerWire> for Issuer {
    fn from(wire: IssuerWire) -> Self {
        Self {
            ped_id: wire.ped_id,
            mark: Mark {
                key_id: wire.key_id,
                algorithm: wire.algorithm,
                signature: wire.signature,
                batch: wire.batch,
            },
        }
    }
}
