//! A receipt with everything it takes to believe it: one file that can be mailed and checked offline.
//!
//! Wire form, closed, canonical JSON: `{"version":"1.0","object_type":"receipt_proof","receipt":"<the receipt's exact
//! bytes>","index":0,"inclusion":["<base64url of a hash>"],"checkpoint":"<signed note>","openings":[{"field":
//! "arguments_digest"|"destination","salt":"<base64url>","value":"<base64url>"}]}`.

use lychgate_core::act::Version;
use lychgate_core::digest::b64;
use lychgate_core::json::{self, Fault, Limits, ShapeFault};
use lychgate_core::receipt::{Commitment, Receipt, Salt};
use lychgate_core::signed::KeyId;
use lychgate_core::{Timestamp, jcs};
use lychgate_keys::{Role, TrustBundle, TrustedKey, thumbprint};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{CheckpointFault, Cosignature, SignedCheckpoint};
use crate::hash::{Hash, leaf_hash};
use crate::note::{KeyName, SignatureKind, VerifierKey};
use crate::tree::{ProofFault, verify_inclusion};

/// A receipt, its place in the log, and a head over it. Well formed; nothing is believed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptProof {
    /// The receipt's exact bytes: the leaf.
    pub receipt: String,
    /// Its place in the log, at most 2^53 - 1.
    pub index: u64,
    /// The inclusion proof in the checkpoint's tree, from the leaf upwards (RFC 9162 §2.1.3).
    pub inclusion: Vec<Hash>,
    /// A head of the log, with whatever cosignatures it has.
    pub checkpoint: SignedCheckpoint,
    /// What the reader is entitled to see of the receipt's commitments.
    pub openings: Vec<Opening>,
}

/// Opens one commitment of the receipt (PROFILE §10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Which.
    pub field: CommittedField,
    /// The field's own salt ([`Salt::of_field`]); it opens no other field.
    pub salt: Salt,
    /// The committed bytes: the arguments digest's 32, or the destination's canonical JSON.
    pub value: Vec<u8>,
}

/// A field that stands in the receipt as a commitment. Its word is the commitment's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommittedField {
    /// `act.arguments_commitment`
    ArgumentsDigest,
    /// `act.destination_commitment`
    Destination,
}

impl CommittedField {
    /// The label under which the gate commits to it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ArgumentsDigest => "arguments_digest",
            Self::Destination => "destination",
        }
    }

    fn of(self, receipt: &Receipt) -> Option<&Commitment> {
        let act = receipt.act.as_ref()?;
        match self {
            Self::ArgumentsDigest => act.arguments_commitment.as_ref(),
            Self::Destination => act.destination_commitment.as_ref(),
        }
    }
}

/// Whom the reader believes.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    /// The keys; those of the ledger's role count here.
    pub bundle: &'a TrustBundle,
    /// The log's name, when the reader knows it. A ledger key signs for one log only, so none is needed.
    pub origin: Option<&'a str>,
    /// The witnesses.
    pub witnesses: &'a [VerifierKey],
    /// How many of them must have cosigned the head.
    pub quorum: usize,
}

/// What a proof shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Proven {
    /// The receipt.
    pub receipt: Receipt,
    /// Its place in the log.
    pub index: u64,
    /// The log's name.
    pub origin: String,
    /// The size of the head that covers it.
    pub size: u64,
    /// The ledger key that signed the head.
    pub signed_by: KeyId,
    /// The witnesses that cosigned it.
    pub cosignatures: Vec<Cosignature>,
    /// The commitments that were opened, with their values.
    pub opened: Vec<(CommittedField, Vec<u8>)>,
}

