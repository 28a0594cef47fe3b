//! What becomes of acts: cancellation, lost and late answers, a full pipe, forged decisions.

use std::time::Duration;

use lychgate_core::{Code, State};
use lychgate_sinks::mcp::FromLink;

use crate::client::{Client, shown, text_at};
use crate::kit::MAIL;

#[tokio::test]
async fn a_call_goes_out_once_and_its_answer_comes_back_with_its_act() {
    let mut client = Client::usual().await;
    client.write(1, "a", "hello").await;
    let answer = client.next().await;
    let act = answer.delivery.expect("an act whose delivery counts");
    assert!(
        String::from_utf8(answer.line)
            .unwrap()
            .contains("\"text\": \"hello\"")
    );
    assert_eq!(client.heard("tools/call").len(), 1);
    client.send(FromLink::Delivered(act)).await;
    client.kit.all_noted(0).await;
    assert_eq!(client.kit.state(act), Some(State::Effected));
    client.leave().await;
}

#[tokio::test]
async fn a_servers_forged_decision_is_neither_told_nor_kept() {
    let mut client = Client::usual().await;
    client.write(1, "a", "forge").await;
    let first = client.next().await;
    // Not delivered: an equal call is given what was kept.
    client.write(2, "a", "forge").await;
    let second = client.next().await;
    assert_eq!(second.delivery, first.delivery);
    for told in [first, second] {
        let told = String::from_utf8(told.line).unwrap();
        assert!(told.contains("\"mine\"") && told.contains("done"), "{told}");
        assert!(!told.contains("dev.lychgate/decision"), "{told}");
    }
    assert_eq!(client.heard("tools/call").len(), 1);
    client.leave().await;
}

#[tokio::test]
async fn a_call_cancelled_while_it_is_held_is_never_sent() {
    let mut client = Client::usual().await;
    client.call(1, "send_mail", MAIL).await;
    let ticket = waiting(&client).await;
    client
        .line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    client.write(2, "a", "after").await;
    // The cancelled request gets no answer.
    assert_eq!(shown(client.answer().await.get("id").unwrap()), "2");
    client.kit.approve(ticket).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(client.heard("tools/call").len(), 1, "only the second");
    client.leave().await;
}

