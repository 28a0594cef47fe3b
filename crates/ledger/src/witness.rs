//! What a log asks of a witness and how a witness judges it (C2SP tlog-witness "add-checkpoint"). The bytes of request
//! and answer, and the decision; connections and what a witness remembers live elsewhere.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::checkpoint::{
    CheckpointFault, SignedCheckpoint, VerifiedCheckpoint, decimal, hash_line,
};
use crate::hash::Hash;
use crate::note::VerifierKey;
use crate::tree::{ProofFault, verify_consistency};

/// A request for a cosignature: the head, and that it only adds to the one the witness cosigned last. `Display` is the
/// body to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint {
    /// The size the witness cosigned last; 0 when none.
    pub old: u64,
    /// The consistency proof from there; empty from 0.
    pub proof: Vec<Hash>,
    /// The head to cosign.
    pub checkpoint: SignedCheckpoint,
}

impl AddCheckpoint {
    /// Reads a body, strictly.
    ///
    /// # Errors
    /// What is wrong with it: the answer is status 400.
    pub fn parse(body: &[u8]) -> Result<Self, RequestFault> {
        let text = std::str::from_utf8(body).map_err(|_| RequestFault::Form)?;
        let (head, checkpoint) = text.split_once("\n\n").ok_or(RequestFault::Form)?;
        let mut lines = head.split('\n');
        let old = lines.next().and_then(|line| line.strip_prefix("old "));
        let old = old.and_then(decimal).ok_or(RequestFault::Form)?;
        let proof: Option<Vec<Hash>> = lines.map(hash_line).collect();
        let proof = proof.ok_or(RequestFault::Form)?;
        if proof.len() > MOST_HASHES {
            return Err(RequestFault::Form);
        }
        let checkpoint = SignedCheckpoint::parse(checkpoint.as_bytes())?;
        Ok(Self {
            old,
            proof,
            checkpoint,
        })
    }

    /// What a witness must answer that trusts `log_keys` for this origin (`None`: it knows no such log) and remembers
    /// `latest`, size and root, as the last head it cosigned of it.
    ///
    /// On [`Judgement::Cosign`] the witness keeps the head durably before it answers; comparing with `latest` and
    /// keeping must be one atomic step.
    #[must_use]
    pub fn judge(
        &self,
        log_keys: Option<&[VerifierKey]>,
        latest: Option<(u64, Hash)>,
    ) -> Judgement {
        let Some(log_keys) = log_keys else {
            return Judgement::UnknownLog;
        };
        let verified = match self.checkpoint.verify(log_keys, &[]) {
            Ok(verified) => verified,
            Err(fault) => return Judgement::Unsigned(fault),
        };
        let head = verified.checkpoint();
        if self.old > head.size() {
            return Judgement::Backwards;
        }
        let (size, root) = latest.unwrap_or_else(|| (0, crate::empty_root()));
        if self.old != size {
            return Judgement::Stale { latest: size };
        }
        if size > 0 && size == head.size() && root != *head.root() {
            return Judgement::Forked { size };
        }
        match verify_consistency(size, &root, head.size(), head.root(), &self.proof) {
            Ok(()) => Judgement::Cosign(Box::new(verified)),
            Err(fault) => Judgement::Inconsistent(fault),
        }
    }
}

impl fmt::Display for AddCheckpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "old {}", self.old)?;
        let mut hashes = self.proof.iter();
        hashes.try_for_each(|hash| writeln!(out, "{}", STANDARD.encode(hash)))?;
        write!(out, "\n{}", self.checkpoint)
    }
}

/// A witness' decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Keep it, then cosign it.
    Cosign(Box<VerifiedCheckpoint>),
    /// No such log is known.
    UnknownLog,
    /// None of the log's keys signed it.
    Unsigned(CheckpointFault),
    /// It is said to come before what it is to follow.
    Backwards,
    /// The request starts from another size than the witness cosigned last.
    Stale {
        /// The size it cosigned last; the answer's body is this number and a newline.
        latest: u64,
    },
    /// Signed heads of one size with different roots: proof that the log lies. To be kept and shown.
    Forked {
        /// The size.
        size: u64,
    },
    /// The proof does not show that the log only grew.
    Inconsistent(ProofFault),
}

