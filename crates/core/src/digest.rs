//! Digests of exact bytes, and the text form they travel in: base64url without padding (PROFILE §3).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::json::Value;

/// A digest algorithm the profile allows; the texts are the draft's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// SHA-256, 32 bytes; the default everywhere.
    #[serde(rename = "SHA-256")]
    Sha256,
    /// SHA-384, 48 bytes.
    #[serde(rename = "SHA-384")]
    Sha384,
    /// SHA-512, 64 bytes.
    #[serde(rename = "SHA-512")]
    Sha512,
}

impl Algorithm {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
        }
    }

    /// How many bytes a digest has.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = DigestError;

    fn from_str(name: &str) -> Result<Self, DigestError> {
        match name {
            "SHA-256" => Ok(Self::Sha256),
            "SHA-384" => Ok(Self::Sha384),
            "SHA-512" => Ok(Self::Sha512),
            _ => Err(DigestError::UnknownAlgorithm),
        }
    }
}

/// Why a text is not a digest. The text itself is not repeated: it may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// The algorithm is not one of the three.
    #[error("digest algorithm must be `SHA-256`, `SHA-384` or `SHA-512`")]
    UnknownAlgorithm,
    /// Not base64url without padding, or with stray trailing bits.
    #[error("digest value must be base64url without padding")]
    Encoding,
    /// Well encoded, but not as long as the algorithm's digests are.
    #[error("{algorithm} digest must have {expected} bytes, not {found}", expected = algorithm.length())]
    Length {
        /// The algorithm named.
        algorithm: Algorithm,
        /// Bytes found.
        found: usize,
    },
}

/// A digest with its algorithm. On the wire: `{"algorithm": "SHA-256", "value": "..."}`, closed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "Wire", try_from = "Wire")]
pub struct Digest {
    algorithm: Algorithm,
    // INVARIANT: bytes past `algorithm.length()` are zero, so derived equality, order and hash are the digest's.
    bytes: [u8; 64],
}

impl Digest {
    /// Digests exact bytes.
    #[must_use]
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::filled(algorithm, &sha2::Sha256::digest(bytes)),
            Algorithm::Sha384 => Self::filled(algorithm, &sha2::Sha384::digest(bytes)),
            Algorithm::Sha512 => Self::filled(algorithm, &sha2::Sha512::digest(bytes)),
        }
    }

    /// The SHA-256 digest of exact bytes.
    #[must_use]
    pub fn sha256(bytes: &[u8]) -> Self {
        Self::of(Algorithm::Sha256, bytes)
    }

    /// Digests the canonical bytes of a value.
    #[must_use]
    pub fn of_value(algorithm: Algorithm, value: &Value) -> Self {
        Self::of(algorithm, &crate::jcs::to_bytes(value))
    }

    /// Takes digest bytes made elsewhere.
    ///
    /// # Errors
    /// When there are not exactly as many bytes as the algorithm gives.
    pub fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, DigestError> {
        if bytes.len() == algorithm.length() {
            Ok(Self::filled(algorithm, bytes))
        } else {
            Err(DigestError::Length {
                algorithm,
                found: bytes.len(),
            })
        }
    }

    /// Reads the text form, strictly: one text per digest.
    ///
    /// # Errors
    /// When the text is not canonical base64url without padding, or has the wrong length.
    pub fn from_base64url(algorithm: Algorithm, text: &str) -> Result<Self, DigestError> {
        Self::from_bytes(algorithm, &b64::decode(text).ok_or(DigestError::Encoding)?)
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digest's bytes: 32, 48 or 64.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
            .get(..self.algorithm.length())
            .unwrap_or_default()
    }

    /// The text form, base64url without padding.
    #[must_use]
    pub fn to_base64url(self) -> String {
        b64::encode(self.bytes())
    }

    fn filled(algorithm: Algorithm, from: &[u8]) -> Self {
        let mut bytes = [0; 64];
        for (slot, byte) in bytes.iter_mut().zip(from) {
            *slot = *byte;
        }
        Self { algorithm, bytes }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.algorithm, self.to_base64url())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Digest({self})")
    }
}

/// The SHA-256 digest of exact bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Digest {
    Digest::sha256(bytes)
}

/// `arguments_digest` (PROFILE §3): over the canonical bytes; absent arguments count as `{}`.
#[must_use]
pub fn arguments_digest(algorithm: Algorithm, arguments: Option<&Value>) -> Digest {
    arguments.map_or_else(
        || Digest::of(algorithm, b"{}"),
        |value| Digest::of_value(algorithm, value),
    )
}

/// base64url without padding (RFC 4648 §5), strict: exactly one text for each byte string.
pub mod b64 {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    /// The text of some bytes.
    #[must_use]
    pub fn encode(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The bytes of a text; `None` for padding, foreign characters, white space or stray trailing bits.
    #[must_use]
    pub fn decode(text: &str) -> Option<Vec<u8>> {
        URL_SAFE_NO_PAD.decode(text).ok()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    algorithm: Algorithm,
    value: String,
}

impl From<Digest> for Wire {
    fn from(digest: Digest) -> Self {
        Self {
            algorithm: digest.algorithm,
            value: digest.to_base64url(),
        }
    }
}

impl TryFrom<Wire> for Digest {
    type Error = DigestError;

    fn try_from(wire: Wire) -> Result<Self, DigestError> {
        Self::from_base64url(wire.algorithm, &wire.value)
    }
}
