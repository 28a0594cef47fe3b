//! The `read_back` table of a catalogue entry.

use std::collections::BTreeMap;

use super::read::{Reader, Section};
use crate::diagnostics::quoted;
use crate::read_back::{Expected, ReadBack, Source, When};

pub(super) fn read_back(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> Option<ReadBack> {
    let table = reader.table(section, "read_back", &KEYS)?;
    let tool = reader.required(&table, "tool").unwrap_or_default();
    let mut arguments = BTreeMap::new();
    if let Some(given) = reader.open(&table, "arguments") {
        for name in given.keys().collect::<Vec<_>>() {
            if let Some(source) = source(reader, &given, name) {
                arguments.insert(name.to_owned(), source);
            }
        }
    }
    Some(ReadBack {
        tool,
        arguments,
        effect_when: when(reader, &table, "effect_when"),
        no_effect_when: when(reader, &table, "no_effect_when"),
        trust_no_effect: reader.flag(&table, "trust_no_effect").unwrap_or(false),
    })
}

fn source(reader: &mut Reader<'_>, given: &Section<'_, '_>, name: &str) -> Option<Source> {
    if !given.is_table(name) {
        return reader.text(given, name).map(Source::Argument);
    }
    let table = reader.table(given, name, &["value", "idempotency_key"])?;
    match (table.has("value"), table.has("idempotency_key")) {
        (true, false) => reader.scalar(&table, "value").map(Source::Value),
        (false, true) => yes(reader, &table, "idempotency_key", Source::IdempotencyKey),
        _ => {
            let message = format!(
                "{} must be a pointer into the act's arguments, or have either `value` or `idempotency_key`",
                quoted(name)
            );
            reader.at_key(given, name, message);
            None
        }
    }
}

fn when(reader: &mut Reader<'_>, section: &Section<'_, '_>, key: &str) -> Option<When> {
    let keys = ["pointer", "error"].into_iter().chain(EXPECTED);
    let table = reader.table(section, key, &keys.collect::<Vec<_>>())?;
    let pointer = reader.required(&table, "pointer").unwrap_or_default();
    let error = reader.flag(&table, "error").unwrap_or(false);
    let mut written = EXPECTED.into_iter().filter(|key| table.has(key));
    let (Some(one), None) = (written.next(), written.next()) else {
        let list = EXPECTED.map(|key| format!("`{key}`")).join(", ");
        reader.at_key(
            section,
            key,
            format!("`{key}` must have exactly one of {list}"),
        );
        return None;
    };
    let expected = match one {
        "equals" => Expected::Equals(reader.scalar(&table, one)?),
        "equals_argument" => Expected::EqualsArgument(reader.text(&table, one)?),
        "digest_of_argument" => Expected::DigestOfArgument(reader.text(&table, one)?),
        "idempotency_key" => yes(reader, &table, one, Expected::IdempotencyKey)?,
        _ => yes(reader, &table, one, Expected::Absent)?,
    };
    Some(When {
        pointer,
        error,
        expected,
    })
}

/// A key that is there to be `true`.
fn yes<T>(reader: &mut Reader<'_>, section: &Section<'_, '_>, key: &str, meaning: T) -> Option<T> {
    if reader.flag(section, key)? {
        return Some(meaning);
    }
    reader.at_key(section, key, format!("`{key}` is `true` or left out"));
    None
}

const KEYS: [&str; 5] = [
    "tool",
    "arguments",
    "effect_when",
    "no_effect_when",
    "trust_no_effect",
];

const EXPECTED: [&str; 5] = [
    "equals",
    "equals_argument",
    "digest_of_argument",
    "idempotency_key",
    "absent",
];
