//! Objects signed in batches: each verifies alone, and nothing else does (PROFILE §3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lychgate_core::Timestamp;
use lychgate_core::merkle::{Hash, node_hash};
use lychgate_core::signed::{BatchPath, BatchPlace, Mark, Signed, leaf_of};
use lychgate_core::verification::{
    Check, Checks, Effectuation, Operation, SinkDecision, SinkVerification,
};
use lychgate_keys::verdict::{Challenge, Reason, ReconciliationObject, ReconciliationVerdict};
use lychgate_keys::{Invalid, Role, SigningKey, TrustBundle};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + seconds * 1000)
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn trust() -> TrustBundle {
    let mut bundle = TrustBundle::new();
    bundle.add(Role::Sink, key(1).public(), at(0)).unwrap();
    bundle.add(Role::Approver, key(2).public(), at(0)).unwrap();
    bundle
}

fn verification(n: u8) -> SinkVerification {
    let held = Check::Held;
    SinkVerification {
        operation: Operation::DispatchSinkVerify,
        request_id: lychgate_core::id::EffectId::from_bytes([n; 16]),
        decision: SinkDecision::Deny,
        verification: Checks {
            authority_signature: held,
            candidate_act_binding: held,
            tool_scope: held,
            args_digest: held,
            destination: held,
            consequence_class: held,
            holder: held,
            nonce: held,
            policy_epoch: held,
            authority_epoch: held,
            revocation_epoch: held,
            expiry: held,
            consumption_state: Check::Failed,
            sink_binding: held,
        },
        consumption: None,
        error: None,
        effectuation: Effectuation {
            permitted: false,
            effect_id: None,
        },
        mark: Mark::unsigned(key(1).key_id().clone()),
    }
}

/// Root and path by the definition, not by the code that is tested.
fn tree(leaves: &[Hash], wanted: usize) -> (Hash, Vec<Hash>) {
    match leaves {
        [one] => (*one, Vec::new()),
        many => {
            let split = many.len().next_power_of_two() / 2;
            let (left, right) = many.split_at(split);
            let (here, there, left_side) = if wanted < split {
                (tree(left, wanted), tree(right, 0).0, true)
            } else {
                (tree(right, wanted - split), tree(left, 0).0, false)
            };
            let (root, mut path) = here;
            path.push(there);
            let root = if left_side {
                node_hash(&root, &there)
            } else {
                node_hash(&there, &root)
            };
            (root, path)
        }
    }
}

fn signed(count: u8) -> Vec<SinkVerification> {
    let mut objects: Vec<_> = (0..count).map(verification).collect();
    let leaves: Vec<Hash> = objects
        .iter()
        .map(|object| leaf_of(object).unwrap().0)
        .collect();
    let (root, _) = tree(&leaves, 0);
    let signature = key(1).sign_batch(&root, count.into()).unwrap();
    for (index, object) in objects.iter_mut().enumerate() {
        let mark = object.mark_mut();
        mark.signature = Some(lychgate_core::digest::b64::encode(&signature));
        mark.batch = Some(BatchPlace {
            index: u32::try_from(index).unwrap(),
            size: count.into(),
            path: BatchPath(tree(&leaves, index).1),
        });
    }
    objects
}

#[test]
fn each_of_a_batch_verifies_alone() {
    for count in 1..20 {
        for object in signed(count) {
            trust().verify_live(Role::Sink, &object, at(5)).unwrap();
            trust().verify_at(Role::Sink, &object, at(5)).unwrap();
        }
    }
}

#[test]
fn another_place_or_another_object_does_not() {
    let refused = |object: &SinkVerification, what: &str| {
        for result in [
            trust().verify_live(Role::Sink, object, at(5)),
            trust().verify_at(Role::Sink, object, at(5)),
        ] {
            assert!(
                matches!(result, Err(Invalid::Signature | Invalid::Batch)),
                "{what}: {result:?}"
            );
        }
    };
    let change = |object: &SinkVerification, with: &dyn Fn(&mut BatchPlace)| {
        let mut changed = object.clone();
        with(changed.mark.batch.as_mut().unwrap());
        changed
    };
    for object in signed(6) {
        let place = object.mark.batch.clone().unwrap();
        for index in (0..9).filter(|index| *index != place.index) {
            refused(&change(&object, &|place| place.index = index), "index");
        }
        for size in (0..70).filter(|size| *size != place.size) {
            refused(&change(&object, &|place| place.size = size), "size");
        }
        for step in 0..place.path.0.len() {
            refused(
                &change(&object, &|place| place.path.0[step][31] ^= 1),
                "path",
            );
            refused(
                &change(&object, &|place| place.path.0.truncate(step)),
                "shorter",
            );
        }
        refused(
            &change(&object, &|place| place.path.0.push([0; 32])),
            "longer",
        );
        let mut alone = object.clone();
        alone.mark.batch = None;
        refused(&alone, "the root's signature as its own");
        let mut other = object.clone();
        other.verification.expiry = Check::Failed;
        refused(&other, "another object");
    }
    // Its own signature is none of a batch of one.
    let mut own = verification(1);
    key(1).sign(&mut own).unwrap();
    trust().verify_live(Role::Sink, &own, at(5)).unwrap();
    own.mark.batch = Some(BatchPlace {
        index: 0,
        size: 1,
        path: BatchPath::default(),
    });
    refused(&own, "one alone as a batch");
}

#[test]
fn a_person_signs_one_thing() {
    let mut verdict = ReconciliationVerdict {
        version: Default::default(),
        object_type: ReconciliationObject::The,
        candidate_act_id: lychgate_core::id::ActId::from_bytes([5; 16]),
        effect: true,
        reason: Reason::try_from("seen").unwrap(),
        at: at(1),
        challenge: Challenge::try_from("once").unwrap(),
        mark: Mark::unsigned(key(2).key_id().clone()),
    };
    let leaf = leaf_of(&verdict).unwrap();
    let signature = key(2).sign_batch(&leaf.0, 1).unwrap();
    verdict.mark.signature = Some(lychgate_core::digest::b64::encode(&signature));
    verdict.mark.batch = Some(BatchPlace {
        index: 0,
        size: 1,
        path: BatchPath::default(),
    });
    let refused = trust().verify_live(Role::Approver, &verdict, at(5));
    assert_eq!(refused, Err(Invalid::Batch));
    let bytes = lychgate_core::json::to_canonical(&verdict).unwrap();
    let value = lychgate_core::json::parse(&bytes, &lychgate_core::json::Limits::OBJECT).unwrap();
    assert!(lychgate_core::json::from_value::<ReconciliationVerdict>(&value).is_err());
}
