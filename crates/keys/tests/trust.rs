//! Who is believed, for what, and when.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lychgate_core::Timestamp;
use lychgate_core::act::Version;
use lychgate_core::authority::FinalityAuthority;
use lychgate_core::digest::{Digest, b64};
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Limits, Value};
use lychgate_core::signed::{KeyId, Mark, ObjectKind, Signed, signing_bytes};
use lychgate_keys::verdict::{
    ApprovalObject, ApprovalVerdict, Challenge, ChangeObject, ConfigurationChange, KeyChange,
    KeyChangeObject, PublicKey, Reason, ReconciliationObject, ReconciliationVerdict, Verdict,
};
use lychgate_keys::{Invalid, Role, SigningKey, TrustBundle, TrustFault};
use proptest::prelude::*;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + seconds * 1000)
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn bundle_of(keys: &[(Role, &SigningKey)]) -> TrustBundle {
    let mut bundle = TrustBundle::new();
    for (role, key) in keys {
        bundle.add(*role, key.public(), at(0)).unwrap();
    }
    bundle
}

fn unmarked() -> Mark {
    Mark::unsigned(KeyId(String::new()))
}

fn reconciliation(reason: &str, effect: bool) -> ReconciliationVerdict {
    ReconciliationVerdict {
        version: Version::V1,
        object_type: ReconciliationObject::The,
        candidate_act_id: ActId::from_bytes([5; 16]),
        effect,
        reason: Reason::try_from(reason).unwrap(),
        at: at(1),
        challenge: Challenge::try_from("once").unwrap(),
        mark: unmarked(),
    }
}

fn authority() -> FinalityAuthority {
    let digest = json::to_canonical(&Digest::sha256(b"x")).unwrap();
    let digest = String::from_utf8(digest).unwrap();
    let (id, unsigned) = ("A".repeat(43), "A".repeat(86));
    let text = format!(
        r#"{{"version":"1.0","object_type":"agent_finality_authority",
        "authority_id":"afa-00000000-0000-0000-0000-000000000001",
        "candidate_act_id":"act-00000000-0000-0000-0000-000000000002",
        "evidence_id":"pve-00000000-0000-0000-0000-000000000003",
        "scope":{{"act_type":"TOOL_CALL","tool_id":"fs","function_id":"write_file","tool_endpoint":"stdio:fs",
          "tool_definition_digest":{digest},"permitted_destination":{{"destination_id":"file:/a"}},
          "permitted_consequence_class":"PERSISTENT_STATE_CHANGE"}},
        "binding":{{"candidate_act_digest":{digest},"arguments_digest":{digest},
          "holder_id":"cnx-00000000-0000-0000-0000-000000000004",
          "nonce":"cnx-00000000-0000-0000-0000-000000000004.0000000000000001",
          "policy_epoch":1,"authority_epoch":2,"revocation_epoch":3,"policy_digest":{digest},
          "finality_sink_id":"sink:mcp:fs"}},
        "lifetime":{{"issued_at":"2027-01-15T08:00:00.000Z","expires_at":"2027-01-15T08:00:10.000Z","single_use":true}},
        "issuer":{{"ped_id":"ped:local","key_id":"{id}","algorithm":"Ed25519","signature":"{unsigned}"}}}}"#
    );
    let value = json::parse(text.as_bytes(), &Limits::OBJECT).unwrap();
    json::from_value(&value).unwrap()
}

#[test]
fn a_signed_object_is_believed_and_dalek_agrees() {
    let ped = key(1);
    let bundle = bundle_of(&[(Role::Ped, &ped)]);
    let mut object = authority();
    ped.sign(&mut object).unwrap();
    bundle.verify_live(Role::Ped, &object, at(5)).unwrap();
    bundle.verify_at(Role::Ped, &object, at(5)).unwrap();

    // The whole way again with other code: DSSE by hand, and the other library.
    let mut unsigned = object.clone();
    unsigned.issuer.mark.signature = None;
    let body = json::to_canonical(&unsigned).unwrap();
    let kind = "application/vnd.lychgate.authority+json";
    let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), body.len()).into_bytes();
    message.extend_from_slice(&body);
    let signature = b64::decode(object.issuer.mark.signature.as_deref().unwrap()).unwrap();
    let signature = ed25519_dalek::Signature::from_slice(&signature).unwrap();
    let public = ed25519_dalek::VerifyingKey::from_bytes(&ped.public()).unwrap();
    public.verify_strict(&message, &signature).unwrap();
}

