//! Reading TOML tables with the place of everything remembered, so that each problem has its line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use lychgate_core::json::{Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostics::{Diagnostic, Diagnostics, Problem, nearest, quoted};

/// The text, where things are in it, and what was wrong so far.
pub(super) struct Reader<'t> {
    text: &'t str,
    file: PathBuf,
    pub(super) problems: Vec<Diagnostic>,
    places: BTreeMap<Vec<String>, Range<usize>>,
}

/// One table, and the keys that lead to it.
pub(super) struct Section<'a, 'i> {
    path: Vec<String>,
    table: &'a DeTable<'i>,
}

impl<'a, 'i> Section<'a, 'i> {
    pub(super) fn root(table: &'a DeTable<'i>) -> Self {
        Self {
            path: Vec::new(),
            table,
        }
    }

    /// The last key on the way to this table.
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn is_table(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|value| value.get_ref().as_table().is_some())
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.table.iter().map(|(key, _)| key.get_ref().as_ref())
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    fn to(&self, key: &str) -> Vec<String> {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str, file: &Path) -> Self {
        Self {
            text,
            file: file.to_owned(),
            problems: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// The text as a table; `None` after syntax errors, which are then in `problems`.
    pub(super) fn parse(&mut self) -> Option<Spanned<DeTable<'t>>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let message = error
                .message()
                .lines()
                .next()
                .unwrap_or("not toml")
                .to_owned();
            self.push(error.span(), message, None);
        }
        errors.is_empty().then_some(table)
    }

    pub(super) fn into_diagnostics(mut self, problems: Vec<Problem>) -> Diagnostics {
        for problem in problems {
            let mut path = problem.path.as_slice();
            let span = loop {
                if let Some(span) = self.places.get(path) {
                    break Some(span.clone());
                }
                match path.split_last() {
                    Some((_, rest)) => path = rest,
                    None => break None,
                }
            };
            self.push(span, problem.message, problem.suggestion);
        }
        Diagnostics::sorted(self.problems)
    }

    /// A problem at a path of keys.
    pub(super) fn at(&mut self, path: &[String], message: impl Into<String>) {
        // What is missing has no place of its own; its table has.
        let table = path.split_last().map_or(path, |(_, table)| table);
        let span = self
            .places
            .get(path)
            .or_else(|| self.places.get(table))
            .cloned();
        self.push(span, message.into(), None);
    }

    /// A problem at a key.
    pub(super) fn at_key(
        &mut self,
        section: &Section<'_, '_>,
        key: &str,
        message: impl Into<String>,
    ) {
        self.at(&section.to(key), message);
    }

    /// Remembers a place under a second path.
    pub(super) fn rename(&mut self, from: &[&str], to: &[&str]) {
        let own = |path: &[&str]| path.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
        if let Some(span) = self.places.get(&own(from)).cloned() {
            self.places.entry(own(to)).or_insert(span);
        }
    }

    /// Remembers where the keys are and reports those that are not known here.
    pub(super) fn known(&mut self, section: &Section<'_, '_>, keys: &[&str]) {
        for (key, _) in section.table {
            self.places.insert(section.to(key.get_ref()), key.span());
            if !keys.contains(&key.get_ref().as_ref()) {
                let near = nearest(key.get_ref(), keys.iter().copied());
                self.push(
                    Some(key.span()),
                    format!("unknown key {}", quoted(key.get_ref())),
                    near,
                );
            }
        }
    }

    /// The table at `key`, which may have these keys.
    pub(super) fn table<'a, 'i>(
        &mut self,
        section: &Section<'a, 'i>,
        key: &str,
        keys: &[&str],
    ) -> Option<Section<'a, 'i>> {
        let section = self.open(section, key)?;
        self.known(&section, keys);
        Some(section)
    }

    /// The tables under `key`, each of which may have these keys.
    pub(super) fn tables<'a, 'i>(
        &mut self,
        section: &Section<'a, 'i>,
        key: &str,
        keys: &[&str],
    ) -> Vec<Section<'a, 'i>> {
        let Some(outer) = self.open(section, key) else {
            return Vec::new();
        };
        let names = outer.keys().collect::<Vec<_>>();
        for (name, _) in outer.table {
            self.places.insert(outer.to(name.get_ref()), name.span());
        }
        names
            .into_iter()
            .filter_map(|name| self.table(&outer, name, keys))
            .collect()
    }

