//! Calls as a client emits them: equal ones, differently written ones, aliases.

use std::sync::Arc;

use lychgate_core::{Code, State};
use lychgate_gate::{CallerGone, End, Verdict};
use lychgate_intake::{Body, FromClient, Limits, Proposal, from_client};
use proptest::prelude::*;
use tokio::task::JoinSet;

use crate::kit::{Kit, denied, dispatched};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_candidates() {
    let kit = Kit::new().await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let one = dispatched(kit.pass(&session, "write_note", &note).await);
    let two = dispatched(kit.pass(&session, "write_note", &note).await);
    let acts = [one.0.act().candidate_act_id, two.0.act().candidate_act_id];
    assert_ne!(acts[0], acts[1], "two equal live calls are two acts");
    for (_, done) in [one, two] {
        let begun = kit.effects.begin(done).unwrap();
        let settled = kit.gate.settle(begun.end(End::Effected), Some(b"{}")).await;
        assert_eq!(settled.state, State::Effected);
        kit.gate.delivered(settled.act);
    }
    assert_eq!(kit.effects.count(), 2);
    assert!(kit.gate.twins().is_empty());
}

fn emitted(line: &str) -> Result<Proposal, Code> {
    match from_client(line.as_bytes(), &Limits::default()) {
        Ok(FromClient::Request {
            body: Body::Acts(proposal),
            ..
        }) => Ok(*proposal),
        Ok(other) => panic!("{other:?}"),
        Err(fault) => Err(fault.code),
    }
}

