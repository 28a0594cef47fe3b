//! Decision codes (PROFILE §6; draft §13 and §8).
//!
//! A denial shows the model a constant sentence per code and nothing that teaches an attacker. The precise detail goes
//! to the receipt and the console.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal $wire:literal $retry:literal $text:literal;)*) => {
        /// Why an act was not executed. Exhaustive: a new code breaks every table that must know it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in numeric order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The number, e.g. `EF-011`.
            pub fn number(self) -> &'static str {
                match self { $(Self::$name => concat!("EF-", $number),)* }
            }

            /// The name, e.g. `ARGS_SUBSTITUTION`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// Whether submitting a NEW act may succeed without anybody changing anything.
            pub fn retryable(self) -> bool {
                match self { $(Self::$name => $retry,)* }
            }

            /// The constant sentence a model may see.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// The act or its request breaks the closed schema or the strict JSON rules.
    MalformedAct = "001" "MALFORMED_ACT" false "The request is not well formed. Mend the place named and send it again.";
    /// The authority is missing or was never issued by the store.
    NoFinalityAuthority = "002" "NO_FINALITY_AUTHORITY" false "Nothing authorizes this act.";
    /// The authority's integrity does not hold.
    InvalidAuthority = "003" "INVALID_AUTHORITY" false "The authority for this act is not valid.";
    /// The authority expired before it was presented.
    StaleAuthority = "004" "STALE_AUTHORITY" true "The authority for this act has expired. Submit the act anew.";
    /// A single-use authority was presented twice.
    AuthorityAlreadyUsed = "005" "AUTHORITY_ALREADY_USED" false "The authority for this act was already used.";
    /// The nonce or the act id was seen before.
    ReplayDetected = "006" "REPLAY_DETECTED" false "This act was seen before.";
    /// The nonce is not one the gate gave to this holder.
    NonceFailure = "007" "NONCE_FAILURE" false "The act is not fresh.";
    /// The act's digest differs from the one bound in the authority.
    ActMismatch = "010" "ACT_MISMATCH" false "The act is not the one that was authorized.";
    /// The live arguments' digest differs from the bound one.
    ArgsSubstitution = "011" "ARGS_SUBSTITUTION" false "The arguments are not the ones that were authorized.";
    /// The arguments break the tool's pinned schema or the catalogue's roles.
    ScopeMismatch = "012" "SCOPE_MISMATCH" false "The arguments are outside this tool's scope. Mend the place named and send it again.";
    /// The function's catalogue entry does not list the declared purpose.
    PurposeMismatch = "013" "PURPOSE_MISMATCH" false "This function does not serve the declared purpose.";
    /// The class of the live act differs from the permitted one.
    ConsequenceClassMismatch = "014" "CONSEQUENCE_CLASS_MISMATCH" false "The consequence class is not the one that was authorized.";
    /// The agent's allowlist does not name the tool, or no exact name or alias matches.
    ToolNotAuthorized = "015" "TOOL_NOT_AUTHORIZED" false "This tool is not available.";
    /// The tool, its function, its endpoint or its definition is not the pinned one.
    ToolSubstitution = "016" "TOOL_SUBSTITUTION" false "This tool is withheld until its operator has looked at it.";
    /// The authorization context is missing, withdrawn or expired.
    PrincipalNotAuthorized = "017" "PRINCIPAL_NOT_AUTHORIZED" false "The principal's authorization does not cover this act now.";
    /// The live destination differs from the permitted one, or policy does not permit it.
    DestinationMismatch = "020" "DESTINATION_MISMATCH" false "The destination is not the one that was authorized.";
    /// The destination lies in a jurisdiction that policy does not permit.
    JurisdictionMismatch = "021" "JURISDICTION_MISMATCH" false "The destination's jurisdiction is not permitted.";
    /// No destination, jurisdiction or recipient could be resolved where one is needed.
    DestinationUnresolved = "022" "DESTINATION_UNRESOLVED" false "The destination could not be resolved.";
    /// The policy epoch or the policy digest moved.
    PolicyEpochMismatch = "030" "POLICY_EPOCH_MISMATCH" true "The policy has changed meanwhile. Submit the act anew.";
    /// The revocation epoch moved.
    RevocationStateMismatch = "031" "REVOCATION_STATE_MISMATCH" true "The revocation state has changed meanwhile. Submit the act anew.";
    /// The authority epoch moved.
    AuthorityEpochMismatch = "032" "AUTHORITY_EPOCH_MISMATCH" true "Authorizations have changed meanwhile. Submit the act anew.";
    /// The authority names another finality sink.
    SinkMismatch = "040" "SINK_MISMATCH" false "The authority is for another sink.";
    /// A count, rate, spend or time limit is reached.
    EnvelopeExceeded = "043" "ENVELOPE_EXCEEDED" true "A limit for acts of this kind is reached.";
    /// The presenter is not the connection the authority was issued to.
    HolderMismatch = "050" "HOLDER_MISMATCH" false "The authority belongs to another holder.";
    /// The delegation is deeper, or grants less, than the act needs.
    DelegationExceeded = "051" "DELEGATION_EXCEEDED" false "The delegation does not reach this act.";
    /// The call was never emitted by the observed model stream.
    UnobservedAct = "052" "UNOBSERVED_ACT" false "The call was not observed in the model's output.";
    /// Provenance and consequence class do not go together.
    InstructionProvenanceFailure = "053" "INSTRUCTION_PROVENANCE_FAILURE" false "The instruction behind this act is not trusted for its consequences.";
    /// The decision was not reached within its deadline.
    ValidationTimeout = "060" "VALIDATION_TIMEOUT" true "The decision took too long. Submit the act anew.";
    /// The agent, tool, server, destination, session or key is revoked.
    RevocationActive = "062" "REVOCATION_ACTIVE" false "What this act needs has been revoked.";
    /// An equal act is indeterminate, or its answer was not delivered.
    TwinUnresolved = "063" "TWIN_UNRESOLVED" false "An equal act's outcome is unknown. Do not repeat it; reconciliation is under way.";
    /// Policy wants a person to decide.
    EscalationRequired = "070" "ESCALATION_REQUIRED" false "This act waits for a person's approval. Once it is given, send the same call again.";
    /// The approver said no.
    ApprovalDenied = "071" "APPROVAL_DENIED" false "A person denied this act.";
    /// The ticket expired without a decision.
    ApprovalExpired = "072" "APPROVAL_EXPIRED" false "Nobody decided on this act in time.";
    /// An internal fault; the safe answer is no.
    FailClosed = "080" "FAIL_CLOSED" false "The gate could not decide safely, so the act was not executed.";
    /// The store cannot answer.
    ConsumeStateUnavailable = "081" "CONSUME_STATE_UNAVAILABLE" true "The gate's state is unavailable, so the act was not executed.";
}

