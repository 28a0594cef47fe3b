//! What applying a configuration would change.

use lychgate_core::Digest;
use lychgate_keys::verdict::Challenge;
use serde::{Deserialize, Serialize};

/// What applying a configuration would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The configuration it starts from; goes into the change.
    pub from: Digest,
    /// The new one; goes into the change.
    pub to: Digest,
    /// What narrows and what widens.
    pub changes: Vec<ChangeView>,
    /// Whether the approver's key is needed.
    pub wants_approver: bool,
    /// To be signed with it.
    pub challenge: Challenge,
}

/// One difference between two configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeView {
    /// Which way it goes.
    pub effect: Effect,
    /// What changes, escaped for a terminal.
    pub text: String,
}

/// Which way a change goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Less passes than before.
    Narrows,
    /// Neither.
    Neutral,
    /// More may pass than before.
    Widens,
}

impl From<lychgate_policy::Effect> for Effect {
    fn from(effect: lychgate_policy::Effect) -> Self {
        match effect {
            lychgate_policy::Effect::Narrows => Self::Narrows,
            lychgate_policy::Effect::Neutral => Self::Neutral,
            lychgate_policy::Effect::Widens => Self::Widens,
        }
    }
}
