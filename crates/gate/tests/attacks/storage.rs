//! The store cannot answer, or the clock steps back.

use std::time::Duration;

use lychgate_core::outside::Clock;
use lychgate_core::{Code, State, Timestamp};
use lychgate_gate::{End, Passed, SteadyClock, Unknown, Verdict};
use lychgate_keys::verdict::Verdict as Ruling;
use lychgate_store::Store;
use lychgate_store::testing::Fault;

use crate::kit::{ANSWER, Kit, MAIL, denied, dispatched};

const FAULTS: [Fault; 4] = [
    Fault::Unavailable,
    Fault::Busy,
    Fault::CommitThenUnrecorded,
    Fault::LoseThenUnrecorded,
];

fn closes(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::CommitThenUnrecorded | Fault::LoseThenUnrecorded
    )
}

/// After the fault: the gate ends when its store can no longer be believed, and goes on when it can.
fn ends(kit: &Kit, fault: Fault) {
    assert_eq!(kit.gate.is_broken(), closes(fault), "{fault:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_unavailable_at_dispatch() {
    for fault in FAULTS {
        let kit = Kit::new().await;
        let note = kit.note("work", "a", "x");
        let held = kit.held(&kit.session(), "write_note", &note);
        let act = held.act().candidate_act_id;
        kit.store.fail(Some(fault));
        let (_here, caller) = lychgate_gate::CallerGone::new();
        let told = denied(kit.pass_held(held, &caller).await);
        assert_eq!(told.code, Code::ConsumeStateUnavailable, "{fault:?}");
        ends(&kit, fault);
        kit.store.fail(None);
        let kit = kit.restart().await;
        assert_eq!(kit.effects.count(), 0, "no permit came of it");
        let expected = match fault {
            // It was consumed after all; nobody knows from outside, so it is in doubt.
            Fault::CommitThenUnrecorded => Some(State::Indeterminate),
            _ => None,
        };
        assert_eq!(kit.state(act), expected, "{fault:?}");
        let again = kit
            .run(&kit.session(), "write_note", &note, End::Effected)
            .await;
        match fault {
            Fault::CommitThenUnrecorded => assert_eq!(again.denied().code, Code::TwinUnresolved),
            _ => drop(again.ran()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_unavailable_at_refusal() {
    for fault in FAULTS {
        let kit = Kit::new().await;
        kit.store.fail(Some(fault));
        let told = denied(kit.pass(&kit.session(), "unlisted", "{}").await);
        assert_eq!(told.code, Code::ConsumeStateUnavailable, "{fault:?}");
        ends(&kit, fault);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_unavailable_at_escalation_and_decision() {
    for fault in FAULTS {
        let kit = Kit::new().await;
        let held = kit.held(&kit.session(), "send_mail", MAIL);
        kit.store.fail(Some(fault));
        let Verdict::Deny(told) = kit.gate.decide(held).await else {
            panic!("{fault:?}")
        };
        assert_eq!(told.code, Code::ConsumeStateUnavailable, "{fault:?}");
        ends(&kit, fault);

        // A yes that could not be kept licenses nothing.
        let kit = Kit::new().await;
        let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
        let act = asked.act;
        let verdict = kit.verdict(asked.ticket, Ruling::Approve);
        kit.store.fail(Some(fault));
        assert!(kit.gate.rule(&verdict).await.is_err(), "{fault:?}");
        asked.gone.say();
        denied(asked.done().await);
        assert_eq!(kit.effects.of(act), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_unavailable_at_settlement() {
    for fault in FAULTS {
        let kit = Kit::new().await;
        let note = kit.note("work", "a", "x");
        let (held, done) = dispatched(kit.pass(&kit.session(), "write_note", &note).await);
        let act = held.act().candidate_act_id;
        let begun = kit.effects.begin(done).unwrap();
        kit.store.fail(Some(fault));
        let settled = kit
            .gate
            .settle(begun.end(End::Effected), Some(ANSWER))
            .await;
        assert!(!settled.recorded, "{fault:?}: the answer must be marked");
        // What happened is not in the record: the gate ends, whatever the fault was.
        assert!(kit.gate.is_broken(), "{fault:?}");
        kit.gate.closing().await;
        // Told or not, nobody may repeat it.
        kit.gate.delivered(act);
        kit.store.fail(None);
        if !closes(fault) {
            let again = kit
                .run(&kit.session(), "write_note", &note, End::Effected)
                .await
                .denied();
            assert_eq!(again.code, Code::TwinUnresolved, "{fault:?}");
        }
        drop(held);
        let kit = kit.restart().await;
        let expected = match fault {
            Fault::CommitThenUnrecorded => State::Effected,
            _ => State::Indeterminate,
        };
        assert_eq!(kit.state(act), Some(expected), "{fault:?}");
        let again = kit.pass(&kit.session(), "write_note", &note).await;
        assert!(!matches!(again, Passed::Dispatched { .. }), "{fault:?}");
        assert_eq!(kit.effects.count(), 1);
    }
}

/// A queue that is full for a moment is no reason to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_busy_for_a_moment_at_settlement() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let (_, done) = dispatched(kit.pass(&kit.session(), "write_note", &note).await);
    let begun = kit.effects.begin(done).unwrap();
    kit.store.fail(Some(Fault::Busy));
    let store = std::sync::Arc::clone(&kit.store);
    let mends = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(120)).await;
        store.fail(None);
    });
    let settled = kit
        .gate
        .settle(begun.end(End::Effected), Some(ANSWER))
        .await;
    mends.await.unwrap();
    assert!(settled.recorded && !kit.gate.is_broken());
    assert_eq!(kit.state(settled.act), Some(State::Effected));
}

/// A store that never answers: nothing is ever allowed, and once it says no, the answer is no.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_hanging_allows_nothing() {
    let kit = Kit::new().await;
    let session = kit.session();
    let calls = [
        ("write_note", kit.note("work", "a", "x")),
        ("unlisted", "{}".to_owned()),
    ];
    for (function, arguments) in calls {
        kit.store.fail(Some(Fault::Hang));
        let mut pass = Box::pin(kit.pass(&session, function, &arguments));
        let early = tokio::time::timeout(Duration::from_millis(50), &mut pass).await;
        assert!(early.is_err(), "{function}: answered without the store");
        kit.store.fail(None);
        assert_eq!(
            denied(pass.await).code,
            Code::ConsumeStateUnavailable,
            "{function}"
        );
    }
    let (held, done) = dispatched(
        kit.pass(&session, "write_note", &kit.note("work", "b", "x"))
            .await,
    );
    let begun = kit.effects.begin(done).unwrap();
    kit.store.fail(Some(Fault::Hang));
    let mut settle = Box::pin(kit.gate.settle(begun.end(End::Effected), Some(ANSWER)));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), &mut settle)
            .await
            .is_err()
    );
    kit.store.fail(None);
    assert!(!settle.await.recorded);
    assert!(kit.gate.is_broken());
    assert_eq!(
        kit.state(held.act().candidate_act_id),
        Some(State::Dispatched)
    );
    assert_eq!(kit.effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_stepping_back() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let prepared = kit.prepared(&kit.session(), "write_note", &note).await;
    kit.clock.advance(Duration::from_secs(20));
    // Anything at all moves the store's mark.
    kit.run(
        &kit.session(),
        "write_note",
        &kit.note("work", "b", "x"),
        End::NoEffect,
    )
    .await
    .ran();
    kit.clock.step_back(Duration::from_secs(20));
    let live = prepared.live;
    let done = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await;
    assert_eq!(
        done.unwrap_err().code,
        Code::StaleAuthority,
        "an expired authority stays expired"
    );

    // A ticket too, and a denial.
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.clock.advance(Duration::from_secs(16 * 60));
    kit.run(
        &kit.session(),
        "write_note",
        &kit.note("work", "b", "x"),
        End::NoEffect,
    )
    .await
    .ran();
    kit.clock.step_back(Duration::from_secs(16 * 60));
    let late = kit.gate.rule(&kit.verdict(ticket, Ruling::Approve)).await;
    assert!(late.is_err());

    // The gate's own clock starts at the store's last time when the wall clock lies before it.
    let last = kit.store.protected_state().unwrap().last_time;
    let far = last.after(Duration::from_secs(100 * 365 * 86_400));
    assert!(SteadyClock::start(far).now() >= far);
    let steady = SteadyClock::start(Timestamp::from_millis(0));
    let one = steady.now();
    assert!(steady.now() >= one);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn randomness_running_dry_is_a_denial() {
    let kit = Kit::new().await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let prepared = kit.prepared(&session, "write_note", &note).await;
    kit.dry.set(true);
    let proposal = crate::kit::proposal("write_note", &note);
    let held = kit
        .gate
        .hold(&session, proposal, kit.connected("write_note"));
    assert_eq!(held.unwrap_err(), Code::FailClosed);
    let live = prepared.live;
    let done = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await;
    assert_eq!(done.unwrap_err().code, Code::FailClosed);
    assert_eq!(
        kit.state(prepared.act.candidate_act_id),
        Some(State::Refused)
    );
    kit.dry.set(false);
    kit.run(
        &session,
        "write_note",
        &note,
        End::Unknown(Unknown::AnswerLost),
    )
    .await
    .ran();
    assert_eq!(kit.effects.count(), 1);
}
