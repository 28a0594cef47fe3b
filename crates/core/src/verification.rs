//! What a finality sink found when an authority was presented to it (draft §12.2 `DispatchSinkVerify`).

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::id::{AuthorityId, EffectId};
use crate::signed::{Mark, ObjectKind, Signed};

/// The sink's answer: every check by name, whether the authority was consumed, whether the effect may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkVerification {
    /// Always `DispatchSinkVerify`.
    pub operation: Operation,
    /// One per presentation.
    pub request_id: EffectId,
    /// ALLOW or DENY.
    pub decision: SinkDecision,
    /// Every check.
    pub verification: Checks,
    /// Present when the authority was consumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumption: Option<Consumption>,
    /// Present when denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<SinkError>,
    /// Whether the effect may run, and under which id.
    pub effectuation: Effectuation,
    /// The sink's signature.
    pub mark: Mark,
}

impl Signed for SinkVerification {
    const KIND: ObjectKind = ObjectKind::Verification;

    fn mark(&self) -> &Mark {
        &self.mark
    }

    fn mark_mut(&mut self) -> &mut Mark {
        &mut self.mark
    }
}

/// The verification's `operation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// `DispatchSinkVerify`
    #[default]
    DispatchSinkVerify,
}

/// The sink's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub enum SinkDecision {
    Allow,
    Deny,
}

/// The draft's ten checks with the profile's additions, each by its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub struct Checks {
    pub authority_signature: Check,
    pub candidate_act_binding: Check,
    pub tool_scope: Check,
    pub args_digest: Check,
    pub destination: Check,
    pub consequence_class: Check,
    pub holder: Check,
    pub nonce: Check,
    pub policy_epoch: Check,
    pub authority_epoch: Check,
    pub revocation_epoch: Check,
    pub expiry: Check,
    pub consumption_state: Check,
    pub sink_binding: Check,
}

/// How one check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Check {
    /// It holds.
    Held,
    /// It does not.
    Failed,
    /// An earlier check failed, so this one was not reached.
    NotReached,
}

/// That an authority was consumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumption {
    /// Which one.
    pub authority_id: AuthorityId,
    /// Always `CONSUMED`.
    pub status: Consumed,
}

/// The one consumption status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Consumed {
    /// `CONSUMED`
    #[default]
    #[serde(rename = "CONSUMED")]
    Consumed,
}

/// Why the sink said no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkError {
    /// The decision code.
    pub code: Code,
    /// Its constant sentence.
    pub message: String,
    /// Whether a NEW act may succeed.
    pub retryable: bool,
}

impl From<Code> for SinkError {
    fn from(code: Code) -> Self {
        Self {
            code,
            message: code.text().to_owned(),
            retryable: code.retryable(),
        }
    }
}

/// Whether the effect may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effectuation {
    /// Only after consumption.
    pub permitted: bool,
    /// The one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_id: Option<EffectId>,
}
