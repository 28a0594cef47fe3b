//! What the gate keeps of an act: sealed where it is text of the arguments, and whole for whoever audits it.

use std::time::Duration;

use lychgate_core::authority::FinalityAuthority;
use lychgate_core::digest::Algorithm;
use lychgate_core::evidence::ValidationEvidence;
use lychgate_core::outside::Clock;
use lychgate_core::receipt::{ReceiptKind, Salt};
use lychgate_core::signed::{Signed, leaf_of};
use lychgate_core::verification::SinkVerification;
use lychgate_core::{Digest, jcs, json};
use lychgate_gate::End;
use lychgate_keys::Role;
use lychgate_keys::verdict::{KeyChange, PublicKey};
use lychgate_store::Store;

use crate::kit::{Kit, MAIL, denied};

/// A URL's query is text of the arguments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_lies_sealed() {
    let kit = Kit::with(|text| text.replace("unattended = false", "unattended = true")).await;
    let path = kit.path("plain", "sentinel-4711");
    let arguments = format!(r#"{{"path":"{path}"}}"#);
    let session = kit.session();
    let read = kit.run(&session, "read_note", &arguments, End::Effected);
    let read = read.await.ran();
    let refused = kit.pass(&kit.session(), "erase_note", &arguments).await;
    let refused = denied(refused).act.unwrap();
    for act in [read, refused] {
        let row = kit.store.act(act).unwrap().unwrap();
        let there = kit.gate.destination_of(&row).unwrap();
        assert!(there.contains("sentinel-4711"));
        // It is one act's: in another's row it opens to nothing.
        let other = lychgate_store::ActRow {
            id: lychgate_core::id::ActId::from_bytes([1; 16]),
            ..row
        };
        assert_eq!(kit.gate.destination_of(&other), None);
    }
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(kit.folder.path(file)).unwrap();
        let found = bytes.windows(8).any(|part| part == b"sentinel");
        assert!(!found, "{file}");
    }
}

/// A receipt made later, from the row, commits to the same destination and tells the same source.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_receipts_say_what_the_first_one_said() {
    let kit =
        Kit::with(|text| text.replace("[limits]", "[provenance]\nvouch = \"user\"\n[limits]"))
            .await;
    let note = kit.note("work", "a", "x");
    let session = kit.session();
    let act = kit.run(&session, "write_note", &note, End::Effected);
    let act = act.await.ran();
    let receipts = kit.receipts();
    let of = |kind| {
        let found = receipts.iter().find(|receipt| receipt.kind == kind);
        found.unwrap().act.clone().unwrap()
    };
    let (first, later) = (of(ReceiptKind::Dispatched), of(ReceiptKind::Outcome));
    assert_eq!(first, later);
    assert!(later.vouched && later.source_type.is_some() && later.destination_commitment.is_some());
    let row = kit.store.act(act).unwrap().unwrap();
    assert_ne!(row.salt, Salt([0; 16]));
    assert!(row.vouched);
}

/// An auditor sees what was signed, finds its digests in the record, and verifies it against the trust bundle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_signed_can_be_audited() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let session = kit.session();
    let act = kit.run(&session, "write_note", &note, End::Effected);
    let act = act.await.ran();
    let objects = kit.gate.objects(act).unwrap().unwrap();
    let receipt = kit
        .receipts()
        .into_iter()
        .find(|receipt| receipt.kind == ReceiptKind::Dispatched)
        .unwrap();
    // What is the same in every act is not kept again.
    let kept = kit.store.said(act).unwrap().unwrap().objects.len();
    let whole = [&objects.evidence, &objects.authority, &objects.verification];
    let whole: usize = whole.iter().map(|object| jcs::to_bytes(object).len()).sum();
    assert!(kept * 2 < whole, "{kept} of {whole} bytes");
    let evidence: ValidationEvidence = json::from_value(&objects.evidence).unwrap();
    let authority: FinalityAuthority = json::from_value(&objects.authority).unwrap();
    let verification: SinkVerification = json::from_value(&objects.verification).unwrap();
    assert_eq!(receipt.evidence_digest, leaf(&evidence));
    assert_eq!(receipt.authority_digest, leaf(&authority));
    assert_eq!(receipt.verification_digest, leaf(&verification));
    assert_eq!(authority.candidate_act_id, act);
    assert_eq!(authority.evidence_id, evidence.evidence_id);
    let (trust, at) = (kit.gate.trust(), kit.clock.now());
    trust.verify_at(Role::Ped, &evidence, at).unwrap();
    trust.verify_at(Role::Ped, &authority, at).unwrap();
    trust.verify_at(Role::Sink, &verification, at).unwrap();
    let refused = denied(kit.pass(&kit.session(), "unlisted", "{}").await);
    assert_eq!(kit.gate.objects(refused.act.unwrap()).unwrap(), None);
}

