//! What an approver signs (PROFILE §10): a verdict on a ticket, a change of configuration, a verdict on an
//! indeterminate act, a change of keys, a record that its anchor contradicts, a drop of archived lines.
//!
//! A ticket is single-use, and a yes to a record is for that record's one state; every other object carries the gate's
//! one-time challenge: a captured signature is of no use a second time.

use lychgate_core::Timestamp;
use lychgate_core::act::Version;
use lychgate_core::digest::{Digest, b64};
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json;
use lychgate_core::outside::{Entropy, NoEntropy};
use lychgate_core::signed::{self, Mark, ObjectKind, Signed};
use serde::{Deserialize, Serialize};

use crate::Role;

/// A person's verdict on one ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalVerdict {
    /// Always `1.0`.
    pub version: Version,
    /// Always `approval_verdict`.
    pub object_type: ApprovalObject,
    /// The ticket, which takes one verdict.
    pub ticket_id: TicketId,
    /// Digest of what the person was shown: the approval subject.
    pub subject: Digest,
    /// The ticket's own end, as the person was shown it: from here on a yes is worth nothing.
    pub expires_at: Timestamp,
    /// Yes or no.
    pub verdict: Verdict,
    /// When it was signed.
    pub at: Timestamp,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// This act, once.
    Approve,
    /// Not this act.
    Deny,
}

/// A person's yes to one change of configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationChange {
    /// Always `1.0`.
    pub version: Version,
    /// Always `configuration_change`.
    pub object_type: ChangeObject,
    /// The applied configuration; absent when there is none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub from: Option<Digest>,
    /// The configuration to apply.
    pub to: Digest,
    /// When it was signed.
    pub at: Timestamp,
    /// The gate's one-time challenge.
    pub challenge: Challenge,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

/// A person's word on what became of an indeterminate act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReconciliationVerdict {
    /// Always `1.0`.
    pub version: Version,
    /// Always `reconciliation_verdict`.
    pub object_type: ReconciliationObject,
    /// The act.
    pub candidate_act_id: ActId,
    /// Whether it had its effect.
    pub effect: bool,
    /// How the person knows.
    pub reason: Reason,
    /// When it was signed.
    pub at: Timestamp,
    /// The gate's one-time challenge.
    pub challenge: Challenge,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

/// A person's yes to a new key in a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyChange {
    /// Always `1.0`.
    pub version: Version,
    /// Always `key_change`.
    pub object_type: KeyChangeObject,
    /// Whose key.
    pub role: Role,
    /// The new key itself: a yes to this one and to no other.
    pub public: PublicKey,
    /// When it was signed.
    pub at: Timestamp,
    /// The gate's one-time challenge.
    pub challenge: Challenge,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

/// A person's yes to going on with a record that its anchor contradicts. Bound to both, so that it is of no use for any
/// other pair, and of none once the record has grown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorVerdict {
    /// Always `1.0`.
    pub version: Version,
    /// Always `anchor_verdict`.
    pub object_type: AnchorObject,
    /// Digest of the anchor's bytes.
    pub anchor: Digest,
    /// Digest of the record's newest signed head.
    pub head: Digest,
    /// Why the person goes on with it.
    pub reason: Reason,
    /// When it was signed.
    pub at: Timestamp,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

/// A person's yes to dropping the bytes of archived lines of the record. What they said only the archive tells then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneVerdict {
    /// Always `1.0`.
    pub version: Version,
    /// Always `prune_verdict`.
    pub object_type: PruneObject,
    /// The first line.
    pub first: BundleEdge,
    /// One past the last line.
    pub below: BundleEdge,
    /// Digest of the digests (SHA-256, 32 bytes each) of the archived entry bundles, in their order.
    pub archive: Digest,
    /// When it was signed.
    pub at: Timestamp,
    /// The gate's one-time challenge.
    pub challenge: Challenge,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

/// An approver's yes to another approver, or to one less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverChange {
    /// Always `1.0`.
    pub version: Version,
    /// Always `approver_change`.
    pub object_type: ApproverObject,
    /// The key it is about.
    pub public: PublicKey,
    /// Which way.
    pub change: Membership,
    /// When it was signed.
    pub at: Timestamp,
    /// The gate's one-time challenge.
    pub challenge: Challenge,
    /// The approver's key and signature.
    #[serde(deserialize_with = "signed::alone")]
    pub mark: Mark,
}

