//! An answer is lost on the way back, and somebody repeats the call under a new request id.

use std::time::Duration;

use lychgate_core::{Code, State};
use lychgate_gate::{End, Unknown};
use lychgate_store::Store;

use crate::kit::{ANSWER, Kit, Went, denied, dispatched};

const LOST: End = End::Unknown(Unknown::AnswerLost);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_lost_and_the_call_repeated_by_a_new_connection() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let first = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .ran();
    let key = |act| {
        kit.store
            .act(act)
            .unwrap()
            .unwrap()
            .idempotency_key
            .unwrap()
    };
    for _ in 0..3 {
        let denied = kit
            .run(&kit.session(), "write_note", &note, LOST)
            .await
            .denied();
        assert_eq!(
            (denied.code, denied.act),
            (Code::TwinUnresolved, Some(first))
        );
    }
    // Telling the caller that the outcome is unknown settles nothing.
    kit.gate.delivered(first);
    kit.gate.orphaned(first);
    let denied = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .denied();
    assert_eq!(denied.code, Code::TwinUnresolved);
    // Another call is another call; a read may be repeated.
    kit.run(
        &kit.session(),
        "write_note",
        &kit.note("work", "b", "x"),
        End::NoEffect,
    )
    .await
    .ran();
    let read = format!(r#"{{"path":"{}"}}"#, kit.path("work", "a"));
    for _ in 0..2 {
        kit.run(&kit.session(), "read_note", &read, LOST)
            .await
            .ran();
    }
    // No effect: the retry runs, names the act it repeats, and has its idempotency key.
    assert_eq!(
        kit.reconcile(first, false).await.unwrap(),
        State::ReconciledNoEffect
    );
    let retry = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .ran();
    assert_eq!(kit.store.act(retry).unwrap().unwrap().retry_of, Some(first));
    assert_eq!(key(retry), key(first));
    // Once more: the chain goes back to its first act.
    assert_eq!(
        kit.reconcile(retry, false).await.unwrap(),
        State::ReconciledNoEffect
    );
    let third = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    assert_eq!(kit.store.act(third).unwrap().unwrap().retry_of, Some(retry));
    assert_eq!(key(third), key(first));
    kit.gate.delivered(third);
    // The chain is over: the same call on another day is an act of its own.
    let fresh = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    assert_eq!(kit.store.act(fresh).unwrap().unwrap().retry_of, None);
    assert_ne!(key(fresh), key(first));
    assert_eq!(kit.effects.count(), 7);
}

/// Without an approver nobody could sign: the verdict goes without, or the act would hold back its equals for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_approver_a_verdict_wants_no_signature() {
    use lychgate_core::receipt::{Approver, ReceiptKind};
    let reason = "I looked".try_into().unwrap();
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let lost = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .ran();
    let unsigned = kit.gate.reconcile_unsigned(lost, false, &reason).await;
    assert!(unsigned.is_err(), "an approver must sign");
    assert_eq!(kit.state(lost), Some(State::Indeterminate));

    let kit = Kit::without_approver().await;
    let note = kit.note("work", "a", "x");
    let lost = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .ran();
    assert!(kit.reconcile(lost, false).await.is_err(), "nobody can sign");
    let state = kit.gate.reconcile_unsigned(lost, false, &reason).await;
    assert_eq!(state.unwrap(), State::ReconciledNoEffect);
    let said = kit.receipts().pop().unwrap();
    assert_eq!(
        (said.kind, said.approver, said.approver_key),
        (ReceiptKind::Reconciled, Approver::None, None)
    );
    let again = kit.gate.reconcile_unsigned(lost, true, &reason).await;
    assert!(again.is_err(), "it is not in doubt");
    kit.run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_reconciliation_found_ends_the_chain() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let first = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .ran();
    assert_eq!(
        kit.reconcile(first, true).await.unwrap(),
        State::ReconciledEffect
    );
    let second = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    assert_eq!(kit.store.act(second).unwrap().unwrap().retry_of, None);
    assert!(
        kit.reconcile(first, false).await.is_err(),
        "a settled act is not settled again"
    );
    assert!(
        kit.reconcile(second, false).await.is_err(),
        "its destination has confirmed it"
    );
}

/// Two equal live calls after reconciliation: one is the retry, the other an act of its own with a key of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_live_calls_after_reconciliation_one_is_the_retry() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let first = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .ran();
    kit.reconcile(first, false).await.unwrap();
    let session = kit.session();
    let held = [
        kit.held(&session, "write_note", &note),
        kit.held(&session, "write_note", &note),
    ];
    let mut keys = Vec::new();
    for held in held {
        let (_here, caller) = lychgate_gate::CallerGone::new();
        let (_, done) = dispatched(kit.pass_held(held, &caller).await);
        keys.push(done.permit.idempotency_key().unwrap().to_owned());
        let begun = kit.effects.begin(done).unwrap();
        kit.gate.settle(begun.end(End::NoEffect), None).await;
    }
    assert_ne!(keys[0], keys[1]);
    let first = kit.store.act(first).unwrap().unwrap();
    assert_eq!(Some(&keys[0]), first.idempotency_key.as_ref());
}

