//! Signed notes: a text, an empty line, and a line for each signature (C2SP signed-note).
//!
//! Two kinds of signature are known: plain Ed25519 over the text, and a witness' timestamped cosignature
//! (tlog-cosignature "Ed25519 signed message"). Signatures of unknown keys are carried along and ignored.

mod key;

pub use self::key::{KeyName, NotAKeyName, NotAVerifierKey, SignatureKind, VerifierKey, key_id};

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lychgate_keys::{KeyFault, SigningKey, verify_raw};

/// What signs a note's bytes as they are. The private key stays where it lives.
pub trait RawSigner {
    /// Why it cannot sign.
    type Fault: std::error::Error + 'static;

    /// The public half, RFC 8032.
    fn public(&self) -> [u8; 32];

    /// The Ed25519 signature of the bytes.
    ///
    /// # Errors
    /// When the signer cannot.
    fn sign_raw(&self, message: &[u8]) -> Result<[u8; 64], Self::Fault>;
}

impl RawSigner for SigningKey {
    type Fault = KeyFault;

    fn public(&self) -> [u8; 32] {
        Self::public(self)
    }

    fn sign_raw(&self, message: &[u8]) -> Result<[u8; 64], KeyFault> {
        Self::sign_raw(self, message)
    }
}

/// A note and its signatures, well formed; nothing is believed yet. `Display` is its one byte form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    // INVARIANT: not empty, ends with a newline, no other character below U+0020.
    text: String,
    signatures: Vec<NoteSignature>,
}

/// One signature line (signed-note "Signatures").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature {
    name: KeyName,
    id: u32,
    // INVARIANT: not empty.
    bytes: Vec<u8>,
}

/// A signature that was verified (signed-note "Signatures").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedSignature<'k> {
    /// Whose.
    pub key: &'k VerifierKey,
    /// A cosignature's time: seconds since 1970-01-01T00:00:00Z. Absent for a plain signature.
    pub time: Option<u64>,
}

impl Note {
    /// A text that nobody signed yet.
    ///
    /// # Errors
    /// When the text does not end with a newline, has another control character, or is too long.
    pub fn new(text: impl Into<String>) -> Result<Self, NoteFault> {
        let text = text.into();
        if text.len() > MOST_BYTES {
            return Err(NoteFault::TooLong);
        }
        if !text.ends_with('\n') {
            return Err(NoteFault::NoNewline);
        }
        if text.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
            return Err(NoteFault::Control);
        }
        Ok(Self {
            text,
            signatures: Vec::new(),
        })
    }

    /// Reads a note, strictly (signed-note "Format"): what is read prints to the same bytes.
    ///
    /// # Errors
    /// When the bytes are no signed note, or there are more than 1,000,000 bytes or 100 signatures.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteFault> {
        if bytes.len() > MOST_BYTES {
            return Err(NoteFault::TooLong);
        }
        let all = std::str::from_utf8(bytes).map_err(|_| NoteFault::Utf8)?;
        let last_empty = all.rfind("\n\n").ok_or(NoteFault::Unsigned)?;
        let (text, signatures) = all.split_at(last_empty + 1);
        let mut note = Self::new(text)?;
        note.signatures = read_signatures(signatures.get(1..).unwrap_or_default())?;
        Ok(note)
    }

    /// The signed text, with its last newline.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every signature, known or not.
    #[must_use]
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Signs the text (signed-note "Ed25519 signatures"). An earlier signature of the same key is replaced.
    ///
    /// # Errors
    /// When the signer cannot sign.
    pub fn sign<S: RawSigner>(&mut self, name: &KeyName, signer: &S) -> Result<(), S::Fault> {
        let id = key_id(name, SignatureKind::Ed25519, &signer.public());
        let signature = signer.sign_raw(self.text.as_bytes())?;
        self.put(NoteSignature {
            name: name.clone(),
            id,
            bytes: signature.to_vec(),
        });
        Ok(())
    }

    /// Cosigns the text at `time`, seconds since 1970-01-01T00:00:00Z (tlog-cosignature "Ed25519 signed message"). An
    /// earlier cosignature of the same key is replaced. The text should be a checkpoint's.
    ///
    /// # Errors
    /// When the signer cannot sign.
    pub fn cosign<S: RawSigner>(
        &mut self,
        name: &KeyName,
        time: u64,
        signer: &S,
    ) -> Result<(), S::Fault> {
        let id = key_id(name, SignatureKind::Cosignature, &signer.public());
        // The format ends at 2^63 - 1, which is no time that comes.
        let time = time.min(LAST_TIME);
        let signature = signer.sign_raw(&cosigned(time, &self.text))?;
        self.put(NoteSignature {
            name: name.clone(),
            id,
            bytes: [&time.to_be_bytes()[..], &signature].concat(),
        });
        Ok(())
    }

    /// Takes over a signature made elsewhere; one of the same key is replaced.
    pub(crate) fn put(&mut self, signature: NoteSignature) {
        let other = |old: &NoteSignature| old.name != signature.name || old.id != signature.id;
        self.signatures.retain(other);
        self.signatures.push(signature);
    }

    /// The signatures of known keys, in the note's order; all of them are verified, strictly.
    ///
    /// # Errors
    /// When one does not verify, is there twice or is of two of the keys; when there is none. Signatures that no known
    /// key's name and id fit are ignored (signed-note "Signatures").
    pub fn verify<'k>(
        &self,
        known: &'k [VerifierKey],
    ) -> Result<Vec<VerifiedSignature<'k>>, NoteFault> {
        let mut verified: Vec<VerifiedSignature<'k>> = Vec::new();
        for signature in &self.signatures {
            let fits =
                |key: &&VerifierKey| *key.name() == signature.name && key.id() == signature.id;
            let mut keys = known.iter().filter(fits);
            let Some(key) = keys.next() else { continue };
            if keys.any(|other| other != key) {
                return Err(NoteFault::Ambiguous(signature.label()));
            }
            if verified.iter().any(|earlier| earlier.key == key) {
                return Err(NoteFault::Twice(signature.label()));
            }
            let time = signature.verify(&self.text, key)?;
            verified.push(VerifiedSignature { key, time });
        }
        if verified.is_empty() {
            Err(NoteFault::NoKnownKey)
        } else {
            Ok(verified)
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.text)?;
        self.signatures.iter().try_for_each(|line| line.fmt(out))
    }
}

