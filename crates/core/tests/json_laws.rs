//! The laws of what the strict parser takes, against independent implementations.
//!
//! `LYCHGATE_LONG=1` runs a hundred times as many cases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lychgate_core::digest::{Algorithm, arguments_digest};
use lychgate_core::jcs;
use lychgate_core::json::{Limits, Number, Object, Value, parse};
use proptest::prelude::*;

/// Some JSON, in the oracle's model.
fn model() -> impl Strategy<Value = serde_json::Value> {
    let double = any::<u64>()
        .prop_map(f64::from_bits)
        .prop_filter("finite", |double| double.is_finite());
    let number = prop_oneof![
        double.clone(),
        (-1e6..1e6_f64),
        (-1000..1000_i32).prop_map(f64::from)
    ];
    let text = prop_oneof![
        "[a-cA-C]{0,2}",
        ".{0,6}",
        "[\\x00-\\x1f\"\\\\/\u{e000}-\u{ffff}\u{10000}-\u{10010}]{0,4}"
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        number.prop_map(|double| serde_json::Value::from(double + 0.0)),
        text.clone().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Choices for how a text is laid out, used up in a circle.
struct Layout<'a>(std::iter::Cycle<std::slice::Iter<'a, u8>>);

impl Layout<'_> {
    fn choose(&mut self, among: u8) -> u8 {
        self.0.next().copied().unwrap_or(0) % among
    }

    fn space(&mut self, out: &mut String) {
        out.push_str(["", "", " ", "\n", "\t\r "][usize::from(self.choose(5))]);
    }

    fn string(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for letter in text.chars() {
            if letter < ' ' || matches!(letter, '"' | '\\') || self.choose(4) == 0 {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let hex = format!("\\u{unit:04x}");
                    out.push_str(&if self.choose(2) == 0 {
                        hex
                    } else {
                        hex.to_uppercase().replacen('U', "u", 1)
                    });
                }
            } else {
                out.push(letter);
            }
        }
        out.push('"');
    }

    fn value(&mut self, value: &serde_json::Value, out: &mut String) {
        self.space(out);
        match value {
            serde_json::Value::Number(number) => {
                let double = number.as_f64().unwrap();
                out.push_str(&match self.choose(3) {
                    0 => format!("{double:e}"),
                    1 => format!("{double:E}").replace("E-", "E-00"),
                    _ => format!("{double}"),
                });
            }
            serde_json::Value::String(text) => self.string(text, out),
            serde_json::Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    self.value(item, out);
                }
                self.space(out);
                out.push(']');
            }
            serde_json::Value::Object(members) => {
                let mut members = members.iter().collect::<Vec<_>>();
                let turn = usize::from(self.choose(6)).min(members.len());
                members.rotate_left(turn);
                out.push('{');
                for (index, (key, member)) in members.into_iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    self.space(out);
                    self.string(key, out);
                    self.space(out);
                    out.push(':');
                    self.value(member, out);
                }
                self.space(out);
                out.push('}');
            }
            word => out.push_str(&word.to_string()),
        }
        self.space(out);
    }
}

fn laid_out(model: &serde_json::Value, choices: &[u8]) -> String {
    let mut text = String::new();
    Layout(choices.iter().cycle()).value(model, &mut text);
    text
}

/// A token's exact value as (negative, digits, exponent), by plain string work; independent of the parser.
fn decimal(token: &str) -> (bool, String, i64) {
    let (negative, token) = token
        .strip_prefix('-')
        .map_or((false, token), |rest| (true, rest));
    let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
    let zeros = all.len() - all.trim_end_matches('0').len();
    let exponent = exponent.parse::<i64>().unwrap() - fraction.len() as i64 + zeros as i64;
    if digits.is_empty() {
        (false, digits, 0)
    } else {
        (negative, digits, exponent)
    }
}

fn should_be_taken(token: &str) -> bool {
    let double = token.parse::<f64>().unwrap();
    if !double.is_finite() {
        return false;
    }
    let (value, written) = (decimal(token), decimal(&format!("{double:e}")));
    let fraction = value.2 < 0 && value.1.len() <= 17 && double != 0.0 && double.fract() != 0.0;
    value == written || fraction
}

