//! An approval is for one subject: whatever differs makes another one (PROFILE §11), and what must not matter does not.

use lychgate_core::Digest;
use lychgate_gate::{Gate, Session, Verdict};
use lychgate_intake::Continuation;
use proptest::prelude::*;
use std::sync::Arc;

use crate::kit::{Kit, MAIL, proposal};

/// The subject a call would be asked under.
async fn subject_of(kit: &Kit, held: lychgate_gate::HeldAct) -> Digest {
    match kit.gate.decide(held).await {
        Verdict::Escalate(escalated) => kit.ticket(escalated.ticket()).subject,
        other => panic!("not asked but {other:?}"),
    }
}

async fn of(kit: &Kit, function: &str, arguments: &str) -> Digest {
    let held = kit.held(&kit.session(), function, arguments);
    subject_of(kit, held).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_subject_differs_when_anything_differs() {
    let kit = Kit::new().await;
    let base = of(&kit, "send_mail", MAIL).await;
    // Another connection, another time, another spelling: the same.
    kit.clock.advance(std::time::Duration::from_secs(5));
    assert_eq!(of(&kit, "send_mail", MAIL).await, base);
    let spelled = r#"{ "body":"hell\u006f", "to":"bob@example.com" }"#;
    assert_eq!(of(&kit, "send_mail", spelled).await, base);

    let mut seen = vec![base];
    for (function, arguments) in [
        ("send_mail", r#"{"to":"bob@example.com","body":"hello "}"#),
        ("send_mail", r#"{"to":"rob@example.com","body":"hello"}"#),
        ("pay", r#"{"to":"bob","amount":1}"#),
        ("pay", r#"{"to":"bob","amount":2}"#),
        ("wipe", "{}"),
    ] {
        seen.push(of(&kit, function, arguments).await);
    }
    // What a round carries along.
    let mut carries = proposal("send_mail", MAIL);
    carries.continuation = Some(Continuation {
        input_responses: None,
        request_state: Some("s".to_owned()),
        digest: Digest::sha256(b"s"),
    });
    let (held, done) = ready_round(&kit).await;
    let begun = kit.effects.begin(done).unwrap();
    kit.gate
        .settle(begun.end(lychgate_gate::End::InputRequired), None)
        .await;
    kit.gate.expect_round(&held, Some("s"));
    let held = kit
        .gate
        .hold(&kit.session(), carries, kit.connected("send_mail"))
        .unwrap();
    seen.push(subject_of(&kit, held).await);
    // What the configuration says of the call.
    for edit in [
        |text: String| text.replace("user:alice", "user:bob"),
        |text: String| text.replace("agent-1", "agent-2"),
        |text: String| text.replace("id = \"general\"", "id = \"other\""),
        |text: String| text.replace("/bin/box", "/bin/box2"),
        |text: String| text.replace("\"COMMUNICATION\"", "\"FINANCIAL\""),
        |text: String| text.replace("fixed = \"mail\"", "fixed = \"post\""),
        |text: String| text.replace("[limits]", "[provenance]\nvouch = \"user\"\n[limits]"),
        |text: String| text.replace("[limits]", "[provenance]\nvouch = \"system\"\n[limits]"),
    ] {
        kit.apply(edit).await.unwrap();
        seen.push(of(&kit, "send_mail", MAIL).await);
    }
    let count = seen.len();
    seen.sort_by_key(|digest| digest.to_base64url());
    seen.dedup();
    assert_eq!(seen.len(), count, "two different calls share a subject");
    // And back: the same subject, whatever epochs have passed.
    kit.apply(|text| text).await.unwrap();
    assert_eq!(of(&kit, "send_mail", MAIL).await, base);
}

async fn ready_round(kit: &Kit) -> (lychgate_gate::HeldAct, lychgate_gate::Dispatched) {
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    kit.approve(asked.ticket).await;
    crate::kit::dispatched(asked.done().await)
}

/// One gate for a whole property: making one is the slow part.
struct Shared {
    runtime: tokio::runtime::Runtime,
    kit: Kit,
}

impl Shared {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let kit = runtime.block_on(Kit::new());
        Self { runtime, kit }
    }
}

#[test]
fn two_calls_share_a_subject_only_when_they_are_the_same_call() {
    let Shared { runtime, kit } = Shared::new();
    let strategy = (("[a-c]{1,2}", "[ -~]{0,3}"), ("[a-c]{1,2}", "[ -~]{0,3}"));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(40));
    runner
        .run(&strategy, |((to, body), (other_to, other_body))| {
            let args = |to: &str, body: &str| {
                let mut members = lychgate_core::json::Object::new();
                members.insert("to".to_owned(), format!("{to}@example.com").as_str().into());
                members.insert("body".to_owned(), body.into());
                String::from_utf8(lychgate_core::jcs::to_bytes(
                    &lychgate_core::json::Value::Object(members),
                ))
                .unwrap()
            };
            let (one, two) = runtime.block_on(async {
                let one = of(&kit, "send_mail", &args(&to, &body)).await;
                (
                    one,
                    of(&kit, "send_mail", &args(&other_to, &other_body)).await,
                )
            });
            prop_assert_eq!(one == two, (to, body) == (other_to, other_body));
            Ok(())
        })
        .unwrap();
}

/// An approver's edit makes a new act: what was approved runs, or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_ticket_licenses_no_edited_call() {
    let kit = Kit::new().await;
    let session: Arc<Session> = kit.session();
    let gate: &Arc<Gate> = &kit.gate;
    let asked = kit.ask(&session, "pay", r#"{"to":"bob","amount":1}"#).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.approve(ticket).await;
    for edited in [
        r#"{"to":"bob","amount":10}"#,
        r#"{"to":"Bob","amount":1}"#,
        r#"{"to":"bob"}"#,
    ] {
        let verdict = gate.decide(kit.held(&session, "pay", edited)).await;
        assert!(
            matches!(verdict, Verdict::Escalate(_)),
            "{edited}: {verdict:?}"
        );
    }
    assert_eq!(
        kit.ticket_state(ticket),
        lychgate_store::TicketState::Approved
    );
}
