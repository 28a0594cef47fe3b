//! Read-backs: the tool they call, what it is called with, and where in its result they look.

use lychgate_core::ConsequenceClass;
use lychgate_core::json::Value;

use crate::diagnostics::{Problem, nearest, quoted};
use crate::model::{Idempotency, ServerModel, ToolModel};
use crate::read_back::{Expected, ReadBack, Source, When};
use crate::schema::{self, Place};

/// Every problem of a tool's read-back.
pub(super) fn read_back(
    name: &str,
    server: &ServerModel,
    function: &str,
    tool: &ToolModel,
    found: &mut Vec<Problem>,
) {
    let Some(rule) = &tool.read_back else { return };
    let mut checked = Checked {
        path: vec!["servers", name, "tools", function, "read_back"],
        server,
        function,
        tool,
        rule,
        found,
    };
    checked.whole();
    checked.called(name);
    checked.arguments();
    checked.when("effect_when", rule.effect_when.as_ref());
    checked.when("no_effect_when", rule.no_effect_when.as_ref());
}

struct Checked<'a> {
    path: Vec<&'a str>,
    server: &'a ServerModel,
    function: &'a str,
    tool: &'a ToolModel,
    rule: &'a ReadBack,
    found: &'a mut Vec<Problem>,
}

impl Checked<'_> {
    fn report(&mut self, keys: &[&str], message: impl Into<String>, near: Option<String>) {
        let path = self.path.iter().chain(keys).copied().collect::<Vec<_>>();
        self.found
            .push(Problem::new(&path, message).suggesting(near));
    }

    fn whole(&mut self) {
        if self.tool.class == ConsequenceClass::Informational {
            let message = "an INFORMATIONAL function has no effect to look up";
            self.report(&[], message, None);
        }
        let rule = self.rule;
        if rule.effect_when.is_none() && rule.no_effect_when.is_none() {
            let message = "`read_back` has neither `effect_when` nor `no_effect_when`";
            self.report(&[], message, None);
        }
        if rule.effect_when.as_ref().is_some_and(|when| when.error) {
            let message =
                "an error says nothing of an effect: `error` stands in `no_effect_when` only";
            self.report(&["effect_when", "error"], message, None);
        }
        if !rule.trust_no_effect {
            return;
        }
        //= PROFILE §5: a destination's own "no effect" never releases a retry for FINANCIAL
        if self.tool.class == ConsequenceClass::Financial {
            let message =
                "`no effect` is never trusted for a FINANCIAL function: a person must say";
            self.report(&["trust_no_effect"], message, None);
        } else if rule.no_effect_when.is_none() {
            let message = "`trust_no_effect` has no `no_effect_when` to trust";
            self.report(&["trust_no_effect"], message, None);
        }
    }

    /// The function that is called: one of the same server, with an entry, without an effect.
    fn called(&mut self, name: &str) {
        let called = self.rule.tool.as_str();
        let shown = quoted(called);
        if called.is_empty() {
            // Left out, and said already where the file was read; a snapshot is never made of it.
            return self.report(&["tool"], "`read_back` has no `tool`", None);
        }
        if !self.server.definitions.contains_key(called) {
            let known = self.server.definitions.keys().map(String::as_str);
            let near = nearest(called, known.filter(|known| *known != self.function));
            let message = format!("server `{name}` has no pinned tool {shown} to read back with");
            return self.report(&["tool"], message, near);
        }
        match self.server.tools.get(called) {
            Some(entry) if !entry.enabled => {
                self.report(&["tool"], format!("tool {shown} is not enabled"), None);
            }
            Some(entry) if entry.class == ConsequenceClass::Informational => {}
            Some(entry) => {
                let class = entry.class.name();
                let message =
                    format!("tool {shown} is {class}: only an INFORMATIONAL one reads back");
                self.report(&["tool"], message, None);
            }
            None => {
                let message =
                    format!("tool {shown} has no entry: only an INFORMATIONAL one reads back");
                self.report(&["tool"], message, None);
            }
        }
    }

    fn arguments(&mut self) {
        let rule = self.rule;
        let definition = self.server.definitions.get(&rule.tool);
        let schema = definition.and_then(|definition| definition.get("inputSchema"));
        for (argument, source) in &rule.arguments {
            let escaped = argument.replace('~', "~0").replace('/', "~1");
            let place = schema.map(|schema| schema::place(schema, &format!("/{escaped}")));
            if let Some(Place::Unknown(known)) = place {
                let near = nearest(argument, known.iter().map(String::as_str));
                let message = format!(
                    "{} has no argument {}",
                    quoted(&rule.tool),
                    quoted(argument)
                );
                self.report(&["arguments", argument], message, near);
            }
            match source {
                Source::Argument(pointer) => self.pointer(&["arguments", argument], pointer),
                Source::IdempotencyKey => self.key(&["arguments", argument]),
                Source::Value(_) => {}
            }
        }
        let required = schema.and_then(|schema| schema.get("required"));
        let required = required.and_then(Value::as_array).unwrap_or_default();
        for missing in required.iter().filter_map(Value::as_str) {
            if !rule.arguments.contains_key(missing) {
                let message = format!(
                    "{} needs the argument {}",
                    quoted(&rule.tool),
                    quoted(missing)
                );
                self.report(&["arguments"], message, None);
            }
        }
    }

    fn when(&mut self, key: &'static str, when: Option<&When>) {
        let Some(when) = when else { return };
        self.result(key, &when.pointer);
        match &when.expected {
            Expected::EqualsArgument(pointer) => self.pointer(&[key, "equals_argument"], pointer),
            Expected::DigestOfArgument(pointer) => {
                self.pointer(&[key, "digest_of_argument"], pointer);
            }
            Expected::IdempotencyKey => self.key(&[key, "idempotency_key"]),
            Expected::Equals(_) | Expected::Absent => {}
        }
    }

    /// A pointer into the act's own arguments.
    fn pointer(&mut self, keys: &[&str], pointer: &str) {
        if pointer.is_empty() || schema::tokens(pointer).is_none() {
            let plain = !pointer.starts_with('/') && !pointer.is_empty();
            let message = format!("{} is not a json pointer to an argument", quoted(pointer));
            return self.report(keys, message, plain.then(|| format!("/{pointer}")));
        }
        let definition = self.server.definitions.get(self.function);
        let schema = definition.and_then(|definition| definition.get("inputSchema"));
        if let Some(Place::Unknown(known)) = schema.map(|schema| schema::place(schema, pointer)) {
            let near = beside(pointer, &known);
            let message = format!(
                "{} has no argument {}",
                quoted(self.function),
                quoted(pointer)
            );
            self.report(keys, message, near);
        }
    }

    /// A pointer into the result of the function that is called.
    fn result(&mut self, key: &str, pointer: &str) {
        let at = [key, "pointer"];
        let tokens = schema::tokens(pointer).unwrap_or_default();
        let Some(first) = tokens.first() else {
            let message = format!("{} is not a json pointer into a result", quoted(pointer));
            let plain = !pointer.starts_with('/') && !pointer.is_empty();
            return self.report(&at, message, plain.then(|| format!("/{pointer}")));
        };
        if !RESULT.contains(&first.as_str()) {
            let near = nearest(first, RESULT).map(|near| {
                let rest = pointer.split('/').skip(2).map(|token| format!("/{token}"));
                format!("/{near}{}", rest.collect::<String>())
            });
            let message = format!("a result has no {}", quoted(&format!("/{first}")));
            return self.report(&at, message, near);
        }
        let Some(inner) = pointer.strip_prefix("/structuredContent") else {
            return;
        };
        let definition = self.server.definitions.get(&self.rule.tool);
        let schema = definition.and_then(|definition| definition.get("outputSchema"));
        if let Some(Place::Unknown(known)) = schema.map(|schema| schema::place(schema, inner)) {
            let near = beside(pointer, &known);
            let message = format!(
                "a result of {} has no {}",
                quoted(&self.rule.tool),
                quoted(pointer)
            );
            self.report(&at, message, near);
        }
    }

    fn key(&mut self, keys: &[&str]) {
        if self.tool.idempotency != Idempotency::Meta {
            let message = format!(
                "no key goes out with {}: write `idempotency = \"meta\"`",
                quoted(self.function)
            );
            self.report(keys, message, None);
        }
    }
}

fn beside(pointer: &str, known: &[String]) -> Option<String> {
    let (parent, last) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    nearest(last, known.iter().map(String::as_str)).map(|near| format!("{parent}/{near}"))
}

/// The members of a tool's result.
const RESULT: [&str; 4] = ["content", "structuredContent", "isError", "_meta"];
