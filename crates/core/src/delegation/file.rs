//! What a worker is handed: the chain, and the secret that was given out with its last link.

use serde::{Deserialize, Serialize};

use super::{Broken, Chain, Delegation, HolderBinding};
use crate::act::Version;
use crate::digest::{Digest, b64};
use crate::json::{self, CaseRule, Limits, ShapeFault};

/// A chain to be carried along. The secret is for the gate alone; without it the file can be shown and verified, and is of
/// no other use.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegationFile {
    /// Always `1.0`.
    pub version: Version,
    /// Always `delegation_file`.
    pub object_type: FileObject,
    /// From the top.
    pub chain: Vec<Delegation>,
    /// 32 bytes, base64url.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub secret: Option<Secret>,
}

/// The file's `object_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileObject {
    /// `delegation_file`
    #[default]
    #[serde(rename = "delegation_file")]
    DelegationFile,
}

/// The secret handed out once with a delegation.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Secret([u8; 32]);

/// A text that is no secret of ours. The text is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 32 bytes in base64url without padding")]
pub struct NotASecret;

impl Secret {
    /// From fresh random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// What a delegation is bound to.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::sha256(&self.0)
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        b64::encode(&secret.0)
    }
}

impl TryFrom<String> for Secret {
    type Error = NotASecret;

    fn try_from(text: String) -> Result<Self, NotASecret> {
        let bytes = b64::decode(&text).ok_or(NotASecret)?;
        bytes.try_into().map(Self).map_err(|_| NotASecret)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Secret")
    }
}

impl std::fmt::Debug for DelegationFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DelegationFile")
            .field("links", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// Why a file is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// Not strict JSON.
    #[error("it is not strict json: {0}")]
    Json(String),
    /// Not a delegation file's.
    #[error("it is no delegation file: {0}")]
    Shape(#[from] ShapeFault),
}

impl DelegationFile {
    /// Puts a chain and a secret together.
    #[must_use]
    pub fn new(chain: &Chain, secret: Option<Secret>) -> Self {
        Self {
            version: Version::V1,
            object_type: FileObject::DelegationFile,
            chain: chain.links().to_vec(),
            secret,
        }
    }

    /// Reads a file, strictly.
    ///
    /// # Errors
    /// What is wrong and where.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileFault> {
        let limits = Limits {
            max_bytes: MOST_BYTES,
            max_depth: 16,
            case: CaseRule::Refuse,
        };
        let value =
            json::parse(bytes, &limits).map_err(|fault| FileFault::Json(fault.to_string()))?;
        Ok(json::from_value(&value)?)
    }

    /// The file's canonical bytes.
    ///
    /// # Errors
    /// When a number lies outside what canonical JSON can carry.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ShapeFault> {
        json::to_canonical(self)
    }

    /// The chain, held together.
    ///
    /// # Errors
    /// The first link that is more than the one above it.
    pub fn chain(&self) -> Result<Chain, Broken> {
        Chain::new(self.chain.clone())
    }
}

impl HolderBinding {
    //= PROFILE §4: a stolen copy is useless from another holder
    /// Whether this user with this secret is the one the delegation was given to.
    #[must_use]
    pub fn admits(&self, uid: u32, secret: Option<&Secret>) -> bool {
        // The digests of secrets are compared: how long that takes tells nothing of the secret.
        uid == self.uid && secret.is_some_and(|secret| secret.digest() == self.secret_digest)
    }
}

/// The longest file: sixteen links with lists of 256.
pub const MOST_BYTES: usize = 4 << 20;
