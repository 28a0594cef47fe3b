//! The candidate act: an operation a model or agent selected, held non-effective (draft §6, §12.1).
//!
//! The object has exactly the draft's fields, nested objects are closed too (PROFILE §2), and its digest is SHA-256
//! over its canonical form.

use serde::{Deserialize, Serialize};

use crate::digest::{Algorithm, Digest};
use crate::epoch::Epochs;
use crate::id::{ActId, GateId, Nonce};
use crate::json::{self, ShapeFault};
use crate::{ConsequenceClass, Timestamp};

/// A candidate act (draft §12.1). Every field comes from the gate, its configuration or the live request, never from
/// the model's own words about itself (PROFILE §11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateAct {
    /// Always `1.0`.
    pub version: Version,
    /// Always `agent_candidate_act`.
    pub object_type: ActObject,
    /// Fresh for every emission; two equal calls are two acts.
    pub candidate_act_id: ActId,
    /// What kind of operation it is.
    pub act_type: ActType,
    /// When the gate minted it.
    pub created_at: Timestamp,
    /// After this it is never dispatched.
    pub expires_at: Timestamp,
    /// On whose behalf.
    pub initiating_principal: Principal,
    /// Which agent proposes it.
    pub agent: Agent,
    /// The exact tool and function.
    pub tool: Tool,
    /// What it is declared to be for.
    pub purpose: Purpose,
    /// The digest of the canonical arguments.
    pub arguments_digest: ArgumentsDigest,
    /// Where it would take effect, when it could be resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub destination: Option<Destination>,
    /// From the catalogue.
    pub consequence_class: ConsequenceClass,
    /// The epochs it was minted under.
    pub policy_state: PolicyState,
    /// Nonce, sequence, session.
    pub freshness: Freshness,
    /// Who asked for it; absent means UNKNOWN and is never defaulted to `user` (PROFILE §2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub instruction_provenance: Option<InstructionProvenance>,
    /// The one sink that may perform it.
    pub finality_sink: FinalitySink,
}

impl CandidateAct {
    /// SHA-256 over the canonical form of the whole act (PROFILE §3).
    ///
    /// # Errors
    /// When a number of the act lies outside what canonical JSON can carry.
    pub fn digest(&self) -> Result<Digest, ShapeFault> {
        Ok(Digest::sha256(&json::to_canonical(self)?))
    }
}

/// The draft's one version of these objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// `1.0`
    #[default]
    #[serde(rename = "1.0")]
    V1,
}

/// The act's `object_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActObject {
    /// `agent_candidate_act`
    #[default]
    #[serde(rename = "agent_candidate_act")]
    AgentCandidateAct,
}

/// What kind of operation an act is (draft §12.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub enum ActType {
    ToolCall,
    FunctionCall,
    ApiRequest,
    BrowserAction,
    ShellAction,
    MessageSend,
    FileWrite,
    MemoryWrite,
    AgentDelegation,
    PaymentRequest,
    Other,
}

/// On whose behalf an act is proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    /// From configuration or a verified identity.
    pub principal_id: String,
    /// What the principal is.
    pub principal_type: PrincipalType,
    /// The session's consent record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub authorization_context_id: Option<String>,
}

/// What a principal is (draft §12.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub enum PrincipalType {
    User,
    Service,
    Enterprise,
    Device,
    Agent,
}

/// The agent that proposes an act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The configured agent id.
    pub agent_id: String,
    /// The running gate.
    pub runtime_id: GateId,
    /// Known only from a model proxy or a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub model_id: Option<String>,
    /// Known only from a model proxy or a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub model_version: Option<String>,
    /// Passed through from configuration only (PROFILE §2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub alf_digest: Option<String>,
    /// Agent-to-agent hops from the initiating principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub delegation_depth: Option<u32>,
    /// The agent that delegated to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub parent_agent_id: Option<String>,
}

/// The tool and function an act names (PROFILE §8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The server's name in the catalogue.
    pub tool_id: String,
    /// The function's exact name on that server.
    pub function_id: String,
    /// What is really connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub tool_endpoint: Option<String>,
    /// How it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub tool_protocol: Option<ToolProtocol>,
}

