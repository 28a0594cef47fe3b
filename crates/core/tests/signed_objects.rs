//! What a signature covers: every member of the object but the signature, under its kind's payload type.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "shared with `schemas.rs`")]
mod objects;

use std::collections::BTreeSet;

use lychgate_core::authority::FinalityAuthority;
use lychgate_core::evidence::ValidationEvidence;
use lychgate_core::json::{self, Limits, Value};
use lychgate_core::merkle::leaf_hash;
use lychgate_core::signed::{
    ObjectKind, Signed, leaf_of, pre_authentication_encoding, signing_bytes, unsigned,
};
use lychgate_core::verification::SinkVerification;

const KINDS: [ObjectKind; 13] = [
    ObjectKind::Evidence,
    ObjectKind::Authority,
    ObjectKind::Verification,
    ObjectKind::Delegation,
    ObjectKind::Approval,
    ObjectKind::Change,
    ObjectKind::Reconciliation,
    ObjectKind::KeyChange,
    ObjectKind::Anchor,
    ObjectKind::Prune,
    ObjectKind::Approver,
    ObjectKind::Consent,
    ObjectKind::Restoration,
];

#[test]
fn what_a_signature_adds_is_left_out() {
    covers_all_but_what_signing_adds(&objects::evidence());
    covers_all_but_what_signing_adds(&objects::minimal_evidence());
    covers_all_but_what_signing_adds(&objects::authority());
    covers_all_but_what_signing_adds(&objects::minimal_authority());
    covers_all_but_what_signing_adds(&objects::verification());
    covers_all_but_what_signing_adds(&objects::minimal_verification());
}

fn covers_all_but_what_signing_adds<T: Signed + Clone>(object: &T) {
    let bytes = signing_bytes(object).unwrap();
    let mut other = object.clone();
    other.mark_mut().signature = Some("another".to_owned());
    assert_eq!(signing_bytes(&other).unwrap(), bytes, "signed otherwise");
    other.mark_mut().batch = None;
    assert_eq!(signing_bytes(&other).unwrap(), bytes, "signed alone");
    assert!(unsigned(&other).is_err(), "signed already");
    other.mark_mut().signature = None;
    assert_eq!(signing_bytes(&other).unwrap(), bytes, "not signed yet");

    // The same bytes by another way: the object's own text, before there was a signature.
    let text = json::to_canonical(&other).unwrap();
    assert_eq!(
        bytes,
        pre_authentication_encoding(T::KIND.payload_type(), &text)
    );
    let unsigned = unsigned(&other).unwrap();
    assert_eq!(unsigned.body, text);
    assert_eq!(unsigned.leaf, leaf_hash(&bytes));
    assert_eq!(leaf_of(object).unwrap(), leaf_hash(&bytes));
}

#[test]
fn every_other_member_is_covered() {
    // What has one possible value cannot be changed; it is constant under the kind's payload type.
    let constants = every_change_shows(&objects::evidence());
    assert_eq!(
        constants,
        set(&[
            "/candidate_act_digest/algorithm",
            "/continuation_digest/algorithm",
            "/approval_digest/algorithm",
            "/delegation_digest/algorithm",
            "/tool_definition_digest/algorithm",
            "/decision",
            "/object_type",
            "/protector/algorithm",
            "/validated_predicates/agent_identity_valid",
            "/validated_predicates/destination_valid",
            "/validated_predicates/freshness_valid",
            "/validated_predicates/instruction_provenance_valid",
            "/validated_predicates/policy_epoch_valid",
            "/validated_predicates/principal_authorized",
            "/validated_predicates/purpose_valid",
            "/validated_predicates/revocation_state_valid",
            "/validated_predicates/sink_binding_valid",
            "/validated_predicates/tool_scope_valid",
            "/version",
        ])
    );
    let constants = every_change_shows(&objects::authority());
    assert_eq!(
        constants,
        set(&[
            "/binding/arguments_digest/algorithm",
            "/binding/candidate_act_digest/algorithm",
            "/binding/continuation_digest/algorithm",
            "/binding/policy_digest/algorithm",
            "/issuer/algorithm",
            "/lifetime/single_use",
            "/object_type",
            "/scope/tool_definition_digest/algorithm",
            "/version",
        ])
    );
    let constants = every_change_shows(&objects::verification());
    assert_eq!(
        constants,
        set(&["/consumption/status", "/mark/algorithm", "/operation"])
    );
}

fn set(pointers: &[&str]) -> BTreeSet<String> {
    pointers.iter().map(|&pointer| pointer.to_owned()).collect()
}