/// Whether an approver comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// The key is believed from now on.
    Add,
    /// It is believed no longer, and what it approved and nobody has used is worth nothing.
    Retire,
}

/// A line of the record where an entry bundle begins: a multiple of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct BundleEdge(u64);

impl BundleEdge {
    /// The line.
    #[must_use]
    pub const fn line(self) -> u64 {
        self.0
    }
}

/// A line within an entry bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a multiple of 256: whole entry bundles are archived and dropped")]
pub struct NotAnEdge;

impl TryFrom<u64> for BundleEdge {
    type Error = NotAnEdge;

    fn try_from(line: u64) -> Result<Self, NotAnEdge> {
        if line.is_multiple_of(256) {
            Ok(Self(line))
        } else {
            Err(NotAnEdge)
        }
    }
}

impl From<BundleEdge> for u64 {
    fn from(edge: BundleEdge) -> Self {
        edge.0
    }
}

macro_rules! signed {
    ($($object:ident = $kind:ident, $type:ident = $word:literal;)*) => {$(
        impl Signed for $object {
            const KIND: ObjectKind = ObjectKind::$kind;

            fn mark(&self) -> &Mark {
                &self.mark
            }

            fn mark_mut(&mut self) -> &mut Mark {
                &mut self.mark
            }
        }

        #[doc = concat!("The one `object_type`, `", $word, "`.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $type {
            #[doc = concat!("`", $word, "`")]
            #[default]
            #[serde(rename = $word)]
            The,
        }
    )*};
}

signed! {
    ApprovalVerdict = Approval, ApprovalObject = "approval_verdict";
    ConfigurationChange = Change, ChangeObject = "configuration_change";
    ReconciliationVerdict = Reconciliation, ReconciliationObject = "reconciliation_verdict";
    KeyChange = KeyChange, KeyChangeObject = "key_change";
    AnchorVerdict = Anchor, AnchorObject = "anchor_verdict";
    PruneVerdict = Prune, PruneObject = "prune_verdict";
    ApproverChange = Approver, ApproverObject = "approver_change";
}

mod control;

pub use self::control::{
    ConsentGrant, ConsentObject, ConsentTerms, MOST_COVERED, MOST_SUBJECTS, RestorationObject,
    RestorationVerdict, TermsFault,
};

/// An Ed25519 public key; on the wire 32 bytes as base64url.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey(pub [u8; 32]);

/// A text that is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 32 bytes in base64url without padding")]
pub struct NotAPublicKey;

impl TryFrom<String> for PublicKey {
    type Error = NotAPublicKey;

    fn try_from(text: String) -> Result<Self, NotAPublicKey> {
        let bytes = b64::decode(&text).ok_or(NotAPublicKey)?;
        bytes.try_into().map(Self).map_err(|_| NotAPublicKey)
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        b64::encode(&key.0)
    }
}

/// A text of 1 to `MOST` characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Text<const MOST: usize>(String);

/// A person's reason: 1 to 500 characters.
pub type Reason = Text<500>;

/// The gate's one-time challenge: 1 to 128 characters.
pub type Challenge = Text<128>;

/// A text that is empty or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("text must have 1 to {most} characters")]
pub struct WrongLength {
    /// The most characters.
    pub most: usize,
}

impl<const MOST: usize> Text<MOST> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Challenge {
    /// A fresh challenge: 32 random bytes as base64url.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn fresh(entropy: &dyn Entropy) -> Result<Self, NoEntropy> {
        let mut bytes = [0; 32];
        entropy.fill(&mut bytes)?;
        Ok(Self(b64::encode(&bytes)))
    }
}

impl<const MOST: usize> TryFrom<String> for Text<MOST> {
    type Error = WrongLength;

    fn try_from(text: String) -> Result<Self, WrongLength> {
        // Counting stops one past the limit, however long the text.
        match text.chars().take(MOST + 1).count() {
            0 => Err(WrongLength { most: MOST }),
            length if length > MOST => Err(WrongLength { most: MOST }),
            _ => Ok(Self(text)),
        }
    }
}

impl<const MOST: usize> TryFrom<&str> for Text<MOST> {
    type Error = WrongLength;

    fn try_from(text: &str) -> Result<Self, WrongLength> {
        Self::try_from(text.to_owned())
    }
}

impl<const MOST: usize> From<Text<MOST>> for String {
    fn from(text: Text<MOST>) -> Self {
        text.0
    }
}
