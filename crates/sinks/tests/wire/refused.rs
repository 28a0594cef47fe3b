//! What is refused before it is an act: recorded, answered in one form, its reason told to nobody.

use lychgate_core::Code;
use lychgate_sinks::mcp::FromLink;
use lychgate_store::testing::Fault;

use crate::client::{Client, text_at};

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[tokio::test]
async fn a_call_before_the_handshake_is_refused_and_recorded() {
    let mut client = Client::connect("", "", "").await;
    client.write(1, "a", "x").await;
    let decision = client.refused(Some(1), "EF-001").await;
    let act = text_at(&decision, "/act_id").parse().unwrap();
    assert!(client.kit.denied_in_record(act, Code::MalformedAct));
    client.ask(2, "tools/list").await;
    let decision = client.refused(Some(2), "EF-001").await;
    let act = text_at(&decision, "/act_id").parse().unwrap();
    assert!(client.kit.denied_in_record(act, Code::MalformedAct));
    // Half a handshake is none.
    client
        .line(r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}"#)
        .await;
    client.answer().await;
    client.write(4, "a", "x").await;
    client.refused(Some(4), "EF-001").await;
    client
        .line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    client.write(5, "a", "x").await;
    assert!(client.answer().await.pointer("/result/content").is_some());
    assert_eq!(client.heard("tools/call").len(), 1);
    client.leave().await;
}

#[tokio::test]
async fn a_modern_call_reaches_a_server_only_when_it_says_that_it_is_modern() {
    for (manners, modern) in [("modern", true), ("polite", false), ("", false)] {
        let mut client = Client::connect(manners, "", "").await;
        let arguments = client.kit.note("work", "a", "x");
        client
            .line(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"write_note","arguments":{arguments},{MODERN}}}}}"#
            ))
            .await;
        if modern {
            assert!(client.answer().await.pointer("/result/content").is_some());
        } else {
            client.refused(Some(1), "EF-001").await;
        }
        assert_eq!(client.heard("tools/call").len(), usize::from(modern));
        client.leave().await;
    }
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_and_the_first_request_keeps_it() {
    let mut client = Client::ready("", "", "timeout = \"1s\"").await;
    client.write(7, "a", "never").await;
    client.until_heard("tools/call", 1).await;
    client.write(7, "b", "x").await;
    client.refused(Some(7), "EF-001").await;
    client.ask(7, "ping").await;
    client.refused(Some(7), "EF-001").await;
    let answer = client.answer().await;
    let state = "/result/_meta/dev.lychgate~1decision/state";
    assert_eq!(text_at(&answer, state), "indeterminate");
    assert_eq!(client.heard("tools/call").len(), 1);
    client.leave().await;
}

#[tokio::test]
async fn a_line_over_the_limit_is_answered_though_nobody_knows_whose_it_was() {
    let mut client = Client::usual().await;
    client.send(FromLink::TooLong).await;
    let decision = client.refused(None, "EF-001").await;
    let act = text_at(&decision, "/act_id").parse().unwrap();
    assert!(client.kit.denied_in_record(act, Code::MalformedAct));
    client.leave().await;
}

#[tokio::test]
async fn a_listed_method_with_wrong_params_names_the_place() {
    let method = "[servers.box.methods.\"x/do\"]\nclass = \"INFORMATIONAL\"\ndestination = { fixed = \"x\" }";
    let mut client = Client::ready("", "", method).await;
    client
        .line(
            r#"{"jsonrpc":"2.0","id":1,"method":"x/do","params":{"_meta":{"progressToken":null}}}"#,
        )
        .await;
    let decision = client.refused(Some(1), "EF-001").await;
    assert_eq!(
        text_at(&decision, "/pointer"),
        "/params/_meta/progressToken"
    );
    client.leave().await;
}

#[tokio::test]
async fn a_store_that_cannot_record_a_refusal_is_what_the_client_hears() {
    let mut client = Client::usual().await;
    client.kit.store.fail(Some(Fault::Busy));
    client.ask(1, "no/such_method").await;
    client.refused(Some(1), "EF-081").await;
    client.leave().await;
}

#[tokio::test]
async fn a_server_whose_entry_file_is_another_answers_everything_with_recorded_refusals() {
    let entry = format!("entry = \"{}\"", "A".repeat(43));
    let mut client = Client::connect("", "", &entry).await;
    client.ask(1, "initialize").await;
    client.refused(Some(1), "EF-016").await;
    client.write(2, "a", "x").await;
    let decision = client.refused(Some(2), "EF-016").await;
    let act = text_at(&decision, "/act_id").parse().unwrap();
    assert!(client.kit.denied_in_record(act, Code::ToolSubstitution));
    client
        .line(r#"[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"ping","x":1}]"#)
        .await;
    client.refused(Some(3), "EF-016").await;
    client.refused(Some(4), "EF-001").await;
    client
        .line(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"write_note","x":1}}"#)
        .await;
    let decision = client.refused(Some(5), "EF-001").await;
    assert_eq!(text_at(&decision, "/pointer"), "/params/x");
    client.send(FromLink::TooLong).await;
    client.refused(None, "EF-001").await;
    assert!(client.heard("initialize").is_empty(), "it was not started");
    client.leave().await;
}
