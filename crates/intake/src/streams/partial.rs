//! Vertex's partial arguments: `partialArgs[]{jsonPath, …Value, willContinue}` build one object, each path once.

use lychgate_core::json::{Object, Value};

use super::reason::Reason;
use super::take;

/// A call that is still being built.
#[derive(Debug, Default)]
pub(super) struct Partial {
    arguments: Object,
    /// The path of a text that goes on.
    goes_on: Option<String>,
    /// How many values came: a bound for work, beside the message's own for bytes.
    values: usize,
}

enum Step {
    Key(String),
    Item(usize),
}

impl Partial {
    /// Takes one entry of `partialArgs`.
    pub(super) fn add(&mut self, mut entry: Object) -> Result<(), Reason> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(Reason::TooLarge);
        }
        let path = take::label(&mut entry, "jsonPath")?.ok_or(Reason::ArgumentsPath)?;
        let goes_on = take::truth(&mut entry, "willContinue")?;
        let value = value(&mut entry)?;
        let steps = steps(&path)?;
        if let Some(held) = self.goes_on.take() {
            // Only the same text may go on; another path in between would leave it in doubt.
            let (true, Some(Value::String(more))) = (held == path, &value) else {
                return Err(Reason::ArgumentsPath);
            };
            match find(&mut self.arguments, &steps) {
                Some(Value::String(text)) => text.push_str(more),
                _ => return Err(Reason::ArgumentsPath),
            }
        } else {
            put(
                &mut self.arguments,
                &steps,
                value.ok_or(Reason::ArgumentsPath)?,
            )?;
        }
        if goes_on {
            self.goes_on = Some(path);
        }
        Ok(())
    }

    /// The whole, when nothing hangs in the air.
    pub(super) fn seal(self) -> Result<Value, Reason> {
        match self.goes_on {
            None => Ok(Value::Object(self.arguments)),
            Some(_) => Err(Reason::ArgumentsTruncated),
        }
    }
}

/// The one value an entry has.
fn value(entry: &mut Object) -> Result<Option<Value>, Reason> {
    let mut found = None;
    for member in ["stringValue", "numberValue", "boolValue", "nullValue"] {
        let Some(value) = entry.remove(member) else {
            continue;
        };
        let value = match (member, value) {
            ("stringValue", value @ Value::String(_))
            | ("numberValue", value @ Value::Number(_))
            | ("boolValue", value @ Value::Bool(_)) => value,
            ("nullValue", _) => Value::Null,
            (_, Value::Null) => continue,
            _ => return Err(Reason::Shape),
        };
        if found.replace(value).is_some() {
            return Err(Reason::SourcesDisagree);
        }
    }
    Ok(found)
}

/// `$.key`, `['key']` and `[0]`, and nothing that could select more than one place.
fn steps(path: &str) -> Result<Vec<Step>, Reason> {
    let mut rest = path.strip_prefix('$').ok_or(Reason::ArgumentsPath)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= DEEPEST {
            return Err(Reason::ArgumentsTooDeep);
        }
        let (step, after) = step(rest).ok_or(Reason::ArgumentsPath)?;
        steps.push(step);
        rest = after;
    }
    match steps.first() {
        Some(Step::Key(_)) => Ok(steps),
        _ => Err(Reason::ArgumentsPath),
    }
}

fn step(text: &str) -> Option<(Step, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let plain = !key.is_empty() && !key.contains([']', '*', '?', '\'', '"', ' ']);
        return plain.then(|| (Step::Key(key.to_owned()), after));
    }
    let inner = text.strip_prefix('[')?;
    if let Some(quote) = inner.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let (key, after) = inner.get(1..)?.split_once(quote)?;
        let plain = !key.contains('\\');
        return plain.then_some((Step::Key(key.to_owned()), after.strip_prefix(']')?));
    }
    let (digits, after) = inner.split_once(']')?;
    let canonical = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    canonical
        .then(|| digits.parse().ok())
        .flatten()
        .map(|at| (Step::Item(at), after))
}

fn find<'a>(object: &'a mut Object, steps: &[Step]) -> Option<&'a mut Value> {
    let (Step::Key(key), rest) = steps.split_first()? else {
        return None;
    };
    find_in(object.get_mut(key)?, rest)
}

fn find_in<'a>(place: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(place);
    };
    let next = match (step, place) {
        (Step::Key(key), Value::Object(object)) => object.get_mut(key)?,
        (Step::Item(at), Value::Array(items)) => items.get_mut(*at)?,
        _ => return None,
    };
    find_in(next, rest)
}

/// Puts a value where nothing is yet; what leads there is made on the way, an array's items only in order.
fn put(object: &mut Object, steps: &[Step], value: Value) -> Result<(), Reason> {
    let Some((Step::Key(key), rest)) = steps.split_first() else {
        return Err(Reason::ArgumentsPath);
    };
    match object.get_mut(key) {
        Some(place) => put_in(place, rest, value),
        None => {
            object.insert(key.clone(), fresh(rest, value)?);
            Ok(())
        }
    }
}

fn put_in(place: &mut Value, steps: &[Step], value: Value) -> Result<(), Reason> {
    let Some((step, rest)) = steps.split_first() else {
        return Err(Reason::SourcesDisagree);
    };
    match (step, place) {
        (Step::Key(_), Value::Object(object)) => put(object, steps, value),
        (Step::Item(at), Value::Array(items)) if *at == items.len() => {
            items.push(fresh(rest, value)?);
            Ok(())
        }
        (Step::Item(at), Value::Array(items)) => match items.get_mut(*at) {
            Some(item) => put_in(item, rest, value),
            None => Err(Reason::ArgumentsPath),
        },
        _ => Err(Reason::ArgumentsPath),
    }
}

/// The value, inside whatever leads to it.
fn fresh(steps: &[Step], value: Value) -> Result<Value, Reason> {
    let mut place = match steps.first() {
        None => return Ok(value),
        Some(Step::Key(_)) => Value::Object(Object::new()),
        Some(Step::Item(_)) => Value::Array(Vec::new()),
    };
    put_in(&mut place, steps, value)?;
    Ok(place)
}

/// Steps in one path.
const DEEPEST: usize = 64;
/// Values in one call.
const MOST_VALUES: usize = 16_384;
