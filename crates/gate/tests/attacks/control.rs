//! What a person takes back stops at once: while it is decided on, while its authority is unused, while it waits.

use std::time::Duration;

use lychgate_core::control::{ControlEnd, ControlFinding, ControlStage};
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, State};
use lychgate_gate::{End, Passed, Peer};
use lychgate_keys::verdict::ConsentTerms;
use lychgate_store::{Store, TicketState};

use crate::kit::{Kit, MAIL, denied};

fn consenting(text: String) -> String {
    text + "[consent]\nrequired = true\n"
}

/// A call that waits for its approver ends with the revocation, not with the approver.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_call_ends_with_the_revocation_and_its_ticket_is_withdrawn() {
    for subject in [
        "tool:box/send_mail",
        "all",
        "agent:agent-1",
        "destination:bob@example.com",
    ] {
        let kit = Kit::new().await;
        let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
        let (act, ticket) = (asked.act, asked.ticket);
        kit.revoke(subject).await;
        let told = tokio::time::timeout(Duration::from_secs(5), asked.done()).await;
        let told = denied(told.expect("it ends at once"));
        assert_eq!(
            (told.code, told.state),
            (Code::RevocationActive, State::Refused),
            "{subject}"
        );
        assert!(kit.denied_in_record(act, Code::RevocationActive));
        assert_eq!(kit.ticket_state(ticket), TicketState::Withdrawn);
        // Taken back, the call asks anew.
        kit.restore(subject).await;
        let again = kit.ask(&kit.session(), "send_mail", MAIL).await;
        assert_ne!(again.ticket, ticket);
        kit.approve(again.ticket).await;
        let passed = again.done().await;
        kit.finish(passed, End::Effected).await.ran();
        assert_eq!(kit.effects.count(), 1);
    }
}

/// A ticket that its caller has left licenses nothing after a revocation either, not even once that is taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_that_lies_about_is_withdrawn_with_what_it_is_for() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    drop(asked.give_up().await);
    kit.approve(ticket).await;
    kit.revoke("server:box").await;
    assert_eq!(kit.ticket_state(ticket), TicketState::Withdrawn);
    kit.restore("server:box").await;
    let again = kit.ask(&kit.session(), "send_mail", MAIL).await;
    assert_ne!(again.ticket, ticket);
    assert_eq!(kit.effects.count(), 0);
}

/// Real races: whatever wins, no dispatch stands in the record after the revocation.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_dispatch_stands_behind_the_revocation_whoever_wins() {
    let kit = Kit::new().await;
    for round in 0..20 {
        let mut calls = Vec::new();
        for n in 0..8 {
            let session = kit.session();
            let note = kit.note("work", &format!("r{round}-{n}"), "x");
            let held = kit.held(&session, "write_note", &note);
            let (gate, sink, connected) =
                (kit.gate.clone(), kit.sink(), kit.connected("write_note"));
            calls.push(tokio::spawn(async move {
                let (_here, caller) = lychgate_gate::CallerGone::new();
                let live = move || connected.clone();
                gate.pass(held, &sink, &caller, &live, &|_| {}).await
            }));
        }
        kit.revoke("server:box").await;
        for call in calls {
            if let Passed::Dispatched { dispatched, .. } = call.await.unwrap() {
                drop(dispatched.permit.give_up());
            }
        }
        let mut revoked = false;
        for receipt in kit.receipts() {
            match receipt.kind {
                ReceiptKind::Revoked => revoked = true,
                ReceiptKind::Restored => revoked = false,
                ReceiptKind::Dispatched => assert!(!revoked, "a dispatch behind a revocation"),
                _ => {}
            }
        }
        kit.restore("server:box").await;
    }
}

/// A key that is revoked signs nothing that is believed: an approval it gave, a consent, and every act of its gate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gates_own_revoked_key_stops_every_act() {
    let kit = Kit::new().await;
    let trust = kit.gate.trust();
    let ped = trust
        .current(lychgate_keys::Role::Ped)
        .unwrap()
        .key_id()
        .clone();
    kit.revoke(&format!("key:{}", ped.0)).await;
    let note = kit.note("work", "a", "x");
    let told = denied(kit.pass(&kit.session(), "write_note", &note).await);
    assert_eq!(told.code, Code::RevocationActive);
    // Its own holder alone could give up the approver's key.
    let approver = format!("key:{}", kit.approver.key_id().0);
    let refused = kit.gate.revoke(vec![approver.parse().unwrap()], None).await;
    assert!(refused.is_err());
}

