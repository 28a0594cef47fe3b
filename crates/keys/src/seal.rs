//! Sealing: AES-256-GCM for what must not lie in clear text, bound to its place (PROFILE §10).

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use lychgate_core::outside::Entropy as _;
use zeroize::Zeroizing;

use crate::files::{self, line};
use crate::{KeyFault, SystemEntropy};

/// The key that seals held arguments and kept answers.
pub struct Sealer {
    key: RandomizedNonceKey,
    // INVARIANT: at most `MOST_SEALED` random nonces are drawn under one key in one process.
    sealed: AtomicU64,
}

impl Sealer {
    /// Makes a fresh key in a new file of mode 0600.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, KeyFault> {
        let mut secret = Zeroizing::new([0; 32]);
        SystemEntropy.fill(secret.as_mut_slice())?;
        files::create(path, line::compose(WORD, NO_ID, &secret).as_bytes())?;
        Self::from_secret(&secret)
    }

    /// Opens the key of a file.
    ///
    /// # Errors
    /// When the file is open to others, a symbolic link, another user's, or no seal key.
    pub fn open_file(path: &Path) -> Result<Self, KeyFault> {
        Self::from_secret(&*line::load(path, WORD, NO_ID)?)
    }

    /// A key of 32 uniform bytes: derived ones, and tests.
    ///
    /// # Errors
    /// When the library refuses, which no 32 bytes explain.
    pub fn from_secret(secret: &[u8; 32]) -> Result<Self, KeyFault> {
        let key = RandomizedNonceKey::new(&AES_256_GCM, secret)
            .map_err(|_| KeyFault::Crypto("read key"))?;
        Ok(Self {
            key,
            sealed: AtomicU64::new(0),
        })
    }

    /// Encrypts `plain` and binds it to `aad`, which says what and whose it is. Nonce (12), ciphertext, tag (16).
    ///
    /// # Errors
    /// When this process has sealed 2^31 times, or the library refuses.
    pub fn seal(&self, aad: &[u8], plain: &[u8]) -> Result<Vec<u8>, KeyFault> {
        if self.sealed.fetch_add(1, Ordering::Relaxed) >= MOST_SEALED {
            return Err(KeyFault::UsedUp);
        }
        let mut text = Zeroizing::new(Vec::with_capacity(plain.len().saturating_add(TAG_LEN)));
        text.extend_from_slice(plain);
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(aad), &mut *text);
        let nonce = nonce.map_err(|_| KeyFault::Crypto("seal"))?;
        let mut out = Vec::with_capacity(NONCE_LEN + text.len());
        out.extend_from_slice(nonce.as_ref());
        out.extend_from_slice(&text);
        Ok(out)
    }

    /// Decrypts what [`Self::seal`] gave for the same `aad`.
    ///
    /// # Errors
    /// When anything about it was changed, or it was sealed under another key or for another `aad`.
    pub fn open(&self, aad: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
        let (nonce, text) = sealed
            .split_at_checked(NONCE_LEN)
            .ok_or(KeyFault::NotSealed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| KeyFault::NotSealed)?;
        let mut text = Zeroizing::new(text.to_vec());
        let opened = self.key.open_in_place(nonce, Aad::from(aad), &mut text);
        let length = opened.map_err(|_| KeyFault::NotSealed)?.len();
        text.truncate(length);
        Ok(text)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sealer")
    }
}

const WORD: &str = "seal";
/// A seal key has no public half, so no id.
const NO_ID: &str = "-";
const TAG_LEN: usize = 16;
/// Half of what SP 800-38D allows for random 96-bit nonces, so that a few restarts do not pass it.
const MOST_SEALED: u64 = 1 << 31;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_file_opens_again_and_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seal.key");
        let sealed = Sealer::create(&path)
            .unwrap()
            .seal(b"ticket", b"arguments")
            .unwrap();
        let again = Sealer::open_file(&path).unwrap();
        assert_eq!(
            again.open(b"ticket", &sealed).unwrap().as_slice(),
            b"arguments"
        );
        assert!(matches!(
            Sealer::create(&path),
            Err(KeyFault::Exists { .. })
        ));
        assert!(again.open(b"ticket", &sealed).is_ok());
    }

    #[test]
    fn what_was_sealed_for_one_place_does_not_open_in_another() {
        let sealer = Sealer::from_secret(&[1; 32]).unwrap();
        let sealed = sealer.seal(b"act-1", b"secret").unwrap();
        assert!(matches!(
            sealer.open(b"act-2", &sealed),
            Err(KeyFault::NotSealed)
        ));
        let other = Sealer::from_secret(&[2; 32]).unwrap();
        assert!(matches!(
            other.open(b"act-1", &sealed),
            Err(KeyFault::NotSealed)
        ));
        for short in 0..sealed.len() {
            assert!(sealer.open(b"act-1", &sealed[..short]).is_err());
        }
    }

    #[test]
    fn a_used_up_key_seals_no_more() {
        let sealer = Sealer::from_secret(&[1; 32]).unwrap();
        sealer.sealed.store(MOST_SEALED, Ordering::Relaxed);
        assert!(matches!(sealer.seal(b"", b""), Err(KeyFault::UsedUp)));
    }

    proptest! {
        #[test]
        fn sealing_turns_back_and_never_repeats(plain: Vec<u8>, aad: Vec<u8>, flip: prop::sample::Index) {
            let sealer = Sealer::from_secret(&[3; 32]).unwrap();
            let mut sealed = sealer.seal(&aad, &plain).unwrap();
            prop_assert_ne!(&sealed, &sealer.seal(&aad, &plain).unwrap());
            let opened = sealer.open(&aad, &sealed).unwrap();
            prop_assert_eq!(opened.as_slice(), plain.as_slice());
            let at = flip.index(sealed.len());
            sealed[at] ^= 1;
            prop_assert!(sealer.open(&aad, &sealed).is_err());
        }
    }
}
