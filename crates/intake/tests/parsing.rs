//! CASES "Parsing", line by line, at the door where a client's bytes come in.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use lychgate_core::json::{self, Value, parse};
use lychgate_core::{Code, Digest};
use lychgate_intake::answer::fault_answer;
use lychgate_intake::*;

fn read(text: impl AsRef<[u8]>) -> Result<FromClient, ClientFault> {
    from_client(text.as_ref(), &Limits::default())
}

fn call(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
    )
}

fn proposal(text: impl AsRef<[u8]>) -> Proposal {
    match read(text).unwrap() {
        FromClient::Request {
            body: Body::Acts(proposal),
            ..
        } => *proposal,
        other => panic!("{other:?}"),
    }
}

/// The fault of a message, which is EF-001 and can be answered under the request's id.
fn refused(text: impl AsRef<[u8]>) -> ClientFault {
    let fault = read(text).unwrap_err();
    assert_eq!(fault.code, Code::MalformedAct);
    assert_eq!(fault.id, Some(RequestId::Number(1)));
    let answer = parse(
        &fault_answer(&fault, &Denial::new(fault.code)).unwrap(),
        &json::Limits::OBJECT,
    )
    .unwrap();
    assert_eq!(answer.get("id").and_then(Value::as_u64), Some(1));
    fault
}

/// A message nobody can be answered about.
fn dropped(text: impl AsRef<[u8]>) -> ClientFault {
    let fault = read(text).unwrap_err();
    assert_eq!(fault.id, None, "{fault}");
    assert_eq!(fault_answer(&fault, &Denial::new(fault.code)), None);
    fault
}