/// T10: authority that outlived the user's consent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_user_authority_withdrawn_expired_or_for_something_else() {
    let kit = Kit::with(consenting).await;
    let note = kit.note("work", "a", "x");
    let try_it = async || kit.pass(&kit.session(), "write_note", &note).await;
    assert_eq!(
        denied(try_it().await).code,
        Code::PrincipalNotAuthorized,
        "missing"
    );
    let consent = kit.consent(1, 60).await;
    kit.run(&kit.session(), "write_note", &note, End::NoEffect)
        .await;

    // Withdrawn between ALLOW and consume, then on the next decision.
    let prepared = kit.prepared(&kit.session(), "write_note", &note).await;
    kit.gate
        .withdraw_consents(vec![consent], None)
        .await
        .unwrap();
    let live = prepared.live;
    let done = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await;
    assert_eq!(done.unwrap_err().code, Code::AuthorityEpochMismatch);
    assert_eq!(
        denied(try_it().await).code,
        Code::PrincipalNotAuthorized,
        "withdrawn"
    );

    // An authority ends with its consent.
    kit.consent(2, 3).await;
    let prepared = kit.prepared(&kit.session(), "write_note", &note).await;
    kit.clock.advance(Duration::from_secs(3));
    let live = prepared.live;
    let done = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await;
    assert_eq!(done.unwrap_err().code, Code::StaleAuthority);
    assert_eq!(
        denied(try_it().await).code,
        Code::PrincipalNotAuthorized,
        "expired"
    );

    // For another principal, agent, function, purpose.
    let terms =
        |number: u8, principal: &str, agent: &str, function: &str, purpose: &str| ConsentTerms {
            consent_id: lychgate_core::id::ConsentId::from_bytes([number; 16]),
            principal_id: principal.try_into().unwrap(),
            agent_id: agent.try_into().unwrap(),
            functions: vec![function.try_into().unwrap()],
            purposes: vec![purpose.try_into().unwrap()],
            expires_at: kit.gate.now().after(Duration::from_secs(60)),
        };
    for other in [
        terms(3, "user:bob", "agent-1", "box", "general"),
        terms(4, "user:alice", "agent-2", "box", "general"),
        terms(5, "user:alice", "agent-1", "box/read_note", "general"),
        terms(6, "user:alice", "agent-1", "box", "billing"),
    ] {
        kit.consent_to(other).await.unwrap();
        assert_eq!(denied(try_it().await).code, Code::PrincipalNotAuthorized);
    }
    let before = kit.effects.count();
    kit.consent_to(terms(
        7,
        "user:alice",
        "agent-1",
        "box/write_note",
        "general",
    ))
    .await
    .unwrap();
    kit.run(&kit.session(), "write_note", &note, End::NoEffect)
        .await
        .ran();
    assert_eq!(kit.effects.count(), before + 1);
    // It outlives the gate that took it.
    let note = kit.note("work", "b", "x");
    let kit = kit.restart().await;
    kit.run(&kit.session(), "write_note", &note, End::NoEffect)
        .await
        .ran();
}

/// A row that somebody wrote into the store without the approver's signature is no consent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consent_that_nobody_signed_covers_nothing() {
    let kit = Kit::with(consenting).await;
    let terms = ConsentTerms {
        consent_id: lychgate_core::id::ConsentId::from_bytes([1; 16]),
        principal_id: "user:alice".try_into().unwrap(),
        agent_id: "agent-1".try_into().unwrap(),
        functions: Vec::new(),
        purposes: Vec::new(),
        expires_at: kit.gate.now().after(Duration::from_secs(60)),
    };
    assert!(kit.gate.consent(terms.clone(), None).await.is_err());
    let forged = lychgate_store::Txn::Consent(lychgate_store::Consent {
        id: terms.consent_id,
        expires_at: terms.expires_at,
        terms: lychgate_core::json::to_canonical(&terms).unwrap(),
        grant: None,
        now: kit.gate.now(),
        receipts: Vec::new(),
    });
    kit.store.commit(forged).await.unwrap().done().unwrap();
    let kit = kit.restart().await;
    let note = kit.note("work", "a", "x");
    let told = denied(kit.pass(&kit.session(), "write_note", &note).await);
    assert_eq!(told.code, Code::PrincipalNotAuthorized);
}