/// A retry that was refused gives its predecessor back: the next one is the retry still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_retry_does_not_break_the_chain() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let first = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .ran();
    kit.reconcile(first, false).await.unwrap();
    kit.revoke("server:box").await;
    let refused = denied(kit.pass(&kit.session(), "write_note", &note).await);
    assert_eq!(refused.code, Code::RevocationActive);
    kit.restore("server:box").await;
    let retry = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    assert_eq!(kit.store.act(retry).unwrap().unwrap().retry_of, Some(first));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undelivered_answer_is_given_once_and_then_the_call_is_new() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let first = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    let Went::Recorded(act, answer) = kit.run(&kit.session(), "write_note", &note, LOST).await
    else {
        panic!("the recorded answer is given")
    };
    assert_eq!((act, answer.as_slice()), (first, ANSWER));
    let denied = kit
        .store
        .acts(&lychgate_store::ActQuery {
            state: Some(State::Refused),
            after: None,
            newest_first: true,
            limit: 1,
        })
        .unwrap()
        .remove(0);
    assert_eq!(denied.answered_by, Some(first), "the row says whose answer");
    let detail = kit.receipts().pop().unwrap().detail.unwrap();
    assert_eq!(detail, format!("the recorded answer of {first} was given"));
    assert_eq!(kit.effects.count(), 1, "nothing ran for it");
    kit.gate.delivered(first);
    let second = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    assert_ne!(first, second);
    assert_eq!(kit.effects.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_kept_too_long_is_refused_until_a_person_has_looked() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let first = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    kit.clock.advance(Duration::from_secs(601));
    kit.gate.sweep().await.unwrap();
    assert_eq!(
        kit.store.act(first).unwrap().unwrap().answer,
        None,
        "kept for ten minutes"
    );
    let changed = kit.store.act(first).unwrap().unwrap().updated_at;
    kit.clock.advance(Duration::from_secs(60));
    kit.gate.sweep().await.unwrap();
    let row = kit.store.act(first).unwrap().unwrap();
    assert_eq!(row.updated_at, changed);
    assert_eq!(
        kit.store.kept_answers(kit.gate.now()).unwrap(),
        [],
        "there is nothing left to forget"
    );
    let denied = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .denied();
    assert_eq!(
        (denied.code, denied.act),
        (Code::TwinUnresolved, Some(first))
    );
    assert_eq!(kit.reconcile(first, true).await.unwrap(), State::Effected);
    kit.run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    assert_eq!(kit.effects.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_vanished_after_dispatch_blocks_its_equal_call_until_the_answer_is_there() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let (held, done) = dispatched(kit.pass(&kit.session(), "write_note", &note).await);
    let first = held.act().candidate_act_id;
    let begun = kit.effects.begin(done).unwrap();
    kit.gate.orphaned(first);
    let denied = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .denied();
    assert_eq!(denied.code, Code::TwinUnresolved);
    kit.gate
        .settle(begun.end(End::Effected), Some(ANSWER))
        .await;
    let went = kit.run(&kit.session(), "write_note", &note, LOST).await;
    assert!(matches!(went, Went::Recorded(act, _) if act == first));
    assert_eq!(kit.effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_answer_settles_the_act() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let (held, done) = dispatched(kit.pass(&kit.session(), "write_note", &note).await);
    let act = held.act().candidate_act_id;
    let begun = kit.effects.begin(done).unwrap();
    let settled = kit
        .gate
        .settle(begun.end(End::Unknown(Unknown::TimedOut)), None)
        .await;
    let late = settled
        .late
        .expect("an indeterminate act can still be answered");
    let settled = kit
        .gate
        .settle(late.answered(End::Effected), Some(ANSWER))
        .await;
    assert_eq!(
        (settled.state, kit.state(act)),
        (State::Effected, Some(State::Effected))
    );
    let went = kit.run(&kit.session(), "write_note", &note, LOST).await;
    assert!(matches!(went, Went::Recorded(recorded, _) if recorded == act));
}

/// A person was faster than the answer: the verdict stands, and the record shows what came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_answer_after_a_persons_verdict_is_recorded_beside_it() {
    for (verdict, end, contradicts) in [
        (false, End::Effected, true),
        (true, End::NoEffect, true),
        (true, End::Effected, false),
        (false, End::NoEffect, false),
        (false, LOST, false),
    ] {
        let kit = Kit::new().await;
        let note = kit.note("work", "a", "x");
        let (held, done) = dispatched(kit.pass(&kit.session(), "write_note", &note).await);
        let act = held.act().candidate_act_id;
        let begun = kit.effects.begin(done).unwrap();
        let settled = kit.gate.settle(begun.end(LOST), None).await;
        let late = settled.late.unwrap();
        let stands = kit.reconcile(act, verdict).await.unwrap();
        let before = kit.receipts().len();
        let settled = kit.gate.settle(late.answered(end), Some(ANSWER)).await;
        assert!(settled.recorded && settled.late.is_none());
        assert!(!kit.gate.is_broken());
        assert_eq!((settled.state, kit.state(act)), (stands, Some(stands)));
        let row = kit.store.act(act).unwrap().unwrap();
        assert_eq!(row.contradicted, contradicts, "{verdict} {end:?}");
        let said = &kit.receipts()[before..];
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].kind, lychgate_core::receipt::ReceiptKind::Outcome);
        assert_eq!(said[0].state, Some(stands));
        let detail = said[0].detail.as_deref().unwrap();
        assert_eq!(
            detail == "a late answer contradicts the reconciliation",
            contradicts
        );
    }
}

