//! Budgets over the whole chain.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::id::DelegationId;
use lychgate_core::{Code, ConsequenceClass, State};
use lychgate_gate::{End, Unknown};
use lychgate_store::{Account, Store};

use super::kit::workers::{CHANGE, INFORMATIONAL, acts, deeper, rate, request, spend, within};
use super::kit::{ANSWER, Kit, denied, dispatched};
use super::{READER, read};

fn id(file: &lychgate_core::delegation::DelegationFile) -> DelegationId {
    file.chain.last().unwrap().delegation_id
}

fn drawn(kit: &Kit, account: Account) -> u64 {
    kit.store
        .account(account)
        .unwrap()
        .map_or(0, |drawn| drawn.acts)
}

//= draft §10: cumulative across the chain
#[tokio::test(flavor = "multi_thread")]
async fn what_workers_do_counts_for_everyone_above_them() {
    let kit = Kit::delegating().await;
    let planner = deeper(
        within(request("planner", READER, &[INFORMATIONAL]), acts(4)),
        1,
    );
    let planner = kit.delegate(None, planner).await.unwrap();
    let planning = kit.worker(&planner).await.unwrap();
    let mut workers = Vec::new();
    // Handing on is an act of the planner's.
    for name in ["one", "two"] {
        let wanted = within(request(name, READER, &[INFORMATIONAL]), acts(4));
        let file = kit.delegate(Some(&planner), wanted).await.unwrap();
        workers.push(kit.worker(&file).await.unwrap());
    }
    assert_eq!(drawn(&kit, Account::Delegation(id(&planner))), 2);
    kit.run(&workers[0], "read_note", &read(&kit), End::Effected)
        .await
        .ran();
    kit.run(&workers[1], "read_note", &read(&kit), End::Effected)
        .await
        .ran();
    for session in workers.iter().chain([&planning]) {
        let no = denied(kit.pass(session, "read_note", &read(&kit)).await);
        assert_eq!(no.code, Code::DelegationExceeded);
    }
    // The agent itself has no such limit.
    kit.run(&kit.session(), "read_note", &read(&kit), End::Effected)
        .await
        .ran();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_acts_race_for_ten() {
    let kit = Kit::delegating().await;
    let planner = deeper(
        within(request("planner", READER, &[INFORMATIONAL]), acts(14)),
        1,
    );
    let planner = kit.delegate(None, planner).await.unwrap();
    let mut sessions = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let wanted = within(request(name, READER, &[INFORMATIONAL]), acts(14));
        let file = kit.delegate(Some(&planner), wanted).await.unwrap();
        sessions.push(kit.worker(&file).await.unwrap());
    }
    let kit = Arc::new(kit);
    let tasks = (0..64).map(|n| {
        let (kit, session) = (Arc::clone(&kit), Arc::clone(&sessions[n % 4]));
        tokio::spawn(async move {
            let passed = kit.pass(&session, "read_note", &read(&kit)).await;
            match passed {
                lychgate_gate::Passed::Denied(denied) => {
                    assert_eq!(denied.code, Code::DelegationExceeded);
                    false
                }
                passed => {
                    kit.finish(passed, End::Effected).await.ran();
                    true
                }
            }
        })
    });
    let mut won = 0;
    for task in tasks.collect::<Vec<_>>() {
        won += usize::from(task.await.unwrap());
    }
    assert_eq!((won, kit.effects.count()), (10, 10));
    assert_eq!(drawn(&kit, Account::Delegation(id(&planner))), 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_certainly_had_no_effect_is_given_back() {
    let kit = Kit::delegating().await;
    let wanted = within(request("worker", &["write_note"], &[CHANGE]), acts(2));
    let file = kit.delegate(None, wanted).await.unwrap();
    let account = Account::Delegation(id(&file));
    let session = kit.worker(&file).await.unwrap();
    let write = async |name: &str| {
        let passed = kit
            .pass(&session, "write_note", &kit.note("work", name, "x"))
            .await;
        dispatched(passed).1
    };
    // Not sent: nothing was used up.
    let not_sent = write("a").await.permit.give_up();
    kit.gate.settle(not_sent.into(), None).await;
    assert_eq!(drawn(&kit, account), 0);
    // The destination says that nothing happened; it wants more input.
    for end in [End::NoEffect, End::InputRequired] {
        let begun = kit.effects.begin(write("b").await).unwrap();
        kit.gate.settle(begun.end(end), None).await;
        assert_eq!(drawn(&kit, account), 0, "{end:?}");
    }
    // Unknown is paid for.
    let begun = kit.effects.begin(write("c").await).unwrap();
    let settled = kit
        .gate
        .settle(begun.end(End::Unknown(Unknown::AnswerLost)), None)
        .await;
    assert_eq!(
        (settled.state, drawn(&kit, account)),
        (State::Indeterminate, 1)
    );
    let begun = kit.effects.begin(write("d").await).unwrap();
    kit.gate
        .settle(begun.end(End::Effected), Some(ANSWER))
        .await;
    let full = denied(
        kit.pass(&session, "write_note", &kit.note("work", "e", "x"))
            .await,
    );
    assert_eq!(full.code, Code::DelegationExceeded);
    // A late answer that nothing happened gives it back after all; a person's word does not.
    let late = settled.late.unwrap();
    kit.gate.settle(late.answered(End::NoEffect), None).await;
    assert_eq!(drawn(&kit, account), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_under_way_at_a_crash_is_paid_for() {
    let kit = Kit::delegating().await;
    let wanted = within(request("worker", &["write_note"], &[CHANGE]), acts(1));
    let file = kit.delegate(None, wanted).await.unwrap();
    let account = Account::Delegation(id(&file));
    let session = kit.worker(&file).await.unwrap();
    let passed = kit
        .pass(&session, "write_note", &kit.note("work", "a", "x"))
        .await;
    let (held, permit) = dispatched(passed);
    let act = held.act().candidate_act_id;
    drop((held, permit, session));
    let kit = kit.restart().await;
    assert_eq!(kit.state(act), Some(State::Indeterminate));
    kit.reconcile(act, false).await.unwrap();
    assert_eq!(drawn(&kit, account), 1);
    let session = kit.worker(&file).await.unwrap();
    let full = denied(
        kit.pass(&session, "write_note", &kit.note("work", "b", "x"))
            .await,
    );
    assert_eq!(full.code, Code::DelegationExceeded);
    // What the record says of the act's outcome names its depth too.
    let mut outcome = kit.receipts().into_iter().filter_map(|receipt| receipt.act);
    let outcome = outcome.rfind(|part| part.candidate_act_id == act).unwrap();
    assert_eq!(
        (outcome.delegation_depth, outcome.delegation_id),
        (1, Some(id(&file)))
    );
}

//= PROFILE §6: EF-043 for velocity
#[tokio::test(flavor = "multi_thread")]
async fn a_velocity_is_a_limit_of_its_own() {
    let kit = Kit::delegating().await;
    let wanted = within(request("worker", READER, &[INFORMATIONAL]), rate(2, 60_000));
    let file = kit.delegate(None, wanted).await.unwrap();
    let session = kit.worker(&file).await.unwrap();
    for _ in 0..2 {
        kit.run(&session, "read_note", &read(&kit), End::Effected)
            .await
            .ran();
    }
    let no = denied(kit.pass(&session, "read_note", &read(&kit)).await);
    assert_eq!(
        (no.code, no.code.retryable()),
        (Code::EnvelopeExceeded, true)
    );
    kit.clock.advance(Duration::from_secs(68));
    kit.run(&session, "read_note", &read(&kit), End::Effected)
        .await
        .ran();
}

#[tokio::test(flavor = "multi_thread")]
async fn value_is_counted_before_a_person_is_asked_and_again_when_it_moves() {
    let kit = Kit::delegating_with(|text| {
        text.replace(
            "roles = { \"/amount\" = \"amount\" }",
            "roles = { \"/amount\" = \"amount\" }\nunit = \"EUR\"",
        )
    })
    .await;
    let financial = [ConsequenceClass::Financial];
    let wanted = within(request("payer", &["pay"], &financial), spend("EUR", "100"));
    let file = kit.delegate(None, wanted).await.unwrap();
    let session = kit.worker(&file).await.unwrap();
    let pay = |amount: &str| format!(r#"{{"to":"bob","amount":{amount}}}"#);
    // More than all of it, a negative amount, and one that cannot be counted: nobody is asked.
    for amount in ["100.01", "-1", "1e21", "1e-19"] {
        let no = denied(kit.pass(&session, "pay", &pay(amount)).await);
        assert_eq!(no.code, Code::DelegationExceeded, "{amount}");
    }
    // Two that fit one at a time are both asked about; only one of them goes through.
    let one = kit.ask(&session, "pay", &pay("60.5")).await;
    let other = kit.ask(&session, "pay", &pay("60")).await;
    kit.approve(one.ticket).await;
    let (_, permit) = dispatched(one.done().await);
    kit.approve(other.ticket).await;
    let no = denied(other.done().await);
    assert_eq!(no.code, Code::DelegationExceeded);
    let begun = kit.effects.begin(permit).unwrap();
    kit.gate
        .settle(begun.end(End::Effected), Some(ANSWER))
        .await;
    // Another unit than what was granted is none of it.
    let dollars = within(request("payer", &["pay"], &financial), spend("USD", "100"));
    let file = kit.delegate(None, dollars).await.unwrap();
    let session = kit.worker(&file).await.unwrap();
    let no = denied(kit.pass(&session, "pay", &pay("1")).await);
    assert_eq!(no.code, Code::DelegationExceeded);
    assert_eq!(kit.effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_whose_amount_nobody_names_is_within_no_budget() {
    let kit =
        Kit::delegating_with(|text| text.replace("roles = { \"/amount\" = \"amount\" }", "")).await;
    let wanted = within(
        request("payer", &["pay"], &[ConsequenceClass::Financial]),
        spend("EUR", "100"),
    );
    let file = kit.delegate(None, wanted).await.unwrap();
    let session = kit.worker(&file).await.unwrap();
    let no = denied(
        kit.pass(&session, "pay", r#"{"to":"bob","amount":1}"#)
            .await,
    );
    assert_eq!(no.code, Code::DelegationExceeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_own_budget_holds_for_all_below_it_and_begins_anew() {
    let kit = Kit::delegating_with(|text| {
        text.replace(
            "[purpose]",
            "budget = { every = \"1h\", acts = 3 }\n[purpose]",
        )
    })
    .await;
    let file = kit
        .delegate(None, request("worker", READER, &[INFORMATIONAL]))
        .await
        .unwrap();
    let session = kit.worker(&file).await.unwrap();
    kit.run(&session, "read_note", &read(&kit), End::Effected)
        .await
        .ran();
    kit.run(&kit.session(), "read_note", &read(&kit), End::Effected)
        .await
        .ran();
    for session in [&session, &kit.session()] {
        let no = denied(kit.pass(session, "read_note", &read(&kit)).await);
        assert_eq!(no.code, Code::EnvelopeExceeded);
    }
    kit.clock.advance(Duration::from_secs(3600));
    // A delegation lives half an hour here; the agent itself goes on.
    kit.run(&kit.session(), "read_note", &read(&kit), End::Effected)
        .await
        .ran();
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_that_have_consequences_are_counted_apart() {
    let kit = Kit::delegating().await;
    let mut wanted = request(
        "worker",
        &["read_note", "write_note"],
        &[INFORMATIONAL, CHANGE],
    );
    wanted.grant.budget.high_risk_acts = Some(1);
    let file = kit.delegate(None, wanted).await.unwrap();
    let session = kit.worker(&file).await.unwrap();
    kit.run(
        &session,
        "write_note",
        &kit.note("work", "a", "x"),
        End::Effected,
    )
    .await
    .ran();
    let no = denied(
        kit.pass(&session, "write_note", &kit.note("work", "b", "x"))
            .await,
    );
    assert_eq!(no.code, Code::DelegationExceeded);
    kit.run(&session, "read_note", &read(&kit), End::Effected)
        .await
        .ran();
}
