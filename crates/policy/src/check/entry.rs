//! Catalogue entries against the pinned definitions they speak of.

use lychgate_core::ConsequenceClass;
use lychgate_core::json::Value;
use lychgate_core::name::is_name;

use super::{absolute, read_back};
use crate::definition::definition_digest;
use crate::diagnostics::{Problem, nearest, quoted};
use crate::model::{Kind, Model, Rule, ServerModel, ToolModel};
use crate::schema::{self, Place};

/// Every problem of a server's entries.
pub(super) fn entries(name: &str, server: &ServerModel, model: &Model, found: &mut Vec<Problem>) {
    for (function, tool) in &server.tools {
        let entry = Entry {
            path: ["servers", name, "tools", function],
            tool,
            schema: None,
        };
        match server.definitions.get(function) {
            None => {
                let near = nearest(function, server.definitions.keys().map(String::as_str));
                let message = format!("server `{name}` has no pinned tool {}", quoted(function));
                found.push(Problem::new(&entry.path, message).suggesting(near));
                entry.check(model, found);
            }
            Some(definition) => {
                entry.pin(name, definition, found);
                Entry {
                    schema: definition.get("inputSchema"),
                    ..entry
                }
                .check(model, found);
                read_back::read_back(name, server, function, tool, found);
            }
        }
    }
    for (method, tool) in &server.methods {
        let entry = Entry {
            path: ["servers", name, "methods", method],
            tool,
            schema: None,
        };
        if !is_name(method) {
            found.push(Problem::new(
                &entry.path,
                format!("method name {} is refused", quoted(method)),
            ));
        } else if server.definitions.contains_key(method) {
            found.push(Problem::new(
                &entry.path,
                format!("method {} is also a tool of `{name}`", quoted(method)),
            ));
        } else if EFFECT_FREE.contains(&method.as_str())
            || method.starts_with("notifications/")
            || method == "tools/call"
        {
            found.push(Problem::new(
                &entry.path,
                format!("method {} is the gate's own business", quoted(method)),
            ));
        }
        if tool.definition.is_some() {
            found.push(entry.problem(
                &["definition"],
                "a method has no `definition`: only tools are pinned",
            ));
        }
        if !tool.aliases.is_empty() {
            found.push(entry.problem(&["aliases"], "a method has no aliases"));
        }
        if tool.envelope.is_some() {
            let message = "a method has no `envelope`: only tools have";
            found.push(entry.problem(&["envelope"], message));
        }
        if tool.read_back.is_some() {
            let message = "a method has no `read_back`: only tools are looked up";
            found.push(entry.problem(&["read_back"], message));
        }
        entry.check(model, found);
    }
}

struct Entry<'a> {
    path: [&'a str; 4],
    tool: &'a ToolModel,
    /// The input schema, when there is one to check pointers against.
    schema: Option<&'a Value>,
}