/// An act that asks a person: nobody is asked about a call whose equal is open, or whose answer is there already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_about_a_call_that_would_be_refused() {
    let kit = Kit::new().await;
    let session = kit.session();
    let asked = kit.ask(&session, "send_mail", crate::kit::MAIL).await;
    kit.approve(asked.ticket).await;
    let first = kit.finish(asked.done().await, LOST).await.ran();
    let tickets = || {
        kit.store
            .tickets(&lychgate_store::TicketQuery::newest(None, 100))
            .unwrap()
            .len()
    };
    let before = tickets();
    let denied = denied(
        kit.pass(&kit.session(), "send_mail", crate::kit::MAIL)
            .await,
    );
    assert_eq!(
        (denied.code, denied.act),
        (Code::TwinUnresolved, Some(first))
    );
    assert_eq!(tickets(), before);

    kit.reconcile(first, false).await.unwrap();
    let asked = kit.ask(&session, "send_mail", crate::kit::MAIL).await;
    kit.approve(asked.ticket).await;
    let second = kit.finish(asked.done().await, End::Effected).await.ran();
    let before = tickets();
    let went = kit
        .run(&kit.session(), "send_mail", crate::kit::MAIL, LOST)
        .await;
    assert!(matches!(went, Went::Recorded(act, _) if act == second));
    assert_eq!((tickets(), kit.effects.count()), (before, 2));
}

/// A continuation of an act that did not ask for input would be an equal call that nothing holds back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_act_that_asked_for_input_is_continued() {
    for end in [LOST, End::Effected, End::NoEffect] {
        let kit = Kit::new().await;
        let session = kit.session();
        let note = kit.note("work", "a", "x");
        let (held, done) = dispatched(kit.pass(&session, "write_note", &note).await);
        let begun = kit.effects.begin(done).unwrap();
        kit.gate.expect_round(&held, None);
        kit.gate.settle(begun.end(end), Some(ANSWER)).await;
        kit.gate.expect_round(&held, None);
        let mut proposal = crate::kit::proposal("write_note", &note);
        proposal.continuation = Some(lychgate_intake::Continuation {
            input_responses: None,
            request_state: None,
            digest: lychgate_core::Digest::sha256(b"{}"),
        });
        let connected = kit.connected("write_note");
        let held = kit.gate.hold(&session, proposal, connected).unwrap();
        let (_here, caller) = lychgate_gate::CallerGone::new();
        let refused = denied(kit.pass_held(held, &caller).await);
        assert_eq!(refused.code, Code::MalformedAct, "{end:?}");
        assert_eq!(kit.effects.count(), 1);
    }
}

/// The retry of a round is held back by nothing, but its own lost answer holds later calls back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lost_answer_of_a_round_blocks_the_whole_call() {
    let kit = Kit::new().await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let (held, done) = dispatched(kit.pass(&session, "write_note", &note).await);
    let first = held.act().candidate_act_id;
    let begun = kit.effects.begin(done).unwrap();
    kit.gate.settle(begun.end(End::InputRequired), None).await;
    kit.gate.expect_round(&held, Some("state-1"));
    let retry = |state: &str| {
        let mut proposal = crate::kit::proposal("write_note", &note);
        proposal.continuation = Some(lychgate_intake::Continuation {
            input_responses: None,
            request_state: Some(state.to_owned()),
            digest: lychgate_core::Digest::sha256(state.as_bytes()),
        });
        kit.gate
            .hold(&session, proposal, kit.connected("write_note"))
            .unwrap()
    };
    let (_here, caller) = lychgate_gate::CallerGone::new();
    let refused = denied(kit.pass_held(retry("state-2"), &caller).await);
    assert_eq!(refused.code, Code::MalformedAct, "a round nobody knows");
    let one = retry("state-1");
    let two = retry("state-1");
    let went = kit
        .finish(kit.pass_held(one, &caller).await, LOST)
        .await
        .ran();
    assert_eq!(kit.store.act(went).unwrap().unwrap().retry_of, Some(first));
    let refused = denied(kit.pass_held(two, &caller).await);
    assert_eq!(
        refused.code,
        Code::MalformedAct,
        "a round is continued once"
    );
    let whole = kit
        .run(&kit.session(), "write_note", &note, LOST)
        .await
        .denied();
    assert_eq!((whole.code, whole.act), (Code::TwinUnresolved, Some(went)));
}