fn leaf<T: Signed>(object: &T) -> Option<Digest> {
    Digest::from_bytes(Algorithm::Sha256, &leaf_of(object).unwrap().0).ok()
}

/// The principal an act was made for is compared with whoever is the principal now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_principal_since_the_act_was_made() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    for edit in [
        ["user:alice", "user:bob"],
        [
            "id = \"user:alice\"",
            "id = \"user:alice\"\ntype = \"service\"",
        ],
    ] {
        let held = kit.held(&kit.session(), "write_note", &note);
        kit.apply(|text| text.replace(edit[0], edit[1]))
            .await
            .unwrap();
        let (_here, caller) = lychgate_gate::CallerGone::new();
        denied(kit.pass_held(held, &caller).await);
        let judged = kit.receipts().pop().unwrap().predicates.unwrap();
        assert!(!judged.principal_authorized, "{edit:?}");
        kit.apply(|text| text).await.unwrap();
    }
}

/// A captured signature, or one for another key, puts nothing in place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_to_a_key_is_for_that_key() {
    let kit = Kit::new().await;
    let signed = |role, public, challenge| {
        let mut change = KeyChange {
            version: Default::default(),
            object_type: Default::default(),
            role,
            public,
            at: kit.clock.now(),
            challenge,
            mark: kit.mark(),
        };
        kit.approver.sign(&mut change).unwrap();
        change
    };
    let none = |_, _| panic!("something was put in place");
    assert!(kit.gate.prepare_key(Role::Approver).is_err());
    let fresh = || kit.gate.challenge().unwrap();
    let made = kit.gate.prepare_key(Role::Ped).unwrap();
    let mut swapped = signed(Role::Ped, made.public, made.challenge.clone());
    swapped.public = PublicKey([7; 32]);
    assert!(kit.gate.rotate(&swapped, none).await.is_err());
    for change in [
        signed(Role::Ped, PublicKey([7; 32]), fresh()),
        signed(Role::Sink, made.public, fresh()),
        signed(Role::Ped, made.public, "another".try_into().unwrap()),
    ] {
        assert!(kit.gate.rotate(&change, none).await.is_err());
    }
    let late = kit.gate.prepare_key(Role::Ped).unwrap();
    kit.clock.advance(Duration::from_secs(901));
    let change = signed(Role::Ped, late.public, fresh());
    assert!(kit.gate.rotate(&change, none).await.is_err());

    let made = kit.gate.prepare_key(Role::Ped).unwrap();
    let change = signed(Role::Ped, made.public, made.challenge);
    let mut put = None;
    let done = kit.gate.rotate(&change, |key, _| {
        put = Some(key.public());
        Ok(())
    });
    assert_eq!(done.await.unwrap(), made.key_id);
    assert_eq!(put, Some(made.public.0));
    kit.gate.closing().await;
    assert!(kit.gate.rotate(&change, none).await.is_err(), "once");
}

/// After a restart the tickets are still counted, and shown without the connection that asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_tickets_outlive_the_gate_and_end_with_their_time() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    asked.abort();
    let kit = kit.restart().await;
    assert_eq!(kit.gate.pending().unwrap().len(), 1);
    kit.clock.advance(Duration::from_secs(16 * 60));
    kit.gate.sweep().await.unwrap();
    assert!(kit.gate.pending().unwrap().is_empty());
}
