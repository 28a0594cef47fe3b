//! The gate ends at any moment, and another one opens the same folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kit;

use std::time::Duration;

use kit::{ANSWER, Kit, MAIL, Went, denied, dispatched};
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, State};
use lychgate_gate::{End, Recovered, Unknown, Verdict};
use lychgate_store::{Store, TicketState};

const LOST: End = End::Unknown(Unknown::AnswerLost);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dispatched_without_an_outcome_is_indeterminate_and_holds_equal_calls_back() {
    let kit = Kit::new().await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let (held, done) = dispatched(kit.pass(&session, "write_note", &note).await);
    let act = held.act().candidate_act_id;
    drop(kit.effects.begin(done).unwrap());
    drop(held);
    let kit = kit.reopen().await;
    let found = kit.gate.recover().await.unwrap();
    assert_eq!(
        found,
        Recovered {
            indeterminate: 1,
            lapsed: 0
        }
    );
    assert_eq!(kit.state(act), Some(State::Indeterminate));
    let told = denied(kit.pass(&kit.session(), "write_note", &note).await);
    assert_eq!((told.code, told.act), (Code::TwinUnresolved, Some(act)));

    // Twice over, the second gate finding what the first one left.
    let kit = kit.restart().await;
    let told = denied(kit.pass(&kit.session(), "write_note", &note).await);
    assert_eq!((told.code, told.act), (Code::TwinUnresolved, Some(act)));
    kit.reconcile(act, false).await.unwrap();
    // The verdict outlives the gate that took it, and the retry names its act.
    let kit = kit.restart().await;
    let retry = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    kit.gate.delivered(retry);
    let row = |kit: &Kit, act| kit.store.act(act).unwrap().unwrap();
    assert_eq!(row(&kit, retry).retry_of, Some(act));
    // A chain that has ended is not taken up again by the next gate.
    kit.all_noted(0).await;
    let kit = kit.restart().await;
    let fresh = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    assert_eq!(row(&kit, fresh).retry_of, None);
    assert_ne!(
        row(&kit, fresh).idempotency_key,
        row(&kit, act).idempotency_key
    );
    assert_eq!(kit.effects.count(), 3);
    // The first act's outcome is what the next gate made of it: it too says which attempt it was.
    for (of, attempt) in [(act, 1), (retry, 2), (fresh, 1)] {
        for kind in [ReceiptKind::Dispatched, ReceiptKind::Outcome] {
            let receipts = kit.receipts();
            let told = receipts.iter().find(|receipt| {
                receipt.kind == kind
                    && receipt.act.as_ref().map(|part| part.candidate_act_id) == Some(of)
            });
            let told = told.unwrap().attempt.map(std::num::NonZeroU32::get);
            assert_eq!(told, Some(attempt), "{kind:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_acts_lapse_and_are_never_dispatched_later() {
    let kit = Kit::new().await;
    let session = kit.session();
    let asked = kit.ask(&session, "send_mail", MAIL).await;
    let (waiting, ticket) = (asked.act, asked.ticket);
    let prepared = kit
        .prepared(&session, "write_note", &kit.note("work", "a", "x"))
        .await;
    kit.issue(&prepared).await;
    let allowed = prepared.act.candidate_act_id;
    assert_eq!(kit.state(allowed), Some(State::Allowed));
    asked.abort();
    let kit = kit.reopen().await;
    let found = kit.gate.recover().await.unwrap();
    assert_eq!(
        found,
        Recovered {
            indeterminate: 0,
            lapsed: 2
        }
    );
    assert_eq!(kit.state(waiting), Some(State::Withdrawn));
    assert_eq!(kit.state(allowed), Some(State::Expired));
    // The authority of before is worth nothing, from the rightful holder or anybody.
    let done = kit
        .gate
        .present(&kit.sink(), &prepared.live.view(), prepared.stolen())
        .await;
    assert_eq!(done.unwrap_err().code, Code::StaleAuthority);
    // The ticket lives on: pending, shown, approved, and good for one equal emission.
    let shown = kit.gate.pending().unwrap();
    assert_eq!(
        (shown.len(), shown[0].id, shown[0].waiting),
        (1, ticket, false)
    );
    kit.approve(ticket).await;
    assert_eq!(
        (kit.state(waiting), kit.effects.count()),
        (Some(State::Withdrawn), 0)
    );
    let ran = kit
        .run(&kit.session(), "send_mail", MAIL, End::Effected)
        .await
        .ran();
    assert_eq!(kit.ticket(ticket).consumed_by, Some(ran));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_ticket_survives_and_licenses_one_equal_call() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.approve(ticket).await;
    let kit = kit.restart().await;
    assert_eq!(kit.ticket_state(ticket), TicketState::Approved);
    let ran = kit
        .run(&kit.session(), "send_mail", MAIL, End::Effected)
        .await
        .ran();
    kit.gate.delivered(ran);
    kit.all_noted(0).await;
    let kit = kit.restart().await;
    let held = kit.held(&kit.session(), "send_mail", MAIL);
    let verdict = kit.gate.decide(held).await;
    assert!(matches!(verdict, Verdict::Escalate(_)), "{verdict:?}");
    assert_eq!(kit.effects.count(), 1, "an approved act never runs again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_approval_is_not_revived() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.approve(ticket).await;
    kit.clock.advance(Duration::from_secs(16 * 60));
    let kit = kit.restart().await;
    kit.clock.step_back(Duration::from_secs(16 * 60));
    let held = kit.held(&kit.session(), "send_mail", MAIL);
    let told = denied(kit.pass_held(held, &gone()).await);
    assert_eq!(told.state, State::Withdrawn, "it had to ask");
    assert_eq!(kit.effects.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_lapse_when_the_clock_stands_behind_the_record() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.approve(ticket).await;
    kit.clock
        .1
        .store(30_000, std::sync::atomic::Ordering::SeqCst);
    let kit = kit.restart().await;
    assert_eq!(
        kit.ticket_state(ticket),
        TicketState::Approved,
        "half a minute is nothing"
    );
    kit.clock
        .1
        .store(400 * 86_400_000, std::sync::atomic::Ordering::SeqCst);
    let kit = kit.restart().await;
    assert_eq!(kit.ticket_state(ticket), TicketState::Expired);
}

fn gone() -> lychgate_gate::Caller {
    let (gone, caller) = lychgate_gate::CallerGone::new();
    // Gone as soon as it has to wait.
    drop(gone);
    caller
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_stays_denied() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    kit.deny(asked.ticket).await;
    asked.done().await;
    let kit = kit.restart().await;
    let told = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
    assert_eq!(told.code, Code::ApprovalDenied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undelivered_answer_is_still_given() {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let act = kit
        .run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    let kit = kit.restart().await;
    let went = kit.run(&kit.session(), "write_note", &note, LOST).await;
    let Went::Recorded(recorded, answer) = went else {
        panic!("{went:?}")
    };
    assert_eq!((recorded, answer.as_slice()), (act, ANSWER));
    kit.gate.delivered(act);
    kit.all_noted(0).await;
    let kit = kit.restart().await;
    kit.run(&kit.session(), "write_note", &note, End::Effected)
        .await
        .ran();
    assert_eq!(kit.effects.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_and_nonces_are_never_used_again() {
    let kit = Kit::new().await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let prepared = kit.prepared(&session, "write_note", &note).await;
    let (live, stolen) = (prepared.live.clone(), prepared.stolen());
    let done = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await
        .unwrap();
    let begun = kit.effects.begin(done).unwrap();
    kit.gate.settle(begun.end(End::NoEffect), None).await;
    let (gate, holder) = (kit.gate.id(), session.holder());
    let kit = kit.restart().await;
    assert_ne!(kit.gate.id(), gate);
    assert_ne!(kit.session().holder(), holder);
    let again = kit.gate.present(&kit.sink(), &live.view(), stolen).await;
    assert_eq!(again.unwrap_err().code, Code::AuthorityAlreadyUsed);
    assert_eq!(kit.effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_start_is_a_line_in_the_record() {
    let kit = Kit::new().await.restart().await.restart().await;
    let started = |receipt: &&lychgate_core::receipt::Receipt| {
        receipt.kind == lychgate_core::receipt::ReceiptKind::Started
    };
    assert_eq!(kit.receipts().iter().filter(started).count(), 3);
}