impl ReceiptProof {
    /// The canonical bytes.
    ///
    /// # Errors
    /// When the index is over 2^53 - 1.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ShapeFault> {
        let opening = |opening: &Opening| WireOpening {
            field: opening.field,
            salt: b64::encode(&opening.salt.0),
            value: b64::encode(&opening.value),
        };
        json::to_canonical(&Wire {
            version: Version::V1,
            object_type: ProofObject::ReceiptProof,
            receipt: self.receipt.clone(),
            index: self.index,
            inclusion: self
                .inclusion
                .iter()
                .map(|hash| b64::encode(hash))
                .collect(),
            checkpoint: self.checkpoint.to_string(),
            openings: self.openings.iter().map(opening).collect(),
        })
    }

    /// Reads the canonical bytes, strictly. One newline at the end, as editors leave it, is allowed.
    ///
    /// # Errors
    /// When the bytes are not in that one form.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotAProof> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let value = json::parse(bytes, &Limits::OBJECT)?;
        if jcs::to_bytes(&value) != bytes {
            return Err(NotAProof::NotCanonical);
        }
        let wire: Wire = json::from_value(&value)?;
        let hash = |text: &String| b64::decode(text)?.try_into().ok();
        let inclusion: Option<Vec<Hash>> = wire.inclusion.iter().map(hash).collect();
        let opening = |opening: WireOpening| {
            Some(Opening {
                field: opening.field,
                salt: Salt(b64::decode(&opening.salt)?.try_into().ok()?),
                value: b64::decode(&opening.value)?,
            })
        };
        let openings: Option<Vec<Opening>> = wire.openings.into_iter().map(opening).collect();
        Ok(Self {
            receipt: wire.receipt,
            index: wire.index,
            inclusion: inclusion.ok_or(NotAProof::Hash)?,
            checkpoint: SignedCheckpoint::parse(wire.checkpoint.as_bytes())?,
            openings: openings.ok_or(NotAProof::Opening)?,
        })
    }

    /// Whether the log of a believed ledger key holds exactly this receipt at this place, and what it says.
    ///
    /// # Errors
    /// The first reason not to believe it.
    pub fn verify(&self, trust: &Trust<'_>) -> Result<Proven, NotProven> {
        let receipt = read_receipt(&self.receipt)?;
        let head = self.checkpoint.checkpoint();
        if trust.origin.is_some_and(|origin| origin != head.origin()) {
            return Err(NotProven::Origin(head.origin().to_owned()));
        }
        let keys = ledger_keys(trust.bundle, head.origin());
        let verified = self.checkpoint.verify(&keys, trust.witnesses)?;
        let signers: Vec<&TrustedKey> = verified
            .signed_by()
            .iter()
            .filter_map(|key| ledger_key(trust.bundle, key))
            .collect();
        let signed_by = signer_at(&signers, receipt.at)?;
        if verified.quorum() < trust.quorum {
            return Err(NotProven::Quorum {
                needed: trust.quorum,
                found: verified.quorum(),
            });
        }
        let leaf = leaf_hash(self.receipt.as_bytes());
        verify_inclusion(&leaf, self.index, head.size(), &self.inclusion, head.root())?;
        let opened = self.open(&receipt)?;
        Ok(Proven {
            receipt,
            index: self.index,
            origin: head.origin().to_owned(),
            size: head.size(),
            signed_by,
            cosignatures: verified.cosignatures().to_vec(),
            opened,
        })
    }

    fn open(&self, receipt: &Receipt) -> Result<Vec<(CommittedField, Vec<u8>)>, NotProven> {
        let mut opened: Vec<(CommittedField, Vec<u8>)> = Vec::new();
        for opening in &self.openings {
            let field = opening.field;
            let made = Commitment::to(&opening.salt, field.label(), &opening.value);
            if field.of(receipt) != Some(&made) || opened.iter().any(|(other, _)| *other == field) {
                return Err(NotProven::Opening(field.label()));
            }
            opened.push((field, opening.value.clone()));
        }
        Ok(opened)
    }
}

/// The ledger keys of a trust bundle, retired ones too, as the keys of the log called `origin`. None when the origin
/// cannot name a key.
#[must_use]
pub fn ledger_keys(bundle: &TrustBundle, origin: &str) -> Vec<VerifierKey> {
    let Ok(name) = KeyName::new(origin) else {
        return Vec::new();
    };
    let keys = bundle
        .keys()
        .iter()
        .filter(|key| key.role() == Role::Ledger);
    keys.filter_map(|key| {
        VerifierKey::new(name.clone(), SignatureKind::Ed25519, *key.public()).ok()
    })
    .collect()
}

