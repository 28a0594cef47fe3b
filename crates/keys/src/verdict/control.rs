//! What an approver signs to let more happen than now: a consent (draft §4.5), and the end of a revocation.

use lychgate_core::act::Version;
use lychgate_core::id::ConsentId;
use lychgate_core::signed::{self, Mark, ObjectKind, Signed};
use lychgate_core::{Subject, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Challenge, Reason, Text};

/// A person's consent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsentGrant {
    /// Always `1.0`.
    pub version: Version,
    /// Always `consent_grant`.
    pub object_type: ConsentObject,
    /// To what.
    pub terms: ConsentTerms,
    /// When it was signed.
    pub at: Timestamp,
    /// The gate's one-time challenge.
    pub challenge: Challenge,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

/// What an agent may do for a principal, and until when. Consent is needed beside everything else: it permits nothing
/// that the configuration does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsentTerms {
    /// Its id: the act's `authorization_context_id`.
    pub consent_id: ConsentId,
    /// On whose behalf.
    pub principal_id: Text<256>,
    /// Which agent.
    pub agent_id: Text<256>,
    /// Servers, and functions as `server/function`; empty: all of them.
    pub functions: Vec<Text<256>>,
    /// Ids of purposes; empty: all of them.
    pub purposes: Vec<Text<256>>,
    /// From here on it covers nothing.
    pub expires_at: Timestamp,
}

/// Terms that no gate takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a consent names at most {MOST_COVERED} functions and as many purposes")]
pub struct TermsFault;

impl ConsentTerms {
    /// Whether a function is covered, for a purpose.
    #[must_use]
    pub fn cover(&self, server: &str, function: &str, purpose: &str) -> bool {
        let function_named = self.functions.iter().any(|named| {
            let named = named.as_str();
            named == server
                || named
                    .split_once('/')
                    .is_some_and(|(one, other)| one == server && other == function)
        });
        let purpose_named = self.purposes.iter().any(|named| named.as_str() == purpose);
        (self.functions.is_empty() || function_named) && (self.purposes.is_empty() || purpose_named)
    }

    /// Whether the lists are within their bounds.
    ///
    /// # Errors
    /// When one is too long.
    pub fn check(&self) -> Result<(), TermsFault> {
        if self.functions.len() > MOST_COVERED || self.purposes.len() > MOST_COVERED {
            return Err(TermsFault);
        }
        Ok(())
    }
}

/// A person's yes to taking revocations back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestorationVerdict {
    /// Always `1.0`.
    pub version: Version,
    /// Always `restoration_verdict`.
    pub object_type: RestorationObject,
    /// What is no longer revoked.
    pub subjects: Vec<Subject>,
    /// Why.
    pub reason: Reason,
    /// When it was signed.
    pub at: Timestamp,
    /// The gate's one-time challenge.
    pub challenge: Challenge,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

signed! {
    ConsentGrant = Consent, ConsentObject = "consent_grant";
    RestorationVerdict = Restoration, RestorationObject = "restoration_verdict";
}

/// Functions, or purposes, of one consent.
pub const MOST_COVERED: usize = 256;
/// Subjects of one revocation, or of one that is taken back.
pub const MOST_SUBJECTS: usize = 64;
