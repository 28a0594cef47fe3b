//! The approver's key: encrypted under a passphrase, so that a shell with the gate's rights cannot approve (PROFILE §10).

use std::path::Path;

use argon2::{Algorithm, Argon2, Params, Version as ArgonVersion};
use lychgate_core::Timestamp;
use lychgate_core::act::Version;
use lychgate_core::digest::b64;
use lychgate_core::json::{self, Limits};
use lychgate_core::outside::Entropy as _;
use lychgate_core::signed::{KeyId, SignatureAlgorithm};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::files;
use crate::{KeyFault, Sealer, SigningKey, SystemEntropy};

/// The approver's key file: Argon2id over the passphrase, AES-256-GCM over the seed, the header authenticated with it.
///
/// Opening it takes 64 MiB and a good part of a second, on purpose.
#[derive(Clone, Copy, Debug)]
pub struct ApproverKey;

impl ApproverKey {
    /// The fewest characters of a passphrase.
    pub const LEAST_CHARACTERS: usize = 8;

    /// Makes a fresh key in a new file, mode 0600, and gives its id and public half for the trust bundle.
    ///
    /// # Errors
    /// When the passphrase is too short, or the file exists or cannot be written.
    pub fn create(
        path: &Path,
        passphrase: &[u8],
        at: Timestamp,
    ) -> Result<(KeyId, [u8; 32]), KeyFault> {
        check_passphrase(passphrase)?;
        let (key, seed) = SigningKey::generate_with_seed()?;
        files::create(path, &lock(&key, &seed, passphrase, at)?)?;
        Ok((key.key_id().clone(), key.public()))
    }

    /// Opens the key.
    ///
    /// # Errors
    /// [`KeyFault::WrongPassphrase`], or when the file is not closed to others or not an approver's key.
    pub fn open(path: &Path, passphrase: &[u8]) -> Result<SigningKey, KeyFault> {
        unlock(path, passphrase).map(|(key, ..)| key)
    }

    /// Encrypts the same key under another passphrase, in one durable step. The old file's blocks may survive on the
    /// disk: who fears that rotates the key instead.
    ///
    /// # Errors
    /// As [`Self::open`] for the old passphrase and [`Self::create`] for the new one; the file is then as it was.
    pub fn change_passphrase(path: &Path, old: &[u8], new: &[u8]) -> Result<(), KeyFault> {
        check_passphrase(new)?;
        let (key, seed, created_at) = unlock(path, old)?;
        files::replace(path, &lock(&key, &seed, new, created_at)?)
    }
}

/// Everything in the file but the ciphertext; its canonical bytes are the associated data.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: Version,
    object_type: ObjectType,
    key_id: KeyId,
    algorithm: SignatureAlgorithm,
    created_at: Timestamp,
    kdf: Derivation,
    cipher: Cipher,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Locked {
    header: Header,
    sealed: String,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum ObjectType {
    #[serde(rename = "approver_key")]
    ApproverKey,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Cipher {
    #[serde(rename = "AES-256-GCM")]
    Aes256Gcm,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum DerivationName {
    #[serde(rename = "argon2id")]
    Argon2id,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Derivation {
    name: DerivationName,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: String,
}

impl Derivation {
    fn fresh() -> Result<Self, KeyFault> {
        let mut salt = [0; SALT_LEN];
        SystemEntropy.fill(&mut salt)?;
        Ok(Self {
            name: DerivationName::Argon2id,
            memory_kib: 64 * 1024,
            passes: 3,
            lanes: 1,
            salt: b64::encode(&salt),
        })
    }

    /// The sealer of a passphrase; `None` when the parameters are out of bounds: a file must not make a reader take
    /// all memory, nor claim a cost so low that guessing is free.
    fn sealer(&self, passphrase: &[u8]) -> Option<Result<Sealer, KeyFault>> {
        let within = (8 * 1024..=512 * 1024).contains(&self.memory_kib)
            && (1..=16).contains(&self.passes)
            && (1..=8).contains(&self.lanes);
        let salt = b64::decode(&self.salt).filter(|salt| within && salt.len() == SALT_LEN)?;
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).ok()?;
        let argon2 = Argon2::new(Algorithm::Argon2id, ArgonVersion::V0x13, params);
        let mut secret = Zeroizing::new([0; 32]);
        let derived = argon2.hash_password_into(passphrase, &salt, secret.as_mut_slice());
        Some(
            derived
                .map_err(|_| KeyFault::Crypto("derive key"))
                .and_then(|()| Sealer::from_secret(&secret)),
        )
    }
}

fn lock(
    key: &SigningKey,
    seed: &[u8; 32],
    passphrase: &[u8],
    at: Timestamp,
) -> Result<Vec<u8>, KeyFault> {
    let header = Header {
        version: Version::V1,
        object_type: ObjectType::ApproverKey,
        key_id: key.key_id().clone(),
        algorithm: SignatureAlgorithm::Ed25519,
        created_at: at,
        kdf: Derivation::fresh()?,
        cipher: Cipher::Aes256Gcm,
    };
    let sealer = header
        .kdf
        .sealer(passphrase)
        .ok_or(KeyFault::Crypto("derive key"))??;
    let sealed = sealer.seal(&json::to_canonical(&header)?, seed)?;
    Ok(json::to_canonical(&Locked {
        header,
        sealed: b64::encode(&sealed),
    })?)
}

fn unlock(
    path: &Path,
    passphrase: &[u8],
) -> Result<(SigningKey, Zeroizing<[u8; 32]>, Timestamp), KeyFault> {
    let format = || KeyFault::Format {
        path: path.to_owned(),
    };
    let wrong = || KeyFault::WrongPassphrase {
        path: path.to_owned(),
    };
    let bytes = files::read(path, MOST_BYTES)?;
    let value = json::parse(&bytes, &Limits::OBJECT).map_err(|_| format())?;
    let Locked { header, sealed } = json::from_value(&value).map_err(|_| format())?;
    let sealed = b64::decode(&sealed).ok_or_else(format)?;
    if passphrase.len() > MOST_PASSPHRASE {
        return Err(wrong());
    }
    let sealer = header.kdf.sealer(passphrase).ok_or_else(format)??;
    let opened = sealer
        .open(&json::to_canonical(&header)?, &sealed)
        .map_err(|_| wrong())?;
    let mut seed = Zeroizing::new([0; 32]);
    if opened.len() != seed.len() {
        return Err(format());
    }
    seed.copy_from_slice(&opened);
    let key = SigningKey::from_seed(&seed)?;
    if *key.key_id() != header.key_id {
        return Err(KeyFault::Mismatch {
            path: path.to_owned(),
        });
    }
    Ok((key, seed, header.created_at))
}

fn check_passphrase(passphrase: &[u8]) -> Result<(), KeyFault> {
    if passphrase.len() > MOST_PASSPHRASE {
        return Err(KeyFault::PassphraseTooLong {
            most: MOST_PASSPHRASE,
        });
    }
    let characters =
        std::str::from_utf8(passphrase).map_or(passphrase.len(), |text| text.chars().count());
    if characters < ApproverKey::LEAST_CHARACTERS {
        return Err(KeyFault::PassphraseTooShort {
            least: ApproverKey::LEAST_CHARACTERS,
        });
    }
    Ok(())
}

const SALT_LEN: usize = 16;
const MOST_PASSPHRASE: usize = 1024;
const MOST_BYTES: usize = 4096;
