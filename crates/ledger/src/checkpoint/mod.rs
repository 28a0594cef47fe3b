//! Checkpoints: the head of a log, signed by it and cosigned by witnesses (C2SP tlog-checkpoint, tlog-cosignature).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::hash::{Hash, empty_root};
use crate::note::{
    KeyName, NotAKeyName, Note, NoteFault, RawSigner, SignatureKind, VerifierKey, read_signatures,
};

/// The head of a log (tlog-checkpoint "Note text"): who, how many leaves, which root. `Display` is the note's text.
#[derive(Clone, PartialEq, Eq)]
pub struct Checkpoint {
    // INVARIANT: not empty, no control character; the root of size 0 is the empty one; extensions likewise lines.
    origin: String,
    size: u64,
    root: Hash,
    extensions: Vec<String>,
}

impl Checkpoint {
    /// The head of the log called `origin`, without extension lines.
    ///
    /// # Errors
    /// When the origin is not one line, or a tree of no leaves is said to have another root than the empty one.
    pub fn new(origin: impl Into<String>, size: u64, root: Hash) -> Result<Self, CheckpointFault> {
        let origin = origin.into();
        if !is_line(&origin) {
            return Err(CheckpointFault::Origin);
        }
        if size == 0 && root != empty_root() {
            return Err(CheckpointFault::EmptyRoot);
        }
        Ok(Self {
            origin,
            size,
            root,
            extensions: Vec::new(),
        })
    }

    /// The log's name.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// How many leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The root over them.
    #[must_use]
    pub fn root(&self) -> &Hash {
        &self.root
    }

    /// The extension lines, which mean nothing here. Ours has none.
    #[must_use]
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = STANDARD.encode(self.root);
        write!(out, "{}\n{}\n{root}\n", self.origin, self.size)?;
        self.extensions
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Checkpoint({:?})", self.to_string())
    }
}

impl FromStr for Checkpoint {
    type Err = CheckpointFault;

    /// Reads a note's text, strictly (tlog-checkpoint "Note text"): what is read prints to the same text.
    fn from_str(text: &str) -> Result<Self, CheckpointFault> {
        let body = text.strip_suffix('\n').ok_or(CheckpointFault::Lines)?;
        let mut lines = body.split('\n');
        let mut line = || lines.next().ok_or(CheckpointFault::Lines);
        let (origin, size, root) = (line()?, line()?, line()?);
        let size = decimal(size).ok_or(CheckpointFault::Size)?;
        let root = hash_line(root).ok_or(CheckpointFault::Root)?;
        let mut checkpoint = Self::new(origin, size, root)?;
        for line in lines {
            if !is_line(line) {
                return Err(CheckpointFault::Extension);
            }
            checkpoint.extensions.push(line.to_owned());
        }
        Ok(checkpoint)
    }
}

/// A number in its one decimal spelling.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// A hash in standard base64.
pub(crate) fn hash_line(text: &str) -> Option<Hash> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn is_line(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte >= 0x20)
}

/// A checkpoint with its signatures, well formed; nothing is believed yet. `Display` is its one byte form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    // INVARIANT: the note's text is the checkpoint's.
    checkpoint: Checkpoint,
    note: Note,
}

impl SignedCheckpoint {
    /// Signs a head with the log's key, under the log's name (tlog-checkpoint "Signatures").
    ///
    /// # Errors
    /// When the origin cannot name a key, or the signer cannot sign.
    pub fn sign<S: RawSigner>(
        checkpoint: Checkpoint,
        signer: &S,
    ) -> Result<Self, SignFault<S::Fault>> {
        let name = KeyName::new(checkpoint.origin())?;
        let mut note = Note::new(checkpoint.to_string())?;
        note.sign(&name, signer).map_err(SignFault::Signer)?;
        Ok(Self { checkpoint, note })
    }

    /// Reads a signed checkpoint, strictly.
    ///
    /// # Errors
    /// When the bytes are no signed note or its text no checkpoint.
    pub fn parse(bytes: &[u8]) -> Result<Self, CheckpointFault> {
        let note = Note::parse(bytes)?;
        let checkpoint = note.text().parse()?;
        Ok(Self { checkpoint, note })
    }

    /// What it says, believed or not.
    #[must_use]
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The note.
    #[must_use]
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// Cosigns it as a witness at `time`, seconds since 1970-01-01T00:00:00Z; gives the new line. Only for a witness
    /// that checked consistency ([`crate::witness`]).
    ///
    /// # Errors
    /// When the signer cannot sign.
    pub fn cosign<S: RawSigner>(
        &mut self,
        name: &KeyName,
        time: u64,
        signer: &S,
    ) -> Result<String, S::Fault> {
        self.note.cosign(name, time, signer)?;
        let last = self.note.signatures().last();
        Ok(last.map(ToString::to_string).unwrap_or_default())
    }