fn token() -> impl Strategy<Value = String> {
    let near = any::<u64>()
        .prop_map(f64::from_bits)
        .prop_filter("finite", |double| double.is_finite());
    prop_oneof![
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        "-?(0|[1-9][0-9]{0,16})(\\.[0-9]{1,4})?",
        "-?90071992547409[0-9]{2}(\\.[05])?",
        (near, "[0-9]{0,2}").prop_map(|(double, more)| format!("{double:e}").replacen(
            'e',
            &format!("{more}e"),
            1
        )),
    ]
}

#[allow(clippy::disallowed_methods, reason = "a test's own switch")]
fn cases() -> u32 {
    if std::env::var_os("LYCHGATE_LONG").is_some() {
        50_000
    } else {
        500
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn layout_never_matters_and_bytes_agree_with_another_implementation(
        model in model(), one in prop::collection::vec(any::<u8>(), 1..40), other in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let expected = serde_json_canonicalizer::to_vec(&model).unwrap();
        for choices in [one, other] {
            let text = laid_out(&model, &choices);
            let value = parse(text.as_bytes(), &Limits::CANON).unwrap();
            let bytes = jcs::to_bytes(&value);
            prop_assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected));
            prop_assert_eq!(parse(&bytes, &Limits::CANON).unwrap(), value);
        }
    }

    #[test]
    fn a_cut_text_is_never_taken(model in model(), choices in prop::collection::vec(any::<u8>(), 1..40), at in any::<prop::sample::Index>()) {
        let text = format!("[{}]", laid_out(&model, &choices));
        let at = at.index(text.len());
        prop_assert!(parse(&text.as_bytes()[..at], &Limits::CANON).is_err());
    }

    #[test]
    fn a_damaged_text_is_taken_only_if_it_is_json(model in model(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = laid_out(&model, &[3, 1, 4]).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if parse(&bytes, &Limits::CANON).is_ok() {
            prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok());
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let taken = parse(&bytes, &Limits::CANON).is_ok();
        prop_assert!(!taken || serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok());
    }

    #[test]
    fn number_tokens_are_taken_exactly_when_the_profile_says_so(token in token()) {
        let read = parse(token.as_bytes(), &Limits::ARGUMENTS);
        prop_assert_eq!(read.is_ok(), should_be_taken(&token), "{}", token);
        if let Ok(value) = read {
            let double = token.parse::<f64>().unwrap();
            prop_assert_eq!(&value, &Value::Number(Number::from_f64(double).unwrap()));
            prop_assert_eq!(parse(&jcs::to_bytes(&value), &Limits::ARGUMENTS).unwrap(), value);
        }
    }

    #[test]
    fn accepted_tokens_share_a_digest_only_when_they_denote_one_double(one in token(), other in token()) {
        let read = |token: &str| parse(token.as_bytes(), &Limits::ARGUMENTS).ok();
        if let (Some(left), Some(right)) = (read(&one), read(&other)) {
            let same = one.parse::<f64>().unwrap() == other.parse::<f64>().unwrap();
            let digest = |value| arguments_digest(Algorithm::Sha256, Some(value));
            prop_assert_eq!(digest(&left) == digest(&right), same);
        }
    }

    #[test]
    fn members_stand_in_the_order_of_utf16_units(keys in prop::collection::hash_set("[a\u{d7ff}\u{e000}\u{ee00}\u{fffd}\u{10000}\u{10ffff}é]{0,3}", 0..12)) {
        let members = keys.iter().map(|key| (key.clone(), Value::Null)).collect();
        let object = Object::from_members(members).unwrap();
        let units = object.iter().map(|(key, _)| key.encode_utf16().collect::<Vec<_>>()).collect::<Vec<_>>();
        prop_assert!(units.is_sorted_by(|one, other| one < other));
        prop_assert!(keys.iter().all(|key| object.contains_key(key)));
    }
}
