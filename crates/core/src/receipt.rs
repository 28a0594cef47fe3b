//! Receipts: what the sequenced record keeps of every step (the guide's LAVR; PROFILE §5, §10).
//!
//! A receipt carries digests, ids and an allowlist of fields. Whatever has little entropy (the arguments digest, the
//! destination, the recipient) stands in it as a salted [`Commitment`]; the salt stays in the store and is opened only
//! for someone entitled to it.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::act::{SourceType, Version};
use crate::code::Code;
use crate::control::ControlPart;
use crate::digest::{Algorithm, Digest, DigestError, b64};
use crate::epoch::Epochs;
use crate::evidence::Predicates;
use crate::id::{ActId, AuthorityId, DelegationId, EffectId, EvidenceId, GateId, TicketId};
use crate::json::{self, ShapeFault};
use crate::signed::KeyId;
use crate::{ConsequenceClass, State, Timestamp};

/// One step, recorded in the same transaction as what it records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Always `1.0`.
    pub version: Version,
    /// Always `validation_receipt`.
    pub object_type: ReceiptObject,
    /// Which step.
    pub kind: ReceiptKind,
    /// When.
    pub at: Timestamp,
    /// By which running gate.
    pub gate_id: GateId,
    /// The act it speaks of; absent for steps of the gate itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub act: Option<ActPart>,
    /// The state the act is in after this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub state: Option<State>,
    /// Why it was not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub code: Option<Code>,
    /// The PED's predicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub predicates: Option<Predicates>,
    /// The epochs of the decision.
    pub epochs: Epochs,
    /// The applied configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub policy_digest: Option<Digest>,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub evidence_id: Option<EvidenceId>,
    /// The evidence's leaf hash ([`crate::signed::leaf_of`]): of what was signed, without the signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub evidence_digest: Option<Digest>,
    /// The authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub authority_id: Option<AuthorityId>,
    /// The authority's leaf hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub authority_digest: Option<Digest>,
    /// The leaf hash of the sink's verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub verification_digest: Option<Digest>,
    /// The attempt at the effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub effect_id: Option<EffectId>,
    /// The idempotency key passed to the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub idempotency_key: Option<String>,
    /// The earlier act this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub retry_of: Option<ActId>,
    /// Which attempt at the effect this is: 1 for a first act, one more for each along `retry_of`. Of dispatched acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub attempt: Option<NonZeroU32>,
    /// The escalation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub ticket_id: Option<TicketId>,
    /// The approver's key, when an approver acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub approver_key: Option<KeyId>,
    /// Of a control: which, and how far it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub control: Option<ControlPart>,
    /// How binding the gate is on this path.
    pub enforcement: Enforcement,
    /// Whether the gate and the agent share a user.
    pub isolation: Isolation,
    /// Whether escalations have an approver at all.
    pub approver: Approver,
    /// The precise reason, from our own closed set of phrases; never arguments, never a tool's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub detail: Option<String>,
}

impl Receipt {
    /// The canonical bytes: what the record keeps and what its leaf hash covers.
    ///
    /// # Errors
    /// When a number lies outside what canonical JSON can carry.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ShapeFault> {
        json::to_canonical(self)
    }
}

/// The receipt's `object_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiptObject {
    /// `validation_receipt`
    #[default]
    #[serde(rename = "validation_receipt")]
    ValidationReceipt,
}

/// Which step a receipt records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptKind {
    /// The PED allowed an act whose authority is presented later.
    Allowed,
    /// The PED or the sink denied an act.
    Denied,
    /// The PED asked for a person.
    Escalated,
    /// An approver's yes.
    Approved,
    /// An approver's yes to a ticket that wants more than this one.
    ApprovalCounted,
    /// An approver's no.
    Disapproved,
    /// A ticket or an authority ran out, or its caller went away.
    Lapsed,
    /// The sink consumed an authority; the effect may run.
    Dispatched,
    /// What became of it.
    Outcome,
    /// Reconciliation of an indeterminate act.
    Reconciled,
    /// A configuration was applied.
    Applied,
    /// Something was revoked.
    Revoked,
    /// An envelope was opened: equal kinds of acts go the hot path for a while (PROFILE §9).
    EnvelopeOpened,
    /// An envelope was closed. A start of the gate closes all there are.
    EnvelopeClosed,
    /// A revocation was taken back.
    Restored,
    /// A consent was granted.
    Consented,
    /// A consent was withdrawn.
    ConsentWithdrawn,
    /// How far a control has come at one sink or client, or that this cannot be said.
    ControlDelivered,
    /// A key was made, rotated or retired.
    KeyChanged,
    /// An approver let the gate go on with a record that its anchor contradicts (PROFILE §10).
    AnchorAccepted,
    /// The bytes of archived lines of the record were dropped; their leaf hashes stay.
    Pruned,
    /// A client method that is no act was passed on and is worth a line (elicitation, MCP.md).
    Noted,
    /// The gate started.
    Started,
    /// The gate stopped.
    Stopped,
}