/// How a tool is reached (draft §12.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub enum ToolProtocol {
    Mcp,
    HttpApi,
    LocalFunction,
    Browser,
    Shell,
    A2a,
    Other,
}

/// What an act is declared to be for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purpose {
    /// The configured purpose.
    pub purpose_id: String,
    /// Its text.
    pub declared_purpose: String,
    /// The digest of the user message that licenses the act, when provenance found one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub user_intent_reference: Option<String>,
    /// Moves when purposes are reconfigured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub purpose_epoch: Option<u64>,
}

/// The digest of the canonical arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentsDigest {
    /// Which hash.
    pub algorithm: Algorithm,
    /// Base64url without padding.
    pub value: String,
    /// Always JCS here; `implementation-defined` is not accepted.
    pub canonicalization: Canonicalization,
}

impl ArgumentsDigest {
    /// Wraps a digest of canonical arguments.
    pub fn new(digest: &Digest) -> Self {
        Self {
            algorithm: digest.algorithm(),
            value: digest.to_base64url(),
            canonicalization: Canonicalization::Jcs,
        }
    }
}

/// How arguments were made canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Canonicalization {
    /// RFC 8785.
    #[serde(rename = "JCS")]
    Jcs,
}

/// Where an act would take effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// A canonical name, or `set:` and the digest of the sorted set of several (PROFILE §11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub destination_id: Option<String>,
    /// The endpoint behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub endpoint: Option<String>,
    /// From the destination registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub jurisdiction: Option<String>,
    /// Who receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub recipient_id: Option<String>,
}

/// The epochs an act was minted under, and the profile's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyState {
    /// See [`Epochs::policy_epoch`].
    pub policy_epoch: u64,
    /// See [`Epochs::authority_epoch`].
    pub authority_epoch: u64,
    /// See [`Epochs::revocation_epoch`].
    pub revocation_epoch: u64,
    /// `strict` or `balanced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub policy_profile_id: Option<String>,
}

impl PolicyState {
    /// The three epochs.
    pub fn epochs(&self) -> Epochs {
        Epochs {
            policy_epoch: self.policy_epoch,
            authority_epoch: self.authority_epoch,
            revocation_epoch: self.revocation_epoch,
        }
    }
}

/// What keeps an act from being replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freshness {
    /// The holder's id and its growing counter.
    pub nonce: Nonce,
    /// Counter per session (PROFILE §2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub sequence: Option<u64>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub session_id: Option<String>,
}

/// Who asked for an act.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionProvenance {
    /// Digest of the instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub instruction_digest: Option<String>,
    /// Which channel it came through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub source_type: Option<SourceType>,
    /// Digest of the chain of trusted instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub trusted_chain_digest: Option<String>,
}

/// Where an instruction came from (draft §12.1). The draft's enum has no UNKNOWN: that is the absence of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub enum SourceType {
    User,
    System,
    Developer,
    Tool,
    Retrieval,
    Memory,
    Agent,
}

impl SourceType {
    /// Every source.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::System,
        Self::Developer,
        Self::Tool,
        Self::Retrieval,
        Self::Memory,
        Self::Agent,
    ];

    /// The small number the store keeps; stable for ever.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// From the store's number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    //= PROFILE §9: untrusted is tool, retrieval, memory, agent, UNKNOWN
    /// Whether an instruction from here may stand behind a high-risk act.
    pub fn trusted(self) -> bool {
        matches!(self, Self::User | Self::System | Self::Developer)
    }
}

/// The sink an act is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalitySink {
    /// The sink's own id.
    pub sink_id: String,
    /// What it gates.
    pub sink_type: SinkType,
}

/// What a sink gates (draft §12.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub enum SinkType {
    ToolDispatch,
    ApiGateway,
    BrowserController,
    ShellGateway,
    MessageGateway,
    FileCommit,
    MemoryCommit,
    Other,
}
