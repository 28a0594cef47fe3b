//! Sentences of draft §5 about a yes and what it covers, each by its section.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kit;

use kit::{Kit, denied, dispatched};
use lychgate_core::Code;

/// A person approves one call whose caller then leaves: the yes licenses that call, and never the other.
async fn a_yes_covers_only(function: &str, approved: &str, other: &str) {
    let kit = Kit::new().await;
    let session = kit.session();
    let asked = kit.ask(&session, function, approved).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.approve(ticket).await;

    let changed = kit.ask(&session, function, other).await;
    assert_ne!(changed.ticket, ticket, "it asks for itself");
    changed.give_up().await;
    assert_eq!(kit.effects.count(), 0);

    let (_, ran) = dispatched(kit.pass(&session, function, approved).await);
    drop(ran);
}

//= draft §5.1: a digest issued for a refund of 12.00 MUST NOT authorize 1,200.00
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_1_a_yes_to_a_refund_of_12_is_none_to_1200() {
    a_yes_covers_only(
        "pay",
        r#"{"to":"customer-7","amount":12}"#,
        r#"{"to":"customer-7","amount":1200}"#,
    )
    .await;
}

//= draft §5.3: the recipient is part of what is authorized
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_3_a_yes_to_one_recipient_is_none_to_another() {
    a_yes_covers_only(
        "pay",
        r#"{"to":"supplier-1","amount":12}"#,
        r#"{"to":"supplier-2","amount":12}"#,
    )
    .await;
}

//= draft §5.3: a FINANCIAL act MUST carry a recipient
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_3_a_payment_to_nobody_is_denied_and_nobody_is_asked() {
    let kit = Kit::new().await;
    let passed = kit.pass(&kit.session(), "pay", r#"{"amount":12}"#).await;
    assert_eq!(denied(passed).code, Code::DestinationUnresolved);
    assert_eq!(kit.effects.count(), 0);
}

//= draft §5.6: a draft authorized for alice MUST fail for an attacker's address
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_6_a_yes_to_mail_for_alice_is_none_for_an_attacker() {
    a_yes_covers_only(
        "send_mail",
        r#"{"to":"alice@example.com","body":"hello"}"#,
        r#"{"to":"attacker@example.net","body":"hello"}"#,
    )
    .await;
}
