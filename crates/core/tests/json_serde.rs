//! Typed objects to values and back: exact, closed, and precise about what does not fit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use lychgate_core::digest::{Algorithm, Digest, DigestError, b64};
use lychgate_core::json::{
    Limits, Number, Object, Value, from_value, parse, to_canonical, to_value,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    name: String,
    count: u64,
    offset: i64,
    share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    inner: Vec<Inner>,
    kinds: Vec<Kind>,
    tagged: Tagged,
    free: Value,
    labels: BTreeMap<Id, bool>,
    pair: (u8, char),
    digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    #[serde(rename = "a/b")]
    slashed: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Id(String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Plain,
    Wrapped(u32),
    Both(bool, Id),
    Named { size: u16 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Tagged {
    File { path: String, bytes: u64 },
}

fn whole() -> Whole {
    let mut free = Object::new();
    free.insert(
        "z".into(),
        Value::Array(vec![
            Value::Null,
            Value::Number(Number::from_f64(0.5).unwrap()),
        ]),
    );
    free.insert("a".into(), Value::Number(Number::from_f64(1e300).unwrap()));
    Whole {
        name: "n".into(),
        count: 1 << 53,
        offset: -(1 << 53),
        share: 0.25,
        note: None,
        inner: vec![Inner { slashed: 7 }],
        kinds: vec![
            Kind::Plain,
            Kind::Wrapped(3),
            Kind::Both(true, Id("x".into())),
            Kind::Named { size: 9 },
        ],
        tagged: Tagged::File {
            path: "/p".into(),
            bytes: 5,
        },
        free: Value::Object(free),
        labels: BTreeMap::from([(Id("l".into()), true)]),
        pair: (1, 'é'),
        digest: Digest::sha256(b""),
    }
}

#[test]
fn typed_objects_survive_the_way_there_and_back() {
    let value = to_value(&whole()).unwrap();
    assert_eq!(from_value::<Whole>(&value).unwrap(), whole());
    let bytes = to_canonical(&whole()).unwrap();
    assert_eq!(parse(&bytes, &Limits::OBJECT).unwrap(), value);
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.starts_with(r#"{"count":9007199254740992,"digest":{"algorithm":"SHA-256","value":"#),
        "{text}"
    );
    assert!(
        text.contains(
            r#""kinds":["plain",{"wrapped":3},{"both":[true,"x"]},{"named":{"size":9}}]"#
        ),
        "{text}"
    );
    assert!(
        text.contains(r#""tagged":{"bytes":5,"path":"/p","type":"file"}"#),
        "{text}"
    );
    assert!(!text.contains("note"));
    assert_eq!(from_value::<Value>(&value).unwrap(), value);
    assert_eq!(to_value(&value).unwrap(), value);
    assert_eq!(
        serde_json::to_value(whole()).unwrap(),
        serde_json::to_value(&value).unwrap()
    );
}

/// The value of `whole` with the JSON text put at a place.
fn with(place: &[&str], text: &str) -> Value {
    let mut value = to_value(&whole()).unwrap();
    let mut at = &mut value;
    let (last, path) = place.split_last().unwrap();
    for token in path {
        at = match at {
            Value::Object(object) => object.get_mut(token).unwrap(),
            Value::Array(items) => &mut items[token.parse::<usize>().unwrap()],
            _ => panic!("no such place"),
        };
    }
    let put = parse(text.as_bytes(), &Limits::CANON).unwrap();
    match at {
        Value::Object(object) => drop(object.insert((*last).to_owned(), put)),
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = put,
        _ => panic!("no such place"),
    }
    value
}

#[test]
fn what_does_not_fit_is_named_by_place_and_kind_never_by_value() {
    let cases = [
        (
            &["more"][..],
            "1",
            "/more",
            "member `more` is not known here",
        ),
        (
            &["inner", "0", "extra~"],
            "1",
            "/inner/0/extra~0",
            "member `extra~` is not known here",
        ),
        (
            &["tagged", "extra"],
            "1",
            "/tagged",
            "member `extra` is not known here",
        ),
        (
            &["inner", "0", "a/b"],
            "256",
            "/inner/0/a~1b",
            "must be a whole number from 0 in range, not this value of a whole number",
        ),
        (&["inner", "0"], "{}", "/inner/0", "member `a/b` is missing"),
        (
            &["name"],
            "91827364",
            "/name",
            "must be a string, not a whole number",
        ),
        (
            &["count"],
            "-1",
            "/count",
            "must be a whole number from 0 in range, not this value of a whole number",
        ),
        (
            &["count"],
            "\"secret\"",
            "/count",
            "must be a whole number from 0 in range, not a string",
        ),
        (
            &["count"],
            "1.5",
            "/count",
            "must be a whole number from 0 in range, not a number with a fraction or beyond 2^53",
        ),
        (
            &["count"],
            "1e17",
            "/count",
            "must be a whole number from 0 in range, not a number with a fraction or beyond 2^53",
        ),
        (
            &["kinds", "0"],
            "\"secret\"",
            "/kinds/0",
            "must be one of `plain`, `wrapped`, `both`, `named`",
        ),
        (
            &["kinds", "1", "wrapped"],
            "\"secret\"",
            "/kinds/1/wrapped",
            "must be a whole number from 0 in range, not a string",
        ),
        (
            &["kinds", "1", "second"],
            "1",
            "/kinds/1",
            "must be an object with exactly one member",
        ),
        (
            &["kinds", "2"],
            "{\"plain\":null}",
            "/kinds/2/plain",
            "must be a string here",
        ),
        (
            &["inner"],
            "{}",
            "/inner",
            "must be a sequence, not an object",
        ),
        (
            &["inner", "0"],
            "\"secret\"",
            "/inner/0",
            "must be an object, not a string",
        ),
        (
            &["digest", "value"],
            "\"c2VjcmV0\"",
            "/digest",
            "SHA-256 digest must have 32 bytes, not 6",
        ),
        (
            &["digest", "more"],
            "1",
            "/digest/more",
            "member `more` is not known here",
        ),
        (
            &["pair"],
            "[1,\"a\",3]",
            "/pair",
            "must be 2 elements in sequence, not 3 long",
        ),
    ];
    for (place, text, pointer, reason) in cases {
        let fault = from_value::<Whole>(&with(place, text)).expect_err(pointer);
        assert_eq!(
            (fault.pointer.as_str(), fault.reason.as_str()),
            (pointer, reason)
        );
        assert!(!fault.to_string().contains("secret") && !fault.to_string().contains("91827364"));
    }
    let shown = from_value::<Whole>(&with(&["count"], "-1"))
        .unwrap_err()
        .to_string();
    assert!(shown.ends_with(" at `/count`"), "{shown}");
}

#[test]
fn what_json_cannot_carry_exactly_is_not_written() {
    let fault = |value: Result<Value, _>| -> String {
        value
            .map_err(|fault: lychgate_core::json::ShapeFault| fault.to_string())
            .unwrap_err()
    };
    assert_eq!(
        fault(to_value(&((1_u64 << 53) + 1))),
        "whole number is beyond 2^53"
    );
    assert_eq!(fault(to_value(&i64::MIN)), "whole number is beyond 2^53");
    assert_eq!(fault(to_value(&u128::MAX)), "whole number is beyond 2^53");
    let nested = BTreeMap::from([("a", vec![0.5, f64::NAN])]);
    assert_eq!(fault(to_value(&nested)), "number is not finite at `/a/1`");
    assert_eq!(
        fault(to_value(&BTreeMap::from([(1, 2)]))),
        "member name must be a string"
    );
    assert_eq!(to_value(&-0.0).unwrap(), to_value(&0).unwrap());

    #[derive(Serialize)]
    struct Twice {
        #[serde(rename = "x")]
        one: u8,
        #[serde(flatten)]
        other: BTreeMap<&'static str, u8>,
    }
    let twice = Twice {
        one: 1,
        other: BTreeMap::from([("x", 2)]),
    };
    assert_eq!(fault(to_value(&twice)), "member occurs twice at `/x`");

    #[derive(Serialize)]
    struct Deep(Vec<Deep>);
    let deep = (0..1_000).fold(Deep(vec![]), |inner, _| Deep(vec![inner]));
    assert!(fault(to_value(&deep)).starts_with("nested deeper than allowed"));
}

#[test]
fn pointers_follow_rfc_6901() {
    let value = parse(br#"{"a/b":{"~":[10,{"":true}]},"01":5}"#, &Limits::OBJECT).unwrap();
    let ten = Some(&Value::Number(Number::from_u64(10).unwrap()));
    assert_eq!(value.pointer(""), Some(&value));
    assert_eq!(value.pointer("/a~1b/~0/0"), ten);
    assert_eq!(value.pointer("/a~1b/~0/1/"), Some(&Value::Bool(true)));
    assert_eq!(value.pointer("/01").and_then(Value::as_u64), Some(5));
    for nothing in [
        "a",
        "/",
        "/a~1b/~0/00",
        "/a~1b/~0/+0",
        "/a~1b/~0/-",
        "/a~1b/~0/2",
        "/a~1b/~/0",
        "/a~1b/~2",
        "/01/x",
    ] {
        assert_eq!(value.pointer(nothing), None, "{nothing}");
    }
}

#[test]
fn an_object_stays_sorted_and_unique_under_editing() {
    let mut object = Object::new();
    for key in ["b", "\u{1F600}", "\u{FB33}", "a", "b"] {
        object.insert(key.to_owned(), Value::from(key));
    }
    assert_eq!(
        object.iter().map(|(key, _)| key).collect::<Vec<_>>(),
        ["a", "b", "\u{1F600}", "\u{FB33}"]
    );
    assert_eq!(
        object.insert("a".into(), Value::Null),
        Some(Value::from("a"))
    );
    assert_eq!(object.remove("b"), Some(Value::from("b")));
    assert_eq!((object.remove("b"), object.len()), (None, 3));
    let twice = vec![
        ("k".to_owned(), Value::Null),
        ("j".to_owned(), Value::Null),
        ("k".to_owned(), Value::Null),
    ];
    assert_eq!(Object::from_members(twice), Err("k".to_owned()));
}

#[test]
fn digest_texts_are_strict() {
    let empty = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    assert_eq!(Digest::sha256(b"").to_base64url(), empty);
    assert_eq!(
        Digest::from_base64url(Algorithm::Sha256, empty),
        Ok(Digest::sha256(b""))
    );
    let trailing_bits = format!("{}V", &empty[..42]);
    for text in [
        format!("{empty}="),
        trailing_bits,
        empty.replace('-', "+"),
        format!(" {empty}"),
        format!("{empty}\n"),
    ] {
        assert_eq!(
            Digest::from_base64url(Algorithm::Sha256, &text),
            Err(DigestError::Encoding),
            "{text}"
        );
    }
    let short = DigestError::Length {
        algorithm: Algorithm::Sha384,
        found: 32,
    };
    assert_eq!(Digest::from_base64url(Algorithm::Sha384, empty), Err(short));
    for algorithm in [Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512] {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        assert_eq!(
            Digest::of(algorithm, b"x").bytes().len(),
            algorithm.length()
        );
    }
    assert_eq!(
        "sha-256".parse::<Algorithm>(),
        Err(DigestError::UnknownAlgorithm)
    );
    assert_eq!(b64::decode("_-8"), Some(vec![0xFF, 0xEF]));
    assert_eq!(
        (b64::encode(b""), b64::decode("")),
        (String::new(), Some(vec![]))
    );
}
