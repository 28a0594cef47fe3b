//! Revocation, consent and control delivery, as a client asks for them.

use lychgate_core::control::{ControlEnd, ControlFinding, ControlStage};
use lychgate_core::id::{ConsentId, HolderId};
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Digest, Epochs, Subject, Timestamp, json};
use lychgate_keys::verdict::{ConsentGrant, ConsentTerms, Reason, RestorationVerdict};
use serde::{Deserialize, Serialize};

/// What a client asks of the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// To revoke. Wants no key. Answered with [`ControlAnswer::Revoked`].
    Revoke {
        /// What.
        subjects: Vec<Subject>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        reason: Option<Reason>,
        /// Also what nothing here is known to be called.
        force: bool,
    },
    /// To take revocations back. Answered with [`ControlAnswer::Restored`].
    Restore {
        /// Signed.
        verdict: RestorationVerdict,
    },
    /// The same where there is no approver. Answered with [`ControlAnswer::Restored`].
    RestoreUnsigned {
        /// What.
        subjects: Vec<Subject>,
        /// Why.
        reason: Reason,
    },
    /// To consent. Answered with [`ControlAnswer::Consented`].
    Consent {
        /// To what.
        terms: ConsentTerms,
        /// Signed, where there is an approver.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        grant: Option<ConsentGrant>,
    },
    /// To withdraw consents. Wants no key. Answered with [`ControlAnswer::ConsentWithdrawn`].
    WithdrawConsent {
        /// Which.
        consents: Vec<ConsentId>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        reason: Option<Reason>,
    },
    /// The consents. Answered with [`ControlAnswer::Consents`].
    Consents {
        /// Also those that hold no more.
        all: bool,
    },
    /// The epochs, and how far the newest controls have come. Answered with [`ControlAnswer::Epochs`].
    Epochs,
}

/// What the gate answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlAnswer {
    /// It is revoked.
    Revoked {
        /// The control's number.
        number: u64,
        /// Questions to a person that were withdrawn.
        withdrawn: u64,
    },
    /// It is no longer revoked.
    Restored {
        /// The control's number.
        number: u64,
    },
    /// The consent holds.
    Consented {
        /// Its id.
        consent: ConsentId,
    },
    /// The consents hold no more.
    ConsentWithdrawn {
        /// The control's number.
        number: u64,
    },
    /// The consents.
    Consents {
        /// Whether acts need one.
        required: bool,
        /// The configured principal.
        principal: String,
        /// The configured agent.
        agent: String,
        /// Newest first.
        consents: Vec<ConsentView>,
    },
    /// How the controls stand.
    Epochs {
        /// That.
        epochs: Box<EpochsView>,
    },
}

/// A consent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsentView {
    /// To what.
    pub terms: ConsentTerms,
    /// When it was granted.
    pub granted_at: Timestamp,
    /// When it was withdrawn.
    pub withdrawn_at: Option<Timestamp>,
    /// Whether it holds now.
    pub holds: bool,
}

/// The epochs, and how far the newest controls have come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochsView {
    /// The three.
    pub epochs: Epochs,
    /// The purposes'.
    pub purpose_epoch: u64,
    /// The applied configuration.
    pub policy_digest: Digest,
    /// What is revoked.
    pub revoked: Vec<String>,
    /// Who is connected.
    pub connections: Vec<ConnectionView>,
    /// The newest, newest first.
    pub controls: Vec<ControlView>,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionView {
    /// Its id.
    pub holder: HolderId,
    /// The server.
    pub server: String,
}

/// A control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlView {
    /// Its number.
    pub number: u64,
    /// What it was.
    pub kind: ReceiptKind,
    /// When it was committed.
    pub emitted: Timestamp,
    /// What it is about.
    pub what: String,
    /// What was seen of it, end by end.
    pub ends: Vec<EndView>,
}

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndView {
    /// Which end.
    pub end: ControlEnd,
    /// Of which connection.
    pub holder: HolderId,
    /// The sink behind it.
    pub sink: String,
    /// When a sink had taken the new epochs.
    pub received: Option<Timestamp>,
    /// When a sink had nothing older in flight.
    pub enforced: Option<Timestamp>,
    /// When a client had said that it was told.
    pub observed: Option<Timestamp>,
    /// The step that was not seen, or does not fit.
    pub stage: Option<ControlStage>,
    /// Why it cannot be said to have happened; absent while it may still come.
    pub finding: Option<ControlFinding>,
}