/// What a receipt says of its act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActPart {
    /// The act.
    pub candidate_act_id: ActId,
    /// Its digest; absent where a request never became an act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub candidate_act_digest: Option<Digest>,
    /// The agent.
    pub agent_id: String,
    /// Hops from the principal.
    pub delegation_depth: u32,
    /// The last link of the chain it acts under; absent for the principal's own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub delegation_id: Option<DelegationId>,
    /// The server in the catalogue; absent when the name resolved to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub tool_id: Option<String>,
    /// The function in the catalogue; absent when the name resolved to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub function_id: Option<String>,
    /// The class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub consequence_class: Option<ConsequenceClass>,
    /// Commits to the arguments digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub arguments_commitment: Option<Commitment>,
    /// Commits to the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub destination_commitment: Option<Commitment>,
    /// Who asked; absent means UNKNOWN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub source_type: Option<SourceType>,
    /// Whether the source is only what configuration vouches for (PROFILE §10).
    pub vouched: bool,
}

/// How binding the gate is on a path (PROFILE §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The sink performs the effect itself.
    Finality,
    /// A hook outside our sandbox; never counted as finality.
    Advisory,
}

/// Whether the gate is out of the agent's reach (PROFILE §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Agent and gate run as one user: rewriting the gate's files is detected at best.
    SameUser,
    /// They do not.
    SeparateUser,
}

/// Whether escalations have an approver (PROFILE §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// An approver key exists.
    Key,
    /// `init --no-approver`: escalations deny, `apply` wants no key.
    None,
}

/// A salted commitment to a value of little entropy: base64url of SHA-256(salt ‖ label ‖ 0x00 ‖ value).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Commitment(String);

impl From<Commitment> for String {
    fn from(commitment: Commitment) -> Self {
        commitment.0
    }
}

impl TryFrom<String> for Commitment {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        Digest::from_base64url(Algorithm::Sha256, &text)?;
        Ok(Self(text))
    }
}

impl Commitment {
    /// Commits to `value` under `label` with the salt of that field ([`Salt::of_field`]).
    pub fn to(salt: &Salt, label: &str, value: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(salt.0.len() + label.len() + 1 + value.len());
        bytes.extend_from_slice(&salt.0);
        bytes.extend_from_slice(label.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(value);
        Self(b64::encode(Digest::sha256(&bytes).bytes()))
    }
}

/// The sixteen random bytes behind one act's commitments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt(pub [u8; 16]);

impl Salt {
    /// The salt of one field. Opening one field's commitment hands out nothing that helps to guess another's.
    pub fn of_field(&self, label: &str) -> Self {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(b"lychgate field salt\0");
        bytes.extend_from_slice(&self.0);
        bytes.extend_from_slice(label.as_bytes());
        let digest = Digest::sha256(&bytes);
        let mut salt = [0; 16];
        salt.iter_mut()
            .zip(digest.bytes())
            .for_each(|(to, from)| *to = *from);
        Self(salt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commitment_depends_on_salt_label_and_value() {
        let salt = Salt([1; 16]);
        let base = Commitment::to(&salt, "arguments", b"x");
        assert_eq!(base, Commitment::to(&salt, "arguments", b"x"));
        assert_ne!(base, Commitment::to(&Salt([2; 16]), "arguments", b"x"));
        assert_ne!(base, Commitment::to(&salt, "destination", b"x"));
        assert_ne!(base, Commitment::to(&salt, "arguments", b"y"));
        assert_ne!(salt.of_field("arguments"), salt.of_field("destination"));
        assert_ne!(salt.of_field("arguments"), salt);
    }
}
