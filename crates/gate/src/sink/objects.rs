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
use lz4_flex::block;

use super::verify::Verified;
use super::{Origin, Presented};
use crate::gate::Gate;

/// The leaf hashes of what every dispatch says, for the receipt; evidence has its own, where there is any.
pub(super) struct Digests {
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
        let packed = block::compress_prepend_size_with_dict(&parts.concat(), USUAL);
        let objects = self.sealer().seal(&label, &packed);
        let said = Said {
            objects: objects.map_err(|_| Code::FailClosed)?,
            ped,
            sink: verification.leaf,
        };
        Ok((
            said,
            Digests {
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
        let value = opened.and_then(|packed| {
            let bytes = block::decompress_size_prepended_with_dict(&packed, USUAL).ok()?;
            json::parse(&bytes, &json::Limits::CANON).ok()
        });
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

/// A leaf hash as a receipt carries it.
pub(super) fn digest(leaf: &LeafHash) -> Result<Digest, Code> {
    Digest::from_bytes(Algorithm::Sha256, &leaf.0).map_err(|_| Code::FailClosed)
}

/// What the objects of every act have in common: names and constants, in their canonical order. They are packed against
/// this text, for most of what is kept of an act would be these. It is part of what is stored: another text cannot unpack.
const USUAL: &[u8] = br#"{"authority":{"authority_id":"afa-019","binding":{"arguments_digest":{"algorithm":"SHA-256","value":""},"authority_epoch":0,"candidate_act_digest":{"algorithm":"SHA-256","value":""},"finality_sink_id":"mcp:","holder_id":"cnx-019","nonce":"cnx-019-7.00000000000","policy_digest":{"algorithm":"SHA-256","value":""},"policy_epoch":1,"revocation_epoch":0},"candidate_act_id":"act-019","evidence_id":"pve-019","issuer":{"algorithm":"Ed25519","key_id":"","ped_id":"gate-019"},"lifetime":{"expires_at":"2026-00T00:00.000Z","issued_at":"2026-00T00:00.000Z","single_use":true},"object_type":"agent_finality_authority","scope":{"act_type":"TOOL_CALL","function_id":"","permitted_consequence_class":"PERSISTENT_STATE_CHANGE","permitted_destination":{"destination_id":"file:///","endpoint":"stdio:","jurisdiction":"local","recipient_id":""},"tool_definition_digest":{"algorithm":"SHA-256","value":""},"tool_endpoint":"stdio:","tool_id":""},"version":"1.0"},"evidence":{"candidate_act_digest":{"algorithm":"SHA-256","value":""},"candidate_act_id":"act-019","decision":"ALLOW","evidence_id":"pve-019","issued_at":"2026-00T00:00.000Z","object_type":"protected_validation_evidence","protected_state":{"monotonic_counter":1,"state_reference":""},"protector":{"algorithm":"Ed25519","key_id":"","type":"SOFTWARE_SIGNATURE"},"tool_definition_digest":{"algorithm":"SHA-256","value":""},"validated_predicates":{"agent_identity_valid":true,"destination_valid":true,"freshness_valid":true,"instruction_provenance_valid":true,"policy_epoch_valid":true,"principal_authorized":true,"purpose_valid":true,"revocation_state_valid":true,"sink_binding_valid":true,"tool_scope_valid":true},"version":"1.0"},"verification":{"consumption":{"authority_id":"afa-019","status":"CONSUMED"},"decision":"ALLOW","effectuation":{"effect_id":"eff-019","permitted":true},"mark":{"algorithm":"Ed25519","key_id":""},"operation":"DispatchSinkVerify","request_id":"eff-019","verification":{"args_digest":"HELD","authority_epoch":"HELD","authority_signature":"HELD","candidate_act_binding":"HELD","consequence_class":"HELD","consumption_state":"HELD","destination":"HELD","expiry":"HELD","holder":"HELD","nonce":"HELD","policy_epoch":"HELD","revocation_epoch":"HELD","sink_binding":"HELD","tool_scope":"HELD"}}}"#;

/// What the sealed objects are bound to.
fn objects_label(act: ActId) -> Vec<u8> {
    format!("objects:{act}").into_bytes()
}