impl Code {
    //= PROFILE §6: only EF-001 and schema failures (EF-012) may name the JSON pointer at fault
    /// Whether the JSON pointer at fault may be shown to the model, so that an honest one can mend its call.
    pub fn may_name_pointer(self) -> bool {
        matches!(self, Self::MalformedAct | Self::ScopeMismatch)
    }
}

/// A text that is no decision code's number.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a decision code")]
pub struct NotACode(String);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number(), self.name())
    }
}

impl FromStr for Code {
    type Err = NotACode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.number() == text)
            .ok_or_else(|| NotACode(text.to_owned()))
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.number())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_unique_growing_and_read_back() {
        assert!(
            Code::ALL
                .windows(2)
                .all(|pair| pair[0].number() < pair[1].number())
        );
        for &code in Code::ALL {
            assert_eq!(code.number().parse::<Code>().unwrap(), code);
        }
        assert!("EF-999".parse::<Code>().is_err());
    }

    #[test]
    fn what_time_or_a_new_act_can_mend_is_retryable() {
        let retryable: Vec<_> = Code::ALL
            .iter()
            .filter(|code| code.retryable())
            .map(|code| code.number())
            .collect();
        // A limit is reached now and may not be in a moment, when other acts have ended.
        let expected = [
            "EF-004", "EF-030", "EF-031", "EF-032", "EF-043", "EF-060", "EF-081",
        ];
        assert_eq!(retryable, expected);
    }

    #[test]
    fn the_models_text_is_a_plain_sentence() {
        for code in Code::ALL {
            assert!(code.text().ends_with('.'), "{code}");
            assert!(
                !code.text().contains(['{', '}', '`']),
                "{code}: constant, nothing interpolated"
            );
        }
    }
}