    /// Takes over cosignatures from a witness' answer (tlog-witness "add-checkpoint"): signature lines. Those of
    /// unknown keys are left out; an earlier one of the same key is replaced. Gives how many were taken.
    ///
    /// # Errors
    /// When the lines are malformed, or a known witness' cosignature does not verify. Nothing is then taken.
    pub fn add_cosignatures(
        &mut self,
        lines: &str,
        witnesses: &[VerifierKey],
    ) -> Result<usize, NoteFault> {
        let mut answer = Note::new(self.note.text())?;
        let known = |name: &KeyName, id| {
            let mut keys = witnesses.iter();
            keys.any(|key| key.name() == name && key.id() == id && is_witness(key))
        };
        let mut taken = self.note.clone();
        let mut count = 0;
        for line in read_signatures(lines)? {
            if known(line.name(), line.id()) {
                answer.put(line.clone());
                taken.put(line);
                count += 1;
            }
        }
        if count > 0 {
            answer.verify(witnesses)?;
            self.note = taken;
        }
        Ok(count)
    }

    /// Believes it when one of the log's keys signed it, and says which of the witnesses cosigned it. `log` are the
    /// keys believed for this very origin, whatever their names.
    ///
    /// # Errors
    /// When no key of the log signed it, or a signature of a known key does not verify.
    pub fn verify(
        &self,
        log: &[VerifierKey],
        witnesses: &[VerifierKey],
    ) -> Result<VerifiedCheckpoint, CheckpointFault> {
        let known: Vec<VerifierKey> = log
            .iter()
            .filter(|key| key.kind() == SignatureKind::Ed25519)
            .chain(witnesses.iter().filter(|key| is_witness(key)))
            .cloned()
            .collect();
        let mut verified = VerifiedCheckpoint {
            checkpoint: self.checkpoint.clone(),
            signed_by: Vec::new(),
            cosignatures: Vec::new(),
        };
        for signature in self.note.verify(&known)? {
            let key = signature.key.clone();
            match signature.time {
                None => verified.signed_by.push(key),
                Some(time) => verified.cosignatures.push(Cosignature { key, time }),
            }
        }
        if verified.signed_by.is_empty() {
            Err(CheckpointFault::NotTheLog)
        } else {
            Ok(verified)
        }
    }
}

fn is_witness(key: &VerifierKey) -> bool {
    key.kind() == SignatureKind::Cosignature
}

impl fmt::Display for SignedCheckpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.note.fmt(out)
    }
}

/// A checkpoint that its log signed. Only [`SignedCheckpoint::verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedCheckpoint {
    checkpoint: Checkpoint,
    signed_by: Vec<VerifierKey>,
    cosignatures: Vec<Cosignature>,
}

/// A witness' word (tlog-cosignature "Ed25519 signed message") that, at a time, this was the largest consistent head it
/// had seen of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    /// The witness.
    pub key: VerifierKey,
    /// When: seconds since 1970-01-01T00:00:00Z.
    pub time: u64,
}

impl VerifiedCheckpoint {
    /// The head.
    #[must_use]
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The keys of the log that signed it, at least one.
    #[must_use]
    pub fn signed_by(&self) -> &[VerifierKey] {
        &self.signed_by
    }

    /// Who of the known witnesses cosigned it.
    #[must_use]
    pub fn cosignatures(&self) -> &[Cosignature] {
        &self.cosignatures
    }

    /// How many different keys cosigned it: two names of one key are one witness, and the log's own key is none.
    #[must_use]
    pub fn quorum(&self) -> usize {
        let mut keys: Vec<&[u8; 32]> = self.cosignatures.iter().map(|by| by.key.public()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|public| self.signed_by.iter().all(|log| log.public() != *public));
        keys.len()
    }
}

/// A checkpoint cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignFault<E: std::error::Error + 'static> {
    /// The origin cannot name a key.
    #[error(transparent)]
    Name(#[from] NotAKeyName),
    /// The text is no note's.
    #[error(transparent)]
    Note(#[from] NoteFault),
    /// The signer cannot.
    #[error("checkpoint cannot be signed")]
    Signer(#[source] E),
}

/// A checkpoint is malformed or not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointFault {
    /// Not a note, or not one to believe.
    #[error(transparent)]
    Note(#[from] NoteFault),
    /// Fewer than three lines.
    #[error("checkpoint must have an origin, a size and a root, each on its line")]
    Lines,
    /// An empty origin, or one with control characters.
    #[error("checkpoint's origin must be one line of text")]
    Origin,
    /// Not a decimal number without leading zeros.
    #[error("checkpoint's size must be a decimal number without leading zeros")]
    Size,
    /// Not 32 bytes in base64.
    #[error("checkpoint's root must be 32 bytes in base64")]
    Root,
    /// No leaves, but a root over some.
    #[error("checkpoint of no leaves must have the empty tree's root")]
    EmptyRoot,
    /// An empty extension line.
    #[error("checkpoint's extension lines must not be empty")]
    Extension,
    /// Known keys signed it, but none of the log's.
    #[error("checkpoint is not signed by a key of its log")]
    NotTheLog,
}

#[cfg(test)]
mod tests;