/// A session chooses among the configured purposes, and a function serves only those it names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_one_of_the_configured_purposes_and_no_other() {
    let kit = Kit::new().await;
    let peer = Peer {
        uid: 1000,
        pid: None,
    };
    assert!(
        kit.gate
            .connect_for("box", peer, "whatever I say")
            .unwrap()
            .is_none()
    );
    let billing = kit
        .gate
        .connect_for("box", peer, "billing")
        .unwrap()
        .unwrap();
    let epoch = kit.gate.current().purpose_epoch;
    assert_eq!(
        denied(kit.pass(&kit.session(), "purposed", "{}").await).code,
        Code::PurposeMismatch
    );
    kit.run(&billing, "purposed", "{}", End::Effected)
        .await
        .ran();
    // Reconfigured: the epoch moves; a purpose that is gone serves nothing, whatever the function says.
    let gone = |text: String| {
        text.replace("[purposes.billing]\ndeclared = \"Billing\"\n", "")
            .replace("purposes = [\"billing\"]", "purposes = [\"general\"]")
    };
    kit.apply(gone).await.unwrap();
    assert_eq!(kit.gate.current().purpose_epoch, epoch + 1);
    assert_eq!(
        denied(kit.pass(&billing, "purposed", "{}").await).code,
        Code::PurposeMismatch
    );
}

/// What was seen of a control stands in the record; what was not stays missing, across a restart; what does not fit is a
/// conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_is_followed_to_each_end_and_what_nobody_saw_stays_missing() {
    let kit = Kit::new().await;
    let (good, mute, liar) = (kit.session(), kit.session(), kit.session());
    for session in [&good, &mute, &liar] {
        session.mark_sink(true);
        kit.gate.attach(session).await;
    }
    kit.revoke("server:elsewhere").await;
    let number = kit.gate.current().epochs.control();
    let steps = [
        (ControlEnd::Sink, ControlStage::Received),
        (ControlEnd::Sink, ControlStage::Enforced),
        (ControlEnd::Client, ControlStage::Observed),
    ];
    for (end, stage) in steps {
        kit.gate.acknowledge(&good, end, stage, number).await;
    }
    let (client, observed) = (ControlEnd::Client, ControlStage::Observed);
    kit.gate
        .acknowledge(&liar, client, observed, number + 9)
        .await;
    kit.gate.detach(&mute).await;
    let check = |kit: &Kit, liars: Option<ControlFinding>| {
        let seen = kit.gate.deliveries_seen();
        let control = seen.iter().find(|one| one.number == number).unwrap();
        assert_eq!(control.kind, ReceiptKind::Revoked);
        assert_eq!(control.ends.len(), 6);
        for end in &control.ends {
            if end.holder == good.holder() {
                assert!(end.is_acknowledged(), "{end:?}");
            } else if end.holder == mute.holder() {
                let missing = end.finding.map(|(_, finding)| finding);
                assert_eq!(missing, Some(ControlFinding::Missing));
            } else if end.end == ControlEnd::Client {
                let conflict = end.finding.map(|(_, finding)| finding);
                assert_eq!(conflict, Some(ControlFinding::Conflict));
            } else {
                assert_eq!(end.finding.map(|(_, finding)| finding), liars);
            }
        }
    };
    check(&kit, None);
    // Whoever went away with the gate is missing too, and stays so.
    let kit = kit.restart().await;
    check(&kit, Some(ControlFinding::Missing));
    let lines = kit.receipts().len();
    let kit = kit.restart().await;
    check(&kit, Some(ControlFinding::Missing));
    assert_eq!(
        kit.receipts().len(),
        lines + 1,
        "nothing but the start is new"
    );
}

/// Enforced means that nothing decided on before is on its way any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_in_hand_holds_back_the_word_that_a_control_is_enforced() {
    let kit = Kit::new().await;
    let session = kit.session();
    kit.gate.attach(&session).await;
    let note = kit.note("work", "a", "x");
    let (held, dispatched) = crate::kit::dispatched(kit.pass(&session, "write_note", &note).await);
    kit.revoke("server:box").await;
    assert_eq!(
        kit.gate.stopped(&held).map(|(code, _)| code),
        Some(Code::RevocationActive)
    );
    let number = kit.gate.current().epochs.control();
    let soon = Duration::from_millis(50);
    let drained = tokio::time::timeout(soon, kit.gate.drained(&session, number)).await;
    assert!(drained.is_err(), "a permit is still in hand");
    drop(dispatched.permit.give_up());
    let drained = tokio::time::timeout(soon, kit.gate.drained(&session, number)).await;
    assert!(drained.is_ok());
}
