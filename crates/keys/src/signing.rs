//! An Ed25519 signing key and its id.

use std::fmt;
use std::sync::Mutex;

use aws_lc_rs::rand;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use lychgate_core::digest::{b64, sha256};
use lychgate_core::merkle::Hash;
use lychgate_core::outside::{Entropy, NoEntropy};
use lychgate_core::signed::{self, KeyId, Mark, Signed, pre_authentication_encoding};
use zeroize::{Zeroize as _, Zeroizing};

use crate::KeyFault;

/// An Ed25519 private key. Not `Clone`; its memory is wiped when it is dropped; `Debug` shows the key id only.
pub struct SigningKey {
    // aws-lc wipes what it frees, so the private half does not outlive this.
    pair: Ed25519KeyPair,
    public: [u8; 32],
    id: KeyId,
}

impl SigningKey {
    /// A fresh key.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn generate() -> Result<Self, KeyFault> {
        Self::generate_with_seed().map(|(key, _)| key)
    }

    /// The key of an RFC 8032 seed: for tests and simulations, where a run must repeat.
    ///
    /// # Errors
    /// When the library refuses the seed, which no 32 bytes explain.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, KeyFault> {
        let pair =
            Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyFault::Crypto("read key"))?;
        let public = <[u8; 32]>::try_from(pair.public_key().as_ref());
        let public = public.map_err(|_| KeyFault::Crypto("derive public key"))?;
        Ok(Self {
            pair,
            public,
            id: thumbprint(&public),
        })
    }

    pub(crate) fn generate_with_seed() -> Result<(Self, Zeroizing<[u8; 32]>), KeyFault> {
        let mut seed = Zeroizing::new([0; 32]);
        SystemEntropy.fill(seed.as_mut_slice())?;
        Ok((Self::from_seed(&seed)?, seed))
    }

    /// The key's id, its RFC 7638 thumbprint.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        &self.id
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        self.public
    }

    /// Signs an object in place: its mark names this key, and every other member is covered (PROFILE §3).
    ///
    /// # Errors
    /// When the object has no canonical form. The object is then left marked and unsigned.
    pub fn sign<T: Signed>(&self, object: &mut T) -> Result<(), KeyFault> {
        *object.mark_mut() = Mark::unsigned(self.id.clone());
        let message = signed::signing_bytes(object)?;
        object.mark_mut().signature = Some(self.signature(&message)?);
        Ok(())
    }

    /// Signs the root over `size` leaves, each [`signed::leaf_of`] an object whose mark names this key: 64 bytes, the
    /// signature of every one of them together with its place (PROFILE §3).
    ///
    /// # Errors
    /// When the library refuses, which no input explains.
    pub fn sign_batch(&self, root: &Hash, size: u32) -> Result<[u8; 64], KeyFault> {
        self.sign_raw(&signed::batch_bytes(root, size))
    }

    /// Signs other bytes as DSSE with their own payload type; the signature is base64url.
    ///
    /// # Errors
    /// When the library refuses, which no input explains.
    pub fn sign_bytes(&self, payload_type: &str, body: &[u8]) -> Result<String, KeyFault> {
        self.signature(&pre_authentication_encoding(payload_type, body))
    }

    /// Signs bytes as they are: only for formats with bytes of their own, such as a checkpoint's signed note
    /// (PROFILE §3). 64 bytes, RFC 8032.
    ///
    /// # Errors
    /// When the library refuses, which no input explains.
    pub fn sign_raw(&self, message: &[u8]) -> Result<[u8; 64], KeyFault> {
        let signature = self
            .pair
            .try_sign(message)
            .map_err(|_| KeyFault::Crypto("sign"))?;
        signature
            .as_ref()
            .try_into()
            .map_err(|_| KeyFault::Crypto("sign"))
    }

    fn signature(&self, message: &[u8]) -> Result<String, KeyFault> {
        Ok(b64::encode(&self.sign_raw(message)?))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SigningKey({})", self.id.0)
    }
}

/// The system's randomness, as aws-lc draws it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, out: &mut [u8]) -> Result<(), NoEntropy> {
        rand::fill(out).map_err(|_| NoEntropy)
    }
}

/// The system's randomness, drawn a little ahead: an act needs some sixty bytes in several places, and each draw costs more
/// than its bytes. What was given is wiped; nothing is given twice. Not for a process that forks and goes on in both.
#[derive(Default)]
pub struct DrawnEntropy(Mutex<Drawn>);

struct Drawn {
    bytes: Zeroizing<[u8; AHEAD]>,
    /// From here on the bytes were not given yet.
    next: usize,
}

impl Default for Drawn {
    fn default() -> Self {
        Self {
            bytes: Zeroizing::new([0; AHEAD]),
            next: AHEAD,
        }
    }
}

impl fmt::Debug for DrawnEntropy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("DrawnEntropy")
    }
}

impl Entropy for DrawnEntropy {
    fn fill(&self, out: &mut [u8]) -> Result<(), NoEntropy> {
        if out.len() > AHEAD {
            return SystemEntropy.fill(out);
        }
        let mut drawn = self.0.lock().map_err(|_| NoEntropy)?;
        if AHEAD - drawn.next < out.len() {
            // INVARIANT: `next` stands at the end while drawing, so that a failed draw gives nothing old.
            drawn.next = AHEAD;
            SystemEntropy.fill(drawn.bytes.as_mut_slice())?;
            drawn.next = 0;
        }
        let from = drawn.next;
        let given = drawn
            .bytes
            .get_mut(from..from + out.len())
            .ok_or(NoEntropy)?;
        out.copy_from_slice(given);
        given.zeroize();
        drawn.next = from + out.len();
        Ok(())
    }
}

/// So many bytes are drawn at once.
const AHEAD: usize = 1024;

/// A public key's RFC 7638 thumbprint (its JWK form is RFC 8037's).
#[must_use]
pub fn thumbprint(public: &[u8; 32]) -> KeyId {
    let jwk = format!(
        r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#,
        b64::encode(public)
    );
    KeyId(sha256(jwk.as_bytes()).to_base64url())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_is_drawn_ahead_is_given_once() {
        let entropy = DrawnEntropy::default();
        let mut seen = std::collections::BTreeSet::new();
        for length in (8..40).cycle().take(4000) {
            let mut out = vec![0; length];
            entropy.fill(&mut out).unwrap();
            assert!(out.iter().any(|byte| *byte != 0));
            assert!(seen.insert(out[..8].to_vec()), "given twice");
            let drawn = entropy.0.lock().unwrap();
            let given = &drawn.bytes[..drawn.next];
            assert!(given.iter().all(|byte| *byte == 0), "not wiped");
        }
        let mut long = vec![0; 5000];
        entropy.fill(&mut long).unwrap();
        assert!(long.iter().filter(|byte| **byte == 0).count() < 100);
    }

    #[test]
    fn the_thumbprint_is_rfc_8037_s_example() {
        let public = b64::decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let id = thumbprint(&public.try_into().unwrap());
        assert_eq!(id.0, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn the_key_and_signature_are_rfc_8032_s_first_example() {
        let seed = b64::decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap();
        let key = SigningKey::from_seed(&seed.try_into().unwrap()).unwrap();
        assert_eq!(
            b64::encode(&key.public()),
            "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        );
        let hex = key
            .sign_raw(b"")
            .unwrap()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        assert!(hex.starts_with(
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bac"
        ));
        assert!(hex.ends_with("c61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"));
    }

    #[test]
    fn debug_shows_the_id_and_no_key() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        assert_eq!(
            format!("{key:?}"),
            format!("SigningKey({})", key.key_id().0)
        );
    }
}
