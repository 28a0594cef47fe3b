//! A delegation: a bounded part of one agent's standing, handed to another (draft §5.9, §10; PROFILE §9).
//!
//! It allows nothing by itself: every act under it still needs an authority of its own. It only says what its holder can
//! ask for at most, and each link of a chain says at most what the one above it says ([`Chain`]).

mod chain;
mod file;
mod grant;

use serde::{Deserialize, Serialize};

pub use self::chain::{Broken, Chain, Exceeds, MOST_LINKS};
pub use self::file::{DelegationFile, FileFault, FileObject, MOST_BYTES, NotASecret, Secret};
pub use self::grant::{
    Budget, ClassSet, Grant, Name, NotASet, Rate, Spend, TextSet, ToolSet, Window, names_tool,
};
use crate::act::{Principal, Version};
use crate::digest::Digest;
use crate::id::{ActId, DelegationId};
use crate::json;
use crate::signed::{self, Mark, ObjectKind, Signed};
use crate::{Epochs, Timestamp};

/// One link: what one agent granted to another. Signed by the PED when the act that made it had been allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delegation {
    /// Always `1.0`.
    pub version: Version,
    /// Always `agent_delegation`.
    pub object_type: DelegationObject,
    /// This link.
    pub delegation_id: DelegationId,
    /// The link it hangs from; absent when the principal's own agent granted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub parent_delegation_id: Option<DelegationId>,
    /// The act of type AGENT_DELEGATION that made it; its nonce kept it from being made twice.
    pub candidate_act_id: ActId,
    /// On whose behalf the chain acts: the same in every link.
    pub initiating_principal: Principal,
    /// Who grants.
    pub parent_agent_id: AgentName,
    /// Who is granted.
    pub child_agent_id: AgentName,
    /// Hops from the principal's own agent to the child: 1 for the first link.
    pub delegation_depth: u32,
    /// What is granted.
    pub grant: Grant,
    /// Who alone may come with it.
    pub holder: HolderBinding,
    /// The configuration it was granted under.
    pub policy_digest: Digest,
    /// The epochs it was granted under. It is void once the authority epoch has moved.
    pub epochs: Epochs,
    /// From here.
    pub issued_at: Timestamp,
    /// To here, exclusive.
    pub expires_at: Timestamp,
    /// The PED's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

impl Signed for Delegation {
    const KIND: ObjectKind = ObjectKind::Delegation;

    fn mark(&self) -> &Mark {
        &self.mark
    }

    fn mark_mut(&mut self) -> &mut Mark {
        &mut self.mark
    }
}

/// The delegation's `object_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DelegationObject {
    /// `agent_delegation`
    #[default]
    #[serde(rename = "agent_delegation")]
    AgentDelegation,
}

/// Who may come with a delegation: a copy of it is of no use to another user, nor to one who lacks the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HolderBinding {
    /// The operating-system user, as the kernel names it.
    pub uid: u32,
    /// SHA-256 of the secret that was handed out once, with the delegation.
    pub secret_digest: Digest,
}

/// An agent's name: 1 to 128 ASCII letters, digits and `_ - . : @`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

/// A text that names no agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an agent's name has 1 to 128 ASCII letters, digits and `_ - . : @`")]
pub struct NotAnAgentName;

impl AgentName {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = NotAnAgentName;

    fn try_from(text: String) -> Result<Self, NotAnAgentName> {
        let plain = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'@')
        };
        if (1..=128).contains(&text.len()) && text.bytes().all(plain) {
            Ok(Self(text))
        } else {
            Err(NotAnAgentName)
        }
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}
