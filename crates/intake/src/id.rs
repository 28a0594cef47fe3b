//! The id of a JSON-RPC request, and of a progress token, which has the same form.

use std::fmt;

use lychgate_core::jcs;
use lychgate_core::json::{CaseRule, Limits, Number, Value, parse};

/// The longest text of an id, in bytes.
pub const LONGEST: usize = 256;

/// A request's id: a whole number within ±2^53, or a text of at most [`LONGEST`] bytes. `null` and fractions are none.
/// Ids of the two directions are separate spaces: a server's own requests count from 0 as clients do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// A whole number.
    Number(i64),
    /// A text; `"1"` is not `1`.
    String(String),
}

impl RequestId {
    /// The id a value is, if it is one.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) if text.len() <= LONGEST => Some(Self::String(text.clone())),
            _ => None,
        }
    }

    /// The id some raw JSON is, if it is one.
    #[must_use]
    pub fn from_raw(raw: &[u8]) -> Option<Self> {
        let limits = Limits {
            max_bytes: LONGEST * 6 + 2,
            max_depth: 1,
            case: CaseRule::Refuse,
        };
        Self::from_value(&parse(raw, &limits).ok()?)
    }

    /// The id as a value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Number(whole) => Number::from_i64(*whole)
                .map_or_else(|| Value::String(whole.to_string()), Value::Number),
            Self::String(text) => Value::String(text.clone()),
        }
    }

    /// The id as JSON bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        match self {
            Self::Number(whole) => whole.to_string().into_bytes(),
            Self::String(_) => jcs::to_bytes(&self.to_value()),
        }
    }
}

impl fmt::Display for RequestId {
    /// As JSON, with what a terminal would act on escaped.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(whole) => write!(out, "{whole}"),
            Self::String(text) => write!(out, "\"{}\"", text.escape_debug()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_is_a_whole_number_or_a_text_and_nothing_else() {
        assert_eq!(RequestId::from_raw(b"0"), Some(RequestId::Number(0)));
        assert_eq!(
            RequestId::from_raw(b"\"1\""),
            Some(RequestId::String("1".to_owned()))
        );
        for none in [
            "null",
            "1.5",
            "true",
            "[]",
            "{}",
            "9007199254740993",
            "1e400",
            "",
            "1 2",
        ] {
            assert_eq!(RequestId::from_raw(none.as_bytes()), None, "{none}");
        }
        let long = format!("\"{}\"", "x".repeat(257));
        assert_eq!(RequestId::from_raw(long.as_bytes()), None);
    }

    #[test]
    fn an_id_reads_back_from_its_json() {
        for id in [
            RequestId::Number(-7),
            RequestId::Number(1 << 53),
            RequestId::String("a\"\n".into()),
        ] {
            assert_eq!(RequestId::from_raw(&id.to_json()), Some(id));
        }
    }
}
