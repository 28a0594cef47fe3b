//! Approvals: who gives them, for what, how often, and how long.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::{Code, Digest, State};
use lychgate_gate::{CallerGone, End, Passed, Verdict};
use lychgate_keys::SigningKey;
use lychgate_keys::verdict::Verdict as Ruling;
use lychgate_store::{Store, TicketQuery, TicketState};
use tokio::task::JoinSet;

use crate::kit::{Kit, MAIL, denied, dispatched};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_approver_is_never_the_agent() {
    let kit = Kit::new().await;
    let session = kit.session();
    let asked = kit.ask(&session, "send_mail", MAIL).await;
    let good = kit.verdict(asked.ticket, Ruling::Approve);

    let mut own = good.clone();
    SigningKey::generate().unwrap().sign(&mut own).unwrap();
    let mut gates = good.clone();
    kit.sign_as_ped(&mut gates);
    let mut unsigned = good.clone();
    unsigned.mark.signature = None;
    let mut turned = kit.verdict(asked.ticket, Ruling::Deny);
    turned.verdict = Ruling::Approve;
    let other = kit
        .ask(
            &session,
            "send_mail",
            r#"{"to":"eve@example.com","body":"x"}"#,
        )
        .await;
    let mut moved = good.clone();
    moved.ticket_id = other.ticket;
    let mut subject = good.clone();
    subject.subject = Digest::sha256(b"another");
    kit.approver.sign(&mut subject).unwrap();
    let mut elsewhere = good.clone();
    elsewhere.ticket_id = other.ticket;
    kit.approver.sign(&mut elsewhere).unwrap();
    for verdict in [own, gates, unsigned, turned, moved, subject, elsewhere] {
        assert!(kit.gate.rule(&verdict).await.is_err(), "{verdict:?}");
        assert_eq!(kit.ticket_state(asked.ticket), TicketState::Pending);
        assert_eq!(kit.ticket_state(other.ticket), TicketState::Pending);
    }
    kit.gate.rule(&good).await.unwrap();
    assert!(
        kit.gate.rule(&good).await.is_err(),
        "two clicks do not both act"
    );
    kit.finish(asked.done().await, End::Effected).await.ran();
    other.give_up().await;
    assert_eq!(kit.effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_approver_nobody_is_asked() {
    let kit = Kit::without_approver().await;
    let refused = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
    assert_eq!(refused.code, Code::InstructionProvenanceFailure);
    assert!(
        kit.store
            .tickets(&TicketQuery::newest(None, 10))
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_approval_raced_by_8_clients_has_one_winner() {
    let kit = Arc::new(Kit::new().await);
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.approve(ticket).await;
    let mut race = JoinSet::new();
    for _ in 0..8 {
        let kit = Arc::clone(&kit);
        race.spawn(async move {
            let held = kit.held(&kit.session(), "send_mail", MAIL);
            let (gone, caller) = CallerGone::new();
            let (sink, connected) = (kit.sink(), kit.connected("send_mail"));
            // Whoever has to ask gives up at once.
            let passed = kit
                .gate
                .pass(held, &sink, &caller, &|| connected.clone(), &|_| gone.say())
                .await;
            match passed {
                Passed::Dispatched { dispatched, .. } => {
                    drop(kit.effects.begin(dispatched).unwrap());
                    true
                }
                Passed::Denied(denied) => {
                    assert_eq!(denied.code, Code::EscalationRequired);
                    false
                }
                Passed::Recorded { .. } => panic!("nothing is settled"),
            }
        });
    }
    let done = race.join_all().await;
    assert_eq!(done.into_iter().filter(|won| *won).count(), 1);
    assert_eq!(kit.effects.count(), 1);
    assert_eq!(kit.ticket_state(ticket), TicketState::Consumed);
}

/// The approval of a call that waits is that call's, whoever comes at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_equal_call_does_not_take_the_waiters_approval() {
    for _ in 0..10 {
        let kit = Kit::new().await;
        let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
        let (act, ticket) = (asked.act, asked.ticket);
        let newcomer = kit.session();
        let mut calls = JoinSet::new();
        for _ in 0..4 {
            let held = kit.held(&newcomer, "send_mail", MAIL);
            let gate = Arc::clone(&kit.gate);
            calls.spawn(async move { gate.decide(held).await });
        }
        kit.approve(ticket).await;
        let (held, done) = dispatched(asked.done().await);
        assert_eq!(held.act().candidate_act_id, act);
        for verdict in calls.join_all().await {
            let Verdict::Escalate(escalated) = verdict else {
                panic!("{verdict:?}")
            };
            assert_ne!(escalated.ticket(), ticket);
        }
        drop(kit.effects.begin(done));
        assert_eq!(kit.ticket(ticket).consumed_by, Some(act));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caller_gone_while_held() {
    let kit = Kit::new().await;
    let session = kit.session();
    // Gone before the approval: withdrawn, never dispatched later; the ticket lives on.
    let asked = kit.ask(&session, "send_mail", MAIL).await;
    let (act, ticket) = (asked.act, asked.ticket);
    let told = asked.give_up().await;
    assert_eq!(
        (told.code, told.ticket),
        (Code::EscalationRequired, Some(ticket))
    );
    assert_eq!(kit.state(act), Some(State::Withdrawn));
    kit.approve(ticket).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(
        (kit.state(act), kit.effects.count()),
        (Some(State::Withdrawn), 0)
    );
    // It licenses exactly one equal emission; a different one asks.
    let other = kit
        .ask(
            &session,
            "send_mail",
            r#"{"to":"bob@example.com","body":"hello!"}"#,
        )
        .await;
    assert_ne!(other.ticket, ticket);
    other.give_up().await;
    let licensed = kit
        .run(&kit.session(), "send_mail", MAIL, End::Effected)
        .await
        .ran();
    kit.gate.delivered(licensed);
    assert_eq!(kit.ticket(ticket).consumed_by, Some(licensed));
    let again = kit.ask(&session, "send_mail", MAIL).await;
    again.give_up().await;
    assert_eq!(kit.effects.count(), 1);

    // Gone after the approval, before the waiter woke: not dispatched either.
    let asked = kit.ask(&session, "pay", r#"{"to":"bob","amount":1}"#).await;
    let (act, ticket) = (asked.act, asked.ticket);
    asked.gone.say();
    kit.approve(ticket).await;
    assert_eq!(denied(asked.done().await).state, State::Withdrawn);
    assert_eq!(kit.state(act), Some(State::Withdrawn));
    assert_eq!(kit.ticket_state(ticket), TicketState::Approved);
}

/// Whoever drives a waiting call can be dropped with it: the ticket is nobody's then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_is_dropped_leaves_its_ticket_to_the_next_equal_call() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    assert!(kit.gate.pending().unwrap()[0].waiting);
    asked.abort();
    for _ in 0..200 {
        if !kit.gate.pending().unwrap()[0].waiting {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let again = kit.ask(&kit.session(), "send_mail", MAIL).await;
    assert_eq!(again.ticket, ticket, "one question, asked once");
    kit.approve(ticket).await;
    kit.finish(again.done().await, End::Effected).await.ran();
}

/// A yes that outlived its caller is used, also when a newer question for the same subject was left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_approval_is_found_behind_a_newer_question() {
    let kit = Kit::new().await;
    let one = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let two = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = one.ticket;
    assert_ne!(ticket, two.ticket, "two equal live calls are two acts");
    one.give_up().await;
    kit.approve(ticket).await;
    let third = kit
        .run(&kit.session(), "send_mail", MAIL, End::NoEffect)
        .await
        .ran();
    assert_eq!(kit.ticket(ticket).consumed_by, Some(third));
    two.give_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_stays_denied_for_its_tickets_lifetime() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    kit.deny(asked.ticket).await;
    let (act, ticket) = (asked.act, asked.ticket);
    assert_eq!(denied(asked.done().await).code, Code::ApprovalDenied);
    assert_eq!(kit.state(act), Some(State::Refused));
    assert!(
        kit.gate
            .rule(&kit.verdict(ticket, Ruling::Approve))
            .await
            .is_err()
    );
    let kit = {
        let refused = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
        assert_eq!(refused.code, Code::ApprovalDenied);
        kit.restart().await
    };
    let refused = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
    assert_eq!(refused.code, Code::ApprovalDenied, "also after a restart");
    kit.clock.advance(Duration::from_secs(15 * 60));
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    asked.give_up().await;
    assert_eq!(kit.effects.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_ticket_is_told_as_expired_and_not_as_a_persons_no() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    let verdict = kit.verdict(ticket, Ruling::Approve);
    kit.clock.advance(Duration::from_secs(15 * 60));
    let told = denied(asked.done().await);
    assert_eq!(
        (told.code, told.state),
        (Code::ApprovalExpired, State::Expired)
    );
    assert!(kit.gate.rule(&verdict).await.is_err(), "too late");
    kit.gate.sweep().await.unwrap();
    assert_eq!(kit.ticket_state(ticket), TicketState::Expired);
    assert_eq!(
        kit.ticket(ticket).display,
        None,
        "the sealed display is gone"
    );
    // Nobody said no: the next one asks again.
    kit.ask(&kit.session(), "send_mail", MAIL)
        .await
        .give_up()
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_expires_unused() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.approve(ticket).await;
    kit.clock.advance(Duration::from_secs(15 * 60));
    let again = kit.ask(&kit.session(), "send_mail", MAIL).await;
    assert_ne!(again.ticket, ticket);
    again.give_up().await;
    kit.gate.sweep().await.unwrap();
    assert_eq!(kit.ticket_state(ticket), TicketState::Expired);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_that_expired_while_it_waited_is_not_run() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let (act, ticket) = (asked.act, asked.ticket);
    // The hold time by the gate's clock; the ticket has minutes left.
    kit.clock.advance(Duration::from_secs(131));
    kit.approve(ticket).await;
    let told = denied(asked.done().await);
    assert_eq!(told.code, Code::StaleAuthority);
    assert_eq!(kit.state(act), Some(State::Refused));
    // The approval was not used, and licenses the call when it is sent again.
    let again = kit
        .run(&kit.session(), "send_mail", MAIL, End::Effected)
        .await
        .ran();
    assert_eq!(kit.ticket(ticket).consumed_by, Some(again));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hold_time_ends_the_wait_and_not_the_ticket() {
    let kit = Kit::with(|text| text.replace("hold = \"120s\"", "hold = \"50ms\"")).await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let (act, ticket) = (asked.act, asked.ticket);
    let told = denied(asked.done().await);
    assert_eq!(
        (told.code, told.ticket),
        (Code::EscalationRequired, Some(ticket))
    );
    assert_eq!(kit.state(act), Some(State::Withdrawn));
    kit.approve(ticket).await;
    kit.run(&kit.session(), "send_mail", MAIL, End::Effected)
        .await
        .ran();
    assert_eq!(kit.effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_call_is_decided_again_under_the_rules_of_that_moment() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    kit.revoke("tool:box/pay").await;
    kit.approve(ticket).await;
    assert_eq!(
        denied(asked.done().await).code,
        Code::RevocationStateMismatch
    );
    assert_eq!(
        kit.ticket_state(ticket),
        TicketState::Approved,
        "not used by what was refused"
    );
    // What is revoked takes the approval with it.
    kit.revoke("tool:box/send_mail").await;
    let refused = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
    assert_eq!(refused.code, Code::RevocationActive);
    assert_eq!(kit.ticket_state(ticket), TicketState::Withdrawn);
    assert_eq!(kit.effects.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_sees_is_what_would_run() {
    let kit = Kit::new().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let listed = kit.gate.pending().unwrap().pop().unwrap();
    assert_eq!((listed.id, listed.act), (asked.ticket, asked.act));
    assert_eq!(
        (listed.tool.as_str(), listed.function.as_str()),
        ("box", "send_mail")
    );
    assert_eq!((listed.class.as_str(), listed.more), ("COMMUNICATION", 0));
    assert_eq!((listed.reach.as_str(), listed.waiting), ("mail", true));
    let shown = kit.gate.pending_ticket(asked.ticket).unwrap().unwrap();
    assert_eq!((shown.id, shown.act()), (asked.ticket, Some(asked.act)));
    assert_eq!(shown.subject, listed.subject);
    let text = |key: &str| shown.display.get(key).unwrap().as_str().unwrap().to_owned();
    assert_eq!(
        text("arguments"),
        r#"{"body":"hello","to":"bob@example.com"}"#
    );
    assert_eq!(text("function_id"), "send_mail");
    let digest = Digest::sha256(text("arguments").as_bytes()).to_base64url();
    assert_eq!(text("arguments_digest"), digest);
    assert_eq!(listed.arguments_digest, digest);
    kit.approve(asked.ticket).await;
    let (held, _) = dispatched(asked.done().await);
    assert_eq!(held.act().arguments_digest.value, digest);
    assert_eq!(held.proposal().canonical, text("arguments").into_bytes());
}
