//! What passes through stays byte-true, and what is rebuilt says exactly what was digested.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Value, parse};
use lychgate_core::{Code, Digest, State, jcs};
use lychgate_intake::answer::*;
use lychgate_intake::envelope::{FaultKind, items, scan, well_formed};
use lychgate_intake::listing::{duplicates, page};
use lychgate_intake::server::{ResultKind, result_facts};
use lychgate_intake::*;
use proptest::prelude::*;

/// Odd but well-formed: spaces, escapes, doubled inner keys, numbers no double denotes, half a surrogate pair.
const ODD: &str = r#"{ "content" : [ {"a":1,"a":2, "n":1e400, "big":18446744073709551617} ] ,"s":"\ud800\u0041" , "z":-0.0 }"#;

#[test]
fn a_result_is_spliced_byte_true_under_the_clients_own_id() {
    let line = format!(r#"{{"result":{ODD},"jsonrpc":"2.0","id":7}}"#);
    let FromServer::Response { id, result } = from_server(line.as_bytes()).unwrap() else {
        panic!()
    };
    assert_eq!(id, Some(RequestId::Number(7)));
    assert_eq!(result.unwrap(), ODD.as_bytes());
    let told = response_bytes(&RequestId::String("a\"b".into()), result);
    assert_eq!(
        told,
        format!(r#"{{"jsonrpc":"2.0","id":"a\"b","result":{ODD}}}"#).into_bytes()
    );
}

#[test]
fn marking_a_result_changes_no_byte_of_its_members() {
    let decision = parse(br#"{"state":"indeterminate"}"#, &json::Limits::OBJECT).unwrap();
    let ours = r#""dev.lychgate/decision":{"state":"indeterminate"}"#;
    let text = |raw: &str| {
        mark_result(raw.as_bytes(), &decision).map(|out| String::from_utf8(out).unwrap())
    };
    assert_eq!(text("{}").unwrap(), format!(r#"{{"_meta":{{{ours}}}}}"#));
    let odd = text(ODD).unwrap();
    assert!(odd.contains(r#"[ {"a":1,"a":2, "n":1e400, "big":18446744073709551617} ]"#));
    assert_eq!(
        text(r#"{"a":1,"_meta":{"k" : 1.0}}"#).unwrap(),
        format!(r#"{{"_meta":{{{ours},"k":1.0}},"a":1}}"#)
    );
    for none in [
        "[]",
        "1",
        r#"{"_meta":1}"#,
        r#"{"_meta":{},"_META":{}}"#,
        r#"{"a":1,"a":2}"#,
    ] {
        assert_eq!(text(none), None, "{none}");
    }
}

#[test]
fn a_server_cannot_speak_as_the_gate() {
    let forged = br#"{"_meta":{"dev.lychgate/decision":{"code":"EF-070"},"DEV.lychgate/Decision":1,"k":1},"a":[1, 2]}"#;
    assert_eq!(
        without_decision(forged),
        None,
        "case variants: readers would disagree"
    );
    let forged = br#"{"_meta":{"dev.lychgate/decision":{"code":"EF-070"},"k":1},"a":[1, 2]}"#;
    assert_eq!(
        without_decision(forged).unwrap().as_ref(),
        br#"{"_meta":{"k":1},"a":[1, 2]}"#
    );
    let marked = mark_result(forged, &Value::Null).unwrap();
    assert_eq!(
        marked,
        br#"{"_meta":{"dev.lychgate/decision":null,"k":1},"a":[1, 2]}"#
    );
    let plain = br#"{ "_meta":{"k":1}}"#;
    assert!(matches!(
        without_decision(plain),
        Some(std::borrow::Cow::Borrowed(_))
    ));
}

#[test]
fn a_subscriptions_tag_is_told_in_the_clients_id() {
    let params = br#"{"a": 1,"_meta":{"io.modelcontextprotocol/subscriptionId":41,"k":2}}"#;
    let known =
        |id: &RequestId| (*id == RequestId::Number(41)).then(|| RequestId::String("c1".into()));
    let told = retag_subscription(params, known).unwrap();
    assert_eq!(
        told.as_ref(),
        br#"{"a":1,"_meta":{"io.modelcontextprotocol/subscriptionId":"c1","k":2}}"#
    );
    assert_eq!(retag_subscription(params, |_| None), None);
    assert_eq!(retag_subscription(b"{ }", known).unwrap().as_ref(), b"{ }");
}

#[test]
fn a_servers_contradictory_messages_are_faults() {
    for bad in [
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"re\u0073ult":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"ſ":1,"S":2,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":""}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\r{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\r}",
        "[]",
        "\u{feff}{}",
        "npm WARN something",
    ] {
        assert!(from_server(bad.as_bytes()).is_err(), "{bad}");
    }
    let orphan = from_server(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#).unwrap();
    assert!(matches!(
        orphan,
        FromServer::Response {
            id: None,
            result: Err(_)
        }
    ));
}

#[test]
fn a_servers_batch_is_split_and_nesting_is_bounded() {
    let batch = br#"[{"jsonrpc":"2.0","id":1,"result":[1, 2]},{"jsonrpc":"2.0","id":0,"method":"roots/list"},3]"#;
    let FromServer::Batch(elements) = from_server(batch).unwrap() else {
        panic!()
    };
    assert!(elements[0].is_ok() && elements[1].is_ok() && elements[2].is_err());
    let deep = |depth: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    assert!(from_server(deep(255).as_bytes()).is_ok());
    assert_eq!(
        from_server(deep(256).as_bytes()).unwrap_err().kind,
        FaultKind::TooDeep
    );
    assert!(from_server("[".repeat(1_000_000).as_bytes()).is_err());
}

#[test]
fn result_facts_are_read_from_the_outermost_members_only() {
    let facts = |raw: &str| {
        result_facts(raw.as_bytes())
            .map(|facts| (facts.is_error, facts.kind))
            .ok()
    };
    assert_eq!(
        facts(r#"{"content":[{"isError":true}]}"#),
        Some((false, ResultKind::Complete))
    );
    assert_eq!(
        facts(r#"{"isError":true,"resultType":"complete"}"#),
        Some((true, ResultKind::Complete))
    );
    assert_eq!(
        facts(r#"{"resultType":"input_required"}"#),
        Some((false, ResultKind::InputRequired))
    );
    assert_eq!(
        facts(r#"{"resultType":"task"}"#),
        Some((false, ResultKind::Task))
    );
    assert_eq!(
        facts(r#"{"task":{"taskId":"a"}}"#),
        Some((false, ResultKind::Task))
    );
    assert_eq!(
        facts(r#"{"resultType":7}"#),
        Some((false, ResultKind::Other))
    );
    assert_eq!(facts(r#"{"isError":"true"}"#), None);
    assert_eq!(facts(r#"{"isError":false,"IsError":true}"#), None);
}

#[test]
fn a_denial_tells_a_constant_sentence_the_code_and_ids() {
    let act = ActId::from_bytes([1; 16]);
    let denial = Denial {
        act: Some(act),
        ticket: Some(TicketId::from_bytes([2; 16])),
        state: Some(State::Escalated),
        pointer: Some("/params/secret".into()),
        ..Denial::new(Code::EscalationRequired)
    };
    for (era, modern) in [(Era::Legacy, false), (Era::Modern, true)] {
        let bytes = denial_result(&RequestId::Number(0), &denial, era);
        let answer = parse(&bytes, &json::Limits::OBJECT).unwrap();
        let text = answer
            .pointer("/result/content/0/text")
            .unwrap()
            .as_str()
            .unwrap();
        let constant = format!("EF-070 ESCALATION_REQUIRED: {}", denial.code.text());
        assert_eq!(text, constant);
        let told = answer.pointer("/result/_meta/dev.lychgate~1decision/act_id");
        assert_eq!(told.unwrap().as_str(), Some(act.to_string().as_str()));
        assert!(
            !String::from_utf8(bytes).unwrap().contains("secret"),
            "only EF-001 and EF-012 name a place"
        );
        assert_eq!(answer.pointer("/result/resultType").is_some(), modern);
        let decision = answer
            .pointer("/result/_meta/dev.lychgate~1decision")
            .unwrap();
        assert_eq!(decision.get("code").unwrap().as_str(), Some("EF-070"));
        assert_eq!(decision.get("state").unwrap().as_str(), Some("escalated"));
        assert!(answer.pointer("/result/structuredContent").is_none());
    }
}

#[test]
fn our_errors_stay_outside_the_reserved_range() {
    for &code in Code::ALL {
        assert!((1000..2000).contains(&error_code(code)), "{code}");
    }
    let answer = denial_answer(
        &RequestId::Number(3),
        &ActingMethod::ResourcesRead,
        &Denial::new(Code::ToolNotAuthorized),
        Era::Legacy,
    );
    let answer = parse(&answer, &json::Limits::OBJECT).unwrap();
    assert_eq!(answer.pointer("/error/code").unwrap().as_u64(), Some(1015));
    let unknown = indeterminate_result(
        &RequestId::Number(3),
        &ActId::from_bytes([1; 16]),
        Era::Legacy,
    );
    let unknown = String::from_utf8(unknown).unwrap();
    assert!(
        unknown.contains("Do not repeat it") && unknown.contains("\"state\":\"indeterminate\"")
    );
}

#[test]
fn display_a_pointer_with_control_characters_is_escaped_and_bounded() {
    let denial = Denial {
        pointer: Some(format!("/params/\u{1b}[2K\u{202e}{}", "x".repeat(10_000))),
        ..Denial::new(Code::MalformedAct)
    };
    let text = denial.text();
    assert!(
        !text.contains(['\u{1b}', '\u{202e}']) && text.len() < 1000,
        "{text}"
    );
}

#[test]
fn listings_give_definitions_and_keep_the_servers_bytes() {
    let raw = br#"{"tools":[ {"name":"a","inputSchema":{"type" : "object"}},{"name":"b"},{"name":"a"},
        {"name":"r\u0435ad"},{"name":"d","x":1,"x":2},{"title":"none"}],"nextCursor":"c","ttlMs":0.50}"#;
    let page = page(raw).unwrap();
    assert_eq!(page.next_cursor.as_deref(), Some("c"));
    let good: Vec<_> = page
        .tools
        .iter()
        .filter_map(|tool| tool.definition.as_ref().ok())
        .collect();
    assert_eq!(
        good.iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "b", "a"]
    );
    assert_eq!(duplicates(good.iter().copied()), ["a"]);
    assert_eq!(
        good[0].digest,
        Digest::sha256(br#"{"inputSchema":{"type":"object"},"name":"a"}"#)
    );
    assert_eq!(
        page.tools[4].definition.as_ref().unwrap_err().name,
        None,
        "doubled keys: no name is sure"
    );
    let kept = page.keeping(|tool| tool.digest == good[0].digest);
    let expected = br#"{"tools":[{"name":"a","inputSchema":{"type" : "object"}}],"nextCursor":"c","ttlMs":0.50}"#;
    assert_eq!(kept, expected);
    for bad in [
        "{}",
        "[]",
        r#"{"tools":{}}"#,
        r#"{"tools":[],"Tools":[]}"#,
        r#"{"tools":[],"nextCursor":1}"#,
    ] {
        assert!(listing::page(bad.as_bytes()).is_err(), "{bad}");
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-(1_i64 << 53)..(1 << 53)).prop_map(Into::into),
        any::<f64>().prop_filter_map("finite", |x| serde_json::Number::from_f64(x)
            .map(Into::into)),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn well_formedness_agrees_with_an_independent_reader(
        json in any_json(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"{}[]\",:0123eE+-.tfn\\u \x01".to_vec())), 0..3),
    ) {
        let mut bytes = json.to_string().into_bytes();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(text) = String::from_utf8(bytes) {
            let other = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(well_formed(text.as_bytes(), 1000).is_ok(), other, "{}", text);
        }
    }

    #[test]
    fn the_scanner_never_panics_and_its_spans_lie_in_the_text(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = (items(&bytes, 8, 8), well_formed(&bytes, 8));
        if let Ok(envelope) = scan(&bytes, 8) {
            for member in envelope.members() {
                prop_assert!(well_formed(member.raw, 8).is_ok());
                prop_assert!(bytes.windows(member.raw.len()).any(|window| window == member.raw));
            }
        }
    }

    #[test]
    fn any_result_is_spliced_byte_true(json in any_json(), id in any::<i32>()) {
        let raw = json.to_string();
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{raw}}}"#);
        let FromServer::Response { result, .. } = from_server(line.as_bytes()).unwrap() else { panic!() };
        prop_assert_eq!(result.unwrap(), raw.as_bytes());
        prop_assert_eq!(response_bytes(&RequestId::Number(id.into()), result), line.into_bytes());
    }

    #[test]
    fn a_rebuilt_request_parses_strictly_and_its_arguments_hash_to_the_digest(
        members in prop::collection::vec((any::<String>(), any_json()), 0..5),
        id in 0_u64..1 << 53,
    ) {
        let arguments = serde_json::Value::Object(members.into_iter().collect());
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#);
        // What strict JSON does not take is refused elsewhere.
        if let Ok(FromClient::Request { body: Body::Acts(made), .. }) = from_client(line.as_bytes(), &Limits::default()) {
            let bytes = request_bytes(id, &made, Some(("k", Value::from("v"))));
            let again = parse(&bytes, &json::Limits { case: json::CaseRule::Allow, ..json::Limits::OBJECT }).unwrap();
            prop_assert_eq!(jcs::to_bytes(&again), bytes.clone(), "already canonical");
            let sent = again.pointer("/params/arguments").unwrap();
            prop_assert_eq!(Digest::sha256(&jcs::to_bytes(sent)), made.digest);
            let raw = scan(scan(&bytes, 99).unwrap().get("params").unwrap(), 99).unwrap().get("arguments").unwrap();
            prop_assert_eq!(raw, made.canonical.as_slice(), "what is hashed is what is sent");
        }
    }
}