fn ledger_key<'b>(bundle: &'b TrustBundle, key: &VerifierKey) -> Option<&'b TrustedKey> {
    let id = thumbprint(key.public());
    let mut keys = bundle.keys().iter();
    keys.find(|trusted| trusted.role() == Role::Ledger && *trusted.key_id() == id)
}

/// A retired key's head covers what came before its retirement, and nothing later.
fn signer_at(signers: &[&TrustedKey], at: Timestamp) -> Result<KeyId, NotProven> {
    let in_time = |key: &&&TrustedKey| key.retired_at().is_none_or(|retired| at < retired);
    if let Some(key) = signers.iter().find(in_time) {
        return Ok(key.key_id().clone());
    }
    let retired = signers.iter().filter_map(|key| key.retired_at()).max();
    Err(retired.map_or(
        NotProven::Checkpoint(CheckpointFault::NotTheLog),
        NotProven::Retired,
    ))
}

fn read_receipt(text: &str) -> Result<Receipt, NotProven> {
    let value = json::parse(text.as_bytes(), &Limits::OBJECT).map_err(NotProven::ReceiptJson)?;
    if jcs::to_bytes(&value) != text.as_bytes() {
        return Err(NotProven::ReceiptForm);
    }
    json::from_value(&value).map_err(NotProven::Receipt)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: Version,
    object_type: ProofObject,
    receipt: String,
    index: u64,
    inclusion: Vec<String>,
    checkpoint: String,
    openings: Vec<WireOpening>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireOpening {
    field: CommittedField,
    salt: String,
    value: String,
}

#[derive(Serialize, Deserialize)]
enum ProofObject {
    #[serde(rename = "receipt_proof")]
    ReceiptProof,
}

/// Bytes that are no receipt proof.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NotAProof {
    /// Not JSON, by the strict parser.
    #[error("proof is not JSON")]
    Json(#[from] Fault),
    /// JSON in another form than the canonical one.
    #[error("proof is not in canonical form")]
    NotCanonical,
    /// Members are missing, unknown or of another type.
    #[error("proof does not have a proof's shape")]
    Shape(#[from] ShapeFault),
    /// A hash is not 32 bytes in base64url.
    #[error("proof's inclusion hashes must be 32 bytes in base64url")]
    Hash,
    /// A salt is not 16 bytes in base64url, or a value not base64url.
    #[error("proof's openings must have a salt of 16 bytes and a value, in base64url")]
    Opening,
    /// The checkpoint is malformed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointFault),
}

/// Why a receipt is not proven.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NotProven {
    /// The receipt is not JSON.
    #[error("receipt is not JSON")]
    ReceiptJson(#[source] Fault),
    /// The receipt's bytes are not its canonical ones.
    #[error("receipt is not in canonical form")]
    ReceiptForm,
    /// The receipt does not have a receipt's shape.
    #[error("receipt does not have a receipt's shape")]
    Receipt(#[source] ShapeFault),
    /// The head is another log's.
    #[error("checkpoint is of the log `{0}`")]
    Origin(String),
    /// The head is not signed by a ledger key of the bundle, or a signature does not verify.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointFault),
    /// The head is signed by a ledger key that was retired before the receipt's time.
    #[error("checkpoint is signed by a key that was retired at {0}, before the receipt")]
    Retired(Timestamp),
    /// Too few witnesses cosigned the head.
    #[error("checkpoint is cosigned by {found} of the {needed} witnesses asked for")]
    Quorum {
        /// Asked for.
        needed: usize,
        /// Different keys found.
        found: usize,
    },
    /// The receipt is not at this place of that log.
    #[error(transparent)]
    Inclusion(#[from] ProofFault),
    /// An opening does not fit the receipt's commitment, or there are two for one.
    #[error("opening of `{0}` does not fit the receipt")]
    Opening(&'static str),
}
