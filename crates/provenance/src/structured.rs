//! Tool results as records: an object is a record, its members are fields, and the objects of one list are one group.

use lychgate_core::json::{Number, Object, Value};

/// One value of a structured result.
pub(crate) struct Leaf<'a> {
    pub(crate) pointer: String,
    /// The member's name; of a list's items, the list's.
    pub(crate) field: &'a str,
    pub(crate) text: String,
    /// Which object it is in, counted from 0.
    pub(crate) record: Option<usize>,
}

/// The leaves of a result, and for each record the group it is in.
#[derive(Default)]
pub(crate) struct Leaves<'a> {
    pub(crate) leaves: Vec<Leaf<'a>>,
    pub(crate) groups: Vec<usize>,
    /// Some leaves were left out, so the record does not hold everything.
    pub(crate) cut: bool,
    group_count: usize,
}

impl<'a> Leaves<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        let mut found = Self::default();
        found.walk(value, String::new(), "", None, None);
        found
    }

    fn walk(
        &mut self,
        value: &'a Value,
        pointer: String,
        field: &'a str,
        record: Option<usize>,
        group: Option<usize>,
    ) {
        if self.leaves.len() >= MOST {
            self.cut = true;
            return;
        }
        match value {
            Value::Object(members) => {
                let group = group.unwrap_or_else(|| self.new_group());
                let mine = self.groups.len();
                self.groups.push(group);
                for (name, member) in members.iter() {
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    self.walk(
                        member,
                        format!("{pointer}/{escaped}"),
                        name,
                        Some(mine),
                        None,
                    );
                }
            }
            Value::Array(items) => {
                let group = self.new_group();
                for (at, item) in items.iter().enumerate() {
                    self.walk(item, format!("{pointer}/{at}"), field, record, Some(group));
                }
            }
            Value::Null => {}
            other => {
                if let Some(text) = scalar(other) {
                    self.leaves.push(Leaf {
                        pointer,
                        field,
                        text,
                        record,
                    });
                }
            }
        }
    }

    fn new_group(&mut self) -> usize {
        self.group_count += 1;
        self.group_count - 1
    }
}

/// A scalar as it is compared.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(format!("{}", number.get())),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Reads JSON as it comes, for matching only: of two equal keys the last counts, an unsafe number becomes its text.
/// `None` when it is no JSON, or a scalar, or deeper than 64.
#[must_use]
pub fn lenient(text: &str) -> Option<Value> {
    let start = text.trim_start();
    if !start.starts_with(['{', '[']) {
        return None;
    }
    let value = serde_json::from_str::<serde_json::Value>(start).ok()?;
    convert(value, 0)
}

fn convert(value: serde_json::Value, depth: usize) -> Option<Value> {
    if depth > DEPTH {
        return None;
    }
    Some(match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(flag),
        serde_json::Value::Number(number) => match number.as_f64().and_then(Number::from_f64) {
            Some(exact) if format!("{}", exact.get()) == number.to_string() || number.is_f64() => {
                Value::Number(exact)
            }
            _ => Value::String(number.to_string()),
        },
        serde_json::Value::String(text) => Value::String(text),
        serde_json::Value::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| convert(item, depth + 1))
                .collect::<Option<_>>()?,
        ),
        serde_json::Value::Object(members) => {
            let mut object = Object::default();
            for (key, member) in members {
                object.insert(key, convert(member, depth + 1)?);
            }
            Value::Object(object)
        }
    })
}

const DEPTH: usize = 64;
/// A result with more leaves than this is cut, and the record says so.
const MOST: usize = 50_000;
