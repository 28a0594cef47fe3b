//! How an act whose answer was lost is looked up at its destination (PROFILE §5): a read-only call to the same server,
//! and what its result says of the act.
//!
//! [`ReadBack`] is the catalogue's rule. At dispatch it becomes a [`Planned`]: the call's own arguments and digests of
//! what its result is compared with, so that nothing more of the act's arguments has to be kept, and only under seal.

use std::collections::BTreeMap;

use lychgate_core::digest::{Algorithm, b64};
use lychgate_core::json::{self, Limits, Object, Value};
use lychgate_core::{Digest, jcs};
use serde::{Deserialize, Serialize};

/// The gate's own agent, which makes the read-backs. No client's agent may bear its id.
pub const RECONCILER: &str = "lychgate-reconciler";

/// The catalogue's rule for one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBack {
    /// The INFORMATIONAL function of the same server that is called.
    pub tool: String,
    /// Its arguments.
    pub arguments: BTreeMap<String, Source>,
    /// What its result says when the act took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_when: Option<When>,
    /// What its result says when the act did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_effect_when: Option<When>,
    /// Whether "no effect" releases a retry. Never for FINANCIAL.
    pub trust_no_effect: bool,
}

/// Where one argument of the read-back comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The value at this pointer into the act's arguments.
    Argument(String),
    /// A constant.
    Value(Value),
    /// The idempotency key that went out with the act.
    IdempotencyKey,
}

/// What must stand where in the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// A pointer into the result object, e.g. `/structuredContent/status`.
    pub pointer: String,
    /// Whether the result is an error (`isError`); one that is otherwise says nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub error: bool,
    /// What stands there.
    pub expected: Expected,
}

/// What stands at the pointer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// This constant.
    Equals(Value),
    /// The value at this pointer into the act's arguments.
    EqualsArgument(String),
    /// The SHA-256, in hex or base64url, of the text at this pointer into the act's arguments.
    DigestOfArgument(String),
    /// The idempotency key that went out with the act.
    IdempotencyKey,
    /// Nothing, or null, in an object that is there.
    Absent,
}

/// A read-back of one act, ready to be made. It is sealed from dispatch to settlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// The function to call.
    pub tool: String,
    /// With these arguments, an object.
    pub arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effect: Option<Check>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    no_effect: Option<Check>,
    /// Whether the catalogue trusted "no effect" when the act was dispatched.
    pub trust_no_effect: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    pointer: String,
    #[serde(default, skip_serializing_if = "is_false")]
    error: bool,
    matches: Match,
}

/// What is compared, without the value itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Match {
    /// Over the canonical bytes of what stands there.
    Is(Digest),
    /// It is this digest, written in hex or base64url.
    Names(Digest),
    Absent,
}

/// What a result says of the act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It took effect.
    Effect,
    /// It did not.
    NoEffect,
    /// Neither rule fits.
    Neither,
    /// Both do.
    Both,
    /// The result is not strict JSON.
    Unreadable,
}

impl ReadBack {
    /// The read-back of an act with these arguments and this key. `None` when the act has not what the rule asks for:
    /// a call with less in it might find another act.
    #[must_use]
    pub fn plan(&self, act: &Value, key: Option<&str>) -> Option<Planned> {
        let mut arguments = Object::new();
        for (name, source) in &self.arguments {
            let value = match source {
                Source::Argument(pointer) => act.pointer(pointer)?.clone(),
                Source::Value(value) => value.clone(),
                Source::IdempotencyKey => Value::from(key?),
            };
            arguments.insert(name.clone(), value);
        }
        let check = |when: &Option<When>| when.as_ref().and_then(|when| when.check(act, key));
        let (effect, no_effect) = (check(&self.effect_when), check(&self.no_effect_when));
        (effect.is_some() || no_effect.is_some()).then(|| Planned {
            tool: self.tool.clone(),
            arguments: Value::Object(arguments),
            effect,
            no_effect,
            trust_no_effect: self.trust_no_effect,
        })
    }
}

impl When {
    fn check(&self, act: &Value, key: Option<&str>) -> Option<Check> {
        let is = |value: &Value| Match::Is(Digest::of_value(Algorithm::Sha256, value));
        let matches = match &self.expected {
            Expected::Equals(value) => is(value),
            Expected::EqualsArgument(pointer) => is(act.pointer(pointer)?),
            Expected::DigestOfArgument(pointer) => {
                Match::Names(Digest::sha256(act.pointer(pointer)?.as_str()?.as_bytes()))
            }
            Expected::IdempotencyKey => is(&Value::from(key?)),
            Expected::Absent => Match::Absent,
        };
        Some(Check {
            pointer: self.pointer.clone(),
            error: self.error,
            matches,
        })
    }
}

impl Planned {
    /// What a raw result says of the act.
    #[must_use]
    pub fn read(&self, raw: &[u8]) -> Reading {
        let Ok(result) = json::parse(raw, &Limits::CANON) else {
            return Reading::Unreadable;
        };
        let fits = |check: &Option<Check>| check.as_ref().is_some_and(|check| check.fits(&result));
        match (fits(&self.effect), fits(&self.no_effect)) {
            (true, false) => Reading::Effect,
            (false, true) => Reading::NoEffect,
            (false, false) => Reading::Neither,
            (true, true) => Reading::Both,
        }
    }
}