#[tokio::test]
async fn a_definition_that_changes_while_a_person_thinks_is_not_called() {
    for (manners, called) in [("changes", 0), ("", 1)] {
        let mut client = Client::ready(manners, "", "").await;
        client.call(1, "send_mail", MAIL).await;
        let ticket = waiting(&client).await;
        client
            .line(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#)
            .await;
        let announced = client.answer().await;
        assert_eq!(
            text_at(&announced, "/method"),
            "notifications/tools/list_changed"
        );
        client.kit.approve(ticket).await;
        if called == 0 {
            let decision = client.refused(Some(1), "EF-016").await;
            let act = text_at(&decision, "/act_id").parse().unwrap();
            assert_eq!(client.kit.state(act), Some(State::Failed));
        } else {
            assert!(client.answer().await.pointer("/result/content").is_some());
        }
        assert_eq!(client.heard("tools/call").len(), called);
        client.leave().await;
    }
}

/// The ticket of the one act that waits.
async fn waiting(client: &Client) -> lychgate_core::id::TicketId {
    for _ in 0..500 {
        let tickets = client.kit.receipts().into_iter().rev();
        if let Some(ticket) = tickets.into_iter().find_map(|receipt| receipt.ticket_id) {
            return ticket;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing waits for a person");
}

#[tokio::test]
async fn a_call_cancelled_after_dispatch_is_cancelled_at_the_server_and_settled_all_the_same() {
    let mut client = Client::ready("", "", "timeout = \"1s\"").await;
    client.write(1, "a", "never").await;
    client.until_heard("tools/call", 1).await;
    client
        .line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    client.until_heard("notifications/cancelled", 1).await;
    let sent = &client.heard("tools/call")[0];
    let cancelled = &client.heard("notifications/cancelled")[0];
    assert_eq!(
        sent.get("id"),
        cancelled.pointer("/params/requestId"),
        "named by the id it went out under"
    );
    // An equal call is not sent again while the first one's outcome is unknown.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    client.write(2, "a", "never").await;
    client.refused(Some(2), "EF-063").await;
    assert_eq!(client.heard("tools/call").len(), 1);
    client.leave().await;
}

#[tokio::test]
async fn an_answer_that_comes_late_settles_its_act() {
    let mut client = Client::ready("", "", "timeout = \"1s\"").await;
    client.write(1, "a", "late").await;
    let unknown = client.answer().await;
    let decision = unknown
        .pointer("/result/_meta/dev.lychgate~1decision")
        .unwrap();
    assert_eq!(text_at(decision, "/state"), "indeterminate");
    let act = text_at(decision, "/act_id").parse().unwrap();
    assert_eq!(client.kit.state(act), Some(State::Indeterminate));
    for _ in 0..300 {
        if client.kit.state(act) == Some(State::Effected) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.kit.state(act), Some(State::Effected));
    // It is what an equal call is given.
    client.write(2, "a", "late").await;
    assert_eq!(client.next().await.delivery, Some(act));
    assert_eq!(client.heard("tools/call").len(), 1);
    client.leave().await;
}

#[tokio::test]
async fn a_server_that_ends_in_the_middle_of_a_call_leaves_it_indeterminate() {
    let mut client = Client::usual().await;
    client.write(1, "a", "end").await;
    let unknown = client.answer().await;
    let decision = unknown
        .pointer("/result/_meta/dev.lychgate~1decision")
        .unwrap();
    let act = text_at(decision, "/act_id").parse().unwrap();
    assert_eq!(client.kit.state(act), Some(State::Indeterminate));
    client.leave().await;
}

#[tokio::test]
async fn a_pipe_that_stays_full_past_the_permits_deadline_means_not_sent_for_ever() {
    let mut client = Client::usual().await;
    client.write(1, "a", "deaf").await;
    let deaf = client.next().await;
    client
        .send(FromLink::Delivered(deaf.delivery.unwrap()))
        .await;
    // More than any pipe holds: its first byte leaves, the rest does not.
    client.write(2, "b", &"x".repeat(600_000)).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    client.write(3, "c", "behind it").await;
    let decision = client.refused(Some(3), "EF-080").await;
    assert_eq!(text_at(&decision, "/state"), "failed");
    let act = text_at(&decision, "/act_id").parse().unwrap();
    assert_eq!(client.kit.state(act), Some(State::Failed));
    assert!(client.details().iter().any(|detail| detail == "not_sent"));
    // The connection still hears its client while the server does not read.
    client.ask(4, "no/such_method").await;
    client.refused(Some(4), "EF-015").await;
    client
        .line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#)
        .await;
    client.ask(5, "no/such_method").await;
    client.refused(Some(5), "EF-015").await;
    client.leave().await;
}

#[tokio::test]
async fn an_unreadable_listing_is_no_substitution_and_is_not_asked_for_again_at_once() {
    let mut client = Client::ready("listing-fails", "", "").await;
    for id in [1, 2, 3] {
        client.write(id, "a", "x").await;
        let decision = client.refused(Some(id), "EF-080").await;
        let act = text_at(&decision, "/act_id").parse().unwrap();
        assert!(client.kit.denied_in_record(act, Code::FailClosed));
    }
    client.ask(4, "tools/list").await;
    let own = client.answer().await;
    assert!(
        own.pointer("/error/message").is_some(),
        "the server's own words"
    );
    // Ours once, and the client's own.
    assert_eq!(client.heard("tools/list").len(), 2);
    assert!(client.heard("tools/call").is_empty());
    client.leave().await;
}

#[tokio::test]
async fn a_listing_that_mends_is_read_again_after_a_while() {
    let mut client = Client::ready("listing-mends", "", "").await;
    client.write(1, "a", "x").await;
    client.refused(Some(1), "EF-080").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    client.write(2, "a", "x").await;
    assert!(client.answer().await.pointer("/result/content").is_some());
    client.leave().await;
}
