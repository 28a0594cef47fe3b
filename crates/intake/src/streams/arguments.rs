//! Arguments: one strict reading, or a reason. Nothing is repaired (PROFILE §3).

use lychgate_core::json::{self, Object, Value, parse};

use super::Limits;
use super::reason::Reason;

/// Arguments that came as text.
pub(super) fn from_text(text: &str, limits: &Limits) -> Result<Value, Reason> {
    let limits = json::Limits {
        max_bytes: limits.arguments_bytes,
        max_depth: DEPTH,
        case: limits.case,
    };
    let value =
        parse(text.as_bytes(), &limits).map_err(|fault| Reason::of_arguments(fault.kind))?;
    object(value)
}

/// Arguments that came as a JSON value inside an event; absent ones are `{}`.
pub(super) fn from_value(value: Option<Value>) -> Result<Value, Reason> {
    value.map_or_else(|| Ok(empty()), object)
}

/// No arguments.
pub(super) const fn empty() -> Value {
    Value::Object(Object::new())
}

/// Whether a value may be arguments by its kind and depth.
pub(super) fn admit(value: &Value) -> Result<(), Reason> {
    if value.as_object().is_none() {
        return Err(Reason::ArgumentsNotObject);
    }
    if fits(value, DEPTH) {
        Ok(())
    } else {
        Err(Reason::ArgumentsTooDeep)
    }
}

fn object(value: Value) -> Result<Value, Reason> {
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(Reason::ArgumentsNotObject),
    }
}

/// Whether there are at most `depth` arrays and objects inside each other. The parser has bounded the recursion.
fn fits(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| fits(item, depth - 1)),
        Value::Object(object) => {
            depth > 0 && object.iter().all(|(_, member)| fits(member, depth - 1))
        }
        _ => true,
    }
}

/// The deepest arguments (PROFILE §3).
const DEPTH: usize = 64;
