//! Envelopes on the wire.

use lychgate_core::act::SourceType;
use lychgate_core::id::{ActId, EnvelopeId};
use lychgate_core::{ConsequenceClass, Timestamp, json};
use serde::{Deserialize, Serialize};

/// An open envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeView {
    /// Which.
    pub id: EnvelopeId,
    /// The act it was opened by.
    pub act: ActId,
    /// Whose acts go by it.
    pub agent: String,
    /// At which server.
    pub tool: String,
    /// Of which function.
    pub function: String,
    /// To which destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub destination: Option<String>,
    /// Of which class.
    pub class: ConsequenceClass,
    /// On whose instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub source: Option<SourceType>,
    /// A person granted it, not the configuration.
    pub granted: bool,
    /// Acts that went by it.
    pub used: u64,
    /// Acts it has in all.
    pub acts: u64,
    /// When it ends at the latest.
    pub until: Timestamp,
}
