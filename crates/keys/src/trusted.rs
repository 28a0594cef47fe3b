//! One public key of a trust bundle: parsed once, sound if it exists.

use std::fmt;

use aws_lc_rs::signature::{ED25519, ParsedPublicKey, UnparsedPublicKey};
use lychgate_core::Timestamp;
use lychgate_core::digest::b64;
use lychgate_core::json;
use lychgate_core::signed::{KeyId, SignatureAlgorithm};
use serde::{Deserialize, Serialize};

use crate::{Invalid, Role, TrustFault, thumbprint};

/// A public key that is, or was, believed in one role. Parsed once; a key that exists is sound.
#[derive(Clone)]
pub struct TrustedKey {
    role: Role,
    key_id: KeyId,
    public: [u8; 32],
    valid_from: Timestamp,
    retired_at: Option<Timestamp>,
    live: ParsedPublicKey,
    strict: ed25519_dalek::VerifyingKey,
}

impl TrustedKey {
    pub(crate) fn new(
        role: Role,
        public: [u8; 32],
        valid_from: Timestamp,
    ) -> Result<Self, TrustFault> {
        let unsound = || TrustFault::Unsound(b64::encode(&public));
        let strict = sound(&public).ok_or_else(unsound)?;
        let live = UnparsedPublicKey::new(&ED25519, &public)
            .parse()
            .map_err(|_| unsound())?;
        let key_id = thumbprint(&public);
        Ok(Self {
            role,
            key_id,
            public,
            valid_from,
            retired_at: None,
            live,
            strict,
        })
    }

    /// What it is believed for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its RFC 7638 thumbprint.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// The public key.
    #[must_use]
    pub fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// From when it is believed.
    #[must_use]
    pub fn valid_from(&self) -> Timestamp {
        self.valid_from
    }

    /// When it was retired, if it was: objects of that moment and later are not believed.
    #[must_use]
    pub fn retired_at(&self) -> Option<Timestamp> {
        self.retired_at
    }

    pub(crate) fn retire(&mut self, at: Timestamp) -> Result<(), TrustFault> {
        if self.retired_at.is_some() {
            return Err(TrustFault::Retired(self.key_id.0.clone()));
        }
        if at < self.valid_from {
            return Err(TrustFault::Order(self.key_id.0.clone()));
        }
        self.retired_at = Some(at);
        Ok(())
    }

    fn begun(&self, at: Timestamp) -> Result<(), Invalid> {
        if at < self.valid_from {
            Err(Invalid::NotYetValid(self.valid_from))
        } else {
            Ok(())
        }
    }

    /// Whether these are this key's signature and bytes, whatever the time: for who signs and believes in one moment.
    ///
    /// # Errors
    /// When they are not.
    pub fn holds(&self, message: &[u8], signature: &[u8; 64]) -> Result<(), Invalid> {
        self.live
            .verify_sig(message, signature)
            .map_err(|_| Invalid::Signature)
    }

    pub(crate) fn check_live(
        &self,
        message: &[u8],
        signature: &[u8; 64],
        now: Timestamp,
    ) -> Result<(), Invalid> {
        self.begun(now)?;
        if let Some(retired) = self.retired_at {
            return Err(Invalid::Retired(retired));
        }
        self.holds(message, signature)?;
        if self.role == Role::Approver {
            // A person's signature is rare and must stand offline too: the strict check also refuses a small-order R,
            // which a dishonest signer could use to disown it later.
            return self.check_strict(message, signature);
        }
        Ok(())
    }

    pub(crate) fn check_at(
        &self,
        message: &[u8],
        signature: &[u8; 64],
        at: Timestamp,
    ) -> Result<(), Invalid> {
        self.begun(at)?;
        match self.retired_at {
            Some(retired) if at >= retired => Err(Invalid::Retired(retired)),
            _ => self.check_strict(message, signature),
        }
    }

