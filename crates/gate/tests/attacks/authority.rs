//! At the sink: what is presented is not what was allowed.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::{Code, Digest, State};
use lychgate_gate::{End, FinalitySink, Presented};
use tokio::task::JoinSet;

use crate::kit::{Kit, Live, Prepared};

async fn ready(kit: &Kit) -> Prepared {
    let note = kit.note("work", "a", "x");
    kit.prepared(&kit.session(), "write_note", &note).await
}

/// Changes the live invocation, presents, and expects this code with nothing consumed.
async fn refused(change: impl FnOnce(&Kit, &mut Live), code: Code) {
    let kit = Kit::new().await;
    let prepared = ready(&kit).await;
    let act = prepared.act.candidate_act_id;
    let mut live = prepared.live.clone();
    change(&kit, &mut live);
    let refusal = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await
        .unwrap_err();
    assert_eq!(refusal.code, code);
    let verification = refusal.verification.expect("what was checked, signed");
    assert!(!verification.effectuation.permitted);
    assert!(kit.denied_in_record(act, code));
    assert_eq!(kit.state(act), Some(State::Refused));
    assert_eq!(kit.effects.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn argument_mutation() {
    // One member more, one character other, the same value in bytes that are not the canonical ones.
    for arguments in [r#"{"path":"/x"}"#, r#"{ }"#, ""] {
        refused(
            |_, live| live.arguments = arguments.as_bytes().to_vec(),
            Code::ArgsSubstitution,
        )
        .await;
    }
    refused(
        |kit, live| live.arguments = kit.note("work", "a", "y").into_bytes(),
        Code::ArgsSubstitution,
    )
    .await;
    refused(
        |_, live| live.continuation = Some(Digest::sha256(b"more")),
        Code::ArgsSubstitution,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoint_substitution() {
    refused(|_, live| live.endpoint.push('x'), Code::ToolSubstitution).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_substitution() {
    refused(
        |_, live| live.function_id = "erase_note".to_owned(),
        Code::ToolSubstitution,
    )
    .await;
    refused(
        |_, live| live.tool_id = "other".to_owned(),
        Code::ToolSubstitution,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definition_changed_after_pinning() {
    refused(
        |_, live| live.definition = Digest::sha256(b"changed"),
        Code::ToolSubstitution,
    )
    .await;

    // Before the decision, and while the two doors are between.
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let held = kit.held(&kit.session(), "write_note", &note);
    let (_here, caller) = lychgate_gate::CallerGone::new();
    let mut changed = kit.connected("write_note");
    changed.definition = Some(Digest::sha256(b"changed"));
    let live = move || changed.clone();
    let passed = kit
        .gate
        .pass(held, &kit.sink(), &caller, &live, &|_| {})
        .await;
    assert_eq!(crate::kit::denied(passed).code, Code::ToolSubstitution);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn destination_substitution() {
    refused(
        |kit, live| live.destination.destination_id = Some(kit.path("plain", "a")),
        Code::DestinationMismatch,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holder_mismatch() {
    refused(
        |kit, live| live.holder = kit.session().holder(),
        Code::HolderMismatch,
    )
    .await;

    // A connection that is gone holds nothing.
    let kit = Kit::new().await;
    let session = kit.session();
    let held = kit.held(&session, "write_note", &kit.note("work", "a", "x"));
    session.mark_gone();
    let (_here, caller) = lychgate_gate::CallerGone::new();
    let denied = crate::kit::denied(kit.pass_held(held, &caller).await);
    assert_eq!(denied.code, Code::HolderMismatch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_sink() {
    let kit = Kit::new().await;
    let prepared = ready(&kit).await;
    let stolen = prepared.stolen();
    let live = prepared.live;
    let sink = FinalitySink::mcp("other");
    let refusal = kit
        .gate
        .present(&sink, &live.view(), stolen)
        .await
        .unwrap_err();
    assert_eq!(refusal.code, Code::SinkMismatch);
    // The holder's own way is not spoilt by that.
    let done = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await;
    let begun = kit.effects.begin(done.unwrap()).unwrap();
    kit.gate.settle(begun.end(End::Effected), Some(b"{}")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expiry() {
    let kit = Kit::new().await;
    let prepared = ready(&kit).await;
    kit.clock.advance(Duration::from_millis(10_000));
    let live = prepared.live;
    let done = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await;
    assert_eq!(
        done.unwrap_err().code,
        Code::StaleAuthority,
        "the end is exclusive"
    );

    // An act that was held too long before it was decided.
    let held = kit.held(&kit.session(), "write_note", &kit.note("work", "a", "x"));
    kit.clock.advance(Duration::from_secs(130));
    let (_here, caller) = lychgate_gate::CallerGone::new();
    let denied = crate::kit::denied(kit.pass_held(held, &caller).await);
    assert_eq!(denied.code, Code::StaleAuthority);
    assert_eq!(kit.effects.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay() {
    let kit = Kit::new().await;
    let prepared = ready(&kit).await;
    let act = prepared.act.candidate_act_id;
    let (live, sink) = (prepared.live.clone(), kit.sink());
    let copies = [prepared.stolen(), prepared.stolen()];
    let first = kit
        .gate
        .present(&sink, &live.view(), prepared.presented)
        .await
        .unwrap();
    let begun = kit.effects.begin(first).unwrap();
    kit.gate.settle(begun.end(End::Effected), Some(b"{}")).await;
    for copy in copies {
        let refusal = kit
            .gate
            .present(&sink, &live.view(), copy)
            .await
            .unwrap_err();
        assert_eq!(refusal.code, Code::AuthorityAlreadyUsed);
    }
    // The held act itself, decided a second time.
    let (_here, caller) = lychgate_gate::CallerGone::new();
    let denied = crate::kit::denied(kit.pass_held(prepared.held, &caller).await);
    assert_eq!(denied.code, Code::ReplayDetected);
    assert!(kit.denied_in_record(act, Code::ReplayDetected));
    assert_eq!(
        kit.state(act),
        Some(State::Effected),
        "its row stays as it is"
    );
    assert_eq!(kit.effects.of(act), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_presentation_does_not_spoil_the_rightful_holders_act() {
    let kit = Kit::new().await;
    let prepared = ready(&kit).await;
    let act = prepared.act.candidate_act_id;
    let thief = kit.session();
    let mut elsewhere = prepared.live.clone();
    elsewhere.holder = thief.holder();
    let sink = kit.sink();
    for live in [elsewhere.clone(), prepared.live.clone()] {
        let done = kit
            .gate
            .present(&sink, &live.view(), prepared.stolen())
            .await;
        let code = done.unwrap_err().code;
        assert!(
            [Code::HolderMismatch, Code::NoFinalityAuthority].contains(&code),
            "{code}"
        );
        assert!(kit.denied_in_record(act, code), "{code}");
    }
    let stolen = prepared.stolen();
    let first = kit
        .gate
        .present(&sink, &prepared.live.view(), prepared.presented)
        .await;
    let begun = kit.effects.begin(first.unwrap()).unwrap();
    let late = kit.gate.present(&sink, &elsewhere.view(), stolen).await;
    assert_eq!(late.unwrap_err().code, Code::HolderMismatch);
    assert_eq!(kit.state(act), Some(State::Dispatched));
    kit.gate.settle(begun.end(End::Effected), Some(b"{}")).await;
    assert_eq!(kit.state(act), Some(State::Effected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_authority_raced_by_64_tasks_has_one_winner() {
    let kit = Arc::new(Kit::new().await);
    let prepared = ready(&kit).await;
    let act = prepared.act.candidate_act_id;
    let (live, stolen): (Live, Vec<Presented>) = (
        prepared.live.clone(),
        (0..63).map(|_| prepared.stolen()).collect(),
    );
    let mut race = JoinSet::new();
    for presented in stolen.into_iter().chain([prepared.presented]) {
        let (kit, live) = (Arc::clone(&kit), live.clone());
        race.spawn(async move {
            let done = kit.gate.present(&kit.sink(), &live.view(), presented).await;
            done.map(|dispatched| drop(kit.effects.begin(dispatched).unwrap()))
                .map_err(|refusal| refusal.code)
        });
    }
    let done = race.join_all().await;
    assert_eq!(done.len(), 64);
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1);
    for code in done.into_iter().filter_map(Result::err) {
        // Before the winner's commit the store knows of no such authority.
        assert!(
            [Code::AuthorityAlreadyUsed, Code::NoFinalityAuthority].contains(&code),
            "{code}"
        );
    }
    assert_eq!(kit.effects.of(act), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_stored_authority_raced_by_64_tasks_has_one_winner() {
    let kit = Arc::new(Kit::new().await);
    let prepared = ready(&kit).await;
    let act = prepared.act.candidate_act_id;
    kit.issue(&prepared).await;
    let mut race = JoinSet::new();
    for _ in 0..64 {
        let (kit, live, presented) = (Arc::clone(&kit), prepared.live.clone(), prepared.stolen());
        race.spawn(async move {
            let done = kit.gate.present(&kit.sink(), &live.view(), presented).await;
            done.map(|dispatched| drop(kit.effects.begin(dispatched).unwrap()))
                .map_err(|refusal| refusal.code)
        });
    }
    let done = race.join_all().await;
    let lost = done
        .iter()
        .filter(|one| **one == Err(Code::AuthorityAlreadyUsed))
        .count();
    assert_eq!((done.len(), lost), (64, 63));
    assert_eq!(kit.effects.of(act), 1);
    assert_eq!(kit.state(act), Some(State::Dispatched));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_is_not_begun_after_its_deadline() {
    let kit = Kit::with(|text| text.replace("hold =", "permit = \"20ms\"\nhold =")).await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let (held, done) = crate::kit::dispatched(kit.pass(&session, "write_note", &note).await);
    let act = held.act().candidate_act_id;
    tokio::time::sleep(Duration::from_millis(40)).await;
    let not_sent = kit.effects.begin(done).unwrap_err();
    let settled = kit.gate.settle(not_sent.into(), None).await;
    assert_eq!(settled.state, State::Failed);
    assert_eq!(kit.effects.count(), 0);
    let last = kit.receipts().pop().unwrap();
    assert_eq!(last.detail.as_deref(), Some("not_sent"));
    assert_eq!(kit.state(act), Some(State::Failed));
    // Certainly no effect: an equal call is a new act.
    kit.run(&session, "write_note", &note, End::Effected)
        .await
        .ran();
}
