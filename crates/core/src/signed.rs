//! Which objects are signed, and over which bytes (PROFILE §3).
//!
//! A signature is Ed25519 over the DSSE pre-authentication encoding of (payload type, canonical object without its
//! `signature` member). One payload type per kind: no signature of one kind is valid for another.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::digest::{Algorithm, Digest, DigestError, b64};
use crate::json::{self, ShapeFault, Value};

/// A kind of signed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// Validation evidence, by the PED's key.
    Evidence,
    /// A finality authority, by the PED's key.
    Authority,
    /// A sink verification, by the sink's key.
    Verification,
    /// An approver's verdict on a ticket, by the approver's key.
    Approval,
    /// An approver's yes to a change of configuration, by the approver's key.
    Change,
    /// An approver's verdict on an indeterminate act, by the approver's key.
    Reconciliation,
    /// An approver's yes to a change of keys, by the approver's key.
    KeyChange,
}

impl ObjectKind {
    /// The DSSE payload type.
    pub fn payload_type(self) -> &'static str {
        match self {
            Self::Evidence => "application/vnd.lychgate.evidence+json",
            Self::Authority => "application/vnd.lychgate.authority+json",
            Self::Verification => "application/vnd.lychgate.verification+json",
            Self::Approval => "application/vnd.lychgate.approval+json",
            Self::Change => "application/vnd.lychgate.change+json",
            Self::Reconciliation => "application/vnd.lychgate.reconciliation+json",
            Self::KeyChange => "application/vnd.lychgate.key-change+json",
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
}

impl Mark {
    /// The mark of an object about to be signed with this key.
    pub fn unsigned(key_id: KeyId) -> Self {
        Self {
            key_id,
            algorithm: SignatureAlgorithm::Ed25519,
            signature: None,
        }
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

/// An object that carries a signature.
pub trait Signed: Serialize + DeserializeOwned {
    /// Its kind, which fixes the payload type.
    const KIND: ObjectKind;
    /// Where its mark stands.
    fn mark(&self) -> &Mark;
    /// Where its mark stands, to sign it.
    fn mark_mut(&mut self) -> &mut Mark;
}

/// The bytes a signature of `object` covers.
///
/// # Errors
/// When the object has a number that canonical JSON cannot carry.
pub fn signing_bytes<T: Signed>(object: &T) -> Result<Vec<u8>, ShapeFault> {
    let whole = json::to_canonical(object)?;
    let body = match object.mark().signature.as_deref() {
        None => whole,
        Some(signature) => match cut_signature(&whole, signature) {
            Some(body) => body,
            None => {
                let mut value = json::to_value(object)?;
                strip_signature(&mut value, Some(signature));
                crate::jcs::to_bytes(&value)
            }
        },
    };
    Ok(pre_authentication_encoding(T::KIND.payload_type(), &body))
}

/// DSSE v1 PAE: `DSSEv1 <len> <type> <len> <body>`.
pub fn pre_authentication_encoding(payload_type: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + payload_type.len() + 32);
    out.extend_from_slice(b"DSSEv1 ");
    out.extend_from_slice(payload_type.len().to_string().as_bytes());
    out.push(b' ');
    out.extend_from_slice(payload_type.as_bytes());
    out.push(b' ');
    out.extend_from_slice(body.len().to_string().as_bytes());
    out.push(b' ');
    out.extend_from_slice(body);
    out
}

/// Cuts the mark's `signature` member out of an object's canonical bytes. A quote inside a string is escaped, so the
/// member's own bytes stand nowhere else but where a member is; when they stand there twice, `None`.
fn cut_signature(whole: &[u8], signature: &str) -> Option<Vec<u8>> {
    let mut member = b"\"signature\":".to_vec();
    crate::jcs::write_string(signature, &mut member);
    let mut places = whole
        .windows(member.len())
        .enumerate()
        .filter(|(_, bytes)| *bytes == member);
    let (begin, _) = places.next()?;
    if places.next().is_some() {
        return None;
    }
    let (before, after) = (whole.get(..begin)?, whole.get(begin + member.len()..)?);
    // With the one comma that parts it from its neighbour.
    let (before, after) = match (before.strip_suffix(b","), after.strip_prefix(b",")) {
        (Some(before), _) => (before, after),
        (None, Some(after)) => (before, after),
        (None, None) => (before, after),
    };
    Some([before, after].concat())
}

/// Removes the one `signature` member, which stands in the object named `mark` one level down.
fn strip_signature(value: &mut Value, signature: Option<&str>) {
    let (Value::Object(object), Some(_)) = (value, signature) else {
        return;
    };
    for holder in ["protector", "issuer", "mark"] {
        let Some(Value::Object(inner)) = object.get_mut(holder) else {
            continue;
        };
        match inner.get_mut("mark") {
            Some(Value::Object(mark)) => drop(mark.remove("signature")),
            _ => drop(inner.remove("signature")),
        }
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
