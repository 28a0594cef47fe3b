//! Which objects are signed, and over which bytes (PROFILE §3).
//!
//! A signature is Ed25519 over the DSSE pre-authentication encoding of (payload type, canonical object without its
//! `signature` and `batch` members), or over the root of a Merkle tree whose leaves are such encodings. One payload type
//! per kind: no signature of one kind is valid for another.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::digest::{Algorithm, Digest, DigestError, b64};
use crate::json::{self, Object, ShapeFault, Value};
use crate::merkle::{self, Hash, LeafHash};

/// A kind of signed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// Validation evidence, by the PED's key.
    Evidence,
    /// A finality authority, by the PED's key.
    Authority,
    /// A sink verification, by the sink's key.
    Verification,
    /// A delegation, by the PED's key.
    Delegation,
    /// An approver's verdict on a ticket, by the approver's key.
    Approval,
    /// An approver's yes to a change of configuration, by the approver's key.
    Change,
    /// An approver's verdict on an indeterminate act, by the approver's key.
    Reconciliation,
    /// An approver's yes to a change of keys, by the approver's key.
    KeyChange,
    /// An approver's yes to a record that its anchor contradicts, by the approver's key.
    Anchor,
    /// An approver's yes to dropping archived lines of the record, by the approver's key.
    Prune,
    /// An approver's yes to another approver, or to one less, by the approver's key.
    Approver,
    /// A consent, by the approver's key.
    Consent,
    /// An approver's yes to taking revocations back, by the approver's key.
    Restoration,
}

impl ObjectKind {
    /// Whether objects of this kind may be signed in batches: those that the gate makes. A person signs one thing.
    pub fn may_be_batched(self) -> bool {
        matches!(self, Self::Evidence | Self::Authority | Self::Verification)
    }

    /// The DSSE payload type.
    pub fn payload_type(self) -> &'static str {
        match self {
            Self::Evidence => "application/vnd.lychgate.evidence+json",
            Self::Authority => "application/vnd.lychgate.authority+json",
            Self::Verification => "application/vnd.lychgate.verification+json",
            Self::Delegation => "application/vnd.lychgate.delegation+json",
            Self::Approval => "application/vnd.lychgate.approval+json",
            Self::Change => "application/vnd.lychgate.change+json",
            Self::Reconciliation => "application/vnd.lychgate.reconciliation+json",
            Self::KeyChange => "application/vnd.lychgate.key-change+json",
            Self::Anchor => "application/vnd.lychgate.anchor+json",
            Self::Prune => "application/vnd.lychgate.prune+json",
            Self::Approver => "application/vnd.lychgate.approver+json",
            Self::Consent => "application/vnd.lychgate.consent+json",
            Self::Restoration => "application/vnd.lychgate.restoration+json",
        }
    }
}

/// A signature's algorithm: a closed set, with room for ML-DSA-65.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SignatureAlgorithm {
    /// RFC 8032 Ed25519.
    #[default]
    Ed25519,
}

/// A key's id: its RFC 7638 thumbprint, base64url. One that is read has a SHA-256 thumbprint's form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId(pub String);

impl From<KeyId> for String {
    fn from(id: KeyId) -> Self {
        id.0
    }
}

impl TryFrom<String> for KeyId {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        Digest::from_base64url(Algorithm::Sha256, &text)?;
        Ok(Self(text))
    }
}

/// Which key signed an object, how, and the signature itself once there is one.
///
/// A signature stands for the object alone, or, with `batch`, for the root of a tree whose leaves are objects (PROFILE
/// §3): either way the object verifies by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The signing key.
    pub key_id: KeyId,
    /// Its algorithm.
    pub algorithm: SignatureAlgorithm,
    /// Base64url; absent only while the object is being made, so an object that is read must have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "signature")]
    pub signature: Option<String>,
    /// Where the object stands in the batch that was signed; absent when it was signed alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub batch: Option<BatchPlace>,
}

impl Mark {
    /// The mark of an object about to be signed with this key.
    pub fn unsigned(key_id: KeyId) -> Self {
        Self {
            key_id,
            algorithm: SignatureAlgorithm::Ed25519,
            signature: None,
            batch: None,
        }
    }
}

/// A place in a batch: a Merkle tree (RFC 9162) over objects that one key signs at one moment. Each leaf is
/// [`leaf_of`] an object, so kinds stay apart by their payload type; the signature is over [`batch_bytes`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchPlace {
    /// Which leaf, from 0.
    pub index: u32,
    /// How many leaves.
    pub size: u32,
    /// The hashes beside the way, from the leaf upwards.
    pub path: BatchPath,
}

impl BatchPlace {
    /// The root this place leads a leaf to; `None` when it is no place in any tree.
    pub fn root(&self, leaf: &LeafHash) -> Option<Hash> {
        merkle::root_of_path(leaf, self.index.into(), self.size.into(), &self.path.0)
    }
}

/// Hashes, each base64url.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct BatchPath(pub Vec<Hash>);

impl From<BatchPath> for Vec<String> {
    fn from(path: BatchPath) -> Self {
        path.0.iter().map(|hash| b64::encode(hash)).collect()
    }
}

impl TryFrom<Vec<String>> for BatchPath {
    type Error = DigestError;

    fn try_from(texts: Vec<String>) -> Result<Self, DigestError> {
        let hash = |text: &String| {
            let bytes = b64::decode(text).ok_or(DigestError::Encoding)?;
            Hash::try_from(bytes).map_err(|_| DigestError::Encoding)
        };
        texts.iter().map(hash).collect::<Result<_, _>>().map(Self)
    }
}

