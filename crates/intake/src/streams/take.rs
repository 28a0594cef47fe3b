//! Taking members out of an event: absent and null are one, another kind of value is a reason.

use lychgate_core::json::{Object, Value};

use super::reason::Reason;

/// A member that says something.
pub(super) fn take(object: &mut Object, key: &str) -> Option<Value> {
    object.remove(key).filter(|value| *value != Value::Null)
}

pub(super) fn text(object: &mut Object, key: &str) -> Result<Option<String>, Reason> {
    match take(object, key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Reason::Shape),
    }
}

/// A text that is not empty.
pub(super) fn label(object: &mut Object, key: &str) -> Result<Option<String>, Reason> {
    Ok(text(object, key)?.filter(|text| !text.is_empty()))
}

/// What an event says it is, which is what its line `event:`, where there is one, says too.
pub(super) fn kind(event: &mut Object, name: &str) -> Result<String, Reason> {
    let kind = text(event, "type")?.ok_or(Reason::EventUnknown)?;
    if name.is_empty() || name == kind {
        Ok(kind)
    } else {
        Err(Reason::SourcesDisagree)
    }
}

pub(super) fn object(object: &mut Object, key: &str) -> Result<Option<Object>, Reason> {
    match take(object, key) {
        None => Ok(None),
        Some(Value::Object(member)) => Ok(Some(member)),
        Some(_) => Err(Reason::Shape),
    }
}

pub(super) fn array(object: &mut Object, key: &str) -> Result<Vec<Value>, Reason> {
    match take(object, key) {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(Reason::Shape),
    }
}

pub(super) fn truth(object: &mut Object, key: &str) -> Result<bool, Reason> {
    match take(object, key) {
        None => Ok(false),
        Some(Value::Bool(truth)) => Ok(truth),
        Some(_) => Err(Reason::Shape),
    }
}

/// A place: absent, null and anything but a whole number are no place.
pub(super) fn index(object: &mut Object, key: &str) -> Option<u64> {
    object.remove(key).as_ref().and_then(Value::as_u64)
}

/// Appends to a text member that may not be there yet.
pub(super) fn append(object: &mut Object, key: &str, more: &str) {
    match object.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            object.insert(key.to_owned(), Value::from(more));
        }
    }
}

/// A text member, to look at.
pub(super) fn peek<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}