    /// The table at `key` whose keys are the user's own.
    pub(super) fn open<'a, 'i>(
        &mut self,
        section: &Section<'a, 'i>,
        key: &str,
    ) -> Option<Section<'a, 'i>> {
        let value = section.get(key)?;
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(section, key, "a table");
            return None;
        };
        let opened = Section {
            path: section.to(key),
            table,
        };
        for (name, _) in table {
            self.places.insert(opened.to(name.get_ref()), name.span());
        }
        Some(opened)
    }

    pub(super) fn text(&mut self, section: &Section<'_, '_>, key: &str) -> Option<String> {
        let value = section.get(key)?.get_ref().as_str().map(str::to_owned);
        if value.is_none() {
            self.wrong(section, key, "a text");
        }
        value
    }

    /// A text that must be there.
    pub(super) fn required(&mut self, section: &Section<'_, '_>, key: &str) -> Option<String> {
        if section.has(key) {
            return self.text(section, key);
        }
        self.at(
            &section.path,
            format!("{} has no `{key}`", quoted(section.name())),
        );
        None
    }

    pub(super) fn flag(&mut self, section: &Section<'_, '_>, key: &str) -> Option<bool> {
        let value = section.get(key)?.get_ref().as_bool();
        if value.is_none() {
            self.wrong(section, key, "`true` or `false`");
        }
        value
    }

    pub(super) fn whole(&mut self, section: &Section<'_, '_>, key: &str) -> Option<u64> {
        let value = section.get(key)?.get_ref().as_integer();
        let value = value.and_then(|whole| u64::from_str_radix(whole.as_str(), whole.radix()).ok());
        if value.is_none() {
            self.wrong(section, key, "a whole number from 0");
        }
        value
    }

    /// A text, a whole number or a truth value, as JSON has them.
    pub(super) fn scalar(&mut self, section: &Section<'_, '_>, key: &str) -> Option<Value> {
        let value = section.get(key)?.get_ref();
        let whole = || {
            let whole = value.as_integer()?;
            let whole = i64::from_str_radix(whole.as_str(), whole.radix()).ok()?;
            Number::from_i64(whole).map(Value::Number)
        };
        let text = || value.as_str().map(Value::from);
        let found = text()
            .or_else(|| value.as_bool().map(Value::Bool))
            .or_else(whole);
        if found.is_none() {
            self.wrong(section, key, "a text, a whole number or a truth value");
        }
        found
    }

    /// A duration such as `500ms`, `10s`, `15m`, `1h`, in milliseconds.
    pub(super) fn duration(&mut self, section: &Section<'_, '_>, key: &str) -> Option<u64> {
        let text = self.text(section, key)?;
        let split = text
            .find(|c: char| !c.is_ascii_digit())
            .and_then(|at| text.split_at_checked(at));
        let parsed = split.and_then(|(digits, unit)| {
            let unit = UNITS.iter().find(|(name, _)| *name == unit)?.1;
            digits.parse::<u64>().ok()?.checked_mul(unit)
        });
        if parsed.is_none() {
            let message = format!(
                "{} is not a duration such as `500ms`, `10s`, `15m` or `1h`",
                quoted(&text)
            );
            self.at(&section.to(key), message);
        }
        parsed
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(
        &mut self,
        section: &Section<'_, '_>,
        key: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(section, key)?;
        let found = words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, meaning)| *meaning);
        if found.is_none() {
            let list = words
                .iter()
                .map(|(word, _)| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(", ");
            let span = self.places.get(&section.to(key)).cloned();
            let near = nearest(&text, words.iter().map(|(word, _)| *word));
            self.push(
                span,
                format!("`{key}` must be one of {list}, not {}", quoted(&text)),
                near,
            );
        }
        found
    }

    /// A list of texts.
    pub(super) fn list(&mut self, section: &Section<'_, '_>, key: &str) -> Option<Vec<String>> {
        let value = section.get(key)?;
        let Some(items) = value.get_ref().as_array() else {
            self.wrong(section, key, "a list of texts");
            return None;
        };
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mut path = section.to(key);
            path.push(index.to_string());
            self.places.insert(path.clone(), item.span());
            match item.get_ref().as_str() {
                Some(text) => found.push(text.to_owned()),
                None => self.at(
                    &path,
                    format!(
                        "`{key}` must be a list of texts, not of {}",
                        kind(item.get_ref())
                    ),
                ),
            }
        }
        Some(found)
    }

    fn wrong(&mut self, section: &Section<'_, '_>, key: &str, expected: &str) {
        let found = section
            .get(key)
            .map_or("nothing", |value| kind(value.get_ref()));
        self.at(
            &section.to(key),
            format!("{} must be {expected}, not {found}", quoted(key)),
        );
    }

    fn push(&mut self, span: Option<Range<usize>>, message: String, suggestion: Option<String>) {
        let before = span.and_then(|span| self.text.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        let column = before.map_or(1, |before| {
            before
                .rsplit('\n')
                .next()
                .unwrap_or_default()
                .chars()
                .count()
                + 1
        });
        self.problems.push(Diagnostic {
            file: self.file.clone(),
            line,
            column,
            message,
            suggestion,
        });
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