impl Entry<'_> {
    fn problem(&self, keys: &[&str], message: impl Into<String>) -> Problem {
        let path = self.path.iter().chain(keys).copied().collect::<Vec<_>>();
        Problem::new(&path, message)
    }

    fn pin(&self, server: &str, definition: &Value, found: &mut Vec<Problem>) {
        let function = quoted(self.path.last().copied().unwrap_or_default());
        match &self.tool.definition {
            None => {
                let message = format!(
                    "tool {function} has no pinned `definition`: run `lychgate pin {server}`"
                );
                found.push(self.problem(&[], message));
            }
            Some(digest) if *digest != definition_digest(definition) => {
                let message = format!(
                    "`definition` of {function} is not the pinned one: run `lychgate pin {server}`"
                );
                found.push(self.problem(&["definition"], message));
            }
            Some(_) => {}
        }
    }

    fn check(&self, model: &Model, found: &mut Vec<Problem>) {
        for (index, purpose) in self.tool.purposes.iter().enumerate() {
            if *purpose != model.purpose.id && !model.purposes.contains_key(purpose) {
                let known = model
                    .purposes
                    .keys()
                    .map(String::as_str)
                    .chain([model.purpose.id.as_str()]);
                let problem = self.problem(
                    &["purposes", &index.to_string()],
                    format!("purpose {} is not declared", quoted(purpose)),
                );
                found.push(problem.suggesting(nearest(purpose, known)));
            }
        }
        if self
            .tool
            .timeout
            .is_some_and(|timeout| !(1..=86_400_000).contains(&timeout))
        {
            found.push(self.problem(&["timeout"], "`timeout` must be from 1 ms to 24 h"));
        }
        for pointer in self.tool.roles.keys() {
            self.pointer(&["roles", pointer], pointer, found);
        }
        let problem = |keys: &[&str], message| self.problem(keys, message);
        crate::envelope::check(self.tool, problem, found);
        if let Some(unit) = &self.tool.unit {
            if !crate::delegation::is_unit(unit) {
                found.push(self.problem(&["unit"], crate::delegation::not_a_unit(unit)));
            } else if unit.starts_with('/') {
                self.pointer(&["unit"], unit, found);
            }
        }
        if let Some(rule) = &self.tool.destination {
            self.rule("destination", rule, found);
            //= PROFILE §9: a query sent to an outside service is DATA_DISCLOSURE, not INFORMATIONAL
            let outside = rule
                .pointers
                .keys()
                .find(|kind| matches!(kind, Kind::Url | Kind::Host | Kind::Email | Kind::Iban));
            if let (Some(kind), ConsequenceClass::Informational) = (outside, self.tool.class) {
                let message = format!(
                    "a function with a `{}` destination discloses its arguments: it cannot be INFORMATIONAL",
                    kind.name()
                );
                found.push(
                    self.problem(&["class"], message)
                        .suggesting(Some("DATA_DISCLOSURE".to_owned())),
                );
            }
        }
        if let Some(rule) = &self.tool.recipient {
            self.rule("recipient", rule, found);
            if rule.file.is_some() || rule.pointers.contains_key(&Kind::Path) {
                found.push(self.problem(&["recipient"], "a path cannot name a recipient"));
            }
        }
    }

    fn rule(&self, key: &str, rule: &Rule, found: &mut Vec<Problem>) {
        let constants = usize::from(rule.fixed.is_some()) + usize::from(rule.file.is_some());
        let pointers = rule.pointers.values().map(Vec::len).sum::<usize>();
        if constants + usize::from(pointers > 0) != 1 || rule.pointers.values().any(Vec::is_empty) {
            found.push(self.problem(
                &[key],
                format!("`{key}` must have either `fixed`, or `file`, or lists of pointers"),
            ));
        }
        let control = |text: &String| text.is_empty() || text.chars().any(char::is_control);
        if rule.fixed.as_ref().is_some_and(control) {
            found.push(self.problem(
                &[key, "fixed"],
                "`fixed` is empty or has control characters",
            ));
        }
        if let Some(file) = &rule.file {
            let path = self
                .path
                .iter()
                .copied()
                .chain([key, "file"])
                .collect::<Vec<_>>();
            absolute(&path, file, found);
        }
        for (kind, pointers) in &rule.pointers {
            for (index, pointer) in pointers.iter().enumerate() {
                self.pointer(&[key, kind.name(), &index.to_string()], pointer, found);
            }
        }
    }

    fn pointer(&self, keys: &[&str], pointer: &str, found: &mut Vec<Problem>) {
        if pointer.is_empty() || schema::tokens(pointer).is_none() {
            let near =
                (!pointer.starts_with('/') && !pointer.is_empty()).then(|| format!("/{pointer}"));
            let message = format!("{} is not a json pointer to an argument", quoted(pointer));
            found.push(self.problem(keys, message).suggesting(near));
            return;
        }
        if let Some(Place::Unknown(known)) =
            self.schema.map(|schema| schema::place(schema, pointer))
        {
            let (parent, last) = pointer.rsplit_once('/').unwrap_or(("", pointer));
            let near = nearest(last, known.iter().map(String::as_str))
                .map(|near| format!("{parent}/{near}"));
            let function = quoted(self.path.last().copied().unwrap_or_default());
            let message = format!("{function} has no argument {}", quoted(pointer));
            found.push(self.problem(keys, message).suggesting(near));
        }
    }
}

/// Methods that pass without being acts (MCP.md); an entry for one would never be read.
const EFFECT_FREE: [&str; 15] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "roots/list",
    "tasks/list",
    "tasks/get",
    "tasks/result",
    "logging/setLevel",
    "completion/complete",
];