#[test]
fn the_two_libraries_sign_alike() {
    use ed25519_dalek::Signer as _;
    for seed in 0..32 {
        let other = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
        let message = vec![seed; usize::from(seed) * 7];
        assert_eq!(key(seed).public(), other.verifying_key().to_bytes());
        assert_eq!(
            key(seed).sign_raw(&message).unwrap(),
            other.sign(&message).to_bytes()
        );
    }
}

#[test]
fn a_signature_of_one_kind_is_none_of_another() {
    let approver = key(1);
    let bundle = bundle_of(&[(Role::Approver, &approver)]);
    let mut change = ConfigurationChange {
        version: Version::V1,
        object_type: ChangeObject::The,
        from: None,
        to: Digest::sha256(b"new"),
        at: at(1),
        challenge: Challenge::try_from("once").unwrap(),
        mark: unmarked(),
    };
    approver.sign(&mut change).unwrap();
    let keys = KeyChange {
        version: Version::V1,
        object_type: KeyChangeObject::The,
        role: Role::Ped,
        public: PublicKey(key(9).public()),
        at: at(1),
        challenge: Challenge::try_from("once").unwrap(),
        mark: change.mark.clone(),
    };
    bundle.verify_live(Role::Approver, &change, at(2)).unwrap();
    assert_eq!(
        bundle.verify_live(Role::Approver, &keys, at(2)),
        Err(Invalid::Signature)
    );

    // The same body under every payload type: only its own is believed.
    let kinds = [
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
    for made in kinds {
        let signature = approver.sign_bytes(made.payload_type(), b"{}").unwrap();
        for read in kinds {
            let who = (Role::Approver, approver.key_id());
            let held = bundle.verify_bytes_at(who, (read.payload_type(), b"{}"), &signature, at(2));
            assert_eq!(held.is_ok(), made == read, "{made:?} as {read:?}");
        }
    }
}

#[test]
fn a_key_is_believed_in_its_own_role_only() {
    let (ped, sink, approver) = (key(1), key(2), key(3));
    let bundle = bundle_of(&[
        (Role::Ped, &ped),
        (Role::Sink, &sink),
        (Role::Approver, &approver),
    ]);
    let mut object = authority();
    sink.sign(&mut object).unwrap();
    assert_eq!(
        bundle.verify_live(Role::Ped, &object, at(1)),
        Err(Invalid::UnknownKey(Role::Ped))
    );
    // Nor does it help to ask for the role the key has: that role signs no such object.
    assert_eq!(
        bundle.verify_live(Role::Sink, &object, at(1)),
        Err(Invalid::Kind(Role::Sink))
    );
    let mut yes = approval();
    ped.sign(&mut yes).unwrap();
    assert!(bundle.verify_live(Role::Approver, &yes, at(1)).is_err());
    assert!(bundle.verify_live(Role::Ped, &yes, at(1)).is_err());
    approver.sign(&mut yes).unwrap();
    bundle.verify_live(Role::Approver, &yes, at(1)).unwrap();
}

fn approval() -> ApprovalVerdict {
    ApprovalVerdict {
        version: Version::V1,
        object_type: ApprovalObject::The,
        ticket_id: TicketId::from_bytes([9; 16]),
        subject: Digest::sha256(b"subject"),
        expires_at: at(9),
        verdict: Verdict::Deny,
        at: at(1),
        mark: unmarked(),
    }
}

#[test]
fn a_key_s_id_alone_buys_nothing() {
    let (ped, stranger) = (key(1), key(2));
    let bundle = bundle_of(&[(Role::Ped, &ped)]);
    let mut object = authority();
    stranger.sign(&mut object).unwrap();
    object.issuer.mark.key_id = ped.key_id().clone();
    assert_eq!(
        bundle.verify_live(Role::Ped, &object, at(1)),
        Err(Invalid::Signature)
    );
    object.issuer.mark.signature = None;
    assert_eq!(
        bundle.verify_live(Role::Ped, &object, at(1)),
        Err(Invalid::Unsigned)
    );
    for text in ["", "AA", "not base64url!", &"A".repeat(85)] {
        object.issuer.mark.signature = Some(text.to_owned());
        assert_eq!(
            bundle.verify_live(Role::Ped, &object, at(1)),
            Err(Invalid::Encoding)
        );
    }
}

#[test]
fn a_retired_key_is_refused_live_and_believed_for_its_time() {
    let (old, new) = (key(1), key(2));
    let mut bundle = bundle_of(&[(Role::Ped, &old)]);
    let mut object = authority();
    old.sign(&mut object).unwrap();
    bundle.replace(Role::Ped, new.public(), at(10)).unwrap();
    assert_eq!(bundle.current(Role::Ped).unwrap().key_id(), new.key_id());
    assert_eq!(
        bundle.verify_live(Role::Ped, &object, at(5)),
        Err(Invalid::Retired(at(10)))
    );
    bundle.verify_at(Role::Ped, &object, at(9)).unwrap();
    assert_eq!(
        bundle.verify_at(Role::Ped, &object, at(10)),
        Err(Invalid::Retired(at(10)))
    );
    new.sign(&mut object).unwrap();
    bundle.verify_live(Role::Ped, &object, at(10)).unwrap();
    assert_eq!(
        bundle.verify_live(Role::Ped, &object, at(9)),
        Err(Invalid::NotYetValid(at(10)))
    );
    assert_eq!(
        bundle.verify_at(Role::Ped, &object, at(9)),
        Err(Invalid::NotYetValid(at(10)))
    );
}

#[test]
fn keys_are_not_shared_nor_listed_twice() {
    let (one, two) = (key(1), key(2));
    let mut bundle = bundle_of(&[(Role::Ped, &one)]);
    let id = one.key_id().0.clone();
    assert_eq!(
        bundle.add(Role::Sink, one.public(), at(1)),
        Err(TrustFault::Twice(id.clone()))
    );
    assert_eq!(
        bundle.add(Role::Ped, two.public(), at(1)),
        Err(TrustFault::RoleTaken(Role::Ped))
    );
    let before = bundle.clone();
    assert_eq!(
        bundle.replace(Role::Ped, one.public(), at(1)),
        Err(TrustFault::Twice(id.clone()))
    );
    assert_eq!(bundle, before, "a change that fails changes nothing");
    bundle.retire(one.key_id(), at(1)).unwrap();
    assert_eq!(
        bundle.retire(one.key_id(), at(2)),
        Err(TrustFault::Retired(id.clone()))
    );
    assert_eq!(
        bundle.add(Role::Ped, one.public(), at(3)),
        Err(TrustFault::Twice(id))
    );
}

#[test]
fn a_bundle_reads_back_and_nothing_else_does() {
    let mut bundle = bundle_of(&[(Role::Ped, &key(1)), (Role::Ledger, &key(2))]);
    bundle.replace(Role::Ped, key(3).public(), at(7)).unwrap();
    let bytes = bundle.to_bytes().unwrap();
    assert_eq!(TrustBundle::from_bytes(&bytes).unwrap(), bundle);

    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.contains(r#""object_type":"trust_bundle""#) && text.contains(r#""role":"ledger""#),
        "{text}"
    );
    let id = key(2).key_id().0.clone();
    for (from, to) in [
        (r#""version":"1.0""#, r#""version":"1.1""#),
        (r#""version":"1.0""#, r#""version":"1.0","version":"1.0""#),
        (r#""version":"1.0""#, r#""version":"1.0","note":1"#),
        ("trust_bundle", "bundle"),
        (r#""role":"ledger""#, r#""role":"ped""#),
        (r#""role":"ledger""#, r#""role":"PED""#),
        (r#""algorithm":"Ed25519""#, r#""algorithm":"none""#),
        (id.as_str(), "another"),
        (r#","retired_at":"#, r#","retired_at":null,"x":"#),
        (r#","retired_at":"2027-"#, r#","retired_at":"2026-"#),
    ] {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text, "{from}");
        assert!(
            TrustBundle::from_bytes(other.as_bytes()).is_err(),
            "{from} -> {to}"
        );
    }
}

#[test]
fn unsound_public_keys_are_refused() {
    let hex = |text: &str| -> [u8; 32] {
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..64)
            .step_by(2)
            .map(byte)
            .collect::<Vec<_>>()
            .try_into()
            .unwrap()
    };
    for (text, why) in [
        (
            "0100000000000000000000000000000000000000000000000000000000000000",
            "the identity",
        ),
        (
            "0100000000000000000000000000000000000000000000000000000000000080",
            "the identity with a sign",
        ),
        (
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "order 2",
        ),
        (
            "0000000000000000000000000000000000000000000000000000000000000000",
            "order 4",
        ),
        (
            "0000000000000000000000000000000000000000000000000000000000000080",
            "order 4, other sign",
        ),
        (
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "order 8",
        ),
        (
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "order 8, another",
        ),
        (
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "y = p + 1, a second spelling",
        ),
        (
            "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "y = p + 3, a second spelling",
        ),
        (
            "0200000000000000000000000000000000000000000000000000000000000000",
            "no point at all",
        ),
    ] {
        let refused = TrustBundle::new().add(Role::Ped, hex(text), at(0));
        assert!(matches!(refused, Err(TrustFault::Unsound(_))), "{why}");
    }
}

#[test]
fn verdicts_are_closed_and_bounded() {
    let mut object = reconciliation("seen in the log", true);
    key(1).sign(&mut object).unwrap();
    let value = json::to_value(&object).unwrap();
    assert_eq!(
        json::from_value::<ReconciliationVerdict>(&value).unwrap(),
        object
    );
    assert!(json::from_value::<KeyChange>(&value).is_err());
    for (member, found) in [
        ("extra", Value::from("x")),
        ("reason", Value::from("")),
        ("reason", Value::from("ä".repeat(501))),
        ("challenge", Value::from("x".repeat(129))),
        ("object_type", Value::from("approval_verdict")),
    ] {
        let mut other = value.clone();
        other
            .as_object_mut()
            .unwrap()
            .insert(member.to_owned(), found);
        assert!(
            json::from_value::<ReconciliationVerdict>(&other).is_err(),
            "{member}"
        );
    }
    assert!(Reason::try_from("ä".repeat(500)).is_ok());
}

/// Every value one leaf away: strings with one character more or less or other, whole numbers, booleans.
fn neighbours(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(name, inner)| {
                let put = move |inner| {
                    let mut other = object.clone();
                    other.insert(name.to_owned(), inner);
                    Value::Object(other)
                };
                let mut without = object.clone();
                without.remove(name);
                neighbours(inner)
                    .into_iter()
                    .map(put)
                    .chain([Value::Object(without)])
            })
            .collect(),
        Value::String(text) => {
            let mut all = vec![
                Value::from(format!("{text}A")),
                Value::from(format!("B{text}")),
            ];
            for (at, old) in text.char_indices() {
                let new = if old == '1' { '2' } else { '1' };
                all.push(Value::from(format!(
                    "{}{new}{}",
                    &text[..at],
                    &text[at + old.len_utf8()..]
                )));
            }
            all
        }
        Value::Bool(flag) => vec![Value::from(!flag)],
        Value::Number(number) => number
            .as_u64()
            .map(|n| json::to_value(&(n + 1)).unwrap())
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// Signs, then changes each member in turn: what still parses and differs must not be believed.
fn no_member_is_free<T: Signed + PartialEq>(role: Role, mut object: T) -> usize {
    let signer = key(1);
    let bundle = bundle_of(&[(role, &signer)]);
    signer.sign(&mut object).unwrap();
    bundle.verify_live(role, &object, at(1)).unwrap();
    let others = neighbours(&json::to_value(&object).unwrap());
    let others = others
        .iter()
        .filter_map(|value| json::from_value::<T>(value).ok());
    let mut tried = 0;
    for other in others.filter(|other| *other != object) {
        assert!(bundle.verify_live(role, &other, at(1)).is_err());
        assert!(bundle.verify_at(role, &other, at(1)).is_err());
        tried += 1;
    }
    tried
}

#[test]
fn no_member_of_an_authority_or_a_verdict_is_free() {
    assert!(no_member_is_free(Role::Ped, authority()) > 150);
    assert!(no_member_is_free(Role::Approver, approval()) > 60);
}

#[test]
fn the_signature_itself_is_not_signed_but_its_key_is() {
    let mut object = approval();
    key(1).sign(&mut object).unwrap();
    let signed = signing_bytes(&object).unwrap();
    object.mark.signature = None;
    assert_eq!(signing_bytes(&object).unwrap(), signed);
    object.mark.key_id = key(2).key_id().clone();
    assert_ne!(signing_bytes(&object).unwrap(), signed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_member_is_free_whatever_it_says(reason in "[ -~äß漢]{1,40}", effect: bool) {
        prop_assert!(no_member_is_free(Role::Approver, reconciliation(&reason, effect)) > 50);
    }
}