/// Changes every leaf in every way that still reads, and requires other bytes. Gives the leaves that have no other way.
fn every_change_shows<T: Signed>(object: &T) -> BTreeSet<String> {
    let value = json::to_value(object).unwrap();
    let bytes = signing_bytes(object).unwrap();
    let mut constants = BTreeSet::new();
    for pointer in leaves(&value) {
        if pointer.ends_with("/signature") || pointer.contains("/batch/") {
            continue;
        }
        let mut read = 0;
        for other in others(value.pointer(&pointer).unwrap()) {
            let mut changed = value.clone();
            *at(&mut changed, &pointer) = other.clone();
            let Ok(changed) = json::from_value::<T>(&changed) else {
                continue;
            };
            read += 1;
            assert_ne!(
                signing_bytes(&changed).unwrap(),
                bytes,
                "{pointer} {other:?}"
            );
        }
        if read == 0 {
            constants.insert(pointer);
        }
    }
    constants
}

#[test]
fn a_member_that_is_taken_away_shows() {
    taking_away_shows(&objects::evidence());
    taking_away_shows(&objects::authority());
    taking_away_shows(&objects::verification());
}

fn taking_away_shows<T: Signed>(object: &T) {
    let value = json::to_value(object).unwrap();
    let bytes = signing_bytes(object).unwrap();
    let mut taken = 0;
    let outside = |pointer: &&String| !pointer.contains("/batch");
    for pointer in places(&value).iter().skip(1).filter(outside) {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let mut changed = value.clone();
        at(&mut changed, parent)
            .as_object_mut()
            .unwrap()
            .remove(key);
        if let Ok(changed) = json::from_value::<T>(&changed) {
            taken += 1;
            assert_ne!(signing_bytes(&changed).unwrap(), bytes, "{pointer}");
        } else if pointer.ends_with("/signature") {
            taken += 1;
        }
    }
    assert!(
        taken > 3,
        "the optional members and the signature were tried"
    );
}

#[test]
fn no_kind_shares_its_bytes_with_another() {
    let encoded: BTreeSet<_> = KINDS
        .iter()
        .map(|kind| pre_authentication_encoding(kind.payload_type(), b"{}"))
        .collect();
    assert_eq!(encoded.len(), KINDS.len());
    for kind in KINDS {
        let name = kind.payload_type();
        assert!(name.starts_with("application/vnd.lychgate."), "{name}");
        assert!(name.ends_with("+json"), "{name}");
    }
}

#[test]
fn an_object_of_one_kind_does_not_read_as_another() {
    let [evidence, authority, verification] = [
        json::to_value(&objects::evidence()).unwrap(),
        json::to_value(&objects::authority()).unwrap(),
        json::to_value(&objects::verification()).unwrap(),
    ];
    assert!(json::from_value::<ValidationEvidence>(&authority).is_err());
    assert!(json::from_value::<ValidationEvidence>(&verification).is_err());
    assert!(json::from_value::<FinalityAuthority>(&evidence).is_err());
    assert!(json::from_value::<FinalityAuthority>(&verification).is_err());
    assert!(json::from_value::<SinkVerification>(&evidence).is_err());
    assert!(json::from_value::<SinkVerification>(&authority).is_err());
}

#[test]
fn the_length_in_the_encoding_keeps_type_and_body_apart() {
    let one = pre_authentication_encoding("a", b"b c");
    let other = pre_authentication_encoding("a b", b"c");
    assert_ne!(one, other);
}

fn places(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    for (key, member) in value
        .as_object()
        .into_iter()
        .flat_map(|object| object.iter())
    {
        let below = places(member).into_iter();
        found.extend(below.map(|pointer| format!("/{key}{pointer}")));
    }
    found
}

fn leaves(value: &Value) -> Vec<String> {
    let leaf = |pointer: &String| value.pointer(pointer).unwrap().as_object().is_none();
    places(value).into_iter().filter(leaf).collect()
}

fn at<'v>(value: &'v mut Value, pointer: &str) -> &'v mut Value {
    pointer.split('/').skip(1).fold(value, |place, token| {
        place.as_object_mut().unwrap().get_mut(token).unwrap()
    })
}

/// Other values of the same kind: one character changed anywhere, or one of the words that stand in these objects.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(truth) => vec![Value::from(!truth)],
        Value::Number(_) => vec![parsed("0"), parsed("7919"), parsed("9007199254740992")],
        Value::String(text) => {
            let mut others: Vec<String> = WORDS.iter().map(|&word| word.to_owned()).collect();
            for (index, _) in text.char_indices() {
                for put in ["0", "1", "A", "e"] {
                    let mut other = text.clone();
                    other.replace_range(index..=index, put);
                    others.push(other);
                }
            }
            others.retain(|other| other != text);
            others.into_iter().map(Value::String).collect()
        }
        _ => panic!("no such leaf in these objects"),
    }
}

fn parsed(text: &str) -> Value {
    json::parse(text.as_bytes(), &Limits::OBJECT).unwrap()
}

const WORDS: [&str; 8] = [
    "DENY",
    "FAILED",
    "FUNCTION_CALL",
    "FINANCIAL",
    "EF-001",
    "TEE_SIGNATURE",
    "SHA-512",
    "false",
];
