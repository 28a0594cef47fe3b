//! A tool's input schema, compiled once, and what it says about a pointer into the arguments.

use jsonschema::{Draft, PatternOptions, Validator};
use lychgate_core::json::Value;

/// Arguments break the tool's schema (EF-012).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("arguments break the tool's schema at `{pointer}`")]
pub struct SchemaFault {
    /// RFC 6901 pointer to the place in the arguments, empty for the whole.
    pub pointer: String,
}

/// Compiles a schema: 2020-12 unless it names another draft, nothing fetched, regular expressions of linear time.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    let mut options = jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::regex());
    if schema.get("$schema").is_none() {
        options = options.with_draft(Draft::Draft202012);
    }
    let built = options.build(&to_serde(schema));
    built.map_err(|fault| lychgate_core::display::escape_within(&fault.to_string(), 200))
}

/// Checks arguments against a compiled schema.
pub(crate) fn check(validator: &Validator, arguments: &Value) -> Result<(), SchemaFault> {
    let instance = to_serde(arguments);
    validator.validate(&instance).map_err(|fault| SchemaFault {
        pointer: fault.instance_path().as_str().to_owned(),
    })
}

fn to_serde(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => {
            match (number.as_i64(), serde_json::Number::from_f64(number.get())) {
                (Some(whole), _) => whole.into(),
                (None, Some(float)) => serde_json::Value::Number(float),
                // A `Number` is finite, so this arm is never taken; null fits no numeric schema.
                (None, None) => serde_json::Value::Null,
            }
        }
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(to_serde).collect::<Vec<_>>().into(),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| (key.to_owned(), to_serde(member)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// What a schema says about a pointer into the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// There is such a property.
    Known,
    /// There is no such property; these are there instead.
    Unknown(Vec<String>),
}

/// Follows `pointer` through properties, array items and local references. A schema that is open in a way this does
/// not read (combinators) counts as knowing the place.
pub(crate) fn place(schema: &Value, pointer: &str) -> Place {
    let Some(tokens) = tokens(pointer) else {
        return Place::Unknown(Vec::new());
    };
    let mut here = schema;
    for token in &tokens {
        here = match step(schema, here, token, 0) {
            Step::To(next) => next,
            Step::Open => return Place::Known,
            Step::None(known) => return Place::Unknown(known),
        };
    }
    Place::Known
}

enum Step<'a> {
    To(&'a Value),
    Open,
    None(Vec<String>),
}

fn step<'a>(root: &'a Value, here: &'a Value, token: &str, depth: usize) -> Step<'a> {
    if depth > 16 {
        return Step::Open;
    }
    if let Some(target) = here.get("$ref").and_then(Value::as_str) {
        return match target
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer))
        {
            Some(target) => step(root, target, token, depth + 1),
            None => Step::Open,
        };
    }
    if let Some(items) = here
        .get("items")
        .filter(|items| items.as_object().is_some())
    {
        return if token.bytes().all(|byte| byte.is_ascii_digit()) {
            Step::To(items)
        } else {
            step(root, items, token, depth + 1)
        };
    }
    let known = here.get("properties").and_then(Value::as_object);
    if let Some(next) = known.and_then(|known| known.get(token)) {
        return Step::To(next);
    }
    let combined = ["anyOf", "oneOf", "allOf", "if", "patternProperties"]
        .iter()
        .any(|word| here.get(word).is_some());
    if combined {
        return Step::Open;
    }
    Step::None(
        known
            .map(|known| known.iter().map(|(key, _)| key.to_owned()).collect())
            .unwrap_or_default(),
    )
}

/// The unescaped tokens of a pointer; `None` when it is malformed.
pub(crate) fn tokens(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    pointer
        .strip_prefix('/')?
        .split('/')
        .map(unescape)
        .collect()
}

fn unescape(token: &str) -> Option<String> {
    let mut key = String::with_capacity(token.len());
    let mut rest = token.chars();
    while let Some(next) = rest.next() {
        key.push(match next {
            '~' => match rest.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(key)
}
