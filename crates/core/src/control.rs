//! Control delivery evidence: how far a control (a change of the rules, a revocation, a withdrawn consent, a new key) has
//! come, and what of that was seen (the guide's "Relation to control-delivery evidence").

use serde::{Deserialize, Serialize};

use crate::id::HolderId;
use crate::json;

/// What a receipt says of a control's way. What nobody saw is never said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlPart {
    /// Which control: [`crate::Epochs::control`] of the epochs it made.
    pub number: u64,
    /// How far it has come, or, with a finding, which step is in question.
    pub stage: ControlStage,
    /// Whose end of a connection it speaks of; absent where it speaks of the control as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub end: Option<ControlEnd>,
    /// The connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub holder_id: Option<HolderId>,
    /// The sink behind the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub sink_id: Option<String>,
    /// Why the step cannot be said to have happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub finding: Option<ControlFinding>,
}

/// The steps of a control, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlStage {
    /// It is committed, and was on its way to this end.
    Emitted,
    /// The sink itself has taken the new epochs.
    Received,
    /// The sink has nothing in flight that was decided on before it.
    Enforced,
    /// The client's own end has said that it was told.
    Observed,
}

impl ControlStage {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Emitted => "emitted",
            Self::Received => "received",
            Self::Enforced => "enforced",
            Self::Observed => "observed",
        }
    }
}

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlEnd {
    /// The sink in front of the server.
    Sink,
    /// The client's process at the socket.
    Client,
}

impl ControlEnd {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sink => "sink",
            Self::Client => "client",
        }
    }
}

/// Why a step cannot be said to have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlFinding {
    /// The end went away before it was seen. It may have happened.
    Missing,
    /// What the end said does not fit what it was told.
    Conflict,
}

impl ControlFinding {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Conflict => "conflict",
        }
    }
}
