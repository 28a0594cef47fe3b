//! What is said on an act's way, kept for whoever audits it: evidence, authority, verification.
//!
//! The receipts carry their leaf hashes. The objects themselves name the destination, so they lie sealed (PROFILE §10);
//! they are signed by the commit group and get their signatures when they are read.

use lychgate_core::digest::Algorithm;
use lychgate_core::id::ActId;
use lychgate_core::json::{self, Value};
use lychgate_core::merkle::LeafHash;
use lychgate_core::signed::{add_signature, unsigned};
use lychgate_core::verification::SinkVerification;
use lychgate_core::{Code, Digest};
use lychgate_store::{BatchSignature, Said, StoreFault};

use super::verify::Verified;
use super::{Origin, Presented};
use crate::gate::Gate;

/// The leaf hashes of what was said, for the receipt.
pub(super) struct Digests {
    pub(super) evidence: Digest,
    pub(super) authority: Digest,
    pub(super) verification: Digest,
}

/// What was signed for one dispatched act, as it was signed.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    /// The PED's evidence; `null` where the authority was presented from outside.
    pub evidence: Value,
    /// The PED's authority.
    pub authority: Value,
    /// The sink's verification.
    pub verification: Value,
}

impl Gate {
    pub(super) fn said(
        &self,
        presented: &Presented,
        verified: &Verified,
        verification: &SinkVerification,
    ) -> Result<(Said, Digests), Code> {
        let verification = unsigned(verification).map_err(|_| Code::FailClosed)?;
        let authority = &verified.authority;
        let (evidence, ped): (&[u8], _) = match &presented.origin {
            Origin::Fresh(fresh) => {
                let leaves = [fresh.evidence.leaf, authority.leaf];
                (&fresh.evidence.body, Some(leaves))
            }
            Origin::Stored => (b"null", None),
        };
        // Each is canonical and the names are in order: so is the whole.
        let parts: [&[u8]; 7] = [
            b"{\"authority\":",
            &authority.body,
            b",\"evidence\":",
            evidence,
            b",\"verification\":",
            &verification.body,
            b"}",
        ];
        let label = objects_label(presented.act.candidate_act_id);
        let objects = self.sealer().seal(&label, &parts.concat());
        let said = Said {
            objects: objects.map_err(|_| Code::FailClosed)?,
            ped,
            sink: verification.leaf,
        };
        let evidence = ped.map_or(authority.leaf, |[evidence, _]| evidence);
        Ok((
            said,
            Digests {
                evidence: digest(&evidence)?,
                authority: digest(&authority.leaf)?,
                verification: digest(&verification.leaf)?,
            },
        ))
    }

    /// What was signed for a dispatched act. `None` when it was never dispatched, or what is kept is not this gate's.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn objects(&self, act: ActId) -> Result<Option<Objects>, StoreFault> {
        let Some(said) = self.store().said(act)? else {
            return Ok(None);
        };
        let opened = self.sealer().open(&objects_label(act), &said.objects).ok();
        let value = opened.and_then(|bytes| json::parse(&bytes, &json::Limits::CANON).ok());
        let [evidence, authority] = match said.ped {
            Some([evidence, authority]) => [Some(evidence), Some(authority)],
            None => [None, None],
        };
        Ok(value.and_then(|value| {
            Some(Objects {
                evidence: signed(value.get("evidence")?, evidence.as_ref()),
                authority: signed(value.get("authority")?, authority.as_ref()),
                verification: signed(value.get("verification")?, Some(&said.sink)),
            })
        }))
    }
}

/// An object with its signature; one that was presented from outside has its own.
fn signed(object: &Value, signature: Option<&BatchSignature>) -> Value {
    let mut object = object.clone();
    if let Some(BatchSignature { place, signature }) = signature {
        add_signature(&mut object, signature, place);
    }
    object
}

fn digest(leaf: &LeafHash) -> Result<Digest, Code> {
    Digest::from_bytes(Algorithm::Sha256, &leaf.0).map_err(|_| Code::FailClosed)
}

/// What the sealed objects are bound to.
fn objects_label(act: ActId) -> Vec<u8> {
    format!("objects:{act}").into_bytes()
}
