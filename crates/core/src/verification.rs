//! What a finality sink found when an authority was presented to it (draft §12.2 `DispatchSinkVerify`).

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::id::{AuthorityId, EffectId};
use crate::json;
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
    #[serde(deserialize_with = "json::present")]
    pub consumption: Option<Consumption>,
    /// Present when denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
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

/// The draft's ten checks with the profile's additions. A check that holds is written in the draft's own word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the draft's own words, one for one")]
pub struct Checks {
    #[serde(with = "valid")]
    pub authority_signature: Check,
    #[serde(with = "matches")]
    pub candidate_act_binding: Check,
    #[serde(with = "matches")]
    pub tool_scope: Check,
    #[serde(with = "matches")]
    pub args_digest: Check,
    #[serde(with = "matches")]
    pub destination: Check,
    #[serde(with = "matches")]
    pub consequence_class: Check,
    #[serde(with = "matches")]
    pub holder: Check,
    #[serde(with = "fresh")]
    pub nonce: Check,
    #[serde(with = "current")]
    pub policy_epoch: Check,
    #[serde(with = "current")]
    pub authority_epoch: Check,
    #[serde(with = "current")]
    pub revocation_epoch: Check,
    #[serde(with = "current")]
    pub expiry: Check,
    #[serde(with = "unused")]
    pub consumption_state: Check,
    #[serde(with = "matches")]
    pub sink_binding: Check,
}

/// How one check came out. `FAILED` and `NOT_REACHED` on the wire; what holds has a word of its own per check
/// (draft §12.2), so `Check` is read and written only as a member of [`Checks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    #[serde(deserialize_with = "json::present")]
    pub effect_id: Option<EffectId>,
}

/// A module per word that the draft has for a check that holds, for `#[serde(with)]`.
macro_rules! held_as {
    ($($module:ident = $held:literal;)*) => {$(
        mod $module {
            use serde::{Deserialize, Deserializer, Serializer};

            use super::Check;

            pub(super) fn serialize<S: Serializer>(check: &Check, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(match check {
                    Check::Held => $held,
                    Check::Failed => "FAILED",
                    Check::NotReached => "NOT_REACHED",
                })
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Check, D::Error> {
                match String::deserialize(d)?.as_str() {
                    $held => Ok(Check::Held),
                    "FAILED" => Ok(Check::Failed),
                    "NOT_REACHED" => Ok(Check::NotReached),
                    _ => Err(serde::de::Error::custom(concat!(
                        "must be one of `", $held, "`, `FAILED`, `NOT_REACHED`"
                    ))),
                }
            }
        }
    )*};
}

held_as! {
    valid = "VALID";
    matches = "MATCH";
    fresh = "FRESH";
    current = "CURRENT";
    unused = "UNUSED";
}
