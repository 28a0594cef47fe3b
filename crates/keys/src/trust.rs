//! The trust bundle: which public keys are believed, each in its one role, and the checks of signed objects.

use std::path::Path;

use lychgate_core::Timestamp;
use lychgate_core::act::Version;
use lychgate_core::digest::b64;
use lychgate_core::json::{self, Limits};
use lychgate_core::signed::{self, KeyId, SignatureAlgorithm, Signed, pre_authentication_encoding};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::trusted::{Entry, TrustedKey};
use crate::{Invalid, KeyFault, Role, TrustFault};

/// The keys that are and were believed.
///
/// Wire form, closed: `{"version":"1.0","object_type":"trust_bundle","keys":[{"role","key_id","algorithm","public",
/// "valid_from","retired_at"?}]}`; `public` is base64url.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustBundle {
    // INVARIANT: no key id twice, at most one key per role that is not retired (of approvers: `MOST_APPROVERS`), at
    // most `MOST_KEYS`.
    keys: Vec<TrustedKey>,
}

impl TrustBundle {
    /// A bundle that believes nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every key, in the order they were added.
    #[must_use]
    pub fn keys(&self) -> &[TrustedKey] {
        &self.keys
    }

    /// The key now in use in a role; of approvers the first.
    #[must_use]
    pub fn current(&self, role: Role) -> Option<&TrustedKey> {
        self.keys
            .iter()
            .find(|key| key.role() == role && key.retired_at().is_none())
    }

    /// The approvers' keys that are believed now, in the order they were added.
    pub fn approvers(&self) -> impl Iterator<Item = &TrustedKey> {
        let current =
            |key: &&TrustedKey| key.role() == Role::Approver && key.retired_at().is_none();
        self.keys.iter().filter(current)
    }

    /// Believes a key from `at` on.
    ///
    /// # Errors
    /// When the key is not sound, is in the bundle already (in any role), or the role has a current key; there may be
    /// several approvers.
    pub fn add(
        &mut self,
        role: Role,
        public: [u8; 32],
        at: Timestamp,
    ) -> Result<KeyId, TrustFault> {
        let key = TrustedKey::new(role, public, at)?;
        let id = key.key_id().clone();
        self.put(key)?;
        Ok(id)
    }

    /// Retires a key: objects of `at` and later are not believed.
    ///
    /// # Errors
    /// When there is no such key, it is retired already, or `at` lies before it was valid.
    pub fn retire(&mut self, key_id: &KeyId, at: Timestamp) -> Result<(), TrustFault> {
        let key = self.keys.iter_mut().find(|key| key.key_id() == key_id);
        key.ok_or_else(|| TrustFault::Unknown(key_id.0.clone()))?
            .retire(at)
    }

    /// Retires a role's current key, if there is one, and believes another in its place, both or neither.
    ///
    /// # Errors
    /// As [`Self::add`] and [`Self::retire`].
    pub fn replace(
        &mut self,
        role: Role,
        public: [u8; 32],
        at: Timestamp,
    ) -> Result<KeyId, TrustFault> {
        let mut next = self.clone();
        if let Some(old) = self.current(role) {
            next.retire(old.key_id(), at)?;
        }
        let id = next.add(role, public, at)?;
        *self = next;
        Ok(id)
    }

    /// Whether an object presented now is this role's: a retired key is refused whatever the object says of its time.
    ///
    /// # Errors
    /// The first reason not to believe it.
    pub fn verify_live<T: Signed>(
        &self,
        role: Role,
        object: &T,
        now: Timestamp,
    ) -> Result<(), Invalid> {
        let (key, message, signature) = self.claim(role, object)?;
        key.check_live(&message, &signature, now)
    }

    /// Whether a kept object was this role's at its own time `at`: a key retired later counts. Pure Rust, offline.
    ///
    /// # Errors
    /// The first reason not to believe it.
    pub fn verify_at<T: Signed>(
        &self,
        role: Role,
        object: &T,
        at: Timestamp,
    ) -> Result<(), Invalid> {
        let (key, message, signature) = self.claim(role, object)?;
        key.check_at(&message, &signature, at)
    }

    /// As [`Self::verify_at`], for what [`crate::SigningKey::sign_bytes`] signed.
    ///
    /// # Errors
    /// The first reason not to believe it.
    pub fn verify_bytes_at(
        &self,
        (role, key_id): (Role, &KeyId),
        (payload_type, body): (&str, &[u8]),
        signature: &str,
        at: Timestamp,
    ) -> Result<(), Invalid> {
        let key = self.find(role, key_id)?;
        let message = pre_authentication_encoding(payload_type, body);
        key.check_at(&message, &signature_bytes(signature)?, at)
    }

