//! What was signed on an act's way, kept for whoever audits it: evidence, authority, verification.
//!
//! The receipts carry their digests. The objects themselves name the destination, so they lie sealed (PROFILE §10).

use lychgate_core::id::ActId;
use lychgate_core::json::{self, Value};
use lychgate_core::verification::SinkVerification;
use lychgate_core::{Code, Digest};
use lychgate_store::StoreFault;

use super::{Origin, Presented};
use crate::gate::Gate;

/// The digests of what was signed, each over the whole canonical object, and all of it sealed.
pub(super) struct SignedObjects {
    pub(super) evidence: Digest,
    pub(super) authority: Digest,
    pub(super) verification: Digest,
    pub(super) sealed: Vec<u8>,
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
    pub(super) fn signed_objects(
        &self,
        presented: &Presented,
        verification: &SinkVerification,
    ) -> Result<SignedObjects, Code> {
        let authority = presented.authority.as_ref();
        let authority = json::to_canonical(authority.ok_or(Code::NoFinalityAuthority)?)
            .map_err(|_| Code::FailClosed)?;
        let verification = json::to_canonical(verification).map_err(|_| Code::FailClosed)?;
        let evidence: &[u8] = match &presented.origin {
            Origin::Fresh(fresh) => &fresh.evidence,
            Origin::Stored => b"null",
        };
        // Each is canonical and the names are in order: so is the whole.
        let parts: [&[u8]; 7] = [
            b"{\"authority\":",
            &authority,
            b",\"evidence\":",
            evidence,
            b",\"verification\":",
            &verification,
            b"}",
        ];
        let sealed = self
            .sealer()
            .seal(
                &objects_label(presented.act.candidate_act_id),
                &parts.concat(),
            )
            .map_err(|_| Code::FailClosed)?;
        Ok(SignedObjects {
            evidence: Digest::sha256(evidence),
            authority: Digest::sha256(&authority),
            verification: Digest::sha256(&verification),
            sealed,
        })
    }

    /// What was signed for a dispatched act. `None` when it was never dispatched, or what is kept is not this gate's.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn objects(&self, act: ActId) -> Result<Option<Objects>, StoreFault> {
        let Some(sealed) = self.store().objects(act)? else {
            return Ok(None);
        };
        let opened = self.sealer().open(&objects_label(act), &sealed).ok();
        let value = opened.and_then(|bytes| json::parse(&bytes, &json::Limits::CANON).ok());
        Ok(value.and_then(|value| {
            Some(Objects {
                evidence: value.get("evidence")?.clone(),
                authority: value.get("authority")?.clone(),
                verification: value.get("verification")?.clone(),
            })
        }))
    }
}

/// What the sealed objects are bound to.
fn objects_label(act: ActId) -> Vec<u8> {
    format!("objects:{act}").into_bytes()
}
