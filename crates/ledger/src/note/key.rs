//! Names and keys of notes (C2SP signed-note "Signatures", "Verifier keys").

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lychgate_keys::is_sound;
use sha2::{Digest as _, Sha256};

/// A key's name: 1 to 255 bytes, no Unicode space, no `+`, no control character. Best an URL without its scheme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(String);

impl KeyName {
    /// Takes a name.
    ///
    /// # Errors
    /// When it is empty, too long, or has a character that no name has.
    pub fn new(name: impl Into<String>) -> Result<Self, NotAKeyName> {
        let name = name.into();
        let foreign = |letter: char| letter.is_whitespace() || letter == '+' || letter < ' ';
        if name.is_empty() || name.len() > MOST_NAME || name.contains(foreign) {
            Err(NotAKeyName(name))
        } else {
            Ok(Self(name))
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A text that cannot name a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name a key: 1 to {MOST_NAME} bytes without spaces, `+` and control characters"
)]
pub struct NotAKeyName(String);

/// How a key signs. The byte is signed-note's signature type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignatureKind {
    /// Ed25519 over the text: type 0x01.
    Ed25519,
    /// A witness' timestamped Ed25519 cosignature: type 0x04.
    Cosignature,
}

impl SignatureKind {
    /// The signature type's byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Ed25519 => 0x01,
            Self::Cosignature => 0x04,
        }
    }
}

/// A key's id: the first four bytes, big-endian, of SHA-256 over name, newline, signature type and public key.
#[must_use]
pub fn key_id(name: &KeyName, kind: SignatureKind, public: &[u8; 32]) -> u32 {
    let digest = Sha256::new()
        .chain_update(name.as_str())
        .chain_update([b'\n', kind.byte()])
        .chain_update(public)
        .finalize();
    digest
        .iter()
        .take(4)
        .fold(0, |id, byte| id << 8 | u32::from(*byte))
}

/// A public key that notes may be signed with. Its text is `<name>+<id, 8 hex digits>+<base64 of type and key>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    // INVARIANT: the public key is sound, and the id is of name, kind and key.
    name: KeyName,
    kind: SignatureKind,
    public: [u8; 32],
    id: u32,
}

impl VerifierKey {
    /// The key, which must be one nobody can cheat with.
    ///
    /// # Errors
    /// When the public key is not on the curve, of small order, or in a second spelling.
    pub fn new(
        name: KeyName,
        kind: SignatureKind,
        public: [u8; 32],
    ) -> Result<Self, NotAVerifierKey> {
        if !is_sound(&public) {
            return Err(NotAVerifierKey::Unsound);
        }
        let id = key_id(&name, kind, &public);
        Ok(Self {
            name,
            kind,
            public,
            id,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// How it signs.
    #[must_use]
    pub fn kind(&self) -> SignatureKind {
        self.kind
    }

    /// The Ed25519 public key.
    #[must_use]
    pub fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&[self.kind.byte()][..], &self.public].concat();
        write!(
            out,
            "{}+{:08x}+{}",
            self.name,
            self.id,
            STANDARD.encode(bytes)
        )
    }
}

impl FromStr for VerifierKey {
    type Err = NotAVerifierKey;

    fn from_str(text: &str) -> Result<Self, NotAVerifierKey> {
        let form = || NotAVerifierKey::Form(text.to_owned());
        let (name, rest) = text.split_once('+').ok_or_else(form)?;
        let (_, encoded) = rest.split_once('+').ok_or_else(form)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| form())?;
        let (kind, public) = bytes.split_first().ok_or_else(form)?;
        let kind = match kind {
            0x01 => SignatureKind::Ed25519,
            0x04 => SignatureKind::Cosignature,
            other => return Err(NotAVerifierKey::Kind(*other)),
        };
        let public = public.try_into().map_err(|_| form())?;
        let key = Self::new(KeyName::new(name).map_err(|_| form())?, kind, public)?;
        // The id in the text must be the key's own, in the one spelling.
        if key.to_string() == text {
            Ok(key)
        } else {
            Err(NotAVerifierKey::Id(key.id))
        }
    }
}

/// A text or key that notes cannot be verified with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAVerifierKey {
    /// Not `<name>+<id>+<base64>`.
    #[error("`{0}` is not a verifier key")]
    Form(String),
    /// A signature type that is not spoken here.
    #[error("verifier key has signature type 0x{0:02x}; known are 0x01 and 0x04")]
    Kind(u8),
    /// Another id than the key's.
    #[error("verifier key has another id than its own, {0:08x}")]
    Id(u32),
    /// A public key that anybody could have signed for.
    #[error("verifier key's public key is not sound")]
    Unsound,
}

/// The longest name, in bytes.
const MOST_NAME: usize = 255;