fn call(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"write_note","arguments":{arguments}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deterministic_digest() {
    let kit = Kit::new().await;
    let path = kit.path("work", "a");
    let plain = emitted(&call(&format!(
        r#"{{"path":"{path}","size":100,"text":"é"}}"#
    )))
    .unwrap();
    for written in [
        format!(r#"{{"text":"é","size":100,"path":"{path}"}}"#),
        format!("{{\t\"size\" : 1e2 ,\n\"path\":\"{path}\",\"text\":\"\\u00e9\"}}"),
        format!(r#"{{"size":100.0,"text":"\u00E9","pat\u0068":"{path}"}}"#),
    ] {
        let other = emitted(&call(&written)).unwrap();
        assert_eq!(other.digest, plain.digest, "{written}");
        assert_eq!(
            other.canonical, plain.canonical,
            "what is hashed is what is sent"
        );
    }
    // What only looks alike is another call, and what has two readings is none.
    let composed = emitted(&call(&format!(
        r#"{{"path":"{path}","size":100,"text":"e\u0301"}}"#
    )));
    assert_ne!(composed.unwrap().digest, plain.digest);
    for doubtful in [
        r#"{"size":1,"size":2}"#,
        r#"{"size":9007199254740993}"#,
        r#"{"text":"\ud800"}"#,
    ] {
        assert_eq!(emitted(&call(doubtful)).unwrap_err(), Code::MalformedAct);
    }
    // One digest, one act's worth of everything that hangs on it.
    let session = kit.session();
    let connected = kit.connected("write_note");
    let one = kit
        .gate
        .hold(&session, plain.clone(), connected.clone())
        .unwrap();
    let two = kit.gate.hold(&session, plain, connected).unwrap();
    assert_eq!(one.act().arguments_digest, two.act().arguments_digest);
    assert_ne!(one.act().digest().unwrap(), two.act().digest().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_digest_does_not_hang_on_the_order_of_members(
        members in prop::collection::btree_map("[a-z]{1,6}", -1_000_000_i64..1_000_000, 1..6),
        turn in 0_usize..6,
    ) {
        let mut pairs = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect::<Vec<_>>();
        let straight = emitted(&call(&format!("{{{}}}", pairs.join(",")))).unwrap();
        let by = turn % pairs.len();
        pairs.rotate_left(by);
        let turned = emitted(&call(&format!("{{ {} }}", pairs.join(" , ")))).unwrap();
        prop_assert_eq!(straight.digest, turned.digest);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alias_is_the_same_act_under_its_own_name() {
    let kit = Kit::new().await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let lost = End::Unknown(lychgate_gate::Unknown::AnswerLost);
    let held = kit.held(&session, "WriteNote", &note);
    assert_eq!(held.act().tool.function_id, "write_note");
    assert_eq!(
        held.proposal().function,
        "write_note",
        "an alias never reaches the server"
    );
    kit.run(&session, "WriteNote", &note, lost).await.ran();
    let again = kit.run(&session, "write_note", &note, lost).await.denied();
    assert_eq!(again.code, Code::TwinUnresolved);
    // Exact, never near.
    for near in ["writenote", "Write_Note", "write_note2", "write"] {
        let denied = denied(kit.pass(&session, near, &note).await);
        assert_eq!(denied.code, Code::ToolNotAuthorized, "{near}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withheld_tool_is_not_there() {
    let kit = Kit::new().await;
    let denied = denied(kit.pass(&kit.session(), "withheld", "{}").await);
    assert_eq!(denied.code, Code::ToolNotAuthorized);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vouched_channel_covers_nothing_external_or_irreversible() {
    let vouch = |text: String| text.replace("[limits]", "[provenance]\nvouch = \"user\"\n[limits]");
    let kit = Kit::with(vouch).await;
    let session = kit.session();
    let inside = kit.note("work", "a", "x");
    kit.run(&session, "write_note", &inside, End::Effected)
        .await
        .ran();
    let dispatched = kit
        .receipts()
        .into_iter()
        .find(|receipt| receipt.effect_id.is_some())
        .unwrap();
    assert!(dispatched.act.unwrap().vouched, "visible in the receipt");
    let path = format!(r#"{{"path":"{}"}}"#, kit.path("work", "a"));
    let script = format!(r#"{{"path":"{}","script":"ls"}}"#, kit.path("work", "a"));
    for (function, arguments) in [
        ("write_note", kit.note("plain", "a", "x")),
        ("erase_note", path),
        ("run", script),
        ("send_mail", crate::kit::MAIL.to_owned()),
        ("pay", r#"{"to":"bob","amount":1}"#.to_owned()),
        ("search", r#"{"url":"https://search.example/"}"#.to_owned()),
        ("wipe", "{}".to_owned()),
    ] {
        let held = kit.held(&session, function, &arguments);
        let verdict = kit.gate.decide(held).await;
        assert!(
            matches!(verdict, Verdict::Escalate(_)),
            "{function}: {verdict:?}"
        );
    }
    assert_eq!(kit.effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_parallel_calls_are_two_hundred_acts() {
    let kit = Arc::new(Kit::new().await);
    let session = kit.session();
    let mut all = JoinSet::new();
    for n in 0..200 {
        let (kit, session) = (Arc::clone(&kit), Arc::clone(&session));
        all.spawn(async move {
            let note = kit.note("work", "a", &format!("{}", n % 10));
            kit.run(&session, "write_note", &note, End::NoEffect)
                .await
                .ran()
        });
    }
    let mut acts = all.join_all().await;
    acts.sort_unstable();
    acts.dedup();
    assert_eq!((acts.len(), kit.effects.count()), (200, 200));
    assert!(kit.gate.twins().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_gone_before_the_sink_has_withdrawn_its_act() {
    let kit = Kit::new().await;
    let held = kit.held(&kit.session(), "write_note", &kit.note("work", "a", "x"));
    let act = held.act().candidate_act_id;
    let (gone, caller) = CallerGone::new();
    gone.say();
    let denied = denied(kit.pass_held(held, &caller).await);
    assert_eq!(denied.state, State::Withdrawn);
    assert_eq!(kit.state(act), Some(State::Withdrawn));
    assert!(kit.gate.twins().is_empty());
}