/// Reads a signature that must be there: an Ed25519 one has 64 bytes.
pub(crate) fn signature<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(reader)?;
    match b64::decode(&text) {
        Some(bytes) if bytes.len() == 64 => Ok(Some(text)),
        _ => Err(D::Error::custom(
            "must be 64 bytes in base64url without padding",
        )),
    }
}

/// Reads the mark of an object that is only ever signed alone.
///
/// # Errors
/// When it names a place in a batch.
pub fn alone<'de, D: Deserializer<'de>>(reader: D) -> Result<Mark, D::Error> {
    let mark = Mark::deserialize(reader)?;
    match mark.batch {
        None => Ok(mark),
        Some(_) => Err(D::Error::custom("must be signed alone")),
    }
}

/// An object that carries a signature.
pub trait Signed: Serialize + DeserializeOwned {
    /// Its kind, which fixes the payload type.
    const KIND: ObjectKind;
    /// Where its mark stands.
    fn mark(&self) -> &Mark;
    /// Where its mark stands, to sign it.
    fn mark_mut(&mut self) -> &mut Mark;
}

/// The bytes that a signature of `object` alone covers, and that its leaf in a batch is made of.
///
/// # Errors
/// When the object has a number that canonical JSON cannot carry.
pub fn signing_bytes<T: Signed>(object: &T) -> Result<Vec<u8>, ShapeFault> {
    let body = if object.mark().signature.is_none() && object.mark().batch.is_none() {
        json::to_canonical(object)?
    } else {
        let mut value = json::to_value(object)?;
        strip_signature(&mut value);
        crate::jcs::to_bytes(&value)
    };
    Ok(pre_authentication_encoding(T::KIND.payload_type(), &body))
}

/// The leaf of an object in a batch, with the canonical bytes that were hashed: the object as it is before it is signed.
#[derive(Clone, Debug)]
pub struct Unsigned {
    /// The canonical bytes without a signature.
    pub body: Vec<u8>,
    /// The leaf hash over the DSSE encoding of them.
    pub leaf: LeafHash,
}

/// Makes an object's leaf.
///
/// # Errors
/// As [`signing_bytes`], and when the object carries a signature already.
pub fn unsigned<T: Signed>(object: &T) -> Result<Unsigned, ShapeFault> {
    if object.mark().signature.is_some() || object.mark().batch.is_some() {
        return Err(ShapeFault {
            pointer: String::new(),
            reason: "object is signed already".to_owned(),
        });
    }
    let body = json::to_canonical(object)?;
    let head = pae_head(T::KIND.payload_type(), body.len());
    let leaf = merkle::leaf_hash_of(&[&head, &body]);
    Ok(Unsigned { body, leaf })
}

/// The leaf of an object in a batch, whether or not it is signed by now.
///
/// # Errors
/// As [`signing_bytes`].
pub fn leaf_of<T: Signed>(object: &T) -> Result<LeafHash, ShapeFault> {
    signing_bytes(object).map(|bytes| merkle::leaf_hash(&bytes))
}

/// The bytes that the signature of a batch covers.
pub fn batch_bytes(root: &Hash, size: u32) -> Vec<u8> {
    let body = format!(r#"{{"root":"{}","size":{size}}}"#, b64::encode(root));
    pre_authentication_encoding(BATCH, body.as_bytes())
}

/// The payload type of a batch's root: no root is an object of any kind.
const BATCH: &str = "application/vnd.lychgate.batch+json";

/// DSSE v1 PAE: `DSSEv1 <len> <type> <len> <body>`.
pub fn pre_authentication_encoding(payload_type: &str, body: &[u8]) -> Vec<u8> {
    let mut out = pae_head(payload_type, body.len());
    out.extend_from_slice(body);
    out
}

/// What stands before the body; there is room for the body too.
fn pae_head(payload_type: &str, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length + payload_type.len() + 32);
    out.extend_from_slice(b"DSSEv1 ");
    out.extend_from_slice(payload_type.len().to_string().as_bytes());
    out.push(b' ');
    out.extend_from_slice(payload_type.as_bytes());
    out.push(b' ');
    out.extend_from_slice(length.to_string().as_bytes());
    out.push(b' ');
    out
}

/// Adds to an unsigned object, as it is kept, the signature of its batch: the mark's `signature` and `batch`.
pub fn add_signature(value: &mut Value, signature: &[u8; 64], place: &BatchPlace) {
    let (Some(mark), Ok(place)) = (mark_of(value), json::to_value(place)) else {
        return;
    };
    mark.insert("signature".to_owned(), Value::from(b64::encode(signature)));
    mark.insert("batch".to_owned(), place);
}

/// Removes what a signature adds.
fn strip_signature(value: &mut Value) {
    if let Some(mark) = mark_of(value) {
        drop(mark.remove("signature"));
        drop(mark.remove("batch"));
    }
}

/// The members of an object's mark: in the object named `mark`, or beside others in `protector` or `issuer`.
fn mark_of(value: &mut Value) -> Option<&mut Object> {
    let Value::Object(object) = value else {
        return None;
    };
    let holder = ["protector", "issuer", "mark"]
        .into_iter()
        .find(|holder| object.get(holder).is_some())?;
    match object.get_mut(holder)? {
        Value::Object(mark) => Some(mark),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_dsse_s_own_example() {
        let pae = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world");
        assert_eq!(
            pae,
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }
}