impl NoteSignature {
    /// The key's name.
    #[must_use]
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// The key's id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    fn label(&self) -> String {
        format!("{}+{:08x}", self.name, self.id)
    }

    /// Verifies it and gives the time of a cosignature.
    fn verify(&self, text: &str, key: &VerifierKey) -> Result<Option<u64>, NoteFault> {
        let refused = || NoteFault::Signature(self.label());
        let (time, signature, message) = match key.kind() {
            SignatureKind::Ed25519 => (None, &self.bytes[..], text.as_bytes().to_vec()),
            SignatureKind::Cosignature => {
                let (time, signature) = self.bytes.split_first_chunk().ok_or_else(refused)?;
                let time = u64::from_be_bytes(*time);
                if time > LAST_TIME {
                    return Err(refused());
                }
                (Some(time), signature, cosigned(time, text))
            }
        };
        let signature = signature.try_into().map_err(|_| refused())?;
        verify_raw(key.public(), &message, signature).map_err(|_| refused())?;
        Ok(time)
    }

    /// One line, without its newline.
    fn parse(line: &str) -> Result<Self, NoteFault> {
        let (name, encoded) = line
            .strip_prefix("— ")
            .and_then(|rest| rest.split_once(' '))
            .ok_or(NoteFault::Line)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| NoteFault::Line)?;
        let (id, bytes) = bytes.split_first_chunk().ok_or(NoteFault::Line)?;
        if bytes.is_empty() {
            return Err(NoteFault::Line);
        }
        Ok(Self {
            name: KeyName::new(name).map_err(|_| NoteFault::Line)?,
            id: u32::from_be_bytes(*id),
            bytes: bytes.to_vec(),
        })
    }
}

/// The line, with its newline.
impl fmt::Display for NoteSignature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&self.id.to_be_bytes()[..], &self.bytes].concat();
        writeln!(out, "— {} {}", self.name, STANDARD.encode(bytes))
    }
}

/// Reads signature lines, at least one, each ended by a newline.
///
/// # Errors
/// When a line is malformed, none is there, or there are more than 100.
pub(crate) fn read_signatures(lines: &str) -> Result<Vec<NoteSignature>, NoteFault> {
    let lines = lines.strip_suffix('\n').ok_or(NoteFault::Unsigned)?;
    if lines.split('\n').count() > MOST_SIGNATURES {
        return Err(NoteFault::TooManySignatures);
    }
    lines.split('\n').map(NoteSignature::parse).collect()
}

/// What a cosignature signs.
fn cosigned(time: u64, text: &str) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}

/// A note is malformed or not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteFault {
    /// More than 1,000,000 bytes.
    #[error("note is longer than {MOST_BYTES} bytes")]
    TooLong,
    /// Not UTF-8.
    #[error("note is not valid UTF-8")]
    Utf8,
    /// A control character other than newline.
    #[error("note has a control character other than newline")]
    Control,
    /// The text does not end with a newline.
    #[error("note's text does not end with a newline")]
    NoNewline,
    /// No empty line with signature lines after it.
    #[error("note has no signatures")]
    Unsigned,
    /// A signature line in another form.
    #[error("note has a malformed signature line")]
    Line,
    /// More than 100.
    #[error("note has more than {MOST_SIGNATURES} signatures")]
    TooManySignatures,
    /// A known key's signature does not verify.
    #[error("signature of `{0}` does not verify")]
    Signature(String),
    /// A known key signed twice.
    #[error("note has two signatures of `{0}`")]
    Twice(String),
    /// Two known keys have one name and id.
    #[error("two known keys are called `{0}`")]
    Ambiguous(String),
    /// None of the known keys signed.
    #[error("note is not signed by any known key")]
    NoKnownKey,
}

/// The longest note, in bytes.
const MOST_BYTES: usize = 1_000_000;
/// The most signatures in a note.
const MOST_SIGNATURES: usize = 100;
/// The last time a cosignature can have.
const LAST_TIME: u64 = i64::MAX as u64;

#[cfg(test)]
mod tests;
