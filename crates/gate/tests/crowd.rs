//! Ten thousand calls wait for a person, and deciding on one of them is as easy as ever.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kit;

use std::collections::BTreeSet;
use std::sync::Arc;

use kit::{Kit, denied};
use lychgate_core::Code;
use lychgate_gate::{End, PendingQuery, Verdict};
use lychgate_keys::verdict::Verdict as Ruling;
use tokio::task::JoinSet;

const ALL: usize = 10_000;
/// Tickets of one connection that may wait at once.
const OF_ONE: usize = 250;

fn mail(number: usize) -> String {
    format!(r#"{{"to":"bob@example.com","body":"number {number}"}}"#)
}

async fn crowd() -> Arc<Kit> {
    let kit = Arc::new(Kit::new().await);
    let mut asking = JoinSet::new();
    for connection in 0..ALL / OF_ONE {
        let kit = Arc::clone(&kit);
        asking.spawn(async move {
            let session = kit.session();
            for number in 0..OF_ONE {
                let arguments = mail(connection * OF_ONE + number);
                let held = kit.held(&session, "send_mail", &arguments);
                let verdict = kit.gate.decide(held).await;
                assert!(matches!(verdict, Verdict::Escalate(_)), "{verdict:?}");
            }
        });
    }
    while let Some(done) = asking.join_next().await {
        done.unwrap();
    }
    kit
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_pending_tickets_stay_usable() {
    let kit = crowd().await;
    assert_eq!(kit.gate.pending_count(), ALL);
    // The next one is told that there is no room, and that it may try later; nobody else's place is taken.
    let told = denied(
        kit.pass(&kit.session(), "pay", r#"{"to":"eve","amount":1}"#)
            .await,
    );
    assert_eq!(told.code, Code::EnvelopeExceeded);

    for newest_first in [true, false] {
        let mut query = PendingQuery {
            newest_first,
            limit: 500,
            ..PendingQuery::default()
        };
        let mut seen = BTreeSet::new();
        loop {
            let (page, more) = kit.gate.pending_page(&query).unwrap();
            assert!(page.len() <= 500);
            query.after = page.last().map(|ticket| ticket.id);
            seen.extend(page.iter().map(|ticket| ticket.id));
            if !more {
                break;
            }
        }
        assert_eq!(seen.len(), ALL, "each once");
    }
    let none = PendingQuery {
        class: Some("FINANCIAL".to_owned()),
        limit: 500,
        ..PendingQuery::default()
    };
    assert_eq!(kit.gate.pending_page(&none).unwrap(), (Vec::new(), false));

    // One of them by the end of its id, looked at and decided.
    let query = PendingQuery {
        newest_first: true,
        limit: 1,
        ..PendingQuery::default()
    };
    let chosen = kit.gate.pending_page(&query).unwrap().0.remove(0);
    let id = chosen.id.to_string();
    let found = kit.gate.pending_named(&id[id.len() - 12..], 3);
    assert_eq!(found, [chosen.id]);
    let shown = kit.gate.pending_ticket(chosen.id).unwrap().unwrap();
    let arguments = shown
        .display
        .get("arguments")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    kit.gate
        .rule(&kit.verdict(chosen.id, Ruling::Approve))
        .await
        .unwrap();
    let session = kit.session();
    let ran = kit
        .run(&session, "send_mail", &arguments, End::Effected)
        .await;
    assert_eq!(kit.ticket(chosen.id).consumed_by, Some(ran.ran()));
    assert_eq!(kit.gate.pending_count(), ALL - 1);

    let kit = Arc::into_inner(kit).unwrap().restart().await;
    assert_eq!(kit.gate.pending_count(), ALL - 1, "across a restart");
    assert_eq!(kit.effects.count(), 1);
}
