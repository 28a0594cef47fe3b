//! What the strict parser refuses: one test for each kind of fault in CASES "Parsing", and for each bound.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lychgate_core::digest::{Algorithm, arguments_digest};
use lychgate_core::jcs;
use lychgate_core::json::{CaseRule, Fault, FaultKind, Limits, parse};

fn fault(text: impl AsRef<[u8]>) -> Fault {
    parse(text.as_ref(), &Limits::ARGUMENTS).expect_err("taken")
}

fn kind(text: impl AsRef<[u8]>) -> FaultKind {
    fault(text).kind
}

fn canonical(text: &str) -> String {
    let value = parse(text.as_bytes(), &Limits::ARGUMENTS)
        .unwrap_or_else(|fault| panic!("{text}: {fault}"));
    String::from_utf8(jcs::to_bytes(&value)).unwrap()
}

#[test]
fn duplicate_keys_are_refused_with_their_place() {
    let fault = fault(r#"{"a":{"b":1,"c":2,"b":3}}"#);
    assert_eq!(fault.kind, FaultKind::DuplicateKey);
    assert_eq!(fault.pointer, "/a/b");
    assert_eq!(fault.offset, 18);
    assert_eq!(fault.to_string(), "duplicate key at `/a/b`, byte 18");
    assert_eq!(kind(r#"{"":1,"":1}"#), FaultKind::DuplicateKey);
}

#[test]
fn duplicate_keys_through_escapes_are_refused() {
    assert_eq!(kind(r#"{"a":1,"\u0061":2}"#), FaultKind::DuplicateKey);
    assert_eq!(kind(r#"{"\u00e9":1,"é":2}"#), FaultKind::DuplicateKey);
    assert_eq!(
        kind(r#"{"😀":1,"\ud83d\ude00":2}"#),
        FaultKind::DuplicateKey
    );
    assert_eq!(kind(r#"{"\/":1,"/":2}"#), FaultKind::DuplicateKey);
    assert_eq!(
        canonical(r#"{"é":1,"e\u0301":2}"#),
        "{\"e\u{301}\":2,\"é\":1}",
        "no normalisation"
    );
}

#[test]
fn keys_that_differ_only_in_case_are_refused_unless_allowed() {
    let one_seen_by_some = [
        r#"{"Path":1,"path":2}"#,
        r#"{"É":1,"é":2}"#,
        r#"{"\u0041":1,"a":2}"#,
        r#"{"\u212A":1,"k":2}"#,
        r#"{"\u017F":1,"S":2}"#,
        r#"{"\u0130d":1,"id":2}"#,
        r#"{"σ":1,"ς":2}"#,
        r#"[{"x":{"b":0,"A":1,"c":0,"a":2}}]"#,
    ];
    let allowing = Limits {
        case: CaseRule::Allow,
        ..Limits::ARGUMENTS
    };
    for text in one_seen_by_some {
        assert_eq!(kind(text), FaultKind::CaseDuplicateKey, "{text}");
        assert_eq!(
            parse(text.as_bytes(), &Limits::OBJECT).unwrap_err().kind,
            FaultKind::CaseDuplicateKey
        );
        parse(text.as_bytes(), &allowing).unwrap();
        parse(text.as_bytes(), &Limits::CANON).unwrap();
    }
    let named = fault(one_seen_by_some[7]);
    assert_eq!((named.pointer.as_str(), named.offset), ("/0/x/a", 25));
    canonical(r#"{"Path":{"path":1},"b":{"Path":1}}"#);
    canonical(r#"{"ß":1,"ss":2}"#);
}

#[test]
fn unpaired_surrogates_are_refused() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\ud800""#,
        r#""\ud800x""#,
        r#""\udc00\ud800""#,
        r#""\ud800\n""#,
    ] {
        assert_eq!(kind(text), FaultKind::UnpairedSurrogate, "{text}");
        assert_eq!(
            kind(format!("{{{text}:1}}")),
            FaultKind::UnpairedSurrogate,
            "{text}"
        );
    }
    assert_eq!(kind(b"\"\xED\xA0\x80\""), FaultKind::InvalidUtf8);
}

#[test]
fn raw_invalid_bytes_are_refused() {
    for bytes in [
        &b"\"\xFF\""[..],
        b"\"\xC0\xAF\"",
        b"\"\xE2\x82\"",
        b"\xFE\xFF\x00{",
        b"\"\xF5\x80\x80\x80\"",
    ] {
        assert_eq!(kind(bytes), FaultKind::InvalidUtf8);
    }
    assert_eq!(fault(b"[1,\"\xFF\"]").offset, 4);
}

#[test]
fn numbers_no_double_denotes_as_written_are_refused() {
    let refused = [
        "9007199254740993",
        "-9007199254740993",
        "18446744073709551616",
        "18446744073709551615",
        "1e400",
        "-1e400",
        "1e-400",
        "9007199254740992.5",
        "0.1000000000000000055",
        "123456789012345678901234567890",
        "1e999999999999999999999999999999",
        "1e-999999999999999999999999999999",
        "0.99999999999999999",
        "1.0000000000000001e17",
    ];
    for token in refused {
        assert_eq!(kind(token), FaultKind::NumberNotExact, "{token}");
    }
    let place = fault(r#"{"a":[0,{"b/c~":1e400}]}"#);
    assert_eq!((place.pointer.as_str(), place.offset), ("/a/1/b~1c~0", 16));
}

#[test]
fn numbers_that_are_exact_or_stay_fractions_are_taken() {
    let taken = [
        ("1.0", "1"),
        ("1e2", "100"),
        ("0.1", "0.1"),
        ("1E30", "1e+30"),
        ("-0", "0"),
        ("-0.0e-5", "0"),
        ("0e99999999999999999999", "0"),
        ("9007199254740992", "9007199254740992"),
        ("18446744073709552000", "18446744073709552000"),
        ("333333333.33333329", "333333333.3333333"),
        ("0.10000000000000001", "0.1"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157E+308", "1.7976931348623157e+308"),
        ("100000000000000000000000e-22", "10"),
        ("0.000000000000000000000000000000000001e36", "1"),
    ];
    for (token, written) in taken {
        assert_eq!(canonical(token), written, "{token}");
    }
    let padded = format!("1{}e-100000", "0".repeat(100_000));
    assert_eq!(canonical(&padded), "1");
    assert_eq!(canonical(&format!("0.5{}", "0".repeat(100_000))), "0.5");
}

#[test]
fn nan_infinity_and_other_number_words_are_refused() {
    let refused = [
        "NaN",
        "Infinity",
        "-Infinity",
        "-NaN",
        "+1",
        "01",
        "-01",
        ".5",
        "1.e1",
        "0x10",
        "1_000",
        "1e+-1",
        "--1",
    ];
    for token in refused {
        assert_eq!(kind(token), FaultKind::NumberSyntax, "{token}");
        assert_eq!(
            kind(format!("[{token}]")),
            FaultKind::NumberSyntax,
            "{token}"
        );
    }
    for token in ["-", "1.", "1e", "1e-"] {
        assert_eq!(kind(token), FaultKind::Truncated, "{token}");
    }
}

#[test]
fn byte_order_marks_are_refused() {
    assert_eq!(kind("\u{FEFF}{}"), FaultKind::Bom);
    assert_eq!(kind("{\u{FEFF}}"), FaultKind::Syntax);
}

#[test]
fn trailing_data_and_glued_objects_are_refused_not_repaired() {
    for text in [
        "{}{}",
        "{} {}",
        r#"{"a":1}{"b":2}"#,
        "1 2",
        "{},",
        "null x",
        "{}\u{0}",
        "[]]",
        "{}//",
        "{}\u{a0}",
    ] {
        assert_eq!(kind(text), FaultKind::Trailing, "{text}");
    }
    assert_eq!(fault("{} {}").offset, 3);
    for text in ["", " ", "\n\t\r "] {
        assert_eq!(kind(text), FaultKind::Empty, "{text:?}");
    }
}

#[test]
fn what_some_parsers_repair_is_refused() {
    for text in [
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "[1 2]",
        "{\"a\" 1}",
        "/**/1",
        "tru3",
        "True",
        "[,1]",
        "\u{c}1",
    ] {
        assert_eq!(kind(text), FaultKind::Syntax, "{text}");
    }
    for text in ["\"a\nb\"", "\"a\u{0}\"", "\"\t\""] {
        assert_eq!(kind(text), FaultKind::ControlCharacter, "{text:?}");
    }
    for text in [
        r#""\x41""#,
        r#""\'""#,
        r#""\u12g4""#,
        r#""\U0041""#,
        r#""\u+123""#,
    ] {
        assert_eq!(kind(text), FaultKind::Escape, "{text}");
    }
}

#[test]
fn depth_is_bounded_even_in_a_field_nobody_reads() {
    let deep = "[".repeat(10_000);
    assert_eq!(kind(&deep), FaultKind::TooDeep);
    assert_eq!(
        kind(format!(r#"{{"name":"x","ignored":{deep}"#)),
        FaultKind::TooDeep
    );
    assert_eq!(kind(r#"{"a":"#.repeat(10_000)), FaultKind::TooDeep);
    let unbounded = Limits {
        max_depth: usize::MAX,
        ..Limits::CANON
    };
    assert_eq!(
        parse(deep.as_bytes(), &unbounded).unwrap_err().kind,
        FaultKind::TooDeep
    );
    canonical(&format!("{}{}", "[".repeat(64), "]".repeat(64)));
    assert_eq!(
        kind(format!("{}{}", "[".repeat(65), "]".repeat(65))),
        FaultKind::TooDeep
    );
}

#[test]
fn size_is_bounded() {
    let text = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    canonical(&text);
    let larger = fault(format!("{text} "));
    assert_eq!((larger.kind, larger.offset), (FaultKind::TooLarge, 1 << 20));
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "measures real time, to notice a square"
)]
fn wide_objects_and_long_strings_cost_no_square() {
    let members = (0..70_000)
        .rev()
        .map(|index| format!(r#""K{index:06}":0"#))
        .collect::<Vec<_>>()
        .join(",");
    let started = std::time::Instant::now();
    canonical(&format!("{{{members}}}"));
    canonical(&format!("\"{}\"", "\\n".repeat(500_000)));
    canonical(&format!("[{}0]", "0,".repeat(500_000)));
    // A square of any of these would take minutes.
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn messages_carry_neither_values_nor_control_characters() {
    let fault = fault("{\"\\u001b[2J\\u202e\":{\"a\":tru}}");
    let message = fault.to_string();
    assert!(
        message.chars().all(|letter| (' '..='~').contains(&letter)),
        "{message:?}"
    );
    let long = format!(r#"{{"{}":x}}"#, "k".repeat(10_000));
    assert!(self::fault(long).to_string().len() < 300);
}

#[test]
fn absent_arguments_are_digested_as_an_empty_object() {
    let empty = parse(b" { } ", &Limits::ARGUMENTS).unwrap();
    for algorithm in [Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512] {
        assert_eq!(
            arguments_digest(algorithm, None),
            arguments_digest(algorithm, Some(&empty))
        );
    }
    let text = arguments_digest(Algorithm::Sha256, None).to_base64url();
    assert_eq!(text, "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o");
}