    fn check_strict(&self, message: &[u8], signature: &[u8; 64]) -> Result<(), Invalid> {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        self.strict
            .verify_strict(message, &signature)
            .map_err(|_| Invalid::Signature)
    }
}

impl PartialEq for TrustedKey {
    fn eq(&self, other: &Self) -> bool {
        Entry::from(self) == Entry::from(other)
    }
}

impl Eq for TrustedKey {}

impl fmt::Debug for TrustedKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Entry::from(self).fmt(out)
    }
}

/// Whether a public key can be believed at all: a point of the curve, not of small order, in its one spelling.
#[must_use]
pub fn is_sound(public: &[u8; 32]) -> bool {
    sound(public).is_some()
}

/// Whether these are exactly the bytes that [`crate::SigningKey::sign_raw`] signed, for keys that stand outside a trust
/// bundle, such as a witness'. Strict and pure Rust: neither an unsound key nor a small-order R passes.
///
/// # Errors
/// When the key is not sound or the signature is not its own.
pub fn verify_raw(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> Result<(), Invalid> {
    let key = sound(public).ok_or(Invalid::Signature)?;
    key.verify_strict(message, &ed25519_dalek::Signature::from_bytes(signature))
        .map_err(|_| Invalid::Signature)
}

/// The point of a public key that nobody can cheat with: on the curve, not of small order, in its one spelling.
fn sound(public: &[u8; 32]) -> Option<ed25519_dalek::VerifyingKey> {
    let [first, middle @ .., last] = public;
    // The y coordinate as written must be below p = 2^255 - 19; the decoder would reduce it silently.
    let beyond = *first >= 0xed && middle.iter().all(|byte| *byte == 0xff) && last & 0x7f == 0x7f;
    let key = ed25519_dalek::VerifyingKey::from_bytes(public).ok()?;
    (!beyond && !key.is_weak()).then_some(key)
}

/// The key's wire form, closed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    role: Role,
    key_id: KeyId,
    algorithm: SignatureAlgorithm,
    public: String,
    valid_from: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    retired_at: Option<Timestamp>,
}

impl Entry {
    pub(crate) fn into_key(self) -> Result<TrustedKey, TrustFault> {
        let public = b64::decode(&self.public).and_then(|bytes| bytes.try_into().ok());
        let public: [u8; 32] = public.ok_or_else(|| TrustFault::Unsound(self.public.clone()))?;
        let mut key = TrustedKey::new(self.role, public, self.valid_from)?;
        if key.key_id != self.key_id {
            return Err(TrustFault::WrongId(self.key_id.0));
        }
        if let Some(retired) = self.retired_at {
            key.retire(retired)?;
        }
        Ok(key)
    }
}

impl From<&TrustedKey> for Entry {
    fn from(key: &TrustedKey) -> Self {
        Self {
            role: key.role,
            key_id: key.key_id.clone(),
            algorithm: SignatureAlgorithm::Ed25519,
            public: b64::encode(&key.public),
            valid_from: key.valid_from,
            retired_at: key.retired_at,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::SigningKey;

    #[test]
    fn raw_signatures_verify_strictly() {
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let signature = key.sign_raw(b"message").unwrap();
        assert_eq!(verify_raw(&key.public(), b"message", &signature), Ok(()));
        let other = SigningKey::from_seed(&[2; 32]).unwrap().public();
        for (public, message) in [(key.public(), &b"massage"[..]), (other, b"message")] {
            let refused = verify_raw(&public, message, &signature);
            assert_eq!(refused, Err(Invalid::Signature));
        }
        // The neutral point as key and as R, and S zero: a lenient check takes it for any message.
        let mut neutral = [0; 32];
        neutral[0] = 1;
        let mut forged = [0; 64];
        forged[0] = 1;
        assert!(!is_sound(&neutral) && is_sound(&other));
        let refused = verify_raw(&neutral, b"message", &forged);
        assert_eq!(refused, Err(Invalid::Signature));
    }
}