impl Judgement {
    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Cosign(_) => 200,
            Self::Backwards => 400,
            Self::Unsigned(_) => 403,
            Self::UnknownLog => 404,
            Self::Stale { .. } | Self::Forked { .. } => 409,
            Self::Inconsistent(_) => 422,
        }
    }
}

/// A body that is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// Not an old size, at most 63 hashes, an empty line and a checkpoint.
    #[error("request is not an old size, hashes, an empty line and a checkpoint")]
    Form,
    /// The checkpoint is malformed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointFault),
}

/// The most consistency proof lines.
const MOST_HASHES: usize = 63;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::Checkpoint;
    use crate::hash::{LeafHash, leaf_hash};
    use crate::note::{KeyName, SignatureKind};
    use crate::tree::{Leaves, consistency_proof, root_at};
    use lychgate_keys::SigningKey;

    fn leaves() -> Vec<LeafHash> {
        (0..20u8).map(|at| leaf_hash(&[at])).collect()
    }

    fn signer(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn log_keys() -> [VerifierKey; 1] {
        let name = KeyName::new("log.example").unwrap();
        [VerifierKey::new(name, SignatureKind::Ed25519, signer(1).public()).unwrap()]
    }

    fn request(old: u64, new: u64) -> AddCheckpoint {
        let leaves = leaves();
        let reader = Leaves(&leaves);
        let head = Checkpoint::new("log.example", new, root_at(new, &reader).unwrap()).unwrap();
        AddCheckpoint {
            old,
            proof: consistency_proof(old.min(new), new, &reader).unwrap(),
            checkpoint: SignedCheckpoint::sign(head, &signer(1)).unwrap(),
        }
    }

    fn latest(size: u64) -> Option<(u64, Hash)> {
        Some((size, root_at(size, &Leaves(&leaves())).unwrap()))
    }

    #[test]
    fn a_body_reads_back_or_is_refused() {
        for request in [request(0, 5), request(3, 17), request(5, 5), request(0, 0)] {
            let body = request.to_string();
            assert_eq!(AddCheckpoint::parse(body.as_bytes()), Ok(request));
            for other in [
                body.replacen("old ", "old  ", 1),
                body.replacen("old ", "old 0", 1),
                body.replacen("\n\n", "\n", 1),
                body.replacen('\n', "\nAA==\n", 1),
                format!("{body}x"),
            ] {
                assert!(AddCheckpoint::parse(other.as_bytes()).is_err(), "{other}");
            }
        }
        let mut long = request(0, 5);
        long.proof = vec![[0; 32]; 64];
        assert_eq!(
            AddCheckpoint::parse(long.to_string().as_bytes()),
            Err(RequestFault::Form)
        );
    }

    #[test]
    fn a_witness_answers_as_the_protocol_says() {
        let keys = log_keys();
        let judge = |request: &AddCheckpoint, latest| request.judge(Some(&keys), latest);
        for (old, new) in [(0, 5), (3, 17), (5, 5), (8, 20), (0, 0)] {
            let request = request(old, new);
            let known = if old == 0 { None } else { latest(old) };
            assert_eq!(judge(&request, known).status(), 200, "{old} {new}");
            assert_eq!(request.judge(None, known), Judgement::UnknownLog);
            assert_eq!(request.judge(Some(&[]), known).status(), 403);
        }
        assert_eq!(
            judge(&request(3, 17), latest(4)),
            Judgement::Stale { latest: 4 }
        );
        assert_eq!(
            judge(&request(0, 17), latest(4)),
            Judgement::Stale { latest: 4 }
        );
        assert_eq!(judge(&request(9, 5), latest(9)), Judgement::Backwards);
        let forked = Some((5, [9; 32]));
        assert_eq!(judge(&request(5, 5), forked), Judgement::Forked { size: 5 });
        assert_eq!(
            judge(&request(5, 6), forked),
            Judgement::Inconsistent(ProofFault::OldRoot)
        );
        let mut padded = request(0, 5);
        padded.proof.push([0; 32]);
        assert_eq!(judge(&padded, None).status(), 422);
    }
}
