//! Requests that pass are bounded in number and time.

use std::time::{Duration, Instant};

use crate::client::{Client, shown};

#[tokio::test]
async fn passing_requests_count_as_open_ones() {
    let mut client = Client::ready("", "in_flight = 3", "").await;
    for id in 1..=3 {
        client.ask(id, "prompts/list").await;
    }
    client.until_heard("prompts/list", 3).await;
    client.ask(4, "prompts/list").await;
    client.refused(Some(4), "EF-043").await;
    client.write(5, "a", "x").await;
    client.refused(Some(5), "EF-043").await;
    assert_eq!(client.heard("prompts/list").len(), 3);
    // One that is given up makes room.
    client
        .line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    client.until_heard("notifications/cancelled", 1).await;
    client.write(6, "a", "x").await;
    assert_eq!(shown(client.answer().await.get("id").unwrap()), "6");
    client.leave().await;
}

#[tokio::test]
async fn a_passing_request_is_answered_in_time_unless_it_is_a_subscription() {
    let mut client = Client::ready("", "", "timeout = \"500ms\"").await;
    let began = Instant::now();
    client.ask(1, "subscriptions/listen").await;
    client.ask(2, "prompts/list").await;
    client.refused(Some(2), "EF-080").await;
    assert!(began.elapsed() < Duration::from_secs(3));
    client.until_heard("notifications/cancelled", 1).await;
    // The subscription is still open.
    client.ask(1, "ping").await;
    client.refused(Some(1), "EF-001").await;
    client.leave().await;
}