impl Check {
    fn fits(&self, result: &Value) -> bool {
        let is_error = result.get("isError").and_then(Value::as_bool);
        if is_error.unwrap_or(false) != self.error {
            return false;
        }
        let found = result.pointer(&self.pointer);
        match &self.matches {
            Match::Is(digest) => {
                found.is_some_and(|value| Digest::sha256(&jcs::to_bytes(value)) == *digest)
            }
            Match::Names(digest) => found
                .and_then(Value::as_str)
                .is_some_and(|text| text == hex(digest) || text == b64::encode(digest.bytes())),
            Match::Absent => {
                let parent = self
                    .pointer
                    .rsplit_once('/')
                    .map_or("", |(parent, _)| parent);
                let inside = result.pointer(parent).and_then(Value::as_object);
                inside.is_some() && found.is_none_or(|value| *value == Value::Null)
            }
        }
    }
}

fn hex(digest: &Digest) -> String {
    let bytes = digest.bytes().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes(), &Limits::CANON).unwrap()
    }

    fn when(pointer: &str, expected: Expected) -> Option<When> {
        Some(When {
            pointer: pointer.to_owned(),
            error: false,
            expected,
        })
    }

    fn rule() -> ReadBack {
        ReadBack {
            tool: "find".to_owned(),
            arguments: BTreeMap::from([
                ("id".to_owned(), Source::Argument("/ref".to_owned())),
                ("kind".to_owned(), Source::Value(Value::from("all"))),
                ("key".to_owned(), Source::IdempotencyKey),
            ]),
            effect_when: when(
                "/structuredContent/amount",
                Expected::EqualsArgument("/amount".to_owned()),
            ),
            no_effect_when: when(
                "/structuredContent/status",
                Expected::Equals(Value::from("unknown")),
            ),
            trust_no_effect: true,
        }
    }

    #[test]
    fn the_call_is_made_of_the_acts_arguments_and_nothing_else_is_kept() {
        let act = value(r#"{"ref":"r1","amount":12.5,"note":"a secret"}"#);
        let planned = rule().plan(&act, Some("k")).unwrap();
        let wanted = value(r#"{"id":"r1","kind":"all","key":"k"}"#);
        assert_eq!(planned.arguments, wanted);
        let kept = String::from_utf8(json::to_canonical(&planned).unwrap()).unwrap();
        assert!(!kept.contains("secret") && !kept.contains("12.5"), "{kept}");
        assert_eq!(json::from_value::<Planned>(&value(&kept)).unwrap(), planned);
        // With less in it the call might find another act.
        assert_eq!(rule().plan(&value(r#"{"amount":12.5}"#), Some("k")), None);
        assert_eq!(rule().plan(&act, None), None);
    }

    #[test]
    fn a_result_speaks_only_where_exactly_one_rule_fits() {
        let act = value(r#"{"ref":"r1","amount":12.5}"#);
        let planned = rule().plan(&act, Some("k")).unwrap();
        for (raw, reading) in [
            (r#"{"structuredContent":{"amount":12.5}}"#, Reading::Effect),
            (
                r#"{"structuredContent":{"amount":1.25e1,"status":"booked"}}"#,
                Reading::Effect,
            ),
            (
                r#"{"structuredContent":{"amount":"12.5"}}"#,
                Reading::Neither,
            ),
            (
                r#"{"structuredContent":{"status":"unknown"}}"#,
                Reading::NoEffect,
            ),
            (
                r#"{"structuredContent":{"status":"unknown","amount":12.5}}"#,
                Reading::Both,
            ),
            (
                r#"{"structuredContent":{"status":"unknown"},"isError":true}"#,
                Reading::Neither,
            ),
            (r#"{"content":[]}"#, Reading::Neither),
            (
                r#"{"structuredContent":{"amount":12.5,"amount":1}}"#,
                Reading::Unreadable,
            ),
        ] {
            assert_eq!(planned.read(raw.as_bytes()), reading, "{raw}");
        }
    }

    #[test]
    fn digests_absence_and_errors() {
        let act = value(r#"{"text":"hello"}"#);
        let text = || Expected::DigestOfArgument("/text".to_owned());
        let mut rule = ReadBack {
            tool: "stat".to_owned(),
            arguments: BTreeMap::new(),
            effect_when: when("/structuredContent/sha256", text()),
            no_effect_when: when("/structuredContent/file", Expected::Absent),
            trust_no_effect: false,
        };
        let planned = rule.plan(&act, None).unwrap();
        let hex = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let same = format!(r#"{{"structuredContent":{{"sha256":"{hex}","file":1}}}}"#);
        assert_eq!(planned.read(same.as_bytes()), Reading::Effect);
        for none in [
            r#"{"structuredContent":{}}"#,
            r#"{"structuredContent":{"file":null}}"#,
        ] {
            assert_eq!(planned.read(none.as_bytes()), Reading::NoEffect, "{none}");
        }
        assert_eq!(planned.read(br#"{"content":[]}"#), Reading::Neither);
        rule.no_effect_when = Some(When {
            pointer: "/content/0/text".to_owned(),
            error: true,
            expected: Expected::Equals(Value::from("no such operation")),
        });
        let planned = rule.plan(&act, None).unwrap();
        let says = |error: bool| {
            format!(
                r#"{{"content":[{{"type":"text","text":"no such operation"}}],"isError":{error}}}"#
            )
        };
        assert_eq!(planned.read(says(true).as_bytes()), Reading::NoEffect);
        assert_eq!(planned.read(says(false).as_bytes()), Reading::Neither);
    }
}