    fn claim<T: Signed>(
        &self,
        role: Role,
        object: &T,
    ) -> Result<(&TrustedKey, Vec<u8>, [u8; 64]), Invalid> {
        if Role::signing(T::KIND) != role {
            return Err(Invalid::Kind(role));
        }
        let mark = object.mark();
        // The set of algorithms is closed: a second one must decide here which keys it may use.
        let SignatureAlgorithm::Ed25519 = mark.algorithm;
        let key = self.find(role, &mark.key_id)?;
        let signature = signature_bytes(mark.signature.as_deref().ok_or(Invalid::Unsigned)?)?;
        let message = match &mark.batch {
            None => signed::signing_bytes(object).map_err(|_| Invalid::Shape)?,
            Some(_) if !T::KIND.may_be_batched() => return Err(Invalid::Batch),
            Some(place) => {
                let leaf = signed::leaf_of(object).map_err(|_| Invalid::Shape)?;
                let root = place.root(&leaf).ok_or(Invalid::Batch)?;
                signed::batch_bytes(&root, place.size)
            }
        };
        Ok((key, message, signature))
    }

    fn find(&self, role: Role, key_id: &KeyId) -> Result<&TrustedKey, Invalid> {
        let mut keys = self.keys.iter();
        keys.find(|key| key.role() == role && key.key_id() == key_id)
            .ok_or(Invalid::UnknownKey(role))
    }

    fn put(&mut self, key: TrustedKey) -> Result<(), TrustFault> {
        if self.keys.len() >= MOST_KEYS {
            return Err(TrustFault::Full);
        }
        if self.keys.iter().any(|other| other.key_id() == key.key_id()) {
            return Err(TrustFault::Twice(key.key_id().0.clone()));
        }
        let taken = match key.role() {
            Role::Approver => self.approvers().count() >= MOST_APPROVERS,
            role => self.current(role).is_some(),
        };
        if key.retired_at().is_none() && taken {
            return Err(TrustFault::RoleTaken(key.role()));
        }
        self.keys.push(key);
        Ok(())
    }

    /// The canonical bytes.
    ///
    /// # Errors
    /// None that a bundle can have; the signature is the canonical form's.
    pub fn to_bytes(&self) -> Result<Vec<u8>, KeyFault> {
        let keys = self.keys.iter().map(Entry::from).collect();
        Ok(json::to_canonical(&Wire {
            version: Version::V1,
            object_type: ObjectType::TrustBundle,
            keys,
        })?)
    }

    /// Reads a bundle, strictly: no unknown member, no unsound key, every id the thumbprint of its key.
    ///
    /// # Errors
    /// What is wrong and where.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TrustFault> {
        let limits = Limits {
            max_bytes: MOST_BYTES,
            ..Limits::OBJECT
        };
        let value = json::parse(bytes, &limits)
            .map_err(|fault| TrustFault::Malformed(fault.to_string()))?;
        let wire: Wire =
            json::from_value(&value).map_err(|fault| TrustFault::Malformed(fault.to_string()))?;
        let mut bundle = Self::new();
        for entry in wire.keys {
            bundle.put(entry.into_key()?)?;
        }
        Ok(bundle)
    }

    /// Writes the bundle in one durable step, mode 0600: after a crash the old one or the new one is there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), KeyFault> {
        files::replace(path, &self.to_bytes()?)
    }

    /// Reads the gate's own bundle: the file must be this user's and closed to all others, for who writes it decides
    /// whom the gate believes. A bundle from elsewhere goes through [`Self::from_bytes`].
    ///
    /// # Errors
    /// When the file is not such a file, or as [`Self::from_bytes`].
    pub fn read(path: &Path) -> Result<Self, KeyFault> {
        Ok(Self::from_bytes(&files::read(path, MOST_BYTES)?)?)
    }
}

fn signature_bytes(text: &str) -> Result<[u8; 64], Invalid> {
    let bytes = b64::decode(text).ok_or(Invalid::Encoding)?;
    bytes.try_into().map_err(|_| Invalid::Encoding)
}

/// More keys than a monthly rotation of every role needs in a lifetime.
const MOST_KEYS: usize = 4096;
/// Approvers at a time.
const MOST_APPROVERS: usize = 64;
const MOST_BYTES: usize = 2 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: Version,
    object_type: ObjectType,
    keys: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
enum ObjectType {
    #[serde(rename = "trust_bundle")]
    TrustBundle,
}
