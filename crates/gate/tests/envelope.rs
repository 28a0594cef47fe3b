//! Envelopes: one decision for acts of one kind, within limits; the sink checks every one of them as ever.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod kit;

use std::sync::Arc;
use std::time::Duration;

use kit::workers::{INFORMATIONAL, request};
use kit::{Kit, catalogue, denied, dispatched};
use lychgate_core::id::ActId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, State};
use lychgate_gate::{End, EnvelopeGrant, OpenEnvelope, Passed, Session};
use lychgate_policy::EnvelopeLimits;

/// `read_note` has an envelope, and the channel is vouched for.
async fn kit(envelope: &str) -> Kit {
    Kit::delegating_with(|text| enveloped(text, envelope)).await
}

fn enveloped(text: String, envelope: &str) -> String {
    let text = text.replace(
        "aliases = [\"ReadNote\"]",
        &format!("aliases = [\"ReadNote\"]\nenvelope = {{ {envelope} }}"),
    );
    text.replace("[purpose]", "[provenance]\nvouch = \"user\"\n[purpose]")
}

const USUAL: &str = "acts = 3, lasts = \"10m\"";

fn read(kit: &Kit) -> String {
    format!(r#"{{"path":"{}"}}"#, kit.path("work", "a"))
}

/// Reads, and tells under which envelope.
async fn reads(kit: &Kit, session: &Arc<Session>, arguments: &str) -> (ActId, Option<String>) {
    let act = kit
        .run(session, "read_note", arguments, End::Effected)
        .await
        .ran();
    (act, under(kit, act))
}

fn under(kit: &Kit, act: ActId) -> Option<String> {
    let receipts = kit.receipts();
    let of_act = receipts.iter().find(|receipt| {
        receipt.kind == ReceiptKind::Dispatched
            && receipt
                .act
                .as_ref()
                .is_some_and(|part| part.candidate_act_id == act)
    });
    of_act.unwrap().detail.clone()
}

fn one(kit: &Kit) -> OpenEnvelope {
    let open = kit.gate.open_envelopes();
    assert_eq!(open.len(), 1);
    open[0].clone()
}

fn lines(kit: &Kit, kind: ReceiptKind) -> Vec<String> {
    let receipts = kit.receipts();
    let of_kind = receipts.into_iter().filter(|receipt| receipt.kind == kind);
    of_kind.map(|receipt| receipt.detail.unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_act_opens_it_and_the_next_go_by_it_until_it_is_used_up() {
    let kit = kit(USUAL).await;
    let session = kit.session();
    let (first, cold) = reads(&kit, &session, &read(&kit)).await;
    assert_eq!(cold, None);
    let open = one(&kit);
    assert_eq!(
        (open.act, open.acts, open.used, open.granted),
        (first, 3, 0, false)
    );
    let name = format!("envelope:{}", open.id);
    for used in 1..=3 {
        let (_, hot) = reads(&kit, &session, &read(&kit)).await;
        assert_eq!(hot.as_ref(), Some(&name));
        assert_eq!(one(&kit).used, used);
    }
    // Used up: decided on by itself, which opens the next.
    assert_eq!(reads(&kit, &session, &read(&kit)).await.1, None);
    assert_ne!(one(&kit).id, open.id);
    kit.clock.advance(Duration::from_secs(600));
    assert!(kit.gate.open_envelopes().is_empty(), "its time is over");
    assert_eq!(reads(&kit, &session, &read(&kit)).await.1, None);
    assert_eq!(lines(&kit, ReceiptKind::EnvelopeOpened).len(), 3);
    assert!(lines(&kit, ReceiptKind::EnvelopeOpened)[0].starts_with(&name));
}

//= draft §13: the sink check is still mandatory
#[tokio::test(flavor = "multi_thread")]
async fn the_sink_checks_an_act_under_an_envelope_as_every_other() {
    let kit = kit(USUAL).await;
    let session = kit.session();
    reads(&kit, &session, &read(&kit)).await;
    let prepared = kit.prepared(&session, "read_note", &read(&kit)).await;
    let mut live = prepared.live.clone();
    live.arguments = b"{}".to_vec();
    let refused = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await;
    assert_eq!(refused.unwrap_err().code, Code::ArgsSubstitution);
    // Nor is anything before it skipped: schema, destination, allowlist, revocation.
    for (tool, arguments, code) in [
        ("read_note", r#"{"path":3}"#.to_owned(), Code::ScopeMismatch),
        (
            "read_note",
            format!(r#"{{"path":"{}"}}"#, kit.path("config", "x")),
            Code::DestinationMismatch,
        ),
        ("unlisted", "{}".to_owned(), Code::ToolNotAuthorized),
    ] {
        assert_eq!(
            denied(kit.pass(&session, tool, &arguments).await).code,
            code
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_kind_of_act_has_no_part_in_it() {
    let kit = kit("acts = 9, lasts = \"10m\"").await;
    let session = kit.session();
    reads(&kit, &session, &read(&kit)).await;
    // Another destination.
    let other = format!(r#"{{"path":"{}"}}"#, kit.path("work", "b"));
    assert_eq!(reads(&kit, &session, &other).await.1, None);
    // Another agent, by depth and by name.
    let file = kit
        .delegate(None, request("worker", &["read_note"], &[INFORMATIONAL]))
        .await
        .unwrap();
    let worker = kit.worker(&file).await.unwrap();
    assert_eq!(reads(&kit, &worker, &read(&kit)).await.1, None);
    assert!(reads(&kit, &worker, &read(&kit)).await.1.is_some());
    assert_eq!(kit.gate.open_envelopes().len(), 3);
    // Delegating is a depth increase: never.
    assert!(
        kit.gate
            .open_envelopes()
            .iter()
            .all(|open| open.tool == "box")
    );
}

//= PROFILE §9: never on the hot path
#[tokio::test(flavor = "multi_thread")]
async fn what_never_goes_by_an_envelope_does_not() {
    // UNKNOWN provenance.
    let unknown = Kit::delegating_with(|text| {
        enveloped(text, USUAL).replace("[provenance]\nvouch = \"user\"\n", "")
    })
    .await;
    reads(&unknown, &unknown.session(), &read(&unknown)).await;
    assert!(unknown.gate.open_envelopes().is_empty());
    // A change outside a recoverable root; inside one it may.
    let kit = Kit::delegating_with(|text| {
        let text = text.replace(
            "aliases = [\"WriteNote\"]",
            &format!("aliases = [\"WriteNote\"]\nenvelope = {{ {USUAL} }}"),
        );
        text.replace("[purpose]", "[provenance]\nvouch = \"user\"\n[purpose]")
    })
    .await;
    let session = kit.session();
    let asked = kit
        .ask(&session, "write_note", &kit.note("plain", "a", "x"))
        .await;
    kit.gate.grant_envelope(grant(asked.ticket)).unwrap();
    kit.approve(asked.ticket).await;
    let (_, permit) = dispatched(asked.done().await);
    let begun = kit.effects.begin(permit).unwrap();
    kit.gate.settle(begun.end(End::Effected), None).await;
    assert!(kit.gate.open_envelopes().is_empty());
    kit.run(
        &session,
        "write_note",
        &kit.note("work", "a", "x"),
        End::Effected,
    )
    .await
    .ran();
    assert_eq!(one(&kit).function, "write_note");
}

#[test]
fn a_configuration_cannot_ask_for_one_that_may_never_be() {
    let folder = kit::Folder::new();
    let envelope = format!("envelope = {{ {USUAL} }}");
    for (entry, why) in [
        ("class = \"FINANCIAL\"", "never on the hot path"),
        ("irreversible = true", "cannot be undone"),
        (
            "roles = { \"/script\" = \"program\" }",
            "a program is never",
        ),
        (
            "destination = { fixed = \"ledger\" }\npurposes = [\"billing\"]",
            "",
        ),
    ] {
        let edited = |text: String| text.replace(entry, &format!("{entry}\n{envelope}"));
        let loaded = std::panic::catch_unwind(|| catalogue::applied(&folder, edited));
        match loaded {
            Ok(_) => assert!(why.is_empty(), "{entry} loads"),
            Err(said) => {
                let said = said.downcast_ref::<String>().unwrap();
                assert!(!why.is_empty() && said.contains(why), "{entry}: {said}");
            }
        }
    }
}

fn grant(ticket: lychgate_core::id::TicketId) -> EnvelopeGrant {
    EnvelopeGrant {
        ticket,
        limits: EnvelopeLimits {
            acts: 5,
            lasts: 60_000,
            rate: None,
            spend: None,
        },
    }
}

/// An act asks, for an anomaly closed its envelope.
async fn closes(kit: &Kit, session: &Arc<Session>, arguments: &str, why: &str) {
    let before = one(kit).id;
    let asked = kit.ask(session, "read_note", arguments).await;
    assert!(kit.gate.open_envelopes().is_empty());
    let closed = lines(kit, ReceiptKind::EnvelopeClosed);
    assert_eq!(closed.last().unwrap(), &format!("envelope:{before} {why}"));
    // A person decides on the act, and that yes is used once.
    kit.approve(asked.ticket).await;
    let (_, permit) = dispatched(asked.done().await);
    let begun = kit.effects.begin(permit).unwrap();
    assert_eq!(
        kit.gate.settle(begun.end(End::Effected), None).await.state,
        State::Effected
    );
}

//= draft §13: runtime anomaly escalates
#[tokio::test(flavor = "multi_thread")]
async fn an_anomaly_closes_it_and_asks() {
    let rate = "acts = 99, lasts = \"10m\", rate = { acts = 2, window = \"10s\" }";
    let kit = kit(rate).await;
    let session = kit.session();
    reads(&kit, &session, &read(&kit)).await;
    for _ in 0..2 {
        assert!(reads(&kit, &session, &read(&kit)).await.1.is_some());
    }
    closes(
        &kit,
        &session,
        &read(&kit),
        "calls came faster than the envelope allows",
    )
    .await;
    // Denied again and again.
    reads(&kit, &session, &read(&kit)).await;
    let open = one(&kit).id;
    for _ in 0..10 {
        assert_eq!(one(&kit).id, open);
        denied(kit.pass(&session, "unlisted", "{}").await);
    }
    assert!(kit.gate.open_envelopes().is_empty());
    assert!(
        lines(&kit, ReceiptKind::EnvelopeClosed)
            .last()
            .unwrap()
            .ends_with("denied again and again")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shape_of_arguments_never_seen_asks_once() {
    let kit = Kit::delegating_with(|text| {
        let text = text.replace(
            "aliases = [\"WriteNote\"]",
            "aliases = [\"WriteNote\"]\nenvelope = { acts = 99, lasts = \"10m\" }",
        );
        text.replace("[purpose]", "[provenance]\nvouch = \"user\"\n[purpose]")
    })
    .await;
    let session = kit.session();
    let note = |n: u8| kit.note("work", "a", &format!("{n}"));
    let sized = format!(
        r#"{{"path":"{}","text":"x","size":1}}"#,
        kit.path("work", "a")
    );
    let writes = async |arguments: String| {
        let act = kit
            .run(&session, "write_note", &arguments, End::Effected)
            .await
            .ran();
        kit.gate.delivered(act);
        under(&kit, act)
    };
    assert_eq!(writes(note(1)).await, None);
    assert!(writes(note(2)).await.is_some());
    let asked = kit.ask(&session, "write_note", &sized).await;
    assert!(kit.gate.open_envelopes().is_empty());
    // The approver lets this act go, and others of its kind for a minute.
    kit.gate.grant_envelope(grant(asked.ticket)).unwrap();
    kit.approve(asked.ticket).await;
    let (_, permit) = dispatched(asked.done().await);
    let begun = kit.effects.begin(permit).unwrap();
    let act = begun.act();
    kit.gate
        .settle(begun.end(End::Effected), Some(kit::ANSWER))
        .await;
    kit.gate.delivered(act);
    let open = one(&kit);
    assert!(open.granted);
    assert_eq!((open.act, open.acts), (act, 5));
    let (row, name) = (writes(sized.clone()).await, format!("envelope:{}", open.id));
    assert_eq!(row, Some(name));
    // The evidence of what went by it names the approval.
    let rows = kit.receipts();
    let last = rows
        .iter()
        .rfind(|one| one.kind == ReceiptKind::Dispatched)
        .unwrap();
    let act = last.act.as_ref().unwrap().candidate_act_id;
    assert!(
        kit.gate
            .objects(act)
            .unwrap()
            .unwrap()
            .evidence
            .get("approval_digest")
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_a_restart_and_a_person_close_it() {
    let kit = kit("acts = 99, lasts = \"10m\"").await;
    let session = kit.session();
    reads(&kit, &session, &read(&kit)).await;
    kit.revoke("server:other").await;
    assert!(kit.gate.open_envelopes().is_empty());
    assert_eq!(reads(&kit, &session, &read(&kit)).await.1, None);
    // A person closes it while an act under it is about to be dispatched.
    let open = one(&kit).id;
    let prepared = kit.prepared(&session, "read_note", &read(&kit)).await;
    kit.gate.close_envelope(open).await.unwrap();
    assert!(kit.gate.close_envelope(open).await.is_err());
    let live = prepared.live.clone();
    let refused = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await
        .unwrap_err();
    assert_eq!(refused.code, Code::RevocationStateMismatch);
    drop((session, prepared.held));
    let kit = kit.restart().await;
    let session = kit.session();
    assert_eq!(reads(&kit, &session, &read(&kit)).await.1, None);
    let kit = {
        drop(session);
        kit.restart().await
    };
    assert!(kit.gate.open_envelopes().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_acts_race_for_the_places_of_one() {
    let kit = Arc::new(kit("acts = 10, lasts = \"10m\"").await);
    let session = kit.session();
    reads(&kit, &session, &read(&kit)).await;
    let tasks = (0..64).map(|_| {
        let (kit, session) = (Arc::clone(&kit), Arc::clone(&session));
        tokio::spawn(async move {
            let passed = kit.pass(&session, "read_note", &read(&kit)).await;
            assert!(matches!(passed, Passed::Dispatched { .. }));
            kit.finish(passed, End::Effected).await.ran();
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let receipts = kit.receipts();
    let mut by_envelope = std::collections::BTreeMap::<String, usize>::new();
    for receipt in receipts
        .iter()
        .filter(|one| one.kind == ReceiptKind::Dispatched)
    {
        if let Some(detail) = &receipt.detail {
            *by_envelope.entry(detail.clone()).or_default() += 1;
        }
    }
    assert!(
        !by_envelope.is_empty() && by_envelope.values().all(|used| *used <= 10),
        "{by_envelope:?}"
    );
}

/// What the cached decision saves: prints the time of a decision with and without.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures; run by hand, in release"]
#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it measures and tells"
)]
async fn what_a_cached_decision_saves() {
    let kit = kit("acts = 1000000, lasts = \"10m\"").await;
    let cold =
        Kit::with(|text| text.replace("[purpose]", "[provenance]\nvouch = \"user\"\n[purpose]"))
            .await;
    for (what, kit) in [("decided on by itself", &cold), ("under an envelope", &kit)] {
        let session = kit.session();
        kit.run(&session, "read_note", &read(kit), End::Effected)
            .await
            .ran();
        let mut times = Vec::new();
        for _ in 0..20_000 {
            let held = kit.held(&session, "read_note", &read(kit));
            let began = std::time::Instant::now();
            let verdict = kit.gate.decide(held).await;
            times.push(began.elapsed());
            assert!(matches!(verdict, lychgate_gate::Verdict::Allow(_)));
        }
        times.sort_unstable();
        println!(
            "{what}: p50 {:?}, p99 {:?}",
            times[times.len() / 2],
            times[times.len() * 99 / 100]
        );
    }
}