#[test]
fn parsing_duplicate_keys_in_arguments_also_through_escapes() {
    let fault = refused(call(r#"{"path":"/a","path":"/b"}"#));
    assert_eq!(fault.pointer, "/params/arguments/path");
    refused(call(r#"{"path":"/a","\u0070ath":"/b"}"#));
    refused(call(r#"{"deep":[{"x":{"k":1,"k":1}}]}"#));
}

#[test]
fn parsing_duplicate_keys_in_the_envelope() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/call"}"#,
    ] {
        dropped(text);
    }
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#);
}

#[test]
fn parsing_keys_that_differ_only_in_case_in_the_envelope() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#,
    ] {
        dropped(text);
    }
    for params in [
        r#"{"name":"a","Name":"b"}"#,
        r#"{"name":"a","arguments":{"x":1},"Arguments":{"x":2}}"#,
        r#"{"name":"a","_meta":{"progressToken":1,"ProgressToken":2}}"#,
        r#"{"name":"a","arguments":{"x":1,"X":2},"inputResponses":{"a":{"b":1,"B":2}}}"#,
    ] {
        refused(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#
        ));
    }
    // A variant alone is simply not known.
    refused(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"},"Method":"x"}"#
            .replace("Method", "Extra"),
    );
}

#[test]
fn parsing_case_variants_in_arguments_are_marked_for_the_catalogue_and_nowhere_else_allowed() {
    let marked = proposal(call(r#"{"path":"a","Path":"b"}"#));
    assert!(marked.arguments_case_variants);
    assert_eq!(marked.canonical, br#"{"Path":"b","path":"a"}"#);
    assert!(!proposal(call(r#"{"Path":"b"}"#)).arguments_case_variants);
    // A duplicate is never forgiven because of a variant beside it.
    refused(call(r#"{"path":"a","Path":"b","path":"c"}"#));
    refused(
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"arguments":{"a":1,"A":2}}}"#,
    );
}

#[test]
fn parsing_unpaired_surrogates_and_raw_invalid_bytes() {
    refused(call(r#"{"x":"\ud800"}"#));
    refused(call(r#"{"x":"\udc00\ud800"}"#));
    let mut bytes = call(r#"{"x":"?"}"#).into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'?').unwrap();
    bytes[at] = 0xFF;
    dropped(&bytes);
}

#[test]
fn parsing_numbers_no_double_denotes() {
    for number in [
        "9007199254740993",
        "18446744073709551616",
        "1e400",
        "1e-400",
        "0.1000000000000000055",
    ] {
        let fault = refused(call(&format!(r#"{{"n":[{number}]}}"#)));
        assert_eq!(fault.pointer, "/params/arguments/n/0", "{number}");
    }
    for token in ["NaN", "Infinity", "-Infinity", "+1", "01", "0x1"] {
        dropped(call(&format!(r#"{{"n":{token}}}"#)));
    }
    assert_eq!(
        proposal(call(r#"{"n":[1.0,1e2,1e+21]}"#)).canonical,
        br#"{"n":[1,100,1e+21]}"#
    );
}

#[test]
fn parsing_bom_trailing_data_and_two_objects_glued_together() {
    dropped(format!("\u{feff}{}", call("{}")));
    dropped(call("{}") + "x");
    dropped(call("{}") + &call("{}"));
    dropped(call("{}{}"));
    dropped(call("{} {\"x\":1}"));
}

#[test]
fn parsing_ten_thousand_deep_even_in_an_ignored_field() {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    refused(call(&format!(r#"{{"x":{deep}}}"#)));
    refused(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{{"x":{deep}}}}}}}"#
    ));
    refused(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","ignored":{deep}}}"#
    ));
    dropped("[".repeat(10_000));
    dropped(&deep);
}

#[test]
fn parsing_depth_of_arguments_is_64_alone_and_in_a_batch() {
    let nested = |depth: usize| {
        call(&format!(
            r#"{}1{}"#,
            r#"{"a":"#.repeat(depth),
            "}".repeat(depth)
        ))
    };
    assert!(read(nested(64)).is_ok());
    refused(nested(65));
    let FromClient::Batch(elements) = read(format!("[{}]", nested(64))).unwrap() else {
        panic!()
    };
    assert!(elements[0].is_ok());
}

#[test]
fn parsing_a_batch_that_carries_a_call_is_split_and_each_element_stands_alone() {
    let text = format!(
        r#"[{},{{"jsonrpc":"2.0","id":2,"method":"ping"}},7,[],{}]"#,
        call(r#"{"x":1}"#),
        call(r#"{"x":1,"x":2}"#)
    );
    let FromClient::Batch(elements) = read(text).unwrap() else {
        panic!()
    };
    assert_eq!(elements.len(), 5);
    assert!(matches!(
        &elements[0],
        Ok(FromClient::Request {
            body: Body::Acts(_),
            ..
        })
    ));
    assert!(matches!(
        &elements[1],
        Ok(FromClient::Request {
            body: Body::Passes { .. },
            ..
        })
    ));
    assert!(
        elements[2].is_err() && elements[3].is_err(),
        "no message, no nested batch"
    );
    assert_eq!(
        elements[4].as_ref().unwrap_err().id,
        Some(RequestId::Number(1))
    );
}

#[test]
fn parsing_a_batch_empty_or_of_more_than_64_is_refused_whole() {
    dropped("[]");
    let many = |count: usize| format!("[{}]", vec![call("{}"); count].join(","));
    assert!(read(many(64)).is_ok());
    dropped(many(65));
}

#[test]
fn parsing_a_call_before_any_handshake_is_an_act_like_any_other() {
    assert_eq!(proposal(call("{}")).era(), Era::Legacy);
}

#[test]
fn parsing_a_method_spelled_unusually_never_acts_nor_passes() {
    for method in [
        "Tools/Call",
        "tools/call ",
        "tools\\u002fCall",
        "\\u0000tools/call",
        "tools/c\\u0430ll",
    ] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"t"}}}}"#);
        let FromClient::Request { body, .. } = read(text).unwrap() else {
            panic!()
        };
        assert!(matches!(body, Body::Refused { .. }), "{method}");
    }
    // An escape is only a spelling of the bytes: the method is the same, and so is what is done with it.
    proposal(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"t"}}"#);
}

#[test]
fn parsing_contradictory_messages() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"},"result":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#,
    ] {
        refused(text);
    }
    for text in [
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":3}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        "null",
        "\"tools/call\"",
        "",
        "  ",
    ] {
        dropped(text);
    }
}

#[test]
fn an_answer_to_the_server_that_is_not_taken_names_who_waits() {
    let fault = dropped(r#"{"jsonrpc":"2.0","id":3,"result":{"n":1e400}}"#);
    assert_eq!(fault.answers, Some(RequestId::Number(3)));
}

#[test]
fn unknown_params_members_are_refused_with_their_place() {
    for (member, place) in [
        (r#""task":{"ttl":1}"#, "/params/task"),
        (r#""x/y~":1"#, "/params/x~1y~0"),
        (r#""uri":"file:///etc/passwd""#, "/params/uri"),
    ] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{member}}}}}"#
        );
        assert_eq!(refused(text).pointer, place);
    }
    for (method, params) in [
        ("resources/read", r#"{"uri":"a","arguments":{}}"#),
        ("prompts/get", r#"{"name":"a","uri":"b"}"#),
        ("tasks/cancel", r#"{"taskId":"a","inputResponses":{}}"#),
        ("tasks/update", r#"{"taskId":"a","requestState":"s"}"#),
    ] {
        refused(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#
        ));
    }
}

#[test]
fn arguments_must_be_an_object_and_absent_ones_are_empty() {
    for arguments in ["null", "[]", "\"{}\"", "1"] {
        assert_eq!(refused(call(arguments)).pointer, "/params/arguments");
    }
    let absent =
        proposal(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#);
    assert_eq!(absent.canonical, b"{}");
    assert_eq!(absent.digest, Digest::sha256(b"{}"));
}

#[test]
fn names_with_look_alike_letters_or_anything_but_the_profiles_letters() {
    for name in [
        "re\u{430}d",
        "read file",
        "read\\n",
        "",
        "read:file",
        "r\u{200b}ead",
        "ｒead",
        "a\\\\b",
        "read\\u0000",
    ] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#
        );
        assert_eq!(refused(text).pointer, "/params/name", "{name:?}");
    }
    let long = |count: usize| call("{}").replace("\"t\"", &format!("\"{}\"", "n".repeat(count)));
    assert_eq!(proposal(long(128)).function.len(), 128);
    refused(long(129));
    assert_eq!(
        proposal(call("{}").replace("\"t\"", "\"a/B_9-x.y\"")).function,
        "a/B_9-x.y"
    );
}

#[test]
fn resources_arguments_are_bounded_as_emitted_and_in_canonical_form() {
    let limits = Limits {
        message_bytes: 4096,
        arguments_bytes: 100,
    };
    let size = |text: String| from_client(text.as_bytes(), &limits);
    assert!(size(call(&format!(r#"{{"x":"{}"}}"#, "a".repeat(92)))).is_ok());
    assert!(size(call(&format!(r#"{{"x":"{}"}}"#, "a".repeat(93)))).is_err());
    let spaced = size(call(&format!(r#"{{{}}}"#, " ".repeat(99)))).unwrap_err();
    assert_eq!(
        (spaced.pointer.as_str(), spaced.id),
        ("/params/arguments", Some(RequestId::Number(1)))
    );
    // Short as emitted, long once canonical: 1e20 is written with 21 digits.
    assert!(size(call(&format!(r#"{{"x":[{}]}}"#, ["1e20"; 10].join(",")))).is_err());
    assert!(size(call(&format!(r#"{{"x":"{}"}}"#, "a".repeat(5000)))).is_err());
}

#[test]
fn other_acting_methods_have_their_own_name_as_function_and_their_params_as_arguments() {
    for (method, params, canonical) in [
        (
            "resources/read",
            r#"{"uri":"file:///a","_meta":{}}"#,
            r#"{"uri":"file:///a"}"#,
        ),
        (
            "prompts/get",
            r#"{"name":"p q"}"#,
            r#"{"arguments":{},"name":"p q"}"#,
        ),
        ("tasks/cancel", r#"{"taskId":"t1"}"#, r#"{"taskId":"t1"}"#),
        (
            "tasks/update",
            r#"{"taskId":"t1","inputResponses":{"a":{}}}"#,
            r#"{"inputResponses":{"a":{}},"taskId":"t1"}"#,
        ),
    ] {
        let made = proposal(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#
        ));
        assert_eq!(made.function, method);
        assert_eq!(
            String::from_utf8(made.canonical.clone()).unwrap(),
            canonical
        );
        let line = String::from_utf8(request_bytes(5, &made, None)).unwrap();
        assert_eq!(
            line,
            format!(r#"{{"id":5,"jsonrpc":"2.0","method":"{method}","params":{canonical}}}"#)
        );
    }
}

#[test]
fn a_listed_method_is_proposed_from_what_was_refused() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"vendor/run","params":{"a":1,"_meta":{"x":1}}}"#;
    let FromClient::Request {
        body: Body::Refused { method, params },
        ..
    } = read(text).unwrap()
    else {
        panic!()
    };
    let made = propose(ActingMethod::Listed(method), params, &Limits::default()).unwrap();
    assert_eq!(
        (made.function.as_str(), made.canonical.as_slice()),
        ("vendor/run", br#"{"a":1}"#.as_slice())
    );
}

#[test]
fn a_multi_round_retry_is_a_continuation_with_its_own_digest() {
    let text = |state: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"b":1}},
            "inputResponses":{{"q":{{"action":"accept"}}}},"requestState":"{state}",
            "_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","evil":"payload"}}}}}}"#
        )
    };
    let made = proposal(text("s1"));
    let continuation = made.continuation.clone().unwrap();
    assert_ne!(
        continuation.digest,
        proposal(text("s2")).continuation.unwrap().digest
    );
    assert_eq!(made.era(), Era::Modern);
    let line = String::from_utf8(request_bytes(9, &made, None)).unwrap();
    assert_eq!(
        line,
        concat!(
            r#"{"id":9,"jsonrpc":"2.0","method":"tools/call","params":{"#,
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"arguments":{"b":1},"#,
            r#""inputResponses":{"q":{"action":"accept"}},"name":"t","requestState":"s1"}}"#
        )
    );
    assert!(!line.contains("payload"), "nothing unhashed reaches a tool");
}

#[test]
fn a_fault_is_answered_in_the_requests_own_era_and_form() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","x":1,
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let fault = refused(text);
    assert_eq!(
        (fault.era, &fault.method),
        (Era::Modern, &Some(ActingMethod::ToolsCall))
    );
    let answer = parse(
        &fault_answer(&fault, &Denial::new(fault.code)).unwrap(),
        &json::Limits::OBJECT,
    )
    .unwrap();
    assert_eq!(
        answer.pointer("/result/isError").and_then(Value::as_bool),
        Some(true)
    );
    assert_eq!(
        answer.pointer("/result/resultType").and_then(Value::as_str),
        Some("complete")
    );
    let place = answer
        .pointer("/result/_meta/dev.lychgate~1decision/pointer")
        .unwrap();
    assert_eq!(place.as_str(), Some("/params/x"));
    let other = refused(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{}}"#);
    let answer = parse(
        &fault_answer(&other, &Denial::new(other.code)).unwrap(),
        &json::Limits::OBJECT,
    )
    .unwrap();
    assert_eq!(
        answer.pointer("/error/code").and_then(Value::as_u64),
        Some(1001)
    );
}

#[test]
fn notifications_by_exact_name() {
    let told = |text: &str| match read(text).unwrap() {
        FromClient::Notification(told) => told,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        told(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        ClientNotification::Initialized
    );
    assert_eq!(
        told(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6,"reason":"x"}}"#
        ),
        ClientNotification::Cancelled {
            request: RequestId::Number(6),
            reason: Some("x".into())
        }
    );
    assert_eq!(
        told(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#),
        ClientNotification::RootsListChanged
    );
    assert!(matches!(
        told(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
        ClientNotification::Unknown { .. }
    ));
}
