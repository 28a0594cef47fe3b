//! What a server says by itself.

use lychgate_core::json::Value;

use crate::client::{Client, shown, text_at};

#[tokio::test]
async fn roots_are_the_configurations_and_are_told_by_the_gate() {
    let mut client = Client::usual().await;
    client.write(1, "a", "roots").await;
    assert_eq!(shown(client.answer().await.get("id").unwrap()), "1");
    let told = client.heard("");
    let roots = told[0].pointer("/result/roots").and_then(Value::as_array);
    let names: Vec<_> = roots
        .unwrap()
        .iter()
        .map(|root| text_at(root, "/name"))
        .collect();
    assert_eq!(names, ["work", "plain"]);
    client.leave().await;
}

#[tokio::test]
async fn sampling_is_refused_where_it_is_not_allowed() {
    let mut client = Client::usual().await;
    client.write(1, "a", "sample").await;
    assert_eq!(shown(client.answer().await.get("id").unwrap()), "1");
    let told = client.heard("");
    assert_eq!(text_at(&told[0], "/error/data/code"), "EF-015");
    client.leave().await;
}

#[tokio::test]
async fn elicitation_passes_in_both_directions_and_leaves_commitments_in_the_record() {
    let mut client = Client::ready("", "", "elicitation = true").await;
    client.write(1, "a", "ask").await;
    let question = client.answer().await;
    assert_eq!(text_at(&question, "/method"), "elicitation/create");
    assert_eq!(
        text_at(&question, "/params/message"),
        "sure, Zwiebelkuchen?"
    );
    let id = text_at(&question, "/id").to_owned();
    client
        .line(&format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"action":"accept","content":{{"word":"Sauerteig"}}}}}}"#
        ))
        .await;
    client.answer().await;
    client.until_heard("", 1).await;
    let told = &client.heard("")[0];
    assert_eq!(text_at(told, "/id"), "q1", "the server's own id");
    assert_eq!(text_at(told, "/result/content/word"), "Sauerteig");
    let details = client.details();
    for who in ["the server asks", "the client answers"] {
        let start = format!("{who}: elicitation/create, server box message:");
        assert_eq!(
            details
                .iter()
                .filter(|detail| detail.starts_with(&start))
                .count(),
            1,
            "{details:?}"
        );
    }
    let record: String = details.concat();
    assert!(!record.contains("Zwiebelkuchen") && !record.contains("Sauerteig"));
    client.leave().await;
}
